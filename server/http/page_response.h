/* The prebuilt responses of a snapshot: made once when it is published, queued for every 200, 304
 * and HEAD by all threads. */
#ifndef SITEMAPD_HTTP_PAGE_RESPONSE_H
#define SITEMAPD_HTTP_PAGE_RESPONSE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/http/page_readers.h"
#include "server/publish/snapshot.h"

/* Lives longer than every snapshot and every listener. */
struct page_response_options {
    const char *cache_control; /* borrowed for the process's life */
    uint32_t max_identity;     /* identity replies inflating at once; more: 503 */
    atomic_uint inflating;     /* how many there are: 0 at first */
    struct page_readers readers;
};

/* The publisher's `attach` hook: `context` is a struct page_response_options. False: no memory. */
bool page_response_attach(void *context, struct snapshot *s);
/* The publisher's `cut_slow_readers` hook: likewise. */
void page_response_cut(void *context, uint64_t bytes);

#endif
