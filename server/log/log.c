/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Formats log lines and passes them to the writer's thread. */
#include "server/log/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/log/log_writer.h"

#define MESSAGE_BYTES 2048

static const char *const level_words[] = {"error", "warning", "info", "debug"};
/* Priorities of the journal, as syslog numbers them (sd-daemon(3)). */
static const char *const priorities[] = {"<3>", "<4>", "<6>", "<7>"};

static atomic_int current_level = LOG_LEVEL_INFO;
static atomic_int current_format = LOG_FORMAT_TEXT;
static pthread_mutex_t failure_lock = PTHREAD_MUTEX_INITIALIZER;
static char first_failure[512];             /* guarded by it */
static _Atomic(const char *) failure_event; /* NULL: log_failure prints for the user of a command */
static atomic_bool to_journal;
static struct log_writer *_Atomic writer; /* NULL: the calling thread writes */
static atomic_uint_least64_t dropped;

/* JOURNAL_STREAM names device and inode of the socket that systemd passed. If stderr was replaced
 * since, it is not the journal (systemd.exec(5)). */
static bool stderr_is_journal(void)
{
    const char *text = getenv("JOURNAL_STREAM");
    struct stat about;
    char own[64];

    if (text == NULL || fstat(STDERR_FILENO, &about) != 0)
        return false;
    snprintf(own, sizeof own, "%ju:%ju", (uintmax_t)about.st_dev, (uintmax_t)about.st_ino);
    return strcmp(text, own) == 0;
}

void log_setup(enum log_level level, enum log_format format)
{
    atomic_store(&current_level, (int)level);
    atomic_store(&current_format, (int)format);
    atomic_store(&to_journal, stderr_is_journal());
}

bool log_level_parse(const char *text, enum log_level *out)
{
    for (size_t i = 0; i < sizeof level_words / sizeof *level_words; i++) {
        if (strcmp(text, level_words[i]) == 0) {
            *out = (enum log_level)i;
            return true;
        }
    }
    return false;
}

void log_start(void)
{
    struct log_writer_options options = {.fd = STDERR_FILENO};

    atomic_store(&writer, log_writer_new(&options));
}

void log_flush(void)
{
    struct log_writer *w = atomic_load(&writer);

    if (w != NULL)
        log_writer_flush(w);
}

void log_stop(void)
{
    log_writer_free(atomic_exchange(&writer, NULL));
}

uint64_t log_dropped(void)
{
    return atomic_load_explicit(&dropped, memory_order_relaxed);
}

/* A stderr that nobody reads must not block a start: a pipe that polls as writable takes a line
 * without waiting (pipe(7)). */
static void write_whole(const char *bytes, size_t len)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

    while (len > 0 && poll(&p, 1, LOG_WRITER_PATIENCE_MS) != 0) {
        ssize_t n = write(STDERR_FILENO, bytes, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* there is nowhere to report it */
        bytes += n;
        len -= (size_t)n;
    }
}

static bool send_line(const char *line, size_t len, bool urgent)
{
    struct log_writer *w = atomic_load(&writer);

    if (w == NULL) {
        write_whole(line, len);
        return true;
    }
    if (log_writer_add(w, line, len, urgent))
        return true;
    atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
    return false;
}

bool log_write_line(const char *line, size_t len)
{
    return send_line(line, len, false);
}

static void append_json(struct line *l, enum log_level level, const char *event,
                        const struct log_ids *ids, const char *message, const struct timespec *now)
{
    LINE_PUT(l, "{\"time\":\"");
    line_append_time(l, now);
    LINE_PUT(l, "\",\"level\":");
    line_append_json(l, level_words[level], LINE_BYTES);
    LINE_PUT(l, ",\"event\":");
    line_append_json(l, event, LINE_BYTES);
    if (ids->request_id != NULL) {
        LINE_PUT(l, ",\"request_id\":");
        line_append_json(l, ids->request_id, LINE_BYTES);
    }
    if (ids->trace_id != NULL) {
        LINE_PUT(l, ",\"trace_id\":\"");
        line_append(l, ids->trace_id, LOG_TRACE_ID_CHARS);
        LINE_PUT(l, "\"");
    }
    LINE_PUT(l, ",\"message\":\"");
    line_append_escaped(l, message, LINE_BYTES, LINE_ESCAPE_JSON);
    line_end(l, "\"}\n");
}

