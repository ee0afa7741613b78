/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Packs and unpacks the rows of a change (the format is in rows.h). */
#include "db/history/rows.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "db/read/row.h"
#include "server/rules/limits.h"

/* ---- a part */

void history_part_clear(struct history_part *part)
{
    part->count = 0;
    str_clear(&part->text);
    if (part->by_loc.count > 0)
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
    struct str *all = &part->text;
    struct history_text kept = {(uint32_t)all->len, (uint32_t)len};
    if (text == NULL)
        return HISTORY_NO_TEXT;
    if (!str_reserve(all, len + 1)) {
        part->failed = true;
        return HISTORY_NO_TEXT;
    }
    memcpy(all->data + all->len, text, len);
    all->data[all->len + len] = '\0';
    all->len += len + 1;
    return kept;
}

/* Hashes eight bytes at a time, since the writer hashes each loc of a list. Part of the format. */
static uint64_t hash_word(uint64_t hash, const char *bytes, size_t count)
{
    uint64_t word = 0;
    memcpy(&word, bytes, count);
    hash = (hash ^ le64toh(word)) * 0xff51afd7ed558ccdu;
    return hash ^ hash >> 32;
}

uint64_t history_loc_hash(const char *loc, size_t len)
{
    uint64_t hash = 0x9e3779b97f4a7c15u ^ len;
    for (; len >= 8; loc += 8, len -= 8)
        hash = hash_word(hash, loc, 8);
    if (len > 0)
        hash = hash_word(hash, loc, len);
    hash *= 0xc4ceb9fe1a85ec53u;
    return hash ^ hash >> 29;
}

static bool grow_part(struct history_part *part)
{
    uint32_t wanted = part->capacity ? part->capacity * 2 : 16;
    if (part->count < part->capacity)
        return true;
    struct history_row *rows = reallocarray(part->rows, wanted, sizeof *rows);
    if (rows == NULL)
        return false;
    part->rows = rows;
    part->capacity = wanted;
    return true;
}

struct history_row *history_part_row(struct history_part *part, int64_t site, const char *loc,
                                     size_t len, bool *fresh)
{
    uint64_t hash = history_loc_hash(loc, len);
    uint32_t short_hash = (uint32_t)(hash >> 32), at;
    *fresh = false;
    for (struct map_probe p = map_probe(&part->by_loc, short_hash); map_next(&p, &at);) {
        struct history_row *row = &part->rows[at];
        if (row->site == site && row->loc.len == len &&
            memcmp(part->text.data + row->loc.at, loc, len) == 0)
            return row;
    }
    if (!grow_part(part) || !map_add(&part->by_loc, short_hash, part->count)) {
        part->failed = true;
        return NULL;
    }
    struct history_row *row = &part->rows[part->count];
    *row =
        (struct history_row){.site = site, .loc = history_part_keep(part, loc, len), .hash = hash};
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
           same_text(part, a->lastmod, b->lastmod) && same_text(part, a->digest, b->digest) &&
           same_text(part, a->extensions, b->extensions);
}

bool history_row_is_idle(const struct history_part *part, const struct history_row *row)
{
    if (row->has_before != row->has_after)
        return false;
    return !row->has_before || is_same_image(part, &row->before, &row->after);
}

bool history_row_touches(const struct history_row *row, int64_t list_id)
{
    return (row->has_before && id_address_index(row->before.address) == list_id) ||
           (row->has_after && id_address_index(row->after.address) == list_id);
}

/* ---- packing */

enum row_flag {
    ROW_BEFORE = 1,
    ROW_AFTER = 2,
    ROW_SAME_SITE = 4,  /* the site of the row before */
    ROW_EXTENSIONS = 8, /* its images end with extensions */
};

