/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Identifies the token of a request, and counts wrong ones for each address. */
#include "server/api/auth.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "server/api/errors.h"
#include "server/api/routes.h"
#include "server/base/map.h"
#include "server/crypto/token.h"
#include "server/log/log.h"

/* A table of fixed size: an address maps to a few neighbouring slots, and replaces the oldest
 * window if all are taken. So many addresses can displace each other's failures, but memory stays
 * bounded. */
#define SLOTS  1024u
#define PROBES 8u

#define ENVIRONMENT_TOKEN "environment" /* its name in the log */

struct address_failures {
    char peer[48]; /* room for an IPv6 address as text */
    int64_t window_began;
    unsigned failures; /* 0: free */
};

/* The tokens that were used in an hour. */
struct uses {
    int64_t hour;
    struct map by_id;
    int64_t *ids; /* owned */
    size_t count, capacity;
};

struct auth {
    pthread_mutex_t lock; /* held for a few comparisons, never during I/O */
    struct uses uses;
    struct address_failures slots[SLOTS];
    int64_t reports_began;
    unsigned reports; /* since then */
};

struct auth *auth_new(void)
{
    struct auth *auth = calloc(1, sizeof *auth);

    if (auth != NULL)
        pthread_mutex_init(&auth->lock, NULL);
    return auth;
}

void auth_free(struct auth *auth)
{
    if (auth == NULL)
        return;
    pthread_mutex_destroy(&auth->lock);
    map_done(&auth->uses.by_id);
    free(auth->uses.ids);
    free(auth);
}

static unsigned hash_peer(const char *peer)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (; *peer != '\0'; peer++)
        hash = (hash ^ (unsigned char)*peer) * 16777619u;
    return hash;
}

static bool expired(const struct address_failures *slot, int64_t now)
{
    return now < slot->window_began || now - slot->window_began >= AUTH_WINDOW_SECONDS;
}

static struct address_failures *find_slot(struct auth *auth, const char *peer, int64_t now)
{
    unsigned first = hash_peer(peer);
    struct address_failures *best = NULL;

    for (unsigned i = 0; i < PROBES; i++) {
        struct address_failures *slot = &auth->slots[(first + i) % SLOTS];

        if (slot->failures != 0 && strcmp(slot->peer, peer) == 0) {
            best = slot;
            break;
        }
        if (best == NULL || (best->failures != 0 &&
                             (slot->failures == 0 || slot->window_began < best->window_began)))
            best = slot;
    }
    if (best->failures == 0 || strcmp(best->peer, peer) != 0 || expired(best, now)) {
        snprintf(best->peer, sizeof best->peer, "%s", peer);
        best->window_began = now;
        best->failures = 0;
    }
    return best;
}

/* A limit for all addresses, so that a client with many of them cannot fill the log. */
static bool may_report(struct auth *auth, int64_t now)
{
    if (now < auth->reports_began || now - auth->reports_began >= AUTH_WINDOW_SECONDS) {
        auth->reports_began = now;
        auth->reports = 0;
    }
    if (auth->reports == AUTH_MAX_REPORTS)
        return false;
    auth->reports++;
    return true;
}

unsigned auth_failed(struct auth *auth, const char *peer, int64_t now, bool *report)
{
    struct address_failures *slot;
    unsigned wait_seconds = 0;

    pthread_mutex_lock(&auth->lock);
    slot = find_slot(auth, peer != NULL ? peer : "", now);
    if (slot->failures <= AUTH_MAX_FAILURES)
        slot->failures++;
    *report = slot->failures == 1;
    if (slot->failures > AUTH_MAX_FAILURES) {
        wait_seconds = (unsigned)(AUTH_WINDOW_SECONDS - (now - slot->window_began));
        *report = slot->failures == AUTH_MAX_FAILURES + 1;
        slot->failures = AUTH_MAX_FAILURES + 2; /* reported */
    }
    *report = *report && may_report(auth, now);
    pthread_mutex_unlock(&auth->lock);
    return wait_seconds;
}

/* The token of `Authorization: Bearer TOKEN`; the scheme's case does not count (RFC 9110 11.1).
 * NULL if none exists. */
