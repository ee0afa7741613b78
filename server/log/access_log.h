/* The access log: one line for each answered request, in the combined format with the time taken
 * behind it. Control characters, quotes and backslashes are escaped (\xHH), so that no request
 * forges a line; tokens and the Authorization header never stand in it. Thread safe. */
#ifndef SITEMAPD_LOG_ACCESS_LOG_H
#define SITEMAPD_LOG_ACCESS_LOG_H

#include <stdbool.h>
#include <stdint.h>

struct access_log;

/* NULL texts are written as "-". All borrowed. */
struct access_line {
    const char *peer, *host, *method, *path, *query, *referer, *user_agent, *token_name;
    unsigned status;
    uint64_t body_bytes;
    uint64_t micros;
};

/* `path`: NULL for none (then *out is NULL), "-" for stderr, or a file that is appended to (0640).
 * False with errno where it cannot be opened. */
bool access_log_open(const char *path, struct access_log **out);
/* One write(2); takes a NULL log. */
void access_log_write(struct access_log *log, const struct access_line *line);
/* Takes NULL. */
void access_log_close(struct access_log *log);

#endif