/* The fields that follow an image's flags; all others are as in the image before it. */
enum image_flag {
    IMAGE_ADDRESS = 1,
    IMAGE_SOURCE = 2,
    IMAGE_SERIAL = 4,
    IMAGE_REGISTERED = 8,
    IMAGE_CHANGED = 16,
    IMAGE_LASTMOD = 32,
    IMAGE_DIGEST = 64,
    IMAGE_TIME = 128, /* instead of IMAGE_LASTMOD: see time_number */
};

struct packer {
    const struct history_part *part;
    char *out; /* has room for the rest of the part (packed_bound) */
    int64_t site;
    int64_t time; /* the last one that was packed as a number */
    struct history_text loc;
    struct history_image last;
};

#define NUMBER_MAX_BYTES 10u
/* The size without texts: the flags, and the numbers of the site, of the loc and of both images. */
#define ROW_MAX_BYTES (3 + NUMBER_MAX_BYTES * (1 + 2 + 2 * (5 + 2 + 2 + 2)))

static size_t packed_bound(const struct history_part *part)
{
    size_t bytes = part->count * (size_t)ROW_MAX_BYTES;
    for (uint32_t i = 0; i < part->count; i++) {
        const struct history_row *row = &part->rows[i];
        bytes += (size_t)row->loc.len + row->before.lastmod.len + row->before.digest.len +
                 row->before.extensions.len + row->after.lastmod.len + row->after.digest.len +
                 row->after.extensions.len;
    }
    return bytes;
}

static void pack_number(struct packer *p, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *p->out++ = (char)(value | 0x80);
    *p->out++ = (char)value;
}

/* Packs a difference: small ones, positive or negative, take few bytes. */
static void pack_step(struct packer *p, int64_t from, int64_t to)
{
    int64_t step = (int64_t)((uint64_t)to - (uint64_t)from);
    pack_number(p, (uint64_t)step << 1 ^ (uint64_t)(step >> 63));
}

static size_t shared_start(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t most = a_len < b_len ? a_len : b_len, len = 0;
    while (len < most && a[len] == b[len])
        len++;
    return len;
}

/* Packs 0 for NULL; else the length of the suffix + 1, the length of the prefix that it shares with
 * `last`, and the suffix. */
static void pack_text(struct packer *p, struct history_text last, struct history_text text)
{
    const char *texts = p->part->text.data;
    if (text.at == UINT32_MAX) {
        pack_number(p, 0);
        return;
    }
    size_t shared = last.at == UINT32_MAX
                        ? 0
                        : shared_start(texts + last.at, last.len, texts + text.at, text.len);
    pack_number(p, text.len - shared + 1);
    pack_number(p, shared);
    memcpy(p->out, texts + text.at + shared, text.len - shared);
    p->out += text.len - shared;
}

static bool read_digits(const char *text, size_t count, int64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < count; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        *out = *out * 10 + (text[i] - '0');
    }
    return true;
}

#define TIME_FORM  "0000-00-00T00:00:00Z"
#define TIME_CHARS (sizeof TIME_FORM - 1)

/* Converts a time of the usual form into a number, each pair of digits in bits of its own: this
 * needs no calendar, and times that are close give numbers that are close. False: another form. */
static bool time_number(const char *text, size_t len, int64_t *out)
{
    int64_t year, month, day, hour, minute, second;
    if (len != TIME_CHARS || text[4] != '-' || text[7] != '-' || text[10] != 'T' ||
        text[13] != ':' || text[16] != ':' || text[19] != 'Z' || !read_digits(text, 4, &year) ||
        !read_digits(text + 5, 2, &month) || !read_digits(text + 8, 2, &day) ||
        !read_digits(text + 11, 2, &hour) || !read_digits(text + 14, 2, &minute) ||
        !read_digits(text + 17, 2, &second) || month > 15 || day > 31 || hour > 31 || minute > 63 ||
        second > 63)
        return false;
    *out = year << 26 | month << 22 | day << 17 | hour << 12 | minute << 6 | second;
    return true;
}

