/* What commands work on: a catalogue file, or a server through its API (--server). One set of
 * commands, two backends: backend_file.c stands on db/, backend_server.c on the client. Both answer
 * in the words of db/: a change, the result, the registry. What goes wrong on a read is reported
 * here, once. One thread at a time. Internal to server/cli/. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "server/base/str.h"
#include "server/cli/backend/session.h"
#include "server/rules/entry.h"

struct backend;
struct json_t;

/* What a page holds. */
struct backend_page {
    uint64_t entries, bytes;
    int64_t changed_at; /* 0: never */
    bool untold;        /* entries and bytes are not for a token of a part of it to know */
};

/* A token, told without its secret; strings are valid for the call. */
struct backend_token {
    const char *name;
    const char *site;          /* the origin that it is good for; NULL: see all_sites */
    bool all_sites;            /* else, where `site` is NULL, of one that was removed */
    const char *prefix, *role; /* prefix NULL: every loc */
    const char *created_at;    /* RFC 3339, as those that follow; NULL: never */
    const char *expires_at, *last_used_at;
    bool own, managed;
};
typedef void backend_token_each(void *context, const struct backend_token *token);

/* A source as it is set up; strings are valid for the call. */
struct backend_source_made {
    const char *name, *site, *upstream, *directory, *url, *index; /* but for the name: or NULL */
    bool managed;                                                 /* the configuration's */
    /* Of a file: it was read into the catalogue, and neither that nor the configuration declares
     * it; then only whether it is `remote` is known. */
    bool undeclared, remote;
};
typedef void backend_source_each(void *context, const struct backend_source_made *source);

/* How the registry is wanted. */
#define REGISTRY_ROBOTS 1u /* with the text of each site's robots.txt */
#define REGISTRY_HELD   2u /* what is read next is of the same state, until a change is applied */

/* Told each entry of a list; strings are valid for the call. False ends it. */
typedef bool backend_entry(void *context, const struct entry_shown *entry);

struct backend_list {
    const struct registry_index *index; /* NULL: all */
    const char *prefix;                 /* NULL: any */
    struct entry_filter filter;
};

/* Told each change of the history; strings are valid for the call. */
typedef void backend_change(void *context, const struct history_change *change);
/* Told what a change did to an entry; NULL: it was not there. Valid for the call. False ends it. */
typedef bool backend_row(void *context, const struct entry_shown *before,
                         const struct entry_shown *after);

/* How far the history goes, and how far it was read. */
struct backend_reach {
    uint64_t from; /* the first revision that it has */
    bool more;     /* the limit ended it */
};

struct backend_diff {
    const struct registry_index *index;
    uint64_t from, to; /* to 0: the newest */
};

/* A source at a glance. */
struct backend_source {
    const char *name;
    int64_t good_at; /* of its last good scan; 0: none yet */
    bool of_list;    /* its files are the sitemaps that its upstream's list names */
    uint64_t files, listed, quarantined, held, remarked;
    uint64_t bad;        /* of a list: sitemaps that crawlers cannot use, or may not be able to */
    const char *failure; /* NULL: none */
};

/* A source behind a scan: so many of its files, or of the sitemaps that its list names, have them.
 */
struct backend_scanned {
    uint64_t problems, remarked;
    bool of_list;
};

/* The result of a crawler; times as Unix seconds, 0: none. */
struct backend_crawler {
    const char *name;
    bool verified; /* only fetches from its own addresses count */
    int64_t last_fetch_at, seen_up_to, stale_since;
    uint64_t pages, current, stale, never;
    uint64_t lagged; /* changes of which it is known how long it lacked them; 0: no lags */
    uint64_t lag_p50, lag_p90, lag_max;
    uint64_t ok, not_modified, other, impostors; /* of all days kept */
};
/* Strings are valid for the call. */
typedef void backend_crawler_each(void *context, const struct backend_crawler *crawler);

/* What a crawler holds of a page. */
struct backend_crawler_page {
    const char *url;
    unsigned status; /* 0: never asked for */
    int64_t fetched_at, held_changed_at, changed_at, stale_since;
};
typedef void backend_crawler_page_each(void *context, const struct backend_crawler_page *page);

struct backend_status {
    char version[32];
    bool healthy;       /* there is no reason why not */
    struct str reasons; /* why not, one a line */
    uint64_t source_count;
    void (*source)(void *context, const struct backend_source *source); /* told each */
    void *context;
};

/* Told how many of a list's rows are done. */
typedef void backend_progress(void *context, uint64_t rows_done);

/* What a backend can do. Each answers with an exit status where nothing else is said, and has told
 * what went wrong. */
