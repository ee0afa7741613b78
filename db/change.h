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
    const char *const *index_paths; /* NULL-terminated: these are made where they are not there */
    const char *page_pattern;       /* of those that are made; NULL: the default */
    /* Managed: its hosts and its cap are these, and its robots.txt is not the catalogue's. Else
     * it is made where it is not there, and what it is like is not looked at. */
    bool managed;
    bool released; /* no configuration lists it any more: it stays, and is no longer managed */
    const char *const *cross_hosts, *const *alias_hosts; /* NULL-terminated */
    uint32_t max_pages;
    bool check;
};

/* A token as a configuration declares it. */
struct token_declaration {
    struct grant grant; /* but for its site_id */
    const char *site;   /* its origin, normalised; NULL: every site */
    uint8_t sha256[32];
    bool released; /* as of a site: it is revoked; of the grant only the name counts then */
};

/* What the kinds need apart from what all have: the members of a struct, as M(type, name), and
 * A(type, name, count) for a pointer to rows with their number. The structs, the union in struct
 * change and the copy that the queue takes (db/write/change.c) follow from these. */

#define SITE_SET_CROSS_HOSTS 1u
#define SITE_SET_ALIAS_HOSTS 2u
#define SITE_SET_MAX_PAGES   4u
#define SITE_SET_MANAGED     8u
#define SITE_SET_ROBOTS      16u
#define SITE_SET_FROZEN      32u
#define SITE_SET_CHECK       64u

/* An update may have, instead of a whole list of hosts, what is added to it and taken from it;
 * NULL: nothing. What is taken must be there. */
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
    M(bool, check)          /* what is registered is read where it is */                           \
    M(const char *, robots) /* its own robots.txt, see robots_fault; NULL: none */                 \
    M(bool, robots_off)     /* /robots.txt is left to others; then robots is NULL */

/* What a urlset is made with. Of each page max_page_urls and max_page_bytes; 0: the protocol's
 * limits, of news Google's. Where they are lowered, a page that has more keeps it, and gets no
 * more. expires_s 0: rows stay; of one with EXTENSION_NEWS two days where it is made with 0. It may
 * be given to a urlset that had none while that is empty. */
#define members_of_urlset_fields(M, A)                                                             \
    M(unsigned, set)       /* CHANGE_URLSET_UPDATE: URLSET_SET_… */                              \
    M(const char *, index) /* whose entries its pages are; NULL: the deepest with its URL */       \
    M(unsigned, with)      /* EXTENSION_…; it stays as it was made */

#define members_of_entry_remove(M, A)                                                              \
    M(const char *, id)  /* NULL: by loc */                                                        \
    M(const char *, loc) /* of any site; unique by site */

#define members_of_replace(M, A)                                                                   \
    M(const char *, source) /* only what this source owns; NULL: any */                            \
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
    M(const char *, file) /* that catalogue_site_copy_check found good */

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
    M(unsigned, set) /* SOURCE_SET_…: what of it counts */

#define members_of_source_remove(M, A) M(const char *, name)

/* A part of what is counted of crawlers: rows that replace those of the same key. Only the node's
 * own is written: a shared catalogue need not be reached for it. CRAWLERS_REPORT uses only the
 * first four: it sends the other nodes a bounded part of what is kept here and was not sent yet;
 * nothing is written if they have it all. .epoch is of the catalogue that they are of: in another
 * nothing is written. .node is the node that owns the rows, all rows of this file; NULL: the only
 * server's or, for imported logs, those of any node. */
#define members_of_crawlers(M, A)                                                                  \
    M(const char *, epoch)                                                                         \
    M(const char *, node)                                                                          \
    M(int64_t, since)           /* when counting began */                                          \
    M(int32_t, tidy_before_day) /* drops what is of pages that are gone, and days before; 0: no */ \
    A(struct crawler_page_kept, pages, page_count)                                                 \
    A(struct crawler_day_kept, days, day_count)                                                    \
    A(struct crawler_child_kept, children, child_count)                                            \
    M(int64_t, visits_taken) /* up to this id visits are in the ledger, and go; 0: none */         \
    A(struct crawler_visits, visits, visit_count) /* added to them */                              \
    A(struct crawler_log, log, log_count)         /* 1: the log that the visits are of */

/* Of the site `from` becomes `to`; where it is another now: CONFLICT. */
#define members_of_indexnow(M, A)                                                                  \
    M(int64_t, site_id)                                                                            \
    M(struct indexnow_position, from)                                                              \
    M(struct indexnow_position, to)

