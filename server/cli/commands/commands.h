/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The commands, one function each; see table.c. Each returns an exit status and has
 * told what went wrong. Internal to server/cli/. */
#pragma once

#include "server/cli/backend/api.h"

/* Why the server or catalogue is not well: an array of the API's reasons, the caller's. NULL, and
 * told, where that cannot be asked. */
json_t *status_reasons(struct backend *b, bool *healthy);
/* Appends the page's XML as it would be served; nothing where it has no entries. An exit status. */
int entries_render(struct backend *b, const json_t *list, uint64_t number, struct str *out);

int command_serve(struct cli *cli);
int command_check_config(struct cli *cli);
int command_site_add(struct cli *cli);
int command_site_update(struct cli *cli);
int command_site_move(struct cli *cli);
int command_site_list(struct cli *cli);
int command_site_remove(struct cli *cli);
int command_index_add(struct cli *cli);
int command_index_list(struct cli *cli);
int command_index_remove(struct cli *cli);
int command_urlset_add(struct cli *cli);
int command_urlset_set(struct cli *cli);
int command_freeze(struct cli *cli);
int command_thaw(struct cli *cli);
int command_add(struct cli *cli);
int command_remove(struct cli *cli);
int command_list(struct cli *cli);
int command_import(struct cli *cli);
int command_export(struct cli *cli);
int command_render(struct cli *cli);
int command_history(struct cli *cli);
int command_crawlers(struct cli *cli);
int command_crawlers_import(struct cli *cli);
int command_engines(struct cli *cli);
int command_diff(struct cli *cli);
int command_undo(struct cli *cli);
int command_source_add(struct cli *cli);
int command_source_set(struct cli *cli);
int command_source_remove(struct cli *cli);
int command_source_list(struct cli *cli);
int command_token_add(struct cli *cli);
int command_token_list(struct cli *cli);
int command_token_revoke(struct cli *cli);
int command_status(struct cli *cli);
int command_healthcheck(struct cli *cli);
int command_doctor(struct cli *cli);
int command_probe(struct cli *cli);
int command_migrate(struct cli *cli);
int command_backup(struct cli *cli);
int command_restore(struct cli *cli);
int command_check(struct cli *cli);
int command_scan(struct cli *cli);
int command_shard_map(struct cli *cli);
int command_share_init(struct cli *cli);
int command_share_status(struct cli *cli);
int command_share_upgrade(struct cli *cli);
int command_completion(struct cli *cli);
int command_complete(struct cli *cli);
