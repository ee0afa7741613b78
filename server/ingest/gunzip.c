#include "server/ingest/gunzip.h"

#include <stdlib.h>
#include <zlib.h>

#include "server/rules/plural.h"

#define OUT_BYTES        65536u
#define RATIO_FREE_BYTES 1048576u /* small bodies may be as repetitive as they like */
#define GZIP_WINDOW_BITS (15 + 16)

enum gunzip_state {
    BETWEEN, /* before a member */
    MEMBER,
    PADDING, /* zeros behind the last member, as tape archives have them (gzip(1) skips them) */
};

struct gunzip {
    struct core *core;
    gunzip_take *take;
    void *context;
    z_stream z;
    enum gunzip_state state;
    bool any; /* a member has ended */
    uint64_t in, out;
    unsigned char buffer[OUT_BYTES];
};

struct gunzip *gunzip_new(struct core *core, gunzip_take *take, void *context)
{
    struct gunzip *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    if (inflateInit2(&g->z, GZIP_WINDOW_BITS) != Z_OK) {
        free(g);
        return NULL;
    }
    g->core = core;
    g->take = take;
    g->context = context;
    return g;
}

static bool malformed(struct gunzip *g, const char *why)
{
    return core_fail(g->core, READER_MALFORMED, "malformed-gzip", 0, 0,
                     "gzip data is broken after %llu decoded %s: %s", (unsigned long long)g->out,
                     plural(g->out, "byte", "bytes"), why);
}

static bool judge_ratio(struct gunzip *g)
{
    uint32_t ratio = g->core->options.max_ratio;
    if (!ratio || g->out <= RATIO_FREE_BYTES || g->out / ratio <= g->in)
        return true;
    return core_fail(g->core, READER_TOO_LARGE, "gzip-bomb", 0, 0,
                     "%llu bytes of gzip grow to more than %lu times as many",
                     (unsigned long long)g->in, (unsigned long)ratio);
}

/* One call of inflate. Its output ends at a multiple of OUT_BYTES of the decoded stream at the
 * latest, and only there, with all before it taken, the ratio is judged: so the verdict does not
 * depend on how the input happened to be cut. */
static bool inflate_some(struct gunzip *g, bool *idle)
{
    size_t room = OUT_BYTES - (size_t)(g->out % OUT_BYTES);
    uInt before = g->z.avail_in;
    g->z.next_out = g->buffer;
    g->z.avail_out = (uInt)room;
    int result = inflate(&g->z, Z_NO_FLUSH);
    size_t produced = room - g->z.avail_out;
    g->in += before - g->z.avail_in;
    g->out += produced;
    *idle = produced == 0 && before == g->z.avail_in && result != Z_STREAM_END;
    if (produced > 0 && !g->take(g->context, (const char *)g->buffer, produced))
        return false;
    if (produced > 0 && g->out % OUT_BYTES == 0 && !judge_ratio(g))
        return false;
    switch (result) {
    case Z_OK:
    case Z_BUF_ERROR: /* no progress without more input */
        return true;
    case Z_STREAM_END:
        g->state = BETWEEN;
        g->any = true;
        return inflateReset(&g->z) == Z_OK || malformed(g, "cannot reset");
    case Z_MEM_ERROR:
        return core_no_memory(g->core);
    case Z_NEED_DICT:
        return malformed(g, "needs a dictionary");
    default:
        return malformed(g, g->z.msg ? g->z.msg : "data error");
    }
}

/* Skips zeros behind a member. False: something else follows them. */
static bool skip_padding(struct gunzip *g)
{
    while (g->z.avail_in > 0 && *g->z.next_in == 0) {
        g->z.next_in++;
        g->z.avail_in--;
        g->in++;
        g->state = PADDING;
    }
    return g->z.avail_in == 0 || g->state != PADDING ||
           malformed(g, "bytes that are no gzip follow");
}

static bool feed_part(struct gunzip *g, const unsigned char *bytes, uInt len)
{
    g->z.next_in = (z_const Bytef *)bytes;
    g->z.avail_in = len;
    /* Even with all input taken, zlib may hold output that had no room. */
    for (bool idle = false; !idle;) {
        if (g->state != MEMBER) {
            if (g->any && !skip_padding(g))
                return false;
            if (g->z.avail_in == 0)
                return true;
            g->state = MEMBER;
        }
        if (!inflate_some(g, &idle))
            return false;
    }
    return true;
}

bool gunzip_feed(struct gunzip *g, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    while (len > 0) {
        uInt part = len > OUT_BYTES ? OUT_BYTES : (uInt)len;
        if (!feed_part(g, at, part))
            return false;
        at += part;
        len -= part;
    }
    return true;
}

bool gunzip_finish(struct gunzip *g)
{
    if (g->state != MEMBER && g->any)
        return true;
    return core_fail(g->core, READER_MALFORMED, "truncated", 0, 0,
                     "the gzip data ends too early, after %llu decoded %s",
                     (unsigned long long)g->out, plural(g->out, "byte", "bytes"));
}

void gunzip_free(struct gunzip *g)
{
    if (!g)
        return;
    inflateEnd(&g->z);
    free(g);
}
