/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a scan makes of a folder, from one state of it to the next. */
#include "tests/unit/sources/world.h"

static void new_changed_gone(void **state)
{
    struct world *w = *state;
    folder_do(&w->folder, "mkdir b");
    folder_sitemap(&w->folder, "a.xml", "a", "", 5 * DAY);
    folder_sitemap(&w->folder, "b/c.xml", "c", "", 4 * DAY);
    folder_sitemap(&w->folder, "d.xml", "d", "", 3 * DAY);
    folder_sitemap(&w->folder, "e.xml", "e", "", 2 * DAY);
    folder_write(&w->folder, "list.txt", "https://www.example.com/1\nhttps://www.example.com/2\n");
    folder_date(&w->folder, "list.txt", DAY);
    world_scan(w, "new a.xml\nnew b/c.xml\nnew d.xml\nnew e.xml\nnew list.txt\n");
    assert_entries(w, "/s/a.xml\n/s/b/c.xml\n/s/d.xml\n/s/e.xml\n/s/list.txt\n");
    assert_age(w, "a.xml", 5 * DAY);
    assert_age(w, "list.txt", DAY);
    assert_int_equal(w->out.counts.read, 5);
    assert_int_equal(w->out.again_ms, 0);

    uint64_t revision = world_revision(w);
    world_scan(w, "");
    assert_int_equal(w->out.counts.files, 5);
    assert_int_equal(w->out.counts.read, 0);
    assert_int_equal(world_revision(w), revision);

    folder_sitemap(&w->folder, "a.xml", "a2", "", 3 * DAY);
    folder_do(&w->folder, "rm d.xml");
    world_scan(w, "changed a.xml\ngone d.xml\n");
    assert_int_equal(w->out.counts.read, 1);
    assert_entries(w, "/s/a.xml\n/s/b/c.xml\n/s/e.xml\n/s/list.txt\n");
    assert_age(w, "a.xml", 3 * DAY);
    assert_int_equal(world_revision(w), revision + 1);
}

static void what_says_the_same_is_no_change(void **state)
{
    struct world *w = *state;
    folder_sitemap(&w->folder, "a.xml", "a", "built in spring", 9 * DAY);
    folder_sitemap(&w->folder, "b.xml", "b", "", 9 * DAY);
    folder_do(&w->folder, "gzip -n9 b.xml");
    world_scan(w, "new a.xml\nnew b.xml.gz\n");
    uint64_t revision = world_revision(w);
    folder_date(&w->folder, "a.xml", 8 * DAY); /* a touch */
    world_scan(w, "");
    assert_int_equal(w->out.counts.read, 1);
    folder_do(&w->folder, "cp a.xml x && mv x a.xml"); /* a copy */
    folder_date(&w->folder, "a.xml", 7 * DAY);
    world_scan(w, "");
    folder_sitemap(&w->folder, "a.xml", "a", "built in summer", 6 * DAY); /* a comment */
    world_scan(w, "");
    folder_do(&w->folder, "gunzip b.xml.gz && gzip -1 b.xml"); /* other bytes */
    folder_date(&w->folder, "b.xml.gz", 5 * DAY);
    world_scan(w, "");
    assert_int_equal(w->out.counts.read, 1);
    assert_int_equal(world_revision(w), revision);
    assert_age(w, "a.xml", 9 * DAY);
    assert_age(w, "b.xml.gz", 9 * DAY);
    world_scan(w, "");
    assert_int_equal(w->out.counts.read, 0);
}

static void dates_do_not_run_backwards(void **state)
{
    struct world *w = *state;
    folder_sitemap(&w->folder, "a.xml", "a", "", 3 * DAY);
    folder_sitemap(&w->folder, "b.xml", "b", "", -5 * DAY);
    folder_sitemap(&w->folder, "c.xml", "c", "", time(NULL) - 315532800);
    world_scan(w, "new a.xml\nnew b.xml\nnew c.xml\n");
    assert_age(w, "a.xml", 3 * DAY);
    assert_age(w, "b.xml", 0); /* ahead: now */
    assert_age(w, "c.xml", 0); /* 1980: now */
    assert_int_equal(w->out.counts.future, 1);
    folder_sitemap(&w->folder, "a.xml", "other", "", 4 * DAY);
    world_scan(w, "changed a.xml\n");
    assert_age(w, "a.xml", 0);
}

