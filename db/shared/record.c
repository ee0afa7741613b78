/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Packs and unpacks the body of a record, and computes the chain of hashes. */
#include "db/shared/record.h"

#include <assert.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "server/base/clock.h"

#define PIECE_BYTES ((size_t)64 * 1024)

const char *shared_outcome_word(enum shared_outcome outcome)
{
    static const char *const words[] = {
        [SHARED_YES] = "yes",         [SHARED_NO] = "no",
        [SHARED_UNKNOWN] = "unknown", [SHARED_AWAY] = "away",
        [SHARED_BUSY] = "busy",       [SHARED_ELSEWHERE] = "elsewhere",
        [SHARED_BEHIND] = "behind",   [SHARED_DIVERGED] = "diverged",
        [SHARED_TRIMMED] = "trimmed", [SHARED_FOREIGN] = "foreign",
        [SHARED_STOPPED] = "stopped", [SHARED_NO_MEMORY] = "no-memory",
    };

    return words[outcome];
}

/* Version 7 (RFC 9562 5.7) begins with the time: neighbours in the log are neighbours in the SQL
 * index on ids. */
void shared_make_id(char out[SHARED_ID_SIZE])
{
    uint64_t ms = (uint64_t)clock_unix_ms();
    uint8_t b[16];

    if (gnutls_rnd(GNUTLS_RND_NONCE, b, sizeof b) < 0)
        abort(); /* two records must never have the same id */
    for (int i = 0; i < 6; i++)
        b[i] = (uint8_t)(ms >> (40 - 8 * i));
    b[6] = (uint8_t)(0x70 | (b[6] & 0x0f));
    b[8] = (uint8_t)(0x80 | (b[8] & 0x3f));
    snprintf(out, SHARED_ID_SIZE,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
}

void shared_chain(const uint8_t before[SHARED_CHAIN_BYTES], const char *id,
                  const uint8_t body[SHARED_CHAIN_BYTES], uint8_t out[SHARED_CHAIN_BYTES])
{
    uint8_t all[2 * SHARED_CHAIN_BYTES + SHARED_ID_SIZE - 1];

    assert(strlen(id) == SHARED_ID_SIZE - 1);
    memcpy(all, before, SHARED_CHAIN_BYTES);
    memcpy(all + SHARED_CHAIN_BYTES, id, SHARED_ID_SIZE - 1);
    memcpy(all + SHARED_CHAIN_BYTES + SHARED_ID_SIZE - 1, body, SHARED_CHAIN_BYTES);
    gnutls_hash_fast(GNUTLS_DIG_SHA256, all, sizeof all, out);
}

/* --- into the log --- */

struct shared_packer {
    z_stream z;
    gnutls_hash_hd_t hash;
    uint64_t packed;
    uint8_t part[SHARED_PART_BYTES];
};

struct shared_packer *shared_packer_new(void)
{
    struct shared_packer *p = malloc(sizeof *p);

    if (p == NULL)
        return NULL;
    p->z = (z_stream){0};
    p->hash = NULL;
    if (deflateInit(&p->z, 1) != Z_OK || gnutls_hash_init(&p->hash, GNUTLS_DIG_SHA256) < 0) {
        shared_packer_free(p);
        return NULL;
    }
    shared_packer_begin(p);
    return p;
}

void shared_packer_free(struct shared_packer *p)
{
    if (p == NULL)
        return;
    deflateEnd(&p->z);
    if (p->hash)
        gnutls_hash_deinit(p->hash, NULL);
    free(p);
}

static void empty_part(struct shared_packer *p)
{
    p->z.next_out = p->part;
    p->z.avail_out = SHARED_PART_BYTES;
}

void shared_packer_begin(struct shared_packer *p)
{
    uint8_t forgotten[SHARED_CHAIN_BYTES];

    deflateReset(&p->z);
    gnutls_hash_output(p->hash, forgotten);
    p->packed = 0;
    empty_part(p);
}

/* Ends the current part and adds it to the body's hash. */
static size_t close_part(struct shared_packer *p)
{
    size_t size = SHARED_PART_BYTES - p->z.avail_out;

    gnutls_hash(p->hash, p->part, size);
    p->packed += size;
    return size;
}

static enum shared_outcome pack(struct shared_packer *p, int flush, shared_part_sink sink,
                                void *context)
{
    for (;;) {
        int rc = deflate(&p->z, flush);

        if (p->z.avail_out > 0 || rc == Z_STREAM_END)
            return SHARED_YES;
        enum shared_outcome sent = sink(context, p->part, close_part(p));

        if (sent != SHARED_YES)
            return sent;
        empty_part(p);
    }
}

enum shared_outcome shared_packer_add(struct shared_packer *p, const void *bytes, size_t size,
                                      shared_part_sink sink, void *context)
{
    const uint8_t *at = bytes;
    enum shared_outcome outcome = SHARED_YES;

    while (size > 0 && outcome == SHARED_YES) {
        uInt now = size < (1u << 30) ? (uInt)size : 1u << 30; /* zlib counts in 32 bits */

        p->z.next_in = (z_const Bytef *)at;
        p->z.avail_in = now;
        outcome = pack(p, Z_NO_FLUSH, sink, context);
        at += now;
        size -= now;
    }
    return outcome;
}

enum shared_outcome shared_packer_end(struct shared_packer *p, shared_part_sink sink, void *context,
                                      const void **rest, size_t *size)
{
    enum shared_outcome outcome = pack(p, Z_FINISH, sink, context);

    if (outcome != SHARED_YES)
        return outcome;
    *rest = p->part;
    *size = close_part(p);
    return SHARED_YES;
}

void shared_packer_hash(struct shared_packer *p, uint8_t out[SHARED_CHAIN_BYTES])
{
    gnutls_hash_output(p->hash, out);
}

uint64_t shared_packer_packed(const struct shared_packer *p)
{
    return p->packed;
}

/* --- out of it --- */

struct shared_unpacker {
    z_stream z;
    gnutls_hash_hd_t hash;
    bool ended;
    uint8_t piece[PIECE_BYTES];
};

struct shared_unpacker *shared_unpacker_new(void)
{
    struct shared_unpacker *u = malloc(sizeof *u);

    if (u == NULL)
        return NULL;
    u->z = (z_stream){0};
    u->hash = NULL;
    if (inflateInit(&u->z) != Z_OK || gnutls_hash_init(&u->hash, GNUTLS_DIG_SHA256) < 0) {
        shared_unpacker_free(u);
        return NULL;
    }
    shared_unpacker_begin(u);
    return u;
}

void shared_unpacker_free(struct shared_unpacker *u)
{
    if (u == NULL)
        return;
    inflateEnd(&u->z);
    if (u->hash)
        gnutls_hash_deinit(u->hash, NULL);
    free(u);
}

void shared_unpacker_begin(struct shared_unpacker *u)
{
    uint8_t forgotten[SHARED_CHAIN_BYTES];

    inflateReset(&u->z);
    gnutls_hash_output(u->hash, forgotten);
    u->ended = false;
}

enum shared_outcome shared_unpacker_add(struct shared_unpacker *u, const void *part, size_t size,
                                        bool (*bytes)(void *context, const void *, size_t),
                                        void *context)
{
    gnutls_hash(u->hash, part, size);
    u->z.next_in = (z_const Bytef *)part;
    u->z.avail_in = (uInt)size;
    for (;;) {
        if (u->ended)
            return u->z.avail_in > 0 ? SHARED_DIVERGED : SHARED_YES;
        u->z.next_out = u->piece;
        u->z.avail_out = PIECE_BYTES;
        int rc = inflate(&u->z, Z_NO_FLUSH);

        if (rc == Z_MEM_ERROR)
            return SHARED_NO_MEMORY;
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
            return SHARED_DIVERGED;
        u->ended = rc == Z_STREAM_END;
        size_t made = PIECE_BYTES - u->z.avail_out;

        if (made > 0 && !bytes(context, u->piece, made))
            return SHARED_STOPPED;
        if (!u->ended && u->z.avail_out > 0)
            return SHARED_YES;
    }
}

enum shared_outcome shared_unpacker_end(struct shared_unpacker *u, uint8_t out[SHARED_CHAIN_BYTES])
{
    gnutls_hash_output(u->hash, out);
    return u->ended ? SHARED_YES : SHARED_DIVERGED;
}

/* ---- notifications */

void shared_news_free(struct shared_news *news)
{
    while (news != NULL) {
        struct shared_news *next = news->next;
        free(news);
        news = next;
    }
}

enum shared_outcome shared_news_take(struct shared_unpacker *u, const struct shared_news *news,
                                     const struct shared_position *at,
                                     const struct shared_take *take)
{
    const struct shared_record *record = &news->record;
    uint8_t hash[SHARED_CHAIN_BYTES], chain[SHARED_CHAIN_BYTES];

    if (record->position.seq != at->seq + 1 ||
        gnutls_hash_fast(GNUTLS_DIG_SHA256, news->body, news->size, hash) < 0)
        return SHARED_NO;
    shared_chain(at->chain, record->id, hash, chain);
    if (memcmp(chain, record->position.chain, sizeof chain) != 0)
        return SHARED_NO;
    if (!take->begin(take->context, record))
        return SHARED_STOPPED;
    shared_unpacker_begin(u);
    enum shared_outcome outcome =
        shared_unpacker_add(u, news->body, news->size, take->bytes, take->context);
    if (outcome == SHARED_YES)
        outcome = shared_unpacker_end(u, hash);
    if (outcome != SHARED_YES)
        return outcome == SHARED_STOPPED ? outcome : SHARED_NO;
    return take->end(take->context, record) ? SHARED_YES : SHARED_STOPPED;
}
