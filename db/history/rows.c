#include "db/history/rows.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "server/rules/limits.h"

/* ---- a part */

void history_part_clear(struct history_part *part)
{
    part->count = 0;
    str_clear(&part->text);
    if (part->by_loc.slots)
        memset(part->by_loc.slots, 0, part->by_loc.capacity * sizeof *part->by_loc.slots);
    part->by_loc.count = 0;
    part->failed = false;
}

void history_part_done(struct history_part *part)
{
    free(part->rows);
    str_done(&part->text);
    map_done(&part->by_loc);
    memset(part, 0, sizeof *part);
}

struct history_text history_part_keep(struct history_part *part, const char *text, size_t len)
{
    struct history_text kept = {(uint32_t)part->text.len, (uint32_t)len};
    if (!text)
        return HISTORY_NO_TEXT;
    str_append(&part->text, text, len);
    str_append_char(&part->text, '\0');
    part->failed |= part->text.failed;
    return kept;
}

/* Eight bytes a step: of each loc of a list it is made once, by the writer. Part of the format. */
static uint64_t hash_loc(const char *loc, size_t len)
{
    uint64_t hash = 0x9e3779b97f4a7c15u ^ len;
    while (len > 0) {
        size_t step = len < 8 ? len : 8;
        uint64_t word = 0;
        for (size_t i = 0; i < step; i++)
            word |= (uint64_t)(unsigned char)loc[i] << (i * 8);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
        loc += step;
        len -= step;
    }
    hash *= 0xc4ceb9fe1a85ec53u;
    return hash ^ hash >> 29;
}

static bool grow(struct history_part *part)
{
    uint32_t wanted = part->capacity ? part->capacity * 2 : 16;
    if (part->count < part->capacity)
        return true;
    struct history_row *rows = reallocarray(part->rows, wanted, sizeof *rows);
    if (!rows)
        return false;
    part->rows = rows;
    part->capacity = wanted;
    return true;
}

struct history_row *history_part_row(struct history_part *part, int64_t site, const char *loc,
                                     size_t len, bool *fresh)
{
    uint32_t hash = (uint32_t)(hash_loc(loc, len) >> 32), at;
    *fresh = false;
    for (struct map_probe p = map_probe(&part->by_loc, hash); map_next(&p, &at);) {
        struct history_row *row = &part->rows[at];
        if (row->site == site && row->loc.len == len &&
            memcmp(part->text.data + row->loc.at, loc, len) == 0)
            return row;
    }
    if (!grow(part) || !map_add(&part->by_loc, hash, part->count)) {
        part->failed = true;
        return NULL;
    }
    struct history_row *row = &part->rows[part->count];
    *row = (struct history_row){.site = site, .loc = history_part_keep(part, loc, len)};
    if (part->failed)
        return NULL;
    part->count++;
    *fresh = true;
    return row;
}

static bool same_text(const struct history_part *part, struct history_text a, struct history_text b)
{
    if (a.at == UINT32_MAX || b.at == UINT32_MAX)
        return a.at == b.at;
    return a.len == b.len && memcmp(part->text.data + a.at, part->text.data + b.at, a.len) == 0;
}

static bool is_same_image(const struct history_part *part, const struct history_image *a,
                          const struct history_image *b)
{
    return a->address == b->address && a->source == b->source && a->serial == b->serial &&
           a->registered_at == b->registered_at && a->changed_at == b->changed_at &&
           same_text(part, a->lastmod, b->lastmod) && same_text(part, a->digest, b->digest);
}

bool history_row_is_idle(const struct history_part *part, const struct history_row *row)
{
    if (row->has_before != row->has_after)
        return false;
    return !row->has_before || is_same_image(part, &row->before, &row->after);
}

/* ---- packing */

enum row_flag {
    ROW_BEFORE = 1,
    ROW_AFTER = 2,
    ROW_SAME_SITE = 4, /* as the row before */
};

/* What of an image stands behind its flags; the rest is as in the image before it. */
enum image_flag {
    IMAGE_ADDRESS = 1,
    IMAGE_SOURCE = 2,
    IMAGE_SERIAL = 4,
    IMAGE_REGISTERED = 8,
    IMAGE_CHANGED = 16,
    IMAGE_LASTMOD = 32,
    IMAGE_DIGEST = 64,
};

