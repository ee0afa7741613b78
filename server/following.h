/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Requests the log of the node that this one follows, for the catalogue (db/shared.h). Its file is
 * downloaded by peering.h, like that of any node. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "db/shared.h"

struct following;

/* `authorization`: the header line; `ca_file`: PEM, trusted besides the system's authorities, or
 * NULL. Both borrowed. NULL: out of memory. */
struct following *following_new(const char *origin, const char *authorization, const char *ca_file);
/* Accepts NULL. */
void following_free(struct following *f);
const struct shared_followed *following_calls(const struct following *f);
/* Asks the node once whether it provides a log. False: its configuration does not allow that, and
 * `why` has the reason. True also if it does not answer. */
bool following_may(const struct following *f, char *why, size_t why_size);
