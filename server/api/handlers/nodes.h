/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The nodes of a shared catalogue, as /readyz lists them, and what each reports about itself to the
 * others: a configuration that differs from theirs, a folder that it does not have. Internal to
 * server/; server.c supplies it, the API shows it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "db/shared.h"
#include "server/base/str.h"

/* Names of one kind that a node says: "sites" and "tokens" that its configuration declares,
 * "without": folder sources whose folder is not there; "remotes": remote sources. Origins and
 * names, which JSON needs not escape. */
void nodes_say_names(struct str *out, const char *kind, const char *const *names, size_t count);
/* Calls `each` for every name of the kind. False where the node said more than fits: then it may be
 * any. */
bool nodes_read_names(const char *said, const char *kind,
                      void (*each)(void *context, const char *name, size_t len), void *context);

/* Whether nothing is here yet that could be served. */
bool nodes_is_joining(struct catalogue *c);
/* Adds to an array of reasons what is wrong with this node or shows between the nodes; each is
 * reported by `add`. False where nothing can be served yet: it has not joined. */
bool nodes_report_reasons(struct catalogue *c,
                          void (*add)(void *context, const char *code, const char *detail),
                          void *context);
/* `,"shared":{…}`: this node and the others, for people. Nothing where it is not shared. */
void nodes_append(struct str *out, struct catalogue *c);
