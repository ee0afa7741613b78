/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Which page URLs of served sitemaps were added, changed or removed, for IndexNow. When a newer
 * copy replaces one, the older one stays as a hard link in SITE/changed/ of the child store until
 * the difference has been sent, for at most two days. So a crash loses nothing, and each change is
 * sent at least once. Neither a sitemap's first copy nor its removal from the list is a change.
 * Copies are kept only while child_store_want_changes is called. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/sources/child_store.h"

struct child_changes; /* of one sitemap; used by one thread */

struct child_changes_counts {
    uint64_t before, now;        /* page URLs of the older and the newer copy */
    uint64_t changed;            /* page URLs that were added, changed or removed */
    char loc[LOC_MAX_CHARS + 1]; /* of the sitemap */
};
/* Opens a sitemap of the site that has changed page URLs. Compares copies until `until_ms`
 * (clock_now_ms), but at least two. NULL: none has changes, or time or memory was short. Close the
 * result with child_changes_close. */
struct child_changes *child_changes_open(struct child_store *s, int64_t site_id, int64_t until_ms,
                                         struct child_changes_counts *counts);
/* Calls `take` for the changed page URLs after the first `from`, until it returns false, which
 * rejects that one. Returns how many were taken; 0 also if the copies cannot be read any more. */
size_t child_changes_read(struct child_changes *changes, uint64_t from,
                          bool (*take)(void *context, const char *loc), void *context);
/* Frees it. `sent`: also drops the copies; otherwise child_changes_open will find them again.
 * False: they could not be dropped, and will be found again. */
bool child_changes_close(struct child_changes *changes, bool sent);
