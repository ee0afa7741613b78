#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "tests/bench/clock.h"
#include "tests/bench/file.h"

/* zlib_only FILE LEVEL [ROUNDS]: compresses FILE to gzip in one call, once unmeasured and ROUNDS
 * times measured, and prints one JSON object for each round: CPU time, time, bytes. */

#define GZIP_WINDOW (15 + 16)

/* Allocates what it needs and frees it again, as a program without a server would. 0: failed. */
static size_t compress_once(unsigned char *raw, size_t len, int level)
{
    z_stream z = {0};
    size_t made = 0;

    if (deflateInit2(&z, level, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return 0;
    size_t bound = deflateBound(&z, len);
    unsigned char *out = malloc(bound);
    if (out != NULL) {
        z.next_in = raw;
        z.avail_in = (uInt)len;
        z.next_out = out;
        z.avail_out = (uInt)bound;
        if (deflate(&z, Z_FINISH) == Z_STREAM_END)
            made = z.total_out;
    }
    free(out);
    deflateEnd(&z);
    return made;
}

int main(int argc, char **argv)
{
    size_t len = 0;
    unsigned char *raw = argc >= 3 ? read_whole(argv[1], &len) : NULL;
    int rounds = argc > 3 ? atoi(argv[3]) : 1;

    if (raw == NULL) {
        fprintf(stderr, "usage: zlib_only FILE LEVEL [ROUNDS]\n");
        return 2;
    }
    for (int round = 0; round <= rounds; round++) {
        double cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
        double wall = clock_ms(CLOCK_MONOTONIC);
        size_t made = compress_once(raw, len, atoi(argv[2]));
        cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        wall = clock_ms(CLOCK_MONOTONIC) - wall;
        if (made == 0)
            return 1;
        if (round > 0)
            printf("{\"cpu_ms\": %.3f, \"ms\": %.3f, \"bytes\": %zu}\n", cpu, wall, made);
    }
    free(raw);
    return 0;
}
