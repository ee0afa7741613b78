/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The limits, exactly at and past the border, and inputs that are made to cost. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/input/test_sitemap_file.h"

static void check_broken(const char *name, const struct sitemap_file *f, const char *code,
                         uint64_t line, uint64_t column)
{
    if (f->kind != SITEMAP_FILE_BROKEN || strcmp(f->code, code) != 0 || f->line != line ||
        f->column != column)
        fail_msg("%s: %d %s at %lu:%lu (%s), not %s", name, f->kind, f->code,
                 (unsigned long)f->line, (unsigned long)f->column, f->detail, code);
}

static void check_kind(const char *name, const struct sitemap_file *f, enum sitemap_file_kind kind)
{
    if (f->kind != kind)
        fail_msg("%s: %d %s %s", name, f->kind, f->code, f->detail);
}

static void test_urls(void **state)
{
    for (unsigned past = 0; past < 2; past++) {
        struct str xml = STR_INIT, list = STR_INIT;
        str_append_text(&xml, OPEN);
        append_repeat(&xml, "\n" URL("a"), 50000 + past);
        str_append_text(&xml, CLOSE);
        append_repeat(&list, "https://example.com/a\n\n", 50000 + past);
        struct sitemap_file a = verify_str("urls", &xml), b = verify_str("lines", &list);
        if (past) {
            check_broken("urls", &a, "too-many-urls", 50002, 1);
            check_broken("lines", &b, "too-many-urls", 100001, 1);
        } else {
            check_kind("urls", &a, SITEMAP_FILE_URLSET);
            check_kind("lines", &b, SITEMAP_FILE_TEXT);
            assert_true(a.urls == 50000 && b.urls == 50000);
        }
    }
    struct str csv = STR_INIT;
    append_repeat(&csv, "https://example.com/a\nb\n", 25000);
    append_repeat(&csv, "c\n", 2);
    struct sitemap_file f = verify_str("not a list", &csv);
    check_broken("not a list", &f, "too-many-urls", 50001, 1); /* half of it, to here */
    append_repeat(&csv, "https://example.com/a\nb\nc\n", 25000);
    f = verify_str("prose", &csv);
    check_kind("prose", &f, SITEMAP_FILE_OTHER);
    str_clear(&csv);
    append_repeat(&csv, "https://example.com/a,2026-11-21,0.8\n", 3);
    f = verify_str("a table", &csv);
    check_kind("a table", &f, SITEMAP_FILE_OTHER);
}

/* A urlset of exactly `size` bytes, most of it in comments of 1 KiB. */
static void append_sized(struct str *s, size_t size, const char *filling)
{
    size_t rest = size - strlen(OPEN URL("a") CLOSE);
    str_append_text(s, OPEN URL("a"));
    append_repeat(s, filling, rest / strlen(filling));
    append_repeat(s, " ", rest % strlen(filling));
    str_append_text(s, CLOSE);
    assert_int_equal(s->len, size);
}

static void append_random(struct str *s, size_t times)
{
    unsigned state = 1;
    for (size_t i = 0; i < times; i++) {
        char line[80];
        state = state * 1103515245u + 12345u;
        int len = snprintf(line, sizeof line, "<!-- %08x %08x -->\n", state, state * 2654435761u);
        str_append(s, line, (size_t)len);
    }
}

static void test_bytes(void **state)
{
    for (size_t past = 0; past < 2; past++) {
        struct str s = STR_INIT, zipped = STR_INIT;
        append_sized(&s, SITEMAP_FILE_MAX_BYTES + past, "<!-- the quick brown fox -->\n");
        struct sitemap_file f = verify_str("bytes", &s);
        assert_int_equal(f.bytes, SITEMAP_FILE_MAX_BYTES);
        if (past)
            check_broken("bytes", &f, "file-too-large", 0, 0);
        else
            check_kind("bytes", &f, SITEMAP_FILE_URLSET);
        if (!past)
            continue;
        str_append_text(&s, OPEN);
        append_random(&s, SITEMAP_FILE_MAX_BYTES / 27 + 1);
        append_gzip(&zipped, s.data, s.len, 1);
        str_done(&s);
        f = verify_str("zipped", &zipped);
        check_broken("zipped", &f, "file-too-large", 0, 0);
    }
}

static void append_nested(struct str *s, unsigned depth)
{
    str_append_text(s, OPEN "\n");
    append_repeat(s, "<a>", depth - 1);
    append_repeat(s, "</a>", depth - 1);
    str_append_text(s, CLOSE);
}

