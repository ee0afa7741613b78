/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The publisher: finds every change of the catalogue, whatever its cause, and keeps snapshots and
 * the page map fresh, so that no acknowledged write is ever hidden.
 *
 * Invariants (numbered; tests name them):
 * 1. A page's place exists before the read transaction of its build begins.
 * 2. `wanted` of a place is raised before a waiter of that revision is resumed.
 * 3. A snapshot is installed only if it is newer than the current one and not older than `wanted`.
 * 4. A page that cannot be published after a commit loses its stale snapshot before the write is
 *    answered.
 * 5. A cold page is built once, however many requests wait for it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "server/base/histogram.h"
#include "server/pages/cache.h"

struct publisher;
struct page_map; /* hosts and paths of one registry; immutable, shared */

struct publish_alias {
    const char *from, *to;
};
struct publish_site {
    const char *origin;
    bool robots_off;
    const char *robots_prefix; /* the operator's own robots file, NULL: none */
    const char *indexnow_key;  /* served as /KEY.txt, NULL: none */
    size_t alias_count;
    const struct publish_alias *aliases;
};
/* Settings of the sites in the configuration, by normalised origin. The publisher takes them over
 * and calls `free` when it gets the next ones, and at the end. */
struct publish_policies {
    bool strict_host;
    bool page_style; /* pages have a stylesheet for browsers (rules/page/render.c) */
    size_t count;
    struct publish_site *sites;
    void (*free)(struct publish_policies *p);
};

struct publisher_options {
    struct catalogue *catalogue;
    struct cache *cache; /* borrowed; the publisher is its loader of pages */
    int compression_level;
    unsigned build_threads;
    /* Where pages are kept on disk, and how many bytes of them; NULL or 0: nowhere. Borrowed for
     * publisher_start. */
    const char *page_store_folder;
    uint64_t page_store_bytes;
    uint32_t page_store_settle_ms, page_store_least_ms; /* 0: as page_store_writer.c says */
    struct publish_policies *policies; /* taken over, also on failure; NULL: none */
    /* Sets s->attachment and s->attachment_free before `s` is installed. False: out of memory. */
    bool (*attach)(void *context, struct resource *s);
    void *attach_context;
    /* Called with the present state of each changed page, in memory or not, before it is served and
     * before the change is answered. At the start, and after the catalogue was replaced: once with
     * NULL for the page, then for all pages. A state may be reported twice. On the publisher's
     * threads; must not block. May be NULL. */
    void (*page_is)(void *context, const char *epoch, const struct page_record *page);
    void *page_is_context;
    /* Log hook: something failed or works again; any thread. May be NULL. */
    void (*event)(void *context, const char *event, const char *detail);
    void *event_context;
    /* Tests only: called in a build between its read and its installation. May be NULL. */
    void (*build_pause)(void *context, int64_t index_id, uint32_t page, uint64_t revision);
    void *build_pause_context;
};

/* Reads the registry once (failing if the catalogue cannot be read) and starts the thread. */
enum catalogue_status publisher_start(const struct publisher_options *options,
                                      struct publisher **out);
/* Resumes every waiter (with what is in memory), stops the threads, drops all snapshots. No other
 * function may be called during or after it. */
void publisher_stop(struct publisher *p);

/* For a reload: replaces the policies of the sites (taken over, also on failure; NULL: none). The
 * next request has the new ones. Waits for a pass; not on an HTTP thread. False: out of memory or
 * the catalogue cannot be read, and nothing has changed. */
bool publisher_reconfigure(struct publisher *p, struct publish_policies *policies);

/* Sets a function to be called after each replacement of the page map (NULL: none), by a thread
 * that holds a lock of the publisher: it must not block or call the publisher. Once this has
 * returned, the function before it is not called any more. Any thread. */
void publisher_on_page_map(struct publisher *p, void (*moved)(void *context), void *context);

/* Whether pages are styled now. Any thread. */
bool publisher_page_style(struct publisher *p);

/* ---- what HTTP asks ---------------------------------------------------------------------- */

enum route_kind { ROUTE_NONE, ROUTE_PAGE, ROUTE_PAGE_GZ, ROUTE_ROBOTS, ROUTE_KEY, ROUTE_ALIAS };

struct site_target {
    enum route_kind kind;
    bool host_known;    /* false: 421 */
    const char *origin; /* of the site, where its host is known; borrowed as `page` */
    int64_t site_id;    /* likewise; 0: none */
    struct place *page; /* PAGE, PAGE_GZ: borrowed while the map is held. place_resource returns its
                           snapshot; if that is NULL, call cache_await: NONE if it has no entries,
                           UNAVAILABLE if the catalogue cannot be read */
    struct resource *robots; /* ROBOTS; of KEY the key file: borrowed likewise */
    const char *text;        /* ALIAS: the target URL */
    size_t text_len;
};

/* The current one; the caller gives it back with publisher_page_map_done. Never waits for
 * I/O. Any thread. */
const struct page_map *publisher_page_map(struct publisher *p);
void publisher_page_map_done(const struct page_map *shared);
/* Looks up `host` (the request's, NULL: none) and `path`. No allocation, no lock. */
void page_map_find(const struct page_map *r, const char *host, const char *path,
                   struct site_target *out);
