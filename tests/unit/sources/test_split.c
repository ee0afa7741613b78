/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A file that is split, under the program's own eyes: what is done to it between its two readings,
 * and a disk that has no room for what is known of its rows. (The rest: tests/http/test_split.py.)
 */
#include "server/sources/split.h"

#include <signal.h>
#include <sys/resource.h>

#include "server/sources/scan.h"
#include "tests/unit/sources/world.h"

#define ROWS 3000u

static void write_rows(struct world *w, char first, const char *mode)
{
    char path[256];
    snprintf(path, sizeof path, "%s/all.txt", w->folder.path);
    FILE *file = fopen(path, mode);
    assert_non_null(file);
    for (unsigned i = 0; i < ROWS; i++)
        fprintf(file, ORIGIN "/s/%c%06u\n", first, i);
    assert_int_equal(fclose(file), 0);
}

static uint64_t max_disk;
static int64_t site_id;

static enum split_status split_at(struct world *w, const char *loc, bool dry_run,
                                  struct split_result *out)
{
    struct url url;
    char path[256];
    assert_int_equal(url_parse(loc, strlen(loc), &url, NULL), RULE_OK);
    snprintf(path, sizeof path, "%s/all.txt", w->folder.path);
    struct split_file file = {.catalogue = w->c,
                              .fd = open(path, O_RDONLY | O_CLOEXEC),
                              .url = &url,
                              .source = "products",
                              .index = INDEX,
                              .site_id = site_id,
                              .now = 1789000000,
                              .max_removed = MAX_REMOVED_GUARDED,
                              .dry_run = dry_run,
                              .max_disk = max_disk};
    assert_true(file.fd >= 0);
    enum split_status status = split_run(&file, out);
    close(file.fd);
    return status;
}

static enum split_status split(struct world *w, bool dry_run, struct split_result *out)
{
    return split_at(w, ORIGIN "/s/all.txt", dry_run, out);
}

#define OTHER "https://other.example/s/all.txt" /* of a site that does not exist */

/* The linker has all calls of catalogue_spool come here: the second one is when the file is read
 * again. */
static struct world *to_change, *to_ask;
static unsigned calls;

struct spool *__real_catalogue_spool(const struct catalogue *c, uint64_t max_bytes);
struct spool *__wrap_catalogue_spool(const struct catalogue *c, uint64_t max_bytes);
struct spool *__wrap_catalogue_spool(const struct catalogue *c, uint64_t max_bytes)
{
    if (to_change != NULL && ++calls == 2) {
        write_rows(to_change, 'b', "r+"); /* in place, of the same length */
        to_change = NULL;
        calls = 0;
    }
    if (to_ask != NULL) {
        struct split_result out;
        assert_int_equal(split_at(to_ask, OTHER, false, &out), SPLIT_BUSY);
        to_ask = NULL;
        usleep(1000000); /* a debt that is not paid back at once */
    }
    return __real_catalogue_spool(c, max_bytes);
}

/* The linker has all calls of file_has_reserve come here. */
static bool is_reserved;

bool __wrap_file_has_reserve(int fd);
bool __wrap_file_has_reserve(int fd)
{
    (void)fd;
    return !is_reserved;
}

static void a_file_that_changes_between_its_readings(void **state)
{
    struct world w;
    struct split_result out;
    struct registry *registry;
    world_open(&w, 50);
    write_rows(&w, 'a', "w");
    max_disk = 700000; /* its rows are not kept aside in a quarter of it */
    to_change = &w;
    assert_int_equal(split(&w, false, &out), SPLIT_CHANGING);
    assert_null(to_change);
    assert_int_equal(catalogue_registry(w.c, &registry), CATALOGUE_OK);
    assert_null(registry_list_by_name(registry, ORIGIN "/s/all.xml", LIST_URLSET, NULL));
    registry_unref(registry);
    assert_int_equal(split(&w, false, &out), SPLIT_DONE);
    assert_int_equal(out.created, ROWS);
    write_rows(&w, 'c', "a"); /* read twice, as it stands */
    assert_int_equal(split(&w, false, &out), SPLIT_DONE);
    assert_int_equal(out.created, ROWS);
    assert_int_equal(out.unchanged, ROWS);
    max_disk = 0;
    world_close(&w);
}

/* What differs is kept aside as it comes; of 3,000 rows the filter now and then takes one for
 * another, and the file is read again: the same comes of it. */
