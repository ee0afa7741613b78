/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Writes: what may be changed, its result, and the queue to the one writer. Part of
 * db/catalogue.h, whose rules hold: a write is submitted and answered later. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/check.h"
#include "db/crawler.h"
#include "db/day.h"
#include "db/engine.h"
#include "db/entry.h"
#include "db/indexnow.h"
#include "db/source.h"
#include "db/spool.h"
#include "db/status.h"
#include "db/urlset.h"
#include "server/base/str.h"
#include "server/rules/entry.h"
#include "server/rules/findings.h"
#include "server/rules/grant.h"

struct catalogue;
struct registry;

/* A site as a configuration declares it. */
struct site_declaration {
    const char *origin;
    const char *const *index_paths; /* NULL-terminated; missing indexes are created */
    const char *page_pattern;       /* of the indexes that are created; NULL: the default */
    /* True: the site gets these hosts and this page limit, and its robots.txt is the
     * configuration's. False: the site is created if it does not exist; an existing one stays as it
     * is. */
    bool managed;
    bool released; /* the site has left the configuration: it stays, no longer managed */
    const char *const *cross_hosts, *const *alias_hosts; /* NULL-terminated */
    uint32_t max_pages;
    bool check;
};

/* A token as a configuration declares it. */
struct token_declaration {
    struct grant grant; /* except site_id, which `site` gives */
    const char *site;   /* its origin, normalised; NULL: every site */
    uint8_t sha256[32];
    bool
        released; /* the token has left the configuration: it is revoked; only grant.name is read */
};

/* The members that only one kind of change has: M(type, name), and A(type, name, count) for a
 * pointer to rows with their number. They generate the structs, the union in struct change and the
 * copy in the queue (db/write/change.c). */

#define SITE_SET_CROSS_HOSTS 1u
#define SITE_SET_ALIAS_HOSTS 2u
#define SITE_SET_MAX_PAGES   4u
#define SITE_SET_MANAGED     8u
#define SITE_SET_ROBOTS      16u
#define SITE_SET_FROZEN      32u
#define SITE_SET_CHECK       64u

/* An update may, instead of replacing a list of hosts, add (…_added) and remove (…_removed) some;
 * NULL: none. A host that is removed must be in the list. */
#define members_of_site_fields(M, A)                                                               \
    M(unsigned, set)                    /* SITE_SET_… */                                         \
    M(const char *const *, cross_hosts) /* NULL-terminated */                                      \
    M(const char *const *, alias_hosts) /* NULL-terminated */                                      \
    M(const char *const *, cross_added)                                                            \
    M(const char *const *, cross_removed)                                                          \
    M(const char *const *, alias_added)                                                            \
    M(const char *const *, alias_removed)                                                          \
    M(uint32_t, max_pages)                                                                         \
    M(bool, managed)                                                                               \
    M(bool, frozen)                                                                                \
    M(bool, leaves)         /* with `frozen`: the site moves to another catalogue */               \
    M(bool, check)          /* registered sitemaps are fetched and checked */                      \
    M(const char *, robots) /* its own robots.txt, see robots_fault; NULL: none */                 \
    M(bool, robots_off)     /* /robots.txt is left to others; then robots is NULL */

/* The fields of a urlset. max_page_urls and max_page_bytes limit each page; 0: the protocol's
 * limits, or Google's for news. If they are lowered, a page over the limit stays and gets no more
 * rows. expires_s: age at which rows are removed; 0: never, or two days if the urlset is created
 * with EXTENSION_NEWS. A urlset without expires_s can get it only while it is empty. */
#define members_of_urlset_fields(M, A)                                                             \
    M(unsigned, set)       /* CHANGE_URLSET_UPDATE: URLSET_SET_… */                              \
    M(const char *, index) /* whose entries its pages are; NULL: the deepest with its URL */       \
    M(unsigned, with)      /* EXTENSION_…; cannot be changed later */

#define members_of_entry_remove(M, A)                                                              \
    M(const char *, id)  /* NULL: by loc */                                                        \
    M(const char *, loc) /* of any site; unique by site */

