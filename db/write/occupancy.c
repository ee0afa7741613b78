/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Finds the lowest free position of a list, and keeps the counts of pages and segments up to date.
 */
#include <stdlib.h>
#include <string.h>

#include "db/read/row.h"
#include "db/tx/tx.h"
#include "db/write/occupancy.h"
#include "server/rules/entry.h"
#include "server/rules/page/extension.h"
#include "server/rules/page/render.h"

static bool bit_is_set(const uint64_t words[], uint32_t bit)
{
    return (words[bit / 64] >> (bit % 64) & 1) != 0;
}

static void bit_set(uint64_t words[], uint32_t bit)
{
    words[bit / 64] |= (uint64_t)1 << (bit % 64);
}

static void bit_unset(uint64_t words[], uint32_t bit)
{
    words[bit / 64] &= ~((uint64_t)1 << (bit % 64));
}

struct occupancy *occupancy_new(void)
{
    return calloc(1, sizeof(struct occupancy));
}

static void free_index(struct occupancy_index *index)
{
    for (uint32_t i = 0; i < index->page_count; i++) {
        free(index->pages[i]->segments);
        free(index->pages[i]);
    }
    free(index->pages);
    free(index);
}

void occupancy_drop(struct occupancy *occupancy)
{
    while (occupancy->indexes != NULL) {
        struct occupancy_index *index = occupancy->indexes;
        occupancy->indexes = index->next;
        free_index(index);
    }
    while (occupancy->sites != NULL) {
        struct occupancy_site *site = occupancy->sites;
        occupancy->sites = site->next;
        free(site);
    }
    occupancy->dirty = NULL;
    occupancy->unsettled = NULL;
    occupancy->bytes = 0;
}

void occupancy_free(struct occupancy *occupancy)
{
    if (occupancy == NULL)
        return;
    occupancy_drop(occupancy);
    free(occupancy);
}

uint32_t occupancy_weight(enum list_kind kind, const char *loc, size_t loc_len,
                          size_t extensions_len)
{
    return kind == LIST_URLSET ? render_url_bytes(loc, loc_len, extensions_len)
                               : render_entry_bytes(loc, loc_len);
}

static void settle_index(struct occupancy_index *index)
{
    for (struct occupancy_page *page = index->dirty_pages; page != NULL; page = page->next_dirty) {
        page->dirty = false;
        if (page->segments != NULL)
            memset(page->segments->dirty, 0, sizeof page->segments->dirty);
    }
    index->dirty_pages = NULL;
    index->dirty = false;
    index->peak_reset = false;
    index->touched = false;
    index->singles = 0;
}

void occupancy_settle(struct occupancy *occupancy)
{
    for (struct occupancy_index *index = occupancy->dirty; index != NULL; index = index->next_dirty)
        settle_index(index);
    occupancy->dirty = NULL;
    for (struct occupancy_index **at = &occupancy->indexes; *at != NULL;) {
        struct occupancy_index *index = *at;
        if (index->buried) {
            *at = index->next;
            occupancy->bytes -= index->page_count * OCCUPANCY_PAGE_BYTES;
            free_index(index);
        } else {
            at = &index->next;
        }
    }
    if (occupancy->bytes > OCCUPANCY_MAX_BYTES)
        occupancy_drop(occupancy);
}

static enum catalogue_status find_site(struct tx *tx, int64_t id, struct occupancy_site **out)
{
    struct occupancy *occupancy = tx->occupancy;
    for (struct occupancy_site *site = occupancy->sites; site != NULL; site = site->next) {
        if (site->id == id) {
            *out = site;
            return CATALOGUE_OK;
        }
    }
    /* No index of this site is cached, so the file has the current pages. */
    int64_t used;
    enum catalogue_status status = tx_number(tx, ST_SITE_PAGES_USED, 0, &used, id);
    if (status != CATALOGUE_OK)
        return status;
    struct occupancy_site *site = calloc(1, sizeof *site);
    if (site == NULL)
        return CATALOGUE_NO_MEMORY;
    site->id = id;
    site->pages_used = (uint32_t)used;
    site->next = occupancy->sites;
    occupancy->sites = site;
    *out = site;
    return CATALOGUE_OK;
}

