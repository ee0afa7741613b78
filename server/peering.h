/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The requests of a node of a shared catalogue to other nodes: for their file, when it joins. They
 * answer by server/api/peer_files.h. */
#pragma once

#include "config/config.h"
#include "db/shared.h"

struct following;
struct peering;

/* Reads the secret; `config` must outlive it. NULL: it failed, which is logged. */
struct peering *peering_new(const struct config *config);
/* Accepts NULL. */
void peering_free(struct peering *p);
/* For the catalogue's options; NULL for NULL. */
const struct shared_peers *peering_calls(const struct peering *p);
/* NULL: no node is followed. */
const struct following *peering_following(const struct peering *p);
/* Derived from the secret, for the catalogue's options (struct catalogue_shared); NULL for NULL. */
const uint8_t *peering_key(const struct peering *p);
/* 32 bytes. */
const uint8_t *peering_token_sha256(const struct peering *p);
