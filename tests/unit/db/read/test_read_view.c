/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Views: one revision each, whatever is committed meanwhile. */
#include "tests/unit/db/read/read_sites.h"

struct seen {
    size_t count, stop_after;
    struct page_record page[8];
    char url[8][128];
};

static bool see_page(void *context, const struct page_record *page, const char *url)
{
    struct seen *seen = context;

    assert_true(seen->count < 8);
    seen->page[seen->count] = *page;
    snprintf(seen->url[seen->count++], sizeof seen->url[0], "%s", url);
    return seen->count != seen->stop_after;
}

static bool see_row(void *context, const char *loc, size_t loc_len, const char *lastmod,
                    const char *extensions, size_t extensions_len)
{
    char *out = context;

    assert_int_equal(strlen(loc), loc_len);
    assert_int_equal(extensions != NULL ? strlen(extensions) : 0, extensions_len);
    sprintf(out + strlen(out), "%s:%s%s%s ", strrchr(loc, '/'), lastmod != NULL ? lastmod : "-",
            extensions != NULL ? ":" : "", extensions != NULL ? extensions : "");
    return strstr(out, "/stop") == NULL;
}

static void a_view_keeps_its_revision(void **state)
{
    struct catalogue_revisions revisions;
    struct page_record page;
    struct catalogue c;
    struct fixture f;

    open_all(&f, &c);
    fixture_entry(f.db, 1, 0, S1 "/a", NULL);
    struct catalogue_view *old = begin(&c);
    fixture_entry(f.db, 1, 1, S1 "/b", NULL);
    fixture_sql(f.db, "UPDATE sitemap_index SET removed = 1 WHERE id = 3;"
                      "UPDATE catalogue SET registry_revision = revision");
    struct catalogue_view *new = begin(&c);

    assert_int_equal(catalogue_view_revisions(new, &revisions), CATALOGUE_OK);
    assert_int_equal(revisions.revision, 2);
    assert_int_equal(revisions.entries, 2);
    assert_int_equal(strlen(revisions.epoch), 32);
    assert_int_equal(catalogue_view_revisions(old, &revisions), CATALOGUE_OK);
    assert_int_equal(revisions.revision, 1);
    assert_int_equal(revisions.entries, 1);
    assert_int_equal(catalogue_view_page(old, 1, 1, &page), CATALOGUE_OK);
    assert_int_equal(page.entries, 1);
    assert_int_equal(catalogue_view_page(new, 1, 1, &page), CATALOGUE_OK);
    assert_int_equal(page.entries, 2);

    struct registry *r_new, *r_old, *again;
    assert_int_equal(catalogue_view_registry(new, &r_new), CATALOGUE_OK);
    assert_int_equal(catalogue_view_registry(old, &r_old), CATALOGUE_OK);
    assert_null(registry_index_by_id(r_new, 3));
    assert_non_null(registry_index_by_id(r_old, 3));
    assert_int_equal(catalogue_view_registry(new, &again), CATALOGUE_OK);
    assert_ptr_equal(again, r_new);
    registry_unref(again);
    registry_unref(r_new);
    registry_unref(r_old);
    catalogue_view_end(new);
    catalogue_view_end(old);

    struct catalogue_view *next = begin(&c);
    assert_int_equal(catalogue_view_revisions(next, &revisions), CATALOGUE_OK);
    assert_int_equal(revisions.revision, 2);
    assert_int_equal(revisions.entries, 2);
    catalogue_view_end(next);
    catalogue_view_end(NULL);
    close_all(&f, &c);
}

