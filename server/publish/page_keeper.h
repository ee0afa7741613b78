/* The keeper of stored pages: a thread of low priority that writes the pages in memory to the page
 * store once they have stood for a while, and at a stop the rest. Nobody ever waits for it but the
 * stop, for a bounded time. Internal to publish. */
#ifndef SITEMAPD_PUBLISH_PAGE_KEEPER_H
#define SITEMAPD_PUBLISH_PAGE_KEEPER_H

#include <stdint.h>

#include "server/publish/page_store.h"

struct builder;
struct publisher;
struct slot;
struct page_keeper;
struct page_record;

/* A page is stored when it has been as it is for so long: one that changes more often never is,
 * but at a stop. */
#define PAGE_KEEPER_SETTLE_MS 5000
/* And not more often than this. */
#define PAGE_KEEPER_LEAST_MS 30000
/* How long a stop goes on storing pages. */
#define PAGE_KEEPER_STOP_MS 2000
/* Bytes written at most in a second: commits wait for the same disk. */
#define PAGE_KEEPER_TICK_BYTES (16u << 20)

/* As the publisher's options say. NULL where they turn it off, or when out of memory or threads:
 * there is no store then, and all functions take NULL. */
struct page_keeper *page_keeper_start(struct publisher *p);
/* The registry moved: pages may be gone. Any thread. */
void page_keeper_pages_moved(struct page_keeper *k);
/* Ends the thread, stores what is not stored for at most PAGE_KEEPER_STOP_MS, and frees. Slots and
 * snapshots must still be there. */
void page_keeper_stop(struct page_keeper *k);

/* The snapshot of a cold page from the store, or NULL. For build threads. */
struct snapshot *page_keeper_load(struct page_keeper *k, struct builder *b, struct slot *s,
                                  uint64_t revision, const struct page_record *page);

uint64_t page_keeper_bytes(struct page_keeper *k);

#endif
