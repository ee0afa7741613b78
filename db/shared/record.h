/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A record's body on its way into the log and out of it, and the chain that makes a log one past:
 * what every log has in common. A body is given in pieces of any size and lies there packed (zlib,
 * level 1) in parts of at most a MiB; its hash is that of the packed bytes, so that it does not
 * depend on who unpacks them. One thread. */
#pragma once

#include <stdint.h>

#include "db/shared/log.h"

#define SHARED_PART_BYTES (1 << 20)

/* The chain behind a record: SHA-256 of the one before it, its id and its body's hash. `before` and
 * `out` may be one. */
void shared_chain(const uint8_t before[SHARED_CHAIN_BYTES], const char *id,
                  const uint8_t body[SHARED_CHAIN_BYTES], uint8_t out[SHARED_CHAIN_BYTES]);

/* Where a full part goes. */
typedef enum shared_outcome (*shared_part_sink)(void *context, const void *part, size_t size);

struct shared_packer;
/* NULL: no memory. */
struct shared_packer *shared_packer_new(void);
/* Takes NULL. */
void shared_packer_free(struct shared_packer *p);
/* Another body begins. */
void shared_packer_begin(struct shared_packer *p);
/* What `sink` comes to is handed on, and ends it. */
enum shared_outcome shared_packer_add(struct shared_packer *p, const void *bytes, size_t size,
                                      shared_part_sink sink, void *context);
/* No more bytes come. What is left, at most a part, is borrowed until the next body; `sink` takes a
 * part before it where there is too much. */
enum shared_outcome shared_packer_end(struct shared_packer *p, shared_part_sink sink, void *context,
                                      const void **rest, size_t *size);
/* Behind the end: of all parts. */
void shared_packer_hash(struct shared_packer *p, uint8_t out[SHARED_CHAIN_BYTES]);
uint64_t shared_packer_packed(const struct shared_packer *p); /* bytes of all parts so far */

/* All of a list. */
void shared_news_free(struct shared_news *news);

struct shared_unpacker;
struct shared_unpacker *shared_unpacker_new(void);
void shared_unpacker_free(struct shared_unpacker *u);
void shared_unpacker_begin(struct shared_unpacker *u);
/* The next part. STOPPED: `bytes` returned false. DIVERGED: it is damaged. */
enum shared_outcome shared_unpacker_add(struct shared_unpacker *u, const void *part, size_t size,
                                        bool (*bytes)(void *context, const void *, size_t),
                                        void *context);
/* YES where the body ended exactly there, with its hash; DIVERGED otherwise. */
enum shared_outcome shared_unpacker_end(struct shared_unpacker *u, uint8_t out[SHARED_CHAIN_BYTES]);

/* Hands on a record that arrived with its notification, where it goes on from `at`: YES. Where it
 * does not, or is damaged, NO: what was begun is to be rolled back, and the log to be asked.
 * STOPPED: a callback returned false. */
enum shared_outcome shared_news_take(struct shared_unpacker *u, const struct shared_news *news,
                                     const struct shared_position *at,
                                     const struct shared_take *take);
