/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Logs of requests: an access log line for each, a log line for each that failed in the server
 * itself, and the ledger of crawlers. */
#pragma once

#include <stdbool.h>

#include "config/config.h"
#include "server/log/access_log.h"

/* Opens the access log that the configuration names; *out is NULL where it is off. False where it
 * cannot be opened, which is logged. */
bool request_log_open(const struct config *config, struct access_log **out);

struct completion;
/* The listeners' `completed` hooks (context: struct app_context). */
void request_log_public(void *context, const struct completion *completion);
void request_log_admin(void *context, const struct completion *completion);
/* The listeners' `spoke_plain` hook: a line, at most once a minute. Any thread. */
void request_log_plain(void *context, const char *peer);
