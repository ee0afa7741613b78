/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Which page URLs of served sitemaps were added, changed or removed, for IndexNow. A copy that
 * another replaces is kept, as a hard link in SITE/changed/ of the child store, until the
 * difference of the two was sent: a crash loses nothing, and each change is sent at least once,
 * where it is within two days. A sitemap's first copy is not a change, nor is a sitemap that leaves
 * the list. Copies are kept while child_store_want_changes is called. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/sources/child_store.h"

struct child_changes; /* of one sitemap; used by one thread */

struct child_changes_counts {
    uint64_t before, now;        /* page URLs of the two copies */
    uint64_t changed;            /* page URLs that were added, changed or removed */
    char loc[LOC_MAX_CHARS + 1]; /* of the sitemap */
};
/* Opens a sitemap of the site with changed page URLs, comparing copies until `until_ms`
 * (clock_now_ms) at most, and two in any case. NULL: there is none, or there was no time or memory.
 * The caller owns the result: child_changes_close. */
struct child_changes *child_changes_open(struct child_store *s, int64_t site_id, int64_t until_ms,
                                         struct child_changes_counts *counts);
/* Calls `take` with the changed page URLs behind the first `from` of them, until it returns false:
 * that one was not taken. Returns how many were taken: 0 also where the copies cannot be read any
 * more. */
size_t child_changes_read(struct child_changes *changes, uint64_t from,
                          bool (*take)(void *context, const char *loc), void *context);
/* Frees it. `sent`: the copies are dropped; otherwise the next call of open may find them again, as
 * where false is returned: they could not be dropped. */
bool child_changes_close(struct child_changes *changes, bool sent);
