/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sitemap indexes as real sites publish them. They are not part of the repository: the test looks
 * for them beside it, or where SITEMAPD_SAMPLES says, and is skipped where they are not. */
#include <errno.h>

#include "tests/unit/input/check.h"

static const struct {
    const char *file;
    size_t entries;
    size_t strict_rejected; /* 0 where the lenient count is intended */
    size_t rejected;
    const char *code;
    rule_set remarks;
} files[] = {
    {"01-articulorum-2000-entries.xml", 2000, 0, 0, "ok", 0},
    {"02-594212-zara-gz.xml", 241, 0, 0, "ok", 0},
    {"03-nelsonjchen-233-entries.xml", 233, 0, 0, "ok", RULE_BIT(RULE_LOC_PADDED)},
    {"04-iish-vufind.xml", 121, 0, 0, "ok", RULE_BIT(RULE_LASTMOD_DATE_ONLY)},
    {"07-hoangvu12-next-sitemap.xml", 28, 0, 0, "ok", 0},
    {"08-antriksh-infoicon-yoast-w3tc.xml", 8, 0, 0, "ok", 0},
    {"12-tx2z-aioseo-cdata.xml", 9, 0, 0, "ok", 0},
    {"16-valenieksvladislavs-shopify.xml", 4, 0, 0, "ok", 0},
    {"17-1mangesh1-astro.xml", 1, 0, 0, "ok", 0},
    {"18-21ideas-org-hugo-multilingual.xml", 2, 0, 0, "ok", 0},
    {"20-fossasia-drupal-xmlsitemap.xml", 2, 0, 0, "ok", 0},
    {"22-soheilpaper-prestashop.xml", 3, 0, 0, "ok", 0},
    {"28-18978909244-google084.xml", 3, 0, 0, "ok",
     RULE_BIT(RULE_NAMESPACE) | RULE_BIT(RULE_LASTMOD_DATE_ONLY)},
    {"30-uhaciogullari-bom.xml", 0, 0, 2, "ok", 0},
    {"33-emurasoft-nested-hosts.xml", 3, 0, 0, "ok", 0},
    {"39-benbalter-extra-elements.xml", 2, 0, 0, "ok",
     RULE_BIT(RULE_EXTRA_ELEMENT) | RULE_BIT(RULE_LASTMOD_DATE_ONLY)},
    {"42-4what-empty-commented.xml", 0, 0, 0, "ok", 0},
    {"48-bart-turczynski-duplicate-invalid-lastmod.xml", 3, 1, 0, "ok",
     RULE_BIT(RULE_LASTMOD_INVALID)},
    {"50-crawler-commons-missing-loc.xml", 0, 0, 15, "ok", 0},
    {"55-crawler-commons-truncated.xml", 0, 0, 0, "truncated", 0},
    {"58-420tax-urlset.xml", 0, 0, 0, "urlset-not-index", 0},
    /* 120 whole entries stand before the cut. */
    {"60-594212-derived-cut-16000.xml", 120, 0, 0, "truncated", 0},
};

static struct str folder = STR_INIT;

static bool load(const char *file, struct str *out)
{
    struct str path = STR_INIT;
    char buffer[65536];
    size_t got;
    str_append_text(&path, str_text(&folder));
    str_append_char(&path, '/');
    str_append_text(&path, file);
    FILE *f = fopen(str_text(&path), "rb");
    str_done(&path);
    if (!f)
        return false;
    str_clear(out);
    while ((got = fread(buffer, 1, sizeof buffer, f)) > 0)
        str_append(out, buffer, got);
    fclose(f);
    return true;
}

static void test_files(void **state)
{
    struct str input = STR_INIT;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (!load(files[i].file, &input))
            fail_msg("%s: %s", files[i].file, strerror(errno));
        for (int lenient = 1; lenient >= 0; lenient--) {
            struct reader_options options = test_options(READER_AUTO);
            struct transcript t = {.stop_at = 0};
            options.lenient = lenient;
            check_cuts(files[i].file, &options, str_text(&input), input.len, &t);
            size_t moved = lenient ? 0 : files[i].strict_rejected;
            rule_set remarks = moved ? 0 : files[i].remarks;
            if (t.entries != files[i].entries - moved ||
                t.rejections != files[i].rejected + moved || t.remarks != remarks ||
                strcmp(t.code, files[i].code) != 0)
                fail_msg("%s, lenient %d: %zu entries, %zu rejections, %s", files[i].file, lenient,
                         t.entries, t.rejections, str_text(&t.text));
            transcript_done(&t);
        }
    }
    str_done(&input);
}

int main(void)
{
    const char *shared = getenv("SITEMAPD_SAMPLES");
    if (shared) {
        str_append_text(&folder, shared);
    } else {
        /* .../tests/unit/input/test_reader_real.c, back to the folder that holds the repository */
        str_append_text(&folder, __FILE__);
        for (int up = 0; up < 4; up++) {
            char *slash = strrchr(folder.data, '/');
            folder.len = slash ? (size_t)(slash - folder.data) : 0;
            folder.data[folder.len] = '\0';
        }
        str_append_text(&folder, folder.len > 0 ? "/../shared" : "../shared");
    }
    str_append_text(&folder, "/data/indexes");
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files)};
    struct str manifest = STR_INIT;
    int failed = 77; /* CTest: skipped */
    if (load("MANIFEST.tsv", &manifest))
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    else
        fprintf(stderr, "skipped: there is no %s\n", str_text(&folder));
    str_done(&manifest);
    str_done(&folder);
    return failed;
}
