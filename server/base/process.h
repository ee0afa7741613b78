/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What the kernel says of this process: memory, descriptors, CPU time. Read from /proc/self, which
 * is memory: no disk is waited for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct process_usage {
    uint64_t resident_bytes, virtual_bytes;
    uint64_t cpu_ms;     /* of all threads, user and system; as fine as the kernel's tick */
    uint64_t started_ms; /* Unix time */
    uint64_t threads;
    uint64_t open_fds;
    uint64_t max_fds; /* UINT64_MAX: no limit */
};

/* False where /proc is not there; then nothing is known. Thread safe. */
bool process_usage_read(struct process_usage *out);
