/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The access log: one line for each answered request. `combined` is exactly the format of that name
 * of Apache and nginx; `json` has more. Text from outside is escaped, so that no request forges a
 * line. Tokens and the Authorization header are never logged. Callers never wait: while the file
 * accepts nothing, lines are dropped and counted, and the log reports it. Lines of several threads
 * may be a tenth of a second out of order. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct access_log;

enum access_format { ACCESS_COMBINED, ACCESS_JSON };

/* NULL texts are written as "-" or null. All borrowed. */
struct access_line {
    const char *peer, *host, *method, *path, *query, *version, *referer, *user_agent, *token_name;
    const char *request_id, *listener, *route;
    unsigned status;
    uint64_t body_bytes;
    uint64_t micros;
};

/* `path`: NULL for no access log (*out is then NULL), "-" for stderr (call log_start first), or a
 * file to append to (0640). False with errno if it cannot be opened. */
bool access_log_open(const char *path, enum access_format format, struct access_log **out);
/* Any thread, no lock. */
void access_log_write(struct access_log *log, const struct access_line *line);
/* Opens the file again, since it was moved away. Accepts NULL. */
void access_log_reopen(struct access_log *log);
/* Lines that were dropped, since the start. Accepts NULL. */
uint64_t access_log_dropped(const struct access_log *log);
/* Writes the remaining lines. Nobody may write any more. Accepts NULL. */
void access_log_close(struct access_log *log);