static const char *bearer_token(const char *header, size_t *len)
{
    if (header == NULL || strncasecmp(header, "Bearer", 6) != 0 || header[6] != ' ')
        return NULL;
    header += 6;
    while (*header == ' ')
        header++;
    *len = strcspn(header, " \t");
    return *len > 0 && header[*len] == '\0' ? header : NULL;
}

/* Copies the texts into the request, since the registry is released. */
static void copy_grant(struct request *request, const struct registry_token *token)
{
    snprintf(request->token_text, sizeof request->token_text, "%s", token->grant.name);
    request->token_name = request->token_text;
    request->token_id = token->id;
    request->grant = token->grant;
    request->grant.name = request->token_text;
    if (token->grant.prefix == NULL)
        return;
    snprintf(request->prefix_text, sizeof request->prefix_text, "%s", token->grant.prefix);
    request->grant.prefix = request->prefix_text;
}

/* Finds the token and puts it into the request. Compares with every token, each in constant time,
 * so that the duration does not reveal which one was close. */
static bool identify(const struct app_context *app, const uint8_t sha256[32],
                     struct request *request)
{
    const struct page_map *routing = publisher_page_map(app->publisher);
    const struct registry *registry = page_map_registry(routing);

    for (size_t i = 0; i < registry->token_count; i++) {
        const struct registry_token *token = &registry->tokens[i];

        if (token_equal(token->sha256, sha256))
            copy_grant(request, token);
    }
    publisher_page_map_done(routing);

    if (app->environment_token_sha256 != NULL &&
        token_equal(app->environment_token_sha256, sha256)) {
        request->token_name = ENVIRONMENT_TOKEN;
        request->token_id = 0;
        request->grant = (struct grant){.role = GRANT_ADMIN, .name = ENVIRONMENT_TOKEN};
    }
    return request->token_name != NULL;
}

static void reply_wrong_token(const struct app_context *app, struct request *request)
{
    bool report = true;
    unsigned wait_seconds = 0;
    char text[16];

    if (app->auth != NULL)
        wait_seconds = auth_failed(app->auth, request->peer, request->now, &report);
    if (report)
        log_request(
            LOG_LEVEL_WARNING, "auth-failed", &(struct log_ids){request->id, NULL},
            "%s sent a wrong token%s", request->peer != NULL ? request->peer : "an unknown address",
            wait_seconds > 0 ? " too often; rate limit: further requests with a wrong token get 429"
                             : "");
    if (wait_seconds == 0) {
        errors_reply_unauthorised(&request->reply, "unknown or revoked token");
        return;
    }
    reply_problem(&request->reply, 429, "too-many-failures", NULL,
                  "rate limit: this address sent too many wrong tokens; retry later");
    snprintf(text, sizeof text, "%u", wait_seconds);
    reply_header(&request->reply, "Retry-After", text);
}

bool auth_holds(const struct registry *registry, struct request *request, int64_t now)
{
    if (request->token_id == 0) /* the token of the environment, or the route needs none */
        return true;
    if (grant_is_expired(&request->grant, now)) {
        errors_reply_unauthorised(&request->reply, "the token has expired");
        return false;
    }
    for (size_t i = 0; i < registry->token_count; i++) {
        const struct registry_token *token = &registry->tokens[i];

        if (token->id == request->token_id && grant_equal(&token->grant, &request->grant) &&
            token_equal(token->sha256, request->token_sha256))
            return true;
    }
    errors_reply_revoked(&request->reply);
    return false;
}

bool auth_still_holds(const struct app_context *app, struct request *request)
{
    const struct page_map *routing = publisher_page_map(app->publisher);
    bool still = auth_holds(page_map_registry(routing), request, time(NULL));

    publisher_page_map_done(routing);
    return still;
}

bool auth_may_own(const struct app_context *app, struct request *request, const char *field,
                  const char *name)
{
    if (request->grant.site_id == 0 || strcmp(name, request->token_name) == 0)
        return true;
    const struct page_map *routing = publisher_page_map(app->publisher);
    const struct registry *registry = page_map_registry(routing);
    bool taken = strcmp(name, ENVIRONMENT_TOKEN) == 0;

    /* Tokens of other sites do not count: their names are not shown, and they cannot write here. */
    for (size_t i = 0; i < registry->token_count && !taken; i++) {
        const struct registry_token *token = &registry->tokens[i];

        taken =
            (token->grant.site_id == 0 || grant_has_site(&request->grant, token->grant.site_id)) &&
            strcmp(token->grant.name, name) == 0;
    }
    publisher_page_map_done(routing);
    if (taken)
        errors_reply_rule(&request->reply, RULE_ALL_SITES, field,
                          "permission denied: another token has this name; only a token for all "
                          "sites may use it");
    return !taken;
}

