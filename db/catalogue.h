/* The catalogue: sites, indexes, entries, tokens, kept durably; one writer, many readers.
 *
 * This header knows no engine: no transaction, rowid, position arithmetic of a file or SQL shows.
 * A write is submitted and answered later (catalogue_submit); every read takes a view of one
 * consistent revision; catalogue_wait tells when there is something newer. Once a view showed
 * revision R, nothing <= R appears later. Strings order by bytes. Times are Unix seconds, the
 * engine's. */
#ifndef SITEMAPD_DB_CATALOGUE_H
#define SITEMAPD_DB_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/registry.h"
#include "db/source.h"
#include "server/measure/histogram.h"
#include "server/rules/entry.h"

enum catalogue_status {
    CATALOGUE_OK,
    CATALOGUE_REFUSED, /* a rule refused it: see result.code; nothing was written */
    CATALOGUE_NOT_FOUND,
    CATALOGUE_CONFLICT, /* exists already, managed by the configuration, or If-Match failed */
    CATALOGUE_FULL,     /* a limit of the catalogue */
    CATALOGUE_BUSY, /* another process held the lock, or the queue was full, until the deadline */
    CATALOGUE_UNAVAILABLE, /* the file is gone, was replaced, is no catalogue of ours, I/O error */
    CATALOGUE_NEWER,       /* made by a newer version */
    CATALOGUE_NO_SPACE,
    CATALOGUE_CORRUPT,
    CATALOGUE_NO_MEMORY,
    CATALOGUE_CANCELLED, /* closed before it was applied */
};

/* A stable word: "ok", "not-found", "conflict", … Static. */
const char *catalogue_status_word(enum catalogue_status status);

struct catalogue;
struct catalogue_view;

struct catalogue_options {
    const char *path;           /* of the file; made with its parent folder (0700) if absent */
    bool must_exist;            /* do not make it */
    bool server;                /* this handle checkpoints and purges (one per file) */
    uint32_t write_timeout_ms;  /* how long a write may wait for the queue and foreign locks */
    uint32_t max_queued;        /* writes waiting at once; more: CATALOGUE_BUSY at once */
    uint32_t shrink_percent;    /* shrink guard: 30; 0 turns it off */
    uint32_t default_max_pages; /* LIMIT_SITE_PAGES */
};

/* Opens (making or migrating the file where needed) and starts the writer. On failure `*out` is
 * NULL and `why` holds a sentence for people. Thread safe. */
enum catalogue_status catalogue_open(const struct catalogue_options *options,
                                     struct catalogue **out, char *why, size_t why_size);
/* Finishes what is queued and stops the writer: when it returns every `done` was called. What is
 * submitted from now on is answered CANCELLED; views go on. For an orderly stop, where `done` needs
 * what ends before the catalogue. Takes NULL. */
void catalogue_finish(struct catalogue *c);
/* The same if it was not done, then checkpoints and closes. No view may be open. */
void catalogue_close(struct catalogue *c);

/* ---- writes ---------------------------------------------------------------------------- */

enum change_kind {
    CHANGE_ENTRY_PUT,    /* register or update one entry: .entry, .source */
    CHANGE_ENTRY_REMOVE, /* .entry_id, or .loc (of any site; unique by site) */
    CHANGE_BULK,         /* upsert a stream: .stream, .source, .skip */
    CHANGE_REPLACE,      /* make an index, or part of it, exactly a stream (see fields) */
    CHANGE_SITE_ADD,     /* .site; an index at /sitemap_index.xml is NOT made with it */
    CHANGE_SITE_UPDATE,  /* .site_id, .site fields with a set flag */
    CHANGE_SITE_REMOVE,  /* .site_id, .max_removed */
    CHANGE_INDEX_ADD,    /* .index_url, .page_pattern */
    CHANGE_INDEX_REMOVE, /* .index_id, .max_removed */
    CHANGE_TOKEN_ADD,    /* .token_name, .token_sha256, .site_id (0: all) */
    CHANGE_TOKEN_REVOKE, /* .token_name */
    CHANGE_SCAN,         /* what a directory source found: see the scan_ fields */
    CHANGE_PURGE,        /* internal: rows of removed indexes, one small batch */
};

#define SITE_SET_CROSS_HOSTS 1u
#define SITE_SET_ALIAS_HOSTS 2u
#define SITE_SET_MAX_PAGES   4u
#define SITE_SET_MANAGED     8u

struct site_fields {
    unsigned set;                   /* SITE_SET_… */
    const char *origin;             /* CHANGE_SITE_ADD only; normalised here */
    const char *const *cross_hosts; /* NULL-terminated */
    const char *const *alias_hosts; /* NULL-terminated */
    uint32_t max_pages;
    bool managed;
};

