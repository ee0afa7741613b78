#include "server/routes/auth.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/log/log.h"
#include "server/routes/errors.h"
#include "server/routes/routes.h"
#include "server/token/token.h"

/* A table of fixed size: an address maps to a few neighbouring slots, and where all are taken the
 * oldest window gives way. Many addresses can thus forget one another's failures, never use
 * memory without bound. */
#define SLOTS  1024u
#define PROBES 8u

#define ENVIRONMENT_TOKEN "environment" /* what the log calls it */

struct slot_failures {
    char peer[48]; /* an IPv6 address as text fits */
    int64_t window_began;
    unsigned failures; /* 0: free */
};

struct auth {
    pthread_mutex_t lock; /* held for a few comparisons, never over I/O */
    struct slot_failures slots[SLOTS];
};

struct auth *auth_new(void)
{
    struct auth *auth = calloc(1, sizeof *auth);

    if (auth == NULL)
        return NULL;
    if (pthread_mutex_init(&auth->lock, NULL) != 0) {
        free(auth);
        return NULL;
    }
    return auth;
}

void auth_free(struct auth *auth)
{
    if (auth == NULL)
        return;
    pthread_mutex_destroy(&auth->lock);
    free(auth);
}

static unsigned hash_peer(const char *peer)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (; *peer != '\0'; peer++)
        hash = (hash ^ (unsigned char)*peer) * 16777619u;
    return hash;
}

static bool expired(const struct slot_failures *slot, int64_t now)
{
    return now < slot->window_began || now - slot->window_began >= AUTH_WINDOW_SECONDS;
}

static struct slot_failures *find_slot(struct auth *auth, const char *peer, int64_t now)
{
    unsigned first = hash_peer(peer);
    struct slot_failures *best = NULL;

    for (unsigned i = 0; i < PROBES; i++) {
        struct slot_failures *slot = &auth->slots[(first + i) % SLOTS];

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

unsigned auth_failed(struct auth *auth, const char *peer, int64_t now, bool *report)
{
    struct slot_failures *slot;
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
    pthread_mutex_unlock(&auth->lock);
    return wait_seconds;
}

/* The token of `Authorization: Bearer TOKEN`; the scheme's case does not count (RFC 9110 11.1).
 * NULL where there is none. */
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

struct identity {
    bool known;
    char name[NAME_MAX_BYTES + 1];
    int64_t site_id;
};

/* Compares with every token there is, each in constant time, so that the time taken tells nothing
 * of which one was near. */
static struct identity identify(const struct app_context *app, const uint8_t sha256[32])
{
    struct identity who = {.known = false};
    const struct routing *routing = publisher_routing(app->publisher);
    const struct registry *registry = routing_registry(routing);

    for (size_t i = 0; i < registry->token_count; i++) {
        const struct registry_token *token = &registry->tokens[i];

        if (token_equal(token->sha256, sha256)) {
            who.known = true;
            snprintf(who.name, sizeof who.name, "%s", token->name);
            who.site_id = token->site_id;
        }
    }
    publisher_routing_done(routing);

    if (app->environment_token_sha256 != NULL &&
        token_equal(app->environment_token_sha256, sha256)) {
        who.known = true;
        snprintf(who.name, sizeof who.name, ENVIRONMENT_TOKEN);
        who.site_id = 0;
    }
    return who;
}

static void reply_unauthorised(struct request *request, const char *detail)
{
    reply_problem(&request->reply, 401, "unauthorized", NULL, detail);
    reply_header(&request->reply, "WWW-Authenticate", "Bearer realm=\"sitemapd\"");
}

static void reply_wrong_token(const struct app_context *app, struct request *request)
{
    bool report = true;
    unsigned wait_seconds = 0;
    char text[16];

    if (app->auth != NULL)
        wait_seconds = auth_failed(app->auth, request->peer, request->now, &report);
    if (report)
        log_request(LOG_LEVEL_WARNING, "auth-failed", request->id, "%s sent a wrong token%s",
                    request->peer != NULL ? request->peer : "an unknown address",
                    wait_seconds > 0 ? " too often; further ones are answered 429" : "");
    if (wait_seconds == 0) {
        reply_unauthorised(request, "this token is not known, or was revoked");
        return;
    }
    reply_problem(&request->reply, 429, "too-many-failures", NULL,
                  "too many wrong tokens came from this address");
    snprintf(text, sizeof text, "%u", wait_seconds);
    reply_header(&request->reply, "Retry-After", text);
}

bool auth_still_holds(const struct app_context *app, struct request *request)
{
    if (request->token_name == NULL) /* the route needs none: the listener lets nobody else in */
        return true;
    const struct routing *routing = publisher_routing(app->publisher);
    const struct registry *registry = routing_registry(routing);
    bool holds = app->environment_token_sha256 != NULL &&
                 strcmp(request->token_name, ENVIRONMENT_TOKEN) == 0;

    for (size_t i = 0; !holds && i < registry->token_count; i++)
        holds = strcmp(registry->tokens[i].name, request->token_name) == 0 &&
                registry->tokens[i].site_id == request->token_site_id;
    publisher_routing_done(routing);
    if (!holds)
        reply_unauthorised(request, "this token was revoked while the call was under way");
    return holds;
}

bool routes_authorise(void *context, struct request *request)
{
    const struct app_context *app = context;
    size_t len = 0;
    const char *token = bearer_token(request_header(request, HEADER_AUTHORIZATION), &len);
    uint8_t sha256[32];
    struct identity who;

    /* To come without a token is no guess and does not count as one. */
    if (token == NULL) {
        reply_unauthorised(request, "this call needs a token: Authorization: Bearer TOKEN");
        return false;
    }
    if (!token_sha256(token, len, sha256)) {
        errors_reply_status(&request->reply, CATALOGUE_NO_MEMORY);
        return false;
    }
    who = identify(app, sha256);
    if (!who.known) {
        reply_wrong_token(app, request);
        return false;
    }
    request->token_name = strdup(who.name);
    if (request->token_name == NULL) {
        errors_reply_status(&request->reply, CATALOGUE_NO_MEMORY);
        return false;
    }
    request->token_site_id = who.site_id;
    return true;
}