static bool reserve_pages(struct occupancy_index *index, uint32_t count)
{
    if (count <= index->page_capacity)
        return true;
    uint32_t capacity = index->page_capacity ? index->page_capacity : 4;
    while (capacity < count)
        capacity *= 2;
    struct occupancy_page **pages =
        realloc(index->pages, capacity * sizeof(struct occupancy_page *));
    if (pages == NULL)
        return false;
    index->pages = pages;
    index->page_capacity = capacity;
    return true;
}

/* The page; a missing one is made, without a row yet. NULL: out of memory. */
static struct occupancy_page *page_of(struct tx *tx, struct occupancy_index *index, uint32_t number)
{
    if (!reserve_pages(index, number))
        return NULL;
    while (index->page_count < number) {
        struct occupancy_page *page = calloc(1, sizeof *page);
        if (page == NULL)
            return NULL;
        page->number = index->page_count + 1;
        page->of = index;
        page->bytes = index->frame_bytes;
        index->pages[index->page_count++] = page;
        tx->occupancy->bytes += OCCUPANCY_PAGE_BYTES;
    }
    return index->pages[number - 1];
}

static enum catalogue_status load_pages(struct tx *tx, struct occupancy_index *index)
{
    sqlite3_stmt *rows = tx_bind(tx, ST_PAGES_READ, index->id);
    if (rows == NULL)
        return tx_failure(tx);
    bool found;
    enum catalogue_status status;
    while ((status = statement_first(rows, &found)) == CATALOGUE_OK && found) {
        int64_t number = sqlite3_column_int64(rows, 0);
        if (number < 1 || number > UINT32_MAX / LIMIT_PAGE_ENTRIES) {
            status = CATALOGUE_CORRUPT;
            break;
        }
        struct occupancy_page *page = page_of(tx, index, (uint32_t)number);
        if (page == NULL) {
            status = CATALOGUE_NO_MEMORY;
            break;
        }
        page->entries = (uint32_t)sqlite3_column_int64(rows, 1);
        page->bytes = (uint64_t)sqlite3_column_int64(rows, 2);
        page->changed_at = sqlite3_column_int64(rows, 3);
        page->same_second = sqlite3_column_int64(rows, 4);
        index->entries += page->entries;
    }
    sqlite3_reset(rows);
    return status;
}

/* Loads the kind of the list, which never changes, and the limits of its pages. */
static enum catalogue_status load_kind(struct tx *tx, struct occupancy_index *index)
{
    sqlite3_stmt *row;
    enum catalogue_status status = tx_first(tx, ST_LIST_READ, &row, index->id);
    index->kind = row != NULL ? (enum list_kind)sqlite3_column_int(row, 0) : LIST_INDEX;
    unsigned with = row != NULL ? (unsigned)sqlite3_column_int64(row, 1) : 0;
    index->page_rows =
        page_limit_urls(row != NULL ? (uint32_t)sqlite3_column_int64(row, 2) : 0, with);
    index->page_bytes = page_limit_bytes(row != NULL ? (uint32_t)sqlite3_column_int64(row, 3) : 0);
    sqlite3_reset(row);
    index->frame_bytes =
        index->kind == LIST_URLSET ? render_urlset_frame_bytes(with) : render_frame_bytes();
    return status;
}

enum catalogue_status occupancy_index(struct tx *tx, int64_t site_id, int64_t index_id,
                                      struct occupancy_index **out)
{
    struct occupancy *occupancy = tx->occupancy;
    for (struct occupancy_index **at = &occupancy->indexes; *at != NULL; at = &(*at)->next) {
        struct occupancy_index *index = *at;
        if (index->id != index_id)
            continue;
        /* To the front of the cache: the next lookup mostly is for the same index. */
        *at = index->next;
        index->next = occupancy->indexes;
        occupancy->indexes = index;
        *out = index;
        return CATALOGUE_OK;
    }
    struct occupancy_site *site = NULL;
    enum catalogue_status status = find_site(tx, site_id, &site);
    if (status != CATALOGUE_OK)
        return status;
    struct occupancy_index *index = calloc(1, sizeof *index);
    if (index == NULL)
        return CATALOGUE_NO_MEMORY;
    index->id = index_id;
    index->site = site;
    index->first_open = 1;
    status = load_kind(tx, index);
    if (status == CATALOGUE_OK)
        status = load_pages(tx, index);
    if (status != CATALOGUE_OK) {
        occupancy->bytes -= index->page_count * OCCUPANCY_PAGE_BYTES;
        free_index(index);
        return status;
    }
    index->next = occupancy->indexes;
    occupancy->indexes = index;
    *out = index;
    return CATALOGUE_OK;
}

