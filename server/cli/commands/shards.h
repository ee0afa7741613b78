/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Shards: servers with separate catalogues, between which the sites are divided. Internal to
 * server/cli/commands/. */
#pragma once

#include <stddef.h>

#include "server/cli/commands/commands.h"

#define SHARDS_MAX      256u
#define SHARD_NAME_SIZE 65

struct shard {
    char name[SHARD_NAME_SIZE]; /* A-Z a-z 0-9 . _ - */
    struct backend *server;
};

/* `named` is NAME=URL, or a URL whose host is the name. Returns EXIT_DONE, or an exit status with
 * the error reported; then `out` need not be closed, but may be. */
int shard_open(struct cli *cli, const char *named, const char *token_file, struct shard *out);
void shard_close(struct shard *shard);

/* Opens all servers of --server, each with the --token-file at the same position, or all with the
 * only one. Returns EXIT_DONE, or reports why not. The caller ends both with shards_close. */
int shards_open(struct cli *cli, struct shard **out, size_t *count);
void shards_close(struct shard *shards, size_t count);

/* `status` of several servers: a line for each, and their sum. */
int shards_status(struct cli *cli);
