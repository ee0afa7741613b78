/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Packs and unpacks the body of a record, and computes the chain of hashes; used by all logs. A
 * body is given in pieces of any size and stored packed (zlib, level 1) in parts of at most a MiB.
 * Its hash is that of the packed bytes. One thread. */
#pragma once

#include <stdint.h>

#include "db/shared/log.h"

#define SHARED_PART_BYTES (1 << 20)

/* The chain after a record: SHA-256 of the chain before it, its id and its body's hash. `before`
 * and `out` may be the same. */
void shared_chain(const uint8_t before[SHARED_CHAIN_BYTES], const char *id,
                  const uint8_t body[SHARED_CHAIN_BYTES], uint8_t out[SHARED_CHAIN_BYTES]);

/* Receives a full part. */
typedef enum shared_outcome (*shared_part_sink)(void *context, const void *part, size_t size);

struct shared_packer;
/* NULL: no memory. */
struct shared_packer *shared_packer_new(void);
/* Accepts NULL. */
void shared_packer_free(struct shared_packer *p);
/* Begins another body. */
void shared_packer_begin(struct shared_packer *p);
/* Returns the outcome of `sink` if that is not YES. */
enum shared_outcome shared_packer_add(struct shared_packer *p, const void *bytes, size_t size,
                                      shared_part_sink sink, void *context);
/* Ends the body. The rest, at most a part, is borrowed until the next body; a full part before it
 * goes to `sink`. */
enum shared_outcome shared_packer_end(struct shared_packer *p, shared_part_sink sink, void *context,
                                      const void **rest, size_t *size);
/* After the end: the hash of all parts. */
void shared_packer_hash(struct shared_packer *p, uint8_t out[SHARED_CHAIN_BYTES]);
uint64_t shared_packer_packed(const struct shared_packer *p); /* bytes of all parts so far */

/* Frees a whole list. */
void shared_news_free(struct shared_news *news);

struct shared_unpacker;
struct shared_unpacker *shared_unpacker_new(void);
void shared_unpacker_free(struct shared_unpacker *u);
void shared_unpacker_begin(struct shared_unpacker *u);
/* The next part. STOPPED: `bytes` returned false. DIVERGED: it is damaged. */
enum shared_outcome shared_unpacker_add(struct shared_unpacker *u, const void *part, size_t size,
                                        bool (*bytes)(void *context, const void *, size_t),
                                        void *context);
/* YES if the body ended exactly there, with its hash; DIVERGED otherwise. */
enum shared_outcome shared_unpacker_end(struct shared_unpacker *u, uint8_t out[SHARED_CHAIN_BYTES]);

/* Passes on a record that arrived with its notification. YES: it continues `at`. NO: it does not,
 * or is damaged: roll back and read the log instead. STOPPED: a callback returned false. */
enum shared_outcome shared_news_take(struct shared_unpacker *u, const struct shared_news *news,
                                     const struct shared_position *at,
                                     const struct shared_take *take);
