/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Traces: which trace (W3C Trace Context) what is done belongs to, and [trace] endpoint, which gets
 * the spans of API writes and polls (OTLP over HTTP, JSON). Nobody who records a span waits, or
 * allocates memory. All functions accept a NULL trace, and then record nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/rules/http/traceparent.h"

/* What is under way. Zero: nothing. */
struct trace_span {
    /* To hand on with what this causes: the span's own; where it is not recorded, the caller's, as
     * it came; "": none. */
    struct traceparent context;
    char parent[SPAN_ID_CHARS + 1]; /* "": the trace begins here */
    int64_t began_ns;               /* Unix time */
    bool recorded;
};

/* How it ended. Texts are copied, but for those that are static. */
struct trace_end {
    const char *method;  /* static; NULL: not an HTTP request that was answered here */
    const char *name;    /* static: "poll list", or the route of the request */
    const char *site;    /* an origin; NULL: none, or several */
    const char *source;  /* NULL: none */
    const char *problem; /* static: a stable word; NULL: none */
    uint64_t revision;   /* that it made; 0: none */
    int64_t site_id;     /* 0: none, or several */
    unsigned status;     /* of HTTP; 0: there was no answer */
    bool failed;
};

struct trace_counts {
    uint64_t sent, dropped;
    bool on, failing; /* failing: the endpoint did not accept the last batch */
};

struct trace;
/* Records nothing yet. NULL when out of memory. */
struct trace *trace_new(void);
/* Sends to `endpoint` from now on, `sample_percent` of all traces; NULL: to nobody. `node` (NULL:
 * none) is this node's name. One thread at a time. Logs where it cannot. */
void trace_configure(struct trace *t, const char *endpoint, unsigned sample_percent,
                     const char *node);
/* Nobody else uses it any more. What was not sent is lost. Takes NULL. */
void trace_free(struct trace *t);

/* Any thread; none of these waits for I/O. */

/* Begins a span, caused by `from` (NULL or "": by nobody). */
void trace_begin(struct trace *t, const struct traceparent *from, struct trace_span *span);
void trace_end(struct trace *t, struct trace_span *span, const struct trace_end *end);
/* Remembers which trace the newest revision of a site belongs to. */
void trace_link(struct trace *t, int64_t site_id, uint64_t revision,
                const struct traceparent *context);
/* The trace of the site's newest revision, where that is from `from` up to but not including `to`;
 * else `*out` is "". */
void trace_linked(struct trace *t, int64_t site_id, uint64_t from, uint64_t to,
                  struct traceparent *out);
void trace_counts_get(struct trace *t, struct trace_counts *out);
