/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Lists and their cursors. */
#include "tests/unit/db/read/read_handle.h"

#include "db/read/row.h"

#define S1 "https://www.example.com"
#define S2 "https://two.example"

struct page {
    const struct entry_list *list;
    char names[512]; /* the last path segments, a space behind each */
    char next[ENTRY_CURSOR_SIZE];
};

static bool see(void *context, const struct entry_record *record)
{
    struct page *page = context;

    sprintf(page->names + strlen(page->names), "%s ", strrchr(record->loc, '/') + 1);
    catalogue_entry_cursor(page->list, record, page->next);
    return true;
}

static void list_is(struct catalogue *c, struct entry_list *list, const char *names,
                    struct page *out)
{
    struct catalogue_view *v = begin(c);
    struct page page = {.list = list};

    assert_int_equal(catalogue_view_list(v, list, see, &page), CATALOGUE_OK);
    assert_string_equal(page.names, names);
    catalogue_view_end(v);
    if (out != NULL)
        *out = page;
}

/* What a prefix ends at follows all that begin with it, and is a whole text wherever it is put. */
static void test_end_of_a_prefix(void **state)
{
    char end[LOC_MAX_CHARS + 1];

    memset(end, 'x', sizeof end);
    entry_prefix_end(S1 "/shop", end);
    assert_string_equal(end, S1 "/shoq");
    memset(end, 'x', sizeof end);
    entry_prefix_end("", end);
    assert_string_equal(end, "\x7f");
}

/* Index 1 and 2 of site 1, 3 of site 2, 4 of site 1 removed. */
static void open_all(struct fixture *f, struct catalogue *c)
{
    fixture_open(f);
    fixture_site(f->db, 1, S1);
    fixture_site(f->db, 2, S2);
    fixture_index(f->db, 1, 1, "/sitemap_index.xml");
    fixture_index(f->db, 2, 1, "/shop/i.xml");
    fixture_index(f->db, 3, 2, "/i.xml");
    fixture_index(f->db, 4, 1, "/old.xml");
    fixture_entry(f->db, 1, 5, S1 "/d", NULL);
    fixture_entry(f->db, 1, 6, S1 "/b", NULL);
    fixture_entry(f->db, 1, 70000, S1 "/shop/a", NULL);
    fixture_entry(f->db, 2, 0, S1 "/shop/c", NULL);
    fixture_entry(f->db, 2, 1, S1 "/shopping", NULL);
    fixture_entry(f->db, 3, 0, S2 "/x", NULL);
    fixture_entry(f->db, 4, 0, S1 "/removed", NULL);
    fixture_sql(f->db, "UPDATE sitemap_index SET removed = 1 WHERE id = 4;"
                       "INSERT INTO source(id, name) VALUES(2, 'other');"
                       "UPDATE sitemap SET source = 2 WHERE loc LIKE '%%/b' OR loc LIKE '%%/x'");
    handle_open(c, f);
}

static void close_all(struct fixture *f, struct catalogue *c)
{
    handle_close(c);
    fixture_close(f);
}

static void filters(void **state)
{
    struct catalogue c;
    struct fixture f;

    open_all(&f, &c);
    list_is(&c, &(struct entry_list){0}, "d b a c shopping x ", NULL);
    list_is(&c, &(struct entry_list){.site_id = 1}, "d b a c shopping ", NULL);
    list_is(&c, &(struct entry_list){.site_id = 9}, "", NULL);
    list_is(&c, &(struct entry_list){.index_id = 2}, "c shopping ", NULL);
    list_is(&c, &(struct entry_list){.index_id = 4}, "", NULL);
    list_is(&c, &(struct entry_list){.index_id = 3, .site_id = 1}, "", NULL);
    list_is(&c, &(struct entry_list){.limit = 2}, "d b ", NULL);
    list_is(&c, &(struct entry_list){.source = "other"}, "b x ", NULL);
    list_is(&c, &(struct entry_list){.source = "nobody"}, "", NULL);
    list_is(&c, &(struct entry_list){.prefix = S1 "/"}, "b d a c shopping ", NULL);
    list_is(&c, &(struct entry_list){.prefix = S1 "/shop/"}, "a c ", NULL);
    list_is(&c, &(struct entry_list){.prefix = S1 "/shop/", .index_id = 1}, "a ", NULL);
    list_is(&c, &(struct entry_list){.prefix = S1 "/", .source = "other"}, "b ", NULL);
    list_is(&c, &(struct entry_list){.prefix = "https://", .site_id = 2}, "x ", NULL);
    list_is(&c, &(struct entry_list){.prefix = "https://"}, "b d a c shopping x ", NULL);
    list_is(&c, &(struct entry_list){.prefix = ""}, "b d a c shopping x ", NULL);
    list_is(&c, &(struct entry_list){.prefix = S1 "/shop/a"}, "a ", NULL);
    list_is(&c, &(struct entry_list){.prefix = S1 "/shop/ab"}, "", NULL);
    list_is(&c, &(struct entry_list){.prefix = S1 "/\xff"}, "", NULL);
    fixture_sql(f.db, "UPDATE site SET removed = 1 WHERE id = 1");
    list_is(&c, &(struct entry_list){0}, "x ", NULL);
    list_is(&c, &(struct entry_list){.prefix = "https://"}, "x ", NULL);
    close_all(&f, &c);
}

