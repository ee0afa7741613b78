/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The entries of a urlset's pages in its index (entry.h). They are registered like all others, so
 * put_room and put_write of a page URL call themselves once for the page's entry. */
#include <string.h>

#include "db/read/row.h"
#include "db/write/apply/apply.h"
#include "db/write/apply/entry.h"
#include "server/rules/lastmod.h"
#include "server/rules/scope.h"

/* ---- the entry of a page */

/* One page's entry on its way into the index. */
struct page_entry {
    char loc[LOC_MAX_CHARS + 1];
    char lastmod[21];
    struct entry entry;
    struct put put;
};

/* Finds the stored entry; put.from is NULL if none exists. */
static enum catalogue_status find_entry(struct tx *tx, const struct registry_index *urlset,
                                        uint32_t number, struct page_entry *e)
{
    const struct registry *r;
    char path[PAGE_PATH_SIZE];
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    const struct registry_site *site = registry_site_by_id(r, urlset->site_id);
    const struct registry_index *index = registry_index_by_id(r, urlset->of_index);
    if (!site || !index)
        return CATALOGUE_CORRUPT;
    scope_page_path(urlset->path, urlset->page_pattern, number, false, path);
    int len = snprintf(e->loc, sizeof e->loc, "%s%s", site->origin, path);
    e->entry = (struct entry){.loc = e->loc, .position = POSITION_NONE};
    e->put = (struct put){.entry = &e->entry,
                          .owner = -urlset->id,
                          .registry = r,
                          .site = site,
                          .index = index,
                          .position = POSITION_NONE};
    if (len < 0 || (size_t)len >= sizeof e->loc || !url_split(e->loc, (size_t)len, &e->put.url))
        return CATALOGUE_CORRUPT;
    status = put_find(tx, site->id, e->loc, &e->put.row);
    if (status == CATALOGUE_OK && e->put.row.found)
        e->put.from = registry_index_by_id(r, id_address_index(e->put.row.address));
    return status;
}

/* Finds a position for it; sets `code` of its put. One that was registered before the urlset
 * existed is taken over, in its position if that is in the index. */
static enum catalogue_status make_room(struct tx *tx, struct page_entry *e)
{
    struct put *put = &e->put;
    if (put->from != put->index || put->row.source == put->owner)
        return put_room(tx, put);
    put->relocates = true;
    put->position = id_address_position(put->row.address);
    put->weight = put_row_weight(put->index, &put->row, e->loc);
    return occupancy_index(tx, put->site->id, put->index->id, &put->occupancy);
}

bool urlset_read_time(const char *text, size_t len, int64_t *out)
{
    struct lastmod time;
    if (lastmod_parse(text, len, INT64_MAX / 2, &time, NULL) != RULE_OK)
        return false;
    *out = time.unix_seconds;
    return true;
}

/* The date of its page, now; but never earlier than before, even if the clock was set back:
 * crawlers would skip the change. */
static int64_t date_of(struct tx *tx, const struct put *put)
{
    int64_t now = tx_date(tx), had;
    bool dated = put->row.found && put->row.source == put->owner && put->row.has_lastmod &&
                 urlset_read_time(put->row.lastmod, strlen(put->row.lastmod), &had);
    return dated && had > now && had - now <= CLOCK_SLACK_SECONDS ? had : now;
}

#define UNDATED   (-1)
#define DATED_NOW 0

/* `at`: when the page changed, or UNDATED or DATED_NOW. */
static enum catalogue_status write_entry(struct tx *tx, const struct registry_index *urlset,
                                         uint32_t number, int64_t at, enum rule_code *code)
{
    struct page_entry e;
    enum catalogue_status status = find_entry(tx, urlset, number, &e);
    if (status == CATALOGUE_OK && at != UNDATED) {
        lastmod_format_utc(at == DATED_NOW ? date_of(tx, &e.put) : at, e.lastmod);
        e.entry.lastmod = e.lastmod;
        e.entry.lastmod_state = FIELD_SET;
    }
    if (status == CATALOGUE_OK)
        status = make_room(tx, &e);
    *code = e.put.code;
    if (status != CATALOGUE_OK || *code != RULE_OK)
        return status;
    return put_write(tx, &e.put);
}

static enum catalogue_status drop_entry(struct tx *tx, const struct registry_index *urlset,
                                        uint32_t number)
{
    struct page_entry e;
    enum catalogue_status status = find_entry(tx, urlset, number, &e);
    if (status != CATALOGUE_OK || !e.put.from || e.put.row.source != e.put.owner)
        return status;
    tx->changed = true;
    return put_remove(tx, e.put.from, &e.put.row, e.loc);
}

