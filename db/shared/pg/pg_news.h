/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a notification says: who wrote, which record, and, where the nodes have a key and it is
 * small, the record itself. Every role of a database can listen to a channel and notify on it,
 * whatever it may do with the tables: so the record is sealed (AES-256-GCM), and what is not sealed
 * with the key is not a record. Internal to db/shared/pg. */
#pragma once

#include "db/shared/log.h"

#define PG_NEWS_SIZE 7900 /* PostgreSQL takes less than 8000 bytes */

/* "NODE SEQ", or "NODE SEQ SEALED" where the record is `node`'s own. `key`: or NULL. */
void pg_news_write(char out[PG_NEWS_SIZE], const char *schema, const char *node,
                   const struct shared_record *record, const void *body, size_t size,
                   const uint8_t *key);
/* Whether it is another node's. */
bool pg_news_is_other(const char *text, const char *node);
/* The record; NULL where it has none, or the key is another. */
struct shared_news *pg_news_read(const char *text, const char *schema, const uint8_t *key);