enum catalogue_status occupancy_load_segments(struct tx *tx, const struct occupancy_index *index,
                                              struct occupancy_page *page)
{
    if (page->segments != NULL)
        return CATALOGUE_OK;
    struct occupancy_segments *segments = calloc(1, sizeof *segments);
    if (segments == NULL)
        return CATALOGUE_NO_MEMORY;
    int64_t first = (int64_t)(page->number - 1) * PAGE_SEGMENTS;
    sqlite3_stmt *rows = tx_bind(tx, ST_SEGMENTS_READ, index->id, first, first + PAGE_SEGMENTS - 1);
    if (rows == NULL) {
        free(segments);
        return tx_failure(tx);
    }
    bool found;
    enum catalogue_status status;
    while ((status = statement_first(rows, &found)) == CATALOGUE_OK && found)
        segments->entries[sqlite3_column_int64(rows, 0) - first] =
            (uint16_t)sqlite3_column_int(rows, 1);
    sqlite3_reset(rows);
    if (status == CATALOGUE_OK)
        page->segments = segments;
    else
        free(segments);
    return status;
}

/* Loads the taken positions of segment `s` (0 to PAGE_SEGMENTS - 1). */
static enum catalogue_status load_positions(struct tx *tx, const struct occupancy_index *index,
                                            struct occupancy_page *page, uint32_t s)
{
    struct occupancy_segments *segments = page->segments;
    if (bit_is_set(segments->known, s))
        return CATALOGUE_OK;
    uint64_t *taken = segments->taken[s];
    memset(taken, 0, sizeof segments->taken[s]);
    /* Bits beyond the segment count as taken. */
    for (uint32_t bit = SEGMENT_POSITIONS; bit < OCCUPANCY_WORDS * 64; bit++)
        bit_set(taken, bit);
    if (segments->entries[s] > 0) {
        uint32_t first = (page->number - 1) * LIMIT_PAGE_ENTRIES + s * SEGMENT_POSITIONS;
        sqlite3_stmt *rows = tx_bind(tx, ST_POSITIONS_READ, id_address(index->id, first),
                                     id_address(index->id, first + SEGMENT_POSITIONS - 1));
        if (rows == NULL)
            return tx_failure(tx);
        bool found;
        enum catalogue_status status;
        while ((status = statement_first(rows, &found)) == CATALOGUE_OK && found)
            bit_set(taken, id_address_position(sqlite3_column_int64(rows, 0)) - first);
        sqlite3_reset(rows);
        if (status != CATALOGUE_OK)
            return status;
    }
    bit_set(segments->known, s);
    return CATALOGUE_OK;
}

/* The shortest loc: a page without room for it is full. */
#define LIGHTEST_LOC "http://a.b/c"
_Static_assert(sizeof LIGHTEST_LOC - 1 == LOC_MIN_CHARS, "the shortest loc");

static bool page_has_room(const struct occupancy_page *page, uint32_t weight)
{
    return page->entries < page->of->page_rows && page->bytes + weight <= page->of->page_bytes;
}

/* True if page `number` has room for an entry and, if it is empty, the site may have one more page.
 */
static bool page_eligible(const struct occupancy_index *index, const struct occupancy_room *room,
                          uint32_t number)
{
    const struct occupancy_page *page =
        number <= index->page_count ? index->pages[number - 1] : NULL;
    if (page != NULL && page->entries > 0)
        return page_has_room(page, room->weight);
    return number <= room->max_pages &&
           (index->kind == LIST_URLSET || index->site->pages_used < room->max_pages + room->spare);
}

/* The lowest page with room; 0: none. */
static uint32_t find_page(struct occupancy_index *index, const struct occupancy_room *room)
{
    uint32_t lightest = occupancy_weight(index->kind, LIGHTEST_LOC, LOC_MIN_CHARS, 0);
    while (index->first_open <= index->page_count &&
           !page_has_room(index->pages[index->first_open - 1], lightest))
        index->first_open++;
    for (uint32_t number = index->first_open; number <= index->page_count + 1; number++)
        if (page_eligible(index, room, number))
            return number;
    return 0;
}