/* ---- rows come and go */

enum catalogue_status urlset_find(struct tx *tx, const struct registry_index *list,
                                  struct occupancy_index *occupancy,
                                  const struct occupancy_room *room, uint32_t *position,
                                  enum rule_code *code)
{
    enum catalogue_status status = occupancy_find(tx, occupancy, room, position);
    *code = RULE_OK;
    if (status != CATALOGUE_OK)
        return status;
    if (*position == POSITION_NONE)
        *code = list->kind == LIST_URLSET ? RULE_URLSET_FULL : RULE_SITE_FULL;
    else if (list->kind == LIST_URLSET && occupancy_is_empty(occupancy, *position)) {
        struct page_entry e;
        status = find_entry(tx, list, *position / LIMIT_PAGE_ENTRIES + 1, &e);
        if (status == CATALOGUE_OK)
            status = make_room(tx, &e);
        *code = e.put.code;
    }
    return status;
}

enum catalogue_status urlset_reserve(struct tx *tx, const struct registry_index *list,
                                     struct occupancy_index *occupancy, uint32_t position,
                                     uint32_t weight)
{
    enum rule_code code = RULE_OK;
    bool comes = list->kind == LIST_URLSET && occupancy_is_empty(occupancy, position);
    enum catalogue_status status = occupancy_reserve(tx, occupancy, position, weight);
    if (status == CATALOGUE_OK && comes)
        status = write_entry(tx, list, position / LIMIT_PAGE_ENTRIES + 1, UNDATED, &code);
    return status == CATALOGUE_OK && code != RULE_OK ? CATALOGUE_CORRUPT : status;
}

enum catalogue_status urlset_settle(struct tx *tx)
{
    struct occupancy *occupancy = tx->occupancy;
    const struct registry *r;
    if (!occupancy->unsettled)
        return CATALOGUE_OK;
    enum catalogue_status status = tx_registry(tx, &r);
    while (status == CATALOGUE_OK && occupancy->unsettled) {
        struct occupancy_page *page = occupancy->unsettled;
        const struct registry_index *urlset = registry_list_by_id(r, page->of->id);
        enum rule_code code = RULE_OK;
        occupancy->unsettled = page->next_unsettled;
        page->unsettled = false;
        if (urlset && page->entries == 0)
            status = drop_entry(tx, urlset, page->number);
        else if (urlset)
            status = write_entry(tx, urlset, page->number, DATED_NOW, &code);
        if (code != RULE_OK)
            status = CATALOGUE_CORRUPT;
    }
    return status;
}

/* Pages between two checks whether others wait: a few milliseconds. */
#define PAGES_A_LOOK 100

static bool pages_end(struct tx *tx, const struct change *change, uint32_t done,
                      struct change_result *result)
{
    if (done % PAGES_A_LOOK != PAGES_A_LOOK - 1 || !list_ends(tx, change, result))
        return false;
    if (result->code == RULE_LIST_TOO_LONG)
        snprintf(result->detail, sizeof result->detail,
                 "has too many pages for one change by a token for one site: other sites' writes "
                 "would time out; a token for all sites can do it");
    return true;
}

enum catalogue_status urlset_leave(struct tx *tx, const struct registry_index *urlset,
                                   const struct change *change, struct change_result *result)
{
    struct occupancy_index *occupancy;
    enum catalogue_status status = occupancy_index(tx, urlset->site_id, urlset->id, &occupancy);
    for (uint32_t i = 0;
         status == CATALOGUE_OK && i < occupancy->page_count && !pages_end(tx, change, i, result);
         i++)
        if (occupancy->pages[i]->entries > 0)
            status = drop_entry(tx, urlset, i + 1);
    return status;
}

enum catalogue_status urlset_return(struct tx *tx, const struct registry_index *urlset,
                                    const struct change *change, struct change_result *result)
{
    struct occupancy_index *occupancy;
    enum rule_code code = RULE_OK;
    enum catalogue_status status = occupancy_index(tx, urlset->site_id, urlset->id, &occupancy);
    for (uint32_t i = 0; status == CATALOGUE_OK && code == RULE_OK && i < occupancy->page_count &&
                         !pages_end(tx, change, i, result);
         i++) {
        const struct occupancy_page *page = occupancy->pages[i];
        if (page->entries > 0)
            status =
                write_entry(tx, urlset, i + 1, page->dirty ? DATED_NOW : page->changed_at, &code);
    }
    if (status == CATALOGUE_OK && code != RULE_OK)
        result_refuse(result, code, "index");
    return status;
}
