/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A library that stands between the real program and the disk (LD_PRELOAD), for tests/fault alone.
 * It sees the files beneath $FAULT_FOLDER and does one or both of:
 *
 * - fail calls as the rules in the shared page $FAULT_RULES say, which a test changes at any time;
 * - record in $FAULT_JOURNAL every write, cut, sync, and change of a name, so that a test can work
 *   out what a power cut leaves (powercut.py). The real sync is then left out: a process that is
 *   killed keeps its writes, so syncs are of no use but in the record. $FAULT_SYNC_MS: a random
 *   pause of at most so long before each, so that cuts fall between a write and its sync.
 *
 * Memory that is mapped (the index of the write-ahead log) is not seen: a power cut loses it whole.
 * What another process does is recorded if it runs with the library too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum fault_op {
    FAULT_NONE,
    FAULT_OPEN,
    FAULT_READ,
    FAULT_WRITE,
    FAULT_SYNC,
    FAULT_CUT,
    FAULT_UNLINK,
    FAULT_STATFS,
};

/* One row of the shared page; conftest.py writes the same layout. Calls `first`, first + every, …
 * of those that match fail, at most `most` of them. */
struct fault_rule {
    uint32_t op;
    int32_t error; /* errno; FAULT_SHORT; for STATFS the type of the file system to be reported */
    uint32_t first, every, most;
    uint32_t seen, hit; /* counted here */
    char ends[36];      /* of the path */
};
#define FAULT_SHORT (-1) /* half of the bytes are written */
#define FAULT_HANG  (-2) /* a sync: does not return while there is a rule */
#define FAULT_RULES 16

/* The rule that hits this call, or NULL. Counts. */
struct fault_rule *shim_rule(enum fault_op op, const char *path);

enum shim_record {
    SHIM_WRITE = 1, /* inode, offset, data */
    SHIM_CUT,       /* inode, offset: the new size */
    SHIM_SYNC,      /* inode */
    SHIM_SYNC_FOLDER,
    SHIM_MAKE,   /* inode, name: a file came to be */
    SHIM_UNLINK, /* name */
    SHIM_RENAME, /* name, NUL, name */
};

/* Whether there is a journal. */
bool shim_recording(void);
/* Held over a call and its record, so that the journal has them in the order of the disk. */
void shim_lock(void);
void shim_unlock(void);
void shim_record(enum shim_record kind, ino_t inode, off_t offset, const void *data, size_t len);
/* The pause before a sync. */
void shim_pause(void);

/* True for what lies beneath the folder and is worth seeing; `absolute` gets the whole path. */
bool shim_watches(const char *path, char *absolute, size_t size);