/* The writer records the use of a token later: nobody waits for it, and a failure is ignored. */
static void used_done(void *context, struct change_result *result)
{
    (void)context;
    (void)result;
}

/* True once an hour for each token. False when out of memory: the use is recorded another time. */
static bool add_use(struct uses *uses, int64_t id, int64_t hour)
{
    uint32_t hash = map_hash(MAP_HASH_BASIS, (const char *)&id, sizeof id), place;

    if (uses->hour != hour) {
        map_done(&uses->by_id);
        uses->count = 0;
        uses->hour = hour;
    }
    for (struct map_probe p = map_probe(&uses->by_id, hash); map_next(&p, &place);)
        if (uses->ids[place] == id)
            return false;
    if (uses->count == uses->capacity) {
        size_t capacity = uses->capacity > 0 ? 2 * uses->capacity : 16;
        int64_t *ids = reallocarray(uses->ids, capacity, sizeof *ids);

        if (ids == NULL)
            return false;
        uses->ids = ids;
        uses->capacity = capacity;
    }
    if (!map_add(&uses->by_id, hash, (uint32_t)uses->count))
        return false;
    uses->ids[uses->count++] = id;
    return true;
}

/* Submits the use of a token, unless it was recorded in this hour. */
static void record_use(const struct app_context *app, const struct request *request)
{
    const struct change change = {.kind = CHANGE_TOKEN_USED,
                                  .token_used = {.token_id = request->token_id}};
    bool first;

    if (request->token_id == 0 || app->auth == NULL)
        return;
    pthread_mutex_lock(&app->auth->lock);
    first = add_use(&app->auth->uses, request->token_id, request->now / 3600);
    pthread_mutex_unlock(&app->auth->lock);
    if (first)
        catalogue_submit(app->catalogue, &change, used_done);
}

bool routes_authorise(void *context, struct request *request)
{
    const struct app_context *app = context;
    size_t len = 0;
    const char *token = bearer_token(request_header(request, HEADER_AUTHORIZATION), &len);
    uint8_t sha256[32];

    /* A request without a token is not a guess, so it is not counted as one. */
    if (token == NULL) {
        errors_reply_unauthorised(&request->reply,
                                  "the token is missing: send Authorization: Bearer TOKEN");
        return false;
    }
    if (!token_sha256(token, len, sha256)) {
        errors_reply_status(&request->reply, CATALOGUE_NO_MEMORY);
        return false;
    }
    if (!identify(app, sha256, request)) {
        reply_wrong_token(app, request);
        return false;
    }
    memcpy(request->token_sha256, sha256, sizeof sha256);
    if (grant_is_expired(&request->grant, request->now)) {
        errors_reply_unauthorised(&request->reply, "the token has expired");
        return false;
    }
    record_use(app, request);
    if (grant_may(&request->grant, request->route->role))
        return true;
    errors_reply_role(&request->reply, &request->grant, request->route->role);
    return false;
}

bool auth_is_peer(const struct app_context *app, struct request *request)
{
    size_t len = 0;
    const char *token = bearer_token(request_header(request, HEADER_AUTHORIZATION), &len);
    uint8_t sha256[32];

    if (token != NULL && token_sha256(token, len, sha256) &&
        token_equal(app->peer_token_sha256, sha256))
        return true;
    if (token == NULL)
        errors_reply_unauthorised(&request->reply,
                                  "the secret of the nodes is missing (peer_token_file)");
    else
        reply_wrong_token(app, request);
    return false;
}

bool auth_sees_all(const struct app_context *app, struct request *request, bool *allowed)
{
    size_t len;

    *allowed = !app->metrics_token;
    if (*allowed || bearer_token(request_header(request, HEADER_AUTHORIZATION), &len) == NULL)
        return true;
    if (!routes_authorise((void *)(uintptr_t)app, request))
        return false;
    *allowed = request->grant.site_id == 0 && request->grant.prefix == NULL;
    return true;
}
