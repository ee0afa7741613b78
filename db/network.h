/* Whether a path lies on a network filesystem. WAL keeps its index in memory that all processes
 * share, which no network filesystem has (https://www.sqlite.org/wal.html, "Disadvantages"): two
 * hosts would corrupt the file without a word, and locks are not to be trusted on many of them.
 * Internal to db/. Thread safe. */
#ifndef SITEMAPD_DB_NETWORK_H
#define SITEMAPD_DB_NETWORK_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* The filesystem's name where `path` (which exists) lies on one, else NULL. Static. */
const char *network_filesystem(const char *path);

/* The parts of it, for its tests. By statfs's f_type; by the type of a mount (fuse.sshfs). */
const char *network_name_of_type(unsigned long type);
const char *network_name_of_mount(const char *mount_type);
/* Writes the type of the mount of `device` to `out`, reading proc_pid_mountinfo(5). */
bool network_find_mount(FILE *mountinfo, dev_t device, char *out, size_t size);

#endif
