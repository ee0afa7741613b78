/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A server as a node of a shared catalogue: what waits until it has joined, which is what the
 * configuration declares; what it says of itself to the other nodes; and what the log reports
 * PostgreSQL. */
#pragma once

#include <stdbool.h>

#include "config/config.h"
#include "db/catalogue.h"

struct forward;
struct shared_node;

/* Starts its thread; holds a reference of `config`. With forward = auto it aims `forward`
 * (borrowed; else NULL will do): writes of a node that is far from PostgreSQL go to one that is
 * near, and leads the writes of such nodes. NULL: no memory. */
struct shared_node *shared_node_start(struct catalogue *c, struct config *config,
                                      struct forward *forward);
/* Declares what `config` says, now where the node has joined, else when it has. False, reported,
 * where it is refused; then the old one stays. */
bool shared_node_reconfigure(struct shared_node *n, struct config *config);
/* Whether the configuration of another node has a remote source of this name, as far as nodes
 * reported; one that has not reported yet, or reported too much, may have any. Thread safe, never
 * waits. */
bool shared_node_others_want(struct catalogue *c, const char *source);
/* Takes NULL. */
void shared_node_stop(struct shared_node *n);
