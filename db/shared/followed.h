/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The log as a follower has it: that of another node, over HTTP (db/shared.h: shared_followed), in
 * place of PostgreSQL's. Nothing can be written to it, and nobody leads anything.
 *
 * One handle fetches: its `wait` is a long poll that brings the new records with it, its `tail`
 * asks for what it does not have. What arrived lies in a file without a name, until it was read to
 * its end; only then is more asked for, so that the file is bounded by one answer. Another handle
 * reads that file and asks nobody: the writer's thread never waits for the network. A third one
 * hands on to this node's own followers: it has the answer before, too.
 *
 * The answers of the other node:
 *
 *     200                     records; or none within the time of the long poll
 *     409 other-catalogue     another log: TRIMMED, only a copy helps
 *     409 diverged            DIVERGED
 *     410 log-trimmed         TRIMMED
 *     anything else, nothing  AWAY
 *     200, it is cut off      AWAY, behind the records that it has
 *
 * Internal to db/shared. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/shared.h"
#include "db/shared/log.h"
#include "db/shared/relay.h"

struct followed;

/* `calls` (NULL: a command, which asks nobody) is borrowed; the file lies in the folder of `path`.
 * NULL: no memory. */
struct followed *followed_new(const struct shared_followed *calls, const char *path);
/* After its handles. Takes NULL. */
void followed_free(struct followed *u);
enum followed_use { FOLLOWED_FETCHES, FOLLOWED_READS, FOLLOWED_HANDS_ON };
/* NULL: no memory. */
struct shared_log *followed_open_log(struct followed *u, enum followed_use use);
/* What the last answer said. Any thread. */
void followed_head(struct followed *u, struct relay_head *out);