#define MAX_REMOVED_GUARDED (-1) /* the shrink guard decides */

/* One write. Borrowed with all it points to until `done` was called. Fields that the kind does not
 * name are zero. */
struct change {
    enum change_kind kind;
    const char *source;    /* owner of new entries: a token's or source's name */
    int64_t token_site_id; /* not 0: only this site may be touched; else
                              REFUSED with code RULE_SITE_UNKNOWN, forbidden set */
    bool override_managed; /* the configuration itself is writing */
    struct entry entry;
    const char *entry_id;
    const char *loc;
    const char *if_match; /* entry etag (catalogue_entry_etag) or "*", else NULL */
    struct entry_stream *stream;
    bool skip;                  /* bulk, replace: apply the good ones */
    bool dry_run;               /* bulk, replace, scan: check and count, write nothing */
    const char *index_name;     /* replace: URL or path of the index (what the entries name does
                                   not count); bulk: default index */
    const char *replace_source; /* replace: only what this source owns; NULL: any */
    const char *replace_prefix; /* replace: only locs that begin with this; NULL: any */
    int64_t max_removed;        /* MAX_REMOVED_GUARDED, or how many may go */
    struct site_fields site;
    int64_t site_id;
    int64_t index_id;
    const char *index_url;
    const char *page_pattern; /* NULL: the default */
    const char *token_name;
    const uint8_t *token_sha256; /* 32 bytes */
    /* Scan: .source is its name, .index_name the index of its entries (NULL: by scope; one that is
     * not there refuses the scan), .files what differs from what is kept, .dry_run, .max_removed.
     * Alone in its transaction. A file whose loc another source owns, or that the rules refuse,
     * becomes QUARANTINED and is reported by on_reject (line 0), once as long as the reason stays.
     * Where the shrink guard (rule as for a replace, over each index with all its entries) does not
     * let the removals through, they are held, all of them: the files that are gone stay as they
     * are, all else is applied, and result.would_remove tells how many (status OK). A scan that
     * changes no entry makes no revision. The counts are of entries; unchanged ones are those of
     * files that were sent. */
    struct source_file_stream *files;
    /* Called for what a bulk, replace or scan refuses, on the writer's thread; may be NULL. */
    void (*on_reject)(void *context, const struct rejection *rejection);
    /* Called now and then with the entries done so far; may be NULL. */
    void (*on_progress)(void *context, uint64_t entries_done);
    void *context; /* for the callbacks above and `done` */
};

#define ENTRY_ID_SIZE 40 /* an id with its NUL */

/* One entry as the catalogue holds it. Strings are owned by whoever owns the struct (see each
 * function). */
struct entry_record {
    char id[ENTRY_ID_SIZE];                /* opaque, never reused */
    char *loc, *lastmod, *digest, *source; /* lastmod, digest: NULL where absent */
    int64_t site_id, index_id;
    uint32_t position;
    uint32_t page; /* number, from 1 */
    int64_t registered_at, changed_at;
    /* What its file holds, where a directory source reads it. */
    bool has_file;
    uint64_t file_urls, file_bytes;
    char *file_newest_lastmod; /* owned; NULL: none */
};

/* Frees the strings, not the struct. Takes NULL. */
void entry_record_done(struct entry_record *record);
/* Writes the entry's strong etag (quotes included) to `out`, 40 bytes: it changes whenever any
 * field of the entry does. */
void catalogue_entry_etag(const struct entry_record *record, char out[40]);

struct change_result {
    enum catalogue_status status;
    enum rule_code code;      /* RULE_OK unless status is REFUSED */
    bool forbidden;           /* refused because of token_site_id */
    bool precondition_failed; /* CONFLICT because of if_match */
    bool managed;             /* CONFLICT because the configuration manages it */
    const char *field;        /* the field to blame or NULL; static */
    char detail[256];         /* a sentence for people, "" if none */
    uint64_t created, updated, unchanged, removed, rejected;
    uint64_t would_remove;     /* shrink guard: how many would have gone */
    uint64_t revision;         /* the catalogue's revision after it */
    bool changed;              /* something was written (a revision was made) */
    rule_set remarks;          /* single entry: its warnings; list: its sites' */
    struct entry_record entry; /* ENTRY_PUT: as stored now; ENTRY_REMOVE: as it was;
                                  loc NULL otherwise */
    int64_t id;                /* of the site, index or token made */
};

/* Queues a write; `done` is called exactly once, on the writer's thread (or on the caller's before
 * this returns, where it cannot be queued), after the commit is durable or the refusal final.
 * `result` and what it owns live until `done` returns; take over `result->entry` by copying the
 * struct and setting its pointers NULL. `done` must not block and must not submit and wait.
 * A bulk, replace or scan is its own transaction; other writes share one (group commit).
 * BUSY, NO_SPACE, UNAVAILABLE… mean: not applied, nothing of it. Thread safe. */