static void test_depth(void **state)
{
    struct str s = STR_INIT;
    append_nested(&s, SITEMAP_FILE_MAX_DEPTH);
    struct sitemap_file f = verify_str("depth", &s);
    check_kind("depth", &f, SITEMAP_FILE_EMPTY);
    append_nested(&s, SITEMAP_FILE_MAX_DEPTH + 1);
    f = verify_str("depth", &s);
    check_broken("depth", &f, "nesting-too-deep", 2, 3 * (SITEMAP_FILE_MAX_DEPTH - 1) + 1);
}

static struct sitemap_file verify_around(const char *before, const char *filling, size_t times,
                                         const char *after)
{
    struct str s = STR_INIT;
    str_append_text(&s, before);
    append_repeat(&s, filling, times);
    str_append_text(&s, after);
    return verify_str(before, &s);
}

static void test_text(void **state)
{
    const size_t max = SITEMAP_FILE_MAX_TEXT;
    struct sitemap_file f = verify_around(OPEN "\n <a>  \n ", "x", max, " \n</a>" CLOSE);
    check_kind("text", &f, SITEMAP_FILE_EMPTY);
    f = verify_around(OPEN "\n <a>  \n ", "x", max + 1, "</a>" CLOSE);
    check_broken("text", &f, "text-too-long", 3, 2 + max);
    f = verify_around(OPEN "\n<a>", "x&#98;", max / 2, "\n z</a>" CLOSE);
    check_broken("entities", &f, "text-too-long", 3, 2);
    f = verify_around(OPEN "\n<a>x", "\n", 3 * max, "</a>" CLOSE);
    check_kind("white space", &f, SITEMAP_FILE_EMPTY);
    f = verify_around(OPEN "\n<!--", "x", max - 7, "-->" CLOSE);
    check_kind("comment", &f, SITEMAP_FILE_EMPTY);
    f = verify_around(OPEN "\n<!--", "x", max - 6, "-->" CLOSE);
    check_broken("comment", &f, "text-too-long", 2, 1);
    f = verify_around(OPEN "\n<a b='", "x", max - 9, "'/>" CLOSE);
    check_kind("attribute", &f, SITEMAP_FILE_EMPTY);
    f = verify_around(OPEN "\n<a b='", "x", max - 8, "'/>" CLOSE);
    check_broken("attribute", &f, "text-too-long", 2, 1);
    f = verify_around(OPEN "\n<!--", "x", 10 * max, "");
    check_broken("an endless comment", &f, "text-too-long", 2, 1);
    f = verify_around("<!--", "x", 10 * max, "--><html/>");
    check_kind("a comment before anything", &f, SITEMAP_FILE_OTHER);
    f = verify_around("\nhttps://example.com/", "x", max - 20, "\nhttps://example.com/");
    check_kind("line", &f, SITEMAP_FILE_TEXT);
    assert_int_equal(f.bad_urls, 1);
    f = verify_around("\nhttps://example.com/", "x", max - 19, "\nhttps://example.com/");
    check_broken("line", &f, "text-too-long", 2, 1);
    f = verify_around("https://example.com/\na\nb\n", "x", max + 1, "");
    check_kind("a line of prose", &f, SITEMAP_FILE_OTHER);
    f = verify_around("", " \n", 40000, "https://example.com/");
    check_kind("a late list", &f, SITEMAP_FILE_TEXT);
    f = verify_around("", " \n", 40000, DECL "<urlset/>");
    check_broken("a late declaration", &f, "malformed-xml", 40001, 1);
    f = verify_around("<!DOCTYPE x [", "<!ENTITY a 'b'>\n", 20000, "]>" OPEN CLOSE);
    check_kind("an endless doctype", &f, SITEMAP_FILE_OTHER);
}

static void check_gzip(const char *name, struct str *s, const char *code)
{
    struct sitemap_file f = verify_str(name, s);
    if (code)
        check_broken(name, &f, code, 0, 0);
    else
        check_kind(name, &f, SITEMAP_FILE_URLSET);
    assert_true(f.gzip);
}

