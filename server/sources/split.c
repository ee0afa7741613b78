/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The file is read once to validate it and to collect its rows:
 *
 *   keep    the hashes of each row that this source has in the urlset go to a pile, a bounded part
 *           in each view, and into a filter, which detects most rows that are not among them
 *   read    the hashes of the file's rows go to piles, too; a broken file ends here. Rows that
 *           the filter does not know are put aside, if they are few enough
 *   match   pile by pile: find new, changed and removed rows
 *   gather  the removed rows of the urlset, then the new and changed rows, go into a spool. These
 *           are the rows put aside; if the filter was wrong, or they were too many, the file is
 *           read again, and the split ends if the file has changed
 *   apply   create the urlset if necessary; one change, which the writer applies in steps
 *
 * A loc is identified by 128 bits of a hash with a random seed, so that nobody can construct
 * collisions; the content of a row by 64 bits. Piles are PILES parts of one nameless file. Each has
 * a small buffer, which is written only when it has BUFFERED different locs: a few locs that occur
 * again and again cannot make one pile outgrow the others, so each pile fits into memory, whatever
 * the file. There its rows are matched in a table by their locs. A row's number is its position in
 * the file; a bit for each number says whether the row must be written. */
#include "server/sources/split.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/input/entry_validate.h"
#include "server/input/reader.h"
#include "server/rules/page/fragment.h"
#include "server/sources/share.h"

#define PILES       256u
#define BUFFERED    128u
#define BLOCK_BYTES (BUFFERED * sizeof(struct row_hash))
#define READ_BYTES  262144u
#define ROWS_A_VIEW 20000u
#define FILE_RATIO  1000u /* decoded to packed */
#define NEW_URLSET  (EXTENSION_IMAGES | EXTENSION_ALTERNATES)
#define IF_ANY      (EXTENSION_NEWS | EXTENSION_VIDEOS) /* only where the file has some */

struct row_hash {
    uint64_t loc[2], say;
    uint32_t at; /* the row's number in the file, or its position in the urlset */
    uint32_t whose;
};

enum whose {
    OF_FILE,
    OF_URLSET,
    OF_BOTH, /* of the urlset, and its loc is in the file */
};

/* One part of the rows: some are buffered, the rest is in blocks of BUFFERED rows. */
struct pile {
    struct row_hash *buffer; /* BUFFERED of split.buffers */
    unsigned buffered;
    uint64_t *blocks; /* their offsets in the nameless file; owned */
    size_t block_count, block_room;
};

/* A Bloom filter: for each row, one bit in each word of one cache line. It takes about one in 5,000
 * foreign rows for one of its own. */
#define FILTER_BLOCK    8u  /* words */
#define FILTER_ROW_BITS 24u /* the filter's size */

struct filter {
    uint64_t *words; /* owned; NULL: empty */
    uint64_t blocks;
};

struct bits {
    uint64_t *words; /* owned */
    size_t count;
};

struct split {
    const struct split_file *file;
    struct url url; /* of the urlset */
    struct split_result *out;
    enum split_status status; /* DONE while it continues */
    struct registry *registry;
    struct registry_index place; /* of the urlset, or of the urlset to be created */
    bool has_urlset;
    uint64_t seed;
    struct stat began;
    int piles_fd;
    uint64_t piles_bytes;
    struct pile *piles;       /* PILES for the file and PILES for the urlset */
    struct row_hash *buffers; /* of the piles */
    struct filter known;
    struct spool *aside;  /* rows that `known` does not have; NULL: they are too many */
    struct bits aside_at; /* the numbers of these rows */
    struct bits wanted, leaving;
    uint64_t seen; /* rows of the file so far */
    XXH3_state_t *hash;
    struct str part; /* the extensions of a row that the urlset was created for */
    bool gathers;    /* the second reading */
    unsigned has;    /* of IF_ANY */
    struct spool *spool;
};

static bool end_with(struct split *s, enum split_status status)
{
    if (s->status == SPLIT_DONE)
        s->status = status;
    return false;
}

__attribute__((format(printf, 3, 4))) static bool refuse(struct split *s, const char *code,
                                                         const char *format, ...)
{
    va_list arguments;
    if (s->status != SPLIT_DONE)
        return false;
    s->out->code = code;
    va_start(arguments, format);
    vsnprintf(s->out->detail, sizeof s->out->detail, format, arguments);
    va_end(arguments);
    return end_with(s, SPLIT_REFUSED);
}