/* Rows that replace those of the same site and day. What is DAYS_KEPT older is removed with them; a
 * row with day -1 has the site's rows go, all of them. SITE_DAYS_WRITE_MAX at most. */
#define members_of_site_days(M, A) A(struct site_day, rows, count)

/* The outcome of a request for a site. */
#define members_of_engine(M, A)                                                                    \
    M(const char *, engine) /* "google" */                                                         \
    M(struct engine_site, site)                                                                    \
    M(bool, replaces) /* false: the sitemaps that are kept stay, and no day is written */          \
    A(struct engine_sitemap, sitemaps, count) /* of different locs, ENGINE_SITEMAPS_MAX at most */ \
    M(struct engine_day, day)                                                                      \
    M(struct engine_day, all) /* of all sites together; day 0: not known */                        \
    M(int64_t, gone)          /* a site of which all that is kept of the engine goes; 0: none */

/* The sites that are declared, and those that are released. A site that is neither stays as it is:
 * another node may have declared it since the submitter read the registry. The tokens likewise.
 * All or nothing, alone in its transaction; refused, result.refused_at is the declaration's place
 * and result.refused_index the path of an index that is to blame, or result.refused_token the
 * token's place. Where registry_is_declared nothing is written. */
#define members_of_configure(M, A)                                                                 \
    A(struct site_declaration, sites, site_count)                                                  \
    A(struct token_declaration, tokens, token_count)

#define members_of_check(M, A) A(struct check_write, writes, count) /* CHECK_WRITES_MAX at most */

/* .source is its name, .grant.site_id the one site that it may list in (0: any), .index_name the
 * index of its entries (NULL: by scope; one that is not there refuses the scan), .rows what differs
 * from what is kept, .dry_run, .max_removed. Applied in steps as a split where other writes wait,
 * else in one. A file whose loc another source owns, or that the rules refuse, becomes QUARANTINED
 * and is found refused by its row, without a detail where the reason is not news. Where the shrink
 * guard (rule as for a replace, over each index with all its entries) does not let the removals
 * through, they are held, all of them: the files that are gone stay as they are, all else is
 * applied, and result.would_remove is their number (status OK). A scan that changes no entry makes
 * no revision. What is frozen is left as it is, with the rows of its files: result.frozen. The
 * counts are of entries; unchanged ones are those of files that were sent. */
#define members_of_scan(M, A) M(int64_t, hosts) /* see struct source_state */

/* Of the urlset .index_name, what .source owns; of .rows those that are `gone` are removed, all
 * others are put. The guard checks all of it first, by these two: how many are added, how many
 * removed. It is applied in steps of SPLIT_STEP_ROWS at most, each a transaction and a revision of
 * its own, with other writes between them: one group in the history. A step that fails is the
 * result, and those before it stay: the next split continues the group. */
#define members_of_split(M, A)                                                                     \
    M(uint64_t, comes)                                                                             \
    M(uint64_t, goes)

/* The change of this revision; of a restore the index .index_name as after this revision. Rows that
 * somebody changed since are found refused (RULE_CHANGED_SINCE) and stay, unless they are to be
 * overwritten. Held to .max_removed. NOT_FOUND where the history does not reach that far. */
#define members_of_undo(M, A)                                                                      \
    M(uint64_t, revision)                                                                          \
    M(bool, overwrite)

/* Each kind, with its member of struct change, which is that of an earlier kind (AS) or of none (N)
 * where it has no struct of its own, and its word in the history, if it has one there. */
#define CHANGE_KINDS(K, AS, N)                                                                     \
    AS(ENTRY_PUT, entry, "registration")     /* register or update one entry */                    \
    K(ENTRY_REMOVE, entry_remove, "removal") /* of a page URL by loc with .index_name */           \
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
    K(TOKEN_USED, token_used) /* somebody asked with it; the node's own, no revision */            \
    K(SOURCE_ADD, source_put, "source-add")                                                        \
    AS(SOURCE_UPDATE, source_put, "source-update")                                                 \
    K(SOURCE_REMOVE, source_remove,                                                                \
      "source-remove")            /* it is not read any more; its entries stay */                  \
    K(CRAWLERS, crawlers)         /* the node's own, no revision */                                \
    AS(CRAWLERS_REPORT, crawlers) /* to the other nodes, no revision */                            \
    K(INDEXNOW, indexnow)         /* how far IndexNow was notified; no revision */                 \
    K(SITE_DAYS, site_days)       /* sums of a day; the node's own, no revision */                 \
    K(ENGINE, engine)             /* what a search engine said; the node's own, no revision */     \
    K(CONFIGURE, configure, "configure") /* what a configuration declares */                       \
    K(CHECK, check, "check") /* results of polls; a revision only where a date moved */            \
    K(SCAN, scan, "scan")    /* what a directory source found */                                   \
    K(SPLIT, split,                                                                                \
      "split") /* what differs in a urlset from the file that is split into it: .rows */           \
    K(UNDO, undo, "undo")        /* undo one change */                                             \
    AS(RESTORE, undo, "restore") /* an index as it was */                                          \
    N(EXPIRE, "expiry") /* internal: page URLs that are older than their urlset keeps, a batch */  \
    N(PURGE)            /* internal: rows of removed indexes, one small batch */

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

