/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What the process may do: less than it was started with, before it reads from the network. */
#pragma once

#include <stdbool.h>

/* Started as root: becomes `user` for good, with its groups and without capabilities; a folder for
 * `database` that is not there yet is made as that user's. With `user` NULL root stays, and the log
 * says what to do (a container's first process is left in peace). Not root: `user` must be NULL or
 * who it is already. No program that it might start could gain more (PR_SET_NO_NEW_PRIVS). Before
 * any thread. False if it fails, reported as a failed start. */
bool privileges_drop(const char *user, const char *database);
/* No core dump, no debugger of another process of the same user: memory holds requests with their
 * tokens, and the private key. Once all that is opened by /proc/self or /dev/stderr is open. */
void privileges_hide_memory(void);
