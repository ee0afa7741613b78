#include "server/log/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_SIZE    4096 /* PIPE_BUF: a write up to this is whole among others' (pipe(7)) */
#define MESSAGE_SIZE 2048

static const char *const level_words[] = {"error", "warning", "info", "debug"};

static atomic_int current_level = LOG_LEVEL_INFO;
static atomic_int current_format = LOG_FORMAT_TEXT;
static _Atomic(const char *) failure_event; /* NULL: a start's */

/* A line that is being put together. What finds no room is left out; the end always does. */
struct line {
    char text[LINE_SIZE];
    size_t len;
};

#define LINE_RESERVE 4 /* for `"}` and the newline */

static void put(struct line *l, const char *bytes, size_t len)
{
    if (l->len + len <= sizeof l->text - LINE_RESERVE) {
        memcpy(l->text + l->len, bytes, len);
        l->len += len;
    }
}

static void put_text(struct line *l, const char *text)
{
    put(l, text, strlen(text));
}

/* The length of the UTF-8 character at `s` (RFC 3629), 0 where it is none. */
static size_t char_len(const unsigned char *s)
{
    size_t len = s[0] < 0x80   ? 1
                 : s[0] < 0xc2 ? 0
                 : s[0] < 0xe0 ? 2
                 : s[0] < 0xf0 ? 3
                 : s[0] < 0xf5 ? 4
                               : 0;

    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0; /* also stops at the NUL */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return len;
}

/* C0, DEL and C1 (a terminal obeys those too). */
static bool is_control(const unsigned char *s, size_t len)
{
    return s[0] < ' ' || s[0] == 0x7f || (len == 2 && s[0] == 0xc2 && s[1] < 0xa0);
}

/* Puts text from outside in, so that it can neither end the line nor speak to a terminal. */
static void put_escaped(struct line *l, const char *text, enum log_format format)
{
    const unsigned char *s = (const unsigned char *)text;
    char escape[8];

    while (*s != '\0') {
        size_t len = char_len(s);

        if (len == 0) {
            snprintf(escape, sizeof escape, format == LOG_FORMAT_JSON ? "\\ufffd" : "\\x%02x", *s);
            put_text(l, escape);
            s++;
            continue;
        }
        if (is_control(s, len)) {
            unsigned code = len == 2 ? s[1] : s[0];

            if (format == LOG_FORMAT_JSON)
                snprintf(escape, sizeof escape, "\\u%04x", code);
            else
                snprintf(escape, sizeof escape, "\\x%02x", code);
            put_text(l, escape);
        } else if (*s == '\\' || (format == LOG_FORMAT_JSON && *s == '"')) {
            escape[0] = '\\';
            escape[1] = (char)*s;
            put(l, escape, 2);
        } else {
            put(l, (const char *)s, len);
        }
        s += len;
    }
}

static void put_time(struct line *l)
{
    struct timespec now;
    struct tm utc;
    char text[64];
    size_t len;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    len = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text + len, sizeof text - len, ".%03ldZ", now.tv_nsec / 1000000);
    put_text(l, text);
}

static void write_whole(const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, bytes, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* there is nowhere to tell */
        bytes += n;
        len -= (size_t)n;
    }
}

void log_setup(enum log_level level, enum log_format format)
{
    atomic_store(&current_level, (int)level);
    atomic_store(&current_format, (int)format);
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

void log_event(enum log_level level, const char *event, const char *format, ...)
{
    enum log_format style = (enum log_format)atomic_load(&current_format);
    int saved_errno = errno; /* callers log first and return errno afterwards */
    char message[MESSAGE_SIZE];
    struct line l = {.len = 0};
    va_list args;

    if ((int)level > atomic_load(&current_level))
        return;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (style == LOG_FORMAT_JSON) {
        put_text(&l, "{\"time\":\"");
        put_time(&l);
        put_text(&l, "\",\"level\":\"");
        put_text(&l, level_words[level]);
        put_text(&l, "\",\"event\":\"");
        put_escaped(&l, event, style);
        put_text(&l, "\",\"message\":\"");
        put_escaped(&l, message, style);
        memcpy(l.text + l.len, "\"}\n", 3);
        l.len += 3;
    } else {
        put_time(&l);
        put_text(&l, " ");
        put_text(&l, level_words[level]);
        put_text(&l, " ");
        put_escaped(&l, event, style);
        put_text(&l, ": ");
        put_escaped(&l, message, style);
        memcpy(l.text + l.len, "\n", 1);
        l.len++;
    }
    write_whole(l.text, l.len);
    errno = saved_errno;
}

void log_failure(const char *what, const char *format, ...)
{
    char message[MESSAGE_SIZE];
    struct line l = {.len = 0};
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const char *event = atomic_load(&failure_event);
    if (event != NULL) {
        log_event(LOG_LEVEL_ERROR, event, "%s: %s", what, message);
        return;
    }
    put_text(&l, "sitemapd: ");
    put_escaped(&l, what, LOG_FORMAT_TEXT);
    put_text(&l, ": ");
    put_escaped(&l, message, LOG_FORMAT_TEXT);
    l.text[l.len++] = '\n';
    write_whole(l.text, l.len);
}

void log_failures_as(const char *event)
{
    atomic_store(&failure_event, event);
}
