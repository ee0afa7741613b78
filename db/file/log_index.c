#include "db/file/log_index.h"

#include <string.h>

#define BLOCK_BYTES 32768 /* what the engine maps of it at once */

void log_index_find(struct log_index *index, sqlite3 *db)
{
    sqlite3_file *file = NULL;
    volatile void *first = NULL;

    *index = (struct log_index){.head = NULL};
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK &&
        file != NULL && file->pMethods != NULL && file->pMethods->iVersion >= 2 &&
        file->pMethods->xShmMap(file, 0, BLOCK_BYTES, 0, &first) == SQLITE_OK)
        index->head = first;
}

bool log_index_moved(struct log_index *index)
{
    bool moved = index->head == NULL;

    for (size_t i = 0; index->head != NULL && i < LOG_INDEX_WORDS; i++) {
        uint32_t word = index->head[i];
        moved = moved || word != index->seen[i];
        index->seen[i] = word;
    }
    return moved;
}

void log_index_forget(struct log_index *index)
{
    memset(index->seen, 0, sizeof index->seen);
}