typedef void change_done(void *context, struct change_result *result);
void catalogue_submit(struct catalogue *c, const struct change *change, change_done *done);

/* The same and waits. Fills `*result`, whose entry the caller then frees with entry_record_done.
 * Not from a callback of this module. Thread safe. */
enum catalogue_status catalogue_apply(struct catalogue *c, const struct change *change,
                                      struct change_result *result);

/* ---- reads: views ---------------------------------------------------------------------- */

/* Opens a view of the newest committed revision. Views are few and short: the pool has
 * CATALOGUE_VIEWS of them, and view_begin waits for a free one. Not on an HTTP thread. A view is
 * used by one thread at a time. On failure `*out` is NULL. */
#define CATALOGUE_VIEWS 8
enum catalogue_status catalogue_view_begin(struct catalogue *c, struct catalogue_view **out);
void catalogue_view_end(struct catalogue_view *v);

struct catalogue_revisions {
    char epoch[33];
    uint64_t revision;
    uint64_t registry_revision;
    uint64_t entries; /* all indexes not removed */
};
enum catalogue_status catalogue_view_revisions(struct catalogue_view *v,
                                               struct catalogue_revisions *out);
/* The registry at the view's revision; the caller owns a reference. */
enum catalogue_status catalogue_view_registry(struct catalogue_view *v, struct registry **out);

struct page_record {
    int64_t index_id;
    uint32_t number; /* from 1 */
    uint32_t entries;
    uint64_t bytes; /* as counted for the limit, see render_entry_bytes */
    int64_t changed_at;
    bool same_second; /* it had another content in the second changed_at */
    uint64_t revision;
    /* Drawn at random with every change of the page, so that two states of it never share one, not
     * even where a copy of the file was put back and goes through the same revisions again. 0:
     * none was drawn. */
    uint64_t stamp;
    bool removed; /* its index or site was removed, or it has no entries */
};

/* Calls `each` for every page with revision > `since`, by revision, then index and number, at most
 * `limit` (0: all). Tombstones of removed indexes included; for those the index may be unknown to
 * the registry: `url` is the page's URL all the same. A false from `each` ends it (OK). */
enum catalogue_status catalogue_view_pages_since(
    struct catalogue_view *v, uint64_t since, size_t limit,
    bool (*each)(void *context, const struct page_record *page, const char *url), void *context);
/* One page. NOT_FOUND where it never was. A page of a removed index has `removed` set. */
enum catalogue_status catalogue_view_page(struct catalogue_view *v, int64_t index_id,
                                          uint32_t number, struct page_record *out);
/* Sets bit S of `changed` for each segment S (0 to PAGE_SEGMENTS - 1) of the page whose revision
 * is > `since` (0: all that have a row). */
enum catalogue_status catalogue_view_segments_since(struct catalogue_view *v, int64_t index_id,
                                                    uint32_t number, uint64_t since,
                                                    uint64_t changed[PAGE_SEGMENT_BITS]);
/* Calls `each` for every entry with first <= position < first + count, in order. Strings are valid
 * for the call. The publisher's hot path: one clustered scan. A false from `each` ends it with
 * CATALOGUE_NO_MEMORY. */
enum catalogue_status
catalogue_view_positions(struct catalogue_view *v, int64_t index_id, uint32_t first, uint32_t count,
                         bool (*each)(void *context, uint32_t position, const char *loc,
                                      size_t loc_len, const char *lastmod),
                         void *context);

/* One entry. The caller frees `out` with entry_record_done. NOT_FOUND for stale or foreign ids. */
enum catalogue_status catalogue_view_entry_by_id(struct catalogue_view *v, const char *id,
                                                 struct entry_record *out);
enum catalogue_status catalogue_view_entry_by_loc(struct catalogue_view *v, int64_t site_id,
                                                  const char *loc, struct entry_record *out);

/* Lists entries: of one index by position, or of all by index id and position. `after` is the
 * cursor of an entry (catalogue_entry_cursor), NULL to begin: entries added or removed meanwhile
 * neither repeat nor hide others. `prefix` (NULL: any) filters by loc and is then ordered by loc.
 * Records are valid for the call. A false from `each` ends it (OK). CONFLICT: malformed cursor. */
struct entry_list {
    int64_t site_id;  /* 0: any */
    int64_t index_id; /* 0: any */
    const char *prefix;
    const char *source; /* NULL: any */
    const char *after;
    size_t limit; /* 0: all */
};
enum catalogue_status
catalogue_view_list(struct catalogue_view *v, const struct entry_list *list,
                    bool (*each)(void *context, const struct entry_record *record), void *context);
