/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A handle with nothing but its read side, over a fixture's file. */
#pragma once

#include "db/file/handle.h"
#include "db/read/view_pool.h"
#include "tests/unit/db/read/read_fixture.h"

static inline void handle_open(struct catalogue *c, struct fixture *f)
{
    char why[256] = "";

    memset(c, 0, sizeof *c);
    c->path = f->path;
    assert_int_equal(view_pool_new(c, &c->views, why, sizeof why), CATALOGUE_OK);
}

static inline void handle_close(struct catalogue *c)
{
    view_pool_free(c->views);
}

static inline struct catalogue_view *begin(struct catalogue *c)
{
    struct catalogue_view *v = NULL;

    assert_int_equal(catalogue_view_begin(c, &v), CATALOGUE_OK);
    assert_non_null(v);
    return v;
}
