/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The readers, the verifier of sitemap files, the spool, and the rules that allocate: where memory
 * runs out, that is reported, and what was handed on before is what would have been. */
#include "tests/unit/alloc/alloc.h"

#include <dirent.h>

#include "server/base/str.h"
#include "server/input/reader.h"
#include "server/input/sitemap_file.h"
#include "server/rules/http/query.h"
#include "tests/unit/lib/scratch.h"

#define NOW 1800000000

struct input {
    char *bytes;
    size_t len;
    enum reader_format format;
    _Alignas(struct sitemap_file) char whole[1 << 16];
    char now[1 << 16]; /* what was handed on: at first undisturbed; this time */
    size_t whole_len, now_len;
};

static bool note(struct input *in, const char *what, const char *text, uint64_t line)
{
    int len = snprintf(in->now + in->now_len, sizeof in->now - in->now_len, "%s %.60s %llu\n", what,
                       text, (unsigned long long)line);
    if ((size_t)len < sizeof in->now - in->now_len)
        in->now_len += (size_t)len;
    return true;
}

static bool on_entry(void *context, const struct entry *entry)
{
    return note(context, "entry", entry->loc, entry->line);
}

static bool on_reject(void *context, const struct rejection *rejection)
{
    return note(context, "reject", rule_code_word(rejection->code), rejection->line);
}

static bool read_input(void *context)
{
    struct input *in = context;
    struct reader_options options = {.format = in->format,
                                     .lenient = true,
                                     .allow_gzip = true,
                                     .allow_export_fields = true,
                                     .max_bytes = 1 << 20,
                                     .max_entries = 1000,
                                     .now = NOW};
    struct reader_sink sink = {.context = in, .entry = on_entry, .reject = on_reject};
    in->now_len = 0;
    struct reader *r = reader_new(&options, &sink);
    if (r == NULL)
        return false;
    enum reader_status status = READER_OK;
    for (size_t at = 0; at < in->len && status == READER_OK; at += 61)
        status = reader_feed(r, in->bytes + at, in->len - at < 61 ? in->len - at : 61);
    if (status == READER_OK)
        status = reader_finish(r);
    assert_int_equal(reader_error(r)->status, status);
    if (status == READER_NO_MEMORY)
        assert_string_equal(reader_error(r)->code, "no-memory");
    else
        note(in, "end", reader_error(r)->code, reader_error(r)->line);
    reader_free(r);
    if (in->whole_len == 0) { /* the first run */
        memcpy(in->whole, in->now, in->now_len);
        in->whole_len = in->now_len;
    }
    assert_true(in->now_len <= in->whole_len);
    if (memcmp(in->now, in->whole, in->now_len) != 0)
        fail_msg("got\n%.*swant\n%.*s", (int)in->now_len, in->now, (int)in->whole_len, in->whole);
    return status != READER_NO_MEMORY;
}

static bool verify_input(void *context)
{
    struct input *in = context;
    struct sitemap_file file = {.urls = 4711};
    struct sitemap_verifier *v = sitemap_verifier_new(&(struct sitemap_expect){.now = NOW});
    if (v == NULL)
        return false;
    for (size_t at = 0; at < in->len; at += 61)
        if (!sitemap_verifier_feed(v, in->bytes + at, in->len - at < 61 ? in->len - at : 61))
            break;
    bool good = sitemap_verifier_finish(v, &file);
    sitemap_verifier_free(v);
    if (!good) {
        assert_int_equal(file.urls, 4711);
        return false;
    }
    if (in->whole_len == 0) {
        memcpy(in->whole, &file, sizeof file);
        in->whole_len = sizeof file;
    }
    const struct sitemap_file *want = (const struct sitemap_file *)(const void *)in->whole;
    if (file.kind != want->kind)
        fail_msg("kind %d, not %d: %s: %s", file.kind, want->kind, file.code, file.detail);
    assert_int_equal(file.urls, want->urls);
    assert_memory_equal(file.hash, want->hash, sizeof file.hash);
    assert_string_equal(file.code, want->code);
    return true;
}

static void load(struct input *in, const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    in->bytes = malloc(1 << 16);
    in->len = fread(in->bytes, 1, 1 << 16, file);
    fclose(file);
    in->whole_len = 0;
}

/* Every file of the fuzzers' first corpus: each format, and each way to be broken. */
static void sweep_folder(const char *folder, enum reader_format format, bool (*run)(void *))
{
    static struct input in;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        load(&in, folder, e->d_name);
        in.format = format;
        if (in.len > 0 && in.len < 8192)
            alloc_sweep(e->d_name, run, &in);
        free(in.bytes);
    }
    closedir(dir);
}

static void test_readers(void **state)
{
    sweep_folder("tests/fuzz/corpus/fuzz_ingest_xml", READER_XML, read_input);
    sweep_folder("tests/fuzz/corpus/fuzz_ingest_json", READER_NDJSON, read_input);
    sweep_folder("tests/fuzz/corpus/fuzz_ingest_json", READER_JSON, read_input);
    sweep_folder("tests/fuzz/corpus/fuzz_ingest_gzip", READER_AUTO, read_input);
    sweep_folder("tests/fuzz/corpus/fuzz_ingest_auto", READER_AUTO, read_input);
}

static void test_verifier(void **state)
{
    sweep_folder("tests/fuzz/corpus/fuzz_sitemap_file", READER_AUTO, verify_input);
}

static bool query_once(void *context)
{
    (void)context;
    struct query q;
    enum query_status status = query_parse("index=%2Fsitemap_index.xml&limit=100&after=a%20b", &q);
    if (status != QUERY_OK) {
        assert_int_equal(status, QUERY_NO_MEMORY);
        return false;
    }
    assert_string_equal(query_value(&q, "after"), "a b");
    query_done(&q);
    return true;
}

static bool str_once(void *context)
{
    (void)context;
    struct str s = STR_INIT;
    for (int i = 0; i < 300; i++) {
        str_append_text(&s, "0123456789");
        str_append_format(&s, "%d,", i);
        str_append_json(&s, "\"\n", 2);
    }
    bool good = !s.failed;
    if (good)
        assert_true(s.len > 4000 && strlen(str_text(&s)) == s.len);
    str_done(&s);
    return good;
}

static void test_rules(void **state)
{
    alloc_sweep("query", query_once, NULL);
    alloc_sweep("str", str_once, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_readers),
        cmocka_unit_test(test_verifier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
