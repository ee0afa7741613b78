/* The log: one line per event on stderr, `text` or `json`. Only server/ code logs; libraries
 * (rules, config, db, ingest, publish) return what happened. Thread safe; each line is one
 * write(2), control characters escaped, so that nothing from outside forges a line. */
#ifndef SITEMAPD_LOG_LOG_H
#define SITEMAPD_LOG_LOG_H

#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

void log_setup(enum log_level level, enum log_format format);
/* Reads "error", "warning", "info", "debug". False for others. */
bool log_level_parse(const char *text, enum log_level *out);
/* `event` is a stable word ("commit-failed"); the rest a sentence for people. */
void log_event(enum log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A start that failed: one line `sitemapd: what: why` on stderr, whatever level and format are,
 * since it speaks to whoever typed the command. */
void log_failure(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* From here on nobody has typed a command: what log_failure tells is an event of this name, at
 * level error. `event` is static. */
void log_failures_as(const char *event);

#endif
