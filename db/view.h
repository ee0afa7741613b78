/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads: views of one consistent revision. Part of db/catalogue.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/check.h"
#include "db/crawler.h"
#include "db/entry.h"
#include "db/registry.h"
#include "db/source.h"
#include "db/status.h"
#include "server/rules/entry.h"

struct catalogue;
struct catalogue_view;

/* Opens a view of the newest committed revision. Views are few and short: the pool has
 * CATALOGUE_VIEWS of them, and catalogue_view_begin waits for a free one. Not on an HTTP thread. A
 * view is used by one thread at a time. On failure `*out` is NULL. */
#define CATALOGUE_VIEWS 8
enum catalogue_status catalogue_view_begin(struct catalogue *c, struct catalogue_view **out);
void catalogue_view_end(struct catalogue_view *v);

struct catalogue_revisions {
    char epoch[33];
    uint64_t revision;
    uint64_t registry_revision;
    uint64_t entries; /* of all indexes */
    uint64_t urls;    /* of all urlsets */
};
enum catalogue_status catalogue_view_revisions(struct catalogue_view *v,
                                               struct catalogue_revisions *out);
/* The registry at the view's revision; the caller owns a reference. */
enum catalogue_status catalogue_view_registry(struct catalogue_view *v, struct registry **out);
/* The newest registry, read by a view of its own. On failure `*out` is NULL. */
enum catalogue_status catalogue_registry(struct catalogue *c, struct registry **out);

struct page_record {
    int64_t index_id, site_id;
    uint32_t number; /* from 1 */
    uint32_t entries;
    uint64_t bytes; /* as the limit counts them, see render_entry_bytes */
    int64_t changed_at;
    bool same_second; /* other content may have been served at its URLs with this changed_at */
    uint64_t revision;
    /* A random number for each state of the page: two states never have the same, even if a
     * restored copy of the file passes through the same revisions. 0: none. */
    uint64_t stamp;
    bool removed; /* its list or site was removed, or the page has no entries */
    enum list_kind kind;
    unsigned with; /* of a urlset, see struct registry_index */
};

/* Calls `each` for every page with revision > `since`, of the site's origin (0: of all sites), by
 * revision, then index and number. Includes pages of removed indexes, which the registry does not
 * have; `url` is the page's URL in any case. A false from `each` ends it (OK). */
enum catalogue_status catalogue_view_pages_since(
    struct catalogue_view *v, uint64_t since, int64_t site_id,
    bool (*each)(void *context, const struct page_record *page, const char *url), void *context);
/* One page. NOT_FOUND: it never existed, or its list was removed long ago. A page of a removed
 * index has `removed` set. */
enum catalogue_status catalogue_view_page(struct catalogue_view *v, int64_t index_id,
                                          uint32_t number, struct page_record *out);
/* The state of the index's entries (INDEX_STATE_SIZE). NOT_FOUND: the index never existed. */
enum catalogue_status catalogue_view_index_state(struct catalogue_view *v, int64_t index_id,
                                                 char out[INDEX_STATE_SIZE]);
/* Sets bit S of `changed` for each segment S (0 to PAGE_SEGMENTS - 1) of the page with a revision >
 * `since` (0: all segments that have a row). */
enum catalogue_status catalogue_view_segments_since(struct catalogue_view *v, int64_t index_id,
                                                    uint32_t number, uint64_t since,
                                                    uint64_t changed[PAGE_SEGMENT_BITS]);
/* Calls `each` for every row of the list with first <= position < first + count, in order. Strings
 * are valid for the call; `extensions` is NULL except for page URLs that have some (`kind` is the
 * list's). The publisher's hot path: one scan in the order of the primary key. A false from `each`
 * ends it with CATALOGUE_NO_MEMORY. */
enum catalogue_status catalogue_view_positions(
    struct catalogue_view *v, enum list_kind kind, int64_t index_id, uint32_t first, uint32_t count,
    bool (*each)(void *context, const char *loc, size_t loc_len, const char *lastmod,
                 const char *extensions, size_t extensions_len),
    void *context);
/* The rows of one source of a list from the position `first` on, in order, at most `limit`. A false
 * from `each` ends it (OK). */
enum catalogue_status catalogue_view_positions_of(struct catalogue_view *v, int64_t index_id,
                                                  const char *source, uint32_t first, size_t limit,
                                                  bool (*each)(void *context, uint32_t position,
                                                               const char *loc, const char *lastmod,
                                                               const char *extensions),
                                                  void *context);

/* One entry. The caller frees `out` with entry_record_done. NOT_FOUND for stale or foreign ids. */
enum catalogue_status catalogue_view_entry_by_id(struct catalogue_view *v, const char *id,
                                                 struct entry_record *out);
enum catalogue_status catalogue_view_entry_by_loc(struct catalogue_view *v, int64_t site_id,
                                                  const char *loc, struct entry_record *out);
/* The page URL of a urlset. */
enum catalogue_status catalogue_view_row_by_loc(struct catalogue_view *v, int64_t urlset_id,
                                                const char *loc, struct entry_record *out);

typedef bool entry_each(void *context, const struct entry_record *record);
/* Lists entries: of one index by position, or of all by index id and position. `after` is the
 * cursor of an entry (catalogue_entry_cursor), NULL to begin: entries added or removed meanwhile
 * neither repeat nor hide others. `prefix` (NULL: any) filters by loc and is then ordered by loc.
 * Records are valid for the call. A false from `each` ends it (OK). CONFLICT: malformed cursor. */
