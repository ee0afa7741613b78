/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A scan: where memory runs out it fails as a whole, nothing is refused or gone for it, and the
 * next one does what it would have done. */
#include "tests/unit/alloc/alloc.h"

#include "tests/unit/sources/world.h"

/* All of the folder, into a catalogue that knows nothing of it yet. */
static bool scan_all(void *context)
{
    struct world *w = context;
    static unsigned number;
    char name[32];
    snprintf(name, sizeof name, "source-%u", ++number);
    struct source_settings settings = w->settings;
    struct folder place = {0};
    struct scan_outcome out;
    char why[256], url[64];
    snprintf(url, sizeof url, ORIGIN "/s%u/", number);
    settings.name = name;
    settings.url = url;
    if (!folder_init(&place, &settings, why, sizeof why))
        return false;
    struct scan_options options = {.catalogue = w->c,
                                   .settings = &settings,
                                   .kind = &folder_kind,
                                   .place = &place,
                                   .max_removed = 0};
    scan_run(&options, &out);
    if (out.applied) {
        assert_int_equal(out.counts.files, 4);
        assert_int_equal(out.counts.read, 4);
    } else {
        assert_true(strlen(out.failure) > 0);
    }
    folder_done(&place);
    struct catalogue_view *view;
    struct source_state state;
    alloc_disarm();
    assert_int_equal(catalogue_view_begin(w->c, &view), CATALOGUE_OK);
    assert_int_equal(catalogue_view_source_state(view, name, &state), CATALOGUE_OK);
    catalogue_view_end(view);
    assert_int_equal(state.quarantined, out.applied ? 1 : 0);
    assert_int_equal(state.listed, out.applied ? 3 : 0);
    return out.applied;
}

static void test_scan(void **state)
{
    struct world w;
    world_open(&w, 30);
    folder_sitemap(&w.folder, "a.xml", "a", "", 5 * DAY);
    folder_sitemap(&w.folder, "c.xml", "c", "", 4 * DAY);
    folder_do(&w.folder, "gzip -n9 c.xml");
    folder_write(&w.folder, "list.txt", "https://www.example.com/1\nhttps://www.example.com/2\n");
    folder_write(&w.folder, "bad.xml",
                 "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>");
    folder_do(&w.folder, "touch -d '2 days ago' list.txt bad.xml");
    alloc_sweep("scan", scan_all, &w);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scan)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