static bool is_stopped(const struct split *s)
{
    return s->file->stop != NULL && atomic_load_explicit(s->file->stop, memory_order_relaxed);
}

/* ---- bits ---------------------------------------------------------------------------------- */

static bool bits_set(struct bits *b, uint32_t at)
{
    size_t word = at / 64;
    if (word >= b->count) {
        size_t count = word + word / 2 + 1024;
        uint64_t *grown = realloc(b->words, count * sizeof *grown);
        if (grown == NULL)
            return false;
        memset(grown + b->count, 0, (count - b->count) * sizeof *grown);
        b->words = grown;
        b->count = count;
    }
    b->words[word] |= 1ull << at % 64;
    return true;
}

static bool bits_has(const struct bits *b, uint64_t at)
{
    return at / 64 < b->count && (b->words[at / 64] >> at % 64 & 1) != 0;
}

static bool bits_within(const struct bits *all, const struct bits *part)
{
    for (size_t i = 0; i < part->count; i++)
        if ((part->words[i] & ~(i < all->count ? all->words[i] : 0)) != 0)
            return false;
    return true;
}

/* ---- the filter ---------------------------------------------------------------------------- */

static uint64_t *filter_block(const struct filter *f, const struct row_hash *row)
{
    return f->words + row->loc[1] % f->blocks * FILTER_BLOCK;
}

/* The bit of the row in a word of its block. */
static uint64_t filter_bit(const struct row_hash *row, unsigned word)
{
    uint64_t mix = (row->loc[0] ^ row->say) * 0x9e3779b97f4a7c15u;
    return 1ull << ((mix ^ mix >> 32) >> word * 8 & 63);
}

static void filter_add(struct filter *f, const struct row_hash *row)
{
    uint64_t *block = filter_block(f, row);
    for (unsigned i = 0; i < FILTER_BLOCK; i++)
        block[i] |= filter_bit(row, i);
}

/* Prefetches the block of a row that will be looked up soon. */
static void filter_expect(const struct filter *f, const struct row_hash *row)
{
    if (f->words != NULL)
        __builtin_prefetch(filter_block(f, row));
}

static bool filter_has(const struct filter *f, const struct row_hash *row)
{
    uint64_t missing = 0;
    if (f->words == NULL)
        return false;
    const uint64_t *block = filter_block(f, row);
    for (unsigned i = 0; i < FILTER_BLOCK; i++)
        missing |= ~block[i] & filter_bit(row, i);
    return missing == 0;
}

/* ---- piles --------------------------------------------------------------------------------- */

static bool has_room(struct split *s, uint64_t more)
{
    return s->file->max_disk == 0 || s->piles_bytes + more <= s->file->max_disk ||
           refuse(
               s, "split-too-large",
               "is too large: splitting it needs more disk space than half of max_spool (%" PRIu64
               " bytes)",
               s->file->max_disk);
}

static bool write_block(struct split *s, struct pile *pile)
{
    if (!has_room(s, BLOCK_BYTES))
        return false;
    if (pile->block_count == pile->block_room) {
        size_t room = pile->block_room * 2 + 16;
        uint64_t *grown = reallocarray(pile->blocks, room, sizeof *grown);
        if (grown == NULL)
            return end_with(s, SPLIT_NO_MEMORY);
        pile->blocks = grown;
        pile->block_room = room;
    }
    if (s->file->site_id != 0 && !file_has_reserve(s->piles_fd))
        return refuse(s, "no-space",
                      "its page URLs cannot be stored for the comparison: the rest of the disk is "
                      "reserved for the catalogue");
    if (pwrite(s->piles_fd, pile->buffer, BLOCK_BYTES, (off_t)s->piles_bytes) !=
        (ssize_t)BLOCK_BYTES)
        return refuse(s, "no-space", "its page URLs cannot be stored for the comparison: %s",
                      strerrordesc_np(errno));
    pile->blocks[pile->block_count++] = s->piles_bytes;
    s->piles_bytes += BLOCK_BYTES;
    pile->buffered = 0;
    return true;
}

static struct spool *make_spool(const struct split *s, uint64_t max_bytes)
{
    struct spool *spool = catalogue_spool(s->file->catalogue, max_bytes);
    if (spool != NULL)
        spool_share(spool, NULL, s->file->site_id);
    return spool;
}

