/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Counts of answers: by route and status, their durations, and bytes by content coding. Fixed
 * tables of atomics, striped so that threads do not share cache lines. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "server/base/histogram.h"
#include "server/rules/http/negotiate.h"

struct counts;

/* The content coding of a reply's body (RFC 9110 8.4); NONE where no body was sent. */
enum counts_encoding {
    COUNTS_NONE,
    COUNTS_IDENTITY,
    COUNTS_GZIP,
    COUNTS_ENCODINGS,
};

/* One answered request. */
struct counts_answer {
    size_t row;
    unsigned status;
    enum counts_encoding encoding;
    enum coding offered; /* accepted by the client; not counted if Accept-Encoding was not read */
    uint64_t bytes;      /* of the body */
    uint64_t received;   /* of the request's body */
    uint64_t took_ns;
};

struct counts_sums {
    uint64_t answers[COUNTS_ENCODINGS], bytes[COUNTS_ENCODINGS];
    uint64_t offered[CODINGS];
    uint64_t received;
};

/* For `rows` routes. NULL when out of memory. */
struct counts *counts_new(size_t rows);
/* Accepts NULL. */
void counts_free(struct counts *c);
/* Any thread, no lock. An answer with a status outside 100 to 599 is not counted. */
void counts_add(struct counts *c, const struct counts_answer *answer);
uint64_t counts_get(const struct counts *c, size_t row, unsigned status);
/* Durations of the row's requests, by histogram_times. */
void counts_times(const struct counts *c, size_t row, struct histogram_values *out);
void counts_sum(const struct counts *c, struct counts_sums *out);

/* Requests begun and not yet completed. Sequentially consistent: a thread that begins one and then
 * sees "not stopping" is seen by the thread that sets "stopping" and then reads the count. */
void counts_begin(struct counts *c);
void counts_end(struct counts *c);
uint64_t counts_active(const struct counts *c);
