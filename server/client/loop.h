/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Many requests at once on one thread: a loop that is polled, and wakes for what other threads have
 * to say. Connections are kept and used again. One thread makes, polls and frees it; only
 * fetch_loop_wake is anybody's.
 *
 *     while (!stop) {
 *         ... fetch_loop_add(loop, &request, on_done) for what is due ...
 *         fetch_loop_poll(loop, ms_until_the_next_is_due);
 *     }
 *     fetch_loop_free(loop);
 */
#pragma once

#include "server/client/client.h"

struct fetch_loop;
struct fetch_transfer;

/* The transfer is over: `status` and `*reply` as fetch gives them. `context` is the request's. The
 * reply is freed behind it; its body may be moved out. May add and remove others. Called by
 * fetch_loop_poll, once for each transfer that is not removed. */
typedef void fetch_done(void *context, enum fetch_status status, struct fetch_reply *reply);

/* NULL when out of memory. */
struct fetch_loop *fetch_loop_new(void);
/* How many connections may be open, busy or kept for another request, before idle ones are closed:
 * at least as many as requests are under way, or each makes one of its own. 64 at first. */
void fetch_loop_keep(struct fetch_loop *loop, unsigned connections);
/* What is under way is dropped, and `done` not called for it. Does not wait, not even for a
 * resolver that is dead. NULL is accepted. */
void fetch_loop_free(struct fetch_loop *loop);

/* Begins a request. It is copied; what its pointers lead to (URL, headers, guard, …) stays where it
 * is until `done` or the removal. `session` is not looked at: connections are the loop's. NULL when
 * out of memory. What else keeps a request from being made is reported by `done`, as any end. */
struct fetch_transfer *fetch_loop_add(struct fetch_loop *loop, const struct fetch_request *request,
                                      fetch_done *done);
/* Drops it, wherever it is; `done` is not called. Not from within `take`: return false there. */
void fetch_loop_remove(struct fetch_loop *loop, struct fetch_transfer *f);

/* Moves on what can be moved, waits until there is something to do, `timeout_ms` at most, or
 * somebody wakes it, moves that on, and calls what is done. `timeout_ms` 0: does not wait. False
 * when libcurl cannot go on (out of memory): waiting a little is the caller's. */
bool fetch_loop_poll(struct fetch_loop *loop, int timeout_ms);
/* Ends the wait of a fetch_loop_poll, this one's or the next. Any thread, as long as the loop is
 * there. */
void fetch_loop_wake(struct fetch_loop *loop);
