/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One search engine: its requests and responses. Internal to server/engines/; only for its thread.
 */
#pragma once

#include <jansson.h>

#include "config/config.h"
#include "db/engine.h"
#include "server/base/str.h"
#include "server/client/client.h"

struct engine;
struct engines;

/* The sitemaps of a response. It owns the texts. */
struct engine_list {
    struct engine_sitemap *at; /* owned */
    size_t count, room;
    bool failed;        /* out of memory */
    const char *origin; /* only locs of this site are added; NULL: of any. Borrowed */
    bool bad_only;      /* only sitemaps with errors or warnings are added */
};
/* Adds a copy. Drops invalid locs (not http, with control characters, of another site), unwanted
 * sitemaps, and more than ENGINE_SITEMAPS_MAX. */
void engine_list_add(struct engine_list *list, const struct engine_sitemap *sitemap);
void engine_list_done(struct engine_list *list);

/* What differs between engines. Each call makes one request (and one for a token if needed);
 * `property` is the engine's name for the site. */
struct engine_kind {
    const char *base; /* its own endpoint */
    /* The sitemaps of a property, or of the index `parent`. */
    enum engine_state (*list)(struct engine *e, const char *property, const char *parent,
                              struct engine_list *out);
    enum engine_state (*submit)(struct engine *e, const char *property, const char *loc);
};
extern const struct engine_kind engine_google, engine_bing;

struct engine {
    struct engines *all;
    const struct config_engine *config;
    const struct engine_kind *kind;
    const char *name;
    struct url endpoint;
    int64_t ready_ms; /* clock_now_ms: no request before this */
    /* Unix seconds: pause after it refused the credentials or asked to wait */
    int64_t paused_until;
    unsigned busy;      /* responses in a row that ask to wait */
    int64_t idle_until; /* Unix seconds: nothing is due before, unless the registry changes */
    uint64_t idle_registry;
    char why[256]; /* of the last failed request, a sentence without secrets; else "" */
    struct fetch_reply reply;
    struct str token; /* Google's; wiped */
    int64_t token_until;
};

/* A request. Its result is a state, ENGINE_OK for 2xx; the reply stays in e->reply until the next
 * one. `url` NULL: `target` at the engine's endpoint. Sends at most one request a second. */
struct engine_request {
    const struct url *url;
    const char *method, *target, *headers; /* as fetch_request */
    const char *type;                      /* of the body; NULL: no body */
    const char *body;
};
enum engine_state engine_send(struct engine *e, const struct engine_request *request);
/* Parses e->reply.body, for the caller to free (json_decref). NULL: not a JSON object; then return
 * ENGINE_FAILED. */
json_t *engine_answer(struct engine *e);
/* Sets e->why and returns the state. */
enum engine_state engine_fail(struct engine *e, enum engine_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A word of an error response that is safe to show: only letters, digits and . _ - , else "". */
const char *engine_word(const json_t *text, char out[65]);

/* A text member; "": missing. */
const char *engine_text(const json_t *object, const char *name);
/* A number up to 2^40, as a number or a text; 0 for anything else. */
uint64_t engine_number(const json_t *value);
/* RFC 3339; 0: not a time. */
int64_t engine_time(const json_t *value);
/* "/Date(1399100400000-0700)/", milliseconds; 0: not a time, or before 1970-01-02. */
int64_t engine_bing_time(const json_t *value);
/* Appends `text` as a part of a path or query (RFC 3986 2.1). */
void engine_append_escaped(struct str *out, const char *text);

/* Appends the JWT (RFC 7515, RS256) of a service account for `aud` and `scope`, valid for an hour
 * from `now`. Returns NULL, or a sentence about the fault of the key. */
const char *engine_jwt(struct str *out, const char *key_pem, const char *key_id, const char *iss,
                       const char *aud, const char *scope, int64_t now);
