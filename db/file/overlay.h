/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A private, writable connection to a catalogue file: it sees the file as of its opening; its
 * writes never reach the file and no other connection sees them. Internal to db/.
 *
 * How it works: a VFS of its own (https://www.sqlite.org/vfs.html) opens the file read-only, copies
 * its write-ahead log to a temporary file, and takes no lock. SQLite keeps the log's index in
 * its own memory (https://www.sqlite.org/wal.html#use_of_wal_without_shared_memory) and appends its
 * writes to the copy.
 *
 * The caller holds a read transaction on the same file from before overlay_open until after
 * connection_close. So no checkpoint writes newer pages into the file, and all older pages are in
 * the file or in the copied log. The log may be restarted while it is copied: its header is read
 * before and after, and the copy is repeated if they differ. */
#pragma once

#include <sqlite3.h>
#include <stddef.h>

#include "db/catalogue.h"

/* A longer log is not copied: NO_SPACE. */
#define OVERLAY_LOG_MAX_BYTES (256u << 20)
#define OVERLAY_CACHE_KIB     16384

/* Opens `path`; the caller closes it with connection_close. `why` gets a sentence on failure.
 * Thread safe; the connection is for one thread at a time. */
enum catalogue_status overlay_open(const char *path, sqlite3 **out, char *why, size_t why_size);
