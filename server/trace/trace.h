/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Traces (W3C Trace Context): sends the spans of API writes and polls to the [trace] endpoint (OTLP
 * over HTTP, JSON). Recording a span neither waits nor allocates memory. All functions accept a
 * NULL trace, and then record nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/rules/http/traceparent.h"

/* A span that has begun. All zero: none. */
struct trace_span {
    /* The traceparent for requests that this causes: the span's own, or, if it is not recorded, the
     * caller's unchanged; "": none. */
    struct traceparent context;
    char parent[SPAN_ID_CHARS + 1]; /* "": the trace begins here */
    int64_t began_ns;               /* Unix time */
    bool recorded;
};

/* How it ended. Texts are copied, except static ones. */
struct trace_end {
    const char *method;  /* static; NULL: not an HTTP request that was answered here */
    const char *name;    /* static: "poll list", or the route of the request */
    const char *site;    /* an origin; NULL: none, or several */
    const char *source;  /* NULL: none */
    const char *problem; /* static: a stable word; NULL: none */
    uint64_t revision;   /* revision that the write made; 0: none */
    int64_t site_id;     /* 0: none, or several */
    unsigned status;     /* HTTP status; 0: there was no answer */
    bool failed;
};

struct trace_counts {
    uint64_t sent, dropped;
    bool on, failing; /* failing: the endpoint did not accept the last batch */
};

struct trace;
/* Records nothing yet. NULL when out of memory. */
struct trace *trace_new(void);
/* From now on sends `sample_percent` of all traces to `endpoint` (NULL: none are sent). `node`
 * (NULL: none) is this node's name. One thread at a time. Logs a failure. */
void trace_configure(struct trace *t, const char *endpoint, unsigned sample_percent,
                     const char *node);
/* No other thread may use it any more. Unsent spans are lost. Accepts NULL. */
void trace_free(struct trace *t);

/* Any thread; none of these waits for I/O. */

/* Begins a span. `from`: the traceparent of its cause; NULL or "": none. */
void trace_begin(struct trace *t, const struct traceparent *from, struct trace_span *span);
void trace_end(struct trace *t, struct trace_span *span, const struct trace_end *end);
/* Records the trace to which the newest revision of a site belongs. */
void trace_link(struct trace *t, int64_t site_id, uint64_t revision,
                const struct traceparent *context);
/* The trace of the site's newest revision if `from` <= revision < `to`; else `*out` is "". */
void trace_linked(struct trace *t, int64_t site_id, uint64_t from, uint64_t to,
                  struct traceparent *out);
void trace_counts_get(struct trace *t, struct trace_counts *out);
