#include <string.h>

#include "db/fill.h"
#include "db/tx.h"
#include "server/rules/entry.h"
#include "server/rules/render.h"

/* The lightest loc there can be: a page without room for it has room for none. */
#define LIGHTEST_LOC "http://a.b/c"
_Static_assert(sizeof LIGHTEST_LOC - 1 == LOC_MIN_CHARS, "the shortest loc");

static bool page_has_room(const struct fill_page *page, uint32_t weight)
{
    return page->entries < LIMIT_PAGE_ENTRIES && page->bytes + weight <= LIMIT_PAGE_BYTES;
}

/* True where an entry may come to page `number`: there is room, and if it is empty now, the site
 * may have one more page. */
static bool page_eligible(const struct fill_index *index, const struct fill_room *room,
                          uint32_t number)
{
    const struct fill_page *page = number <= index->page_count ? index->pages[number - 1] : NULL;
    if (page && page->entries > 0)
        return page_has_room(page, room->weight);
    return number <= room->max_pages && index->site->pages_used < room->max_pages + room->spare;
}

/* The lowest page that may take it; 0 where none may. */
static uint32_t find_page(struct fill_index *index, const struct fill_room *room)
{
    uint32_t lightest = render_entry_bytes(LIGHTEST_LOC, LOC_MIN_CHARS);
    while (index->first_open <= index->page_count &&
           !page_has_room(index->pages[index->first_open - 1], lightest))
        index->first_open++;
    for (uint32_t number = index->first_open; number <= index->page_count + 1; number++)
        if (page_eligible(index, room, number))
            return number;
    return 0;
}

static enum catalogue_status find_in_page(struct tx *tx, struct fill_index *index,
                                          struct fill_page *page, uint32_t *position)
{
    enum catalogue_status status = fill_load_segments(tx, index, page);
    if (status != CATALOGUE_OK)
        return status;
    uint32_t s = page->segments->first_open;
    while (s < PAGE_SEGMENTS && page->segments->entries[s] >= SEGMENT_POSITIONS)
        s++;
    page->segments->first_open = s;
    if (s == PAGE_SEGMENTS)
        return CATALOGUE_CORRUPT; /* the page said that it has room */
    status = fill_load_taken(tx, index, page, s);
    if (status != CATALOGUE_OK)
        return status;
    const uint64_t *taken = page->segments->taken[s];
    uint32_t word = 0;
    while (word < FILL_WORDS && taken[word] == UINT64_MAX)
        word++;
    if (word == FILL_WORDS)
        return CATALOGUE_CORRUPT;
    uint32_t bit = word * 64 + (uint32_t)__builtin_ctzll(~taken[word]);
    *position = (page->number - 1) * LIMIT_PAGE_ENTRIES + s * SEGMENT_POSITIONS + bit;
    return CATALOGUE_OK;
}

static enum catalogue_status try_wanted(struct tx *tx, struct fill_index *index,
                                        const struct fill_room *room, bool *free_there)
{
    uint32_t number = room->wanted / LIMIT_PAGE_ENTRIES + 1;
    *free_there = false;
    if (!page_eligible(index, room, number))
        return CATALOGUE_OK;
    struct fill_page *page = fill_page(tx, index, number);
    if (!page)
        return CATALOGUE_NO_MEMORY;
    enum catalogue_status status = fill_load_segments(tx, index, page);
    uint32_t s = room->wanted % LIMIT_PAGE_ENTRIES / SEGMENT_POSITIONS;
    if (status == CATALOGUE_OK)
        status = fill_load_taken(tx, index, page, s);
    if (status == CATALOGUE_OK)
        *free_there = !fill_bit(page->segments->taken[s], room->wanted % SEGMENT_POSITIONS);
    return status;
}

enum catalogue_status fill_find(struct tx *tx, struct fill_index *index,
                                const struct fill_room *room, uint32_t *position)
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
    struct fill_page *page = fill_page(tx, index, number);
    return page ? find_in_page(tx, index, page, position) : CATALOGUE_NO_MEMORY;
}

