/* The head of the index of the write-ahead log: memory that all processes share, which each commit
 * of anybody's writes anew (https://www.sqlite.org/walformat.html#the_wal_index_header). Where it
 * is as it was, nobody committed anything, and the engine, which takes locks, need not be asked.
 * One thread's, as its connection. */
#ifndef SITEMAPD_DB_FILE_LOG_INDEX_H
#define SITEMAPD_DB_FILE_LOG_INDEX_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#define LOG_INDEX_WORDS 12 /* the first copy of the header */

struct log_index {
    const volatile uint32_t *head;  /* the connection's; NULL: there is none to be seen */
    uint32_t seen[LOG_INDEX_WORDS]; /* as it was at the last look */
};

/* Finds it for an open connection, as long as which it stands. There is one once the connection has
 * read a file in WAL mode. The next look says that it moved. */
void log_index_find(struct log_index *index, sqlite3 *db);
/* Whether anything was committed since the last call, or may have been. Called before the catalogue
 * is read: what comes between the two shows at the next call. */
bool log_index_moved(struct log_index *index);
/* The next look says that it moved. */
void log_index_forget(struct log_index *index);

#endif