static struct row_hash hash_row(const struct split *s, const char *loc, const char *lastmod,
                                const char *fragment, uint32_t at)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(loc, strlen(loc), s->seed);
    uint64_t say = XXH3_64bits_withSeed(lastmod, lastmod != NULL ? strlen(lastmod) : 0,
                                        s->seed + (lastmod != NULL));
    say = XXH3_64bits_withSeed(fragment, fragment != NULL ? strlen(fragment) : 0, say);
    return (struct row_hash){.loc = {hash.low64, hash.high64}, .say = say, .at = at};
}

static bool same_loc(const struct row_hash *a, const struct row_hash *b)
{
    return a->loc[0] == b->loc[0] && a->loc[1] == b->loc[1];
}

/* The index of the first row with the loc of row `at`, which is added if none exists. The size of
 * `table` is a power of two; it has indexes + 1. */
static size_t first_of_loc(uint32_t *table, size_t size, const struct row_hash *rows, size_t at)
{
    size_t slot = rows[at].loc[0] & (size - 1);
    while (table[slot] != 0 && !same_loc(&rows[table[slot] - 1], &rows[at]))
        slot = (slot + 1) & (size - 1);
    if (table[slot] == 0)
        table[slot] = (uint32_t)at + 1;
    return table[slot] - 1;
}

/* Removes repeated locs; the first row of a loc counts. */
static void squeeze(struct split *s, struct pile *pile)
{
    uint32_t table[2 * BUFFERED] = {0};
    unsigned left = 0;
    for (unsigned i = 0; i < pile->buffered; i++) {
        pile->buffer[left] = pile->buffer[i];
        left += first_of_loc(table, 2 * BUFFERED, pile->buffer, left) == left;
    }
    s->out->repeated += pile->buffered - left;
    pile->buffered = left;
}

static bool add_row(struct split *s, const struct row_hash *row)
{
    struct pile *pile = &s->piles[row->loc[1] % PILES + (row->whose == OF_FILE ? 0 : PILES)];
    if (pile->buffered == BUFFERED && row->whose == OF_FILE)
        squeeze(s, pile);
    if (pile->buffered == BUFFERED && !write_block(s, pile))
        return false;
    pile->buffer[pile->buffered++] = *row;
    return true;
}

static uint64_t pile_count(const struct pile *pile)
{
    return pile->block_count * BUFFERED + pile->buffered;
}

/* Reads all rows of a pile, in the order in which they were added. */
static bool read_pile(struct split *s, const struct pile *pile, struct row_hash *out)
{
    for (size_t i = 0; i < pile->block_count; i++, out += BUFFERED)
        if (pread(s->piles_fd, out, BLOCK_BYTES, (off_t)pile->blocks[i]) != (ssize_t)BLOCK_BYTES)
            return refuse(s, "unreadable", "its stored page URLs cannot be read: %s",
                          strerrordesc_np(errno));
    memcpy(out, pile->buffer, pile->buffered * sizeof *out);
    return true;
}

static bool open_piles(struct split *s)
{
    s->piles = calloc((size_t)PILES * 2, sizeof *s->piles);
    s->buffers = malloc(PILES * 2 * BLOCK_BYTES);
    s->hash = XXH3_createState();
    if (s->piles == NULL || s->buffers == NULL || s->hash == NULL)
        return end_with(s, SPLIT_NO_MEMORY);
    for (size_t i = 0; i < PILES * 2; i++)
        s->piles[i].buffer = s->buffers + i * BUFFERED;
    s->piles_fd = catalogue_scratch(s->file->catalogue);
    return s->piles_fd >= 0 ||
           refuse(s, "no-space", "cannot create a file beside the catalogue: %s",
                  strerrordesc_np(errno));
}

/* ---- the file ------------------------------------------------------------------------------ */

/* Whether the urlset may have the loc; the writer checks the same. */
static bool is_placed(struct split *s, const char *loc)
{
    struct url url;
    return url_split(loc, strlen(loc), &url) &&
           registry_place_in(s->registry, &url, &s->place) == RULE_OK;
}

static void hash_text(struct split *s, const char *text)
{
    XXH3_128bits_update(s->hash, text != NULL ? text : "", text != NULL ? strlen(text) + 1 : 1);
}

static enum spool_status spool_row(struct spool *spool, const struct entry *entry)
{
    struct entry row = *entry;
    row.index = row.source = row.digest = NULL;
    row.digest_state = FIELD_ABSENT;
    row.position = POSITION_NONE;
    if (row.lastmod_state == FIELD_ABSENT) /* a missing lastmod clears the stored one */
        row.lastmod_state = FIELD_NULL;
    if (row.extensions_state == FIELD_ABSENT)
        row.extensions_state = FIELD_NULL;
    return spool_add(spool, &row);
}

