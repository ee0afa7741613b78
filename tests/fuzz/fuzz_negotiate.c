/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Accept-Encoding, entity-tags and dates as anyone on the net may send them. */
#include "tests/fuzz/require.h"

#include "server/rules/http/negotiate.h"

#define NOW_2026 1767225600
#define ETAG     "\"abc\""

static const struct validators own = {ETAG, 784111777, false};

/* The field with a few bytes before and behind it; to be freed. */
static char *wrap(const char *before, const char *text, const char *behind)
{
    size_t len = strlen(before) + strlen(text) + strlen(behind);
    char *out = malloc(len + 1);

    if (out == NULL)
        abort();
    strcat(strcat(strcpy(out, before), text), behind);
    return out;
}

static bool takes_gzip(const char *field)
{
    enum coding best;

    return negotiate_coding(field, &best);
}

static void try_encoding(const char *text)
{
    bool gzip = takes_gzip(text);
    char *padded = wrap(" ,\t", text, " , ");
    char *refused = wrap("", text, ",identity;q=0");
    char *preferred = wrap("", text, ",identity");

    REQUIRE(takes_gzip(padded) == gzip);
    /* Refusing identity never takes gzip away, preferring it never brings it. */
    REQUIRE(!gzip || takes_gzip(refused));
    REQUIRE(gzip || !takes_gzip(preferred) || takes_gzip(refused));
    free(padded);
    free(refused);
    free(preferred);
}

static void try_tags(const char *text)
{
    bool strong = negotiate_match(text, ETAG);
    bool weak = negotiate_none_match(text, ETAG, false);
    bool tolerant = negotiate_none_match(text, ETAG, true);
    char *listed = wrap("\"x,\" , W/\"y\",", text, ",");

    REQUIRE(!strong || weak);
    REQUIRE(!weak || tolerant);
    /* In a list it names what it named alone; only the star may not be in one. */
    if (strchr(text, '*') == NULL) {
        REQUIRE(negotiate_match(listed, ETAG) == strong);
        REQUIRE(negotiate_none_match(listed, ETAG, false) == weak);
        REQUIRE(negotiate_none_match(listed, ETAG, true) == tolerant);
    }
    struct conditions asked = {.if_none_match = text, .if_modified_since = text};
    REQUIRE(negotiate_conditions(&asked, &own, NOW_2026) ==
            (tolerant ? CONDITION_NOT_MODIFIED : CONDITION_NONE));
    /* What If-Match refuses nothing else saves, and what it lets through it decides no further. */
    asked.if_match = asked.if_unmodified_since = text;
    REQUIRE(negotiate_conditions(&asked, &own, NOW_2026) == (!strong    ? CONDITION_FAILED
                                                             : tolerant ? CONDITION_NOT_MODIFIED
                                                                        : CONDITION_NONE));
    free(listed);
}

static void try_date(const char *text)
{
    struct conditions since = {.if_modified_since = text}, until = {.if_unmodified_since = text};
    int64_t at, again;
    char out[30];

    if (!http_date_parse(text, NOW_2026, &at)) {
        REQUIRE(negotiate_conditions(&since, &own, NOW_2026) == CONDITION_NONE);
        REQUIRE(negotiate_conditions(&until, &own, NOW_2026) == CONDITION_NONE);
        return;
    }
    REQUIRE(negotiate_conditions(&since, &own, NOW_2026) ==
            (at == own.modified_at ? CONDITION_NOT_MODIFIED : CONDITION_NONE));
    REQUIRE(negotiate_conditions(&until, &own, NOW_2026) ==
            (at < own.modified_at ? CONDITION_FAILED : CONDITION_NONE));
    struct validators dated = {ETAG, at, false}, shared = {ETAG, at, true};
    REQUIRE(negotiate_date_is_exact(text, &dated, NOW_2026) == (at > 0 && at < NOW_2026));
    REQUIRE(!negotiate_date_is_exact(text, &shared, NOW_2026));
    if (at > 253402300799) /* the leap second of the year 9999 */
        return;
    http_date_format(at, out);
    REQUIRE(http_date_parse(out, INT64_MIN, &again) && again == at);
    REQUIRE(http_date_parse(out, INT64_MAX, &again) && again == at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size);
    int64_t at;
    char out[30];

    try_encoding(text);
    try_tags(text);
    try_date(text);
    /* Any clock, any stored time. */
    if (size >= sizeof at) {
        memcpy(&at, data, sizeof at);
        http_date_format(at, out);
        REQUIRE(strlen(out) == 29);
        (void)http_date_parse(text + sizeof at, at, &at);
    }
    free(text);
    return 0;
}