#define ENTRY_CURSOR_SIZE 4200
/* The cursor that continues behind `record` in a list with these filters (text, URL-safe). */
void catalogue_entry_cursor(const struct entry_list *list, const struct entry_record *record,
                            char out[ENTRY_CURSOR_SIZE]);

/* The files of a source, by path (bytes). A false from `each` ends it (OK). A name that is no
 * source has none. */
enum catalogue_status catalogue_view_source_files(struct catalogue_view *v, const char *source,
                                                  bool (*each)(void *context,
                                                               const struct source_file *file),
                                                  void *context);
/* The one file at this path; `*found` is false where there is none. Strings are valid until the
 * next call on this view. */
enum catalogue_status catalogue_view_source_file(struct catalogue_view *v, const char *source,
                                                 const char *path, struct source_file *out,
                                                 bool *found);
/* How a source stands; all zero for a name that is no source. */
enum catalogue_status catalogue_view_source_state(struct catalogue_view *v, const char *source,
                                                  struct source_state *out);

/* ---- watching -------------------------------------------------------------------------- */

enum catalogue_wait_result {
    CATALOGUE_WAIT_TIMEOUT,
    CATALOGUE_WAIT_CHANGED,  /* there may be a revision newer than the last view of the caller */
    CATALOGUE_WAIT_LOST,     /* the file is gone or was replaced; it is reopened when it is back */
    CATALOGUE_WAIT_REOPENED, /* it is back, maybe another file with another epoch */
};
/* Waits until the catalogue may have changed: an own commit at once, another process's within
 * CATALOGUE_POLL_MS. One thread (the publisher's) calls this. */
#define CATALOGUE_POLL_MS 100
enum catalogue_wait_result catalogue_wait(struct catalogue *c, uint32_t timeout_ms);
/* Ends a running or the next catalogue_wait at once (CHANGED). Thread safe. */
void catalogue_wake(struct catalogue *c);

/* ---- care ------------------------------------------------------------------------------ */

/* A consistent copy into a new file while others read and write. `progress` may be NULL. */
enum catalogue_status catalogue_backup(struct catalogue *c, const char *path,
                                       void (*progress)(void *context, uint64_t done,
                                                        uint64_t total),
                                       void *context, char *why, size_t why_size);
struct catalogue_restore_options {
    bool replace; /* the file at `path` may be there, and is replaced */
    /* Told each fault of the backup; a faulty one is not restored. */
    void (*problem)(void *context, const char *sentence);
    void *context;
};

/* Puts a backup, of this version or an earlier one, at `path`, whole or not at all. The backup is
 * copied, brought to this version and checked first. The new file has another epoch, so that
 * earlier cursors of changes are refused, and gives no id again. CONFLICT where a file is there,
 * BUSY where a process works on it, CORRUPT where the backup is. `why` (not empty) gets a
 * sentence. */
enum catalogue_status catalogue_restore(const char *backup, const char *path,
                                        const struct catalogue_restore_options *options, char *why,
                                        size_t why_size);
/* Checks the file's integrity and that counts, bytes, segments and pages agree with the entries.
 * Calls `problem` with a sentence for each finding. OK also with findings; `*count` tells. */
enum catalogue_status catalogue_check(struct catalogue *c,
                                      void (*problem)(void *context, const char *sentence),
                                      void *context, uint64_t *count);

struct catalogue_stats {
    uint64_t commits, batched_changes, queue_depth, max_queued, checkpoints;
    uint64_t revision;  /* of this handle's last commit; 0: none yet */
    uint64_t wal_bytes; /* of the log, not back in the file; as of this handle's last step */
    /* As of the last second or two; 0: unknown. Free is what this user may take. */
    uint64_t file_bytes, wal_file_bytes, disk_bytes, disk_free_bytes;
    uint64_t held; /* writes that the shrink guard refused, and scans of which it held removals */
    uint64_t failed[CATALOGUE_CANCELLED + 1]; /* writes not applied, by status; OK and REFUSED: 0 */
    /* By histogram_times: from the lock to the durable end, and of this the durable end alone. */
    struct histogram_values write_ns, commit_ns;
    struct histogram_values checkpoint_ns;
    struct histogram_values batch; /* changes that share one, by catalogue_batches */
    bool writable;                 /* the last commit or probe succeeded */
    char trouble[256];             /* why not, "" if writable */
};
extern const struct histogram_bounds catalogue_batches;
/* Counters for metrics and /readyz. Thread safe, never waits. */
void catalogue_stats_get(struct catalogue *c, struct catalogue_stats *out);

#endif
