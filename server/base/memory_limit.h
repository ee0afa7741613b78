/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* How much memory this process may use by the limits of its control group: a container's, or
 * MemoryMax= and MemoryHigh= of a unit. */
#pragma once

#include <stdint.h>

/* The least limit of the process's group and those above it, in bytes; 0: none, or not known. Both
 * hierarchies, v1 and v2. `groups` is the process's list ("/proc/self/cgroup"), `root` where the
 * file system of groups is mounted ("/sys/fs/cgroup"). Reads files. Thread safe. */
uint64_t memory_limit(const char *groups, const char *root);