static void pages_since_reports_what_changed(void **state)
{
    struct catalogue c;
    struct fixture f;

    open_all(&f, &c);
    fixture_entry(f.db, 1, 0, S1 "/a", NULL);                             /* revision 1 */
    fixture_entry(f.db, 1, 50000, S1 "/b", NULL);                         /* 2 */
    fixture_entry(f.db, 2, 7, S1 "/shop/c", NULL);                        /* 3 */
    fixture_entry(f.db, 3, 3 * 50000, "http://two.example:8080/d", NULL); /* 4 */
    fixture_sql(f.db, "UPDATE sitemap_index SET removed = 1 WHERE id = 2");

    struct catalogue_view *v = begin(&c);
    struct seen all = {0};
    assert_int_equal(catalogue_view_pages_since(v, 0, 0, see_page, &all), CATALOGUE_OK);
    assert_int_equal(all.count, 4);
    assert_string_equal(all.url[0], S1 "/sitemap_index.xml");
    assert_string_equal(all.url[1], S1 "/sitemap_index-2.xml");
    assert_string_equal(all.url[2], S1 "/shop/i.xml");
    assert_string_equal(all.url[3], "http://two.example:8080/i-4.xml");
    assert_false(all.page[0].removed);
    assert_int_equal(all.page[1].number, 2);
    assert_int_equal(all.page[1].revision, 2);
    assert_int_equal(all.page[1].changed_at, 1001);
    assert_true(all.page[2].removed);
    assert_int_equal(all.page[3].index_id, 3);

    struct seen some = {.stop_after = 1};
    assert_int_equal(catalogue_view_pages_since(v, 2, 0, see_page, &some), CATALOGUE_OK);
    assert_int_equal(some.count, 1);
    assert_int_equal(some.page[0].revision, 3);
    struct seen ended = {.stop_after = 2};
    assert_int_equal(catalogue_view_pages_since(v, 0, 0, see_page, &ended), CATALOGUE_OK);
    assert_int_equal(ended.count, 2);
    struct seen of_site = {0};
    assert_int_equal(catalogue_view_pages_since(v, 0, 2, see_page, &of_site), CATALOGUE_OK);
    assert_int_equal(of_site.count, 1);
    assert_string_equal(of_site.url[0], "http://two.example:8080/i-4.xml");
    struct seen none = {0};
    assert_int_equal(catalogue_view_pages_since(v, 4, 0, see_page, &none), CATALOGUE_OK);
    assert_int_equal(catalogue_view_pages_since(v, UINT64_MAX, 0, see_page, &none), CATALOGUE_OK);
    assert_int_equal(none.count, 0);

    struct page_record page;
    assert_int_equal(catalogue_view_page(v, 2, 1, &page), CATALOGUE_OK);
    assert_int_equal(page.site_id, 1);
    assert_true(page.removed);
    assert_int_equal(catalogue_view_page(v, 2, 2, &page), CATALOGUE_NOT_FOUND);
    assert_int_equal(catalogue_view_page(v, 99, 1, &page), CATALOGUE_NOT_FOUND);
    catalogue_view_end(v);
    close_all(&f, &c);
}

static void segments_and_positions_of_a_page(void **state)
{
    uint64_t changed[PAGE_SEGMENT_BITS];
    struct catalogue c;
    struct fixture f;

    open_all(&f, &c);
    fixture_entry(f.db, 1, 0, S1 "/a", "2026-01-01");     /* revision 1, page 1, segment 0 */
    fixture_entry(f.db, 1, 249, S1 "/b", NULL);           /* 2, segment 0 */
    fixture_entry(f.db, 1, 49999, S1 "/c", NULL);         /* 3, segment 199 */
    fixture_entry(f.db, 1, 50000 + 16000, S1 "/d", NULL); /* 4, page 2, segment 64 */
    fixture_entry(f.db, 2, 0, S1 "/shop/e", NULL);        /* 5 */

    struct catalogue_view *v = begin(&c);
    assert_int_equal(catalogue_view_segments_since(v, 1, 1, 0, changed), CATALOGUE_OK);
    assert_int_equal(changed[0], 1);
    assert_int_equal(changed[1], 0);
    assert_int_equal(changed[3], (uint64_t)1 << 7);
    assert_int_equal(catalogue_view_segments_since(v, 1, 1, 2, changed), CATALOGUE_OK);
    assert_int_equal(changed[0], 0);
    assert_int_equal(changed[1], 0);
    assert_int_equal(changed[3], (uint64_t)1 << 7);
    assert_int_equal(catalogue_view_segments_since(v, 1, 2, 0, changed), CATALOGUE_OK);
    assert_int_equal(changed[0], 0);
    assert_int_equal(changed[1], 1);
    assert_int_equal(catalogue_view_segments_since(v, 1, 2, 4, changed), CATALOGUE_OK);
    assert_int_equal(changed[1], 0);

    char text[256] = "";
    assert_int_equal(catalogue_view_positions(v, LIST_INDEX, 1, 0, 50000, see_row, text),
                     CATALOGUE_OK);
    assert_string_equal(text, "/a:2026-01-01 /b:- /c:- ");
    text[0] = '\0';
    assert_int_equal(catalogue_view_positions(v, LIST_INDEX, 1, 1, 248, see_row, text),
                     CATALOGUE_OK);
    assert_int_equal(catalogue_view_positions(v, LIST_INDEX, 1, 1, 0, see_row, text), CATALOGUE_OK);
    assert_int_equal(catalogue_view_positions(v, LIST_INDEX, -1, 0, 9, see_row, text),
                     CATALOGUE_OK);
    assert_string_equal(text, "");
    assert_int_equal(catalogue_view_positions(v, LIST_INDEX, 1, 249, UINT32_MAX, see_row, text),
                     CATALOGUE_OK);
    assert_string_equal(text, "/b:- /c:- /d:- ");
    catalogue_view_end(v);

    /* Only rows of urlsets have extensions. */
    fixture_sql(f.db, "UPDATE sitemap SET extensions = '<x/>' WHERE loc = '" S1 "/b'");
    v = begin(&c);
    text[0] = '\0';
    assert_int_equal(catalogue_view_positions(v, LIST_URLSET, 1, 0, 250, see_row, text),
                     CATALOGUE_OK);
    assert_string_equal(text, "/a:2026-01-01 /b:-:<x/> ");
    text[0] = '\0';
    assert_int_equal(catalogue_view_positions(v, LIST_INDEX, 1, 0, 250, see_row, text),
                     CATALOGUE_OK);
    assert_string_equal(text, "/a:2026-01-01 /b:- ");
    catalogue_view_end(v);

    fixture_entry(f.db, 1, 2, S1 "/stop", NULL);
    v = begin(&c);
    text[0] = '\0';
    assert_int_equal(catalogue_view_positions(v, LIST_INDEX, 1, 0, 500, see_row, text),
                     CATALOGUE_NO_MEMORY);
    assert_string_equal(text, "/a:2026-01-01 /stop:- ");
    catalogue_view_end(v);

    fixture_sql(f.db, "UPDATE site SET removed = 1 WHERE id = 1");
    v = begin(&c);
    text[0] = '\0';
    assert_int_equal(catalogue_view_positions(v, LIST_INDEX, 1, 0, 500, see_row, text),
                     CATALOGUE_OK);
    assert_string_equal(text, "");
    catalogue_view_end(v);
    close_all(&f, &c);
}

