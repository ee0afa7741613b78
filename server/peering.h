/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a node of a shared catalogue asks of others: their file, when it joins. They give it by
 * server/api/peer_files.h. */
#pragma once

#include "config/config.h"
#include "db/shared.h"

struct following;
struct peering;

/* Reads the secret; `config` outlives it. NULL: why was logged. */
struct peering *peering_new(const struct config *config);
/* Takes NULL. */
void peering_free(struct peering *p);
/* For the catalogue's options; NULL of NULL. */
const struct shared_peers *peering_calls(const struct peering *p);
/* NULL: no node is followed. */
const struct following *peering_following(const struct peering *p);
/* Made of the secret, for the catalogue's options (struct catalogue_shared); NULL of NULL. */
const uint8_t *peering_key(const struct peering *p);
/* 32 bytes. */
const uint8_t *peering_token_sha256(const struct peering *p);
