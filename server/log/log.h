/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The log: one line per event on stderr, `text` or `json`. Only server/ code logs; libraries
 * (rules, config, db, input, pages) return what happened. Thread safe; control characters are
 * escaped, so that nothing from outside forges a line.
 *
 * Between log_start and log_stop lines are written by a thread of its own, at once, and nobody who
 * logs waits for stderr; before and after by who logs, who waits for two seconds at most. Where
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

/* Starts the thread. Where that fails, lines go on being written by who logs. */
void log_start(void);
/* Waits until the lines of before are written (a few seconds at most). */
void log_flush(void);
/* Writes what is left and ends the thread; no other thread may log any more. */
void log_stop(void);
/* Lines that stderr had no room for, since the start. */
uint64_t log_dropped(void);

/* `event` is a stable word ("commit-failed"); the rest a sentence for people: what, where, and what
 * to do. */
void log_event(enum log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define LOG_TRACE_ID_CHARS 32
/* The same about a request. */
struct log_ids {
    const char *request_id; /* NULL: none */
    const char *trace_id;   /* LOG_TRACE_ID_CHARS of hex, without a NUL; NULL: none */
};
void log_request(enum log_level level, const char *event, const struct log_ids *ids,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));
/* A start that failed: one line `sitemapd: what: why` on stderr, whatever level and format are,
 * since it speaks to the user of the command. */
void log_failure(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* From here on nobody has typed a command: what log_failure reports is an event of this name, at
 * level error. `event` is static. */
void log_failures_as(const char *event);

/* For the access log on stderr: a whole line, at most LINE_BYTES, that may linger. False where it
 * was dropped. */
bool log_write_line(const char *line, size_t len);