static bool gather_row(struct split *s, const struct entry *entry)
{
    enum spool_status status = spool_row(s->spool, entry);
    if (status == SPOOL_NO_MEMORY)
        return end_with(s, SPLIT_NO_MEMORY);
    return status == SPOOL_OK ||
           refuse(s, status == SPOOL_FULL ? "split-too-large" : "no-space",
                  "no space left to store its changes until they are written");
}

static void forget_aside(struct split *s)
{
    spool_free(s->aside);
    s->aside = NULL;
}

static bool set_aside(struct split *s, const struct entry *entry, uint32_t at)
{
    if (!bits_set(&s->aside_at, at))
        return end_with(s, SPLIT_NO_MEMORY);
    if (spool_row(s->aside, entry) != SPOOL_OK)
        forget_aside(s);
    return true;
}

/* Drops extensions that the urlset was not created for, for which the row would be refused. */
static bool drop_foreign(struct split *s, struct entry *row)
{
    if (row->extensions == NULL || (extensions_of(row->extensions) & ~s->place.with) == 0)
        return true;
    str_clear(&s->part);
    fragment_append_part(&s->part, row->extensions, s->place.with);
    s->out->extra += !s->gathers;
    row->extensions = s->part.len > 0 ? str_text(&s->part) : NULL;
    row->extensions_state = row->extensions != NULL ? FIELD_SET : FIELD_NULL;
    return !s->part.failed || end_with(s, SPLIT_NO_MEMORY);
}

/* Remarks that mean that something was dropped from a row. */
#define DROPS (RULE_LASTMOD_DROPS | RULE_BIT(RULE_EXTENSION_DROPPED))

static bool add_page_url(void *context, const struct entry *read)
{
    struct split *s = context;
    struct entry row = *read;
    const struct entry *entry = &row;
    uint64_t at = s->seen++;
    if (at % 4096 == 0 && is_stopped(s))
        return end_with(s, SPLIT_STOPPED);
    if (!drop_foreign(s, &row))
        return false;
    hash_text(s, entry->loc);
    hash_text(s, entry->lastmod);
    hash_text(s, entry->extensions);
    if (s->gathers)
        return !bits_has(&s->wanted, at) || gather_row(s, entry);
    s->out->extra += (entry->remarks & DROPS) != 0;
    struct row_hash hash = hash_row(s, entry->loc, entry->lastmod, entry->extensions, (uint32_t)at);
    filter_expect(&s->known, &hash);
    if (!is_placed(s, entry->loc)) {
        s->out->bad++;
        return true;
    }
    s->out->urls++;
    s->has |= entry->extensions != NULL ? extensions_of(entry->extensions) & IF_ANY : 0;
    return add_row(s, &hash) &&
           (s->aside == NULL || filter_has(&s->known, &hash) || set_aside(s, entry, (uint32_t)at));
}

static bool add_reject(void *context, const struct rejection *rejection)
{
    struct split *s = context;
    (void)rejection;
    s->out->bad += !s->gathers;
    return true;
}

static void count_remark(void *context, enum rule_code code, uint64_t line, const char *element)
{
    struct split *s = context;
    struct split_result *out = s->out;
    if (code == RULE_ENCODING_ODD)
        return;
    out->extra += !s->gathers;
    if (element == NULL || out->extra_element[0] != '\0')
        return;
    entry_validate_quote(out->extra_element, sizeof out->extra_element, element, strlen(element));
    out->extra_line = line;
}

/* Maps the reader's error to a code for sitemap files. */
static const char *word_of(const struct reader_error *error)
{
    if (strcmp(error->code, "body-too-large") == 0)
        return "file-too-large";
    if (strcmp(error->code, "too-many-entries") == 0)
        return "too-many-urls";
    return error->code;
}

static bool feed(struct split *s, struct reader *reader, char *bytes)
{
    off_t at = 0;
    ssize_t got;
    while ((got = pread(s->file->fd, bytes, READ_BYTES, at)) > 0) {
        at += got;
        if (is_stopped(s))
            return end_with(s, SPLIT_STOPPED);
        if (reader_feed(reader, bytes, (size_t)got) != READER_OK)
            break;
    }
    if (got < 0)
        return refuse(s, "unreadable", "%s", strerrordesc_np(errno));
    if (got > 0 || reader_finish(reader) != READER_OK) {
        const struct reader_error *error = reader_error(reader);
        s->out->line = error->line;
        s->out->column = error->column;
        if (error->status == READER_NO_MEMORY)
            end_with(s, SPLIT_NO_MEMORY);
        refuse(s, word_of(error), "%s", error->detail);
        return false;
    }
    s->out->bytes = (uint64_t)at;
    return true;
}

