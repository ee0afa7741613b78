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

/* Declares, for each call of calls.def, its handler and, if it keeps more than a struct call, the
 * size of that (route.call_size). */
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
/* Updates the ledger with the counts of other nodes of a shared catalogue. If these cannot be read,
 * those known before stay. */
void crawlers_learn_others(struct call *call, struct catalogue_view *view);
/* Whether the call shows the reports of this search engine: it is configured, and the token is not
 * limited to a prefix. */
bool engine_is_shown(const struct call *call, size_t place);

/* ---- checks.c */
/* Appends the `check` of a polled sitemap. */
void check_json_append(struct str *out, const struct check_record *record);

/* ---- sources.c: the settings of a source of either kind, and its site */
struct source_settings;

/* Appends the settings of a source as the catalogue has them. */
void source_json_append_made(struct str *out, const struct source_settings *made,
                             const struct registry *registry);

/* ---- sources.c: the stored state of sources that do not run here */
struct source_at_rest {
    const char *name;
    const struct source_settings *made; /* NULL: neither configuration nor catalogue declares it */
    bool remote, managed;
    char failure[512]; /* "": none is known */
    struct source_state state;
    uint64_t states[CHECK_STATES]; /* bad sitemaps of a remote source, by state */
};
/* Visits the sources of the configuration, then those of the catalogue with other names, then
 * undeclared ones whose scans are in the catalogue. If `each` returns false, the result is
 * NO_MEMORY. */
typedef bool source_at_rest_each(void *context, const struct source_at_rest *source);
enum catalogue_status sources_at_rest_each(const struct sources_at_rest *rest,
                                           struct catalogue_view *view,
                                           const struct registry *registry,
                                           source_at_rest_each *each, void *context);
/* Whether the configuration has a source of this name. Accepts NULL. */
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

/* The nodes of a shared catalogue, as /readyz lists them, and the texts by which each node reports
 * about itself to the others: its configuration, missing folders. Internal to server/;
 * shared_node.c supplies it, the API shows it. */

/* Appends names of one kind to the report of a node: "sites" and "tokens" that its configuration
 * declares; "without": folder sources whose folder is missing; "remotes": remote sources. Origins
 * and names need no escapes in JSON. */
void nodes_say_names(struct str *out, const char *kind, const char *const *names, size_t count);
/* Calls `each` for every name of the kind. False if the node had more names than fit: then it may
 * be any name. */
bool nodes_read_names(const char *said, const char *kind,
                      void (*each)(void *context, const char *name, size_t len), void *context);

/* Copies the text of this kind ("configuration", "advertise") from the report of a node; "": none.
 */
void nodes_read_text(const char *said, const char *kind, char *out, size_t size);

/* "forwards writes" or "rejects writes": what this node does with writes while it cannot apply the
 * records of other nodes. A follower forwards them. */
const char *nodes_writes_word(const struct shared_state *state);
/* Reports, by calls of `add`, what is wrong with this node or between the nodes. False if nothing
 * can be served yet, since this node has not joined. */
bool nodes_report_reasons(const struct app_context *app,
                          void (*add)(void *context, const char *code, const char *detail),
                          void *context);
/* `,"shared":{…}`: this node and the others, for people. Nothing if the catalogue is not shared. */
void nodes_append(struct str *out, struct catalogue *c);
