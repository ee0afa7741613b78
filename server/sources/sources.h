/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sources: entries that come without calls of the API. A directory source watches a folder of
 * sitemap files, verifies each file after each change, and submits all changes as one scan.
 *
 * What differs between kinds of sources is in struct source_kind (scan.h). Sources never log: they
 * report events. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "server/rules/source_settings.h"

/* of a file below its folder; a longer path is reported as a problem */
#define SOURCE_MAX_PATH_BYTES 1024u
#define SOURCE_MAX_DEPTH      32u  /* nested folders */
#define SOURCE_MAX_PROBLEMS   100u /* listed in a report; all are counted */
#define SOURCE_MAX_REMARKS    100u /* the same */
#define SOURCE_MAX_SPLITS     100u /* listed in a report */

struct source_problem {
    char *path, *code, *detail; /* owned by the report */
    uint64_t line, column;
    int64_t since;  /* Unix seconds */
    bool has_entry; /* the entry of its last good state is still in the index */
};

/* A rule that a listed file, or some of its page URLs, break. */
struct source_remark {
    char *path, *detail; /* owned by the report */
    const char *code;    /* static */
    uint64_t line, column, count;
};

/* A file whose page URLs were split into a urlset. */
struct source_split {
    char *path; /* owned by the report */
    uint64_t urls;
};

enum source_watching { SOURCE_WATCHES, SOURCE_RESCANS_ONLY, SOURCE_WATCH_LIMIT };

/* The current state of a source. */
struct source_report {
    const char *name, *directory, *url, *index; /* borrowed from the list */
    const struct source_settings *settings;     /* borrowed from the list */
    bool serve;
    enum source_watching watching;
    bool scanning;
    struct source_state state; /* as the catalogue keeps it */
    uint64_t revision;         /* of the catalogue when it was read */
    int64_t failed_at;         /* since when scans fail; 0: the last one did not */
    char failure[256];         /* why: the folder cannot be read, the catalogue rejected it, … */
    size_t problems_listed;    /* the first of state.quarantined */
    struct source_problem problems[SOURCE_MAX_PROBLEMS];
    size_t remarks_listed; /* of as many files as fit; state.remarked counts all of them */
    struct source_remark remarks[SOURCE_MAX_REMARKS];
    size_t splits_listed; /* the first ones */
    struct source_split splits[SOURCE_MAX_SPLITS];
};

struct sources;

struct sources_options {
    struct catalogue *catalogue;
    size_t count;
    const struct source_settings *settings;
    uint64_t max_watches; /* of all folders; sites have shares. 0: unknown */
    /* Something to log; any thread. `level`: 0 error, 1 warning, 2 info. */
    void (*event)(void *context, int level, const char *event, const char *detail);
    void *event_context;
    /* A scan was applied: files of the source with this number may have changed. On its thread; may
     * be NULL. */
    void (*scanned)(void *context, size_t number);
    void *scanned_context;
};

/* Starts one thread for each source; its first scan begins at once. `why` gets a sentence. If the
 * URL of a source that is not `managed` is invalid, only its scans fail. */
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
 * are answered. A later sources_scan fails at once. Accepts NULL. */
void sources_end(struct sources *s);
/* The same, and frees all. Accepts NULL. */
void sources_stop(struct sources *s);

/* Takes a reference to the list of running sources: all that is borrowed from the list stays valid
 * until sources_release, even during a reload. Any thread; never waits for I/O. Hold it briefly. */
struct source_list;
struct source_list *sources_hold(struct sources *s);
void sources_release(struct source_list *list); /* accepts NULL */
size_t sources_count(const struct source_list *list);
/* The index in the list of the source with this name; SIZE_MAX: none exists. */
size_t sources_find(const struct source_list *list, const char *name);
/* A number that identifies the source outside of the list; it is never reused. */
size_t sources_number(const struct source_list *list, size_t at);
/* Borrowed. */
const struct source_settings *sources_settings(const struct source_list *list, size_t at);
/* The URL of a source's folder. Borrowed. */
const char *sources_url(const struct source_list *list, size_t at);
/* Fills a report. Reads the catalogue: do not call it on an HTTP thread. False: out of memory, or
 * the catalogue is unreadable. */
bool sources_report(const struct source_list *list, size_t at, struct source_report *out);
/* Fills the part of a report that is in the catalogue, for a source of any kind: its state,
 * problems and remarks, and the splits: of its files (`splits`), else of the watched `urls`
 * (NULL-terminated; NULL: none). Otherwise as sources_report. */
bool source_report_read(struct catalogue *c, const char *name, bool splits, const char *const *urls,
                        struct source_report *out);
void source_report_done(struct source_report *report);

/* The state of a source after its last scan, from memory: for /readyz and /metrics. Any thread;
 * never waits for I/O. */
struct source_health {
    const char *name; /* borrowed from the list */
    bool serve;
    struct source_state state; /* as of the last scan; zero before the first */
    bool scanning, failing;    /* failing: the last scan failed */
    enum source_watching watching;
    uint64_t scans, files_read; /* since the start */
    char failure[256];          /* why it fails; "" otherwise */
};
void sources_health(const struct source_list *list, size_t at, struct source_health *out);

/* Requests a scan of the source with this number now, without waiting for it to settle;
 * `max_removed` and `dry_run` as in struct change. `done` is called once: on the source's thread
 * when the scan is over or the source ends, at once if it has ended. `result` is that of the
 * CHANGE_SCAN; NULL if the scan failed, for the reason `failure`. */
typedef void source_scanned(void *context, const struct change_result *result, const char *failure);
void sources_scan(struct sources *s, size_t number, int64_t max_removed, bool dry_run,
                  source_scanned *done, void *context);

/* One scan of a folder on the caller's thread, for `sitemapd scan`. */
struct scan_progress {
    /* A file that changes something, is refused, or has new remarks; `what`: "new", "changed",
     * "gone", "problem", "empty", "recovered", "remarked". */
    void (*change)(void *context, const char *what, const struct source_file *file);
    /* A file with a problem, or a good file with remarks, that have not changed. May be NULL. */
    void (*still)(void *context, const struct source_file *file);
    void (*progress)(void *context, uint64_t files_seen, uint64_t files_read);
    void *context;
};
/* The options of one scan, and its result. The caller ends `result`; `why` may be "". */
struct scan_once {
    struct catalogue *catalogue;
    int64_t max_removed;
    bool dry_run;
    const struct scan_progress *progress; /* may be NULL */
    struct change_result result;
    char why[320];
};
enum catalogue_status source_scan_once(const struct source_settings *settings,
                                       struct scan_once *scan);

/* ---- for serving the files ---------------------------------------------------------------- */

/* Opens a regular file below the source's folder for reading; never follows a symlink out of the
 * folder (openat2, RESOLVE_BENEATH). `path` is relative. A descriptor, or -1 with errno; ENOENT
 * also if the source has ended. */
int sources_open_file(struct sources *s, size_t number, const char *path);
/* Whether the file has an entry in the index, and the entry's date, Unix seconds, 0: none. True
 * also if the catalogue cannot be read. Reads the catalogue: do not call it on an HTTP thread. */
bool sources_list_file(struct sources *s, size_t number, const char *path, int64_t *lastmod);
/* Finds the source with `serve` that has a site's URL path (percent-encoded, as requested): its
 * number and the relative path of the file (into `path`, SOURCE_MAX_PATH_BYTES + 1 bytes). False:
 * none exists, the path is not in normal form, or its name matches no pattern of the source. Any
 * thread. */
bool sources_match(struct sources *s, const char *origin, const char *url_path, size_t *number,
                   char *path);