struct packer {
    const struct history_part *part;
    char *out; /* where there is room for all that is still to come (packed_bound) */
    int64_t site;
    struct history_text loc;
    struct history_image last;
};

#define NUMBER_MAX_BYTES 10u
/* Beside its texts: two bytes of flags each and, of both images, five numbers and the two of each
 * text; the site; those of the loc. */
#define ROW_MAX_BYTES (3 + NUMBER_MAX_BYTES * (1 + 2 + 2 * (5 + 2 + 2)))

static size_t packed_bound(const struct history_part *part)
{
    size_t bytes = part->count * (size_t)ROW_MAX_BYTES;
    for (uint32_t i = 0; i < part->count; i++) {
        const struct history_row *row = &part->rows[i];
        bytes += (size_t)row->loc.len + row->before.lastmod.len + row->before.digest.len +
                 row->after.lastmod.len + row->after.digest.len;
    }
    return bytes;
}

static void put_number(struct packer *p, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *p->out++ = (char)(value | 0x80);
    *p->out++ = (char)value;
}

/* Small numbers of either sign are short. */
static void put_step(struct packer *p, int64_t from, int64_t to)
{
    int64_t step = (int64_t)((uint64_t)to - (uint64_t)from);
    put_number(p, (uint64_t)step << 1 ^ (uint64_t)(step >> 63));
}

static size_t shared_start(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t most = a_len < b_len ? a_len : b_len, len = 0;
    while (len < most && a[len] == b[len])
        len++;
    return len;
}

/* 0: none; else the length of the rest + 1, how much it shares with `last`, and the rest. */
static void put_text(struct packer *p, struct history_text last, struct history_text text)
{
    const char *texts = p->part->text.data;
    if (text.at == UINT32_MAX) {
        put_number(p, 0);
        return;
    }
    size_t shared = last.at == UINT32_MAX
                        ? 0
                        : shared_start(texts + last.at, last.len, texts + text.at, text.len);
    put_number(p, text.len - shared + 1);
    put_number(p, shared);
    memcpy(p->out, texts + text.at + shared, text.len - shared);
    p->out += text.len - shared;
}

static void put_image(struct packer *p, const struct history_image *image)
{
    const struct history_image *last = &p->last;
    unsigned flags = 0;
    flags |= image->address != last->address ? IMAGE_ADDRESS : 0u;
    flags |= image->source != last->source ? IMAGE_SOURCE : 0u;
    flags |= image->serial != last->serial ? IMAGE_SERIAL : 0u;
    flags |= image->registered_at != last->registered_at ? IMAGE_REGISTERED : 0u;
    flags |= image->changed_at != last->changed_at ? IMAGE_CHANGED : 0u;
    flags |= !same_text(p->part, image->lastmod, last->lastmod) ? IMAGE_LASTMOD : 0u;
    flags |= !same_text(p->part, image->digest, last->digest) ? IMAGE_DIGEST : 0u;
    *p->out++ = (char)flags;
    if (flags & IMAGE_ADDRESS)
        put_step(p, last->address, image->address);
    if (flags & IMAGE_SOURCE)
        put_step(p, last->source, image->source);
    if (flags & IMAGE_SERIAL)
        put_step(p, last->serial, image->serial);
    if (flags & IMAGE_REGISTERED)
        put_step(p, last->registered_at, image->registered_at);
    if (flags & IMAGE_CHANGED)
        put_step(p, last->changed_at, image->changed_at);
    if (flags & IMAGE_LASTMOD)
        put_text(p, last->lastmod, image->lastmod);
    if (flags & IMAGE_DIGEST)
        put_text(p, last->digest, image->digest);
    p->last = *image;
}

static void put_row(struct packer *p, const struct history_row *row)
{
    unsigned flags = (row->has_before ? ROW_BEFORE : 0u) | (row->has_after ? ROW_AFTER : 0u) |
                     (row->site == p->site ? ROW_SAME_SITE : 0u);
    *p->out++ = (char)flags;
    if (row->site != p->site)
        put_step(p, p->site, row->site);
    put_text(p, p->loc, row->loc);
    if (row->has_before)
        put_image(p, &row->before);
    if (row->has_after)
        put_image(p, &row->after);
    p->site = row->site;
    p->loc = row->loc;
}

static void start_image(struct history_image *last)
{
    memset(last, 0, sizeof *last);
    last->lastmod = last->digest = HISTORY_NO_TEXT;
}

