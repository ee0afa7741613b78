/* One pass over a folder: lists it, reads what is not as the catalogue keeps it, and hands over
 * what differs as one change. On the caller's thread. */
#ifndef SITEMAPD_SOURCES_SCAN_H
#define SITEMAPD_SOURCES_SCAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "server/sources/location.h"
#include "server/sources/record.h"
#include "server/sources/sources.h"
#include "server/sources/tree_watch.h"

/* Where a source's file system may keep times coarsely (FAT, NFS): so long after its mtime a file
 * may change without showing it. */
#define SCAN_RACY_MS 2000

/* What a source remembers from scan to scan: files that were being written. One thread. */
struct scan_memory {
    struct record_list unsettled; /* sorted */
};

struct scan_options {
    struct catalogue *catalogue;
    const struct source_settings *settings;
    const struct location *location;
    int64_t max_removed;
    bool dry_run;
    const struct scan_progress *progress; /* may be NULL */
    const atomic_bool *stop;              /* may be NULL */
    struct tree_watch **watch;            /* folders are named to it; freed and NULL where the
                                        limit is reached. May be NULL, or point to NULL */
    struct scan_memory *memory;           /* NULL: what is being written is refused at once */
};

struct scan_counts {
    uint64_t files, read; /* matching files; of these read */
    uint64_t added, changed, gone, problems, recovered, empty;
    uint64_t future, one_lastmod; /* remarks among added and changed */
};

struct scan_outcome {
    enum catalogue_status status; /* of the change; CANCELLED: stopped */
    bool applied;                 /* `result` is whole, status OK */
    struct change_result result;
    char failure[256]; /* why it was not applied */
    struct scan_counts counts;
    uint32_t again_ms; /* scan once more so soon: something was not settled. 0: no need */
    bool watch_limit;  /* the limit of inotify was reached */
    bool links;        /* the folder has symlinks that were followed */
    uint64_t outside;  /* symlinks that lead out of it, and the first of them */
    char outside_path[64];
};

void scan_run(const struct scan_options *options, struct scan_outcome *out);
void scan_memory_done(struct scan_memory *memory);

#endif
