/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One search engine: how it is asked and what it answers. Internal to server/engines/; the thread's
 * own. */
#pragma once

#include <jansson.h>

#include "config/config.h"
#include "db/engine.h"
#include "server/base/str.h"
#include "server/client/client.h"

struct engine;
struct engines;

/* The sitemaps of an answer. Texts are its own. */
struct engine_list {
    struct engine_sitemap *at; /* owned */
    size_t count, room;
    bool failed;        /* out of memory */
    const char *origin; /* only locs of this site are added; NULL: of any. Borrowed */
    bool bad_only;      /* only sitemaps with errors or warnings are added */
};
/* Adds a copy; what is more than ENGINE_SITEMAPS_MAX, or a loc of no use (not http, with control
 * characters, of another site), is left out. What is not to be added takes no place. */
void engine_list_add(struct engine_list *list, const struct engine_sitemap *sitemap);
void engine_list_done(struct engine_list *list);

/* What differs between engines. Each call makes one request (and where needed one for a token);
 * `property` is how the engine names the site. */
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
    int64_t ready_ms;     /* clock_now_ms: no request before it */
    int64_t paused_until; /* Unix seconds: it refuses the credentials, or asks to wait */
    unsigned busy;        /* answers in a row that ask to wait */
    int64_t idle_until;   /* Unix seconds: nothing is due before, while the registry stays */
    uint64_t idle_registry;
    char why[256]; /* of the last request that failed, a sentence without secrets; else "" */
    struct fetch_reply reply;
    struct str token; /* google's; wiped */
    int64_t token_until;
};

/* Of a request: the state that it shows, ENGINE_OK for 2xx; the reply is e->reply, until the next.
 * `url` NULL: `target` at the engine's endpoint. Waits for its turn, a request a second. */
struct engine_request {
    const struct url *url;
    const char *method, *target, *headers; /* as fetch_request */
    const char *type;                      /* of the body; NULL: there is none */
    const char *body;
};
enum engine_state engine_send(struct engine *e, const struct engine_request *request);
/* Parses e->reply.body. NULL, and FAILED is to be returned, where it is not JSON of an object. The
 * caller's (json_decref). */
json_t *engine_answer(struct engine *e);
/* Sets e->why and returns the state. */
enum engine_state engine_fail(struct engine *e, enum engine_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A word of an error answer as may be shown: letters, digits and . _ - alone, else "". */
const char *engine_word(const json_t *text, char out[65]);
/* Whether plain HTTP may be spoken with it: only with an address that allow_address contains. */
bool engine_may_request(struct engine *e, const struct url *url);

/* A text member; "" where it is missing. */
const char *engine_text(const json_t *object, const char *name);
/* A number up to 2^40, as a number or a text; 0 for anything else. */
uint64_t engine_number(const json_t *value);
/* RFC 3339; 0 where it is not a time. */
int64_t engine_time(const json_t *value);
/* "/Date(1399100400000-0700)/", milliseconds; 0 where it is not a time, or before 1970-01-02. */
int64_t engine_bing_time(const json_t *value);
/* Appends `text` as a part of a path or query (RFC 3986 2.1). */
void engine_append_escaped(struct str *out, const char *text);

/* Appends the JWT that a service account signs (RFC 7515, RS256) for `aud` and `scope`, valid from
 * `now` on for an hour. NULL, or a sentence of what is wrong with the key. */
const char *engine_jwt(struct str *out, const char *key_pem, const char *key_id, const char *iss,
                       const char *aud, const char *scope, int64_t now);
