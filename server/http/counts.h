/* How often each status was answered on each route: a fixed table of atomics, striped so that the
 * threads of a pool do not take the same cache line from each other. */
#ifndef SITEMAPD_HTTP_COUNTS_H
#define SITEMAPD_HTTP_COUNTS_H

#include <stddef.h>
#include <stdint.h>

struct counts;

/* For `rows` routes. NULL when out of memory. */
struct counts *counts_new(size_t rows);
/* Takes NULL. */
void counts_free(struct counts *c);
/* Any thread, no lock. A status out of 100 to 599 is not counted. */
void counts_add(struct counts *c, size_t row, unsigned status);
uint64_t counts_get(const struct counts *c, size_t row, unsigned status);

/* Requests begun and not yet completed. Sequentially consistent: who begins one and then sees
 * "not stopping" is seen by whoever sets "stopping" and then looks here. */
void counts_begin(struct counts *c);
void counts_end(struct counts *c);
uint64_t counts_active(const struct counts *c);

#endif