/* Makes what is kept of a change that was applied, once for each: `out` is then what a repeat gets
 * as result.outcome; left empty: nothing is kept. On the writer's thread, before the change is
 * durable, so that it may yet fail; it must be quick. False: no memory. */
struct change_result;
typedef bool change_outcome(void *context, struct change_result *result,
                            const struct registry *registry, struct str *out);
#define OUTCOME_MAX_BYTES 16384u

#define SPLIT_STEP_ROWS 500000u

#define MAX_REMOVED_GUARDED (-1) /* the shrink guard decides */

/* One write. What submits it copies it with all it points to, and takes its rows over: nothing is
 * borrowed once it is submitted. (A new pointer of what all kinds have has its row in
 * db/write/change.c.) What the kind does not name is zero. */
struct change {
    enum change_kind kind;
    const char *source; /* owner of new entries: a token's or source's name */
    /* What the caller may touch: what is outside of it is REFUSED with RULE_SITE_UNKNOWN (another
     * site) or RULE_OUTSIDE_TOKEN, and `forbidden` set. Zero: everything. */
    struct grant grant;
    /* The caller: authorised inside the transaction, so that nothing is applied after a revocation.
     * A token of the same name is another one: while the catalogue has no token of this id, hash
     * and grant, or it has expired, the change is CONFLICT with `revoked` set. 0: no caller to
     * authorise. */
    int64_t bearer_id;
    const uint8_t *bearer_sha256; /* 32 bytes */
    bool override_managed;        /* the configuration itself is writing */
    bool pass_frozen;             /* what is frozen is changed all the same, where the caller may
                                     thaw it: undo, restore */
    /* For the history: who (a token's or user's name; NULL: `source`), by which interface (static:
     * "api", "cli", "source", "config"; NULL: follows from kind and handle), and for which request.
     */
    const char *by;
    const char *via;
    const char *request_id;
    const char *note; /* what the caller says of itself; NULL: nothing */
    /* A name that the caller (.bearer_id) gave to the request, NULL: none. Under it the result
     * is kept for a day, with the change itself: a second change of that name and .key_sha256 is
     * not applied but `repeated`, one of another hash is REFUSED with `key_reused`. What is refused
     * or dry leaves nothing. */
    const char *key;
    const uint8_t
        *key_sha256; /* 32 bytes: of all that was asked; NULL: it failed, and so does the change */
    change_outcome *outcome; /* with `context` below */
    void *context;           /* for `done` */
    /* What the lists are that the change names by .index_name, by id or in its rows, and so what
     * its rows are: entries, or page URLs (LIST_URLSET), which need their urlset named. */
    enum list_kind list;
    const char *index_name; /* URL or path of the list that a list is for: of a replace the one that
                               is replaced (what the entries name does not count), of a bulk the
                               default; of a scan, a split and a restore */
    const char *if_match;   /* entry etag (catalogue_entry_etag) or "*", else NULL; bulk with
                               .index_name, replace: tag of that index's state */
    struct spool *rows;     /* bulk, replace, split: entries; scan: files; NULL: none */
    bool skip;              /* bulk, replace: apply the good ones */
    int64_t max_removed;    /* of what removes: MAX_REMOVED_GUARDED, or how many may go */
    bool dry_run;           /* all but single entries and tokens: check and count, write nothing */
    bool wants_preview;     /* a dry run: and fill result.preview */
    uint32_t max_findings; /* bulk, replace, scan: findings that the result is to keep, see there */
    _Atomic uint64_t *rows_done; /* bulk, replace: written now and then until `done`; NULL: not */
    union {
        struct entry entry;
        CHANGE_KINDS(CHANGE_STRUCT_MEMBER, CHANGE_NOTHING, CHANGE_NOTHING)
    };
};

