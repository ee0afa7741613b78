/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sitemap files: whatever arrives, and in whatever pieces, one and the same verdict, within its
 * own terms; and gzip changes nothing of it. */
#include <zlib.h>

#include "server/input/sitemap_file.h"
#include "tests/fuzz/require.h"

#define NOW 1800000000

/* Pieces of 1 to `most` bytes, by `seed`; 0: whole. */
static struct sitemap_file verify(const uint8_t *data, size_t size, unsigned most, unsigned seed)
{
    struct sitemap_file out;
    struct url own;
    static const char loc[] = "https://example.com/maps/a.xml";
    static const char *const hosts[] = {"cdn.example.com"};
    REQUIRE(url_parse(loc, sizeof loc - 1, &own, NULL) == RULE_OK);
    struct sitemap_verifier *v = sitemap_verifier_new(
        &(struct sitemap_expect){.now = NOW, .url = &own, .hosts = hosts, .host_count = 1});
    REQUIRE(v != NULL);
    for (size_t at = 0; at < size;) {
        seed = seed * 1103515245u + 12345u;
        size_t part = most > 0 ? 1 + (seed >> 16) % most : size;
        if (part > size - at)
            part = size - at;
        if (!sitemap_verifier_feed(v, data + at, part)) {
            REQUIRE(!sitemap_verifier_feed(v, data, size));
            break;
        }
        at += part;
    }
    REQUIRE(sitemap_verifier_finish(v, &out));
    sitemap_verifier_free(v);
    return out;
}

static void require_sense(const struct sitemap_file *f)
{
    bool counts = sitemap_file_is_good(f->kind);
    bool hashed = counts || f->kind == SITEMAP_FILE_EMPTY;
    REQUIRE(f->kind <= SITEMAP_FILE_BROKEN);
    REQUIRE((f->urls > 0) == counts && f->bad_urls <= f->urls);
    REQUIRE(f->urls <= SITEMAP_FILE_MAX_URLS && f->bytes <= SITEMAP_FILE_MAX_BYTES);
    REQUIRE((f->hash[0] != 0) == hashed && (f->hash[1] != 0) == hashed);
    REQUIRE(!f->one_lastmod || (f->urls > 1 && f->newest_lastmod[0] != '\0'));
    REQUIRE(strlen(f->newest_lastmod) <= LASTMOD_MAX_CHARS);
    REQUIRE((f->code[0] == '\0') == counts && (f->detail[0] == '\0') == counts);
    REQUIRE(sitemap_file_has_code(f->code) != counts && (!f->stamp || f->one_lastmod));
    REQUIRE((f->line == 0) == (f->column == 0));
    REQUIRE(f->line <= f->bytes + 1 && f->column <= f->bytes + 1);
    char text[SITEMAP_REMARKS_TEXT], again[SITEMAP_REMARKS_TEXT], told[SITEMAP_REMARK_SENTENCE];
    struct sitemap_remarks read;
    sitemap_remarks_write(&f->remarks, text);
    sitemap_remarks_read(text, &read);
    sitemap_remarks_write(&read, again);
    REQUIRE(strcmp(text, again) == 0 && read.count == f->remarks.count);
    for (size_t i = 0; i < f->remarks.count; i++) {
        sitemap_remark_report(&f->remarks.at[i], told);
        REQUIRE(f->remarks.at[i].count > 0 && f->remarks.at[i].lines[0] <= f->bytes + 1);
        REQUIRE(strlen(told) < sizeof told - 1);
    }
}

static void require_same(const struct sitemap_file *a, const struct sitemap_file *b)
{
    REQUIRE(a->kind == b->kind && strcmp(a->code, b->code) == 0);
    REQUIRE(a->line == b->line && a->column == b->column);
    REQUIRE(strcmp(a->detail, b->detail) == 0);
    REQUIRE(a->urls == b->urls && a->bad_urls == b->bad_urls && a->bytes == b->bytes);
    REQUIRE(a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1]);
    REQUIRE(strcmp(a->newest_lastmod, b->newest_lastmod) == 0);
    REQUIRE(a->one_lastmod == b->one_lastmod);
    char told[2][SITEMAP_REMARKS_TEXT];
    sitemap_remarks_write(&a->remarks, told[0]);
    sitemap_remarks_write(&b->remarks, told[1]);
    REQUIRE(strcmp(told[0], told[1]) == 0);
}

static struct sitemap_file verify_zipped(const uint8_t *data, size_t size)
{
    uint8_t *zipped;
    size_t room;
    z_stream z = {.next_in = (z_const Bytef *)data, .avail_in = (uInt)size};
    REQUIRE(deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    room = deflateBound(&z, size) + 64;
    zipped = malloc(room);
    REQUIRE(zipped != NULL);
    z.next_out = zipped;
    z.avail_out = (uInt)room;
    REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
    room -= z.avail_out;
    deflateEnd(&z);
    struct sitemap_file f = verify(zipped, room, 0, 0);
    free(zipped);
    return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sitemap_file whole = verify(data, size, 0, 0);
    struct sitemap_file bytes = verify(data, size, 1, 0);
    struct sitemap_file pieces = verify(data, size, 1 + (unsigned)(size / 3), (unsigned)size);
    require_sense(&whole);
    require_same(&whole, &bytes);
    require_same(&whole, &pieces);
    REQUIRE(whole.gzip == bytes.gzip && whole.gzip == pieces.gzip);
    if (!whole.gzip) {
        struct sitemap_file zipped = verify_zipped(data, size);
        REQUIRE(zipped.gzip);
        require_same(&whole, &zipped);
    }
    return 0;
}
