/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The text of a notification: the writing node, the number of the record, and, if the nodes have a
 * key and the record is small, the record itself. Every role of a database can listen to a channel
 * and notify on it, whatever its rights: so the record is encrypted and authenticated ("sealed",
 * AES-256-GCM). Internal to db/shared/pg. */
#pragma once

#include "db/shared/log.h"

#define PG_NEWS_SIZE 7900 /* PostgreSQL takes less than 8000 bytes */

/* "NODE SEQ", or "NODE SEQ SEALED" if there is a key and the record is `node`'s own. `key` may be
 * NULL. */
void pg_news_write(char out[PG_NEWS_SIZE], const char *schema, const char *node,
                   const struct shared_record *record, const void *body, size_t size,
                   const uint8_t *key);
/* Whether another node sent it. */
bool pg_news_is_other(const char *text, const char *node);
/* The record; NULL: none, or sealed with another key. */
struct shared_news *pg_news_read(const char *text, const char *schema, const uint8_t *key);
