/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What is recorded about each request: a line of the access log, a log line if the server itself
 * failed, and the crawlers' ledger. */
#pragma once

#include <stdbool.h>

#include "config/config.h"
#include "server/log/access_log.h"

/* Opens the configured access log; *out is NULL if it is off. False, logged: it cannot be opened.
 */
bool request_log_open(const struct config *config, struct access_log **out);

struct completion;
/* The listeners' `completed` hooks (context: struct app_context). */
void request_log_public(void *context, const struct completion *completion);
void request_log_admin(void *context, const struct completion *completion);
/* The listeners' `spoke_plain` hook: a line, at most once a minute. Any thread. */
void request_log_plain(void *context, const char *peer);
