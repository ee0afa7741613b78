/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A node of a shared catalogue, or a follower, sends the log to its followers:
 *
 *     GET /peer/log                                           where the log is, and no record
 *     GET /peer/log?from=N&chain=HEX[&epoch=E][&max=BYTES][&wait=MS]
 *
 * with the token of the nodes. `from` and `chain` are the last record that the follower has. Newer
 * records are sent at once, at least one, and no more than `max` bytes; if none exists, the
 * request waits for one. 409 other-catalogue, 409 diverged, 410 log-trimmed: the follower is to
 * copy the file (peer_files.h). See peer_log.c. */
#pragma once

#include "server/api/routes.h"

/* `app` is borrowed: its catalogue. NULL: no memory, no thread. */
struct peer_log *peer_log_new(const struct app_context *app);
/* The server is stopping (app->stopping): all waiting and later requests are answered soon. Accepts
 * NULL. */
void peer_log_quiesce(struct peer_log *p);
/* Ends its thread. No request may be in progress. Accepts NULL. */
void peer_log_free(struct peer_log *p);

/* The route's hooks. */
enum handled peer_log_begin(void *context, struct request *request);
enum handled peer_log_get(void *context, struct request *request);
void peer_log_done(void *context, struct request *request);
