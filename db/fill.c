#include "db/fill.h"

#include <stdlib.h>
#include <string.h>

#include "db/id.h"
#include "db/tx.h"
#include "server/rules/render.h"

struct fill *fill_new(void)
{
    return calloc(1, sizeof(struct fill));
}

static void free_index(struct fill_index *index)
{
    for (uint32_t i = 0; i < index->page_count; i++) {
        free(index->pages[i]->segments);
        free(index->pages[i]);
    }
    free(index->pages);
    free(index);
}

void fill_drop(struct fill *fill)
{
    while (fill->indexes) {
        struct fill_index *index = fill->indexes;
        fill->indexes = index->next;
        free_index(index);
    }
    while (fill->sites) {
        struct fill_site *site = fill->sites;
        fill->sites = site->next;
        free(site);
    }
    fill->dirty = NULL;
    fill->bytes = 0;
}

void fill_free(struct fill *fill)
{
    if (!fill)
        return;
    fill_drop(fill);
    free(fill);
}

static void settle_index(struct fill_index *index)
{
    for (struct fill_page *page = index->dirty_pages; page; page = page->next_dirty) {
        page->dirty = false;
        if (page->segments)
            memset(page->segments->dirty, 0, sizeof page->segments->dirty);
    }
    index->dirty_pages = NULL;
    index->dirty = false;
    index->peak_reset = false;
    index->singles = 0;
}

void fill_settle(struct fill *fill)
{
    for (struct fill_index *index = fill->dirty; index; index = index->next_dirty)
        settle_index(index);
    fill->dirty = NULL;
    for (struct fill_index **at = &fill->indexes; *at;) {
        struct fill_index *index = *at;
        if (index->buried) {
            *at = index->next;
            fill->bytes -= index->page_count * FILL_PAGE_BYTES;
            free_index(index);
        } else {
            at = &index->next;
        }
    }
    if (fill->bytes > FILL_MAX_BYTES)
        fill_drop(fill);
}

static enum catalogue_status find_site(struct tx *tx, int64_t id, struct fill_site **out)
{
    struct fill *fill = tx->fill;
    for (struct fill_site *site = fill->sites; site; site = site->next) {
        if (site->id == id) {
            *out = site;
            return CATALOGUE_OK;
        }
    }
    /* No index of this site is cached, so none of its pages differs from the file. */
    sqlite3_stmt *count = tx_statement(tx, ST_SITE_PAGES_USED);
    if (!count)
        return tx_failure(tx);
    sqlite3_bind_int64(count, 1, id);
    int64_t used;
    enum catalogue_status status = statement_number(count, 0, &used);
    if (status != CATALOGUE_OK)
        return status;
    struct fill_site *site = calloc(1, sizeof *site);
    if (!site)
        return CATALOGUE_NO_MEMORY;
    site->id = id;
    site->pages_used = (uint32_t)used;
    site->next = fill->sites;
    fill->sites = site;
    *out = site;
    return CATALOGUE_OK;
}

static bool reserve_pages(struct fill_index *index, uint32_t count)
{
    if (count <= index->page_capacity)
        return true;
    uint32_t capacity = index->page_capacity ? index->page_capacity : 4;
    while (capacity < count)
        capacity *= 2;
    struct fill_page **pages = realloc(index->pages, capacity * sizeof(struct fill_page *));
    if (!pages)
        return false;
    index->pages = pages;
    index->page_capacity = capacity;
    return true;
}

struct fill_page *fill_page(struct tx *tx, struct fill_index *index, uint32_t number)
{
    if (!reserve_pages(index, number))
        return NULL;
    while (index->page_count < number) {
        struct fill_page *page = calloc(1, sizeof *page);
        if (!page)
            return NULL;
        page->number = index->page_count + 1;
        page->bytes = render_frame_bytes();
        index->pages[index->page_count++] = page;
        tx->fill->bytes += FILL_PAGE_BYTES;
    }
    return index->pages[number - 1];
}

