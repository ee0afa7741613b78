/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A folder of files and a cache of blobs over it, for the tests of the cache. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/pages/served_file.h"
#include "tests/unit/lib/scratch.h"

#define LEVEL 6

struct world {
    char folder[64];
    struct cache *cache;
    struct served_files *files;
    pthread_mutex_t gate; /* held: no file can be opened */
    atomic_int opened;
    int error;                                                       /* not 0: opening fails so */
    void (*cut)(void *context, enum held_kind kind, uint64_t bytes); /* of the next start alone */
    void *cut_context;
};

static inline int open_file(void *context, size_t source, const char *path, uint64_t *from)
{
    (void)from;
    struct world *w = context;
    char name[200];

    pthread_mutex_lock(&w->gate);
    pthread_mutex_unlock(&w->gate);
    atomic_fetch_add(&w->opened, 1);
    if (w->error != 0) {
        errno = w->error;
        return -1;
    }
    snprintf(name, sizeof name, "%s/%zu-%s", w->folder, source, path);
    return open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static inline void end(struct world *w)
{
    served_files_free(w->files);
    cache_free(w->cache);
}

/* `budget` of the files alone. */
static inline void start(struct world *w, uint64_t budget, uint32_t fresh_ms)
{
    end(w);
    const struct cache_options cache = {.budget_bytes = budget * CACHE_FILES_SHARE,
                                        .cut_slow_readers = w->cut,
                                        .cut_context = w->cut_context};
    w->cache = cache_new(&cache);
    assert_non_null(w->cache);
    const struct served_files_options options = {.cache = w->cache,
                                                 .compression_level = LEVEL,
                                                 .threads = 2,
                                                 .fresh_ms = fresh_ms,
                                                 .open = open_file,
                                                 .context = w};
    w->cut = NULL;
    atomic_store(&w->opened, 0);
    w->files = served_files_new(&options);
    assert_non_null(w->files);
}

static inline int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    pthread_mutex_init(&w->gate, NULL);
    scratch_make(w->folder, "sitemapd-blobs");
    *state = w;
    return 0;
}

static inline int teardown(void **state)
{
    struct world *w = *state;
    end(w);
    pthread_mutex_destroy(&w->gate);
    scratch_remove(w->folder);
    free(w);
    return 0;
}

/* Writes a file of source 0 again, as tools do, with a date so many seconds ago (negative: none
 * set). */
static inline void put(struct world *w, const char *path, const void *bytes, size_t len, long age)
{
    char name[200], temporary[210];
    snprintf(name, sizeof name, "%s/0-%s", w->folder, path);
    snprintf(temporary, sizeof temporary, "%s.tmp", name);
    FILE *f = fopen(temporary, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
    if (age >= 0) {
        struct timespec t[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
        assert_int_equal(utimensat(AT_FDCWD, temporary, t, 0), 0);
    }
    assert_int_equal(rename(temporary, name), 0);
}

static inline void put_text(struct world *w, const char *path, const char *text, long age)
{
    put(w, path, text, strlen(text), age);
}

static inline void forget(struct world *w, const char *path)
{
    char name[200];
    snprintf(name, sizeof name, "%s/0-%s", w->folder, path);
    assert_int_equal(unlink(name), 0);
}

/* What compresses well, and differs by `seed`. */
static inline char *text_of(size_t size, int seed)
{
    char *text = malloc(size + 1);
    assert_non_null(text);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)('a' + (i * 7 + (i / 100) + (size_t)seed) % 13);
    text[size] = '\0';
    return text;
}

static inline uint8_t *noise_of(size_t size, uint32_t seed)
{
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(seed >> 24);
    }
    return bytes;
}

/* ---- asking ------------------------------------------------------------------------------ */

struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t came;
    int answers;
    enum await_result result;
    struct resource *blob; /* of the last answer */
};

static inline void arrived(void *context, enum await_result result, struct resource *blob)
{
    struct waiting *x = context;
    pthread_mutex_lock(&x->lock);
    resource_unref(x->blob);
    x->blob = blob;
    x->result = result;
    x->answers++;
    pthread_cond_signal(&x->came);
    pthread_mutex_unlock(&x->lock);
}

static inline void wait_for(struct waiting *x, int answers)
{
    pthread_mutex_lock(&x->lock);
    while (x->answers < answers)
        pthread_cond_wait(&x->came, &x->lock);
    assert_int_equal(x->answers, answers);
    pthread_mutex_unlock(&x->lock);
}

static inline enum await_result ask(struct world *w, const char *path, struct resource **out)
{
    struct waiting x = {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};
    served_files_await(w->files, 0, path, 1, arrived, &x);
    wait_for(&x, 1);
    *out = x.blob;
    assert_true((x.result == AWAIT_DONE) == (x.blob != NULL));
    return x.result;
}

static inline struct resource *get(struct world *w, const char *path)
{
    struct resource *b;
    assert_int_equal(ask(w, path, &b), AWAIT_DONE);
    return b;
}

static inline void expect_text(struct world *w, const char *path, const char *text)
{
    struct resource *b = get(w, path);
    assert_int_equal(b->raw_len, strlen(text));
    assert_memory_equal(b->bytes, text, b->raw_len);
    resource_unref(b);
}

static inline struct served_files_stats stats_of(struct world *w)
{
    struct served_files_stats stats;
    served_files_stats_get(w->files, &stats);
    return stats;
}
