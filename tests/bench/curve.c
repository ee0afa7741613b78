/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tests/bench/clock.h"
#include "tests/bench/file.h"

/* curve FILE ENTRIES: what the compression level and the size of a segment cost and save. Cuts the
 * page in FILE (XML of so many entries) as the publisher does, deflates each piece on its own up to
 * a flush, and prints a table: bytes and CPU time of the whole page, and of one segment, which
 * is what one registration waits for. Medians of a few rounds. */

#define ROUNDS   5
#define ENTRY_TO "</sitemap>"

static const int levels[] = {1, 3, 4, 5, 6, 7, 9};
static const unsigned segments[] = {125, 250, 500, 1000, 2500, 50000};

struct cost {
    size_t bytes;
    double ms;
};

static int by_ms(const void *a, const void *b)
{
    const struct cost *x = a, *y = b;
    return (x->ms > y->ms) - (x->ms < y->ms);
}

/* The end of the `count`th entry from `at`. */
static unsigned char *skip(unsigned char *at, const unsigned char *end, unsigned count)
{
    for (unsigned i = 0; i < count && at < end; i++) {
        unsigned char *next = memmem(at, (size_t)(end - at), ENTRY_TO, strlen(ENTRY_TO));
        if (next == NULL)
            return at + (end - at);
        at = next + strlen(ENTRY_TO);
    }
    return at;
}

static struct cost measure(unsigned char *raw, size_t len, int level, unsigned entries,
                           unsigned char *out, size_t out_size)
{
    struct cost costs[ROUNDS];

    for (int round = 0; round < ROUNDS; round++) {
        z_stream z = {0};
        size_t made = 0;
        double spent = 0;
        if (deflateInit2(&z, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
            exit(1);
        for (unsigned char *at = raw; at < raw + len;) {
            unsigned char *to = skip(at, raw + len, entries);
            double began = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
            deflateReset(&z);
            z.next_in = at;
            z.avail_in = (uInt)(to - at);
            z.next_out = out;
            z.avail_out = (uInt)out_size;
            if (deflate(&z, Z_SYNC_FLUSH) != Z_OK)
                exit(1);
            spent += clock_ms(CLOCK_PROCESS_CPUTIME_ID) - began;
            made += z.total_out;
            at = to;
        }
        deflateEnd(&z);
        costs[round] = (struct cost){made, spent};
    }
    qsort(costs, ROUNDS, sizeof *costs, by_ms);
    return costs[ROUNDS / 2];
}

int main(int argc, char **argv)
{
    size_t len = 0;
    unsigned char *raw = argc == 3 ? read_whole(argv[1], &len) : NULL;

    if (raw == NULL) {
        fprintf(stderr, "usage: curve FILE ENTRIES\n");
        return 2;
    }
    size_t out_size = len + len / 100 + 4096;
    unsigned char *out = malloc(out_size);
    if (out == NULL)
        return 1;
    double entries = atof(argv[2]);
    size_t one_shot = measure(raw, len, 6, 50000, out, out_size).bytes;
    printf(
        "| level | entries in a segment | bytes | beside level 6 in one piece | CPU, page | CPU, "
        "segment |\n| ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (size_t l = 0; l < sizeof levels / sizeof levels[0]; l++) {
        for (size_t s = 0; s < sizeof segments / sizeof segments[0]; s++) {
            struct cost c = measure(raw, len, levels[l], segments[s], out, out_size);
            printf("| %d | %u | %zu | %.3f | %.1f ms | %.2f ms |\n", levels[l], segments[s],
                   c.bytes, (double)c.bytes / (double)one_shot, c.ms, c.ms * segments[s] / entries);
        }
    }
    free(out);
    free(raw);
    return 0;
}