static bool is_as_it_began(struct split *s)
{
    struct stat now;
    return (fstat(s->file->fd, &now) == 0 && now.st_size == s->began.st_size &&
            now.st_mtim.tv_sec == s->began.st_mtim.tv_sec &&
            now.st_mtim.tv_nsec == s->began.st_mtim.tv_nsec &&
            now.st_ctim.tv_sec == s->began.st_ctim.tv_sec &&
            now.st_ctim.tv_nsec == s->began.st_ctim.tv_nsec) ||
           end_with(s, SPLIT_CHANGING);
}

static bool read_file(struct split *s)
{
    const struct reader_options options = {.format = READER_AUTO,
                                           .pages = true,
                                           .lenient = true,
                                           .allow_gzip = true,
                                           .max_bytes = SPLIT_MAX_BYTES,
                                           .max_entries = SPLIT_MAX_URLS,
                                           .max_ratio = FILE_RATIO,
                                           .now = s->file->now,
                                           .map = s->file->map};
    const struct reader_sink sink = {
        .context = s, .entry = add_page_url, .reject = add_reject, .remark = count_remark};
    struct reader *reader = reader_new(&options, &sink);
    char *bytes = malloc(READ_BYTES);
    bool read = false;
    s->seen = 0;
    XXH3_128bits_reset(s->hash);
    if (reader != NULL)
        reader_content_encoding(reader, s->file->content_encoding);
    if (reader == NULL || bytes == NULL)
        end_with(s, SPLIT_NO_MEMORY);
    else
        read = feed(s, reader, bytes);
    reader_free(reader);
    free(bytes);
    return read && is_as_it_began(s);
}

/* ---- the urlset ---------------------------------------------------------------------------- */

typedef bool urlset_row(struct split *s, uint32_t position, const char *loc, const char *lastmod,
                        const char *fragment);

struct listing {
    struct split *s;
    urlset_row *take;
    size_t listed;
    uint32_t next; /* position */
};

static bool list_row(void *context, uint32_t position, const char *loc, const char *lastmod,
                     const char *fragment)
{
    struct listing *l = context;
    l->listed++;
    l->next = position + 1;
    return l->take(l->s, position, loc, lastmod, fragment);
}

/* Lists the rows of this source in the urlset, one part in each view. */
static bool list_urlset(struct split *s, urlset_row *take)
{
    struct listing l = {.s = s, .take = take};
    do {
        struct catalogue_view *view;
        l.listed = 0;
        enum catalogue_status status = catalogue_view_begin(s->file->catalogue, &view);
        if (status == CATALOGUE_OK) {
            status = catalogue_view_positions_of(view, s->place.id, s->file->source, l.next,
                                                 ROWS_A_VIEW, list_row, &l);
            catalogue_view_end(view);
        }
        if (status != CATALOGUE_OK)
            return refuse(s, "unreadable", "its urlset cannot be read: %s",
                          catalogue_status_word(status));
        if (is_stopped(s))
            return end_with(s, SPLIT_STOPPED);
    } while (l.listed == ROWS_A_VIEW && s->status == SPLIT_DONE);
    return s->status == SPLIT_DONE;
}

static bool know_row(struct split *s, uint32_t position, const char *loc, const char *lastmod,
                     const char *fragment)
{
    struct row_hash hash = hash_row(s, loc, lastmod, fragment, position);
    hash.whose = OF_URLSET;
    return add_row(s, &hash);
}

static bool drop_row(struct split *s, uint32_t position, const char *loc, const char *lastmod,
                     const char *fragment)
{
    struct entry gone = {.loc = loc, .position = POSITION_NONE, .gone = true};
    (void)lastmod, (void)fragment;
    if (!bits_has(&s->leaving, position))
        return true;
    enum spool_status status = spool_add(s->spool, &gone);
    return status == SPOOL_OK ||
           refuse(s, "no-space", "no space left to store its changes until they are written");
}

/* ---- differences --------------------------------------------------------------------------- */

