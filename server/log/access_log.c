/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Formats lines of the access log, and reports when its file cannot be written. */
#include "server/log/access_log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/log/log.h"
#include "server/log/log_writer.h"

/* Longest field that a client controls, escapes counted; the rest of the field is left out.
 * Together they are shorter than a line, so that no request can push status, host or agent out of
 * its line. */
#define METHOD_BYTES 32
#define NAME_BYTES   128
#define HOST_BYTES   300
#define PATH_BYTES   1400
#define QUERY_BYTES  600
#define HEADER_BYTES 500

#define REPORT_EVERY_S 60

struct access_log {
    struct log_writer *writer; /* NULL: stderr */
    enum access_format format;
    char *path; /* for messages */
    atomic_uint_least64_t dropped;
    atomic_int_fast64_t report_after; /* Unix time; dropped lines are reported once a minute */
};

static void on_file_state(void *context, bool reopening, int error)
{
    const struct access_log *log = context;

    if (reopening && error == 0)
        log_event(LOG_LEVEL_INFO, "access-log-reopened", "%s", log->path);
    else if (reopening)
        log_event(LOG_LEVEL_ERROR, "access-log-not-reopened",
                  "%s: %s; logging continues to the old file. Make the path writable for this "
                  "process and send SIGUSR1 again",
                  log->path, strerror(error));
    else if (error == 0)
        log_event(LOG_LEVEL_INFO, "access-log-works",
                  "%s is written again; lines dropped since the start: %llu", log->path,
                  (unsigned long long)access_log_dropped(log));
    else
        log_event(LOG_LEVEL_ERROR, "access-log-failed",
                  "%s: %s; lines are dropped until a retry succeeds. Requests are still served. If "
                  "no space is left on the disk, free some",
                  log->path, strerror(error));
}

bool access_log_open(const char *path, enum access_format format, struct access_log **out)
{
    *out = NULL;
    if (path == NULL)
        return true;
    struct access_log *log = calloc(1, sizeof *log);
    if (log == NULL)
        return false;
    log->format = format;
    log->path = strdup(strcmp(path, "-") == 0 ? "stderr" : path);
    struct log_writer_options options = {.path = path, .on_state = on_file_state, .context = log};
    if (log->path != NULL && strcmp(path, "-") != 0)
        log->writer = log_writer_new(&options);
    if (log->path == NULL || (log->writer == NULL && strcmp(path, "-") != 0)) {
        int error = errno;
        access_log_close(log);
        errno = error;
        return false;
    }
    *out = log;
    return true;
}

/* ---- lines ---- */

static void append_escaped(struct line *l, const char *text, size_t max)
{
    if (text == NULL)
        LINE_PUT(l, "-");
    else
        line_append_escaped(l, text, max, LINE_ESCAPE_COMBINED);
}

/* [21/Nov/2026:22:52:20 +0000] */
static void append_bracketed_time(struct line *l, time_t now)
{
    static _Thread_local time_t second = -1;
    static _Thread_local char text[64];
    static _Thread_local size_t len;
    struct tm utc;

    if (second != now) {
        second = now;
        len = strftime(text, sizeof text, " [%d/%b/%Y:%H:%M:%S +0000] \"", gmtime_r(&now, &utc));
    }
    line_append(l, text, len);
}

static void append_combined(struct line *l, const struct access_line *a, const struct timespec *now)
{
    append_escaped(l, a->peer, NAME_BYTES);
    LINE_PUT(l, " - ");
    append_escaped(l, a->token_name, NAME_BYTES);
    append_bracketed_time(l, now->tv_sec);
    append_escaped(l, a->method, METHOD_BYTES);
    LINE_PUT(l, " ");
    append_escaped(l, a->path, PATH_BYTES);
    if (a->query != NULL) {
        LINE_PUT(l, "?");
        append_escaped(l, a->query, QUERY_BYTES);
    }
    LINE_PUT(l, " ");
    append_escaped(l, a->version, METHOD_BYTES);
    LINE_PUT(l, "\" ");
    line_append_number(l, a->status);
    LINE_PUT(l, " ");
    line_append_number(l, a->body_bytes);
    LINE_PUT(l, " \"");
    append_escaped(l, a->referer, HEADER_BYTES);
    LINE_PUT(l, "\" \"");
    append_escaped(l, a->user_agent, HEADER_BYTES);
    line_end(l, "\"\n");
}