struct backend_calls {
    /* Applies a change, as catalogue_apply_telling: the result has the outcome and the
     * rows back. With a file `tell` (may be NULL) is called with the progress. */
    enum catalogue_status (*apply)(struct backend *b, const struct change *change,
                                   backend_progress *tell, void *context,
                                   struct change_result *result);
    /* A spool for the rows of a change. NULL: out of memory. */
    struct spool *(*spool)(struct backend *b, uint64_t max_bytes);
    /* The registry as it is now (of a server without its tokens). `want`: REGISTRY_… or'ed. The
     * caller gives it back; NULL and told where that fails. */
    struct registry *(*registry)(struct backend *b, unsigned want);
    /* One of the index's pages; all zero where it is gone meanwhile. */
    int (*page)(struct backend *b, const struct registry_index *index, uint32_t number,
                struct backend_page *out);
    /* The state of the index's entries, which a change's if_match takes; "" where it is gone
     * meanwhile, or the server tells none. */
    int (*state)(struct backend *b, const struct registry_index *index, char out[INDEX_STATE_SIZE]);
    /* Tells each entry, of one revision, in the order of the pages, or by loc with a prefix. */
    int (*list)(struct backend *b, const struct backend_list *list, backend_entry *each,
                void *context);
    /* Tells the changes that the query asks for, the newest first, up to its limit. */
    int (*history)(struct backend *b, const struct history_query *query, backend_change *each,
                   void *context, struct backend_reach *reach);
    /* Tells one change, and then its rows. */
    int (*change_of)(struct backend *b, uint64_t revision, backend_change *each,
                     backend_row *each_row, void *context);
    /* Tells what differs in an index between two revisions. */
    int (*diff)(struct backend *b, const struct backend_diff *wanted, backend_row *each,
                void *context);
    /* The page's XML; `*found` false: it has no entries. */
    int (*render)(struct backend *b, const struct registry_index *index, uint32_t number,
                  bool *found, struct str *out);
    /* A consistent copy of the whole catalogue into a new file; "-": to stdout. */
    int (*backup)(struct backend *b, const char *file);
    /* Tells each token, by name. */
    int (*tokens)(struct backend *b, backend_token_each *each, void *context);
    /* Tells each source, those of the configuration first or by name. */
    int (*sources)(struct backend *b, backend_source_each *each, void *context);
    /* Has the server scan one of its sources: the result, and how that stands now. Of a server
     * only. */
    int (*scan)(struct backend *b, const char *source, int64_t max_removed, bool dry_run,
                struct change_result *result, struct backend_scanned *scanned);
    /* Tells each crawler that came, to the site or (NULL) to any. */
    int (*crawlers)(struct backend *b, const struct registry_site *site, backend_crawler_each *each,
                    void *context);
    /* Tells the pages of the indexes that the crawler reads, or (`stale`) those of which it lacks
     * the present version, in the order of the registry. */
    int (*crawler_pages)(struct backend *b, const char *name, bool stale,
                         backend_crawler_page_each *each, void *context);
    /* What GET /v1/engines or (with a name) GET /v1/engines/{name}/sitemaps lists, of the site or
     * (NULL) of all: an array of JSON, the caller's. */
    int (*engines)(struct backend *b, const struct registry_site *site, const char *name,
                   struct json_t **out);
    /* Fills `*out`, in which the caller has set `source` and `context`; `reasons` is the caller's.
     */
    int (*status)(struct backend *b, struct backend_status *out);
    /* The URL of the index that a change put an entry into, as `result` has it. Borrowed until the
     * next call; "" where it is not known. */
    const char *(*index_url)(struct backend *b, const struct change_result *result);
    /* Who owns what a command makes where its --source names nobody: on a server the token, so that
     * one token's work is one owner's, whichever client did it. Borrowed; NULL, and told, where
     * that cannot be asked. */
    const char *(*owner)(struct backend *b);
    void (*close)(struct backend *b);
};

struct backend {
    const struct backend_calls *calls;
    struct cli *cli;
    const char *name; /* how it is called in messages: the file, or the server's URL; borrowed */
    struct catalogue *catalogue; /* for what needs the machine; NULL: it is a server's */
};

/* Opens the catalogue of cli->config; `create`: makes it where there is none. EXIT_DONE and `*out`,
 * or told why not. */
int backend_open_file(struct cli *cli, bool create, struct backend **out);
/* Makes ready what asks the server at `url`, by the token of the environment or of --token-file. It
 * is asked nothing yet. EXIT_DONE and `*out`, or told why not. */
int backend_open_server(struct cli *cli, const char *url, struct backend **out);
