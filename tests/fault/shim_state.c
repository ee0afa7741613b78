/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What the shim knows: its rules, its journal, its folder. */
#include "tests/fault/shim.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define RECORD_MAGIC 0x4c4e524au

struct record_head {
    uint32_t magic, kind;
    uint64_t inode;
    int64_t offset;
    uint64_t len;
};

static struct {
    pthread_once_t once;
    pthread_mutex_t lock;
    const char *folder;
    size_t folder_len;
    struct fault_rule *rules;
    int journal;
    unsigned sync_ms;
} shim = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER, .journal = -1};

/* By bare system calls: the wrappers of this library would call back. */
static void start(void)
{
    const char *rules = getenv("FAULT_RULES");
    const char *journal = getenv("FAULT_JOURNAL");
    const char *pause = getenv("FAULT_SYNC_MS");

    shim.folder = getenv("FAULT_FOLDER");
    shim.folder_len = shim.folder != NULL ? strlen(shim.folder) : 0;
    shim.sync_ms = pause != NULL ? (unsigned)strtoul(pause, NULL, 10) : 0;
    if (journal != NULL)
        shim.journal =
            (int)syscall(SYS_openat, AT_FDCWD, journal, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
    if (rules != NULL) {
        int fd = (int)syscall(SYS_openat, AT_FDCWD, rules, O_RDWR | O_CLOEXEC, 0);
        void *page = fd < 0 ? MAP_FAILED
                            : mmap(NULL, sizeof *shim.rules * FAULT_RULES, PROT_READ | PROT_WRITE,
                                   MAP_SHARED, fd, 0);
        if (page != MAP_FAILED)
            shim.rules = page;
        if (fd >= 0)
            syscall(SYS_close, fd);
    }
    if ((journal != NULL && shim.journal < 0) || (rules != NULL && shim.rules == NULL)) {
        fputs("fault shim: cannot open its rules or its journal\n", stderr);
        abort();
    }
}

static bool ends_with(const char *path, const char *ends)
{
    size_t len = strlen(path), tail = strlen(ends);
    return len >= tail && strcmp(path + len - tail, ends) == 0;
}

struct fault_rule *shim_rule(enum fault_op op, const char *path)
{
    pthread_once(&shim.once, start);
    for (size_t i = 0; shim.rules != NULL && i < FAULT_RULES; i++) {
        struct fault_rule *rule = &shim.rules[i];
        if (__atomic_load_n(&rule->op, __ATOMIC_ACQUIRE) != (uint32_t)op ||
            !ends_with(path, rule->ends))
            continue;
        uint32_t seen = __atomic_add_fetch(&rule->seen, 1, __ATOMIC_RELAXED);
        if (seen < rule->first || (seen - rule->first) % rule->every != 0)
            continue;
        if (__atomic_add_fetch(&rule->hit, 1, __ATOMIC_RELAXED) <= rule->most)
            return rule;
        __atomic_sub_fetch(&rule->hit, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

bool shim_recording(void)
{
    pthread_once(&shim.once, start);
    return shim.journal >= 0;
}

void shim_lock(void)
{
    pthread_mutex_lock(&shim.lock);
}

void shim_unlock(void)
{
    pthread_mutex_unlock(&shim.lock);
}

void shim_record(enum shim_record kind, ino_t inode, off_t offset, const void *data, size_t len)
{
    struct record_head head = {RECORD_MAGIC, (uint32_t)kind, (uint64_t)inode, offset, len};
    struct iovec parts[2] = {{&head, sizeof head}, {(void *)data, len}};

    if (shim.journal >= 0 &&
        syscall(SYS_writev, shim.journal, parts, len > 0 ? 2 : 1) != (long)(sizeof head + len)) {
        fputs("fault shim: the journal is full\n", stderr);
        abort();
    }
}

void shim_pause(void)
{
    unsigned chance = 0;

    if (shim.sync_ms == 0 || getrandom(&chance, sizeof chance, 0) != (ssize_t)sizeof chance)
        return;
    struct timespec time = {0, (long)(chance % (shim.sync_ms * 1000u)) * 1000};
    nanosleep(&time, NULL);
}

bool shim_watches(const char *path, char *absolute, size_t size)
{
    pthread_once(&shim.once, start);
    if (shim.folder_len == 0 || path == NULL)
        return false;
    if (path[0] == '/')
        snprintf(absolute, size, "%s", path);
    else if (getcwd(absolute, size) != NULL)
        snprintf(absolute + strlen(absolute), size - strlen(absolute), "/%s", path);
    else
        return false;
    const char *rest = absolute + shim.folder_len;
    if (strncmp(absolute, shim.folder, shim.folder_len) != 0 || (*rest != '\0' && *rest != '/'))
        return false;
    /* Temporary tables are deleted while they are open: no cut leaves anything of them. */
    return strstr(rest, "etilqs_") == NULL && !ends_with(absolute, "-shm");
}