void fill_index_dirty(struct tx *tx, struct fill_index *index)
{
    tx->changed = true;
    if (index->dirty)
        return;
    index->dirty = true;
    index->high = index->entries;
    index->singles = 0;
    index->next_dirty = tx->fill->dirty;
    tx->fill->dirty = index;
}

static void page_dirty(struct tx *tx, struct fill_index *index, struct fill_page *page)
{
    fill_index_dirty(tx, index);
    if (page->dirty)
        return;
    page->dirty = true;
    page->had_content = page->entries > 0;
    page->next_dirty = index->dirty_pages;
    index->dirty_pages = page;
}

/* The page of `position` with its segments, both marked as changed. */
static enum catalogue_status open_page(struct tx *tx, struct fill_index *index, uint32_t position,
                                       struct fill_page **out)
{
    struct fill_page *page = fill_page(tx, index, position / LIMIT_PAGE_ENTRIES + 1);
    if (!page)
        return CATALOGUE_NO_MEMORY;
    enum catalogue_status status = fill_load_segments(tx, index, page);
    if (status != CATALOGUE_OK)
        return status;
    page_dirty(tx, index, page);
    fill_set(page->segments->dirty, position % LIMIT_PAGE_ENTRIES / SEGMENT_POSITIONS);
    *out = page;
    return CATALOGUE_OK;
}

enum catalogue_status fill_take(struct tx *tx, struct fill_index *index, uint32_t position,
                                uint32_t weight)
{
    struct fill_page *page;
    enum catalogue_status status = open_page(tx, index, position, &page);
    if (status != CATALOGUE_OK)
        return status;
    uint32_t s = position % LIMIT_PAGE_ENTRIES / SEGMENT_POSITIONS;
    if (fill_bit(page->segments->known, s))
        fill_set(page->segments->taken[s], position % SEGMENT_POSITIONS);
    page->segments->entries[s]++;
    page->bytes += weight;
    index->entries++;
    if (page->entries++ == 0)
        index->site->pages_used++;
    return CATALOGUE_OK;
}

enum catalogue_status fill_release(struct tx *tx, struct fill_index *index, uint32_t position,
                                   uint32_t weight)
{
    struct fill_page *page;
    enum catalogue_status status = open_page(tx, index, position, &page);
    if (status != CATALOGUE_OK)
        return status;
    uint32_t s = position % LIMIT_PAGE_ENTRIES / SEGMENT_POSITIONS;
    if (page->entries == 0 || page->segments->entries[s] == 0 || page->bytes < weight)
        return CATALOGUE_CORRUPT;
    if (fill_bit(page->segments->known, s))
        fill_unset(page->segments->taken[s], position % SEGMENT_POSITIONS);
    page->segments->entries[s]--;
    if (s < page->segments->first_open)
        page->segments->first_open = s;
    page->bytes -= weight;
    index->entries--;
    if (--page->entries == 0)
        index->site->pages_used--;
    if (page->number < index->first_open)
        index->first_open = page->number;
    return CATALOGUE_OK;
}

enum catalogue_status fill_touch(struct tx *tx, struct fill_index *index, uint32_t position)
{
    struct fill_page *page;
    return open_page(tx, index, position, &page);
}

bool fill_would_empty(const struct fill_index *index, uint32_t position)
{
    uint32_t number = position / LIMIT_PAGE_ENTRIES + 1;
    return number <= index->page_count && index->pages[number - 1]->entries == 1;
}

void fill_bury(struct tx *tx, struct fill_index *index)
{
    for (uint32_t i = 0; i < index->page_count; i++) {
        if (index->pages[i]->entries == 0)
            continue;
        page_dirty(tx, index, index->pages[i]);
        index->site->pages_used--;
    }
    fill_index_dirty(tx, index);
    index->buried = true;
}
