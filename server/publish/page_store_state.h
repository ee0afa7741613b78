/* What a page store is made of: page_store.c reads and writes, page_store_sweep.c cleans up.
 * Internal to the two. */
#ifndef SITEMAPD_PUBLISH_PAGE_STORE_STATE_H
#define SITEMAPD_PUBLISH_PAGE_STORE_STATE_H

#include <stdatomic.h>

#include "server/publish/page_store.h"

#define TEMPORARY "writing.tmp"
#define NAME_SIZE 48 /* of `<index id>-<number>.page` */

struct page_store {
    struct page_store_options options;
    char *folder; /* owned */
    /* CLOCK_MONOTONIC; 0: on. A disk that cannot be written may still be read. */
    atomic_int_fast64_t unread_until_ms, unwritten_until_ms;
    atomic_uint_fast64_t bytes;
    atomic_bool told; /* that it is off */
    int folder_fd;    /* locked; -1: closed. The keeper's, as what is below */
    struct str head;
};

void page_store_name(int64_t index_id, uint32_t number, char out[NAME_SIZE]);
/* Of a file in the folder; 0 where there is none. The keeper's thread. */
uint64_t page_store_size_of(struct page_store *store, const char *name);
/* No writing for a while; told once until it is on again. */
void page_store_turn_off(struct page_store *store, const char *why);

#endif
