/* A server's history, through its API, for backend_server.c. Internal to server/cli/. */
#ifndef SITEMAPD_CLI_SERVER_HISTORY_H
#define SITEMAPD_CLI_SERVER_HISTORY_H

#include "server/cli/backend.h"
#include "server/cli/server_call.h"

/* As the functions of server/cli/backend.h that are called so. False: the last answer is `*answer`,
 * the caller's, as server_ask has it. */
bool server_history(struct server *s, const struct history_query *query, backend_change *each,
                    void *context, struct backend_reach *reach, json_t **answer);
bool server_change(struct server *s, uint64_t revision, backend_change *each, backend_row *each_row,
                   void *context, json_t **answer);
bool server_diff(struct server *s, const struct backend_diff *wanted, backend_row *each,
                 void *context, json_t **answer);

#endif
