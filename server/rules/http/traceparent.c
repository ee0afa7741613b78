/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "server/rules/http/traceparent.h"

#include <stdio.h>
#include <string.h>

#define AT_SPAN_ID (3 + TRACE_ID_CHARS + 1)
#define AT_FLAGS   (AT_SPAN_ID + SPAN_ID_CHARS + 1)

static int hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_hex(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (hex_value(text[i]) < 0)
            return false;
    return true;
}

/* An id of zeros is invalid. */
static bool is_id(const char *text, size_t len)
{
    return is_hex(text, len) && strspn(text, "0") < len;
}

bool traceparent_parse(const char *value, struct traceparent *out)
{
    size_t len = value != NULL ? strlen(value) : 0;

    out->text[0] = '\0';
    if (len < TRACEPARENT_CHARS || !is_hex(value, 2) || memcmp(value, "ff", 2) == 0 ||
        value[2] != '-' || !is_id(value + 3, TRACE_ID_CHARS) || value[AT_SPAN_ID - 1] != '-' ||
        !is_id(value + AT_SPAN_ID, SPAN_ID_CHARS) || value[AT_FLAGS - 1] != '-' ||
        !is_hex(value + AT_FLAGS, 2))
        return false;
    /* In a later version, the fields of version 00 count (3.2.4 of the recommendation). */
    if (len > TRACEPARENT_CHARS && (memcmp(value, "00", 2) == 0 || value[TRACEPARENT_CHARS] != '-'))
        return false;
    traceparent_make(value + 3, value + AT_SPAN_ID, hex_value(value[AT_FLAGS + 1]) & 1, out);
    return true;
}

void traceparent_make(const char *trace_id, const char *span_id, bool sampled,
                      struct traceparent *out)
{
    snprintf(out->text, sizeof out->text, "00-%.*s-%.*s-0%d", TRACE_ID_CHARS, trace_id,
             SPAN_ID_CHARS, span_id, sampled);
}

bool traceparent_is_sampled(const struct traceparent *t)
{
    return traceparent_is_set(t) && t->text[AT_FLAGS + 1] == '1';
}
