/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The memory limit that this process's control group sets: that of a container, or MemoryMax= and
 * MemoryHigh= of a unit. */
#pragma once

#include <stdint.h>

/* The lowest limit of the process's group and the groups above it, in bytes; 0: no limit, or
 * unknown. Supports cgroup v1 and v2. `groups` is the process's list ("/proc/self/cgroup"), `root`
 * the mount point of the cgroup file system ("/sys/fs/cgroup"). Reads files. Thread safe. */
uint64_t memory_limit(const char *groups, const char *root);
