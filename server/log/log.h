/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The log: one line per event on stderr, `text` or `json`. Only server/ code logs; libraries
 * (rules, config, db, input, pages) return what happened. Thread safe; control characters are
 * escaped, so that nothing from outside forges a line.
 *
 * Between log_start and log_stop a thread writes the lines, at once, and callers never wait for
 * stderr. Before and after, the calling thread writes them, and waits two seconds at most. If
 * stderr is the journal (systemd.exec(5), JOURNAL_STREAM), lines begin with their priority, `<4>`
 * (sd-daemon(3)), and a text line has no time: the journal keeps both. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

void log_setup(enum log_level level, enum log_format format);
/* Reads "error", "warning", "info", "debug". False for others. */
bool log_level_parse(const char *text, enum log_level *out);

/* Starts the thread. If that fails, callers continue to write their lines themselves. */
void log_start(void);
/* Waits until earlier lines are written, two seconds at most. */
void log_flush(void);
/* Writes the remaining lines and ends the thread. No other thread may log from then on. */
void log_stop(void);
/* Lines dropped since the start because stderr had no room. */
uint64_t log_dropped(void);

/* `event` is a stable word ("commit-failed"); the rest a sentence for people: what, where, and what
 * to do. */
void log_event(enum log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define LOG_TRACE_ID_CHARS 32
/* The ids of the request that a line is about. */
struct log_ids {
    const char *request_id; /* NULL: none */
    const char *trace_id;   /* LOG_TRACE_ID_CHARS of hex, without a NUL; NULL: none */
};
void log_request(enum log_level level, const char *event, const struct log_ids *ids,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));
/* A failed start: prints one line `sitemapd: what: why` on stderr, whatever level and format are,
 * for the user of the command. */
void log_failure(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For a process without a user who watches its start: from here on log_failure logs an event of
 * this name, at level error. `event` is static. */
void log_failures_as(const char *event);
/* The first failure that was logged since then; "": none. */
void log_first_failure(char *out, size_t size);

/* For the access log on stderr: writes a whole line, at most LINE_BYTES, possibly a little later
 * together with others. False if it was dropped. */
bool log_write_line(const char *line, size_t len);
