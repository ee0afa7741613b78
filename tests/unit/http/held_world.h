/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Replies that hold a buffer until they are sent, and count its bytes when it is free. */
#pragma once

#include "tests/unit/http/live.h"

#define HEAD_SIZE sizeof(((struct answer *)NULL)->head)

static atomic_size_t released;

static inline void count_released(void *context, size_t bytes)
{
    (void)context;
    atomic_fetch_add(&released, bytes);
}

static inline void await_released(size_t bytes)
{
    for (int i = 0; i < LIVE_PATIENCE_MS / 5 && atomic_load(&released) < bytes; i++)
        usleep(5000);
    assert_int_equal(atomic_load(&released), bytes);
}

/* A public listener that answers everything by `route`. */
static inline struct listener *start_with(const struct route *route, struct readers *readers)
{
    struct listener_options options = live_options(NULL, 0);
    options.fallback = route;
    options.readers = readers;
    options.problem_json = false;
    return live_start(&options);
}

/* The head of a reply but its Date, which it must have. */
static inline void head_without_date(const struct answer *a, char out[HEAD_SIZE])
{
    char *date;

    strcpy(out, a->head);
    date = strstr(out, "Date: ");
    assert_non_null(date);
    memmove(date, strchr(date, '\n') + 1, strlen(strchr(date, '\n') + 1) + 1);
}