static void single_entries(void **state)
{
    struct entry_record by_loc, by_id;
    char etag[40], other[40];
    struct catalogue c;
    struct fixture f;

    open_all(&f, &c);
    fixture_entry(f.db, 1, 50003, S1 "/a", "2026-01-01");
    fixture_sql(f.db, "UPDATE sitemap SET digest = 'd1'");
    struct catalogue_view *v = begin(&c);
    assert_int_equal(catalogue_view_entry_by_loc(v, 1, S1 "/a", &by_loc), CATALOGUE_OK);
    assert_int_equal(catalogue_view_entry_by_id(v, by_loc.id, &by_id), CATALOGUE_OK);
    assert_string_equal(by_id.loc, S1 "/a");
    assert_string_equal(by_id.lastmod, "2026-01-01");
    assert_string_equal(by_id.digest, "d1");
    assert_string_equal(by_id.source, "tests");
    assert_int_equal(by_id.position, 50003);
    assert_int_equal(by_id.page, 2);
    assert_int_equal(by_id.index_id, 1);
    assert_int_equal(by_id.site_id, 1);
    assert_int_equal(by_id.changed_at, 1000);

    catalogue_entry_etag(&by_id, etag);
    catalogue_entry_etag(&by_loc, other);
    assert_string_equal(etag, other);
    assert_int_equal(strlen(etag), 34);
    assert_true(etag[0] == '"' && etag[33] == '"');
    by_loc.changed_at++;
    catalogue_entry_etag(&by_loc, other);
    assert_string_not_equal(etag, other);
    by_loc.changed_at--;
    char *kept = by_loc.lastmod;
    by_loc.lastmod = NULL;
    catalogue_entry_etag(&by_loc, other);
    assert_string_not_equal(etag, other);
    by_loc.lastmod = kept;

    struct entry_record none;
    assert_int_equal(catalogue_view_entry_by_loc(v, 2, S1 "/a", &none), CATALOGUE_NOT_FOUND);
    assert_int_equal(catalogue_view_entry_by_loc(v, 1, S1 "/b", &none), CATALOGUE_NOT_FOUND);
    assert_int_equal(catalogue_view_entry_by_id(v, "", &none), CATALOGUE_NOT_FOUND);
    assert_int_equal(catalogue_view_entry_by_id(v, "nonsense", &none), CATALOGUE_NOT_FOUND);
    char index_state[INDEX_STATE_SIZE];
    assert_int_equal(catalogue_view_index_state(v, 1, index_state), CATALOGUE_OK);
    assert_int_equal(catalogue_view_index_state(v, 999, index_state), CATALOGUE_NOT_FOUND);
    catalogue_view_end(v);

    /* Another entry at the same place is not this one; nor is one of a removed index. */
    fixture_sql(f.db, "UPDATE sitemap SET serial = serial + 1");
    v = begin(&c);
    assert_int_equal(catalogue_view_entry_by_id(v, by_id.id, &none), CATALOGUE_NOT_FOUND);
    catalogue_view_end(v);
    fixture_sql(f.db, "UPDATE sitemap SET serial = serial - 1;"
                      "UPDATE sitemap_index SET removed = 1 WHERE id = 1");
    v = begin(&c);
    assert_int_equal(catalogue_view_entry_by_id(v, by_id.id, &none), CATALOGUE_NOT_FOUND);
    assert_int_equal(catalogue_view_entry_by_loc(v, 1, S1 "/a", &none), CATALOGUE_NOT_FOUND);
    catalogue_view_end(v);
    entry_record_done(&by_id);
    entry_record_done(&by_loc);
    entry_record_done(&by_loc);
    entry_record_done(NULL);
    close_all(&f, &c);
}

static void status_words(void **state)
{
    assert_string_equal(catalogue_status_word(CATALOGUE_OK), "ok");
    assert_string_equal(catalogue_status_word(CATALOGUE_NO_SPACE), "no-space");
    assert_string_equal(catalogue_status_word(CATALOGUE_CANCELLED), "cancelled");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_keeps_its_revision),
        cmocka_unit_test(pages_since_reports_what_changed),
        cmocka_unit_test(segments_and_positions_of_a_page),
        cmocka_unit_test(single_entries),
        cmocka_unit_test(status_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
