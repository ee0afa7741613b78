/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A list: the sitemap index of an upstream, read as it arrives, and submitted as a scan. For sites
 * without an index, an upstream that is a sitemap (urlset) itself counts as a list with only this
 * member. A fault of a member is reported for that member; a fault of the list fails the whole
 * list, and nothing changes. For server/sources/remote/; commands use the reading part. One thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/client/client.h"
#include "server/sources/remote/remote.h"
#include "server/sources/scan.h"

struct upstream;

/* Reads the body of a response, through the host map (borrowed; may be NULL). `url`: the upstream's
 * URL if it may be a sitemap itself; else NULL. NULL: out of memory. */
struct upstream *upstream_new(int64_t now, const struct url *url, const struct host_map *map);
/* Call it before the first byte with the Content-Encoding, as in reader_content_encoding. */
void upstream_content_encoding(struct upstream *u, const char *value);
/* False: the rest need not be read. */
bool upstream_feed(struct upstream *u, const char *bytes, size_t len);
/* The body is complete. NULL if it is a list with members, else a stable word for the fault; `why`
 * gets a sentence. */
const char *upstream_finish(struct upstream *u, char *why, size_t why_size);
/* Call it after upstream_finish for a source. Returns a fault as above if the upstream is a sitemap
 * itself, and either its URL is that of an index page here, or it was an index before and
 * `max_removed` does not allow the removal of all its sitemaps. Else NULL. */
struct catalogue;
const char *upstream_check_single(const struct upstream *u, struct catalogue *c, const char *source,
                                  int64_t max_removed, char *why, size_t why_size);
/* Counts of members, of good members (which can be listed), and of good members with a date; and
 * the bytes of all. */
struct upstream_counts {
    size_t members, good, dated, bytes;
};
struct upstream_counts upstream_count(const struct upstream *u);
/* The first good member, after the host map; NULL: none exists. */
const char *upstream_first(const struct upstream *u);
void upstream_free(struct upstream *u);

/* Options for the scan of a list. */
struct upstream_scan {
    struct catalogue *catalogue;
    const struct source_settings *settings;
    int64_t answered_before, answered; /* the Date of the previous response and of this one */
    int64_t max_removed;
    bool dry_run;
    const struct scan_progress *progress; /* may be NULL */
    const atomic_bool *stop;              /* may be NULL */
};
/* Submits the list. Call it after upstream_finish, for a dry run and then for the change, if both
 * are needed. `*claims_are_now`: the dates in the list are the times of its responses, and were
 * ignored. */
void upstream_apply(struct upstream *u, const struct upstream_scan *scan, struct scan_outcome *out,
                    bool *claims_are_now);
/* The normalised URLs of the `count` applied members whose dates in the list have changed.
 * Borrowed. */
const char *const *upstream_claimed(const struct upstream *u, size_t *count);