static enum catalogue_status load_pages(struct tx *tx, struct fill_index *index)
{
    sqlite3_stmt *rows = tx_statement(tx, ST_PAGES_READ);
    if (!rows)
        return tx_failure(tx);
    sqlite3_bind_int64(rows, 1, index->id);
    bool found;
    enum catalogue_status status;
    while ((status = statement_first(rows, &found)) == CATALOGUE_OK && found) {
        int64_t number = sqlite3_column_int64(rows, 0);
        if (number < 1 || number > UINT32_MAX / LIMIT_PAGE_ENTRIES) {
            status = CATALOGUE_CORRUPT;
            break;
        }
        struct fill_page *page = fill_page(tx, index, (uint32_t)number);
        if (!page) {
            status = CATALOGUE_NO_MEMORY;
            break;
        }
        page->entries = (uint32_t)sqlite3_column_int64(rows, 1);
        page->bytes = (uint64_t)sqlite3_column_int64(rows, 2);
        page->changed_at = sqlite3_column_int64(rows, 3);
        page->same_second = sqlite3_column_int(rows, 4) != 0;
        index->entries += page->entries;
    }
    sqlite3_reset(rows);
    return status;
}

enum catalogue_status fill_index(struct tx *tx, int64_t site_id, int64_t index_id,
                                 struct fill_index **out)
{
    struct fill *fill = tx->fill;
    for (struct fill_index **at = &fill->indexes; *at; at = &(*at)->next) {
        struct fill_index *index = *at;
        if (index->id != index_id)
            continue;
        /* To the front: the one used last is looked for next. */
        *at = index->next;
        index->next = fill->indexes;
        fill->indexes = index;
        *out = index;
        return CATALOGUE_OK;
    }
    struct fill_site *site = NULL;
    enum catalogue_status status = find_site(tx, site_id, &site);
    if (status != CATALOGUE_OK)
        return status;
    struct fill_index *index = calloc(1, sizeof *index);
    if (!index)
        return CATALOGUE_NO_MEMORY;
    index->id = index_id;
    index->site = site;
    index->first_open = 1;
    status = load_pages(tx, index);
    if (status != CATALOGUE_OK) {
        fill->bytes -= index->page_count * FILL_PAGE_BYTES;
        free_index(index);
        return status;
    }
    index->next = fill->indexes;
    fill->indexes = index;
    *out = index;
    return CATALOGUE_OK;
}

enum catalogue_status fill_load_segments(struct tx *tx, const struct fill_index *index,
                                         struct fill_page *page)
{
    if (page->segments)
        return CATALOGUE_OK;
    struct fill_segments *segments = calloc(1, sizeof *segments);
    if (!segments)
        return CATALOGUE_NO_MEMORY;
    int64_t first = (int64_t)(page->number - 1) * PAGE_SEGMENTS;
    sqlite3_stmt *rows = tx_statement(tx, ST_SEGMENTS_READ);
    if (!rows) {
        free(segments);
        return tx_failure(tx);
    }
    sqlite3_bind_int64(rows, 1, index->id);
    sqlite3_bind_int64(rows, 2, first);
    sqlite3_bind_int64(rows, 3, first + PAGE_SEGMENTS - 1);
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

enum catalogue_status fill_load_taken(struct tx *tx, const struct fill_index *index,
                                      struct fill_page *page, uint32_t s)
{
    struct fill_segments *segments = page->segments;
    if (fill_bit(segments->known, s))
        return CATALOGUE_OK;
    uint64_t *taken = segments->taken[s];
    memset(taken, 0, sizeof segments->taken[s]);
    /* The words are longer than the segment: what is beyond it is never free. */
    for (uint32_t bit = SEGMENT_POSITIONS; bit < FILL_WORDS * 64; bit++)
        fill_set(taken, bit);
    if (segments->entries[s] > 0) {
        uint32_t first = (page->number - 1) * LIMIT_PAGE_ENTRIES + s * SEGMENT_POSITIONS;
        sqlite3_stmt *rows = tx_statement(tx, ST_POSITIONS_READ);
        if (!rows)
            return tx_failure(tx);
        sqlite3_bind_int64(rows, 1, id_address(index->id, first));
        sqlite3_bind_int64(rows, 2, id_address(index->id, first + SEGMENT_POSITIONS - 1));
        bool found;
        enum catalogue_status status;
        while ((status = statement_first(rows, &found)) == CATALOGUE_OK && found)
            fill_set(taken, id_address_position(sqlite3_column_int64(rows, 0)) - first);
        sqlite3_reset(rows);
        if (status != CATALOGUE_OK)
            return status;
    }
    fill_set(segments->known, s);
    return CATALOGUE_OK;
}
