/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Who may call the API: bearer tokens of the catalogue and of the environment (RFC 6750), and a
 * bound on guessing.
 *
 * An address that failed too often within a minute gets 429 for each further wrong token. A valid
 * token is always accepted: behind a reverse proxy all callers share one address, and a stranger's
 * guesses must not lock the others out. Generated tokens have 256 bits; no rate of guessing finds
 * one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define AUTH_MAX_FAILURES   30u  /* of one address within a window */
#define AUTH_MAX_REPORTS    100u /* of all addresses within a window */
#define AUTH_WINDOW_SECONDS 60

struct auth;

/* NULL when out of memory. */
struct auth *auth_new(void);
/* Accepts NULL. */
void auth_free(struct auth *auth);

/* Counts a wrong token from `peer` (NULL: unknown) at `now`. Returns 0, or the seconds for which
 * the address must wait. `*report`: the failure is worth a line in the log, as the first of a
 * window or the first past the limit; AUTH_MAX_REPORTS times in a window at most. Thread safe;
 * never waits for I/O. */
unsigned auth_failed(struct auth *auth, const char *peer, int64_t now, bool *report);

/* A request is authorised when its header has arrived; its body, or a wait, may take long. So each
 * call is authorised again before it returns data, and a write by the writer itself, in its
 * transaction (change.bearer_id). A token is identified by id, hash and scope: a new one of the
 * same name is rejected. Both functions return false, with the reply filled (401), if the token has
 * been revoked or has expired. Thread safe. */
struct app_context;
struct registry;
struct request;
/* Checks the registry in memory, which is at most CATALOGUE_POLL_MS behind the catalogue. For
 * replies without data of the catalogue, or with data that was read before. */
bool auth_still_holds(const struct app_context *app, struct request *request);
/* Checks the registry of the view from which the answer is made. */
bool auth_holds(const struct registry *registry, struct request *request, int64_t now);

/* Whether what the request writes may be owned by `name` (?source=): a token for one site writes as
 * itself or under a name that no other token for the site has, so that an answer never shows its
 * entries as those of another token. False, with the reply filled (403; `field` has the name). By
 * the registry in memory; thread safe. */
bool auth_may_own(const struct app_context *app, struct request *request, const char *field,
                  const char *name);

/* Whether the request has the token of the nodes (app->peer_token_sha256). False, with the reply
 * filled (401, 429). Thread safe. */
bool auth_is_peer(const struct app_context *app, struct request *request);

/* `*allowed`: whether the caller may see names of indexes and sources of every site. If
 * app->metrics_token is set, that needs a token for all sites. False, with the reply filled (401,
 * 429), if a wrong token was sent. Thread safe. */
bool auth_sees_all(const struct app_context *app, struct request *request, bool *allowed);
