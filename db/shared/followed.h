/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The log of a follower: read from another node over HTTP (db/shared.h: shared_followed) instead of
 * PostgreSQL. It is read-only, and followers lead nothing.
 *
 * One handle fetches: its `wait` is a long poll whose answer contains the new records, its `tail`
 * requests missing records. An answer is stored in a file without a name. The next request is sent
 * only once that was read to its end, so that one answer bounds the file. A second handle only
 * reads the file, so that the writer's thread never waits for the network. A third one, for this
 * node's own followers, also has the answer before.
 *
 * The answers of the other node:
 *
 *     200                     records; or none within the time of the long poll
 *     409 other-catalogue     another log: TRIMMED, only a copy helps
 *     409 diverged            DIVERGED
 *     410 log-trimmed         TRIMMED
 *     anything else, nothing  AWAY
 *     200, cut off            AWAY, after its complete records
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

/* `calls` (NULL: a command, which sends no requests) is borrowed; files are made in the folder of
 * `path`. NULL: out of memory. */
struct followed *followed_new(const struct shared_followed *calls, const char *path);
/* After its handles were freed. Accepts NULL. */
void followed_free(struct followed *u);
enum followed_use { FOLLOWED_FETCHES, FOLLOWED_READS, FOLLOWED_HANDS_ON };
/* NULL: no memory. */
struct shared_log *followed_open_log(struct followed *u, enum followed_use use);
/* The head in the last answer. Any thread. */
void followed_head(struct followed *u, struct relay_head *out);
