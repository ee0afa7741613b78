#include "server/publish/page_file.h"

#include <string.h>
#include <xxhash.h>

#define BYTE_ORDER_MARK 0x01020304u

static const char magic[8] = "smd-page";

struct file_head {
    char magic[8];
    uint32_t byte_order, version;
    uint64_t made_by[2];
    char epoch[PAGE_FILE_EPOCH_SIZE];
    int64_t index_id;
    uint32_t number, entries;
    /* what page_file_belongs needs ends here */
    uint64_t revision, stamp;
    int64_t changed_at;
    uint32_t same_second, segment_count;
    uint64_t pieces_len;
    uint64_t hash[2]; /* XXH3-128 of all else: of the head up to here, the table, the pieces */
};
_Static_assert(sizeof(struct file_head) == PAGE_FILE_HEAD_BYTES, "no padding");
_Static_assert(offsetof(struct file_head, revision) <= PAGE_FILE_PEEK_BYTES, "enough to peek at");

struct file_segment {
    uint32_t len, raw_len, crc, entries;
    uint64_t hash[2];
};
_Static_assert(sizeof(struct file_segment) == 32, "no padding");

#define HASHED_HEAD offsetof(struct file_head, hash)

/* False when out of memory. */
static bool hash_file(const struct file_head *head, const void *table, size_t table_len,
                      const void *pieces, size_t pieces_len, uint64_t out[2])
{
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL)
        return false;
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, head, HASHED_HEAD);
    XXH3_128bits_update(state, table, table_len);
    XXH3_128bits_update(state, pieces, pieces_len);
    XXH128_hash_t hash = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    out[0] = hash.high64;
    out[1] = hash.low64;
    return true;
}

static void head_fill(struct file_head *head, const struct page_key *key, const uint64_t made_by[2])
{
    memset(head, 0, sizeof *head);
    memcpy(head->magic, magic, sizeof magic);
    head->byte_order = BYTE_ORDER_MARK;
    head->version = PAGE_FILE_VERSION;
    memcpy(head->made_by, made_by, sizeof head->made_by);
    memcpy(head->epoch, key->epoch, sizeof head->epoch);
    head->index_id = key->index_id;
    head->number = key->number;
    head->entries = key->entries;
    head->revision = key->revision;
    head->stamp = key->stamp;
    head->changed_at = key->changed_at;
    head->same_second = key->same_second;
}

bool page_file_encode(const struct page_key *key, const uint64_t made_by[2],
                      const struct snapshot *s, struct str *head, struct page_pieces *out)
{
    struct file_head h;
    struct file_segment table[PAGE_SEGMENTS];
    head_fill(&h, key, made_by);
    h.segment_count = out->count = s->segment_count;
    if (s->segment_count > 0)
        memcpy(out->segments, s->segments, s->segment_count * sizeof *s->segments);
    out->bytes = s->gzip;
    out->len = 0;
    for (uint32_t i = 0; i < s->segment_count; i++) {
        const struct snapshot_segment *from = &s->segments[i];
        table[i] = (struct file_segment){
            from->len, from->raw_len, from->crc, from->entries, {from->hash[0], from->hash[1]}};
        if (from->len == 0)
            continue;
        /* They stand one behind the other in the page's buffer (seal.c). */
        if (out->len == 0)
            out->bytes = s->gzip + from->offset;
        out->segments[i].offset = (uint32_t)out->len;
        out->len += from->len;
    }
    h.pieces_len = out->len;
    size_t table_len = s->segment_count * sizeof *table;
    if (!hash_file(&h, table, table_len, out->bytes, out->len, h.hash))
        return false;
    str_append(head, &h, sizeof h);
    str_append(head, table, table_len);
    return !head->failed;
}

/* Takes over the table; false where it cannot be one of `entries` entries in `len` bytes. */
static bool take_segments(const uint8_t *table, uint32_t count, size_t len, uint32_t entries,
                          struct page_pieces *out)
{
    uint64_t raw_len = 0, all_entries = 0;
    size_t offset = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct file_segment from;
        memcpy(&from, table + i * sizeof from, sizeof from);
        if (from.len > len - offset || from.entries > SEGMENT_POSITIONS ||
            from.raw_len > LIMIT_PAGE_BYTES || (from.len == 0) != (from.entries == 0) ||
            (from.len == 0) != (from.raw_len == 0))
            return false;
        out->segments[i] = (struct snapshot_segment){.offset = (uint32_t)offset,
                                                     .len = from.len,
                                                     .raw_len = from.raw_len,
                                                     .crc = from.crc,
                                                     .entries = from.entries,
                                                     .hash = {from.hash[0], from.hash[1]}};
        offset += from.len;
        raw_len += from.raw_len;
        all_entries += from.entries;
    }
    out->count = count;
    return offset == len && raw_len <= LIMIT_PAGE_BYTES && all_entries == entries &&
           out->segments[count - 1].len > 0;
}

bool page_file_fits(const uint8_t *bytes, uint64_t file_bytes, const struct page_key *key,
                    const uint64_t made_by[2])
{
    struct file_head head, expected;
    if (file_bytes < sizeof head || file_bytes > PAGE_FILE_MAX_BYTES)
        return false;
    memcpy(&head, bytes, sizeof head);
    /* All that this page decides is compared at once. */
    head_fill(&expected, key, made_by);
    expected.segment_count = head.segment_count;
    expected.pieces_len = head.pieces_len;
    if (memcmp(&head, &expected, HASHED_HEAD) != 0 || head.segment_count == 0 ||
        head.segment_count > PAGE_SEGMENTS)
        return false;
    uint64_t behind = file_bytes - sizeof head;
    uint64_t table_len = head.segment_count * sizeof(struct file_segment);
    return behind >= table_len && head.pieces_len == behind - table_len;
}

bool page_file_decode(const uint8_t *bytes, size_t len, const struct page_key *key,
                      const uint64_t made_by[2], struct page_pieces *out)
{
    struct file_head head;
    uint64_t hash[2];
    if (len < sizeof head || !page_file_fits(bytes, len, key, made_by))
        return false;
    memcpy(&head, bytes, sizeof head);
    size_t table_len = head.segment_count * sizeof(struct file_segment);
    const uint8_t *table = bytes + sizeof head;
    out->bytes = table + table_len;
    out->len = (size_t)head.pieces_len;
    return take_segments(table, head.segment_count, out->len, key->entries, out) &&
           hash_file(&head, table, table_len, out->bytes, out->len, hash) &&
           memcmp(hash, head.hash, sizeof hash) == 0;
}

bool page_file_belongs(const uint8_t *bytes, size_t len, const char *epoch,
                       const uint64_t made_by[2])
{
    struct page_key key = {.number = 0};
    struct file_head expected;
    size_t epoch_len = strlen(epoch);
    if (len < PAGE_FILE_PEEK_BYTES || epoch_len >= sizeof key.epoch)
        return false;
    memcpy(key.epoch, epoch, epoch_len);
    head_fill(&expected, &key, made_by);
    return memcmp(bytes, &expected, offsetof(struct file_head, index_id)) == 0;
}