#define members_of_replace(M, A)                                                                   \
    M(const char *, source) /* only entries that this source owns; NULL: all */                    \
    M(const char *, prefix) /* only locs that begin with this; NULL: any */

#define members_of_site_add(M, A)                                                                  \
    M(const char *, origin)    /* normalised here */                                               \
    M(const char *, index_url) /* of an index that is made with it; NULL: none */                  \
    M(struct site_fields, fields)

#define members_of_site_update(M, A)                                                               \
    M(int64_t, site_id)                                                                            \
    M(struct site_fields, fields)

#define members_of_site_remove(M, A) M(int64_t, site_id)

#define members_of_site_import(M, A)                                                               \
    M(const char *, file) /* a copy that catalogue_site_copy_check accepted */

#define members_of_index_add(M, A)                                                                 \
    M(const char *, url)                                                                           \
    M(const char *, page_pattern) /* NULL: the default */

#define members_of_index_remove(M, A) M(int64_t, index_id)

#define members_of_index_freeze(M, A)                                                              \
    M(int64_t, index_id)                                                                           \
    M(bool, frozen)

/* result.id is the urlset's. */
#define members_of_urlset_add(M, A)                                                                \
    M(const char *, url)                                                                           \
    M(const char *, page_pattern)                                                                  \
    M(struct urlset_fields, fields)

#define members_of_urlset_update(M, A)                                                             \
    M(int64_t, index_id)                                                                           \
    M(struct urlset_fields, fields)

#define members_of_token_add(M, A)                                                                 \
    M(struct grant, grant) /* of the token that is made; its name and role are needed */           \
    M(const uint8_t *, sha256)

#define members_of_token_revoke(M, A) M(const char *, name)

#define members_of_token_used(M, A) M(int64_t, token_id)

#define members_of_source_put(M, A)                                                                \
    M(struct source_settings,                                                                      \
      made)          /* site_id: of an upstream that is added, 0: by index or URL */               \
    M(unsigned, set) /* SOURCE_SET_…: which members of `made` are set */

#define members_of_source_remove(M, A)                                                             \
    M(const char *, name)                                                                          \
    M(const char *, successor) /* of a configuration: gets all that it has; NULL: none */

/* Counts of crawlers: each row replaces the row with the same key. They are the node's own, and are
 * written even while a shared catalogue's PostgreSQL is out of reach. CRAWLERS_REPORT uses only the
 * first four members: it sends the other nodes a bounded number of stored rows that were not sent
 * yet, and writes nothing if none exist. .epoch is the epoch of the counts: nothing is written
 * into a catalogue of another epoch. .node is the node that owns all rows of this file; NULL: the
 * only server, or, for imported logs, any node. */
#define members_of_crawlers(M, A)                                                                  \
    M(const char *, epoch)                                                                         \
    M(const char *, node)                                                                          \
    M(int64_t, since)           /* when counting began */                                          \
    M(int32_t, tidy_before_day) /* also drops removed pages, and days before this; 0: does not */  \
    A(struct crawler_page_kept, pages, page_count)                                                 \
    A(struct crawler_day_kept, days, day_count)                                                    \
    A(struct crawler_child_kept, children, child_count)                                            \
    M(int64_t, visits_taken) /* visits up to this id are in the ledger: removed; 0: none */        \
    A(struct crawler_visits, visits, visit_count) /* added to them */                              \
    A(struct crawler_log, log, log_count)         /* 1: the log that the visits are of */

/* Moves the site's position from `from` to `to`. CONFLICT: another change has moved it. */
#define members_of_indexnow(M, A)                                                                  \
    M(int64_t, site_id)                                                                            \
    M(struct indexnow_position, from)                                                              \
    M(struct indexnow_position, to)

/* Each row replaces the row of the same site and day, and removes the site's rows that are
 * DAYS_KEPT days older; a row with day -1 removes all rows of the site. SITE_DAYS_WRITE_MAX at
 * most. */
