/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A lock-free ring of lines, and the thread that writes them to a file or descriptor. */
#include "server/log/log_writer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/str.h"
#include "server/base/text.h"
#include "server/base/thread.h"

/* Builds one line of bounded length, with escapes. */

void line_append_text(struct line *l, const char *text)
{
    line_append(l, text, strlen(text));
}

void line_append_number(struct line *l, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    line_append(l, digits + at, sizeof digits - at);
}

/* ---- escapes ---- */

/* Whether one of eight bytes may need an escape: a control character, a quote, a backslash, or not
 * ASCII. Uses carries between the bytes, which can only turn a false into a true. */
static bool is_special(uint64_t eight)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    uint64_t quote = eight ^ ones * '"', backslash = eight ^ ones * '\\', del = eight ^ ones * 0x7f;

    return ((eight | (eight - ones * 0x20) | (quote - ones) | (backslash - ones) | (del - ones)) &
            highs) != 0;
}

/* Copies four to seven plain bytes, as copy_plain does: the last four may overlap the first. */
static size_t copy_plain_short(char *out, const char *s, size_t len)
{
    uint32_t first, last;

    if (len < sizeof first)
        return 0;
    memcpy(&first, s, sizeof first);
    memcpy(&last, s + len - sizeof last, sizeof last);
    if (is_special((uint64_t)first << 32 | last))
        return 0;
    memcpy(out, &first, sizeof first);
    memcpy(out + len - sizeof last, &last, sizeof last);
    return len;
}

/* Copies the plain text at the start of `s`, eight bytes at a time, and returns how much. `out` has
 * room for `len`. The last eight bytes may overlap those before, so that only very short or special
 * text is left to escape_char. */
static size_t copy_plain(char *out, const char *s, size_t len)
{
    size_t at = 0;
    uint64_t eight;

    if (len < sizeof eight)
        return copy_plain_short(out, s, len);
    for (; at + sizeof eight <= len; at += sizeof eight) {
        memcpy(&eight, s + at, sizeof eight);
        if (is_special(eight))
            return at;
        memcpy(out + at, &eight, sizeof eight);
    }
    if (at == 0 || at == len)
        return at;
    memcpy(&eight, s + len - sizeof eight, sizeof eight);
    if (is_special(eight))
        return at;
    memcpy(out + len - sizeof eight, &eight, sizeof eight);
    return len;
}

static size_t format_hex(unsigned byte, const char *digits, char out[8])
{
    out[0] = '\\';
    out[1] = 'x';
    out[2] = digits[byte >> 4];
    out[3] = digits[byte & 15];
    return 4;
}

static size_t escape_byte(unsigned byte, enum line_escape escape, char out[8])
{
    if (escape == LINE_ESCAPE_JSON || byte > 0xff)
        return (size_t)snprintf(out, 8, "\\u%04x", byte & 0xffff);
    return format_hex(byte, escape == LINE_ESCAPE_TEXT ? "0123456789abcdef" : "0123456789ABCDEF",
                      out);
}

/* Writes the escape of the character at `s` into `out`. `*used`: how many bytes of `s` the
 * character has. */
static size_t escape_char(const char *s, size_t left, enum line_escape escape, char out[8],
                          size_t *used)
{
    size_t len = escape == LINE_ESCAPE_COMBINED ? !ascii_is_high(s[0]) : utf8_char_len(s, left);

    *used = len == 0 ? 1 : len;
    if (len == 0 && escape == LINE_ESCAPE_JSON) {
        memcpy(out, "\\ufffd", 6);
        return 6;
    }
    if (len == 0 || utf8_is_unprintable(s, len))
        return escape_byte(len == 0 ? (unsigned char)s[0] : utf8_code(s, len), escape, out);
    if (s[0] == '\\' || (s[0] == '"' && escape != LINE_ESCAPE_TEXT)) {
        if (escape == LINE_ESCAPE_COMBINED)
            return escape_byte((unsigned char)s[0], escape, out);
        out[0] = '\\';
        out[1] = s[0];
        return 2;
    }
    memcpy(out, s, len);
    return len;
}

