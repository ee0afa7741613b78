/* The sources that run, as a picture that is never changed: a reload makes another. Whoever reads
 * holds one, and with it every source in it: one that has ended is freed with the last picture that
 * shows it. Thread safe where nothing else is said. */
#ifndef SITEMAPD_SOURCES_SOURCE_LIST_H
#define SITEMAPD_SOURCES_SOURCE_LIST_H

#include "server/sources/source.h"

struct source_list {
    atomic_uint references;
    size_t count;
    struct source *at[]; /* a reference to each */
};

/* An empty one with room for `capacity`, with a reference for the caller. NULL: out of memory. */
struct source_list *source_list_new(size_t capacity);
/* Takes a reference of its own to the source. While nobody else has the list. */
void source_list_add(struct source_list *list, struct source *source);
void source_list_ref(struct source_list *list);
/* Takes NULL. */
void source_list_unref(struct source_list *list);
/* The source with this number; NULL where it is not in the list. Borrowed. */
struct source *source_list_find(const struct source_list *list, size_t number);

#endif