static enum catalogue_status find_in_page(struct tx *tx, struct occupancy_index *index,
                                          struct occupancy_page *page, uint32_t *position)
{
    enum catalogue_status status = occupancy_load_segments(tx, index, page);
    if (status != CATALOGUE_OK)
        return status;
    uint32_t s = page->segments->first_open;
    while (s < PAGE_SEGMENTS && page->segments->entries[s] >= SEGMENT_POSITIONS)
        s++;
    page->segments->first_open = s;
    if (s == PAGE_SEGMENTS)
        return CATALOGUE_CORRUPT; /* the page's count says that it has room */
    status = load_positions(tx, index, page, s);
    if (status != CATALOGUE_OK)
        return status;
    const uint64_t *taken = page->segments->taken[s];
    uint32_t word = 0;
    while (word < OCCUPANCY_WORDS && taken[word] == UINT64_MAX)
        word++;
    if (word == OCCUPANCY_WORDS)
        return CATALOGUE_CORRUPT;
    uint32_t bit = word * 64 + (uint32_t)__builtin_ctzll(~taken[word]);
    *position = (page->number - 1) * LIMIT_PAGE_ENTRIES + s * SEGMENT_POSITIONS + bit;
    return CATALOGUE_OK;
}

static enum catalogue_status try_wanted(struct tx *tx, struct occupancy_index *index,
                                        const struct occupancy_room *room, bool *free_there)
{
    uint32_t number = room->wanted / LIMIT_PAGE_ENTRIES + 1;
    *free_there = false;
    if (!page_eligible(index, room, number))
        return CATALOGUE_OK;
    struct occupancy_page *page = page_of(tx, index, number);
    if (page == NULL)
        return CATALOGUE_NO_MEMORY;
    enum catalogue_status status = occupancy_load_segments(tx, index, page);
    uint32_t s = room->wanted % LIMIT_PAGE_ENTRIES / SEGMENT_POSITIONS;
    if (status == CATALOGUE_OK)
        status = load_positions(tx, index, page, s);
    if (status == CATALOGUE_OK)
        *free_there = !bit_is_set(page->segments->taken[s], room->wanted % SEGMENT_POSITIONS);
    return status;
}

enum catalogue_status occupancy_find(struct tx *tx, struct occupancy_index *index,
                                     const struct occupancy_room *room, uint32_t *position)
{
    *position = POSITION_NONE;
    if (room->wanted != POSITION_NONE) {
        bool free_there;
        enum catalogue_status status = try_wanted(tx, index, room, &free_there);
        if (status != CATALOGUE_OK)
            return status;
        if (free_there) {
            *position = room->wanted;
            return CATALOGUE_OK;
        }
    }
    uint32_t number = find_page(index, room);
    if (number == 0)
        return CATALOGUE_OK;
    struct occupancy_page *page = page_of(tx, index, number);
    return page != NULL ? find_in_page(tx, index, page, position) : CATALOGUE_NO_MEMORY;
}

void occupancy_index_dirty(struct tx *tx, struct occupancy_index *index)
{
    tx->changed = true;
    if (index->dirty)
        return;
    index->dirty = true;
    index->high = index->entries;
    index->singles = 0;
    index->moved = 0;
    index->next_dirty = tx->occupancy->dirty;
    tx->occupancy->dirty = index;
}

static void page_dirty(struct tx *tx, struct occupancy_index *index, struct occupancy_page *page)
{
    occupancy_index_dirty(tx, index);
    if (page->dirty)
        return;
    page->dirty = true;
    page->had_content = page->entries > 0;
    page->next_dirty = index->dirty_pages;
    index->dirty_pages = page;
}

/* Only pages of indexes count for the site's limit. */
static void count_page(struct occupancy_index *index, bool comes)
{
    if (index->kind == LIST_INDEX)
        index->site->pages_used += comes ? 1 : UINT32_MAX;
}

/* The page of `position` with its segments, both marked as changed. */
static enum catalogue_status open_page(struct tx *tx, struct occupancy_index *index,
                                       uint32_t position, struct occupancy_page **out)
{
    struct occupancy_page *page = page_of(tx, index, position / LIMIT_PAGE_ENTRIES + 1);
    if (page == NULL)
        return CATALOGUE_NO_MEMORY;
    enum catalogue_status status = occupancy_load_segments(tx, index, page);
    if (status != CATALOGUE_OK)
        return status;
    page_dirty(tx, index, page);
    if (index->kind == LIST_URLSET && !page->unsettled) {
        page->unsettled = true;
        page->next_unsettled = tx->occupancy->unsettled;
        tx->occupancy->unsettled = page;
    }
    bit_set(page->segments->dirty, position % LIMIT_PAGE_ENTRIES / SEGMENT_POSITIONS);
    *out = page;
    return CATALOGUE_OK;
}

