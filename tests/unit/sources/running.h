/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A source that runs, and the events that it told. */
#pragma once

#include "server/base/clock.h"
#include "tests/unit/sources/world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define LONG_MS 120000 /* for what must come, however busy the machine is */

struct running {
    struct world w;
    struct sources *s;
    pthread_mutex_t lock;
    char events[65536]; /* "event detail\n" */
    unsigned scanned;   /* requests answered */
    bool succeeded;
    char failure[256];
    atomic_uint applied; /* scans */
    _Atomic int64_t applied_at;
    atomic_bool hold; /* the source's thread, at the end of a scan */
    _Atomic(const char *) looked_for;
    struct source_health seen; /* lock: when that event came */
};

static inline void on_applied(void *context, size_t number)
{
    struct running *r = context;
    (void)number;
    atomic_store(&r->applied_at, clock_now_ms());
    atomic_fetch_add(&r->applied, 1);
    while (atomic_load(&r->hold))
        usleep(1000);
}

/* Waits for scan number `count` since the start. */
static inline void await_applied(struct running *r, unsigned count)
{
    for (int64_t end = clock_now_ms() + LONG_MS; clock_now_ms() < end; usleep(1000))
        if (atomic_load(&r->applied) >= count)
            return;
    fail_msg("%u scans, not %u", atomic_load(&r->applied), count);
}

static inline void on_event(void *context, int level, const char *event, const char *detail)
{
    struct running *r = context;
    const char *looked_for = atomic_load(&r->looked_for);
    assert_in_range(level, 0, 2);
    pthread_mutex_lock(&r->lock);
    if (looked_for != NULL && strcmp(event, looked_for) == 0) {
        struct source_list *list = sources_hold(r->s);
        sources_health(list, 0, &r->seen);
        sources_release(list);
    }
    size_t len = strlen(r->events);
    snprintf(r->events + len, sizeof r->events - len, "%s %s\n", event, detail);
    pthread_mutex_unlock(&r->lock);
}

static inline unsigned count_events(struct running *r, const char *event)
{
    unsigned count = 0;
    pthread_mutex_lock(&r->lock);
    for (const char *at = r->events; (at = strstr(at, event)) != NULL; at++)
        count++;
    pthread_mutex_unlock(&r->lock);
    return count;
}

static inline void start(struct running *r)
{
    char why[256];
    struct sources_options options = {.catalogue = r->w.c,
                                      .count = 1,
                                      .settings = &r->w.settings,
                                      .event = on_event,
                                      .event_context = r,
                                      .scanned = on_applied,
                                      .scanned_context = r};
    if (!sources_start(&options, &r->s, why, sizeof why))
        fail_msg("%s", why);
}

/* Of the first source. What the report borrows stays: the source is there until the end. */
static inline bool report_first(struct running *r, struct source_report *report)
{
    struct source_list *list = sources_hold(r->s);
    bool good = sources_report(list, 0, report);
    sources_release(list);
    return good;
}

static inline int setup(void **state)
{
    struct running *r = calloc(1, sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    world_open(&r->w, 30);
    r->w.settings.watch = true;
    r->w.settings.settle_ms = 400;
    *state = r;
    return 0;
}

static inline int teardown(void **state)
{
    struct running *r = *state;
    atomic_store(&r->hold, false);
    sources_stop(r->s);
    world_close(&r->w);
    pthread_mutex_destroy(&r->lock);
    free(r);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