/* Matches a row of the file; `first` is the first row with its loc, maybe the row itself. */
static bool match_row(struct split *s, struct row_hash *first, const struct row_hash *row)
{
    bool is_new = first == row, unchanged = !is_new && first->say == row->say;
    if (!is_new && first->whose != OF_URLSET) {
        s->out->repeated++;
        return true;
    }
    *(is_new ? &s->out->created : unchanged ? &s->out->unchanged : &s->out->updated) += 1;
    if (!is_new)
        first->whose = OF_BOTH;
    return unchanged || bits_set(&s->wanted, row->at) || end_with(s, SPLIT_NO_MEMORY);
}

/* `rows` has the rows of the urlset first, then those of the file in their order. */
static bool match_rows(struct split *s, struct row_hash *rows, size_t count, uint32_t *table,
                       size_t size)
{
    for (size_t i = 0; i < count; i++) {
        size_t first = first_of_loc(table, size, rows, i);
        if (rows[i].whose == OF_FILE && !match_row(s, &rows[first], &rows[i]))
            return false;
    }
    for (size_t i = 0; i < count; i++)
        if (rows[i].whose == OF_URLSET) {
            s->out->removed++;
            if (!bits_set(&s->leaving, rows[i].at))
                return end_with(s, SPLIT_NO_MEMORY);
        }
    return true;
}

static bool match_pile(struct split *s, unsigned number)
{
    const struct pile *file = &s->piles[number], *kept = &s->piles[PILES + number];
    size_t count = pile_count(file) + pile_count(kept), size = 2;
    while (size < 2 * count)
        size *= 2;
    struct row_hash *rows = malloc((count + 1) * sizeof *rows);
    uint32_t *table = calloc(size, sizeof *table);
    bool ok = rows != NULL && table != NULL
                  ? read_pile(s, kept, rows) && read_pile(s, file, rows + pile_count(kept)) &&
                        match_rows(s, rows, count, table, size)
                  : end_with(s, SPLIT_NO_MEMORY);
    free(rows);
    free(table);
    return ok;
}

static bool match(struct split *s)
{
    for (unsigned i = 0; i < PILES; i++)
        if (!match_pile(s, i))
            return false;
    return true;
}

