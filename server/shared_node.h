/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A server as a node of a shared catalogue: declares the configuration's sites and tokens once the
 * node has joined, reports the node's state to the others, and logs the state of PostgreSQL. */
#pragma once

#include <stdbool.h>

#include "config/config.h"
#include "db/catalogue.h"

struct forward;
struct shared_node;

/* Starts its thread; holds a reference of `config`. With forward = auto (else `forward` may be
 * NULL), a node far from PostgreSQL directs `forward` (borrowed) to the near node that leads the
 * writes, and a near node tries to lead them. NULL: out of memory. */
struct shared_node *shared_node_start(struct catalogue *c, struct config *config,
                                      struct forward *forward);
/* Declares the sites and tokens of `config`, now or once the node has joined. False, with the error
 * reported: it was rejected, and the old declaration stays. */
bool shared_node_reconfigure(struct shared_node *n, struct config *config);
/* Whether another node has, or may have, a remote source of this name in its configuration. A node
 * that has not reported its sources yet, or has too many to report, may have any. Thread safe,
 * never waits. */
bool shared_node_others_want(struct catalogue *c, const char *source);
/* Accepts NULL. */
void shared_node_stop(struct shared_node *n);
