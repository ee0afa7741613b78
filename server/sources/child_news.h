/* Which page URLs of served sitemaps are new, changed or gone, for IndexNow: a copy that another
 * takes the place of is kept until that was told. It is a hard link in SITE/news/ of the child
 * store, so a crash loses nothing, and each is sent at least once. A sitemap's first copy is not
 * news, nor is one that leaves the list. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/sources/child_store.h"

/* Has what takes a copy's place kept as news, from now on. Any thread. */
void child_news_want(struct child_store *s, int64_t site_id);
/* Throws all news of a site away. Any thread. */
void child_news_forget(struct child_store *s, int64_t site_id);

struct child_news; /* of one sitemap; one thread's */

struct child_news_counts {
    uint64_t before, now;        /* pages of the two copies */
    uint64_t news;               /* pages that are new, changed or gone */
    char loc[LOC_MAX_CHARS + 1]; /* of the sitemap */
};
/* A sitemap of the site with news; NULL: there is none, or no memory. Reads both copies. Ends by
 * child_news_done. */
struct child_news *child_news_next(struct child_store *s, int64_t site_id,
                                   struct child_news_counts *counts);
/* Calls `take` with the page URLs of the news behind the first `from` of them, until it is false:
 * that one was not taken. How many were. */
size_t child_news_read(struct child_news *news, uint64_t from,
                       bool (*take)(void *context, const char *loc), void *context);
/* `told`: they are news no more. Frees it. */
void child_news_done(struct child_news *news, bool told);
