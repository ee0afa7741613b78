/* How large the catalogue is on its disk, and what is left there. Internal to db/. */
#ifndef SITEMAPD_DB_SPACE_H
#define SITEMAPD_DB_SPACE_H

#include <stdatomic.h>
#include <stdint.h>

#define SPACE_LOOK_MS 1000

/* All zero: not looked at yet. Written by one thread, read by any. */
struct space {
    atomic_uint_fast64_t file_bytes, wal_bytes, disk_bytes, free_bytes;
    int64_t looked_ms; /* the writing thread's */
};

/* Looks, at most once in SPACE_LOOK_MS; may wait for the file system. `now_ms`: monotonic. */
void space_look(struct space *s, const char *path, int64_t now_ms);

#endif
