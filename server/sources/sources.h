/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sources: entries without calls of the API. A directory source watches a folder of sitemap files,
 * verifies each file once for each change, and submits what changed as one scan.
 *
 * A kind of source is behind struct source_kind (scan.h). Sources never log: they report events. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "server/rules/source_settings.h"

#define SOURCE_MAX_PATH_BYTES 1024u /* of a file below its folder; longer ones are a problem */
#define SOURCE_MAX_DEPTH      32u   /* folders below each other */
#define SOURCE_MAX_PROBLEMS   100u  /* listed in a report; all are counted */
#define SOURCE_MAX_REMARKS    100u  /* the same */
#define SOURCE_MAX_SPLITS     100u  /* listed in a report */

struct source_problem {
    char *path, *code, *detail; /* owned by the report */
    uint64_t line, column;
    int64_t since;  /* Unix seconds */
    bool has_entry; /* the entry of its last good state is still in the index */
};

/* A rule that a listed file, or some page URLs in it, break. */
struct source_remark {
    char *path, *detail; /* owned by the report */
    const char *code;    /* static */
    uint64_t line, column, count;
};

/* A file whose page URLs are a urlset. */
struct source_split {
    char *path; /* owned by the report */
    uint64_t urls;
};

enum source_watching { SOURCE_WATCHES, SOURCE_RESCANS_ONLY, SOURCE_WATCH_LIMIT };

/* How a source stands now. */
struct source_report {
    const char *name, *directory, *url, *index; /* borrowed from the list */
    const struct source_settings *settings;     /* borrowed from the list */
    bool serve;
    enum source_watching watching;
    bool scanning;
    struct source_state state; /* as the catalogue keeps it */
    uint64_t revision;         /* the catalogue's, at which it was read */
    int64_t failed_at;         /* when the last scan failed; 0: it did not */
    char failure[256];         /* why: the folder cannot be read, the catalogue rejected it, … */
    size_t problems_listed;    /* the first of state.quarantined */
    struct source_problem problems[SOURCE_MAX_PROBLEMS];
    size_t remarks_listed; /* of as many files as fit; state.remarked counts the files */
    struct source_remark remarks[SOURCE_MAX_REMARKS];
    size_t splits_listed; /* the first ones */
    struct source_split splits[SOURCE_MAX_SPLITS];
};

struct sources;

struct sources_options {
    struct catalogue *catalogue;
    size_t count;
    const struct source_settings *settings;
    /* Something to log; any thread. `level`: 0 error, 1 warning, 2 info. */
    void (*event)(void *context, int level, const char *event, const char *detail);
    void *event_context;
    /* A scan was applied: files of the source with this number may have changed. On its thread; may
     * be NULL. */
    void (*scanned)(void *context, size_t number);
    void *scanned_context;
};

/* Starts one thread for each source; its first scan begins at once. `why` gets a sentence. */
bool sources_start(const struct sources_options *options, struct sources **out, char *why,
                   size_t why_size);
/* Checks the settings without reading the folder. False: `why` gets a sentence. */
bool source_settings_check(const struct source_settings *settings, char *why, size_t why_size);
/* Replaces the running sources by those of `settings`. A source of the same name and settings
 * continues undisturbed; any other ends as with sources_end, and its entries stay; a new or changed
 * one starts as another source. The list changes after all have ended and started. False with
 * `why`: out of memory, and nothing has changed; or no thread, and that source has ended. One
 * caller at a time, and none during sources_end. */
bool sources_reconfigure(struct sources *s, size_t count, const struct source_settings *settings,
                         char *why, size_t why_size);
/* Ends the threads; a scan under way stops at the next file and is not applied, and waiting callers
 * are answered. Only sources_scan may not be called any more. Accepts NULL. */
void sources_end(struct sources *s);
/* The same, and frees all. Takes NULL. */
void sources_stop(struct sources *s);

/* Holds the list of running sources: what is borrowed from it stays valid until the list is
 * released, even during a reload. Any thread; never waits for I/O. Hold it briefly. */