/* Appends a word of this program, which needs no escape, as JSON. */
static void append_word(struct line *l, const char *word)
{
    if (word == NULL) {
        LINE_PUT(l, "null");
        return;
    }
    LINE_PUT(l, "\"");
    line_append_text(l, word);
    LINE_PUT(l, "\"");
}

static void append_json(struct line *l, const struct access_line *a, const struct timespec *now)
{
    LINE_PUT(l, "{\"ts\":\"");
    line_append_time(l, now);
    LINE_PUT(l, "\",\"listener\":");
    append_word(l, a->listener);
    LINE_PUT(l, ",\"remote\":");
    line_append_json(l, a->peer, NAME_BYTES);
    LINE_PUT(l, ",\"user\":");
    line_append_json(l, a->token_name, NAME_BYTES);
    LINE_PUT(l, ",\"host\":");
    line_append_json(l, a->host, HOST_BYTES);
    LINE_PUT(l, ",\"method\":");
    line_append_json(l, a->method, METHOD_BYTES);
    LINE_PUT(l, ",\"target\":\"");
    line_append_escaped(l, a->path == NULL ? "-" : a->path, PATH_BYTES, LINE_ESCAPE_JSON);
    if (a->query != NULL) {
        LINE_PUT(l, "?");
        line_append_escaped(l, a->query, QUERY_BYTES, LINE_ESCAPE_JSON);
    }
    LINE_PUT(l, "\",\"protocol\":");
    line_append_json(l, a->version, METHOD_BYTES);
    LINE_PUT(l, ",\"route\":");
    append_word(l, a->route);
    LINE_PUT(l, ",\"status\":");
    line_append_number(l, a->status);
    LINE_PUT(l, ",\"bytes\":");
    line_append_number(l, a->body_bytes);
    LINE_PUT(l, ",\"micros\":");
    line_append_number(l, a->micros);
    LINE_PUT(l, ",\"request_id\":");
    line_append_json(l, a->request_id, NAME_BYTES);
    LINE_PUT(l, ",\"referer\":");
    line_append_json(l, a->referer, HEADER_BYTES);
    LINE_PUT(l, ",\"user_agent\":");
    line_append_json(l, a->user_agent, HEADER_BYTES);
    line_end(l, "}\n");
}

static void count_dropped(struct access_log *log, int64_t now)
{
    int_fast64_t after = atomic_load(&log->report_after);

    atomic_fetch_add_explicit(&log->dropped, 1, memory_order_relaxed);
    if (now >= after &&
        atomic_compare_exchange_strong(&log->report_after, &after, now + REPORT_EVERY_S))
        log_event(LOG_LEVEL_WARNING, "access-log-dropped",
                  "%s is too slow for the rate of requests: lines are dropped and counted "
                  "(sitemapd_access_log_dropped_total). Put it on a faster disk, or turn it off",
                  log->path);
}

void access_log_write(struct access_log *log, const struct access_line *line)
{
    struct timespec now;
    struct line l;

    l.len = 0;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (log->format == ACCESS_JSON)
        append_json(&l, line, &now);
    else
        append_combined(&l, line, &now);
    bool put = log->writer == NULL ? log_write_line(l.text, l.len)
                                   : log_writer_add(log->writer, l.text, l.len, false);
    if (!put)
        count_dropped(log, now.tv_sec);
}

/* ---- the rest ---- */

void access_log_reopen(struct access_log *log)
{
    if (log != NULL && log->writer != NULL)
        log_writer_reopen(log->writer);
}

uint64_t access_log_dropped(const struct access_log *log)
{
    return log == NULL ? 0 : atomic_load_explicit(&log->dropped, memory_order_relaxed);
}

void access_log_close(struct access_log *log)
{
    if (log == NULL)
        return;
    log_writer_free(log->writer);
    free(log->path);
    free(log);
}
