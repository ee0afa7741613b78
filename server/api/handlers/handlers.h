/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The handlers that the admin listener's table (calls.def) names, by the noun's file, and what
 * nouns share with each other. Internal to server/api/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "db/check.h"
#include "db/registry.h"
#include "db/shared.h"
#include "server/api/routes.h"
#include "server/base/str.h"
#include "server/http/request.h"

typedef enum handled route_hook(void *context, struct request *request);

/* Each call of calls.def has its handler in its noun's file, and the bytes of what is more than a
 * struct call (route.call_size). */
#define TAG(...)
#define OPEN(path_, label_, by_, ...)                 by_
#define CALL(role_, method_, path_, label_, by_, ...) by_
#define DOCUMENT                                      CALL
#define UPLOAD(method_, path_, label_, by_, ...)      by_
#define SITE_FILE                                     UPLOAD
#define BY(...)                                       HOOK(__VA_ARGS__, plain_size_, )
#define BY_PAGES                                      BY
#define HOOK(hook_, size_, ...)                                                                    \
    route_hook hook_;                                                                              \
    extern const size_t size_;
#include "server/api/calls.def"
#undef TAG
#undef OPEN
#undef CALL
#undef DOCUMENT
#undef UPLOAD
#undef SITE_FILE
#undef BY
#undef BY_PAGES
#undef HOOK
route_hook console_redirect, console_get; /* console.c */
route_hook site_import_finish;            /* site_import.c: of a FILE */
enum handled site_import_body(void *context, struct request *request, const void *bytes,
                              size_t len);

/* ---- crawlers.c, engines.c */
struct call;
struct catalogue_view;
/* Has the ledger learn what other nodes of a shared catalogue counted. Where that cannot be read,
 * what was known before stays. */
void crawlers_learn_others(struct call *call, struct catalogue_view *view);
/* Whether the call shows what the engine at this place says: it is configured, and the token sees
 * sites as a whole, which one with a prefix does not. */
bool engine_is_shown(const struct call *call, size_t place);

/* ---- checks.c */
/* The `check` of a sitemap that is read where it is. */
void check_json_append(struct str *out, const struct check_record *record);

/* ---- sources.c: the settings of a source of either kind, and whose site's it is */
struct source_settings;
struct json_folder_settings;
struct json_remote_settings;

/* The site of a folder's URL; of an upstream the one that it is held to, else that of its index,
 * else the one whose its host is. NULL: none. */
const struct registry_site *source_site_of_folder(const struct registry *registry,
                                                  const struct source_settings *settings);
const struct registry_site *source_site_of_remote(const struct registry *registry,
                                                  const struct source_settings *settings);

/* As the API shows them; what is in `settings` is borrowed. */
struct json_folder_settings source_shown_folder(const struct source_settings *settings,
                                                const struct registry *registry);
struct json_remote_settings source_shown_remote(const struct source_settings *settings,
                                                const struct registry *registry);
/* Appends the settings of one as the catalogue keeps it. */
void source_json_append_made(struct str *out, const struct source_settings *made,
                             const struct registry *registry);

/* ---- the same: what the catalogue remembers of sources that nothing runs here */
struct source_at_rest {
    const char *name;
    const struct source_settings *made; /* NULL: neither configuration nor catalogue declares it */
    bool remote, managed;
    char failure[512]; /* "": none that shows now */
    struct source_state state;
    uint64_t states[CHECK_STATES]; /* the bad ones of a remote one's sitemaps */
};
/* Those of the configuration, then those of the catalogue that have no name of these, then what
 * else was read into it. False from `each` ends it: NO_MEMORY. */
typedef bool source_at_rest_each(void *context, const struct source_at_rest *source);
enum catalogue_status sources_at_rest_each(const struct sources_at_rest *rest,
                                           struct catalogue_view *view,
                                           const struct registry *registry,
                                           source_at_rest_each *each, void *context);
/* Whether the configuration names it. Takes NULL. */
bool sources_at_rest_has(const struct sources_at_rest *rest, const char *name);

/* A file that the build puts into the program (embed.cmake). `etag` with its quotes. */
struct embedded_file {
    const char *name;
    const unsigned char *bytes;
    size_t len;
    const char *etag;
};
extern const struct embedded_file openapi_files[]; /* openapi.json alone */
extern const struct embedded_file console_files[]; /* server/console/ */
extern const size_t console_files_count;

/* The nodes of a shared catalogue, as /readyz lists them, and what each reports about itself to the
 * others: a configuration that differs from theirs, a folder that it does not have. Internal to
 * server/; shared_node.c supplies it, the API shows it. */

/* Names of one kind that a node says: "sites" and "tokens" that its configuration declares,
 * "without": folder sources whose folder is not there; "remotes": remote sources. Origins and
 * names, which JSON needs not escape. */
void nodes_say_names(struct str *out, const char *kind, const char *const *names, size_t count);
/* Calls `each` for every name of the kind. False where the node said more than fits: then it may be
 * any. */
bool nodes_read_names(const char *said, const char *kind,
                      void (*each)(void *context, const char *name, size_t len), void *context);

/* Copies the text that a node says as `kind` ("configuration", "advertise"); "": none. */
void nodes_read_text(const char *said, const char *kind, char *out, size_t size);

/* What it does with them while it cannot apply the others': a follower never applies any itself. */
const char *nodes_writes_word(const struct shared_state *state);
/* Whether nothing is here yet that could be served. */
bool nodes_is_joining(struct catalogue *c);
/* Adds to an array of reasons what is wrong with this node or shows between the nodes; each is
 * reported by `add`. False where nothing can be served yet: it has not joined. */
bool nodes_report_reasons(struct catalogue *c,
                          void (*add)(void *context, const char *code, const char *detail),
                          void *context);
/* `,"shared":{…}`: this node and the others, for people. Nothing where it is not shared. */
void nodes_append(struct str *out, struct catalogue *c);
