/* The parts of the backend that is a server (backend_server.c): changes, registry and history,
 * through its API. Internal to server/cli/. */
#ifndef SITEMAPD_CLI_BACKEND_SERVER_PARTS_H
#define SITEMAPD_CLI_BACKEND_SERVER_PARTS_H

#include "server/cli/backend/backend.h"
#include "server/cli/backend/server_call.h"

/* Applies a change, as the function of server/cli/backend/backend.h; `*index_url` becomes the URL
 * of the index that an entry was put into. */
enum catalogue_status server_apply(struct server *s, const struct change *change,
                                   struct str *index_url, struct change_result *result);
/* What an answer counts, and its revision. */
void server_counts(const json_t *answer, struct change_result *result);

/* The sites with their lists; NULL, and told, where they cannot be read. `*indexes` has indexes and
 * urlsets as they were told, which says of pages what no registry does; the caller's, may be NULL.
 */
struct registry *server_registry(struct server *s, bool with_robots, json_t **indexes);

/* As the functions of server/cli/backend/backend.h that are called so. False: the last answer is
 * `*answer`, the caller's, as server_ask has it. */
bool server_history(struct server *s, const struct history_query *query, backend_change *each,
                    void *context, struct backend_reach *reach, json_t **answer);
bool server_change(struct server *s, uint64_t revision, backend_change *each, backend_row *each_row,
                   void *context, json_t **answer);
bool server_diff(struct server *s, const struct backend_diff *wanted, backend_row *each,
                 void *context, json_t **answer);

#endif
