/* The read connections of a handle and what a view is. Internal to db/, the read side.
 *
 * Invariants:
 * 1. A view belongs to one thread from view_begin to view_end; the pool's lock guards `lent`, the
 *    identity and the caches, and nothing of the engine is called under it.
 * 2. A connection is opened when it is first needed, and anew after the file was replaced: its
 *    `generation` is the pool's at its opening. It is used only while the two agree.
 * 3. No connection is opened to a file that is not the one the watch vouched for. The path of a
 *    replaced file still has the old one's write-ahead log beside it, which the engine would read
 *    into the new file; the watch clears it away first (file/watch.c). */
#ifndef SITEMAPD_DB_READ_VIEW_POOL_H
#define SITEMAPD_DB_READ_VIEW_POOL_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "db/catalogue.h"
#include "db/file/filesystem.h"

/* The statements that a view keeps prepared. */
enum view_statement {
    VIEW_BEGIN,
    VIEW_COMMIT,
    VIEW_CATALOGUE,
    VIEW_ENTRIES,
    VIEW_PAGES_SINCE,
    VIEW_PAGE,
    VIEW_INDEX_STATE,
    VIEW_SEGMENTS_SINCE,
    VIEW_POSITIONS,
    VIEW_ENTRY_BY_ADDRESS,
    VIEW_ENTRY_BY_LOC,
    VIEW_SOURCE,
    VIEW_SCOPE,
    VIEW_NEXT_INDEX,
    VIEW_NEXT_SITE,
    VIEW_LIST_POSITIONS,
    VIEW_LIST_LOCS,
    VIEW_SEARCH_POSITIONS,
    VIEW_SEARCH_LOCS,
    VIEW_ENTRY_AT,
    VIEW_SOURCE_FILES,
    VIEW_SOURCE_REMARKED,
    VIEW_SOURCE_REFUSED,
    VIEW_SOURCE_FILE,
    VIEW_SOURCE_STATE,
    VIEW_TOKEN_USED,
    VIEW_CRAWLERS,
    VIEW_CRAWLER_PAGES,
    VIEW_CRAWLER_DAYS,
    VIEW_CRAWLER_VISITS,
    VIEW_CRAWLER_LOGS,
    VIEW_CHECK,
    VIEW_CHECK_BY_LOC,
    VIEW_CHECK_LIST,
    VIEW_CHECKS,
    VIEW_CHECKS_OF_STATE,
    VIEW_CHECKS_DROPPED,
    VIEW_CHECK_COUNTS,
    VIEW_CHECKS_DUE,
    VIEW_UNWATCHED_FILES,
    VIEW_UNWATCHED_ENTRIES,
    VIEW_CHECKS_NAMED,
    VIEW_OWNER_HAS_FILES,
    VIEW_ENTRY_FILE, /* of a single entry; and of one in a list, whose `each` may ask for others */
    VIEW_LIST_FILE,
    VIEW_HISTORY_FROM,
    VIEW_HISTORY_SHORTENED,
    VIEW_HISTORY_FEW,
    VIEW_HISTORY_PART,
    VIEW_HISTORY_PARTS,
    VIEW_HISTORY_SOURCE,
    VIEW_HISTORY_SITE,
    VIEW_HISTORY_CHANGE,
    VIEW_HISTORY_FILTERS,
    VIEW_HISTORY_ALL,
    VIEW_HISTORY_OF_SITE,
    VIEW_HISTORY_BETWEEN,
    VIEW_INDEXNOW,
    VIEW_INDEXNOW_NEXT,
    VIEW_STATEMENT_COUNT
};

struct catalogue_view {
    struct view_pool *pool;                         /* constant */
    bool lent;                                      /* the pool's lock */
    sqlite3 *db;                                    /* NULL: not open */
    sqlite3_stmt *statements[VIEW_STATEMENT_COUNT]; /* NULL: not prepared yet */
    uint64_t generation;
    bool broken; /* the engine failed: closed at view_end */
    /* As read at view_begin. */
    char epoch[33];
    uint64_t revision, registry_revision;
    /* Of an entry's source, the last one asked for within this view; 0: none yet. */
    int64_t file_owner;
    bool file_owner_has;
};

struct view_pool {
    struct catalogue *catalogue;
    pthread_mutex_t lock;
    pthread_cond_t freed;
    struct catalogue_view views[CATALOGUE_VIEWS];
    struct file_identity identity; /* of the file that may be opened */
    uint64_t generation;
    bool lost; /* the path does not name that file: new views fail */
    /* The newest that was read; kept because most views ask for the same. */
    struct registry *registry; /* a reference, or NULL */
    bool entries_known;
    uint64_t entries_revision, entries, urls;
};

/* New views answer UNAVAILABLE from now on. Those that are open go on reading the old file. */
void view_pool_lose(struct view_pool *pool);
/* The path names `identity` now: views are opened anew, on it. */
void view_pool_renew(struct view_pool *pool, const struct file_identity *identity);

/* Opens a reading connection of the caller's own, for what takes long (a backup, a check): only to
 * the file that the pool's views read. `why` gets a sentence on failure. */
enum catalogue_status view_pool_connect(struct view_pool *pool, sqlite3 **out, char *why,
                                        size_t why_size);

/* The statement `which`, reset and unbound; prepared from `sql` at its first use. NULL on failure:
 * then view_status(v, SQLITE_ERROR) tells. A statement serves one caller at a time, so no `each`
 * may call the function that calls it. */
sqlite3_stmt *view_statement(struct catalogue_view *v, enum view_statement which, const char *sql);
/* Binds the parameters from the first on: 'i' exactly an int64_t, 't' a text (borrowed; NULL:
 * NULL). A result code of the engine; SQLITE_ERROR where `row` is NULL. */
int view_bind(sqlite3_stmt *row, const char *types, ...);
/* Maps a result, and remembers where it means that the connection is not to be used again. */
enum catalogue_status view_status(struct catalogue_view *v, int sqlite_result);

#endif