struct source_list;
struct source_list *sources_hold(struct sources *s);
void sources_release(struct source_list *list); /* takes NULL */
size_t sources_count(const struct source_list *list);
/* The place in the list of the source with this name; SIZE_MAX where there is none. */
size_t sources_find(const struct source_list *list, const char *name);
/* A number that names the source outside of the list; it is never used again. */
size_t sources_number(const struct source_list *list, size_t at);
/* Borrowed. */
const struct source_settings *sources_settings(const struct source_list *list, size_t at);
/* The URL of a source's folder. Borrowed. */
const char *sources_url(const struct source_list *list, size_t at);
/* Fills a report; reads the catalogue: not on an HTTP thread. False: no memory or unreadable. */
bool sources_report(const struct source_list *list, size_t at, struct source_report *out);
/* The part of a report that the catalogue has, for a source of any kind: its state, problems and
 * remarks, and what is split: of its files (`splits`), else of these watched `urls`
 * (NULL-terminated; NULL: none). Reads the catalogue, and false, as sources_report. */
bool source_report_read(struct catalogue *c, const char *name, bool splits, const char *const *urls,
                        struct source_report *out);
void source_report_done(struct source_report *report);

/* How a source stood after its last scan, from memory: for /readyz and /metrics. Never waits for
 * I/O; any thread. */
struct source_health {
    const char *name;          /* borrowed from the list */
    struct source_state state; /* as of the last scan; zero before the first */
    bool scanning, failing;    /* failing: the last scan could not be made */
    enum source_watching watching;
    uint64_t scans, files_read; /* since the start */
    char failure[256];          /* why it fails; "" otherwise */
};
void sources_health(const struct source_list *list, size_t at, struct source_health *out);

/* Asks a source, by its number, for a scan now, without settling; `max_removed` and `dry_run` as in
 * struct change. `done` is called once, on the source's thread, when it is over (also when the
 * source ends; at once where it has ended): `result` as of the CHANGE_SCAN, NULL where the scan
 * could not be made (then `failure` says why). */
typedef void source_scanned(void *context, const struct change_result *result, const char *failure);
void sources_scan(struct sources *s, size_t number, int64_t max_removed, bool dry_run,
                  source_scanned *done, void *context);

/* One pass over a folder for the command line, without a thread: what `sitemapd scan` does. */
struct scan_progress {
    /* A file that would change something, is refused, or is news by its remarks alone; `what`:
     * "new", "changed", "gone", "problem", "empty", "recovered", "remarked". */
    void (*change)(void *context, const char *what, const struct source_file *file);
    /* A problem, or a good file's remarks, that were known before and are as they were. May be
     * NULL. */
    void (*still)(void *context, const struct source_file *file);
    void (*progress)(void *context, uint64_t files_seen, uint64_t files_read);
    void *context;
};
/* What is asked of it, and the result: the caller ends `result`; `why` may be "". */
struct scan_once {
    struct catalogue *catalogue;
    int64_t max_removed;
    bool dry_run;
    const struct scan_progress *progress; /* NULL: nobody follows it */
    struct change_result result;
    char why[320];
};
enum catalogue_status source_scan_once(const struct source_settings *settings,
                                       struct scan_once *scan);

/* ---- for serving the files ---------------------------------------------------------------- */

/* Opens a regular file below the source's folder for reading, never following a symlink out of it
 * (openat2, RESOLVE_BENEATH). `path` is relative. A descriptor, or -1 with errno: ENOENT also where
 * the source has ended. */
int sources_open_file(struct sources *s, size_t number, const char *path);
/* The number of the served source and the relative path (into `path`, SOURCE_MAX_PATH_BYTES + 1
 * bytes) of a site's URL path (percent-encoded, raw); false where no source with `serve` has it, or
 * the path is not in normal form. Only files that match the patterns, by name, are found. Any
 * thread. */
bool sources_match(struct sources *s, const char *origin, const char *url_path, size_t *number,
                   char *path);
