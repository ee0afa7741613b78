/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Query strings: what is read, written again, reads the same. */
#include "tests/fuzz/require.h"

#include "server/base/str.h"
#include "server/rules/http/query.h"

static void append_encoded(struct str *out, const char *text)
{
    static const char hex[] = "0123456789ABCDEF";

    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        str_append_char(out, '%');
        str_append_char(out, hex[c >> 4]);
        str_append_char(out, hex[c & 15]);
    }
}

static void require_same(const struct query *a, const struct query *b)
{
    REQUIRE(a->count == b->count);
    for (size_t i = 0; i < a->count; i++) {
        REQUIRE(strcmp(a->pair[i].name, b->pair[i].name) == 0);
        REQUIRE(strcmp(a->pair[i].value, b->pair[i].value) == 0);
    }
}

static void require_round_trip(const struct query *q)
{
    struct str text = STR_INIT;
    struct query again;

    for (size_t i = 0; i < q->count; i++) {
        append_encoded(&text, q->pair[i].name);
        str_append_char(&text, '=');
        append_encoded(&text, q->pair[i].value);
        str_append_char(&text, '&');
    }
    REQUIRE(!text.failed && query_parse(str_text(&text), &again) == QUERY_OK);
    require_same(q, &again);
    query_done(&again);
    str_done(&text);
}

static void try_number(const char *text)
{
    struct str out = STR_INIT;
    uint64_t value, again;

    if (!query_number(text, UINT64_MAX, &value))
        return;
    str_append_u64(&out, value);
    REQUIRE(query_number(str_text(&out), value, &again) && again == value);
    REQUIRE(value == 0 || !query_number(text, value - 1, &again));
    str_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size);
    struct query q;

    try_number(text);
    if (query_parse(text, &q) == QUERY_OK) {
        REQUIRE(q.count <= QUERY_MAX_PAIRS);
        for (size_t i = 0; i < q.count; i++) {
            REQUIRE(utf8_is_valid(q.pair[i].name, strlen(q.pair[i].name)));
            REQUIRE(utf8_is_valid(q.pair[i].value, strlen(q.pair[i].value)));
            REQUIRE(query_value(&q, q.pair[i].name) == q.pair[i].value);
        }
        require_round_trip(&q);
        query_done(&q);
    }
    free(text);
    return 0;
}
