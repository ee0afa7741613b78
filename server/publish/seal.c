#include "server/publish/seal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zlib.h>

#include "server/publish/builder.h"
#include "server/rules/limits.h"
#include "server/rules/render.h"

/* RFC 1952 2.3: deflate, no flags, no time, no level hint, OS unknown: the same bytes everywhere.
 */
static const uint8_t gzip_header[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};
/* RFC 1951 3.2.6: an empty last block with fixed codes. */
static const uint8_t final_block[2] = {0x03, 0x00};
#define GZIP_TRAILER_LEN 8

bool seal_frame_init(struct seal_frame *frame, struct deflater *d)
{
    size_t head_len = strlen(render_head);
    size_t tail_len = strlen(render_tail);
    deflater_piece(d, render_head, head_len, &frame->head);
    deflater_piece(d, render_tail, tail_len, &frame->tail);
    frame->head_crc = (uint32_t)crc32_z(0, (const Bytef *)render_head, head_len);
    frame->tail_crc = (uint32_t)crc32_z(0, (const Bytef *)render_tail, tail_len);
    frame->tail_crc_shift = (uint32_t)crc32_combine_gen((z_off_t)tail_len);
    return !frame->head.failed && !frame->tail.failed;
}

void seal_frame_done(struct seal_frame *frame)
{
    str_done(&frame->head);
    str_done(&frame->tail);
}

static uint8_t *put(uint8_t *at, const void *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

static uint8_t *put_u32_little_endian(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        *at++ = (uint8_t)(value >> (8 * i));
    return at;
}

/* `"` + 32 hex digits + `"`. */
static void etag_write(char out[SNAPSHOT_ETAG_SIZE], XXH3_state_t *state, const char *label)
{
    XXH3_128bits_update(state, label, strlen(label) + 1);
    XXH128_hash_t hash = XXH3_128bits_digest(state);
    snprintf(out, SNAPSHOT_ETAG_SIZE, "\"%016llx%016llx\"", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

/* The tag covers the content (segments' hashes in their places, head and tail) and, for gzip, all
 * that decides its bytes; never a counter, a time or a process. */
static bool etags_write(struct snapshot *s, int level)
{
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL)
        return false;
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, render_head, strlen(render_head));
    XXH3_128bits_update(state, render_tail, strlen(render_tail));
    for (uint32_t i = 0; i < s->segment_count; i++) {
        if (s->segments[i].len == 0)
            continue;
        uint64_t word[3] = {i, s->segments[i].hash[0], s->segments[i].hash[1]};
        XXH3_128bits_update(state, word, sizeof word);
    }
    etag_write(s->etag_identity, state, "identity");
    char made_by[96];
    snprintf(made_by, sizeof made_by, "gzip zlib-%s level-%d segment-%u framing-%d", zlibVersion(),
             level, SEGMENT_POSITIONS, BUILDER_FRAMING_VERSION);
    etag_write(s->etag_gzip, state, made_by);
    etag_write(s->etag_file, state, "file");
    XXH3_freeState(state);
    return true;
}

struct snapshot *seal_snapshot(const struct seal_input *input)
{
    const struct seal_frame *frame = input->frame;
    size_t size = sizeof gzip_header + frame->head.len + frame->tail.len + sizeof final_block +
                  GZIP_TRAILER_LEN;
    for (uint32_t i = 0; i < input->count; i++)
        size += input->segments[i].len;

    struct snapshot *s = snapshot_new();
    uint8_t *buffer = malloc(size);
    struct snapshot_segment *segments = calloc(input->count + 1, sizeof *segments);
    if (s == NULL || buffer == NULL || segments == NULL) {
        free(buffer);
        free(segments);
        snapshot_unref(s);
        return NULL;
    }
    s->gzip = buffer;
    s->segments = segments;
    s->segment_count = input->count;
    memcpy(segments, input->segments, input->count * sizeof *segments);

    uint8_t *at = put(buffer, gzip_header, sizeof gzip_header);
    at = put(at, frame->head.data, frame->head.len);
    uLong crc = frame->head_crc;
    s->raw_len = strlen(render_head);
    for (uint32_t i = 0; i < input->count; i++) {
        struct snapshot_segment *segment = &segments[i];
        if (segment->len == 0)
            continue;
        const uint8_t *from = input->fresh[i] ? input->pieces : input->old;
        const uint8_t *piece = from + segment->offset;
        segment->offset = (uint32_t)(at - buffer);
        at = put(at, piece, segment->len);
        /* What a length does to the CRC before it is most of the work of joining two: made once for
         * a segment and kept by the pages that have it. */
        if (segment->crc_shift == 0)
            segment->crc_shift = (uint32_t)crc32_combine_gen((z_off_t)segment->raw_len);
        crc = crc32_combine_op(crc, segment->crc, segment->crc_shift);
        s->raw_len += segment->raw_len;
        s->entries += segment->entries;
    }
    at = put(at, frame->tail.data, frame->tail.len);
    crc = crc32_combine_op(crc, frame->tail_crc, frame->tail_crc_shift);
    s->raw_len += strlen(render_tail);
    at = put(at, final_block, sizeof final_block);
    at = put_u32_little_endian(at, (uint32_t)crc);
    at = put_u32_little_endian(at, (uint32_t)s->raw_len);
    s->gzip_len = (size_t)(at - buffer);
    if (!etags_write(s, input->level)) {
        snapshot_unref(s);
        return NULL;
    }
    return s;
}
