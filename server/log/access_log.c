#include "server/log/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 4096

/* What a field from outside may take, escapes counted; the rest of it is left out. Together less
 * than a line: no request pushes status, host or agent out of its own. */
#define NAME_BYTES   300
#define PATH_BYTES   1400
#define QUERY_BYTES  600
#define HEADER_BYTES 500

struct access_log {
    int fd;
    bool owned;
};

bool access_log_open(const char *path, struct access_log **out)
{
    *out = NULL;
    if (path == NULL)
        return true;
    struct access_log *log = calloc(1, sizeof *log);
    if (log == NULL) {
        errno = ENOMEM;
        return false;
    }
    if (strcmp(path, "-") == 0) {
        log->fd = STDERR_FILENO;
    } else {
        log->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
        log->owned = true;
    }
    if (log->fd < 0) {
        free(log);
        return false;
    }
    *out = log;
    return true;
}

struct line {
    char text[LINE_BYTES];
    size_t len;
};

static void put(struct line *l, const char *text)
{
    size_t len = strlen(text);
    size_t room = sizeof l->text - 1 - l->len; /* one is kept for the newline */
    if (len > room)
        len = room;
    memcpy(l->text + l->len, text, len);
    l->len += len;
}

/* Text from outside, at most `max` bytes of it. */
static void put_escaped(struct line *l, const char *text, size_t max)
{
    size_t end = l->len + max;

    if (text == NULL)
        text = "-";
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        char piece[5] = {(char)c, '\0'};
        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
            snprintf(piece, sizeof piece, "\\x%02X", c);
        if (l->len + strlen(piece) > end)
            return;
        put(l, piece);
    }
}

void access_log_write(struct access_log *log, const struct access_line *line)
{
    if (log == NULL)
        return;
    struct line l;
    char text[64];
    struct tm tm;
    time_t now = time(NULL);
    l.len = 0;
    put_escaped(&l, line->peer, NAME_BYTES);
    put(&l, " - ");
    put_escaped(&l, line->token_name, NAME_BYTES);
    strftime(text, sizeof text, " [%d/%b/%Y:%H:%M:%S +0000] \"", gmtime_r(&now, &tm));
    put(&l, text);
    put_escaped(&l, line->method, NAME_BYTES);
    put(&l, " ");
    put_escaped(&l, line->path, PATH_BYTES);
    if (line->query != NULL) {
        put(&l, "?");
        put_escaped(&l, line->query, QUERY_BYTES);
    }
    snprintf(text, sizeof text, "\" %u %llu \"", line->status,
             (unsigned long long)line->body_bytes);
    put(&l, text);
    put_escaped(&l, line->referer, HEADER_BYTES);
    put(&l, "\" \"");
    put_escaped(&l, line->user_agent, HEADER_BYTES);
    put(&l, "\" \"");
    put_escaped(&l, line->host, NAME_BYTES);
    snprintf(text, sizeof text, "\" %lluus", (unsigned long long)line->micros);
    put(&l, text);
    l.text[l.len++] = '\n';
    /* A full disk costs lines of the log, never a reply. */
    ssize_t written = write(log->fd, l.text, l.len);
    (void)written;
}

void access_log_close(struct access_log *log)
{
    if (log == NULL)
        return;
    if (log->owned)
        close(log->fd);
    free(log);
}