static void append_text(struct line *l, enum log_level level, const char *event,
                        const struct log_ids *ids, const char *message, const struct timespec *now)
{
    if (!atomic_load(&to_journal)) {
        line_append_time(l, now);
        line_append_text(l, " ");
    }
    line_append_text(l, level_words[level]);
    line_append_text(l, " ");
    line_append_escaped(l, event, LINE_BYTES, LINE_ESCAPE_TEXT);
    line_append_text(l, ": ");
    line_append_escaped(l, message, LINE_BYTES, LINE_ESCAPE_TEXT);
    if (ids->request_id != NULL) {
        line_append_text(l, " (request ");
        line_append_escaped(l, ids->request_id, LINE_BYTES, LINE_ESCAPE_TEXT);
        line_append_text(l, ")");
    }
    if (ids->trace_id != NULL) {
        line_append_text(l, " (trace ");
        line_append(l, ids->trace_id, LOG_TRACE_ID_CHARS);
        line_append_text(l, ")");
    }
    line_end(l, "\n");
}

__attribute__((format(printf, 4, 0))) static void put_event(enum log_level level, const char *event,
                                                            const struct log_ids *ids,
                                                            const char *format, va_list args)
{
    int saved_errno = errno; /* callers log first and return errno afterwards */
    char message[MESSAGE_BYTES];
    struct timespec now;
    struct line l;

    if ((int)level > atomic_load(&current_level))
        return;
    l.len = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    vsnprintf(message, sizeof message, format, args);
    if (atomic_load(&to_journal))
        line_append_text(&l, priorities[level]);
    if (atomic_load(&current_format) == LOG_FORMAT_JSON)
        append_json(&l, level, event, ids, message, &now);
    else
        append_text(&l, level, event, ids, message, &now);
    send_line(l.text, l.len, true);
    errno = saved_errno;
}

void log_event(enum log_level level, const char *event, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    put_event(level, event, &(struct log_ids){0}, format, args);
    va_end(args);
}

void log_request(enum log_level level, const char *event, const struct log_ids *ids,
                 const char *format, ...)
{
    va_list args;

    va_start(args, format);
    put_event(level, event, ids, format, args);
    va_end(args);
}

void log_failure(const char *what, const char *format, ...)
{
    char message[MESSAGE_BYTES];
    struct line l = {.len = 0};
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const char *event = atomic_load(&failure_event);
    if (event != NULL) {
        log_event(LOG_LEVEL_ERROR, event, "%s: %s", what, message);
        pthread_mutex_lock(&failure_lock);
        if (first_failure[0] == '\0')
            snprintf(first_failure, sizeof first_failure, "%.100s: %.400s", what, message);
        pthread_mutex_unlock(&failure_lock);
        return;
    }
    if (atomic_load(&to_journal))
        line_append_text(&l, priorities[LOG_LEVEL_ERROR]);
    line_append_text(&l, "sitemapd: ");
    line_append_escaped(&l, what, LINE_BYTES, LINE_ESCAPE_TEXT);
    line_append_text(&l, ": ");
    line_append_escaped(&l, message, LINE_BYTES, LINE_ESCAPE_TEXT);
    line_end(&l, "\n");
    send_line(l.text, l.len, true);
}

void log_failures_as(const char *event)
{
    atomic_store(&failure_event, event);
    pthread_mutex_lock(&failure_lock);
    first_failure[0] = '\0';
    pthread_mutex_unlock(&failure_lock);
}

void log_first_failure(char *out, size_t size)
{
    pthread_mutex_lock(&failure_lock);
    snprintf(out, size, "%s", first_failure);
    pthread_mutex_unlock(&failure_lock);
}