static bool is_plain(char c)
{
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

void line_append_escaped(struct line *l, const char *text, size_t max, enum line_escape escape)
{
    size_t len = strlen(text), at = 0, used, piece;
    size_t room = sizeof l->text - LINE_RESERVE - l->len;
    char out[8];

    if (max < room)
        room = max;
    while (at < len) {
        piece = copy_plain(l->text + l->len, text + at, len - at < room ? len - at : room);
        l->len += piece;
        room -= piece;
        at += piece;
        for (unsigned i = 0; i < sizeof(uint64_t) && at < len; i++, at += used) {
            if (is_plain(text[at]) && room > 0) {
                l->text[l->len++] = text[at];
                used = 1;
                room--;
                continue;
            }
            piece = escape_char(text + at, len - at, escape, out, &used);
            if (piece > room)
                return;
            memcpy(l->text + l->len, out, piece);
            l->len += piece;
            room -= piece;
        }
    }
}

/* ---- parts ---- */

void line_append_json(struct line *l, const char *value, size_t max)
{
    if (value == NULL) {
        LINE_PUT(l, "null");
        return;
    }
    LINE_PUT(l, "\"");
    line_append_escaped(l, value, max, LINE_ESCAPE_JSON);
    LINE_PUT(l, "\"");
}

void line_append_time(struct line *l, const struct timespec *time)
{
    static _Thread_local time_t second = -1;
    static _Thread_local char text[32];
    char end[8];
    struct tm utc;

    if (second != time->tv_sec) {
        second = time->tv_sec;
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.", gmtime_r(&second, &utc));
    }
    unsigned ms = (unsigned)(time->tv_nsec / 1000000);
    end[0] = (char)('0' + ms / 100 % 10);
    end[1] = (char)('0' + ms / 10 % 10);
    end[2] = (char)('0' + ms % 10);
    end[3] = 'Z';
    line_append_text(l, text);
    line_append(l, end, 4);
}

void line_end(struct line *l, const char *end)
{
    size_t len = strlen(end);

    memcpy(l->text + l->len, end, len);
    l->len += len;
}

/* A file that lines are appended to: a regular file, a pipe, a terminal, the journal's socket. */

enum log_file_kind {
    LOG_FILE_DISK, /* any write is whole */
    LOG_FILE_PIPE, /* also a terminal: writes of PIPE_BUF bytes are atomic */
    LOG_FILE_SOCKET
};

struct log_file {
    int fd;
    enum log_file_kind kind;
};

static struct log_file log_file_of(int fd);

#define WORD sizeof(uint64_t)

/* All positions are multiples of a word, so the end of the ring cuts no word. */
static atomic_uint_least64_t *ring_word(struct ring *r, uint64_t at)
{
    return (atomic_uint_least64_t *)(void *)(r->bytes + at % RING_BYTES);
}

static size_t place_of(size_t len)
{
    return WORD + (len + WORD - 1) / WORD * WORD;
}

/* How much of `len` bytes at `at` comes before the ring's end. */
static size_t before_end(uint64_t at, size_t len)
{
    size_t room = RING_BYTES - at % RING_BYTES;
    return len < room ? len : room;
}

bool ring_add(struct ring *r, const char *line, size_t len)
{
    size_t place = place_of(len);
    uint64_t at = atomic_load_explicit(&r->put, memory_order_relaxed);

    assert(len > 0 && len <= RING_MAX_LINE);
    do {
        uint64_t taken = atomic_load_explicit(&r->taken, memory_order_acquire);
        /* `at` may be older than `taken`; then the exchange fails. */
        if (at >= taken && at + place - taken > RING_BYTES)
            return false;
    } while (!atomic_compare_exchange_weak(&r->put, &at, at + place));
    size_t first = before_end(at + WORD, len);
    memcpy(r->bytes + (at + WORD) % RING_BYTES, line, first);
    memcpy(r->bytes, line + first, len - first);
    atomic_store(ring_word(r, at), len + 1);
    return true;
}

/* Any of these bytes may become the word of a later line, so they are set to 0 (invariant 2). */
static void copy_out(struct ring *r, uint64_t at, char *out, size_t len)
{
    size_t first = before_end(at + WORD, len);
    unsigned char *from = r->bytes + (at + WORD) % RING_BYTES;

    memcpy(out, from, first);
    memset(from, 0, first);
    memcpy(out + first, r->bytes, len - first);
    memset(r->bytes, 0, len - first);
    atomic_store_explicit(ring_word(r, at), 0, memory_order_relaxed);
}

size_t ring_remove(struct ring *r, char *out, size_t room)
{
    uint64_t at = atomic_load_explicit(&r->taken, memory_order_relaxed);
    uint64_t put = atomic_load(&r->put);
    size_t filled = 0;

    while (at < put) {
        uint64_t word = atomic_load(ring_word(r, at));
        if (word == 0 || word - 1 > room - filled)
            break;
        copy_out(r, at, out + filled, (size_t)word - 1);
        filled += (size_t)word - 1;
        at += place_of((size_t)word - 1);
    }
    atomic_store_explicit(&r->taken, at, memory_order_release);
    return filled;
}

size_t ring_used(const struct ring *r)
{
    uint64_t taken = atomic_load(&r->taken);
    uint64_t put = atomic_load(&r->put);

    return put > taken ? (size_t)(put - taken) : 0;
}

#define LOG_FILE_MODE 0640

/* Opens a file to append to and creates it if it is missing, with mode 0640 whatever the umask is,
 * so that a log shipper in the group may read it. Does not wait for a pipe's reader. False with
 * errno. */
static bool log_file_open(const char *path, struct log_file *out)
{
    int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int fd = open(path, flags);

    if (fd < 0 && errno == ENOENT) {
        fd = open(path, flags | O_CREAT | O_EXCL, LOG_FILE_MODE);
        if (fd >= 0)
            fchmod(fd, LOG_FILE_MODE);
        else if (errno == EEXIST)
            fd = open(path, flags);
    }
    if (fd < 0)
        return false;
    *out = log_file_of(fd);
    return true;
}

/* An open descriptor; borrowed. */
static struct log_file log_file_of(int fd)
{
    struct log_file f = {.fd = fd, .kind = LOG_FILE_PIPE};
    struct stat about;

    if (fstat(fd, &about) != 0)
        return f;
    if (S_ISREG(about.st_mode))
        f.kind = LOG_FILE_DISK;
    else if (S_ISSOCK(about.st_mode))
        f.kind = LOG_FILE_SOCKET;
    return f;
}

/* The length of the whole lines among the first PIPE_BUF bytes. */
static size_t piece_of(const char *bytes, size_t len)
{
    if (len <= PIPE_BUF)
        return len;
    const char *end = memrchr(bytes, '\n', PIPE_BUF);
    return end == NULL ? PIPE_BUF : (size_t)(end - bytes) + 1;
}

/* stderr is shared with others, so it cannot be made O_NONBLOCK; but a pipe or terminal that polls
 * as writable takes PIPE_BUF bytes without waiting (pipe(7)). */
static bool is_ready(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    if (poll(&p, 1, 0) == 1)
        return true;
    errno = EAGAIN;
    return false;
}

/* Writes as many lines of `bytes` as the file accepts without waiting, each at most 4096 bytes; on
 * a full disk the last one may be cut. Returns the bytes written; 0 with errno, EAGAIN if a reader
 * is slow. */
static size_t log_file_write(const struct log_file *f, const char *bytes, size_t len)
{
    size_t written = 0;

    while (written < len) {
        ssize_t n = -1;
        size_t piece = len - written;

        if (f->kind != LOG_FILE_DISK)
            piece = piece_of(bytes + written, piece);
        if (f->kind == LOG_FILE_SOCKET)
            n = send(f->fd, bytes + written, piece, MSG_NOSIGNAL | MSG_DONTWAIT);
        else if (f->kind == LOG_FILE_DISK || is_ready(f->fd))
            n = write(f->fd, bytes + written, piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        written += (size_t)n;
    }
    return written;
}

#define LANES       8u
#define STAGE_BYTES (128u * 1024)
/* A lane that is so full is emptied at once. */
#define LANE_HIGH (RING_BYTES / 2)
/* Most writes in one drain; then requests to stop, flush or reopen are handled, however fast lines
 * arrive. */
#define DRAIN_STAGES 32u
/* Pause before the next try: with a slow reader, and after a failure. */
#define RETRY_MS        50u
#define RETRY_FAILED_MS 500u

enum state {
    STATE_IDLE,   /* sleeps until a line arrives */
    STATE_LINGER, /* there is a line; the thread waits for others */
    STATE_BUSY,   /* awake, or woken */
};

struct log_writer {
    struct log_file file;
    char *path; /* NULL: the descriptor is borrowed */
    void (*on_state)(void *context, bool reopening, int error);
    void *context;

    struct thread thread;
    sem_t wake;
    atomic_int state;   /* enum state */
    atomic_bool urgent; /* write at once, do not wait for more lines */
    atomic_bool reopen, stop;
    /* A flush raises `asked`; the thread sets `done` to it once all lines added before are written.
     */
    atomic_uint_least64_t asked, done;

    /* Used by the thread alone. */
    char *stage; /* lines on their way to the file */
    size_t staged, written;
    bool failing;

    struct ring lanes[LANES];
};

/* Threads take lanes in turn; more threads than lanes share, which a ring allows. */
static struct ring *own_lane(struct log_writer *w)
{
    static atomic_uint next;
    static _Thread_local unsigned own = LANES;

    if (own == LANES)
        own = atomic_fetch_add(&next, 1) % LANES;
    return &w->lanes[own];
}

/* ---- the thread ---- */

static void report_state(struct log_writer *w, bool reopening, int error)
{
    if (w->on_state != NULL)
        w->on_state(w->context, reopening, error);
}

/* Writes the stage; true if all of it was written. The rest is kept and tried again, so that a line
 * cut by a full disk gets its end. */
static bool write_staged(struct log_writer *w)
{
    size_t n = log_file_write(&w->file, w->stage + w->written, w->staged - w->written);
    int error = errno;

    w->written += n;
    if (w->written == w->staged) {
        w->written = w->staged = 0;
        if (w->failing)
            report_state(w, false, 0);
        w->failing = false;
        return true;
    }
    if (error != EAGAIN && !w->failing) {
        w->failing = true;
        report_state(w, false, error);
    }
    return false;
}

/* Fills the stage from the lanes. True if the stage is full, so that the lanes may have more. */
static bool fill_stage(struct log_writer *w)
{
    for (unsigned i = 0; i < LANES; i++) {
        struct ring *lane = &w->lanes[i];
        w->staged += ring_remove(lane, w->stage + w->staged, STAGE_BYTES - w->staged);
        if (STAGE_BYTES - w->staged < RING_MAX_LINE)
            return true;
    }
    return false;
}

/* True if the file accepts no more for now. `*emptied`: all lines added before are written. */
static bool drain(struct log_writer *w, bool *emptied)
{
    bool more = true;

    *emptied = false;
    for (unsigned i = 0; i < DRAIN_STAGES && more; i++) {
        if (w->staged > 0 && !write_staged(w))
            return true;
        more = fill_stage(w);
    }
    if (w->staged > 0 && !write_staged(w))
        return true;
    *emptied = !more;
    return false;
}

static void reopen(struct log_writer *w)
{
    struct log_file fresh;

    if (w->path == NULL)
        return;
    if (!log_file_open(w->path, &fresh)) {
        report_state(w, true, errno);
        return;
    }
    close(w->file.fd);
    w->file = fresh;
    report_state(w, true, 0);
}

static void wait_ms(struct log_writer *w, unsigned ms)
{
    struct timespec until = clock_after_ms(ms);

    sem_clockwait(&w->wake, CLOCK_MONOTONIC, &until);
}

static bool has_lines(const struct log_writer *w)
{
    for (unsigned i = 0; i < LANES; i++)
        if (ring_used(&w->lanes[i]) > 0)
            return true;
    return w->staged > 0;
}

static bool is_called(struct log_writer *w)
{
    return atomic_load(&w->stop) || atomic_load(&w->reopen) ||
           atomic_load(&w->asked) != atomic_load(&w->done);
}

/* The thread publishes its state, then looks for lines; log_writer_add adds its line, then looks at
 * the state. So one of the two sees the other, and no line is overlooked. */
static void wait_for_lines(struct log_writer *w, bool stuck)
{
    atomic_store(&w->state, STATE_IDLE);
    if (!has_lines(w) && !is_called(w))
        sem_wait(&w->wake);
    atomic_store(&w->state, stuck ? STATE_BUSY : STATE_LINGER);
    if (stuck)
        wait_ms(w, w->failing ? RETRY_FAILED_MS : RETRY_MS);
    else if (!atomic_load(&w->urgent) && !is_called(w))
        wait_ms(w, LOG_WRITER_LINGER_MS);
    atomic_store(&w->state, STATE_BUSY);
}

static void log_writer_run(void *context)
{
    struct log_writer *w = context;
    unsigned patience_ms = LOG_WRITER_PATIENCE_MS;
    bool stop, emptied, stuck = false;

    for (;;) {
        wait_for_lines(w, stuck);
        stop = atomic_load(&w->stop);
        uint64_t asked = atomic_load(&w->asked);
        atomic_store(&w->urgent, false);
        /* Read before the lines are removed and done after they are written: lines added before the
         * request belong to the file that was moved away. */
        bool reopens = atomic_exchange(&w->reopen, false);
        stuck = drain(w, &emptied);
        if (reopens)
            reopen(w);
        if (emptied || w->failing)
            atomic_store(&w->done, asked);
        if (stop && (emptied || w->failing || patience_ms <= RETRY_MS))
            return;
        if (stop)
            patience_ms -= RETRY_MS;
    }
}

/* ---- the callers ---- */

struct log_writer *log_writer_new(const struct log_writer_options *options)
{
    /* Memory that no line has reached costs nothing. */
    struct log_writer *w =
        mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (w == MAP_FAILED)
        return NULL;
    w->on_state = options->on_state;
    w->context = options->context;
    w->stage = malloc(STAGE_BYTES);
    w->path = options->path == NULL ? NULL : strdup(options->path);
    sem_init(&w->wake, 0, 0);
    w->file = log_file_of(options->fd);
    if (w->stage == NULL || (options->path != NULL && w->path == NULL)) {
        errno = ENOMEM;
        goto fail;
    }
    if (w->path != NULL && !log_file_open(w->path, &w->file))
        goto fail;
    if (thread_start(&w->thread, "log", log_writer_run, w))
        return w;
    if (w->path != NULL)
        close(w->file.fd);

fail:
    sem_destroy(&w->wake);
    free(w->path);
    free(w->stage);
    munmap(w, sizeof *w);
    return NULL;
}

bool log_writer_add(struct log_writer *w, const char *line, size_t len, bool urgent)
{
    struct ring *lane = own_lane(w);

    if (!ring_add(lane, line, len))
        return false;
    if (urgent)
        atomic_store(&w->urgent, true);
    int state = atomic_load(&w->state);
    bool wakes =
        state == STATE_IDLE || (state == STATE_LINGER && (urgent || ring_used(lane) > LANE_HIGH));
    if (wakes && atomic_compare_exchange_strong(&w->state, &state, STATE_BUSY))
        sem_post(&w->wake);
    return true;
}

void log_writer_reopen(struct log_writer *w)
{
    atomic_store(&w->reopen, true);
    sem_post(&w->wake);
}

void log_writer_flush(struct log_writer *w)
{
    struct timespec pause = {.tv_nsec = 1000000};
    uint64_t asked = atomic_fetch_add(&w->asked, 1) + 1;

    sem_post(&w->wake);
    for (unsigned ms = 0; ms < LOG_WRITER_PATIENCE_MS; ms++) {
        if (atomic_load(&w->done) >= asked)
            return;
        nanosleep(&pause, NULL);
    }
}

void log_writer_free(struct log_writer *w)
{
    if (w == NULL)
        return;
    atomic_store(&w->stop, true);
    sem_post(&w->wake);
    thread_join(&w->thread);
    sem_destroy(&w->wake);
    if (w->path != NULL)
        close(w->file.fd);
    free(w->path);
    free(w->stage);
    munmap(w, sizeof *w);
}