static void a_web_root_is_no_fault(void **state)
{
    struct world *w = *state;
    folder_sitemap(&w->folder, "sitemap-1.xml", "a", "", DAY);
    folder_write(&w->folder, "robots.txt", "User-agent: *\nDisallow: /x\n");
    folder_write(&w->folder, "feed.xml", "<?xml version=\"1.0\"?><rss version=\"2.0\"/>");
    folder_write(&w->folder, "index.html", "<!DOCTYPE html><p>hello");
    folder_write(&w->folder, "page.xml", "<!DOCTYPE html><html></html>");
    folder_write(&w->folder, "sitemap.xml",
                 "<?xml version=\"1.0\"?><sitemapindex"
                 " xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><sitemap><loc>"
                 "https://www.example.com/x.xml</loc></sitemap></sitemapindex>");
    folder_do(&w->folder, "touch -d '3 days ago' *; mkdir images; touch images/a.png");
    world_scan(w, "new sitemap-1.xml\n");
    assert_entries(w, "/s/sitemap-1.xml\n");
    assert_int_equal(w->out.counts.read, 5);
    world_scan(w, "");
    assert_int_equal(w->out.counts.read, 0);
}

static void empty_is_left_out(void **state)
{
    static const char empty[] =
        "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"></urlset>";
    struct world *w = *state;
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "a%d.xml", i);
        folder_sitemap(&w->folder, name, name, "", 5 * DAY);
    }
    folder_write(&w->folder, "b.xml", empty);
    folder_date(&w->folder, "b.xml", 5 * DAY);
    world_scan(w, "new a0.xml\nnew a1.xml\nnew a2.xml\nnew a3.xml\nnew a4.xml\nempty b.xml\n");
    folder_write(&w->folder, "a0.xml", empty);
    folder_date(&w->folder, "a0.xml", 3 * DAY);
    folder_sitemap(&w->folder, "b.xml", "b", "", 4 * DAY);
    world_scan(w, "empty a0.xml\nnew b.xml\n");
    assert_entries(w, "/s/a1.xml\n/s/a2.xml\n/s/a3.xml\n/s/a4.xml\n/s/b.xml\n");
    assert_age(w, "b.xml", 4 * DAY);
    /* What it was last served with stays known while it is empty. */
    folder_sitemap(&w->folder, "a0.xml", "a0", "", 6 * DAY);
    world_scan(w, "new a0.xml\n");
    assert_age(w, "a0.xml", 0);
}

static void a_file_changed_just_now_is_read_again(void **state)
{
    struct world *w = *state;
    folder_sitemap(&w->folder, "a.xml", "a", "", 0);
    world_scan(w, "new a.xml\n");
    assert_true(w->out.again_ms > 0);
    /* The same size within the same tick of a coarse clock. */
    struct stat before;
    char name[128];
    snprintf(name, sizeof name, "%s/a.xml", w->folder.path);
    assert_int_equal(stat(name, &before), 0);
    folder_sitemap(&w->folder, "a.xml", "b", "", 0);
    const struct timespec times[2] = {before.st_mtim, before.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, name, times, 0), 0);
    world_scan(w, "changed a.xml\n");
    folder_date(&w->folder, "a.xml", 100);
    world_scan(w, "");
    assert_int_equal(w->out.counts.read, 1);
    assert_int_equal(w->out.again_ms, 0);
    world_scan(w, "");
    assert_int_equal(w->out.counts.read, 0);
}

static void another_url_or_index_moves_the_entries(void **state)
{
    struct world *w = *state;
    struct change_result result;
    folder_sitemap(&w->folder, "a.xml", "a", "", DAY);
    folder_sitemap(&w->folder, "b.xml", "b", "", DAY);
    world_scan(w, "new a.xml\nnew b.xml\n");
    w->settings.url = ORIGIN "/t/";
    world_scan(w, "changed a.xml\nchanged b.xml\n");
    assert_int_equal(w->out.counts.read, 0);
    assert_entries(w, "/t/a.xml\n/t/b.xml\n");
    world_scan(w, "");

    struct change index = {.kind = CHANGE_INDEX_ADD, .index_add = {.url = ORIGIN "/other.xml"}};
    assert_int_equal(catalogue_apply(w->c, &index, &result), CATALOGUE_OK);
    w->settings.index = "/other.xml";
    uint64_t revision = world_revision(w);
    world_scan(w, ""); /* the index that they leave would be empty: they stay */
    assert_int_equal(w->out.result.would_remove, 2);
    assert_int_equal(world_revision(w), revision);
    w->max_removed = 2;
    world_scan(w, "");
    assert_int_equal(w->out.result.updated, 2);
    assert_int_equal(world_revision(w), revision + 1);
    world_scan(w, "");
    assert_int_equal(world_revision(w), revision + 1);
}