#define members_of_site_days(M, A) A(struct site_day, rows, count)

/* The outcome of a request to a search engine about a site. */
#define members_of_engine(M, A)                                                                    \
    M(const char *, engine) /* "google" */                                                         \
    M(struct engine_site, site)                                                                    \
    M(bool, replaces) /* false: the stored sitemaps stay, and no day is written */                 \
    A(struct engine_sitemap, sitemaps, count) /* of different locs, ENGINE_SITEMAPS_MAX at most */ \
    M(struct engine_day, day)                                                                      \
    M(struct engine_day, all) /* of all sites together; day 0: not known */                        \
    M(int64_t, gone)          /* a site whose rows of this engine are all removed; 0: none */

/* The sites and tokens that are declared, and those that are released. All others stay as they are:
 * another node may have declared them since the submitter read the registry. All or nothing, alone
 * in its transaction. If it is rejected, result.refused_at is the number of the site to blame and
 * result.refused_index that of its path, or result.refused_token is the number of the token. If
 * registry_is_declared, nothing is written. */
#define members_of_configure(M, A)                                                                 \
    A(struct site_declaration, sites, site_count)                                                  \
    A(struct token_declaration, tokens, token_count)

#define members_of_check(M, A) A(struct check_write, writes, count) /* CHECK_WRITES_MAX at most */

/* .source is the source's name, .grant.site_id the one site that it may list in (0: any),
 * .index_name the index of its entries (NULL: by scope; an unknown one rejects the scan), .rows the
 * files that differ from the stored ones. Also uses .dry_run and .max_removed. If other writes
 * wait, the scan is applied in steps, like a split.
 *
 * A file whose loc another source owns, or that the rules reject, becomes QUARANTINED and a finding
 * of its row, without a detail if the reason was known before. If the shrink guard (as for a
 * replace, over all entries of each index) stops the removals, all of them are held back: the
 * removed files keep their state, all else is applied, and result.would_remove is their number
 * (status OK). A scan that changes no entry makes no revision. Entries of frozen lists and the rows
 * of their files stay, and are counted in result.frozen. The counts are of entries; only files that
 * were sent count as unchanged. */
#define members_of_scan(M, A) M(int64_t, hosts) /* see struct source_state */

/* Changes the page URLs that .source owns in the urlset .index_name: .rows that are `gone` are
 * removed, all others are added or updated. The shrink guard first checks the whole split by
 * `comes` and `goes`: how many rows are added, how many removed. The split is applied in steps of
 * SPLIT_STEP_ROWS at most, each a transaction and a revision of its own, with other writes between
 * them; the steps are one group in the history. If a step fails, its error is the result and the
 * steps before it stay; the next split continues the group. */
#define members_of_split(M, A)                                                                     \
    M(uint64_t, comes)                                                                             \
    M(uint64_t, goes)

/* Undoes the change of this revision, or restores the index .index_name to its state after this
 * revision. Rows that were changed since stay, with the finding RULE_CHANGED_SINCE, unless
 * `overwrite`. .max_removed bounds the removals. NOT_FOUND: the history does not reach that far. */
#define members_of_undo(M, A)                                                                      \
    M(uint64_t, revision)                                                                          \
    M(bool, overwrite)

/* Each kind, its member of struct change, and its word in the history (if it is recorded there). K
 * has a struct of its own, AS uses the struct of an earlier kind, N has none. */
