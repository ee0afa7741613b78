/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A store of pages in a folder of its own, for the tests of the page store. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/pages/page_store.h"
#include "tests/unit/lib/scratch.h"
#include "tests/unit/pages/page_world.h"

struct fixture {
    char top[64], folder[96];
    struct page_store *store;
    struct resource *page;
    struct page_key key;
    struct str buffer;
    char events[512];
};

static inline void hear(void *context, const char *event, const char *detail)
{
    struct fixture *f = context;
    assert_non_null(strstr(detail, f->folder));
    strcat(f->events, event);
    strcat(f->events, " ");
}

static inline struct page_store *open_store(struct fixture *f, uint64_t budget)
{
    struct page_store_options options = {f->folder, budget, {1, 2}, hear, f, 0};
    struct page_store *store = page_store_new(&options);
    assert_non_null(store);
    return store;
}

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    scratch_make(f->top, "test_page_store");
    snprintf(f->folder, sizeof f->folder, "%s/catalogue.db.pages", f->top);
    f->page = page_world_snapshot(6, 5);
    page_world_key(f->page, &f->key);
    f->store = open_store(f, 1 << 20);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    page_store_free(f->store);
    resource_unref(f->page);
    str_done(&f->buffer);
    scratch_remove(f->top);
    free(f);
    return 0;
}

static inline enum page_store_saved save(struct fixture *f)
{
    bool fresh;
    uint64_t written;
    if (!page_store_ready(f->store, &fresh))
        return PAGE_STORE_FAILED;
    return page_store_save(f->store, &f->key, f->page, &written);
}

static inline enum page_store_found load(struct fixture *f)
{
    struct page_pieces pieces;
    return page_store_load(f->store, &f->key, &f->buffer, &pieces);
}

static inline void path_of(const struct fixture *f, const char *name, char out[160])
{
    snprintf(out, 160, "%s/%s", f->folder, name);
}

static inline bool has(const struct fixture *f, const char *name)
{
    char path[160];
    struct stat found;
    path_of(f, name, path);
    return lstat(path, &found) == 0;
}

static inline void put(const struct fixture *f, const char *name, const void *bytes, size_t len)
{
    char path[160];
    path_of(f, name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    close(fd);
}

static inline off_t size_of(const struct fixture *f, const char *name)
{
    char path[160];
    struct stat found;
    path_of(f, name, path);
    assert_int_equal(lstat(path, &found), 0);
    return found.st_size;
}
