/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The admin listener's table: a route for each call of calls.def, the nodes' and the console's. */
#include "server/api/call.h"
#include "server/api/copy.h"
#include "server/api/description.h"
#include "server/api/handlers/handlers.h"
#include "server/api/peer_files.h"
#include "server/api/peer_log.h"
#include "server/api/upload.h"
#include "server/rules/limits.h"

/* Documents that describe a site or an index; app->max_body_bytes may be less. */
#define DOCUMENT_BYTES (1u << 20)
/* Lists: upload.c applies max_bulk of the configuration. */
#define LIST_BYTES UINT64_MAX

static const char *const json[] = {"application/json", NULL};
static const char *const lists[] = {"application/json", "application/x-ndjson", NULL};
static const char *const files[] = {"application/vnd.sqlite3", NULL};
static const size_t plain_size = sizeof(struct call);

#define BY(...)                 HOOK(__VA_ARGS__, plain_size, )
#define BY_PAGES(...)           HOOK(__VA_ARGS__, plain_size, ), .pages = true
#define HOOK(hook_, size_, ...) (hook_), .call_size = &(size_)
#define TOKEN(role_, method_, ...)                                                                 \
    .methods = HTTP_##method_, .role = GRANT_##role_, .done = call_done,                           \
    .operation = &(const struct operation)                                                         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

#define TAG(...)
/* Answered from memory, for any client. */
#define OPEN(path_, label_, by_, id_, summary_, note_, ...)                                        \
    {.methods = HTTP_GET, .path = (path_), .label = (label_), .asks_to_wait = true, .finish = by_},
#define CALL(role_, method_, path_, label_, by_, id_, summary_, note_, ...)                        \
    {.path = (path_),                                                                              \
     .label = (label_),                                                                            \
     .begin = call_begin,                                                                          \
     .finish = by_,                                                                                \
     TOKEN(role_, method_, __VA_ARGS__)},
#define DOCUMENT(role_, method_, path_, label_, by_, id_, summary_, note_, ...)                    \
    {.path = (path_),                                                                              \
     .label = (label_),                                                                            \
     .begin = call_begin,                                                                          \
     .finish = by_,                                                                                \
     .max_body_bytes = DOCUMENT_BYTES,                                                             \
     .content_types = json,                                                                        \
     TOKEN(role_, method_, __VA_ARGS__)},
#define UPLOAD(method_, path_, label_, by_, id_, summary_, note_, ...)                             \
    {.path = (path_),                                                                              \
     .label = (label_),                                                                            \
     .begin = by_,                                                                                 \
     .body = upload_body,                                                                          \
     .finish = upload_finish,                                                                      \
     .max_body_bytes = LIST_BYTES,                                                                 \
     .content_types = lists,                                                                       \
     TOKEN(WRITE, method_, __VA_ARGS__)},
#define SITE_FILE(method_, path_, label_, by_, id_, summary_, note_, ...)                          \
    {.path = (path_),                                                                              \
     .label = (label_),                                                                            \
     .begin = by_,                                                                                 \
     .body = site_import_body,                                                                     \
     .finish = site_import_finish,                                                                 \
     .max_body_bytes = LIST_BYTES,                                                                 \
     .content_types = files,                                                                       \
     TOKEN(ADMIN, method_, __VA_ARGS__)},
/* For other nodes, with their token: not a call of the API. */
#define PEER(path_, begin_, finish_, done_)                                                        \
    {.methods = HTTP_GET,                                                                          \
     .path = (path_),                                                                              \
     .label = "peer",                                                                              \
     .begin = (begin_),                                                                            \
     .finish = (finish_),                                                                          \
     .done = (done_)},
/* A file of the console. */
#define PAGE(path_, finish_)                                                                       \
    {.methods = HTTP_GET, .path = (path_), .label = "console", .finish = (finish_)},

const struct route routes_admin[] = {
#include "server/api/calls.def"
    PEER("/peer/snapshot", peer_snapshot_begin, peer_snapshot_get, peer_snapshot_done)
        PEER("/peer/log", peer_log_begin, peer_log_get, peer_log_done) PAGE("/", console_redirect)
            PAGE("/console", console_redirect) PAGE("/console/", console_get)
                PAGE("/console/{file}", console_get)};
const size_t routes_admin_count = sizeof routes_admin / sizeof routes_admin[0];
const size_t routes_bare_count = sizeof routes_admin / sizeof routes_admin[0] - 4;
const size_t routes_api_count = sizeof routes_admin / sizeof routes_admin[0] - 6;