enum catalogue_status occupancy_reserve(struct tx *tx, struct occupancy_index *index,
                                        uint32_t position, uint32_t weight)
{
    struct occupancy_page *page;
    enum catalogue_status status = open_page(tx, index, position, &page);
    if (status != CATALOGUE_OK)
        return status;
    uint32_t s = position % LIMIT_PAGE_ENTRIES / SEGMENT_POSITIONS;
    if (bit_is_set(page->segments->known, s))
        bit_set(page->segments->taken[s], position % SEGMENT_POSITIONS);
    page->segments->entries[s]++;
    page->bytes += weight;
    index->entries++;
    if (page->entries++ == 0)
        count_page(index, true);
    return CATALOGUE_OK;
}

enum catalogue_status occupancy_release(struct tx *tx, struct occupancy_index *index,
                                        uint32_t position, uint32_t weight)
{
    struct occupancy_page *page;
    enum catalogue_status status = open_page(tx, index, position, &page);
    if (status != CATALOGUE_OK)
        return status;
    uint32_t s = position % LIMIT_PAGE_ENTRIES / SEGMENT_POSITIONS;
    if (page->entries == 0 || page->segments->entries[s] == 0 || page->bytes < weight)
        return CATALOGUE_CORRUPT;
    if (bit_is_set(page->segments->known, s))
        bit_unset(page->segments->taken[s], position % SEGMENT_POSITIONS);
    page->segments->entries[s]--;
    if (s < page->segments->first_open)
        page->segments->first_open = s;
    page->bytes -= weight;
    index->entries--;
    if (--page->entries == 0)
        count_page(index, false);
    if (page->number < index->first_open)
        index->first_open = page->number;
    return CATALOGUE_OK;
}

void occupancy_relimit(struct occupancy_index *index, uint32_t page_rows, uint32_t page_bytes)
{
    index->page_rows = page_rows;
    index->page_bytes = page_bytes;
    index->first_open = 1;
}

enum catalogue_status occupancy_touch(struct tx *tx, struct occupancy_index *index,
                                      uint32_t position)
{
    struct occupancy_page *page;
    return open_page(tx, index, position, &page);
}

bool occupancy_may_grow(const struct occupancy_index *index, uint32_t position, uint32_t before,
                        uint32_t after)
{
    uint32_t number = position / LIMIT_PAGE_ENTRIES + 1;
    return number <= index->page_count &&
           index->pages[number - 1]->bytes - before + after <= index->page_bytes;
}

enum catalogue_status occupancy_reweigh(struct tx *tx, struct occupancy_index *index,
                                        uint32_t position, uint32_t before, uint32_t after)
{
    struct occupancy_page *page;
    enum catalogue_status status = open_page(tx, index, position, &page);
    if (status != CATALOGUE_OK)
        return status;
    if (page->bytes < before)
        return CATALOGUE_CORRUPT;
    page->bytes += (uint64_t)after - before;
    if (page->number < index->first_open)
        index->first_open = page->number;
    return CATALOGUE_OK;
}

bool occupancy_is_empty(const struct occupancy_index *index, uint32_t position)
{
    uint32_t number = position / LIMIT_PAGE_ENTRIES + 1;
    return number > index->page_count || index->pages[number - 1]->entries == 0;
}

void occupancy_touch_unseen(struct tx *tx, struct occupancy_index *index)
{
    occupancy_index_dirty(tx, index);
    index->touched = true;
}

enum catalogue_status occupancy_state(struct tx *tx, const struct occupancy_index *index, bool kept,
                                      char out[INDEX_STATE_SIZE])
{
    if (kept && (index->touched || index->dirty_pages != NULL)) {
        index_state_format(tx->epoch, tx->revision + 1, tx->drawn, out);
        return CATALOGUE_OK;
    }
    sqlite3_stmt *row;
    enum catalogue_status status = tx_first(tx, ST_INDEX_STATE, &row, index->id);
    if (status == CATALOGUE_OK)
        index_state_format(tx->epoch, row != NULL ? row_number(row, 0) : 0,
                           row != NULL ? sqlite3_column_int64(row, 1) : 0, out);
    sqlite3_reset(row);
    return status;
}