/* Appends the rows as they are. */
static bool put_rows(const struct history_part *part, struct str *out)
{
    struct packer p = {.part = part};
    if (!str_reserve(out, packed_bound(part)))
        return false;
    p.out = out->data + out->len;
    p.loc = HISTORY_NO_TEXT;
    start_image(&p.last);
    for (uint32_t i = 0; i < part->count; i++)
        if (!history_row_is_idle(part, &part->rows[i]))
            put_row(&p, &part->rows[i]);
    out->len = (size_t)(p.out - out->data);
    out->data[out->len] = '\0';
    return true;
}

#define FORM_PLAIN    '\0'
#define FORM_DEFLATED '\1'
#define HEAD_BYTES    5u

static bool deflate_whole(const struct str *plain, struct str *out)
{
    uLongf bound = compressBound((uLong)plain->len);
    if (!str_reserve(out, bound) ||
        compress2((Bytef *)out->data + out->len, &bound, (const Bytef *)plain->data,
                  (uLong)plain->len, Z_BEST_SPEED) != Z_OK)
        return false;
    out->len += bound;
    out->data[out->len] = '\0';
    return true;
}

bool history_part_pack(const struct history_part *part, struct str *out)
{
    struct str plain = STR_INIT;
    if (part->count <= HISTORY_INLINE_ROWS) {
        str_append_char(out, FORM_PLAIN);
        return put_rows(part, out) && !out->failed;
    }
    bool done = put_rows(part, &plain);
    char head[HEAD_BYTES] = {FORM_DEFLATED};
    for (size_t i = 0; i < 4; i++)
        head[1 + i] = (char)(plain.len >> (i * 8));
    str_append(out, head, sizeof head);
    done = done && !out->failed && deflate_whole(&plain, out);
    str_done(&plain);
    return done;
}

/* ---- unpacking */

struct unpacker {
    struct history_part *part;
    const unsigned char *at, *end;
    bool broken;
    int64_t site;
    struct history_text loc;
    struct history_image last;
};

static uint64_t take_number(struct unpacker *u)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (u->at == u->end)
            break;
        unsigned char byte = *u->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    u->broken = true;
    return 0;
}

static int64_t take_step(struct unpacker *u, int64_t from)
{
    uint64_t zigzag = take_number(u);
    uint64_t step = zigzag >> 1 ^ (0 - (zigzag & 1));
    return (int64_t)((uint64_t)from + step);
}

static const char *take_bytes(struct unpacker *u, uint64_t len)
{
    const char *bytes = (const char *)u->at;
    if (u->broken || len > (uint64_t)(u->end - u->at)) {
        u->broken = true;
        return NULL;
    }
    u->at += len;
    return bytes;
}

static struct history_text take_text(struct unpacker *u, struct history_text last)
{
    char text[LOC_MAX_CHARS];
    uint64_t rest = take_number(u);
    if (rest-- == 0)
        return HISTORY_NO_TEXT;
    uint64_t shared = take_number(u);
    const char *bytes = take_bytes(u, rest);
    if (!bytes || shared > last.len || shared + rest > sizeof text) {
        u->broken = true;
        return HISTORY_NO_TEXT;
    }
    /* Copied first: what is kept may move the text that it is taken from. */
    if (shared > 0)
        memcpy(text, u->part->text.data + last.at, (size_t)shared);
    memcpy(text + shared, bytes, (size_t)rest);
    return history_part_keep(u->part, text, (size_t)(shared + rest));
}

static unsigned take_flags(struct unpacker *u)
{
    const char *byte = take_bytes(u, 1);
    return byte ? (unsigned char)*byte : 0;
}

static struct history_image take_image(struct unpacker *u)
{
    struct history_image *last = &u->last;
    unsigned flags = take_flags(u);
    if (flags & IMAGE_ADDRESS)
        last->address = take_step(u, last->address);
    if (flags & IMAGE_SOURCE)
        last->source = take_step(u, last->source);
    if (flags & IMAGE_SERIAL)
        last->serial = take_step(u, last->serial);
    if (flags & IMAGE_REGISTERED)
        last->registered_at = take_step(u, last->registered_at);
    if (flags & IMAGE_CHANGED)
        last->changed_at = take_step(u, last->changed_at);
    if (flags & IMAGE_LASTMOD)
        last->lastmod = take_text(u, last->lastmod);
    if (flags & IMAGE_DIGEST)
        last->digest = take_text(u, last->digest);
    return *last;
}

