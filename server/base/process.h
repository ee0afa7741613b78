/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Memory, descriptors and CPU time of this process, from /proc/self. Never waits for a disk.
 * And the user that it may become. */
#pragma once

#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>

struct process_usage {
    uint64_t resident_bytes, virtual_bytes;
    uint64_t cpu_ms;     /* of all threads, user and system; in steps of the kernel's tick */
    uint64_t started_ms; /* Unix time */
    uint64_t threads;
    uint64_t open_fds;
    uint64_t max_fds; /* UINT64_MAX: no limit */
};

/* False if /proc is missing. Thread safe. */
bool process_usage_read(struct process_usage *out);
/* The user with this name or number; valid until the next call in any thread. NULL: no such
 * user (errno is 0), or it could not be read (errno says why). */
const struct passwd *process_find_user(const char *user);