/* Puts the rows of this source in the urlset into piles, and from there into the filter. */
static bool know_urlset(struct split *s)
{
    uint64_t count = 0;
    if (!list_urlset(s, know_row))
        return false;
    for (unsigned i = 0; i < PILES; i++)
        count += pile_count(&s->piles[PILES + i]);
    s->known.blocks = count * FILTER_ROW_BITS / 64 / FILTER_BLOCK + 1;
    s->known.words = calloc(s->known.blocks * FILTER_BLOCK, sizeof *s->known.words);
    bool ok = s->known.words != NULL || end_with(s, SPLIT_NO_MEMORY);
    for (unsigned i = 0; ok && i < PILES; i++) {
        const struct pile *pile = &s->piles[PILES + i];
        struct row_hash *rows = malloc((pile_count(pile) + 1) * sizeof *rows);
        ok = rows != NULL ? read_pile(s, pile, rows) : end_with(s, SPLIT_NO_MEMORY);
        for (uint64_t k = 0; ok && k < pile_count(pile); k++)
            filter_add(&s->known, &rows[k]);
        free(rows);
    }
    return ok;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Adds the wanted rows that were put aside to the spool. */
static bool gather_aside(struct split *s)
{
    struct entry entry;
    int more = 1;
    uint64_t at = 0;
    spool_rewind(s->aside);
    while (s->status == SPLIT_DONE && (more = spool_next(s->aside, &entry)) == 1) {
        while (!bits_has(&s->aside_at, at))
            at++;
        if (bits_has(&s->wanted, at++) && !gather_row(s, &entry))
            return false;
    }
    return more == 0 || refuse(s, "unreadable", "its stored page URLs cannot be read");
}

/* Adds the removed rows, then the new and changed ones, to the spool. */
static bool gather(struct split *s)
{
    XXH128_hash_t now;
    bool aside = s->aside != NULL && bits_within(&s->aside_at, &s->wanted);
    if (aside && s->out->removed == 0 && bits_within(&s->wanted, &s->aside_at)) {
        s->spool = s->aside; /* all rows put aside are wanted */
        s->aside = NULL;
        return true;
    }
    uint64_t room = s->file->max_disk == 0 ? UINT64_MAX : s->file->max_disk - s->piles_bytes;
    s->spool = make_spool(s, room);
    if (s->spool == NULL)
        return end_with(s, SPLIT_NO_MEMORY);
    if (s->out->removed > 0 && !list_urlset(s, drop_row))
        return false;
    if (s->out->created + s->out->updated == 0)
        return true;
    if (aside)
        return gather_aside(s);
    s->gathers = true;
    if (!read_file(s))
        return false;
    now = XXH3_128bits_digest(s->hash);
    return (now.low64 == s->out->hash[0] && now.high64 == s->out->hash[1]) ||
           end_with(s, SPLIT_CHANGING);
}

/* Applies a change, and ends the split with the catalogue's error if it fails. */
static bool apply(struct split *s, struct change *change, struct change_result *result)
{
    enum catalogue_status status = catalogue_apply(s->file->catalogue, change, result);
    if (status == CATALOGUE_OK)
        return true;
    if (status == CATALOGUE_CANCELLED)
        return end_with(s, SPLIT_STOPPED);
    if (result->code == RULE_FROZEN)
        return end_with(s, SPLIT_BUSY);
    return refuse(s,
                  status == CATALOGUE_REFUSED ? rule_code_word(result->code)
                                              : catalogue_status_word(status),
                  "%s", result->detail);
}

static bool make_urlset(struct split *s)
{
    struct change_result result;
    struct change change = {
        .kind = CHANGE_URLSET_ADD,
        .list = LIST_URLSET,
        .source = s->file->source,
        .via = "source",
        .grant = {.site_id = s->file->site_id},
        .urlset_add = {.url = s->url.text,
                       .fields = {.index = s->file->index, .with = NEW_URLSET | s->has}},
    };
    bool made = apply(s, &change, &result);
    change_result_done(&result);
    return made;
}

static bool write_rows(struct split *s)
{
    struct change_result result;
    struct change change = {
        .kind = CHANGE_SPLIT,
        .list = LIST_URLSET,
        .source = s->file->source,
        .grant = {.site_id = s->file->site_id},
        .index_name = s->url.text,
        .rows = s->spool,
        .skip = true,
        .split = {.comes = s->out->created, .goes = s->out->removed},
        .max_removed = s->file->max_removed,
    };
    s->spool = NULL; /* the change has taken it over */
    bool written = apply(s, &change, &result);
    if (written) {
        s->out->bad += result.rejected;
        s->out->revision = result.revision;
        s->out->changed = result.changed;
    }
    change_result_done(&result);
    return written;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static bool ends_in(const char *text, size_t len, const char *suffix)
{
    size_t suffix_len = strlen(suffix);
    return len > suffix_len && strncasecmp(text + len - suffix_len, suffix, suffix_len) == 0;
}

/* The URL of the urlset: all.xml for all.xml, all.xml.gz and all.txt. */
static bool urlset_url(const struct url *of, struct url *out)
{
    char text[LOC_MAX_CHARS + 5];
    size_t len = of->len - (ends_in(of->text, of->len, ".gz") ? 3u : 0u);
    if (ends_in(of->text, len, ".xml") || ends_in(of->text, len, ".txt"))
        len -= 4;
    snprintf(text, sizeof text, "%.*s.xml", (int)len, of->text);
    return url_parse(text, strlen(text), out, NULL) == RULE_OK;
}

const struct registry_index *split_urlset(const struct registry *r, const struct url *url)
{
    struct url own;
    return urlset_url(url, &own) ? registry_list_by_name(r, own.text, LIST_URLSET, NULL) : NULL;
}

void split_report_done(const struct split_result *split, char *out, size_t size)
{
    snprintf(out, size, "%" PRIu64 " added, %" PRIu64 " updated, %" PRIu64 " removed",
             split->created, split->updated, split->removed);
}

void split_report_dropped(const struct split_result *split, char *out, size_t size)
{
    const struct {
        uint64_t count;
        const char *what;
    } parts[] = {{split->bad, "rejected"},
                 {split->repeated, "repeated"},
                 {split->extra, "other elements and dates"}};
    *out = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].count > 0)
            snprintf(out + strlen(out), size - strlen(out), "%s%" PRIu64 " %s",
                     *out == '\0' ? "left out: " : ", ", parts[i].count, parts[i].what);
    if (split->extra_element[0] != '\0')
        snprintf(out + strlen(out), size - strlen(out), " (<%s> in line %" PRIu64 " is the first)",
                 split->extra_element, split->extra_line);
}