static void pack_image(struct packer *p, const struct history_image *image, bool extended)
{
    const struct history_image *last = &p->last;
    const char *lastmod = history_text_of(p->part, image->lastmod);
    int64_t time = 0;
    unsigned flags = 0;
    flags |= image->address != last->address ? IMAGE_ADDRESS : 0u;
    flags |= image->source != last->source ? IMAGE_SOURCE : 0u;
    flags |= image->serial != last->serial ? IMAGE_SERIAL : 0u;
    flags |= image->registered_at != last->registered_at ? IMAGE_REGISTERED : 0u;
    flags |= image->changed_at != last->changed_at ? IMAGE_CHANGED : 0u;
    if (!same_text(p->part, image->lastmod, last->lastmod))
        flags |= lastmod != NULL && time_number(lastmod, image->lastmod.len, &time) ? IMAGE_TIME
                                                                                    : IMAGE_LASTMOD;
    flags |= !same_text(p->part, image->digest, last->digest) ? IMAGE_DIGEST : 0u;
    *p->out++ = (char)flags;
    if (flags & IMAGE_ADDRESS)
        pack_step(p, last->address, image->address);
    if (flags & IMAGE_SOURCE)
        pack_step(p, last->source, image->source);
    if (flags & IMAGE_SERIAL)
        pack_step(p, last->serial, image->serial);
    if (flags & IMAGE_REGISTERED)
        pack_step(p, last->registered_at, image->registered_at);
    if (flags & IMAGE_CHANGED)
        pack_step(p, last->changed_at, image->changed_at);
    if (flags & IMAGE_TIME) {
        pack_step(p, p->time, time);
        p->time = time;
    }
    if (flags & IMAGE_LASTMOD)
        pack_text(p, last->lastmod, image->lastmod);
    if (flags & IMAGE_DIGEST)
        pack_text(p, last->digest, image->digest);
    if (extended)
        pack_text(p, last->extensions, image->extensions);
    p->last = *image;
}

static void pack_row(struct packer *p, const struct history_row *row)
{
    bool extended = (row->has_before && row->before.extensions.at != UINT32_MAX) ||
                    (row->has_after && row->after.extensions.at != UINT32_MAX);
    unsigned flags = (row->has_before ? ROW_BEFORE : 0u) | (row->has_after ? ROW_AFTER : 0u) |
                     (row->site == p->site ? ROW_SAME_SITE : 0u) | (extended ? ROW_EXTENSIONS : 0u);
    *p->out++ = (char)flags;
    if (row->site != p->site)
        pack_step(p, p->site, row->site);
    pack_text(p, p->loc, row->loc);
    if (row->has_before)
        pack_image(p, &row->before, extended);
    if (row->has_after)
        pack_image(p, &row->after, extended);
    p->site = row->site;
    p->loc = row->loc;
}

static void start_image(struct history_image *last)
{
    memset(last, 0, sizeof *last);
    last->lastmod = last->digest = last->extensions = HISTORY_NO_TEXT;
}

/* Appends the rows without deflating them. */
static bool pack_rows(const struct history_part *part, struct str *out)
{
    struct packer p = {.part = part};
    if (!str_reserve(out, packed_bound(part)))
        return false;
    p.out = out->data + out->len;
    p.loc = HISTORY_NO_TEXT;
    start_image(&p.last);
    for (uint32_t i = 0; i < part->count; i++)
        if (!history_row_is_idle(part, &part->rows[i]))
            pack_row(&p, &part->rows[i]);
    out->len = (size_t)(p.out - out->data);
    out->data[out->len] = '\0';
    return true;
}

#define FORM_PLAIN    '\0'
#define FORM_DEFLATED '\1'
#define HEAD_BYTES    5u

/* Deflates parts with very short rows (similar locs shrink to a thirtieth in 60 ns a row) and with
 * long rows (texts). In between deflating would take ten times as long as packing, and only halve
 * the size. */
#define PLAIN_ROW_LEAST_BYTES 16u
#define PLAIN_ROW_MOST_BYTES  48u