/* Walks the list in steps of `limit`; after the first step one entry behind and one before are
 * added, and the one that the cursor names is removed. */
static void walk(struct entry_list list, const char *first, const char *rest)
{
    struct catalogue c;
    struct page page;
    struct fixture f;
    char all[512] = "";

    open_all(&f, &c);
    list_is(&c, &list, first, &page);
    fixture_entry(f.db, 1, 0, S1 "/aa", NULL);
    fixture_entry(f.db, 1, 9, S1 "/e", NULL);
    fixture_sql(f.db, "DELETE FROM sitemap WHERE loc LIKE '%%/b'");
    for (;;) {
        char after[ENTRY_CURSOR_SIZE];
        struct catalogue_view *v = begin(&c);
        strcpy(after, page.next);
        list.after = after;
        page.names[0] = '\0';
        assert_int_equal(catalogue_view_list(v, &list, see, &page), CATALOGUE_OK);
        catalogue_view_end(v);
        if (page.names[0] == '\0')
            break;
        strcat(all, page.names);
    }
    assert_string_equal(all, rest);
    close_all(&f, &c);
}

static void cursors_are_stable(void **state)
{
    walk((struct entry_list){.limit = 2}, "d b ", "e a c shopping x ");
    walk((struct entry_list){.limit = 2, .index_id = 1}, "d b ", "e a ");
    walk((struct entry_list){.limit = 1, .prefix = "https://"}, "b ", "d e a c shopping x ");
    walk((struct entry_list){.limit = 1, .prefix = S1 "/", .site_id = 1}, "b ",
         "d e a c shopping ");
}

static void a_cursor_of_a_removed_index_goes_on(void **state)
{
    struct entry_list list = {.limit = 4};
    struct catalogue c;
    struct page page;
    struct fixture f;

    open_all(&f, &c);
    list_is(&c, &list, "d b a c ", &page);
    fixture_sql(f.db, "UPDATE sitemap_index SET removed = 1 WHERE id = 2");
    list.after = page.next;
    list_is(&c, &list, "x ", NULL);
    close_all(&f, &c);
}

static void malformed_cursors_are_refused(void **state)
{
    static const char *const bad[] = {"", "A", "!!!!", "AXAA", "AXAAAAAAAAAAAAAAAAA=", "%41"};
    struct cursor cursor = {.kind = CURSOR_POSITION, .owner = 1, .position = 6};
    char good[ENTRY_CURSOR_SIZE], longer[2 * ENTRY_CURSOR_SIZE];
    struct catalogue c;
    struct page page = {0};
    struct fixture f;

    open_all(&f, &c);
    struct catalogue_view *v = begin(&c);
    struct entry_list list = {0};
    page.list = &list;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        list.after = bad[i];
        assert_int_equal(catalogue_view_list(v, &list, see, &page), CATALOGUE_CONFLICT);
    }
    cursor_format(&cursor, good);
    list.after = good;
    assert_int_equal(catalogue_view_list(v, &list, see, &page), CATALOGUE_OK);
    list.prefix = S1; /* the cursor of another kind of list */
    assert_int_equal(catalogue_view_list(v, &list, see, &page), CATALOGUE_CONFLICT);
    list.prefix = NULL;
    for (size_t i = 0; i < strlen(good); i++) {
        char cut[ENTRY_CURSOR_SIZE];
        memcpy(cut, good, i);
        cut[i] = '\0';
        list.after = cut;
        assert_int_equal(catalogue_view_list(v, &list, see, &page), CATALOGUE_CONFLICT);
    }
    memset(longer, 'A', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    list.after = longer;
    assert_int_equal(catalogue_view_list(v, &list, see, &page), CATALOGUE_CONFLICT);
    catalogue_view_end(v);
    close_all(&f, &c);
}

/* Calls until it ends; after the first one the row that its cursor names is removed. */
static void search_is(struct entry_search search, const char *names, const char *looked_at)
{
    char after[ENTRY_CURSOR_SIZE], looked[64] = "";
    struct entry_searched searched;
    struct page page = {.list = &search.list};
    struct catalogue c;
    struct fixture f;

    open_all(&f, &c);
    if (search.list.index_id != 0)
        search.list.site_id = 1;
    search.origin = S2; /* so that each has a remark */
    do {
        struct catalogue_view *v = begin(&c);
        assert_int_equal(catalogue_view_search(v, &search, see, &page, &searched), CATALOGUE_OK);
        catalogue_view_end(v);
        sprintf(looked + strlen(looked), "%d ", (int)searched.looked_at);
        strcpy(after, searched.next);
        search.list.after = after;
        fixture_sql(f.db, "DELETE FROM sitemap WHERE loc LIKE '%%/d'");
    } while (searched.more);
    assert_string_equal(page.names, names);
    assert_string_equal(looked, looked_at);
    close_all(&f, &c);
}

