/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/alloc/alloc.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#ifdef SANITIZED
#define REAL(name) __interceptor_##name
#else
#define REAL(name) __libc_##name
#endif
void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t count, size_t size);
void *REAL(realloc)(void *old, size_t size);

/* All of a short run's are tried, of a long one's fewer and fewer beyond. */
#define DENSE 60u

static atomic_bool armed, lasting_failure;
static atomic_uint_fast64_t fails_at, counted, failed;

/* Not before a thread's own function runs: a sanitizer's start of it cannot do without memory. */
static _Thread_local bool begun;
static _Thread_local bool passes;

static bool fails(void)
{
    if (!begun || passes || !atomic_load(&armed))
        return false;
    uint64_t number = atomic_fetch_add(&counted, 1) + 1;
    uint64_t at = atomic_load(&fails_at);
    if (number != at && (number < at || !atomic_load(&lasting_failure)))
        return false;
    atomic_fetch_add(&failed, 1);
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return fails() ? NULL : REAL(malloc)(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : REAL(calloc)(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : REAL(realloc)(old, size);
}

char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

struct thread {
    void *(*run)(void *context);
    void *context;
};

static void *begin_thread(void *context)
{
    struct thread thread = *(struct thread *)context;
    free(context);
    begun = true;
    return thread.run(thread.context);
}

int pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *context)
{
#ifdef SANITIZED
    int __interceptor_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                                     void *);
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        __interceptor_pthread_create;
#else
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        dlsym(RTLD_NEXT, "pthread_create");
#endif
    struct thread *thread = malloc(sizeof *thread);
    if (thread == NULL)
        return EAGAIN;
    *thread = (struct thread){run, context};
    int rc = real(out, attributes, begin_thread, thread);
    if (rc != 0)
        free(thread);
    return rc;
}

void alloc_arm(uint64_t at, bool lasting)
{
    begun = true;
    atomic_store(&fails_at, at);
    atomic_store(&lasting_failure, lasting);
    atomic_store(&counted, 0);
    atomic_store(&failed, 0);
    atomic_store(&armed, true);
}

uint64_t alloc_disarm(void)
{
    atomic_store(&armed, false);
    return atomic_load(&failed);
}

uint64_t alloc_counted(void)
{
    return atomic_load(&counted);
}

void alloc_pass(bool pass)
{
    passes = pass;
}

static void sweep_once(const char *what, bool (*run)(void *context), void *context, bool lasting)
{
    bool all = getenv("ALLOC_ALL") != NULL;
    uint64_t hits = 1;
    unsigned survived = 0;

    for (uint64_t at = 1; hits > 0; at += all || at < DENSE ? 1 : at / 10) {
        alloc_arm(at, lasting);
        bool good = run(context);
        hits = alloc_disarm();
        survived += good && hits > 0;
        if (hits == 0 && !good)
            fail_msg("%s: failed at %llu without cause", what, (unsigned long long)at);
        if (hits > 0 && !run(context))
            fail_msg("%s: does not work again after allocation %llu (%s)", what,
                     (unsigned long long)at, lasting ? "lasting" : "once");
        if (hits == 0)
            print_message("%s: %llu allocations, %s; %u did without\n", what,
                          (unsigned long long)at - 1, lasting ? "lasting" : "once", survived);
        if (hits == 0 && at == 1)
            fail_msg("%s: nothing was allocated", what);
    }
}

void alloc_sweep(const char *what, bool (*run)(void *context), void *context)
{
    if (!run(context))
        fail_msg("%s: fails with all memory there is", what);
    sweep_once(what, run, context, false);
    sweep_once(what, run, context, true);
}

void alloc_write_file(const char *folder, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}
