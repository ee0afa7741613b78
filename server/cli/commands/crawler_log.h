/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Access logs of proxies and CDNs, for `crawlers import`: the combined format, and one JSON object
 * a line, gzipped or not. Read as a stream. Internal to server/cli/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/crawler.h"

/* ---- lines ---------------------------------------------------------------------------------- */

/* A request in a log line; texts are valid until the next line is read. */
struct log_fetch {
    int64_t at; /* Unix seconds */
    unsigned status;
    uint64_t bytes;         /* 0 if it is absent */
    const char *method;     /* NULL: absent */
    const char *host;       /* likewise; with a port, as it came */
    const char *target;     /* a path with its query, or a URL */
    const char *user_agent; /* "" if none exists */
    const char *address;    /* of the client; NULL: absent */
};

enum log_line {
    LOG_LINE_FETCH,
    LOG_LINE_NOTHING,    /* blank, or a comment */
    LOG_LINE_UNREADABLE, /* `why` says what is wrong with it */
};

struct log_reader;
/* NULL: out of memory. */
struct log_reader *log_reader_new(void);
void log_reader_free(struct log_reader *r); /* accepts NULL */
/* Parses a line (NUL-terminated, without its end), and modifies it. */
enum log_line log_reader_line(struct log_reader *r, char *line, size_t len, struct log_fetch *out,
                              const char **why);

/* ---- files ---------------------------------------------------------------------------------- */

struct log_file;
/* "-" is standard input. NULL, with errno. */
struct log_file *log_file_open(const char *path);
void log_file_close(struct log_file *f); /* accepts NULL */

enum log_next {
    LOG_NEXT_LINE,
    LOG_NEXT_TOO_LONG, /* a line of more than 64 KiB, which was skipped */
    LOG_NEXT_END,
    LOG_NEXT_DAMAGED, /* the gzip stream is truncated or invalid, or the file cannot be read */
};
/* The next complete line. An incomplete last line is not returned, since it may still be being
 * written; `*rest` at the end: there is one. */
enum log_next log_file_next(struct log_file *f, char **line, size_t *len, bool *rest);
/* The position: uncompressed bytes read, and their hash. */
uint64_t log_file_bytes(const struct log_file *f);
void log_file_hash(const struct log_file *f, uint8_t out[CRAWLER_LOG_HASH]);
