/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sources that come and go while others read them. */
#include "tests/unit/sources/running.h"

#include <errno.h>
#include <malloc.h>
#ifdef SANITIZED
size_t __sanitizer_get_current_allocated_bytes(void); /* GCC brings no header for it */
#define HELD_BYTES() __sanitizer_get_current_allocated_bytes()
#else
#define HELD_BYTES() (mallinfo2().uordblks + mallinfo2().hblkhd)
#endif

/* Makes the sources `count` of another setting than before. */
static void reload(struct running *r, size_t count)
{
    static const char *const names[] = {"products", "articles", "videos"};
    static uint32_t rescan_ms = 3600000;
    struct source_settings settings[3];
    char why[256];
    assert_in_range(count, 0, 3);
    rescan_ms++;
    for (size_t i = 0; i < count; i++) {
        settings[i] = r->w.settings;
        settings[i].name = names[i];
        settings[i].rescan_ms = rescan_ms;
    }
    if (!sources_reconfigure(r->s, count, settings, why, sizeof why))
        fail_msg("%s", why);
}

static size_t first_number(struct running *r)
{
    struct source_list *list = sources_hold(r->s);
    size_t number = sources_number(list, 0);
    sources_release(list);
    return number;
}

static void those_that_ended_take_no_memory(void **state)
{
    struct running *r = *state;
    r->w.settings.watch = false;
    start(r);
    for (unsigned i = 0; i < 50; i++)
        reload(r, i % 4);
    reload(r, 0);
    /* Reading connections are opened where sources read at the same moment, which may come at any
     * time, but to no more than a few; what is not given back comes with each round. */
    size_t before, after = HELD_BYTES();
    unsigned rounds = 0;
    do {
        before = after;
        for (unsigned i = 0; i < 400; i++)
            reload(r, i % 4); /* 600 sources of some 3 kB each */
        reload(r, 0);
        after = HELD_BYTES();
    } while (after > before + 300000 && ++rounds < 6);
    if (after > before + 300000)
        fail_msg("%zu bytes are held, %zu before", after, before);
}

static void on_refused(void *context, const struct change_result *result, const char *failure)
{
    assert_null(result);
    snprintf(context, 64, "%s", failure);
}

static void what_is_held_stays_and_is_nobody_elses(void **state)
{
    struct running *r = *state;
    struct source_report report;
    struct source_health health;
    char path[SOURCE_MAX_PATH_BYTES + 1], answer[64] = "";
    size_t number;
    r->w.settings.serve = true;
    folder_sitemap(&r->w.folder, "a.xml", "a", "", DAY);
    start(r);
    struct source_list *list = sources_hold(r->s);
    size_t ended = sources_number(list, 0);
    reload(r, 0);
    assert_int_equal(sources_count(list), 1);
    assert_string_equal(sources_url(list, 0), ORIGIN "/s/");
    sources_health(list, 0, &health);
    assert_string_equal(health.name, "products");
    assert_true(sources_report(list, 0, &report));
    assert_string_equal(report.directory, r->w.folder.path);
    source_report_done(&report);
    sources_release(list);
    assert_false(sources_match(r->s, ORIGIN, "/s/a.xml", &number, path));

    reload(r, 1); /* the same name and folder, and yet another one */
    assert_int_not_equal(first_number(r), ended);
    assert_true(sources_match(r->s, ORIGIN, "/s/a.xml", &number, path));
    assert_int_equal(number, first_number(r));
    errno = 0;
    assert_int_equal(sources_open_file(r->s, ended, "a.xml"), -1);
    assert_int_equal(errno, ENOENT);
    sources_scan(r->s, ended, MAX_REMOVED_GUARDED, false, on_refused, answer);
    assert_string_equal(answer, "the source is being stopped");
}

static void what_is_the_same_goes_on(void **state)
{
    struct running *r = *state;
    char why[256];
    start(r);
    size_t number = first_number(r);
    struct source_settings settings[2] = {r->w.settings, r->w.settings};
    settings[0].name = "articles";
    assert_true(sources_reconfigure(r->s, 2, settings, why, sizeof why));
    struct source_list *list = sources_hold(r->s);
    assert_int_equal(sources_count(list), 2);
    assert_int_equal(sources_number(list, sources_find(list, "products")), number);
    sources_release(list);
    /* What cannot be changes nothing. */
    settings[1].url = ORIGIN "/no-slash";
    settings[1].managed = true;
    assert_false(sources_reconfigure(r->s, 2, settings, why, sizeof why));
    list = sources_hold(r->s);
    assert_int_equal(sources_count(list), 2);
    assert_int_equal(sources_number(list, sources_find(list, "products")), number);
    sources_release(list);
}

struct reader {
    pthread_t thread;
    struct running *r;
    atomic_bool stop;
    atomic_uint asked, answered;
};

static void on_answer(void *context, const struct change_result *result, const char *failure)
{
    struct reader *reader = context;
    assert_true(result != NULL || failure[0] != '\0');
    atomic_fetch_add(&reader->answered, 1);
}

static void *read_all(void *context)
{
    struct reader *reader = context;
    struct sources *s = reader->r->s;
    char path[SOURCE_MAX_PATH_BYTES + 1];
    size_t number;
    while (!atomic_load(&reader->stop)) {
        struct source_list *list = sources_hold(s);
        for (size_t at = 0; at < sources_count(list); at++) {
            struct source_report report;
            struct source_health health;
            sources_health(list, at, &health);
            assert_int_equal(sources_find(list, health.name), at);
            assert_true(sources_report(list, at, &report));
            source_report_done(&report);
            if (atomic_load(&reader->asked) < 50) {
                atomic_fetch_add(&reader->asked, 1);
                sources_scan(s, sources_number(list, at), 0, false, on_answer, reader);
            }
        }
        sources_release(list);
        if (sources_match(s, ORIGIN, "/s/a.xml", &number, path)) {
            int fd = sources_open_file(s, number, path);
            if (fd >= 0)
                close(fd);
        }
    }
    return NULL;
}

static void readers_beside_reloads(void **state)
{
    struct running *r = *state;
    struct reader readers[2];
    r->w.settings.serve = true;
    folder_sitemap(&r->w.folder, "a.xml", "a", "", DAY);
    start(r);
    for (size_t i = 0; i < 2; i++) {
        readers[i].r = r;
        atomic_init(&readers[i].stop, false);
        atomic_init(&readers[i].asked, 0);
        atomic_init(&readers[i].answered, 0);
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_all, &readers[i]), 0);
    }
    for (unsigned i = 0; i < 60; i++)
        reload(r, i % 4);
    for (size_t i = 0; i < 2; i++) {
        atomic_store(&readers[i].stop, true);
        pthread_join(readers[i].thread, NULL);
    }
    sources_end(r->s);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(atomic_load(&readers[i].answered), atomic_load(&readers[i].asked));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(those_that_ended_take_no_memory),
        TEST(what_is_held_stays_and_is_nobody_elses),
        TEST(what_is_the_same_goes_on),
        TEST(readers_beside_reloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
