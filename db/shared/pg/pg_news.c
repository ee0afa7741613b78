/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Writes and reads notifications. Sealed are a struct sealed and the body; the text before them and
 * the schema are authenticated, too. Numbers are little-endian. */
#include "db/shared/pg/pg_news.h"

#include <endian.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/shared.h"
#include "server/base/text.h"

#define NONCE_BYTES 12
#define TAG_BYTES   16
#define HEAD_CHARS  (SHARED_NODE_SIZE + 24)

struct sealed {
    uint64_t schema, revision, serial, at;
    uint8_t chain[SHARED_CHAIN_BYTES];
    char id[SHARED_ID_SIZE + 3];
};

#define BODY_MOST                                                                                  \
    ((PG_NEWS_SIZE - HEAD_CHARS) / 2 - NONCE_BYTES - TAG_BYTES - sizeof(struct sealed))

/* The data that is authenticated but not encrypted. */
static size_t write_context(char *out, size_t size, const char *schema, const char *head, int len)
{
    int n = snprintf(out, size, "%s %.*s", schema, len, head);

    return n > 0 && (size_t)n < size ? (size_t)n : 0;
}

static bool seal(const uint8_t *key, const uint8_t *nonce, const char *context, size_t context_len,
                 bool opens, const void *from, size_t from_size, void *to, size_t *to_size)
{
    const gnutls_datum_t secret = {(void *)(uintptr_t)key, SHARED_KEY_BYTES};
    gnutls_aead_cipher_hd_t cipher;

    if (gnutls_aead_cipher_init(&cipher, GNUTLS_CIPHER_AES_256_GCM, &secret) < 0)
        return false;
    int rc = (opens ? gnutls_aead_cipher_decrypt : gnutls_aead_cipher_encrypt)(
        cipher, nonce, NONCE_BYTES, context, context_len, TAG_BYTES, from, from_size, to, to_size);
    gnutls_aead_cipher_deinit(cipher);
    return rc >= 0;
}

void pg_news_write(char out[PG_NEWS_SIZE], const char *schema, const char *node,
                   const struct shared_record *record, const void *body, size_t size,
                   const uint8_t *key)
{
    int len = snprintf(out, PG_NEWS_SIZE, "%s %" PRIu64, node, record->position.seq);
    uint8_t plain[PG_NEWS_SIZE / 2], packet[PG_NEWS_SIZE / 2];
    char context[HEAD_CHARS + 64];
    size_t sealed_size = sizeof packet - NONCE_BYTES;
    struct sealed sealed = {.schema = htole64((uint64_t)record->schema),
                            .revision = htole64(record->revision),
                            .serial = htole64((uint64_t)record->serial),
                            .at = htole64((uint64_t)record->at)};

    if (key == NULL || size > BODY_MOST || len >= HEAD_CHARS || strcmp(node, record->node) != 0)
        return;
    memcpy(sealed.chain, record->position.chain, sizeof sealed.chain);
    memcpy(sealed.id, record->id, SHARED_ID_SIZE);
    memcpy(plain, &sealed, sizeof sealed);
    memcpy(plain + sizeof sealed, body, size);
    size_t context_len = write_context(context, sizeof context, schema, out, len);
    if (context_len == 0 || gnutls_rnd(GNUTLS_RND_NONCE, packet, NONCE_BYTES) < 0 ||
        !seal(key, packet, context, context_len, false, plain, sizeof sealed + size,
              packet + NONCE_BYTES, &sealed_size))
        return;
    out[len] = ' ';
    hex_write(out + len + 1, packet, NONCE_BYTES + sealed_size);
}

bool pg_news_is_other(const char *text, const char *node)
{
    size_t len = strcspn(text, " ");

    return node == NULL || strlen(node) != len || strncmp(text, node, len) != 0;
}

/* Returns the number of bytes; 0: not hex, or too long. */
static size_t read_hex(const char *text, uint8_t *out, size_t most)
{
    size_t count = 0;

    for (; text[0] != '\0' && count < most; text += 2, count++) {
        int high = ascii_hex_value(text[0]), low = high >= 0 ? ascii_hex_value(text[1]) : -1;

        if (low < 0)
            return 0;
        out[count] = (uint8_t)(high << 4 | low);
    }
    return text[0] == '\0' ? count : 0;
}

struct shared_news *pg_news_read(const char *text, const char *schema, const uint8_t *key)
{
    size_t node_len = strcspn(text, " ");
    const char *number = text + node_len + (text[node_len] != '\0');
    size_t head_len = (size_t)(number - text) + strspn(number, "0123456789");
    uint8_t packet[PG_NEWS_SIZE / 2], plain[PG_NEWS_SIZE / 2];
    char context[HEAD_CHARS + 64];
    size_t plain_size = sizeof plain;
    struct sealed sealed;

    if (key == NULL || node_len >= SHARED_NODE_SIZE || text[head_len] != ' ')
        return NULL;
    size_t size = read_hex(text + head_len + 1, packet, sizeof packet);
    size_t context_len = write_context(context, sizeof context, schema, text, (int)head_len);
    if (size < NONCE_BYTES + TAG_BYTES + sizeof sealed || context_len == 0 ||
        !seal(key, packet, context, context_len, true, packet + NONCE_BYTES, size - NONCE_BYTES,
              plain, &plain_size) ||
        plain_size < sizeof sealed)
        return NULL;
    memcpy(&sealed, plain, sizeof sealed);
    size_t body = plain_size - sizeof sealed;
    struct shared_news *news = calloc(1, sizeof *news + body);
    if (news == NULL)
        return NULL;
    struct shared_record *record = &news->record;
    *record = (struct shared_record){.schema = (int)le64toh(sealed.schema),
                                     .revision = le64toh(sealed.revision),
                                     .serial = (int64_t)le64toh(sealed.serial),
                                     .at = (int64_t)le64toh(sealed.at),
                                     .position.seq = strtoull(number, NULL, 10)};
    snprintf(record->node, sizeof record->node, "%.*s", (int)node_len, text);
    memcpy(record->id, sealed.id, sizeof record->id - 1);
    memcpy(record->position.chain, sealed.chain, sizeof sealed.chain);
    news->size = body;
    memcpy(news->body, plain + sizeof sealed, body);
    return news;
}