static void what_differs(void **state)
{
    struct world w;
    struct split_result out;
    world_open(&w, 50);
    write_rows(&w, 'a', "w");
    assert_int_equal(split(&w, false, &out), SPLIT_DONE);
    for (unsigned i = 0; i < 2; i++)
        write_rows(&w, 'c', "a");
    assert_int_equal(split(&w, false, &out), SPLIT_DONE);
    assert_int_equal(out.created, ROWS);
    assert_int_equal(out.unchanged, ROWS);
    assert_int_equal(out.repeated, ROWS);
    assert_int_equal(split(&w, true, &out), SPLIT_DONE);
    assert_int_equal(out.unchanged, 2 * ROWS);
    assert_int_equal(out.created + out.updated + out.removed, 0);
    world_close(&w);
}

static void a_disk_without_room(void **state)
{
    struct world w;
    struct split_result out;
    struct rlimit all, little = {.rlim_cur = 65536};
    world_open(&w, 50);
    for (char first = 'a'; first < 'z'; first++)
        write_rows(&w, first, first == 'a' ? "w" : "a");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
    little.rlim_max = all.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    assert_int_equal(split(&w, true, &out), SPLIT_REFUSED);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
    assert_string_equal(out.code, "no-space");
    assert_int_equal(split(&w, true, &out), SPLIT_DONE);
    assert_int_equal(out.created, 25 * ROWS);
    world_close(&w);
}

/* What is free is reserved: a site's own source writes nothing more, the configuration's does. */
static void a_disk_with_its_reserve_alone(void **state)
{
    struct world w;
    struct split_result out;
    world_open(&w, 50);
    for (char first = 'a'; first < 'z'; first++)
        write_rows(&w, first, first == 'a' ? "w" : "a");
    is_reserved = true;
    for (unsigned dry_run = 0; dry_run < 2; dry_run++) {
        site_id = 1;
        assert_int_equal(split(&w, dry_run, &out), SPLIT_REFUSED);
        assert_string_equal(out.code, "no-space");
        site_id = 0;
    }
    write_rows(&w, 'a', "w"); /* too few to be written while it is read, enough for a spool */
    site_id = 1;
    assert_int_equal(split(&w, false, &out), SPLIT_REFUSED);
    assert_string_equal(out.code, "no-space");
    site_id = 0;
    assert_int_equal(split(&w, false, &out), SPLIT_DONE);
    is_reserved = false;
    world_close(&w);
}

/* Frozen, it is not even read. */
static void a_frozen_urlset(void **state)
{
    struct world w;
    struct split_result out;
    struct change_result result;
    struct registry *registry;
    world_open(&w, 50);
    write_rows(&w, 'a', "w");
    assert_int_equal(split(&w, false, &out), SPLIT_DONE);
    write_rows(&w, 'b', "a");
    struct change freeze = {
        .kind = CHANGE_INDEX_FREEZE, .list = LIST_URLSET, .index_freeze = {.frozen = true}};
    assert_int_equal(catalogue_registry(w.c, &registry), CATALOGUE_OK);
    freeze.index_freeze.index_id =
        registry_list_by_name(registry, ORIGIN "/s/all.xml", LIST_URLSET, NULL)->id;
    registry_unref(registry);
    assert_int_equal(catalogue_apply(w.c, &freeze, &result), CATALOGUE_OK);
    assert_int_equal(split(&w, false, &out), SPLIT_BUSY);
    assert_int_equal(out.bytes, 0);
    assert_int_equal(split(&w, true, &out), SPLIT_DONE); /* what it would do is reported */
    assert_int_equal(out.created, ROWS);
    world_close(&w);
}

/* A site that asked meanwhile is next. */
static void sites_take_turns(void **state)
{
    struct world w;
    struct split_result out;
    world_open(&w, 50);
    write_rows(&w, 'a', "w");
    to_ask = &w;
    assert_int_equal(split(&w, false, &out), SPLIT_DONE);
    assert_null(to_ask);
    write_rows(&w, 'b', "a");
    assert_int_equal(split(&w, false, &out), SPLIT_BUSY);
    assert_int_equal(split_at(&w, OTHER, false, &out), SPLIT_REFUSED);
    assert_int_equal(split(&w, false, &out), SPLIT_DONE);
    assert_int_equal(out.created, ROWS);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_changes_between_its_readings),
        cmocka_unit_test(what_differs),
        cmocka_unit_test(a_disk_without_room),
        cmocka_unit_test(a_disk_with_its_reserve_alone),
        cmocka_unit_test(a_frozen_urlset),
        cmocka_unit_test(sites_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
