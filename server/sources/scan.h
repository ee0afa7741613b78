/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One pass over a source: which files there are, what the catalogue keeps of them, and what
 * differs, handed over as one change. Internal to server/sources/; on the caller's thread.
 *
 * A scan knows nothing of where files are: its kind names them (folder/folder.h). */
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
    struct source_file file; /* its texts are owned by the list of the record; without `loc` */
    bool moved;              /* stored: its URL has changed. found: its content or URL has */
    bool seen;               /* stored: it still exists */
    bool nowhere;            /* it has no URL: a folder, an invalid name */
    const char *named; /* found: reported as this ("new", …), static; NULL: it is not reported */
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
/* By path, bytes ascending. */
void record_sort(struct record_list *list);
/* In a sorted list; NULL where there is none. */
struct record *record_find(const struct record_list *list, const char *path);
/* In a sorted list: sets `seen` of all that is below a folder. */
void record_see_below(struct record_list *list, const char *folder);
void record_list_done(struct record_list *list);

/* ---- a scan -------------------------------------------------------------------------------- */

struct scan_pass;

/* What a kind of source knows and a scan does not. `place` is its own. */
struct source_kind {
    /* Opens what is to be looked at, before the catalogue is read. False, reported by scan_fail,
     * where it cannot be. `end` follows where it was true. */
    bool (*begin)(void *place, struct scan_pass *pass);
    /* Hands over every file there is by scan_meet, scan_compare and scan_problem. False: the scan
     * ends and changes nothing (scan_fail reported why, it was stopped, or memory is out). */
    bool (*find)(void *place, struct scan_pass *pass);
    void (*end)(void *place);
    /* The normalised URL of a path; a RULE_… where it has none. */
    enum rule_code (*loc)(const void *place, const char *path, struct url *out);
    /* A path whose URL is in the folder's directory: if an index rejects it, it rejects all. NULL:
     * none. */
    const char *sample;
};

struct scan_options {
    struct catalogue *catalogue;
    const struct source_settings *settings;
    const struct source_kind *kind;
    void *place;
    int64_t site_id; /* the one site that it may list in; 0: any */
    int64_t max_removed;
    bool dry_run;
    bool alone; /* nobody comes back: what is being written is refused at once, and what the shrink
                   guard holds is reported file by file */
    const struct scan_progress *progress; /* may be NULL */
    const atomic_bool *stop;              /* may be NULL */
};

struct scan_counts {
    uint64_t files, read; /* matching files; of these read */
    uint64_t added, changed, gone, problems, recovered, empty;
    uint64_t future, one_lastmod; /* remarks among added and changed */
    uint64_t remarked;            /* files with remarks that are news */
};

struct scan_outcome {
    enum catalogue_status status; /* of the change; CANCELLED: stopped */
    bool applied;                 /* `result` is whole, status OK */
    struct change_result result;  /* of a dry run the caller ends it: it has the rows */
    char failure[256];            /* why it was not applied */
    struct scan_counts counts;
    uint32_t again_ms; /* scan again so soon: something was not settled. 0: no need */
    bool watch_limit;  /* the limit of inotify was reached */
    bool links;        /* the folder has symlinks that were followed */
    uint64_t outside;  /* symlinks that lead out of it, and the first of them */
    char outside_path[64];
};

void scan_run(const struct scan_options *options, struct scan_outcome *out);

/* ---- for kinds ----------------------------------------------------------------------------- */

struct scan_pass {
    const struct scan_options *options;
    struct scan_outcome *out;
    int64_t now;               /* Unix seconds, when it began */
    struct registry *registry; /* as it was then; holds the strings of `hosts` */
    const char **hosts;        /* owned; of the site: its own, its aliases, its cross hosts */
    size_t host_count;
    int64_t hosts_digest;
    bool hosts_moved;   /* what is kept was checked by others */
    bool resubmit;      /* the entries are in another index than they are to be */
    bool out_of_memory; /* it ends at once */
    struct split_sums splits;
    struct record_list kept;  /* sorted */
    struct record_list found; /* what differs; sorted once it is handed over */
    struct url loc;           /* of the file that was last shown */
};

/* There is a file at the path. What is kept of it; NULL: nothing. */
struct record *scan_meet(struct scan_pass *pass, const char *path);
/* What is known of a file before it is looked at: its last good content, where there is any, is
 * what a refused file is still known by. `kept` may be NULL. */
struct record scan_from_kept(const struct record *kept, const char *path);
/* Takes what was found of a file, unless it is just what is kept. These three: false when out of
 * memory. */
bool scan_compare(struct scan_pass *pass, const struct record *kept, struct record *now);
/* The same of a file that is refused. */
bool scan_quarantine(struct scan_pass *pass, const struct record *kept, struct record *now,
                     const char *code, const char *detail);
/* The same of a file or folder that cannot be had. */
bool scan_problem(struct scan_pass *pass, const char *path, const char *code, const char *detail,
                  bool folder);
/* What the content of a file is checked by; `loc`, its URL, is borrowed. */
struct sitemap_expect scan_expect(const struct scan_pass *pass, const char *path,
                                  const struct url *loc);
/* Something was not settled: another scan is to come so soon. */
void scan_again(struct scan_pass *pass, uint32_t ms);
bool scan_is_stopped(const struct scan_pass *pass);
/* Why the scan cannot be made: "what: why". Returns false. */
bool scan_fail(struct scan_pass *pass, enum catalogue_status status, const char *what,
               const char *why);