/* The name of the token or source that the change makes, changes or removes; NULL: it is about
 * neither. */
const char *change_subject(const struct change *change);

/* What a dry run would do to one entry; a `loc` of NULL: it is not there. */
struct change_row {
    struct entry_record before, after; /* owned */
};
#define CHANGE_PREVIEW_ROWS  1000u
#define CHANGE_PREVIEW_BYTES (4u << 20) /* of extensions; fewer rows then */
/* Frees what it owns and makes it empty. */
void change_row_done(struct change_row *row);

/* What splits did to page URLs, and of how many files. */
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
    bool repeated;            /* OK, and nothing was done: an earlier change of .key was applied */
    bool managed;             /* CONFLICT because the configuration manages it */
    const char *conflict;     /* CONFLICT of an undo: a stable word, static; else NULL */
    const char *field;        /* the field to blame or NULL; static */
    char detail[256];         /* a sentence for people, "" if none */
    uint64_t created, updated, unchanged, removed, rejected;
    uint64_t moved;           /* of those updated: they left another index for this one */
    uint64_t would_remove;    /* shrink guard: how many would have gone */
    uint64_t frozen;          /* scan: files held back because their index is frozen */
    uint64_t spared;          /* replace of one source, no prefix: entries of the index that
                                 others own, which it left alone */
    struct split_sums splits; /* of a scan, and reported by it: the files that it split */
    uint64_t revision;        /* the catalogue's after it: its own where it wrote something, else
                                 that of the last change before it that did */
    bool changed;             /* something was written (a revision was made) */
    bool more;                /* the writer's: another step is to come */
    bool undecided;           /* the writer's: it was stopped, and is to be tried again elsewhere */
    uint64_t step_at;         /* the writer's: of an undo the step that it is at */
    void *steps;              /* the writer's: what a change keeps from step to step; owned */
    void (*steps_free)(void *steps);
    uint64_t group;            /* of a change in steps: the revision of the first; 0: it had one */
    rule_set remarks;          /* single entry: its warnings; list: its sites' */
    struct entry_record entry; /* ENTRY_PUT: as stored now; ENTRY_REMOVE: as it was;
                                  loc NULL otherwise */
    int64_t id;                /* of the site, index or token made */
    int64_t site_id; /* the one site that it touched, by the history; 0: none, or several */
    char index_state[INDEX_STATE_SIZE]; /* bulk with .index_name, replace: of that index, as it is
                                           now; "": none was named */
    size_t refused_at;                  /* configure */
    /* Configure: of which of its index_paths, from 1; 0: the site. */
    size_t refused_index;
    /* Of single rows: what a bulk, replace or scan refuses, and what it remarks on what it takes,
     * by what was stored. Up to max_findings, and the first few of each code; 0: they are counted
     * only. Owned. */
    struct findings findings;
    size_t refused_token; /* configure: which of its tokens, from 1; 0: none is to blame */
    /* A dry run: of the entries that it would make, change or remove, as created, updated and
     * removed count them, the first CHANGE_PREVIEW_ROWS, or CHANGE_PREVIEW_BYTES. Owned. */
    struct change_row *preview;
    size_t preview_count, preview_bytes;
    struct str outcome; /* repeated: what was kept; owned */
    struct spool *rows; /* the change's, for who wants them back; owned */
};

/* Frees what it owns; its numbers stay. */
void change_result_done(struct change_result *result);

/* Queues a write; `done` is called exactly once, on a thread of the catalogue's (or on the caller's
 * before this returns, where it cannot be queued), after the commit is durable or the refusal
 * final. Take the result over by copying the struct and zeroing `*result`; what is left there is
 * freed when `done` returns. `done` must not block and must not submit and wait. A
 * bulk, replace or scan is its own transaction; other writes share one (group commit). BUSY,
 * NO_SPACE, UNAVAILABLE… mean: not applied, nothing of it. Thread safe. */
typedef void change_done(void *context, struct change_result *result);
void catalogue_submit(struct catalogue *c, const struct change *change, change_done *done);

/* The same and waits. Fills `*result`, which the caller ends with change_result_done. Not from a
 * callback of this module. Thread safe. */
enum catalogue_status catalogue_apply(struct catalogue *c, const struct change *change,
                                      struct change_result *result);
/* The same, and periodically calls `progress` with the rows done so far, on this thread. */
enum catalogue_status
catalogue_apply_with_progress(struct catalogue *c, const struct change *change,
                              void (*progress)(void *context, uint64_t rows_done), void *context,
                              struct change_result *result);