static void test_gzip(void **state)
{
    static const char xml[] = DECL OPEN "\n" URL("a") "\n" CLOSE;
    struct str whole = STR_INIT;
    append_gzip(&whole, xml, sizeof xml - 1, 6);
    for (size_t len = 2; len < whole.len; len++) {
        struct str s = STR_INIT;
        str_append(&s, whole.data, len);
        check_gzip("cut", &s, "truncated");
    }
    for (size_t at = 1; at <= 8; at++) { /* the checksum and the length */
        struct str s = STR_INIT;
        str_append(&s, whole.data, whole.len);
        s.data[s.len - at] ^= 0x55;
        check_gzip("trailer", &s, "malformed-gzip");
    }
    struct str s = STR_INIT;
    str_append(&s, whole.data, whole.len);
    str_append_text(&s, "garbage");
    check_gzip("garbage behind", &s, "malformed-gzip");
    str_append(&s, whole.data, whole.len);
    str_append(&s, whole.data, 10);
    check_gzip("a second member cut", &s, "truncated");
    append_gzip(&s, "", 0, 6);
    check_gzip("nothing within", &s, "empty-file");
    append_gzip(&s, "body { color: red }", 19, 6);
    s.len -= 4;
    struct sitemap_file f = verify_str("css, cut", &s);
    check_kind("css, cut", &f, SITEMAP_FILE_OTHER);
    append_gzip(&s, whole.data, whole.len, 6);
    f = verify_str("gzip within gzip", &s);
    check_broken("gzip within gzip", &f, "packed-twice", 0, 0);
    str_done(&whole);
}

static void append_bomb(struct str *s, const char *begin, const char *filling, size_t bytes)
{
    struct str plain = STR_INIT;
    str_append_text(&plain, begin);
    append_repeat(&plain, filling, bytes / strlen(filling));
    append_gzip(s, plain.data, plain.len, 9);
    str_done(&plain);
}

static void test_gzip_bomb(void **state)
{
    struct str s = STR_INIT;
    append_bomb(&s, OPEN, " ", 3000000);
    check_gzip("white space", &s, "gzip-bomb");
    append_bomb(&s, OPEN "<!--",
                "-->"
                "<!--",
                3000000);
    check_gzip("comments", &s, "gzip-bomb");
    append_bomb(&s, "", "\n", 3000000);
    check_gzip("nothing else", &s, "gzip-bomb");
    append_bomb(&s, OPEN URL("a"), " ", 900000);
    struct sitemap_file f = verify_str("a small one", &s);
    check_broken("a small one", &f, "truncated", 1, 900104); /* of the XML: it is not closed */
}

/* In a child: with all its input in place, a few MiB more must do. */
static void check_memory(const char *name, struct str *s, enum sitemap_file_kind kind)
{
    struct rlimit limit;
    FILE *statm = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%lu", &pages), 1);
    fclose(statm);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        limit.rlim_cur = limit.rlim_max = pages * (rlim_t)sysconf(_SC_PAGESIZE) + 3 * 1024 * 1024;
        struct sitemap_file out;
        if (setrlimit(RLIMIT_AS, &limit) != 0)
            _exit(2);
        struct sitemap_verifier *v = sitemap_verifier_new(&(struct sitemap_expect){.now = NOW});
        if (v)
            sitemap_verifier_feed(v, s->data, s->len);
        _exit(v && sitemap_verifier_finish(v, &out) && out.kind == kind ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
        fail_msg("%s: status %d", name, status);
    str_done(s);
}

static void test_memory(void **state)
{
#ifdef SANITIZED
    skip();
#endif
    struct str s = STR_INIT;
    append_bomb(&s, OPEN, " ", 40000000);
    check_memory("gzip bomb", &s, SITEMAP_FILE_BROKEN);
    str_append_text(&s, OPEN "<a ");
    append_repeat(&s, "x", 20000000);
    check_memory("a long tag", &s, SITEMAP_FILE_BROKEN);
    str_append_text(&s, OPEN);
    append_repeat(&s, "<a>", 5000000);
    check_memory("nesting", &s, SITEMAP_FILE_BROKEN);
    str_append_text(&s, OPEN "<a>");
    append_repeat(&s, "text ", 5000000);
    check_memory("a long text", &s, SITEMAP_FILE_BROKEN);
    str_append_text(&s, "https://example.com/");
    append_repeat(&s, "x", 20000000);
    check_memory("a long line", &s, SITEMAP_FILE_BROKEN);
    str_append_text(&s, "<!DOCTYPE x [");
    for (unsigned i = 0; i < 1000000; i++)
        str_append_format(&s, "<!ENTITY a%u 'b'>", i);
    check_memory("entities", &s, SITEMAP_FILE_OTHER);
    str_append_text(&s, OPEN);
    for (unsigned i = 0; i < 49000; i++)
        str_append_format(&s, "<url><loc>https://example.com/%u</loc></url>", i);
    str_append_text(&s, CLOSE);
    check_memory("many URLs", &s, SITEMAP_FILE_URLSET);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls),   cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_depth),  cmocka_unit_test(test_text),
        cmocka_unit_test(test_gzip),   cmocka_unit_test(test_gzip_bomb),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