static void a_search_ends_where_its_effort_does(void **state)
{
    const struct entry_filter slash = {.contains = "com/"}, shop = {.contains = "/shop"};
    const struct entry_filter warned = {.warned = true};

    search_is((struct entry_search){{.index_id = 1}, slash, NULL, 100}, "d b a ", "3 ");
    search_is((struct entry_search){{.index_id = 1}, shop, NULL, 1}, "a ", "1 1 1 ");
    search_is((struct entry_search){{.index_id = 1}, shop, NULL, 2}, "a ", "2 1 ");
    search_is((struct entry_search){{.index_id = 1}, warned, NULL, 2}, "d b a ", "2 1 ");
    search_is((struct entry_search){{.index_id = 1, .limit = 1}, slash, NULL, 2}, "d b a ",
              "1 1 1 ");
    search_is((struct entry_search){{.index_id = 4}, slash, NULL, 9}, "", "0 ");
    /* By loc: what lies in another index is looked at, and a lookup counts ten. */
    search_is((struct entry_search){{.index_id = 1, .prefix = S1}, slash, NULL, 2}, "b d a ",
              "2 2 2 ");
    search_is((struct entry_search){{.index_id = 2, .prefix = S1 "/shop"}, warned, NULL, 20},
              "c shopping ", "2 1 ");
    search_is(
        (struct entry_search){{.index_id = 1, .prefix = S1, .source = "other"}, slash, NULL, 30},
        "b ", "3 3 ");
}

/* Index after index, or, with a prefix, site after site; without what was removed. */
static void a_search_of_all_ends_where_its_effort_does(void **state)
{
    search_is((struct entry_search){.list = {.source = "other"}, .effort = 9}, "b x ", "6 ");
    search_is((struct entry_search){.list = {.source = "other"}, .effort = 2}, "b x ", "2 2 2 ");
    search_is((struct entry_search){.list = {.source = "other", .limit = 1}, .effort = 9}, "b x ",
              "2 4 ");
    search_is((struct entry_search){.list = {.source = "other", .site_id = 2}, .effort = 9}, "x ",
              "1 ");
    search_is(
        (struct entry_search){.list = {.source = "other", .prefix = "https://"}, .effort = 30},
        "b x ", "3 3 1 ");
    /* A site without rows under the prefix is left out. */
    search_is((struct entry_search){.list = {.prefix = S1 "/shop/", .limit = 2}, .effort = 9},
              "a c ", "2 ");
    search_is((struct entry_search){.list = {.source = "nobody"}, .effort = 9}, "", "0 ");
    /* With the prefix, the rows of a removed index are looked at, too, and count ten. */
    search_is((struct entry_search){.list = {.prefix = S1 "/r"}, .effort = 11}, "", "1 ");
    search_is((struct entry_search){.list = {.prefix = S1 "/"}, .effort = 12}, "b d a c shopping ",
              "3 3 ");
    search_is((struct entry_search){.list = {.prefix = S1 "/s"}, .effort = 2}, "a c shopping ",
              "2 1 ");
}

static void cursors_come_back_as_they_were(void **state)
{
    struct cursor in = {.kind = CURSOR_LOC, .owner = INT64_MAX}, out;
    char text[ENTRY_CURSOR_SIZE];

    for (size_t len = 1; len <= LOC_MAX_CHARS; len += 1 + len / 3) {
        memset(in.loc, '~', len);
        in.loc[len] = '\0';
        cursor_format(&in, text);
        assert_int_equal(strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                      "0123456789-_"),
                         strlen(text));
        assert_true(cursor_parse(text, &out));
        assert_int_equal(out.kind, CURSOR_LOC);
        assert_true(out.owner == INT64_MAX);
        assert_string_equal(out.loc, in.loc);
    }
    in = (struct cursor){.kind = CURSOR_POSITION, .owner = 7, .position = UINT32_MAX};
    cursor_format(&in, text);
    assert_true(cursor_parse(text, &out));
    assert_int_equal(out.owner, 7);
    assert_int_equal(out.position, UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end_of_a_prefix),
        cmocka_unit_test(filters),
        cmocka_unit_test(cursors_are_stable),
        cmocka_unit_test(a_cursor_of_a_removed_index_goes_on),
        cmocka_unit_test(malformed_cursors_are_refused),
        cmocka_unit_test(a_search_ends_where_its_effort_does),
        cmocka_unit_test(a_search_of_all_ends_where_its_effort_does),
        cmocka_unit_test(cursors_come_back_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
