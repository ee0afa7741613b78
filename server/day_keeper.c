/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A thread that saves the sizes of sites every five minutes. */
#include "server/day_keeper.h"

#include <stdlib.h>

#include "server/base/clock.h"
#include "server/base/thread.h"
#include "server/log/log.h"
#include "server/rules/lastmod.h"

/* Only rows that differ are written, a bounded number in each change: no other write waits for
 * long, however many sites there are. */

struct day_keeper {
    struct catalogue *catalogue;
    struct thread thread;
    int64_t ms; /* between two looks */
    /* The thread's, then the stop's. */
    bool failed, gone; /* gone: rows of sites that are gone were found: there may be more */
    int32_t day;       /* what was last written is of this day and revision; 0: nothing yet */
    uint64_t revision;
    size_t count;
    struct site_day rows[SITE_DAYS_WRITE_MAX];
};

static void add_row(void *context, const struct site_day *row)
{
    struct day_keeper *k = context;
    k->gone |= row->day < 0;
    if (k->count < SITE_DAYS_WRITE_MAX)
        k->rows[k->count++] = *row;
}

static enum catalogue_status write_rows(struct day_keeper *k)
{
    const struct change change = {
        .kind = CHANGE_SITE_DAYS,
        .site_days = {.count = k->count, .rows = k->rows},
    };
    struct change_result result;
    if (k->count == 0)
        return CATALOGUE_OK;
    enum catalogue_status status = catalogue_apply(k->catalogue, &change, &result);
    change_result_done(&result);
    return status;
}

/* A view is not held while the writer is waited for. */
static enum catalogue_status write_some(struct day_keeper *k, int32_t day, int64_t *after)
{
    struct catalogue_view *view;
    k->count = 0;
    enum catalogue_status status = catalogue_view_begin(k->catalogue, &view);
    if (status != CATALOGUE_OK)
        return status;
    status = catalogue_view_site_days_due(view, day, after, add_row, k);
    catalogue_view_end(view);
    return status == CATALOGUE_OK ? write_rows(k) : status;
}

/* The revision before the first look: what changes during it is seen by the next. */
static enum catalogue_status find_revision(struct day_keeper *k, uint64_t *out)
{
    struct catalogue_view *view;
    struct catalogue_revisions now;
    enum catalogue_status status = catalogue_view_begin(k->catalogue, &view);
    if (status != CATALOGUE_OK)
        return status;
    status = catalogue_view_revisions(view, &now);
    catalogue_view_end(view);
    *out = now.revision;
    return status;
}

static void keep_day(struct day_keeper *k)
{
    int32_t day = (int32_t)(clock_unix_ms() / 1000 / CALENDAR_SECONDS_PER_DAY);
    struct shared_state shared;
    uint64_t revision;
    int64_t after = 0;

    if (catalogue_shared_state(k->catalogue, &shared) && shared.phase == SHARED_JOINING)
        return;
    enum catalogue_status status = find_revision(k, &revision);
    if (status == CATALOGUE_OK && k->day == day && k->revision == revision)
        return;
    do {
        k->gone &= after != 0;
        if (status == CATALOGUE_OK)
            status = write_some(k, day, &after);
    } while (status == CATALOGUE_OK && (after != 0 || k->gone));
    if (status != CATALOGUE_OK && !k->failed)
        log_event(LOG_LEVEL_WARNING, "day-sums-not-kept",
                  "cannot write the sums of the day to the catalogue: %s",
                  catalogue_status_word(status));
    k->failed = status != CATALOGUE_OK;
    if (k->failed)
        return;
    k->day = day;
    k->revision = revision;
}

static void keep(void *context)
{
    struct day_keeper *k = context;
    while (thread_wait(&k->thread, k->ms))
        keep_day(k);
}

struct day_keeper *day_keeper_start(struct catalogue *catalogue, int64_t ms)
{
    struct day_keeper *k = calloc(1, sizeof *k);
    if (k != NULL) {
        k->catalogue = catalogue;
        k->ms = ms;
        if (thread_start(&k->thread, "days", keep, k))
            return k;
    }
    free(k);
    log_event(LOG_LEVEL_WARNING, "day-sums-not-kept",
              "the sums of days are not kept: cannot start a thread");
    return NULL;
}

void day_keeper_stop(struct day_keeper *k)
{
    if (k == NULL)
        return;
    thread_stop(&k->thread);
    keep_day(k);
    free(k);
}
