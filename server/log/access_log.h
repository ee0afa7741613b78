/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The access log: one line for each answered request. `combined` is the format of that name that
 * Apache and nginx write, to the letter; `json` has more. What comes from outside is escaped, so
 * that no request forges a line; tokens and the Authorization header never are in it. A caller
 * that writes a line waits for nobody: where the file takes none for a while, lines are dropped,
 * counted, and the log says so. Lines of several threads may be a tenth of a second out of order.
 */
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

/* `path`: NULL for none (then *out is NULL), "-" for stderr (log_start comes first), or a file that
 * is appended to (0640). False with errno where it cannot be opened. */
bool access_log_open(const char *path, enum access_format format, struct access_log **out);
/* Any thread, no lock. */
void access_log_write(struct access_log *log, const struct access_line *line);
/* Opens the file again: it was moved away. Takes NULL. */
void access_log_reopen(struct access_log *log);
/* Lines that were dropped, since the start. Takes NULL. */
uint64_t access_log_dropped(const struct access_log *log);
/* Writes what is left; nobody may write any more. Takes NULL. */
void access_log_close(struct access_log *log);