/* Replaces the plain form, which is in `out` from `start` on, by the deflated one. */
static bool deflate_rows(struct str *out, size_t start)
{
    const char *rows = out->data + start + 1;
    size_t len = out->len - start - 1;
    uLongf bound = compressBound((uLong)len);
    Bytef *deflated = malloc(bound);
    char head[HEAD_BYTES] = {FORM_DEFLATED};
    if (deflated == NULL ||
        compress2(deflated, &bound, (const Bytef *)rows, (uLong)len, Z_BEST_SPEED) != Z_OK) {
        free(deflated);
        return false;
    }
    for (size_t i = 0; i < 4; i++)
        head[1 + i] = (char)(len >> (i * 8));
    out->len = start;
    str_append(out, head, sizeof head);
    str_append(out, (const char *)deflated, bound);
    free(deflated);
    return !out->failed;
}

bool history_part_pack(const struct history_part *part, struct str *out)
{
    size_t start = out->len;
    str_append_char(out, FORM_PLAIN);
    if (out->failed || !pack_rows(part, out))
        return false;
    size_t each = (out->len - start) / (part->count > 0 ? part->count : 1);
    bool plain = part->count <= HISTORY_INLINE_ROWS ||
                 (each >= PLAIN_ROW_LEAST_BYTES && each <= PLAIN_ROW_MOST_BYTES);
    return plain || deflate_rows(out, start);
}

/* ---- unpacking */

struct unpacker {
    struct history_part *part;
    const unsigned char *at, *end;
    bool broken;
    int64_t site;
    int64_t time;
    struct history_text loc;
    struct history_image last;
};

static uint64_t unpack_number(struct unpacker *u)
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

static int64_t unpack_step(struct unpacker *u, int64_t from)
{
    uint64_t zigzag = unpack_number(u);
    uint64_t step = zigzag >> 1 ^ (0 - (zigzag & 1));
    return (int64_t)((uint64_t)from + step);
}

static const char *unpack_bytes(struct unpacker *u, uint64_t len)
{
    const char *bytes = (const char *)u->at;
    if (u->broken || len > (uint64_t)(u->end - u->at)) {
        u->broken = true;
        return NULL;
    }
    u->at += len;
    return bytes;
}

static struct history_text unpack_text(struct unpacker *u, struct history_text last)
{
    uint64_t rest = unpack_number(u);
    if (rest-- == 0)
        return HISTORY_NO_TEXT;
    uint64_t shared = unpack_number(u);
    const char *bytes = unpack_bytes(u, rest);
    struct str *all = &u->part->text;
    if (bytes == NULL || shared > last.len ||
        shared + rest > EXTENSIONS_MAX_BYTES) { /* the longest */
        u->broken = true;
        return HISTORY_NO_TEXT;
    }
    struct history_text text = {(uint32_t)all->len, (uint32_t)(shared + rest)};
    if (!str_reserve(all, text.len + 1)) {
        u->part->failed = true;
        return HISTORY_NO_TEXT;
    }
    char *to = all->data + all->len; /* follows the text of `last` */
    if (shared > 0)
        memcpy(to, all->data + last.at, (size_t)shared);
    memcpy(to + shared, bytes, (size_t)rest);
    to[text.len] = '\0';
    all->len += text.len + 1;
    return text;
}

static void write_digits(char *to, size_t count, int64_t number)
{
    for (size_t i = count; i-- > 0; number /= 10)
        to[i] = (char)('0' + number % 10);
}

static struct history_text unpack_time(struct unpacker *u)
{
    char text[] = TIME_FORM;
    int64_t time = unpack_step(u, u->time);
    if (time < 0 || time >> 26 > 9999) {
        u->broken = true;
        return HISTORY_NO_TEXT;
    }
    write_digits(text, 4, time >> 26);
    write_digits(text + 5, 2, time >> 22 & 15);
    write_digits(text + 8, 2, time >> 17 & 31);
    write_digits(text + 11, 2, time >> 12 & 31);
    write_digits(text + 14, 2, time >> 6 & 63);
    write_digits(text + 17, 2, time & 63);
    u->time = time;
    return history_part_keep(u->part, text, TIME_CHARS);
}

