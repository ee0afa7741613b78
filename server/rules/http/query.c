/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Splits and decodes a query in place. */
#include "server/rules/http/query.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/str.h"
#include "server/base/text.h"

/* Decodes `text` in place; the result is never longer. False: a `%` is not followed by two hex
 * digits, or the result contains a NUL or invalid UTF-8. */
static bool decode_percent(char *text)
{
    char *out = text;

    for (const char *in = text; *in != '\0';) {
        int high, low;

        if (*in != '%') {
            *out++ = *in == '+' ? ' ' : *in;
            in++;
            continue;
        }
        high = ascii_hex_value(in[1]);
        low = high < 0 ? -1 : ascii_hex_value(in[2]);
        if (low < 0 || (high | low) == 0)
            return false;
        *out++ = (char)(high << 4 | low);
        in += 3;
    }
    *out = '\0';
    return utf8_is_valid(text, (size_t)(out - text));
}

static enum query_status add_pair(struct query *q, char *name)
{
    char *value = strchr(name, '=');

    if (value != NULL)
        *value++ = '\0';
    else
        value = name + strlen(name);
    if (!decode_percent(name) || !decode_percent(value))
        return QUERY_MALFORMED;
    if (query_value(q, name) != NULL)
        return QUERY_REPEATED;
    if (q->count == QUERY_MAX_PAIRS)
        return QUERY_TOO_MANY;
    q->pair[q->count].name = name;
    q->pair[q->count].value = value;
    q->count++;
    return QUERY_OK;
}

enum query_status query_parse(const char *text, struct query *out)
{
    struct query q = {.storage = NULL, .count = 0};
    char *next;

    if (text != NULL && *text != '\0') {
        q.storage = strdup(text);
        if (q.storage == NULL)
            return QUERY_NO_MEMORY;
    }
    next = q.storage;
    while (next != NULL) {
        char *name = strsep(&next, "&");
        enum query_status status;

        if (*name == '\0')
            continue;
        status = add_pair(&q, name);
        if (status != QUERY_OK) {
            if (status == QUERY_REPEATED)
                utf8_copy_cut(out->repeated, sizeof out->repeated, name);
            free(q.storage);
            return status;
        }
    }
    *out = q;
    return QUERY_OK;
}

const char *query_value(const struct query *q, const char *name)
{
    for (size_t i = 0; i < q->count; i++) {
        if (strcmp(q->pair[i].name, name) == 0)
            return q->pair[i].value;
    }
    return NULL;
}

bool query_number(const char *text, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;

    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        uint64_t digit;

        if (!ascii_is_digit(*text))
            return false;
        digit = (uint64_t)(*text - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (value > max)
        return false;
    *out = value;
    return true;
}

void query_done(struct query *q)
{
    if (q == NULL)
        return;
    free(q->storage);
    q->storage = NULL;
    q->count = 0;
}
