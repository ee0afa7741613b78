/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A scan: compares the files of a source with their records in the catalogue, and submits the
 * differences as one change. Runs on the caller's thread. Internal to server/sources/.
 *
 * A scan does not know where files are: its kind names them (folder/folder.h). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "db/source.h"
#include "server/input/sitemap_file.h"
#include "server/sources/sources.h"

/* ---- lists of files in memory, compactly --------------------------------------------------- */

struct record {
    struct source_file file; /* the record's list owns its texts; `loc` is not set */
    /* stored: its URL has changed. found: its content or URL has changed */
    bool moved;
    bool seen;    /* stored: it still exists */
    bool nowhere; /* it has no URL: a folder, an invalid name */
    /* found: the word to report it with ("new", …), static; NULL: not reported */
    const char *named;
};

struct record_block;

struct record_list {
    struct record *at;
    size_t count, capacity;
    struct record_block *blocks; /* of strings */
};

/* Appends a copy; NULL when out of memory. Valid until the next append. */
struct record *record_add(struct record_list *list, const struct record *record);
/* Copies a string into the list; NULL for NULL, and `*failed` is set when out of memory. */
const char *record_keep(struct record_list *list, const char *text, bool *failed);
/* Sorts by path, in byte order. */
void record_sort(struct record_list *list);
/* Finds a path in a sorted list; NULL: none exists. */
struct record *record_find(const struct record_list *list, const char *path);
/* Sets `seen` of all records below a folder, in a sorted list. */
void record_see_below(struct record_list *list, const char *folder);
void record_list_done(struct record_list *list);

/* ---- a scan -------------------------------------------------------------------------------- */

struct scan_pass;

/* What differs between kinds of sources. `place` is the kind's own object. */
struct source_kind {
    /* Opens the place before the catalogue is read. False: that failed, and scan_fail was called.
     * `end` is called if it was true. */
    bool (*begin)(void *place, struct scan_pass *pass);
    /* Passes every existing file to scan_meet, scan_compare or scan_problem. False: the scan ends
     * and changes nothing (scan_fail was called, the scan was stopped, or out of memory). */
    bool (*find)(void *place, struct scan_pass *pass);
    void (*end)(void *place);
    /* The normalised URL of a path; a RULE_… code if it has none. */
    enum rule_code (*loc)(const void *place, const char *path, struct url *out);
    /* A path directly in the top folder: an index that cannot hold its URL can hold none of the
     * others. NULL: none. */
    const char *sample;
};

struct scan_options {
    struct catalogue *catalogue;
    const struct source_settings *settings;
    const struct source_kind *kind;
    void *place;
    int64_t site_id; /* the only site that it may register for; 0: any */
    int64_t max_removed;
    uint64_t max_files; /* with more the scan fails; 0: no bound */
    size_t max_names;   /* as for a walk */
    bool dry_run;
    /* no further scan follows: a file that is being written is refused at once, and removals that
     * the shrink guard holds are reported file by file */
    bool alone;
    const struct scan_progress *progress; /* may be NULL */
    const atomic_bool *stop;              /* may be NULL */
};

struct scan_counts {
    uint64_t files, read; /* matching files; how many of them were read */
    uint64_t added, changed, gone, problems, recovered, empty;
    uint64_t future, one_lastmod; /* remarks on added and changed files */
    uint64_t remarked;            /* files with new remarks */
};

struct scan_outcome {
    enum catalogue_status status; /* of the change; CANCELLED: the scan was stopped */
    bool applied;                 /* `result` is complete, status OK */
    struct change_result result;  /* after a dry run it has the rows, and the caller ends it */
    char failure[256];            /* why it was not applied */
    struct scan_counts counts;
    uint32_t again_ms; /* something was not settled: scan again after this time. 0: no need */
    bool watch_limit;  /* the limit of inotify was reached */
    bool links;        /* symlinks in the folder were followed */
    uint64_t outside;  /* symlinks that lead out of the folder, and the first of them */
    char outside_path[64];
};

void scan_run(const struct scan_options *options, struct scan_outcome *out);

/* ---- for kinds ----------------------------------------------------------------------------- */

struct scan_pass {
    const struct scan_options *options;
    struct scan_outcome *out;
    int64_t now;               /* Unix seconds, when it began */
    struct registry *registry; /* as it was then; holds the strings of `hosts` */
    const char **hosts;        /* owned; the site's own host, its aliases, its cross hosts */
    size_t host_count;
    int64_t hosts_digest;
    bool hosts_moved;   /* the stored records were checked with other hosts */
    bool resubmit;      /* the entries must move to another index */
    bool out_of_memory; /* the scan ends at once */
    struct split_sums splits;
    struct record_list kept;  /* sorted */
    struct record_list found; /* the differences; sorted when they are submitted */
    struct url loc;           /* of the last file that was reported */
};

/* Marks the file at a path as existing. Returns its stored record; NULL: none exists. */
struct record *scan_meet(struct scan_pass *pass, const char *path);
/* A new record with what is known about a file before it is read. A refused file keeps the values
 * of its last good content. `kept` may be NULL. */
struct record scan_from_kept(const struct record *kept, const char *path);
/* Adds a file to `found`, unless it equals its stored record. False when out of memory, as for the
 * next two. */
bool scan_compare(struct scan_pass *pass, const struct record *kept, struct record *now);
/* The same for a file that is refused. */
bool scan_quarantine(struct scan_pass *pass, const struct record *kept, struct record *now,
                     const char *code, const char *detail);
/* The same for a file or folder that cannot be read. */
bool scan_problem(struct scan_pass *pass, const char *path, const char *code, const char *detail,
                  bool folder);
/* The parameters to check the content of a file with; `loc`, its URL, is borrowed. */
struct sitemap_expect scan_expect(const struct scan_pass *pass, const char *path,
                                  const struct url *loc);
/* Something was not settled: requests another scan after this time. */
void scan_again(struct scan_pass *pass, uint32_t ms);
bool scan_is_stopped(const struct scan_pass *pass);
/* Sets why the scan failed, "what: why". Returns false. */
bool scan_fail(struct scan_pass *pass, enum catalogue_status status, const char *what,
               const char *why);