#define CHANGE_KINDS(K, AS, N)                                                                     \
    AS(ENTRY_PUT, entry, "registration")     /* register or update one entry */                    \
    K(ENTRY_REMOVE, entry_remove, "removal") /* by loc, of a page URL with .index_name */          \
    N(BULK, "list")                          /* upsert a list: .rows, .source, .skip */            \
    K(REPLACE, replace, "replace")           /* make an index, or part of it, exactly a list */    \
    K(SITE_ADD, site_add, "site-add")                                                              \
    K(SITE_UPDATE, site_update, "site-update")                                                     \
    K(SITE_REMOVE, site_remove, "site-remove")                                                     \
    K(SITE_IMPORT, site_import, "site-import") /* result.id is the site's */                       \
    K(INDEX_ADD, index_add, "index-add")                                                           \
    K(INDEX_REMOVE, index_remove, "index-remove") /* of a urlset with .list */                     \
    K(INDEX_FREEZE, index_freeze, "index-freeze") /* of a urlset with .list */                     \
    K(URLSET_ADD, urlset_add, "urlset-add")                                                        \
    K(URLSET_UPDATE, urlset_update, "urlset-update") /* alone, .dry_run */                         \
    K(TOKEN_ADD, token_add, "token-add")                                                           \
    K(TOKEN_REVOKE, token_revoke, "token-revoke")                                                  \
    K(TOKEN_USED, token_used) /* a request used it; the node's own, no revision */                 \
    K(SOURCE_ADD, source_put, "source-add")                                                        \
    AS(SOURCE_UPDATE, source_put, "source-update")                                                 \
    K(SOURCE_REMOVE, source_remove,                                                                \
      "source-remove")            /* the source is no longer read; its entries stay */             \
    K(CRAWLERS, crawlers)         /* the node's own, no revision */                                \
    AS(CRAWLERS_REPORT, crawlers) /* to the other nodes, no revision */                            \
    K(INDEXNOW, indexnow)         /* how far IndexNow was notified; no revision */                 \
    K(SITE_DAYS, site_days)       /* sums of a day; the node's own, no revision */                 \
    K(ENGINE, engine)             /* a search engine's report; the node's own, no revision */      \
    K(CONFIGURE, configure, "configure") /* sites and tokens of a configuration */                 \
    K(CHECK, check, "check")             /* results of polls; a revision only if a date moved */   \
    K(SCAN, scan, "scan") /* the result of a scan of a folder or an upstream index */              \
    K(SPLIT, split,                                                                                \
      "split") /* the rows in which a urlset differs from the file that is split into it */        \
    K(UNDO, undo, "undo")        /* undo one change */                                             \
    AS(RESTORE, undo, "restore") /* an index as it was */                                          \
    N(EXPIRE, "expiry")          /* internal: removes a batch of expired page URLs */              \
    N(PURGE)                     /* internal: removes a small batch of rows of removed indexes */

#define CHANGE_MEMBER(type, name) type name;
#define CHANGE_ROWS(type, name, count)                                                             \
    const type *name;                                                                              \
    size_t count;
#define CHANGE_STRUCT(kind, name, ...)                                                             \
    struct change_##name {                                                                         \
        members_of_##name(CHANGE_MEMBER, CHANGE_ROWS)                                              \
    };
#define CHANGE_STRUCT_MEMBER(kind, name, ...) struct change_##name name;
#define CHANGE_KIND(kind, ...)                CHANGE_##kind,
#define CHANGE_NOTHING(...)

enum change_kind { CHANGE_KINDS(CHANGE_KIND, CHANGE_KIND, CHANGE_KIND) };
struct site_fields {
    members_of_site_fields(CHANGE_MEMBER, CHANGE_ROWS)
};
struct urlset_fields {
    members_of_urlset_fields(CHANGE_MEMBER, CHANGE_ROWS) URLSET_SETTINGS(URLSET_MEMBER)
};
CHANGE_KINDS(CHANGE_STRUCT, CHANGE_NOTHING, CHANGE_NOTHING)

/* Writes to `out` the result.outcome that a repeat of the change will get; empty: nothing is kept.
 * Called once for each applied change, on the writer's thread, before the COMMIT (which may still
 * fail); it must be quick. False: out of memory. */
struct change_result;
typedef bool change_outcome(void *context, struct change_result *result,
                            const struct registry *registry, struct str *out);
#define OUTCOME_MAX_BYTES 16384u

#define SPLIT_STEP_ROWS 500000u

#define MAX_REMOVED_GUARDED (-1) /* the shrink guard decides */

/* One write. catalogue_submit copies it with all that it points to, and takes over its rows:
 * nothing is borrowed afterwards. (A new pointer in this struct needs a row in db/write/change.c.)
 * Members that the kind does not use are zero. */
