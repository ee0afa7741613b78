/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/str.h"
#include "server/input/sitemap_file.h"
#include "server/rules/host_map.h"
#include "tests/bench/clock.h"

/* map_parse URLS ROUNDS: checks a sitemap of URLS pages, without a host map and with one that
 * changes each of them. Prints one JSON object for each round: CPU times in ms. */

#define FROM  "https://cms.example.com"
#define TO    "https://www.example.com"
#define PIECE 16384u

static void make(struct str *out, unsigned urls)
{
    str_append_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset "
                         "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n");
    for (unsigned i = 0; i < urls; i++)
        str_append_format(out,
                          "<url>\n<loc>" FROM "/products/a-product-of-the-shop-%u.html</loc>\n"
                          "<lastmod>2026-10-%02uT08:09:10+00:00</lastmod>\n</url>\n",
                          i, 1 + i % 28);
    str_append_text(out, "</urlset>\n");
}

/* -1: it is not good. */
static double verify(const struct str *text, const struct host_map *map)
{
    struct url url;
    struct sitemap_file file;
    const char *own = map ? TO "/a.xml" : FROM "/a.xml";
    url_parse(own, strlen(own), &url, NULL);
    const struct sitemap_expect expect = {.now = 1800000000, .url = &url, .map = map};
    double began = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    struct sitemap_verifier *v = sitemap_verifier_new(&expect);
    for (size_t at = 0; v != NULL && at < text->len; at += PIECE)
        sitemap_verifier_feed(v, text->data + at, text->len - at < PIECE ? text->len - at : PIECE);
    bool good = v != NULL && sitemap_verifier_finish(v, &file) && sitemap_file_is_good(file.kind) &&
                file.remarks.count == 0;
    sitemap_verifier_free(v);
    return good ? clock_ms(CLOCK_PROCESS_CPUTIME_ID) - began : -1;
}

int main(int argc, char **argv)
{
    char why[128];
    struct str text = STR_INIT;
    struct host_map *map = host_map_new(FROM " " TO, why, sizeof why);
    if (argc != 3 || map == NULL) {
        fprintf(stderr, "usage: map_parse URLS ROUNDS\n");
        return 2;
    }
    make(&text, (unsigned)atoi(argv[1]));
    for (int round = 0; round <= atoi(argv[2]); round++) {
        double plain = verify(&text, NULL), mapped = verify(&text, map);
        if (plain < 0 || mapped < 0)
            return 1;
        if (round > 0)
            printf("{\"plain_ms\": %.3f, \"mapped_ms\": %.3f}\n", plain, mapped);
    }
    str_done(&text);
    host_map_free(map);
    return 0;
}
