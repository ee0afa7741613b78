/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The thread that follows the log: waits for notifications, fetches records, and passes them to
 * the writer. */
#include "db/shared/lookout.h"

#include "db/file/handle.h"
#include "db/shared/join.h"
#include "server/base/clock.h"

#define LOOK_MS 1000 /* between two looks, and two tries to reach it */
#define CALL_MS 5000

static void report_writer(struct lookout *l)
{
    atomic_store(&l->behind, true);
    writer_poke(l->catalogue);
}

/* Stops at the first record: there is one. */
static bool see_record(void *context, const struct shared_record *record)
{
    *(bool *)context = true;
    (void)record;
    return false;
}

/* Looks whether there is something newer than what is here. */
static enum shared_outcome look(struct lookout *l)
{
    const struct shared_position at = standing_now(l->standing).at;
    bool seen = false;
    uint64_t head = 0;
    const struct shared_take take = {see_record, NULL, NULL, NULL, &seen};
    enum shared_outcome outcome =
        l->log->calls->tail(l->log, &at, 1, &take, &head, clock_now_ms() + CALL_MS);
    if (seen) {
        outcome = SHARED_YES;
        report_writer(l);
    }
    standing_record_head(l->standing, head);
    return outcome;
}

static bool has_ended(void *context)
{
    return standing_now(((struct lookout *)context)->standing).ended;
}

static void record_copy(void *context, uint64_t seq, uint64_t head)
{
    standing_record_copy(((struct lookout *)context)->standing, seq, head);
}

/* A snapshot, and what is newer than it. */
static enum shared_outcome make_copy(struct lookout *l, const struct join_node *node, char *why,
                                     size_t why_size)
{
    const struct join_catching_up how = {.node = node,
                                         .renews = standing_now(l->standing).has_lost,
                                         .fetched = l->copy_epoch,
                                         .stops = has_ended,
                                         .moved = record_copy,
                                         .context = l};
    if (!l->has_copy) {
        enum shared_outcome fetched = join_fetch(l->log, l->catalogue->path, node, why, why_size);
        if (fetched != SHARED_YES)
            return fetched;
        l->copy_epoch[0] = '\0';
    }
    enum shared_outcome outcome = join_catch_up(l->log, l->catalogue->path, &how, why, why_size);
    /* Begun again, a large catalogue would never get there over a poor connection. */
    l->has_copy = outcome == SHARED_AWAY || outcome == SHARED_BUSY;
    return outcome;
}

/* False: it is to be tried again after a while. */
static bool fetch(struct lookout *l)
{
    char why[256] = "";
    struct shared_state state;
    standing_state(l->standing, &state);
    const struct join_node node = {.name = state.node, .epoch = state.epoch};
    enum shared_outcome outcome = make_copy(l, &node, why, sizeof why);
    bool fetched = outcome == SHARED_YES,
         is_away = outcome == SHARED_AWAY || outcome == SHARED_FOREIGN;
    if (is_away)
        standing_record_away(l->standing, l->log);
    else
        standing_record_there(l->standing);
    standing_record_fetched(l->standing, fetched, fetched || is_away ? NULL : why);
    if (fetched)
        report_writer(l);
    return fetched;
}

static void wait_and_look(struct lookout *l)
{
    enum shared_outcome outcome = l->log->calls->wait(l->log, clock_now_ms() + LOOK_MS);
    if (outcome == SHARED_YES)
        outcome = look(l);
    if (outcome == SHARED_YES)
        standing_record_there(l->standing);
    else if (outcome != SHARED_STOPPED || !standing_now(l->standing).ended) {
        standing_record_outcome(l->standing, l->log, outcome);
        standing_pause(l->standing, LOOK_MS);
    }
}

static void keep_looking(void *context)
{
    struct lookout *l = context;
    for (;;) {
        struct standing_now now = standing_now(l->standing);
        if (now.ended)
            return;
        bool lacks_all = now.phase == SHARED_JOINING || now.phase == SHARED_LEFT;
        if (now.phase == SHARED_JOINED)
            wait_and_look(l);
        else if (!lacks_all || now.has_fetched || !fetch(l))
            standing_pause(l->standing, LOOK_MS);
    }
}

bool lookout_start(struct lookout *l)
{
    return thread_start(&l->thread, "lookout", keep_looking, l);
}

void lookout_stop(struct lookout *l)
{
    if (!thread_runs(&l->thread))
        return;
    standing_end(l->standing);
    l->log->calls->interrupt(l->log);
    thread_join(&l->thread);
}