struct change {
    enum change_kind kind;
    const char *source; /* owner of new entries: a token's or source's name */
    /* The caller's rights. A change beyond them is REFUSED with RULE_SITE_UNKNOWN (another site) or
     * RULE_OUTSIDE_TOKEN, and result.forbidden is set. Zero: all rights. */
    struct grant grant;
    /* The caller's token, checked inside the transaction, so that nothing is applied after it was
     * revoked. If the catalogue has no token with this id, hash and grant, or it has expired, the
     * change is CONFLICT with result.revoked set; a new token of the same name does not count. 0:
     * there is no token to check. */
    int64_t bearer_id;
    const uint8_t *bearer_sha256; /* 32 bytes */
    bool override_managed;        /* the configuration itself makes the change */
    bool pass_frozen; /* undo, restore: also change frozen lists that the caller may thaw */
    /* For the history: who (a token's or user's name; NULL: `source`), by which interface (static:
     * "api", "cli", "source", "config"; NULL: follows from kind and handle), and for which request.
     */
    const char *by;
    const char *via;
    const char *request_id;
    const char *note; /* the caller's own note, for the history; NULL: none */
    /* The Idempotency-Key of the caller (.bearer_id); NULL: none. The change's transaction stores
     * the result under the key for a day. A second change with the same key and .key_sha256 is not
     * applied (result.repeated); one with another hash is REFUSED (result.key_reused). A rejected
     * change or dry run stores nothing. */
    const char *key;
    const uint8_t *key_sha256; /* 32 bytes: hash of the request; NULL: hashing failed, and the
                                  change fails, too */
    change_outcome *outcome;   /* with `context` below */
    void *context;             /* for `done` */
    /* The kind of the lists that the change names by .index_name, by id or in its rows: indexes,
     * whose rows are entries, or urlsets (LIST_URLSET), whose rows are page URLs. A urlset must be
     * named. */
    enum list_kind list;
    const char *index_name; /* URL or path of a list. Replace: the index to replace, whatever the
                               entries name; bulk: the default; also of scan, split, restore */
    const char *if_match;   /* an entry's etag (catalogue_entry_etag) or "*"; bulk with .index_name,
                               replace: the tag of the index's state; NULL: no condition */
    struct spool *rows;     /* bulk, replace, split: entries; scan: files; NULL: none */
    bool skip;              /* bulk, replace: skip invalid rows and apply the others */
    int64_t max_removed;    /* how many rows may be removed, or MAX_REMOVED_GUARDED */
    bool dry_run;           /* all but single entries and tokens: check and count, write nothing */
    bool wants_preview;     /* of a dry run: fill result.preview */
    uint32_t max_findings;  /* bulk, replace, scan: most findings in result.findings */
    _Atomic uint64_t *rows_done; /* bulk, replace: progress, updated until `done`; NULL: none */
    union {
        struct entry entry;
        CHANGE_KINDS(CHANGE_STRUCT_MEMBER, CHANGE_NOTHING, CHANGE_NOTHING)
    };
};

/* The name of the token or source that the change creates, changes or removes; NULL: none. */
const char *change_subject(const struct change *change);

/* The effect of a dry run on one entry; `loc` is NULL if the entry does not exist before or after.
 */
struct change_row {
    struct entry_record before, after; /* owned */
};
#define CHANGE_PREVIEW_ROWS  1000u
#define CHANGE_PREVIEW_BYTES (4u << 20) /* of extensions: with large ones there are fewer rows */
/* Frees what it owns and makes it empty. */
void change_row_done(struct change_row *row);

/* How many page URLs splits changed, and the number of files. */
struct split_sums {
    uint64_t files, created, updated, removed;
};