bool occupancy_would_empty(const struct occupancy_index *index, uint32_t position)
{
    uint32_t number = position / LIMIT_PAGE_ENTRIES + 1;
    return number <= index->page_count && index->pages[number - 1]->entries == 1;
}

void occupancy_bury(struct tx *tx, struct occupancy_index *index)
{
    for (uint32_t i = 0; i < index->page_count; i++) {
        if (index->pages[i]->entries == 0)
            continue;
        page_dirty(tx, index, index->pages[i]);
        count_page(index, false);
    }
    occupancy_index_dirty(tx, index);
    index->buried = true;
}

void occupancy_unbury(struct tx *tx, struct occupancy_index *index)
{
    for (uint32_t i = 0; i < index->page_count; i++) {
        if (index->pages[i]->entries == 0)
            continue;
        page_dirty(tx, index, index->pages[i]);
        index->pages[i]->had_content = false;
        count_page(index, true);
    }
    occupancy_index_dirty(tx, index);
}

static enum catalogue_status write_segments(struct tx *tx, const struct occupancy_index *index,
                                            const struct occupancy_page *page, uint64_t revision)
{
    const struct occupancy_segments *segments = page->segments;
    enum catalogue_status status = CATALOGUE_OK;
    for (uint32_t s = 0; status == CATALOGUE_OK && s < PAGE_SEGMENTS; s++) {
        if (!bit_is_set(segments->dirty, s))
            continue;
        status = tx_run(tx, ST_SEGMENT_WRITE, index->id,
                        (sqlite3_int64)(page->number - 1) * PAGE_SEGMENTS + s, segments->entries[s],
                        (sqlite3_int64)revision);
    }
    return status;
}

/* Whether another page, existing or removed, was served with a date of this second. */
struct second {
    int64_t at;
    bool seen;
};

/* Number of last changed pages that are read: after the clock went back, those of this second need
 * not be the very last. */
#define SECOND_LAST_PAGES 4096

static bool is_removed(const struct occupancy_index *index, const struct occupancy_page *page)
{
    return page->had_content && (index->buried || page->entries == 0);
}

/* Whether another page may have had this page's URL, as after an index or a site was created again.
 */
static bool reuses_address(const struct occupancy_index *index, const struct occupancy_page *page)
{
    return !page->had_content && !index->buried;
}

static enum catalogue_status read_second(struct tx *tx, struct second *out)
{
    bool asked = false;
    for (struct occupancy_index *index = tx->occupancy->dirty; index != NULL;
         index = index->next_dirty) {
        for (struct occupancy_page *page = index->dirty_pages; page != NULL;
             page = page->next_dirty) {
            asked |= reuses_address(index, page);
            out->seen |= is_removed(index, page) && page->changed_at >= out->at;
        }
    }
    if (!asked || out->seen)
        return CATALOGUE_OK;
    int64_t seen = 0;
    enum catalogue_status status =
        tx_number(tx, ST_PAGES_OF_SECOND, 0, &seen, out->at, SECOND_LAST_PAGES);
    out->seen = seen != 0;
    return status;
}

/* Detects two versions with the same date: If-Modified-Since cannot distinguish them and must not
 * be answered with 304. After the clock went back, the same seconds pass again. */
static int64_t check_date(const struct occupancy_index *index, const struct occupancy_page *page,
                          const struct second *second)
{
    int64_t until = page->same_second > 1 ? page->same_second : 0;
    if (page->had_content && page->changed_at > second->at && page->changed_at > until)
        until = page->changed_at;
    if (until >= second->at)
        return until;
    return (page->changed_at == second->at && (page->had_content || page->same_second != 0)) ||
           (reuses_address(index, page) && second->seen);
}

static enum catalogue_status write_page(struct tx *tx, const struct occupancy_index *index,
                                        struct occupancy_page *page, uint64_t revision,
                                        const struct second *second)
{
    page->same_second = check_date(index, page, second);
    page->changed_at = second->at;
    enum catalogue_status status = tx_run(tx, ST_PAGE_WRITE, index->id, page->number, page->entries,
                                          (sqlite3_int64)page->bytes, page->changed_at,
                                          page->same_second, (sqlite3_int64)revision, tx->drawn);
    if (status == CATALOGUE_OK && page->segments != NULL && !index->buried)
        status = write_segments(tx, index, page, revision);
    return status;
}

