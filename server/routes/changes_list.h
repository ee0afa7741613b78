/* What changed since a revision, read from a view: the pages, and the sites whose robots.txt may
 * have changed with them. Internal to server/routes/. */
#ifndef SITEMAPD_ROUTES_CHANGES_LIST_H
#define SITEMAPD_ROUTES_CHANGES_LIST_H

#include "server/routes/call.h"

#define CHANGES_MAX_PAGES 1000u /* of a reply; a revision is never split, so it may be more */

struct changed_page {
    struct page_record page;
    char *url;     /* owned */
    bool outdated; /* another one of the list came to its URL after it */
};

struct changed_site {
    char *origin;       /* owned */
    int64_t changed_at; /* of its newest page change in the list */
};

struct changes {
    struct call call; /* first */
    /* what the client has seen; epoch "": nothing */
    char epoch[33];
    uint64_t since, since_registry;
    int64_t deadline_ms; /* monotonic */
    bool waits;          /* it has one of the places for long polls */
    /* what there is now */
    struct catalogue_revisions now;
    uint64_t next;     /* told up to here */
    bool more;         /* there are pages past it */
    char *only_origin; /* owned: the token's site; NULL: every one */
    size_t page_count, page_capacity;
    struct changed_page *pages;
    size_t site_count, site_capacity;
    struct changed_site *sites; /* whose set of pages may have changed: their robots.txt */
    uint32_t *site_buckets;     /* where a site is in `sites`, from 1, by the hash of its origin */
    size_t site_bucket_count;   /* a power of two, or 0 */
    bool failed;                /* out of memory */
};

/* Reads what there is now; what an earlier reading found is forgotten. False, with the reply filled
 * (410, 503), where it cannot be told. */
bool changes_list_read(struct changes *self, struct catalogue_view *view);
/* Appends the reply's body, with the etags of the pages that are in memory now. */
void changes_list_append(struct changes *self, struct str *out);
void changes_list_done(struct changes *self);

#endif
