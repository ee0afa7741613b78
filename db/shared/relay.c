/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Writes and reads the log in the form in which nodes send it to followers. The input is from
 * another machine: every number is checked before it is used. */
#include "db/shared/relay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/text.h"

#define LINE_SIZE   512
#define BUFFER_SIZE 16384
#define PART_MOST   (2u * SHARED_PART_BYTES)

/* ---- writing */

static void put(struct relay_writer *w, const void *bytes, size_t size)
{
    for (size_t done = 0; done < size && !w->failed;) {
        ssize_t n =
            pwrite(w->fd, (const char *)bytes + done, size - done, (off_t)(w->bytes + done));
        if (n <= 0 && !(n < 0 && errno == EINTR))
            w->failed = true;
        else if (n > 0)
            done += (size_t)n;
    }
    w->bytes += size;
}

__attribute__((format(printf, 2, 3))) static void put_line(struct relay_writer *w,
                                                           const char *format, ...)
{
    char line[LINE_SIZE];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    put(w, line, (size_t)len);
}

void relay_begin(struct relay_writer *w, int fd, const char *epoch)
{
    *w = (struct relay_writer){.fd = fd};
    put_line(w, "sitemapd-log 1 %s\n", epoch);
    w->whole = w->bytes;
}

static bool begin_record(void *context, const struct shared_record *r)
{
    struct relay_writer *w = context;
    char chain[2 * SHARED_CHAIN_BYTES + 1];
    hex_write(chain, r->position.chain, SHARED_CHAIN_BYTES);
    put_line(w, "record %" PRIu64 " %s %d %" PRIu64 " %" PRId64 " %" PRId64 " %s %s\n",
             r->position.seq, r->id, r->schema, r->revision, r->serial, r->at, chain, r->node);
    return !w->failed;
}

static bool put_part(void *context, const void *part, size_t size)
{
    struct relay_writer *w = context;
    put_line(w, "part %zu\n", size);
    put(w, part, size);
    return !w->failed;
}

static bool end_record(void *context, const struct shared_record *r)
{
    struct relay_writer *w = context;
    (void)r;
    put_line(w, "end\n");
    w->whole = w->bytes;
    w->records++;
    return !w->failed;
}

struct shared_take relay_take(struct relay_writer *w)
{
    return (struct shared_take){
        .begin = begin_record, .part = put_part, .end = end_record, .context = w};
}

bool relay_end(struct relay_writer *w, const struct relay_head *head)
{
    w->bytes = w->whole;
    put_line(w, "done %" PRIu64 " %" PRId64 " %" PRId64 " %u\n", head->head, head->away_ms,
             head->refused_ms, head->hops);
    return !w->failed && ftruncate(w->fd, (off_t)w->bytes) == 0;
}

/* ---- reading */

struct reader {
    int fd;
    uint64_t at, end;
    size_t len, pos; /* of what is in the buffer; the file is read up to `at` */
    char buffer[BUFFER_SIZE];
    char line[LINE_SIZE];
};

static bool fill(struct reader *r)
{
    if (r->pos < r->len)
        return true;
    uint64_t left = r->end - r->at;
    ssize_t n;
    do
        n = pread(r->fd, r->buffer, left < sizeof r->buffer ? (size_t)left : sizeof r->buffer,
                  (off_t)r->at);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return false;
    r->at += (uint64_t)n;
    r->len = (size_t)n;
    r->pos = 0;
    return true;
}

static bool next_line(struct reader *r)
{
    size_t len = 0;
    while (fill(r)) {
        char c = r->buffer[r->pos++];
        if (c == '\n') {
            r->line[len] = '\0';
            return true;
        }
        if (c == '\0' || len + 1 == sizeof r->line)
            break;
        r->line[len++] = c;
    }
    return false;
}

static bool read_bytes(struct reader *r, char *out, size_t size)
{
    while (size > 0) {
        if (!fill(r))
            return false;
        size_t n = r->len - r->pos < size ? r->len - r->pos : size;
        memcpy(out, r->buffer + r->pos, n);
        r->pos += n;
        out += n;
        size -= n;
    }
    return true;
}

static bool skip_bytes(struct reader *r, size_t size)
{
    size_t here = r->len - r->pos < size ? r->len - r->pos : size;
    r->pos += here;
    size -= here;
    if (size > r->end - r->at)
        return false;
    r->at += size;
    return true;
}

/* Whether the line ends after the bytes that sscanf has read. */
static bool ends(const struct reader *r, int read)
{
    return read > 0 && r->line[read] == '\0';
}

static bool parse_record(const struct reader *r, struct shared_record *out)
{
    char chain[2 * SHARED_CHAIN_BYTES + 1];
    int read = 0;
    *out = (struct shared_record){.schema = 0};
    return sscanf(r->line,
                  "record %20" SCNu64 " %36s %9d %20" SCNu64 " %20" SCNd64 " %20" SCNd64
                  " %64s %128s%n",
                  &out->position.seq, out->id, &out->schema, &out->revision, &out->serial, &out->at,
                  chain, out->node, &read) == 8 &&
           ends(r, read) && strlen(out->id) == SHARED_ID_SIZE - 1 &&
           hex_read(out->position.chain, chain, SHARED_CHAIN_BYTES);
}

/* 0: not the line of a part. */
static size_t parse_part(const struct reader *r)
{
    unsigned size = 0;
    int read = 0;
    return sscanf(r->line, "part %9u%n", &size, &read) == 1 && ends(r, read) && size <= PART_MOST
               ? size
               : 0;
}