struct change_result {
    enum catalogue_status status;
    enum rule_code code;      /* RULE_OK unless status is REFUSED */
    bool forbidden;           /* refused because of `grant` */
    bool precondition_failed; /* CONFLICT because of if_match */
    bool revoked;             /* CONFLICT because the token of bearer_id is gone or expired */
    bool key_reused;          /* REFUSED because .key belongs to another request */
    bool repeated;        /* OK, and nothing was done: an earlier change with .key was applied */
    bool managed;         /* CONFLICT because the configuration manages it */
    const char *conflict; /* an undo that is CONFLICT: a stable word, static; else NULL */
    const char *field;    /* the invalid field or NULL; static */
    char detail[256];     /* a sentence for people, "" if none */
    uint64_t created, updated, unchanged, removed, rejected;
    uint64_t moved;           /* entries among `updated` that came from another index */
    uint64_t would_remove;    /* shrink guard: number of removals that it stopped */
    uint64_t frozen;          /* scan: files left alone because their index is frozen */
    uint64_t spared;          /* replace of one source without a prefix: entries of the index that
                                 belong to other sources and were kept */
    struct split_sums splits; /* scan: the files that it split */
    uint64_t revision; /* of the catalogue after the change: a new one if it wrote something */
    bool changed;      /* something was written (a revision was made) */
    bool more;         /* the writer's: another step follows */
    bool undecided;    /* the writer's: the change was stopped, for rehearsal.c to try again */
    uint64_t step_at;  /* the writer's: the current step of an undo */
    void *steps;       /* the writer's: the state of a change between its steps; owned */
    void (*steps_free)(void *steps);
    uint64_t group;   /* of a change in steps: the first step's revision; 0: no steps */
    rule_set remarks; /* a single entry: on the entry; a list: on its sites */
    struct entry_record
        entry;       /* ENTRY_PUT: as stored now; ENTRY_REMOVE: as it was; else its loc is NULL */
    int64_t id;      /* of the site, list or token that was created */
    int64_t site_id; /* the site that was changed, as in the history; 0: none, or several */
    char index_state[INDEX_STATE_SIZE]; /* bulk with .index_name, replace: the index's state now;
                                           "": no index was named */
    size_t refused_at;                  /* configure: number of the site declaration to blame */
    /* Configure: number of its index path, from 1; 0: the site itself. */
    size_t refused_index;
    /* Bulk, replace, scan: rejected rows, and remarks on accepted ones in their stored form. Up to
     * max_findings, and the first few of each code; 0: they are only counted. Owned. */
    struct findings findings;
    size_t refused_token; /* configure: number of the token to blame, from 1; 0: none */
    /* Dry run: the first of the entries that it would create, update or remove: at most
     * CHANGE_PREVIEW_ROWS and CHANGE_PREVIEW_BYTES. Owned. */
    struct change_row *preview;
    size_t preview_count, preview_bytes;
    struct str outcome; /* repeated: the stored outcome; owned */
    struct spool *rows; /* the rows of the change, for a caller that needs them again; owned */
};

/* Frees what the result owns; its numbers stay. */
void change_result_done(struct change_result *result);

/* Queues a write. `done` is called exactly once, after the commit is durable or the rejection
 * final, on a thread of the catalogue (or on the caller's before this returns, if the write cannot
 * be queued). `done` takes the result over by copying the struct and zeroing `*result`; otherwise
 * the result is freed when `done` returns. `done` must not block, nor submit a write and wait for
 * it. A bulk, replace or scan is its own transaction; other writes share one (group commit). After
 * BUSY, NO_SPACE, UNAVAILABLE… nothing was applied. Thread safe. */
typedef void change_done(void *context, struct change_result *result);
void catalogue_submit(struct catalogue *c, const struct change *change, change_done *done);

/* Submits a write and waits for its result, which the caller ends with change_result_done. Not from
 * a callback of this module. Thread safe. */
enum catalogue_status catalogue_apply(struct catalogue *c, const struct change *change,
                                      struct change_result *result);
/* The same. Periodically calls `progress` with the number of rows done, on this thread. */
enum catalogue_status
catalogue_apply_with_progress(struct catalogue *c, const struct change *change,
                              void (*progress)(void *context, uint64_t rows_done), void *context,
                              struct change_result *result);
