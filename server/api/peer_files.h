/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sends the catalogue's file to another node that joins a shared catalogue: GET
 * /peer/snapshot?epoch=E with the token of the nodes. See peer_files.c. */
#pragma once

#include "server/api/routes.h"

/* `app` is borrowed: its catalogue, its database. NULL: no memory, no thread. */
struct peer_files *peer_files_new(const struct app_context *app);
/* Ends its thread. No request may be in progress. Accepts NULL. */
void peer_files_free(struct peer_files *p);

/* The route's hooks. */
enum handled peer_snapshot_begin(void *context, struct request *request);
enum handled peer_snapshot_get(void *context, struct request *request);
void peer_snapshot_done(void *context, struct request *request);