static bool parse_done(const struct reader *r, struct relay_head *out)
{
    int read = 0;
    return sscanf(r->line, "done %20" SCNu64 " %20" SCNd64 " %20" SCNd64 " %9u%n", &out->head,
                  &out->away_ms, &out->refused_ms, &out->hops, &read) == 4 &&
           ends(r, read);
}

static bool parse_first(struct reader *r, char epoch[SHARED_EPOCH_SIZE])
{
    int read = 0;
    return next_line(r) && sscanf(r->line, "sitemapd-log 1 %32s%n", epoch, &read) == 1 &&
           ends(r, read);
}

static struct reader *open_reader(int fd, uint64_t bytes)
{
    struct reader *r = calloc(1, sizeof *r);
    if (r != NULL) {
        r->fd = fd;
        r->end = bytes;
    }
    return r;
}

/* Skips the parts of a record and its end. */
static bool skip_body(struct reader *r)
{
    bool good;
    size_t size;
    while ((good = next_line(r)) && (size = parse_part(r)) > 0)
        if (!skip_bytes(r, size))
            return false;
    return good && strcmp(r->line, "end") == 0;
}

bool relay_scan(int fd, uint64_t bytes, const struct shared_position *from, struct relay_head *head,
                struct shared_position *last, char *why, size_t why_size)
{
    struct reader *r = open_reader(fd, bytes);
    struct shared_record record;
    bool good = r != NULL && parse_first(r, head->epoch), done = false;
    *last = *from;
    while (good && !done) {
        good = next_line(r);
        if (good && parse_record(r, &record)) {
            good = record.position.seq == last->seq + 1 && skip_body(r);
            *last = record.position;
        } else if (good) {
            good = done = parse_done(r, head) && head->head >= last->seq && head->away_ms >= 0 &&
                          head->refused_ms >= 0 && r->pos == r->len && r->at == r->end;
        }
    }
    if (!good)
        snprintf(why, why_size, "its answer is not a log, or is truncated, after record %" PRIu64,
                 last->seq);
    free(r);
    return good;
}

struct handing {
    struct reader *reader;
    struct shared_unpacker *unpacker;
    const struct shared_take *take;
    char *part;
};

static bool take_bytes(void *context, const void *bytes, size_t size)
{
    const struct shared_take *take = context;
    return take->bytes == NULL || take->bytes(take->context, bytes, size);
}

static enum shared_outcome hand_body(const struct handing *h, uint8_t hash[SHARED_CHAIN_BYTES])
{
    struct reader *r = h->reader;
    size_t size = 0;
    bool good;
    shared_unpacker_begin(h->unpacker);
    while ((good = next_line(r)) && (size = parse_part(r)) > 0) {
        if (!read_bytes(r, h->part, size))
            return SHARED_DIVERGED;
        if (h->take->part != NULL && !h->take->part(h->take->context, h->part, size))
            return SHARED_STOPPED;
        enum shared_outcome outcome =
            shared_unpacker_add(h->unpacker, h->part, size, take_bytes, (void *)(uintptr_t)h->take);
        if (outcome != SHARED_YES)
            return outcome;
    }
    return good && strcmp(r->line, "end") == 0 ? shared_unpacker_end(h->unpacker, hash)
                                               : SHARED_DIVERGED;
}

static enum shared_outcome hand_record(const struct handing *h, const struct shared_record *record,
                                       struct shared_position *reached)
{
    uint8_t hash[SHARED_CHAIN_BYTES], chain[SHARED_CHAIN_BYTES];
    if (record->position.seq != reached->seq + 1)
        return SHARED_DIVERGED;
    if (!h->take->begin(h->take->context, record))
        return SHARED_STOPPED;
    enum shared_outcome outcome = hand_body(h, hash);
    if (outcome != SHARED_YES)
        return outcome;
    shared_chain(reached->chain, record->id, hash, chain);
    if (memcmp(chain, record->position.chain, sizeof chain) != 0)
        return SHARED_DIVERGED;
    if (!h->take->end(h->take->context, record))
        return SHARED_STOPPED;
    *reached = record->position;
    return SHARED_YES;
}

enum shared_outcome relay_read(int fd, uint64_t bytes, const struct shared_position *at,
                               struct shared_unpacker *unpacker, const struct shared_take *take,
                               char *why, size_t why_size)
{
    struct reader *r = open_reader(fd, bytes);
    struct handing h = {r, unpacker, take, malloc(PART_MOST)};
    struct shared_position reached = *at;
    struct shared_record record;
    struct relay_head head;
    enum shared_outcome outcome = r != NULL && h.part != NULL ? SHARED_YES : SHARED_NO_MEMORY;
    if (outcome == SHARED_YES && !parse_first(r, head.epoch))
        outcome = SHARED_DIVERGED;
    while (outcome == SHARED_YES && next_line(r) && parse_record(r, &record))
        outcome = hand_record(&h, &record, &reached);
    if (outcome == SHARED_YES && !parse_done(r, &head))
        outcome = SHARED_DIVERGED;
    if (outcome == SHARED_DIVERGED)
        snprintf(why, why_size,
                 "record %" PRIu64 " of the log does not continue from the last one here",
                 reached.seq + 1);
    free(h.part);
    free(r);
    return outcome;
}
