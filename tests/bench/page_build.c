/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "db/catalogue.h"
#include "server/base/str.h"
#include "server/pages/gzip_page.h"
#include "server/pages/publisher.h"
#include "server/rules/limits.h"
#include "tests/bench/clock.h"

/* page_build FILE segments|whole LEVEL [ROUNDS [MEMORY]]: builds page 1 of the first index of a
 * catalogue, once unmeasured and ROUNDS times measured: `segments` as the server builds a cold
 * page, `whole` as a program without segments would, all entries rendered and one gzip stream with
 * zlib's memLevel MEMORY (8 by default). Prints one JSON object for each round: CPU time, time,
 * bytes. */

#define INDEX_ID    1
#define GZIP_WINDOW (15 + 16)

static size_t build_segments(struct catalogue_view *v, struct builder *b)
{
    struct page_record page;
    struct resource *made = NULL;
    struct page_changes changes;
    uint32_t rendered;

    if (catalogue_view_page(v, INDEX_ID, 1, &page) != CATALOGUE_OK ||
        builder_changes(v, &page, NULL, &changes) != CATALOGUE_OK ||
        builder_page(b, v, page.revision, &page, &changes, &made, &rendered) != CATALOGUE_OK)
        return 0;
    size_t len = made->gzip_len;
    resource_unref(made);
    return len;
}

/* Buffers are kept from one time to the next, as a good program would. */
static size_t build_whole(struct catalogue_view *v, z_stream *z)
{
    static struct str xml = STR_INIT;
    static unsigned char *out;
    static size_t size;

    str_clear(&xml);
    if (publish_render_page(v, INDEX_ID, 1, false, &xml) != CATALOGUE_OK || deflateReset(z) != Z_OK)
        return 0;
    size_t bound = deflateBound(z, xml.len);
    if (bound > size) {
        free(out);
        out = malloc(bound);
        size = out != NULL ? bound : 0;
    }
    if (out == NULL)
        return 0;
    z->next_in = (unsigned char *)xml.data;
    z->avail_in = (uInt)xml.len;
    z->next_out = out;
    z->avail_out = (uInt)bound;
    return deflate(z, Z_FINISH) == Z_STREAM_END ? z->total_out : 0;
}

static int measure(struct catalogue *c, int level, int segments, int rounds, int memory)
{
    struct builder *b = builder_new(level);
    z_stream z = {0};
    size_t made = b != NULL && deflateInit2(&z, level, Z_DEFLATED, GZIP_WINDOW, memory,
                                            Z_DEFAULT_STRATEGY) == Z_OK;

    for (int round = 0; made > 0 && round <= rounds; round++) {
        struct catalogue_view *v;
        double cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
        double wall = clock_ms(CLOCK_MONOTONIC);
        if (catalogue_view_begin(c, &v) != CATALOGUE_OK)
            break;
        made = segments ? build_segments(v, b) : build_whole(v, &z);
        catalogue_view_end(v);
        cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        wall = clock_ms(CLOCK_MONOTONIC) - wall;
        if (made > 0 && round > 0)
            printf("{\"cpu_ms\": %.3f, \"ms\": %.3f, \"bytes\": %zu}\n", cpu, wall, made);
    }
    deflateEnd(&z);
    builder_free(b);
    return made > 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct catalogue *c;
    char why[512] = "";

    if (argc < 4 || (strcmp(argv[2], "segments") != 0 && strcmp(argv[2], "whole") != 0)) {
        fprintf(stderr, "usage: page_build FILE segments|whole LEVEL [ROUNDS [MEMORY]]\n");
        return 2;
    }
    struct catalogue_options options = {.path = argv[1],
                                        .must_exist = true,
                                        .write_timeout_ms = 10000,
                                        .max_queued = 16,
                                        .shrink_percent = 30,
                                        .default_max_pages = LIMIT_SITE_PAGES};
    if (catalogue_open(&options, &c, why, sizeof why) != CATALOGUE_OK) {
        fprintf(stderr, "page_build: %s\n", why);
        return 1;
    }
    int result = measure(c, atoi(argv[3]), strcmp(argv[2], "segments") == 0,
                         argc > 4 ? atoi(argv[4]) : 1, argc > 5 ? atoi(argv[5]) : 8);
    catalogue_close(c);
    return result;
}
