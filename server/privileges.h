/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reduces the rights of the process before it reads from the network. */
#pragma once

#include <stdbool.h>

/* Started as root: switches to `user` permanently, with its groups and without capabilities; a
 * missing folder for `database` is created for that user. If `user` is NULL it stays root, and the
 * log says how to avoid that (except for the first process of a container). Not started as root:
 * `user` must be NULL or the current user. Programs that it might start cannot gain rights
 * (PR_SET_NO_NEW_PRIVS). Call it before any thread starts. False if it fails, reported as a failed
 * start. */
bool privileges_drop(const char *user, const char *database);
/* Disables core dumps and debuggers of the same user: memory has requests with their tokens, and
 * the private key. Call it after everything that is opened by /proc/self or /dev/stderr. */
void privileges_hide_memory(void);
