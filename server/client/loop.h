/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Many requests at once on one thread: a loop that its owner polls and other threads can wake.
 * Connections are kept and used again. One thread creates, polls and frees it; any thread may call
 * fetch_loop_wake.
 *
 *     while (!stop) {
 *         ... fetch_loop_add(loop, &request, on_done) for what is due ...
 *         fetch_loop_poll(loop, ms_until_the_next_is_due);
 *     }
 *     fetch_loop_free(loop); */
#pragma once

#include "server/client/client.h"

struct fetch_loop;
struct fetch_transfer;

/* The transfer is over: `status` and `*reply` as from fetch; `context` is that of the request. The
 * loop frees the reply after the call; the callee may move its body out, and may add and remove
 * other transfers. Called by fetch_loop_poll, once for each transfer that is not removed. */
typedef void fetch_done(void *context, enum fetch_status status, struct fetch_reply *reply);

/* NULL when out of memory. */
struct fetch_loop *fetch_loop_new(void);
/* Sets how many connections, busy or idle, may be open before idle ones are closed. Set it at least
 * to the number of concurrent requests, or each opens a new connection. Default: 64. */
void fetch_loop_keep(struct fetch_loop *loop, unsigned connections);
/* Drops the transfers under way without calling `done`. Does not wait, not even for a resolver that
 * does not answer. Accepts NULL. */
void fetch_loop_free(struct fetch_loop *loop);

/* Begins a request, which is copied; the objects that it points to (URL, headers, guard, …) must
 * stay until `done` or the removal. Ignores `session`: the loop keeps the connections. NULL when
 * out of memory. Any other failure to begin is reported by `done`. */
struct fetch_transfer *fetch_loop_add(struct fetch_loop *loop, const struct fetch_request *request,
                                      fetch_done *done);
/* Drops a transfer in any state without calling `done`. Not from within `take`: return false there.
 */
void fetch_loop_remove(struct fetch_loop *loop, struct fetch_transfer *f);

/* Works on all transfers, waits until there is more to do or the loop is woken, at most
 * `timeout_ms` (0: does not wait), works on that, and calls `done` for transfers that are over.
 * False if libcurl cannot go on (out of memory): then the caller should wait a little. */
bool fetch_loop_poll(struct fetch_loop *loop, int timeout_ms);
/* Ends the wait of the current or else the next fetch_loop_poll. Any thread, as long as the loop
 * exists. */
void fetch_loop_wake(struct fetch_loop *loop);
