/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a follower asks of the node that it follows: its log, for the catalogue (db/shared.h). The
 * file comes by peering.h, as any node's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "db/shared.h"

struct following;

/* `authorization`: the header line; `ca_file`: PEM, trusted beside the system's authorities, or
 * NULL. Both borrowed. NULL: no memory. */
struct following *following_new(const char *origin, const char *authorization, const char *ca_file);
/* Takes NULL. */
void following_free(struct following *f);
const struct shared_followed *following_calls(const struct following *f);
/* Asks once whether there is a log to follow. False: that node cannot give one as it is set up, and
 * `why` says the reason. True also if it does not answer. */
bool following_may(const struct following *f, char *why, size_t why_size);
