/* Long changes that may turn out to write nothing, tried where they keep nobody waiting. Internal
 * to db/.
 *
 * A dry run, and a list, undo or restore that finds all as it is, may take seconds for a large
 * site, and the writer serves nobody else meanwhile. So the writer begins each long change itself,
 * and where others wait after apply_step_ms, and the change has written nothing so far, rolls it
 * back and hands it to this thread. It is applied here to a private connection (file/overlay.h),
 * and then
 *   - a dry run is answered, and so is what was refused or wrote nothing: at the revision that the
 *     private connection saw, which is newer than the request, the answer was true;
 *   - what wrote nothing and has an idempotency key goes back to the writer, which keeps the
 * answer;
 *   - what would write goes back to the writer at once, and is carried out there without another
 * stop. Sites have turns here as they have in the writer's queue. */
#pragma once

#include "db/write/queue.h"
#include "db/write/tx.h"
#include "server/base/thread.h"

struct writer;

struct rehearsal {
    struct writer *writer;
    struct queue queue;
    struct thread thread;
    struct tx_shared shared;
    atomic_int_fast64_t began_ms;  /* by clock_now_ms: when the one at hand began */
    atomic_uint_fast64_t answered; /* requests that needed no further turn of the writer */
};

/* Starts the thread. False: it could not be started. */
bool rehearsal_start(struct rehearsal *r, struct writer *writer);
/* Takes the request over, to answer it or to hand it back to the writer's queue. The writer's
 * thread. */
void rehearsal_take(struct rehearsal *r, struct write_request *request);
/* Ends what is under way, which is answered CANCELLED. Thread safe. */
void rehearsal_abandon(struct rehearsal *r);
/* Ends the thread; what waits is answered CANCELLED. Behind the writer's own thread, once. */
void rehearsal_finish(struct rehearsal *r);
