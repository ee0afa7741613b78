#include "db/space.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define PATH_BYTES 4096

static uint64_t size_of(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 ? (uint64_t)file.st_size : 0;
}

void space_look(struct space *s, const char *path, int64_t now_ms)
{
    char wal[PATH_BYTES + 8];
    struct statvfs disk;

    if (s->looked_ms != 0 && now_ms < s->looked_ms + SPACE_LOOK_MS)
        return;
    s->looked_ms = now_ms;
    atomic_store(&s->file_bytes, size_of(path));
    if (strlen(path) < PATH_BYTES) {
        snprintf(wal, sizeof wal, "%s-wal", path);
        atomic_store(&s->wal_bytes, size_of(wal));
    }
    if (statvfs(path, &disk) == 0) {
        atomic_store(&s->disk_bytes, (uint64_t)disk.f_blocks * disk.f_frsize);
        atomic_store(&s->free_bytes, (uint64_t)disk.f_bavail * disk.f_frsize);
    }
}
