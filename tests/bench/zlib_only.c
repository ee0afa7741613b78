/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "tests/bench/clock.h"
#include "tests/bench/file.h"

/* zlib_only FILE LEVEL [ROUNDS [MEMORY]]: compresses FILE to gzip in one call, once unmeasured and
 * ROUNDS times measured, and prints one JSON object for each round: CPU time, time, bytes. MEMORY
 * is zlib's memLevel (8 by default). The stream and the buffer are kept between rounds, so that
 * what is measured is zlib and no page fault. */

#define GZIP_WINDOW (15 + 16)

/* 0: failed. */
static size_t compress_once(z_stream *z, unsigned char *raw, size_t len, unsigned char *out,
                            size_t bound)
{
    if (deflateReset(z) != Z_OK)
        return 0;
    z->next_in = raw;
    z->avail_in = (uInt)len;
    z->next_out = out;
    z->avail_out = (uInt)bound;
    return deflate(z, Z_FINISH) == Z_STREAM_END ? z->total_out : 0;
}

int main(int argc, char **argv)
{
    size_t len = 0;
    unsigned char *raw = argc >= 3 ? read_whole(argv[1], &len) : NULL;
    int rounds = argc > 3 ? atoi(argv[3]) : 1;
    int memory = argc > 4 ? atoi(argv[4]) : 8;
    z_stream z = {0};

    if (raw == NULL || deflateInit2(&z, atoi(argv[2]), Z_DEFLATED, GZIP_WINDOW, memory,
                                    Z_DEFAULT_STRATEGY) != Z_OK) {
        fprintf(stderr, "usage: zlib_only FILE LEVEL [ROUNDS [MEMORY]]\n");
        return 2;
    }
    size_t bound = deflateBound(&z, len);
    unsigned char *out = malloc(bound);
    if (out == NULL)
        return 1;
    for (int round = 0; round <= rounds; round++) {
        double cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
        double wall = clock_ms(CLOCK_MONOTONIC);
        size_t made = compress_once(&z, raw, len, out, bound);
        cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        wall = clock_ms(CLOCK_MONOTONIC) - wall;
        if (made == 0)
            return 1;
        if (round > 0)
            printf("{\"cpu_ms\": %.3f, \"ms\": %.3f, \"bytes\": %zu}\n", cpu, wall, made);
    }
    deflateEnd(&z);
    free(out);
    free(raw);
    return 0;
}