/* When a page or site may last have been removed from an address (Unix seconds); 0: never since the
 * start. A file that is served there now may have the date with which the removed one was served.
 * Any thread. */
int64_t publisher_moved_at(struct publisher *p);
/* The time of the catalogue's last change or, if later, of the last change of a page (a page keeps
 * the time of a clock that was ahead until it changes again). At most about a second old. Any
 * thread. */
int64_t publisher_newest_at(struct publisher *p);
/* The registry that the map was made of. Borrowed while the map is held. */
const struct registry *page_map_registry(const struct page_map *r);

/* Reports, by up to two calls, how many aliases redirect a listed sitemap (`hides`), and how many
 * lead to neither a list nor a listed sitemap of their site, with a sentence about the first; some
 * seconds old. Texts are borrowed for the call, which must be short. Any thread. */
typedef void alias_fault(void *context, bool hides, size_t count, const char *first);
void publisher_alias_faults(struct publisher *p, alias_fault *each, void *context);

/* Whether a GET of the page's path with a query (a tracking parameter, a cache buster) gets the
 * page. False if an entry of the site is the page's URL with a query: another program may serve
 * that. Any thread. */
bool publisher_accepts_query(const struct place *page);

/* Makes the next reader build the page again. False, and nothing is dropped, while the catalogue
 * cannot be read. Never waits for I/O; any thread. */
bool publisher_forget(struct publisher *p, struct place *page);

/* Calls `done` once everything up to `revision` is published, at once or later on another thread; a
 * write can then be acknowledged. UNAVAILABLE (after at most a minute): the catalogue cannot be
 * read. REPLACED: its file is gone or another one. */
typedef void await_revision_done(void *context, enum await_result result);
void publisher_await_revision(struct publisher *p, uint64_t revision, await_revision_done *done,
                              void *context);
/* The same for a write that another node applied, which may never arrive here: STOPPING once the
 * publisher is quiesced, or once `is_gone`, which is called about once a second, returns true. */
typedef bool await_is_gone(void *context);
void publisher_await_forwarded(struct publisher *p, uint64_t revision, await_revision_done *done,
                               await_is_gone *is_gone, void *context);

/* The revision up to which everything is published. Any thread, never waits. */
uint64_t publisher_revision(struct publisher *p);

/* Calls `done` when a revision newer than `since` is published, or after `timeout_ms`, or with
 * AWAIT_STOPPING. `is_gone` is called about once a second, and ends the wait with AWAIT_STOPPING if
 * it returns true. For long polls; thousands may wait. */
void publisher_await_newer(struct publisher *p, uint64_t since, uint32_t timeout_ms,
                           await_revision_done *done, await_is_gone *is_gone, void *context);
/* Resumes every long poll and every wait for another node's write now (AWAIT_STOPPING), and later
 * ones at once: the first step of a stop. Acknowledgements of this node's writes and cold pages are
 * still answered. Any thread. */
void publisher_quiesce(struct publisher *p);

/* The etag of a page in memory; false if it is not in memory. `gz`: that of the `.xml.gz`. */
bool publisher_page_etag(struct publisher *p, int64_t index_id, uint32_t number, bool gz,
                         char out[RESOURCE_ETAG_SIZE]);

struct publisher_stats {
    uint64_t segments_rendered, pages_published, pages_built_cold, snapshots, snapshot_bytes;
    uint64_t seen_revision, evictions, publish_failures;
    uint64_t pages_loaded;     /* cold pages that were loaded from the page store */
    uint64_t page_store_bytes; /* on disk */
    int64_t changed_at;        /* when a page last changed; 0: none has */
    uint64_t entries;          /* entries of all pages, at seen_revision */
    /* Time since the last check that found every committed change served: 100 ms, unless the
     * catalogue cannot be read or a pass takes long. */
    uint64_t age_ms;
    uint64_t builds_queued; /* cold pages that are waiting for a thread */
    /* By histogram_times: passes that found a change, and pages built on request. */
    struct histogram_values publish_ns, build_ns;
    bool readable; /* the last attempt to read the catalogue succeeded */
    char trouble[256];
};
void publisher_stats_get(struct publisher *p, struct publisher_stats *out);
/* Whether everything committed before this time (monotonic) is served. Thread safe, never waits. */
bool publisher_serves_since(const struct publisher *p, uint64_t ns);
/* Calls `each` for every index: pages with entries, and the entries in them, as last published. By
 * origin, then path. From memory; any thread. The strings are valid for the call. */
void publisher_each_index(struct publisher *p,
                          void (*each)(void *context, const char *origin, const char *path,
                                       uint64_t pages, uint64_t entries),
                          void *context);

/* Renders one page from a view without any cache: what the server would serve; `style` as in
 * publish_policies. Appends to `out`.
 * NOT_FOUND where the page has no entries. For the CLI. */
struct str;
enum catalogue_status publish_render_page(struct catalogue_view *v, int64_t index_id,
                                          uint32_t number, bool style, struct str *out);