static bool take_row(struct unpacker *u)
{
    unsigned flags = take_flags(u);
    if (!(flags & ROW_SAME_SITE))
        u->site = take_step(u, u->site);
    u->loc = take_text(u, u->loc);
    struct history_row row = {.site = u->site,
                              .loc = u->loc,
                              .has_before = (flags & ROW_BEFORE) != 0,
                              .has_after = (flags & ROW_AFTER) != 0};
    u->broken |= row.loc.at == UINT32_MAX;
    if (row.has_before)
        row.before = take_image(u);
    if (row.has_after)
        row.after = take_image(u);
    if (!u->broken && !grow(u->part))
        u->part->failed = true;
    if (u->broken || u->part->failed)
        return false;
    u->part->rows[u->part->count++] = row;
    return true;
}

static bool take_rows(struct history_part *part, const unsigned char *bytes, size_t len)
{
    struct unpacker u = {.part = part, .at = bytes, .end = bytes + len};
    u.loc = HISTORY_NO_TEXT;
    start_image(&u.last);
    while (u.at < u.end)
        if (!take_row(&u))
            return false;
    return true;
}

/* More than a part of the longest locs has, before and after. */
#define PLAIN_MAX_BYTES (64u << 20)

bool history_part_unpack(struct history_part *part, const void *bytes, size_t len)
{
    const unsigned char *from = bytes;
    if (len < 1 || (from[0] != FORM_PLAIN && from[0] != FORM_DEFLATED))
        return false;
    if (from[0] == FORM_PLAIN)
        return take_rows(part, from + 1, len - 1);
    if (len < HEAD_BYTES)
        return false;
    uLong plain_len = 0;
    for (size_t i = 0; i < 4; i++)
        plain_len |= (uLong)from[1 + i] << (i * 8);
    if (plain_len > PLAIN_MAX_BYTES)
        return false;
    unsigned char *plain = malloc(plain_len + 1);
    uLongf got = plain_len;
    part->failed = plain == NULL;
    bool done = plain &&
                uncompress(plain, &got, from + HEAD_BYTES, (uLong)(len - HEAD_BYTES)) == Z_OK &&
                got == plain_len && take_rows(part, plain, plain_len);
    free(plain);
    return done;
}

/* ---- the filter: 16 bits a loc, of which six are set, so that one loc in a thousand that is not
 * there seems to be */

#define FILTER_BITS_A_LOC 16u
#define FILTER_PROBES     6u

static size_t filter_bytes(uint32_t count)
{
    size_t bytes = 16;
    while (bytes * 8 < (size_t)count * FILTER_BITS_A_LOC)
        bytes *= 2;
    return bytes;
}

static size_t filter_bit(uint64_t hash, unsigned probe, size_t bytes)
{
    uint32_t first = (uint32_t)hash, step = (uint32_t)(hash >> 32) | 1u;
    return (first + probe * step) & (bytes * 8 - 1);
}

bool history_part_filter(const struct history_part *part, struct str *out)
{
    size_t bytes = filter_bytes(part->count);
    if (!str_reserve(out, bytes))
        return false;
    unsigned char *filter = (unsigned char *)out->data + out->len;
    memset(filter, 0, bytes + 1);
    for (uint32_t i = 0; i < part->count; i++) {
        const struct history_row *row = &part->rows[i];
        uint64_t hash = hash_loc(part->text.data + row->loc.at, row->loc.len);
        for (unsigned probe = 0; probe < FILTER_PROBES; probe++) {
            size_t bit = filter_bit(hash, probe, bytes);
            filter[bit / 8] |= (unsigned char)(1u << bit % 8);
        }
    }
    out->len += bytes;
    return true;
}

bool history_filter_has(const void *filter, size_t filter_len, const char *loc, size_t len)
{
    const unsigned char *bits = filter;
    uint64_t hash = hash_loc(loc, len);
    if (filter_len == 0 || (filter_len & (filter_len - 1)) != 0)
        return true;
    for (unsigned probe = 0; probe < FILTER_PROBES; probe++) {
        size_t bit = filter_bit(hash, probe, filter_len);
        if (!(bits[bit / 8] & 1u << bit % 8))
            return false;
    }
    return true;
}
