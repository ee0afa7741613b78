/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A list: the sitemap index of an upstream, read as it arrives, and handed over as a scan. An
 * upstream that is a sitemap (urlset) itself is a list that names itself alone: sites without an
 * index have no other. What is
 * wrong with a member is reported of it; what is wrong with the list fails it as a whole, and
 * nothing changes. For server/sources/remote/, and its reading for commands that show it; one
 * thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/client/client.h"
#include "server/sources/remote/remote.h"
#include "server/sources/scan.h"

struct upstream;

/* Reads an answer's body, through the host map (NULL: none; borrowed). `url`: the upstream's, which
 * may be a sitemap itself; NULL: it may not. NULL: out of memory. */
struct upstream *upstream_new(int64_t now, const struct url *url, const struct host_map *map);
/* Before the first byte: the answer's Content-Encoding, as in reader_content_encoding. */
void upstream_content_encoding(struct upstream *u, const char *value);
/* False: it need not go on. */
bool upstream_feed(struct upstream *u, const char *bytes, size_t len);
/* The body is over: NULL where it is a list with members, else a stable word of what is wrong with
 * it, and a sentence. */
const char *upstream_finish(struct upstream *u, char *why, size_t why_size);
/* After upstream_finish, of a source: NULL, or as above where it is a sitemap itself, at the URL of
 * an index page here, or though it was an index when it was read last: then something is wrong with
 * it, unless `max_removed` lets all its sitemaps go. */
struct catalogue;
const char *upstream_check_single(const struct upstream *u, struct catalogue *c, const char *source,
                                  int64_t max_removed, char *why, size_t why_size);
/* Its members, of these the good ones, which can be listed, and of those the ones with a date; the
 * bytes of all. */
struct upstream_counts {
    size_t members, good, dated, bytes;
};
struct upstream_counts upstream_count(const struct upstream *u);
/* The first member that can be listed, as it is served here; NULL: there is none. */
const char *upstream_first(const struct upstream *u);
void upstream_free(struct upstream *u);

/* What a scan of a list needs, beside the list. */
struct upstream_scan {
    struct catalogue *catalogue;
    const struct source_settings *settings;
    int64_t answered_before, answered; /* the Dates of the answer before and of this one */
    int64_t max_removed;
    bool dry_run;
    const struct scan_progress *progress; /* may be NULL */
    const atomic_bool *stop;              /* may be NULL */
};
/* Hands the list over, after upstream_finish; a dry run may come first. `*claims_are_now`: its
 * dates are the moments of its answers, and none was taken. */
void upstream_apply(struct upstream *u, const struct upstream_scan *scan, struct scan_outcome *out,
                    bool *claims_are_now);
/* Of the members applied those with another claim than before: their normalised URLs, `count` of
 * them. Borrowed. */
const char *const *upstream_claimed(const struct upstream *u, size_t *count);
