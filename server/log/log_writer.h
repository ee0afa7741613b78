/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A bounded ring of lines: any number of threads add lines without waiting, and one thread, the
 * taker, removes them. A line for which there is no room is dropped.
 *
 * Invariants:
 * 1. `taken` <= `put` <= `taken` + RING_BYTES; only the taker moves `taken`.
 * 2. A line follows a word that holds its length + 1. The word is 0 from the reservation until the
 *    line is complete. Every byte outside of lines is 0.
 * 3. A line's place belongs to the thread that reserved it until the word is set, then to the
 *    taker. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* A line that is being built. A part that does not fit is left out; its end (line_end) always fits.
 * Text from outside is escaped, so that it can neither end the line nor control a terminal. */

#define LINE_BYTES   4096 /* PIPE_BUF: no longer write is atomic (pipe(7)) */
#define LINE_RESERVE 4    /* of these, for line_end */

struct line {
    size_t len;
    char text[LINE_BYTES];
};

enum line_escape {
    LINE_ESCAPE_TEXT,     /* for people: UTF-8 stays; controls and invalid UTF-8: \xhh */
    LINE_ESCAPE_COMBINED, /* as web servers do: quotes, \ and all but visible ASCII as \xHH */
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
/* Appends a string literal. */
#define LINE_PUT(l, literal) line_append((l), "" literal, sizeof(literal) - 1)
void line_append_text(struct line *l, const char *text);
void line_append_number(struct line *l, uint64_t number);
/* At most `max` bytes, escapes counted; the rest of `text` is left out. */
void line_append_escaped(struct line *l, const char *text, size_t max, enum line_escape escape);
/* "value", or null for a NULL value: JSON. */
void line_append_json(struct line *l, const char *value, size_t max);
/* 2026-11-21T22:52:20.123Z */
void line_append_time(struct line *l, const struct timespec *time);
/* Appends `end` (at most 3 bytes, the newline last), for which there is always room. */
void line_end(struct line *l, const char *end);

#define RING_BYTES    (1024u * 1024)
#define RING_MAX_LINE 4096u

struct ring {
    _Alignas(64) atomic_uint_least64_t put; /* bytes ever reserved */
    _Alignas(64) atomic_uint_least64_t taken;
    _Alignas(64) unsigned char bytes[RING_BYTES];
};

/* Adds a line of 1 to RING_MAX_LINE bytes; false if there is no room. Any thread, no lock.
 * Sequentially consistent, so that no line is overlooked where a caller adds a line and then checks
 * whether the taker sleeps, and the taker announces its sleep and then checks for lines. */
bool ring_add(struct ring *r, const char *line, size_t len);
/* Removes whole lines, as many as fit into `room` bytes. Returns the bytes removed; 0 also if the
 * next line is not complete yet. One thread at a time. */
size_t ring_remove(struct ring *r, char *out, size_t room);
/* Bytes that are reserved and not removed; any thread. */
size_t ring_used(const struct ring *r);

/* The log writer: a thread that writes lines to a file, in large pieces, so that no caller waits
 * for a disk or a reader. Lines go through rings, each shared by a few threads; the lines of one
 * thread keep their order. While the file accepts nothing the rings fill, and log_writer_add drops
 * lines. */

/* How long a line that is not urgent waits, to be written together with others. */
#define LOG_WRITER_LINGER_MS 100u
/* How long a stop or a flush keeps trying while the file accepts nothing. */
#define LOG_WRITER_PATIENCE_MS 2000u

struct log_writer;

struct log_writer_options {
    /* The file to append to, created if it is missing (0640); NULL: `fd`, which is not closed. */
    const char *path;
    int fd;
    /* Called by the writer's thread with the result of each reopening (`reopening`), and when
     * writing begins to fail or works again. `error`: an errno, or 0. May be NULL. */
    void (*on_state)(void *context, bool reopening, int error);
    void *context;
};

/* Opens the file and starts the thread. NULL with errno. */
struct log_writer *log_writer_new(const struct log_writer_options *options);
/* Adds a whole line, its newline included, of at most RING_MAX_LINE bytes. Never waits, any thread.
 * `urgent`: it is written at once. False if it was dropped. */
bool log_writer_add(struct log_writer *w, const char *line, size_t len, bool urgent);
/* Makes the thread open the path again, since logrotate has moved the file away. If that fails, the
 * open file is kept. Without a path it does nothing. */
void log_writer_reopen(struct log_writer *w);
/* Waits until the lines added before are written or the file fails, at most LOG_WRITER_PATIENCE_MS.
 */
void log_writer_flush(struct log_writer *w);
/* Writes the remaining lines, as log_writer_flush does, and ends the thread. Nobody may add lines
 * any more. Accepts NULL. */
void log_writer_free(struct log_writer *w);
