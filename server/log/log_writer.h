/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A bounded ring of lines: any number of threads put lines in without waiting for anybody, one
 * thread takes them out. Where there is no room a line is refused: the caller never waits.
 *
 * Invariants:
 * 1. `taken` <= `put` <= `taken` + RING_BYTES; only the taker moves `taken`.
 * 2. A line lies behind a word that holds its length + 1. The word is 0 from the reservation to
 *    the moment when the line is whole; so every byte outside of lines is 0.
 * 3. A line's place belongs to who reserved it until the word is set, then to the taker. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* A line that is being put together. What finds no room is left out, its end always does. Text
 * from outside goes through an escape, so that it can neither end the line nor speak to a terminal.
 */

#define LINE_BYTES   4096 /* PIPE_BUF: a write up to this is whole among others' (pipe(7)) */
#define LINE_RESERVE 4    /* of it, for what line_end puts */

struct line {
    size_t len;
    char text[LINE_BYTES];
};

enum line_escape {
    LINE_ESCAPE_TEXT,     /* for people: UTF-8 stays; controls and invalid UTF-8: \xhh */
    LINE_ESCAPE_COMBINED, /* as web servers do: all but visible ASCII, quotes, \: \xHH */
    LINE_ESCAPE_JSON,     /* within quotes; invalid UTF-8: \ufffd */
};

/* Inline: most of a line is pieces of known length. */
static inline void line_append(struct line *l, const char *bytes, size_t len)
{
    if (l->len + len <= sizeof l->text - LINE_RESERVE) {
        memcpy(l->text + l->len, bytes, len);
        l->len += len;
    }
}
/* A literal. */
#define LINE_PUT(l, literal) line_append((l), "" literal, sizeof(literal) - 1)
void line_append_text(struct line *l, const char *text);
void line_append_number(struct line *l, uint64_t number);
/* At most `max` bytes, escapes counted; the rest of `text` is left out. */
void line_append_escaped(struct line *l, const char *text, size_t max, enum line_escape escape);
/* "value", or null for a NULL value: JSON. */
void line_append_json(struct line *l, const char *value, size_t max);
/* 2026-11-21T22:52:20.123Z */
void line_append_time(struct line *l, const struct timespec *time);
/* Puts `end` (at most 3 bytes, the newline last) behind it, for which there is always room. */
void line_end(struct line *l, const char *end);

#define RING_BYTES    (1024u * 1024)
#define RING_MAX_LINE 4096u

struct ring {
    _Alignas(64) atomic_uint_least64_t put; /* bytes reserved since ever */
    _Alignas(64) atomic_uint_least64_t taken;
    _Alignas(64) unsigned char bytes[RING_BYTES];
};

/* Puts a line of 1 to RING_MAX_LINE bytes in; false where there is no room. Any thread, no lock.
 * Sequentially consistent: who puts a line and then sees the taker asleep is seen by a taker who
 * says that it sleeps and then looks here. */
bool ring_add(struct ring *r, const char *line, size_t len);
/* Takes whole lines out, as many as `room` bytes hold; the bytes taken. 0 also where the next line
 * is not whole yet. One thread at a time. */
size_t ring_remove(struct ring *r, char *out, size_t room);
/* Bytes that are reserved and not taken; any thread. */
size_t ring_used(const struct ring *r);

/* Writes lines to a file from a thread of its own, in large pieces, so that nobody who has
 * something to log waits for a disk or a reader. Lines go through rings, one for few threads each;
 * those of one thread keep their order. A line finds no room where the file takes none for a while:
 * it is dropped, and the caller is notified. */

/* A line that is not urgent waits so long for others, to be written with them. */
#define LOG_WRITER_LINGER_MS 100u
/* How long a stop and a flush go on trying where the file takes nothing. */
#define LOG_WRITER_PATIENCE_MS 2000u

struct log_writer;

struct log_writer_options {
    /* The file to append to, made where it is missing (0640); NULL: `fd`, which is not closed. */
    const char *path;
    int fd;
    /* Called by the writer's thread where a write or a reopening fails (`error` is an errno), once
     * until it works again, and then with 0. `reopening`: which of the two. May be NULL. */
    void (*on_state)(void *context, bool reopening, int error);
    void *context;
};

/* Opens the file and starts the thread. NULL with errno. */
struct log_writer *log_writer_new(const struct log_writer_options *options);
/* Takes a whole line, its newline included, of at most RING_MAX_LINE bytes. Never waits, any
 * thread. `urgent`: it is written at once. False where it was dropped. */
bool log_writer_add(struct log_writer *w, const char *line, size_t len, bool urgent);
/* Has the path opened again, soon and by the thread: logrotate has moved the file away. Where that
 * fails the file that is open is kept. Nothing without a path. */
void log_writer_reopen(struct log_writer *w);
/* Waits until what was put before is written, at most LOG_WRITER_PATIENCE_MS. */
void log_writer_flush(struct log_writer *w);
/* Writes what is left, as log_writer_flush does, and ends the thread. Nobody may put any more.
 * Takes NULL. */
void log_writer_free(struct log_writer *w);