static void an_entry_removed_by_hand_comes_back(void **state)
{
    struct world *w = *state;
    struct change_result result;
    folder_sitemap(&w->folder, "a.xml", "a", "", DAY);
    folder_sitemap(&w->folder, "b.xml", "b", "", DAY);
    world_scan(w, "new a.xml\nnew b.xml\n");
    struct change drop = {.kind = CHANGE_ENTRY_REMOVE, .entry_remove = {.loc = ORIGIN "/s/a.xml"}};
    assert_int_equal(catalogue_apply(w->c, &drop, &result), CATALOGUE_OK);
    entry_record_done(&result.entry);
    world_scan(w, "new a.xml\n");
    assert_entries(w, "/s/a.xml\n/s/b.xml\n");
    assert_age(w, "a.xml", DAY);
}

static void a_dry_run_reports_and_does_nothing(void **state)
{
    struct world *w = *state;
    folder_sitemap(&w->folder, "a.xml", "a", "", DAY);
    folder_write(&w->folder, "b.xml",
                 "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url>");
    uint64_t revision = world_revision(w);
    w->dry_run = w->alone = true;
    for (int i = 0; i < 2; i++) {
        world_scan(w, "new a.xml\nproblem b.xml truncated\n");
        assert_int_equal(w->out.result.created, 1);
        change_result_done(&w->out.result);
    }
    assert_entries(w, "");
    assert_int_equal(world_revision(w), revision);
}

static void assert_remarks(struct world *w, const char *path, const char *want)
{
    struct catalogue_view *view;
    struct source_file file;
    world_file(w, path, &file, &view);
    assert_string_equal(file.remarks ? file.remarks : "", want);
    catalogue_view_end(view);
}

#define URLSET "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">"
#define GOOD   "<url><loc>" ORIGIN "/s/good</loc></url>"

static void remarks_are_kept_until_the_file_is_mended(void **state)
{
    struct world *w = *state;
    static const char relative[] = "loc-relative 1 6 2 0 0 /a\n";
    folder_write(&w->folder, "a.xml", URLSET GOOD "\n<url><loc>/a</loc></url></urlset>");
    folder_date(&w->folder, "a.xml", 9 * DAY);
    world_scan(w, "new a.xml\n");
    assert_int_equal(w->out.counts.remarked, 1);
    assert_remarks(w, "a.xml", relative);
    uint64_t revision = world_revision(w);
    world_scan(w, "");
    assert_int_equal(w->out.counts.read, 0);
    assert_remarks(w, "a.xml", relative);

    folder_write(&w->folder, "a.xml",
                 URLSET GOOD "\n<url>"); /* half of it: refused, not remarked */
    folder_date(&w->folder, "a.xml", 8 * DAY);
    world_scan(w, "problem a.xml truncated\n");
    assert_remarks(w, "a.xml", "");
    folder_write(&w->folder, "a.xml", URLSET GOOD "\n<url><loc>/a</loc></url></urlset>");
    folder_date(&w->folder, "a.xml", 7 * DAY);
    world_scan(w, "recovered a.xml\n");
    assert_remarks(w, "a.xml", relative);
    assert_int_equal(world_revision(w), revision);

    folder_write(&w->folder, "a.xml", URLSET GOOD "</urlset>");
    folder_date(&w->folder, "a.xml", 6 * DAY);
    world_scan(w, "changed a.xml\n");
    assert_remarks(w, "a.xml", "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(new_changed_gone),
        TEST(what_says_the_same_is_no_change),
        TEST(dates_do_not_run_backwards),
        TEST(a_web_root_is_no_fault),
        TEST(empty_is_left_out),
        TEST(a_file_changed_just_now_is_read_again),
        TEST(another_url_or_index_moves_the_entries),
        TEST(an_entry_removed_by_hand_comes_back),
        TEST(a_dry_run_reports_and_does_nothing),
        TEST(remarks_are_kept_until_the_file_is_mended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