static unsigned unpack_flags(struct unpacker *u)
{
    const char *byte = unpack_bytes(u, 1);
    return byte != NULL ? (unsigned char)*byte : 0;
}

static struct history_image unpack_image(struct unpacker *u, bool extended)
{
    struct history_image *last = &u->last;
    unsigned flags = unpack_flags(u);
    if (flags & IMAGE_ADDRESS)
        last->address = unpack_step(u, last->address);
    if (flags & IMAGE_SOURCE)
        last->source = unpack_step(u, last->source);
    if (flags & IMAGE_SERIAL)
        last->serial = unpack_step(u, last->serial);
    if (flags & IMAGE_REGISTERED)
        last->registered_at = unpack_step(u, last->registered_at);
    if (flags & IMAGE_CHANGED)
        last->changed_at = unpack_step(u, last->changed_at);
    if (flags & IMAGE_TIME)
        last->lastmod = unpack_time(u);
    if (flags & IMAGE_LASTMOD)
        last->lastmod = unpack_text(u, last->lastmod);
    if (flags & IMAGE_DIGEST)
        last->digest = unpack_text(u, last->digest);
    last->extensions = extended ? unpack_text(u, last->extensions) : HISTORY_NO_TEXT;
    return *last;
}

static bool unpack_row(struct unpacker *u)
{
    unsigned flags = unpack_flags(u);
    if (!(flags & ROW_SAME_SITE))
        u->site = unpack_step(u, u->site);
    u->loc = unpack_text(u, u->loc);
    struct history_row row = {.site = u->site,
                              .loc = u->loc,
                              .has_before = (flags & ROW_BEFORE) != 0,
                              .has_after = (flags & ROW_AFTER) != 0};
    u->broken |= row.loc.at == UINT32_MAX;
    if (row.has_before)
        row.before = unpack_image(u, (flags & ROW_EXTENSIONS) != 0);
    if (row.has_after)
        row.after = unpack_image(u, (flags & ROW_EXTENSIONS) != 0);
    if (!u->broken && !grow_part(u->part))
        u->part->failed = true;
    if (u->broken || u->part->failed)
        return false;
    u->part->rows[u->part->count++] = row;
    return true;
}

static bool unpack_rows(struct history_part *part, const unsigned char *bytes, size_t len)
{
    struct unpacker u = {.part = part, .at = bytes, .end = bytes + len};
    u.loc = HISTORY_NO_TEXT;
    start_image(&u.last);
    while (u.at < u.end)
        if (!unpack_row(&u))
            return false;
    return true;
}

/* More than the largest part has. */
#define PLAIN_MAX_BYTES (64u << 20)

bool history_part_unpack(struct history_part *part, const void *bytes, size_t len)
{
    const unsigned char *from = bytes;
    if (len < 1 || (from[0] != FORM_PLAIN && from[0] != FORM_DEFLATED))
        return false;
    if (from[0] == FORM_PLAIN)
        return unpack_rows(part, from + 1, len - 1);
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
    bool done = plain != NULL &&
                uncompress(plain, &got, from + HEAD_BYTES, (uLong)(len - HEAD_BYTES)) == Z_OK &&
                got == plain_len && unpack_rows(part, plain, plain_len);
    free(plain);
    return done;
}

/* ---- the Bloom filter: 16 bits for each loc, six of them set; one false positive in a thousand */

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
        uint64_t hash = part->rows[i].hash;
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
    uint64_t hash = history_loc_hash(loc, len);
    if (filter_len == 0 || (filter_len & (filter_len - 1)) != 0)
        return true;
    for (unsigned probe = 0; probe < FILTER_PROBES; probe++) {
        size_t bit = filter_bit(hash, probe, filter_len);
        if (!(bits[bit / 8] & 1u << bit % 8))
            return false;
    }
    return true;
}
