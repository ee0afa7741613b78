/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The header `traceparent` (W3C Trace Context, level 1): the trace that a request belongs to, and
 * the span that caused it. Pure, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define TRACEPARENT_CHARS 55
#define TRACE_ID_CHARS    32
#define SPAN_ID_CHARS     16

/* "00-TRACE_ID-SPAN_ID-FLAGS", all in lower-case hex; "": none. */
struct traceparent {
    char text[TRACEPARENT_CHARS + 1];
};

/* Reads a header value, strictly: a wrong length, upper case, an id of zeros or version ff is
 * rejected. Fields that a later version appends are dropped. False, and `*out` is "": invalid or
 * NULL. */
bool traceparent_parse(const char *value, struct traceparent *out);
/* The header of a span: `trace_id` and `span_id` are lower-case hex of their lengths. */
void traceparent_make(const char *trace_id, const char *span_id, bool sampled,
                      struct traceparent *out);

static inline bool traceparent_is_set(const struct traceparent *t)
{
    return t->text[0] != '\0';
}
/* Pointers into the header, with the lengths above and no NUL at the end; NULL: no trace. */
static inline const char *traceparent_trace_id(const struct traceparent *t)
{
    return traceparent_is_set(t) ? t->text + 3 : NULL;
}
static inline const char *traceparent_span_id(const struct traceparent *t)
{
    return traceparent_is_set(t) ? t->text + 3 + TRACE_ID_CHARS + 1 : NULL;
}
/* Whether the caller records its span. */
bool traceparent_is_sampled(const struct traceparent *t);