struct entry_list {
    int64_t site_id;  /* 0: any */
    int64_t index_id; /* 0: any index; a urlset's: its page URLs */
    const char *prefix;
    const char *source; /* NULL: any */
    const char *after;
    size_t limit; /* 0: all */
};
enum catalogue_status catalogue_view_list(struct catalogue_view *v, const struct entry_list *list,
                                          entry_each *each, void *context);
#define ENTRY_CURSOR_SIZE 4200
/* The cursor that continues after `record` in a list with these filters (text, URL-safe). */
void catalogue_entry_cursor(const struct entry_list *list, const struct entry_record *record,
                            char out[ENTRY_CURSOR_SIZE]);

/* Searches for entries that match the filter, in the order of catalogue_view_list with the same
 * `list`; one with an index_id has its site_id, too. Ends once `limit` (0: all) entries were found
 * or the `effort` is spent: a row costs 1, a long loc more, and 10 if it is of a removed index, or
 * a prefix is combined with a filter of anything but the loc. `out` says how far the search got. A
 * false from `each` ends it. CONFLICT: malformed cursor. */
struct entry_search {
    struct entry_list list;
    struct entry_filter filter; /* empty without an index_id */
    const char *origin;         /* of the index's site */
    uint64_t effort;
};
struct entry_searched {
    uint64_t looked_at;           /* rows */
    bool more;                    /* it stopped before the end of the list: continue at `next` */
    char next[ENTRY_CURSOR_SIZE]; /* valid if `more` */
};
enum catalogue_status catalogue_view_search(struct catalogue_view *v,
                                            const struct entry_search *search, entry_each *each,
                                            void *context, struct entry_searched *out);

/* When the token was last used on this node (Unix seconds, rounded down to the hour, but not before
 * its creation); 0: never. */
enum catalogue_status catalogue_view_token_used(struct catalogue_view *v, int64_t token_id,
                                                int64_t *out);

/* Counts of crawlers in this catalogue's epoch: when counting began (0: no counts) and the node
 * that owns them; then all rows. */
enum catalogue_status catalogue_view_crawlers_begun(struct catalogue_view *v,
                                                    struct crawlers_begun *out);
typedef void crawler_page_each(void *context, const struct crawler_page_kept *row);
typedef void crawler_day_each(void *context, const struct crawler_day_kept *row);
enum catalogue_status catalogue_view_crawlers(struct catalogue_view *v, crawler_page_each *page,
                                              crawler_day_each *day, void *context);
/* The same for sitemaps that are served beside the pages, of this node, ordered by the last fetch.
 */
typedef void crawler_child_each(void *context, const struct crawler_child_kept *child);
enum catalogue_status catalogue_view_crawler_children(struct catalogue_view *v,
                                                      crawler_child_each *each, void *context);
/* Counts that the nodes of a shared catalogue, this one included, reported: `*times` changes
 * whenever the rows do (0: none), `*since` is when they began; then all rows. Pages have no counts
 * of requests. */
enum catalogue_status catalogue_view_crawlers_times(struct catalogue_view *v, int64_t *times,
                                                    int64_t *since);
enum catalogue_status catalogue_view_crawlers_reported(struct catalogue_view *v,
                                                       crawler_page_each *page,
                                                       crawler_day_each *day, void *context);
/* Whether some counts were not reported yet. The schema must be this release's. */
enum catalogue_status catalogue_view_crawlers_unreported(struct catalogue_view *v, bool *any);

/* The visits that the ledger is to import, in this catalogue's epoch; `*last` is the id of the last
 * one, 0: none. */
enum catalogue_status
catalogue_view_crawler_visits(struct catalogue_view *v, int64_t *last,
                              void (*each)(void *context, const struct crawler_visits *visits),
                              void *context);
/* The logs that were read, the shortest first; at most CRAWLER_LOGS_MAX. */
enum catalogue_status catalogue_view_crawler_logs(struct catalogue_view *v,
                                                  void (*each)(void *context,
                                                               const struct crawler_log *log),
                                                  void *context);

/* The files of a source: all, in no order; those with remarks, in no order, or rejected ones, by
 * path (reads only rows that it passes to `each`); or split ones, by path (reads all rows of the
 * source). A false from `each` ends it (OK). An unknown source has no files. */
enum source_files {
    SOURCE_FILES_ALL,
    SOURCE_FILES_REMARKED,
    SOURCE_FILES_REFUSED,
    SOURCE_FILES_SPLIT
};
typedef bool source_file_each(void *context, const struct source_file *file);
enum catalogue_status catalogue_view_source_files(struct catalogue_view *v, const char *source,
                                                  enum source_files which, source_file_each *each,
                                                  void *context);
/* The file at this path; `*found`: whether there is one. Strings are valid until the next call on
 * this view. */
enum catalogue_status catalogue_view_source_file(struct catalogue_view *v, const char *source,
                                                 const char *path, struct source_file *out,
                                                 bool *found);
/* Calls `each`, by name, for every source that was scanned or polled, even if this configuration
 * does not have it. `remote`: its list is or was polled. `list`: the URL of that list, NULL:
 * unknown; valid for the call. Removed sources are left out. A false from `each` ends it. */
typedef bool source_name_each(void *context, const char *name, bool remote, const char *list);
enum catalogue_status catalogue_view_sources_scanned(struct catalogue_view *v,
                                                     source_name_each *each, void *context);
/* Whether a source that was scanned owns an entry. Reads its files until it finds one that has. */
enum catalogue_status catalogue_view_source_owns(struct catalogue_view *v, const char *source,
                                                 bool *owns);
/* The state of a source; all zero for an unknown source. */
enum catalogue_status catalogue_view_source_state(struct catalogue_view *v, const char *source,
                                                  struct source_state *out);