enum catalogue_status occupancy_write(struct tx *tx, uint64_t revision, int64_t changed_at,
                                      bool *pages_differ)
{
    struct second second = {.at = changed_at};
    enum catalogue_status status = read_second(tx, &second);
    if (status != CATALOGUE_OK)
        return status;
    for (struct occupancy_index *index = tx->occupancy->dirty; index != NULL;
         index = index->next_dirty) {
        for (struct occupancy_page *page = index->dirty_pages; page != NULL;
             page = page->next_dirty) {
            if (index->buried || page->had_content != (page->entries > 0))
                *pages_differ = true;
            status = write_page(tx, index, page, revision, &second);
            if (status != CATALOGUE_OK)
                return status;
        }
        if (index->touched)
            status = tx_run(tx, ST_INDEX_TOUCH, index->id, (sqlite3_int64)revision, tx->drawn);
        if (!index->buried && status == CATALOGUE_OK)
            status = occupancy_write_peak(tx, index, changed_at);
        if (status != CATALOGUE_OK)
            return status;
    }
    return CATALOGUE_OK;
}

/* The peaks of an index, a row for each of the last days: what the shrink guard (guard.h) compares
 * with. A day's peak is the most entries that the index had at a transaction's end; a single
 * removal lowers all of them, an approved set of changes resets them. */

static int64_t day_of(int64_t now)
{
    return now / DAY_SECONDS;
}

/* The last day that no longer counts. */
static int64_t day_past(int64_t now)
{
    return day_of(now) - PEAK_DAYS - 1;
}

enum catalogue_status occupancy_peak(struct tx *tx, const struct occupancy_index *index,
                                     uint64_t *peak)
{
    int64_t highest;
    enum catalogue_status status =
        tx_number(tx, ST_PEAK_READ, 0, &highest, index->id, day_past(tx->now));
    if (status != CATALOGUE_OK)
        return status;
    *peak = highest > 0 ? (uint64_t)highest : 0;
    if (index->dirty) {
        /* Single removals of this transaction are not in the file yet. */
        *peak -= index->singles < *peak ? index->singles : *peak;
        if (index->high > *peak)
            *peak = index->high;
    }
    if (index->entries > *peak)
        *peak = index->entries;
    return CATALOGUE_OK;
}

void occupancy_single_removal(struct occupancy_index *index)
{
    index->singles++;
    if (index->high > 0)
        index->high--;
    if (index->high < index->entries)
        index->high = index->entries;
}

static enum catalogue_status lower(struct tx *tx, const struct occupancy_index *index, int64_t by)
{
    return tx_run(tx, ST_PEAK_LOWER, index->id, by, (sqlite3_int64)index->entries);
}

/* Peaks with a future day, recorded while the clock was ahead, become today's: otherwise they would
 * count until that day. */
static enum catalogue_status settle_future(struct tx *tx, const struct occupancy_index *index,
                                           int64_t today, uint64_t *high)
{
    int64_t highest;
    enum catalogue_status status = tx_number(tx, ST_PEAK_READ, -1, &highest, index->id, today);
    if (status != CATALOGUE_OK || highest < 0)
        return status;
    if ((uint64_t)highest > *high)
        *high = (uint64_t)highest;
    return tx_run(tx, ST_PEAK_FUTURE_DROP, index->id, today);
}

enum catalogue_status occupancy_write_peak(struct tx *tx, const struct occupancy_index *index,
                                           int64_t changed_at)
{
    enum catalogue_status status = CATALOGUE_OK;
    if (index->peak_reset)
        status = lower(tx, index, INT32_MAX); /* more than an index can have */
    else if (index->singles > 0)
        status = lower(tx, index, (int64_t)index->singles);
    if (status != CATALOGUE_OK)
        return status;

    uint64_t high = index->entries;
    if (!index->peak_reset && index->high > high)
        high = index->high;
    status = settle_future(tx, index, day_of(changed_at), &high);
    if (status != CATALOGUE_OK)
        return status;
    status = tx_run(tx, ST_PEAK_RAISE, index->id, day_of(changed_at), (sqlite3_int64)high);
    if (status != CATALOGUE_OK)
        return status;

    return tx_run(tx, ST_PEAK_FORGET, index->id, day_past(changed_at));
}