/* Finds the urlset, or fills in what it will be, which is enough to check where rows may be. */
static bool find_place(struct split *s)
{
    struct placement place;
    if (!urlset_url(s->file->url, &s->url))
        return refuse(s, rule_code_word(RULE_LOC_TOO_LONG), "its URL is too long for a urlset");
    enum catalogue_status status = catalogue_registry(s->file->catalogue, &s->registry);
    if (status != CATALOGUE_OK)
        return refuse(s, "unreadable", "the catalogue cannot be read: %s",
                      catalogue_status_word(status));
    const struct registry_index *urlset =
        registry_list_by_name(s->registry, s->url.text, LIST_URLSET, NULL);
    s->has_urlset = urlset != NULL;
    if (urlset != NULL) {
        s->place = *urlset;
        return s->file->dry_run || !registry_is_frozen(s->registry, urlset) ||
               end_with(s, SPLIT_BUSY); /* do not read the file for nothing */
    }
    enum rule_code code = registry_place(s->registry, &s->url, s->file->index, &place);
    if (code != RULE_OK)
        return refuse(s, rule_code_word(code), "%s", rule_code_sentence(code));
    s->place = (struct registry_index){
        .site_id = place.site->id,
        .kind = LIST_URLSET,
        .path = s->url.text + s->url.origin_len,
        .page_pattern = place.index->page_pattern,
        .of_index = place.index->id,
        .with = EXTENSIONS_ALL,
    };
    return true;
}

static bool read_and_match(struct split *s)
{
    if (s->has_urlset && !know_urlset(s))
        return false;
    if (!s->file->dry_run)
        s->aside = make_spool(s, s->file->max_disk == 0 ? UINT64_MAX : s->file->max_disk / 4);
    if (!read_file(s))
        return false;
    XXH128_hash_t hash = XXH3_128bits_digest(s->hash);
    s->out->hash[0] = hash.low64;
    s->out->hash[1] = hash.high64;
    if (s->out->urls == 0)
        return refuse(s, "no-usable-url", "has no page URL that is allowed at its URL");
    return match(s);
}

static void run(struct split *s)
{
    if (fstat(s->file->fd, &s->began) != 0) {
        refuse(s, "unreadable", "%s", strerrordesc_np(errno));
        return;
    }
    if (getrandom(&s->seed, sizeof s->seed, 0) != (ssize_t)sizeof s->seed)
        s->seed = (uint64_t)s->file->now;
    if (find_place(s) && open_piles(s) && read_and_match(s) && !s->file->dry_run && gather(s) &&
        (s->has_urlset || make_urlset(s)))
        write_rows(s);
}

/* One split at a time; sites take turns by what they used. */
static struct {
    pthread_mutex_t lock;
    bool taken;
    struct shares shares;
} place = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool take_place(int64_t site)
{
    int64_t now_ms = clock_now_ms();
    pthread_mutex_lock(&place.lock);
    bool takes = !place.taken && shares_is_turn(&place.shares, site, now_ms);
    if (takes)
        place.taken = true;
    else
        shares_wait(&place.shares, site, now_ms);
    pthread_mutex_unlock(&place.lock);
    return takes;
}

static void give_place(int64_t site, int64_t began_ms)
{
    int64_t now_ms = clock_now_ms();
    pthread_mutex_lock(&place.lock);
    place.taken = false;
    shares_charge(&place.shares, site, now_ms - began_ms, 0, now_ms);
    pthread_mutex_unlock(&place.lock);
}

enum split_status split_run(const struct split_file *file, struct split_result *out)
{
    struct split s = {.file = file, .out = out, .piles_fd = -1};
    /* Names the site even if it does not exist. */
    int64_t site = (int64_t)XXH3_64bits(file->url->text, (size_t)file->url->origin_len);
    int64_t began_ms = clock_now_ms();
    *out = (struct split_result){.code = ""};
    if (!take_place(site))
        return SPLIT_BUSY;
    run(&s);
    give_place(site, began_ms);
    for (unsigned i = 0; s.piles != NULL && i < PILES * 2; i++)
        free(s.piles[i].blocks);
    free(s.piles);
    free(s.buffers);
    free(s.known.words);
    spool_free(s.aside);
    free(s.aside_at.words);
    free(s.wanted.words);
    free(s.leaving.words);
    if (s.piles_fd >= 0)
        close(s.piles_fd);
    XXH3_freeState(s.hash);
    str_done(&s.part);
    spool_free(s.spool);
    registry_unref(s.registry);
    return s.status;
}
