/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Who may call the API: bearer tokens of the catalogue and of the environment (RFC 6750), and a
 * bound on guessing.
 *
 * An address that failed too often within a minute gets 429 for each further wrong token. A right
 * one is always let in: behind a reverse proxy all callers share one address, and a stranger's
 * guesses must not lock the others out. Made tokens have 256 bits; no rate of guessing finds one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define AUTH_MAX_FAILURES   30u  /* of one address within a window */
#define AUTH_MAX_REPORTS    100u /* of all addresses within one */
#define AUTH_WINDOW_SECONDS 60

struct auth;

/* NULL when out of memory. */
struct auth *auth_new(void);
/* Takes NULL. */
void auth_free(struct auth *auth);

/* Notes a failure of `peer` (NULL: unknown) at `now`. Returns 0, or the seconds for which the
 * address is to wait. `*report` is set where this is the first failure of a window or the first
 * past the limit: what is worth a line in the log; AUTH_MAX_REPORTS times in a window at most.
 * Thread safe; never waits for I/O. */
unsigned auth_failed(struct auth *auth, const char *peer, int64_t now, bool *report);

/* A request is authorised when its header has arrived; its body, or what it waits for, may take
 * long. So each call is authorised again before it returns data, and a write by the writer itself,
 * in its transaction (change.bearer_id). A token is its id, hash and scope: another one of the same
 * name is rejected. Both are false, with the reply filled (401), if it has been revoked or has
 * expired. Thread safe. */
struct app_context;
struct registry;
struct request;
/* By the registry in memory, which follows the catalogue within CATALOGUE_POLL_MS: where nothing of
 * the catalogue is sent, or what is sent was read before. */
bool auth_still_holds(const struct app_context *app, struct request *request);
/* By the registry of the view that the answer is made of. */
bool auth_holds(const struct registry *registry, struct request *request, int64_t now);

/* Whether what the request writes may be owned by `name` (?source=): a token of one site writes as
 * itself, or as nobody else who may write there, so that what is another's in an answer is
 * another's. False, with the reply filled (403). By the registry in memory; thread safe. */
bool auth_may_own(const struct app_context *app, struct request *request, const char *name);

/* Whether the request bears the token of the nodes (app->peer_token_sha256). False, with the reply
 * filled (401, 429). Thread safe. */
bool auth_is_peer(const struct app_context *app, struct request *request);

/* Whether the caller may see what names the indexes and sources of every site: where the
 * configuration asks for a token for that (app->metrics_token), one for all sites. `*allowed` says
 * so; false, with the reply filled (401, 429), where a wrong token was sent. Thread safe. */
bool auth_sees_all(const struct app_context *app, struct request *request, bool *allowed);
