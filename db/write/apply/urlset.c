#include "db/write/apply/urlset.h"

#include <stdio.h>
#include <string.h>

#include "db/read/row.h"
#include "db/write/apply/apply.h"
#include "server/rules/lastmod.h"
#include "server/rules/page/extension.h"
#include "server/rules/scope.h"

/* ---- the entry of a page */

/* One page's entry on its way into the index. */
struct page_entry {
    char loc[LOC_MAX_CHARS + 1];
    char lastmod[21];
    struct entry entry;
    struct put put;
};

/* Finds the entry as it is: put.from is NULL where there is none. */
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

/* Finds room for it; `code` of its put tells. One that somebody registered before there was the
 * urlset is taken over, at its place where that is in the index. */
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

static bool read_time(const char *text, size_t len, int64_t *out)
{
    struct lastmod time;
    if (lastmod_parse(text, len, INT64_MAX / 2, &time, NULL) != RULE_OK)
        return false;
    *out = time.unix_seconds;
    return true;
}

/* That of its page, which is now; but a clock that was set right does not take it back, or crawlers
 * would skip the change. */
static int64_t date_of(struct tx *tx, const struct put *put)
{
    int64_t now = tx_date(tx), had;
    bool dated = put->row.found && put->row.source == put->owner && put->row.has_lastmod &&
                 read_time(put->row.lastmod, strlen(put->row.lastmod), &had);
    return dated && had > now && had - now <= CLOCK_SLACK_SECONDS ? had : now;
}

#define UNDATED   (-1)
#define DATED_NOW 0

/* `at`: when the page changed; or one of those. */
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
    return put_take_out(tx, e.put.from, &e.put.row, e.loc);
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

enum catalogue_status urlset_take(struct tx *tx, const struct registry_index *list,
                                  struct occupancy_index *occupancy, uint32_t position,
                                  uint32_t weight)
{
    enum rule_code code = RULE_OK;
    bool comes = list->kind == LIST_URLSET && occupancy_is_empty(occupancy, position);
    enum catalogue_status status = occupancy_take(tx, occupancy, position, weight);
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

static enum catalogue_status open_urlset(struct tx *tx, const struct registry_index *urlset,
                                         struct occupancy_index **out)
{
    return occupancy_index(tx, urlset->site_id, urlset->id, out);
}

/* Pages between two looks at who waits: some milliseconds. */
#define PAGES_A_LOOK 100

static bool pages_end(struct tx *tx, const struct change *change, uint32_t done,
                      struct change_result *result)
{
    if (done % PAGES_A_LOOK != PAGES_A_LOOK - 1 || !list_ends(tx, change, result))
        return false;
    snprintf(result->detail, sizeof result->detail,
             "has too many pages for one change: other sites' writes would time out");
    return true;
}

enum catalogue_status urlset_leave(struct tx *tx, const struct registry_index *urlset,
                                   const struct change *change, struct change_result *result)
{
    struct occupancy_index *occupancy;
    enum catalogue_status status = open_urlset(tx, urlset, &occupancy);
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
    enum catalogue_status status = open_urlset(tx, urlset, &occupancy);
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

/* ---- age */

#define NEWS_DATE "<news:publication_date>"

static int64_t dated_at(const struct put_row *row)
{
    const char *date = row->extensions ? strstr(row->extensions, NEWS_DATE) : NULL;
    int64_t at;
    if (date) {
        date += strlen(NEWS_DATE);
        if (read_time(date, strcspn(date, "<"), &at))
            return at;
    }
    if (row->has_lastmod && read_time(row->lastmod, strlen(row->lastmod), &at))
        return at;
    return row->registered_at;
}

bool urlset_is_expired(const struct tx *tx, const struct put *put)
{
    struct put_row then;
    if (put->index->expires_s == 0)
        return false;
    put_merge(tx, put, &then);
    return dated_at(&then) <= tx->now - put->index->expires_s;
}

enum catalogue_status urlset_record_age(struct tx *tx, const struct registry_index *list,
                                        const struct put_row *row)
{
    if (list->expires_s == 0)
        return CATALOGUE_OK;
    return tx_run(tx, ST_AGE_PUT, row->address, list->id, dated_at(row));
}

/* As few as leave others their turn: some ten milliseconds. */
#define EXPIRE_ROWS      2000u
#define EXPIRE_ROW_BYTES 16384u /* a row with more extensions counts as several */

/* What is noted of an address may be of a row that went, or was written anew since. */
static enum catalogue_status expire_row(struct tx *tx, const struct registry_index *urlset,
                                        int64_t address, size_t *bytes,
                                        struct change_result *result)
{
    struct put_row row;
    char loc[LOC_MAX_CHARS + 1];
    bool found;
    sqlite3_stmt *at = tx_statement(tx, ST_ENTRY_BY_ADDRESS);
    if (!at)
        return tx_failure(tx);
    sqlite3_bind_int64(at, 1, address);
    enum catalogue_status status = statement_first(at, &found);
    if (found) {
        const char *text = (const char *)sqlite3_column_text(at, 2);
        snprintf(loc, sizeof loc, "%s", text ? text : "");
        put_row_read(tx, at, &row);
    }
    *bytes = found ? row.extensions_len : 0;
    sqlite3_reset(at);
    if (status != CATALOGUE_OK)
        return status;
    if (found && dated_at(&row) > tx->now - urlset->expires_s)
        return urlset_record_age(tx, urlset, &row);
    if (found) {
        result->removed++;
        result->changed = true;
        status = put_take_out(tx, urlset, &row, loc);
    }
    return status == CATALOGUE_OK ? tx_run(tx, ST_AGE_DROP, address) : status;
}

enum catalogue_status apply_expire(struct tx *tx, const struct change *change,
                                   struct change_result *result)
{
    (void)change;
    const struct registry *r;
    const struct registry_index *urlset;
    uint32_t looked_at = 0;
    enum catalogue_status status = tx_registry(tx, &r);
    size_t first = tx->expire_turn;
    for (size_t s = 0; status == CATALOGUE_OK && s < r->site_count && looked_at < EXPIRE_ROWS;
         s++) {
        const struct registry_site *site = &r->sites[(first + s) % r->site_count];
        tx->expire_turn = (first + s) % r->site_count + 1; /* behind who has taken the last */
        for (size_t i = 0; status == CATALOGUE_OK && i < site->urlset_count; i++) {
            urlset = &site->urlsets[i];
            if (urlset->expires_s == 0 || registry_is_frozen(r, urlset))
                continue;
            while (status == CATALOGUE_OK && looked_at < EXPIRE_ROWS) {
                int64_t address = 0;
                size_t bytes = 0;
                status = tx_number(tx, ST_AGE_NEXT, 0, &address, urlset->id,
                                   tx->now - urlset->expires_s);
                if (status != CATALOGUE_OK || address == 0)
                    break;
                status = expire_row(tx, urlset, address, &bytes, result);
                looked_at += 1 + (uint32_t)(bytes / EXPIRE_ROW_BYTES);
            }
        }
    }
    return status;
}

bool urlset_expiry_is_due(struct tx *tx)
{
    int64_t due = 0;
    return tx_number(tx, ST_AGE_DUE, 0, &due, tx_clock(tx)) == CATALOGUE_OK && due != 0;
}

/* ---- making and changing one */

/* What a news sitemap is to have (Google: "articles created in the last two days"). */
#define NEWS_EXPIRES_S (2 * 86400)

static void refuse_field(struct change_result *result, const char *field, const char *sentence)
{
    result_refuse(result, RULE_FIELD_TYPE, field);
    snprintf(result->detail, sizeof result->detail, "%s", sentence);
}

static bool check_fields(const struct urlset_fields *fields, struct change_result *result)
{
    if ((fields->with & ~EXTENSIONS_ALL) != 0)
        refuse_field(result, "with", "must name extensions that are known");
    else if (fields->max_pages > LIMIT_URLSET_PAGES_MAX)
        refuse_field(result, "max_pages", "must be at most 50000");
    else if (fields->expires_s < 0)
        refuse_field(result, "expires", "must be a time");
    return result->status == CATALOGUE_OK;
}

/* The index whose entries its pages are to be; NULL, with the result filled, where there is none.
 * `path` is the urlset's. */
static const struct registry_index *find_index(const struct registry *r,
                                               const struct change *change,
                                               const struct registry_site *site, const char *path,
                                               struct change_result *result)
{
    struct url url;
    char loc[LOC_MAX_CHARS + 1];
    const char *name = change->urlset.index;
    const struct registry_index *index =
        name ? registry_index_by_name(r, name, NULL) : registry_deepest_index(r, site, path);
    snprintf(loc, sizeof loc, "%s%s", site->origin, path);
    if (!index || index->site_id != site->id)
        result_refuse(result, name ? RULE_INDEX_UNKNOWN : RULE_OUTSIDE_DIRECTORY,
                      name ? "index" : "url");
    else if (!url_split(loc, strlen(loc), &url) || !scope_holds(index->path, &url))
        result_refuse(result, RULE_OUTSIDE_DIRECTORY, "url");
    else
        result_frozen(result, change, registry_freeze(r, index));
    return result->status == CATALOGUE_OK ? index : NULL;
}

enum catalogue_status apply_urlset_add(struct tx *tx, const struct change *change,
                                       struct change_result *result)
{
    const struct urlset_fields *fields = &change->urlset;
    struct registry_index fresh = {.kind = LIST_URLSET,
                                   .with = fields->with,
                                   .max_pages = fields->max_pages > 0 ? fields->max_pages
                                                                      : LIMIT_URLSET_PAGES,
                                   .expires_s = fields->expires_s};
    char path[INDEX_PATH_MAX_CHARS + 1];
    const struct registry *r;
    const struct registry_site *site;
    enum catalogue_status status = tx_registry(tx, &r);
    if ((fields->set & URLSET_SET_EXPIRES) == 0 && fields->expires_s == 0 &&
        (fields->with & EXTENSION_NEWS) != 0)
        fresh.expires_s = NEWS_EXPIRES_S;
    if (status == CATALOGUE_OK)
        status = index_check_new(tx, change, &fresh, path, &site, result);
    if (status != CATALOGUE_OK || result->status != CATALOGUE_OK || !check_fields(fields, result))
        return status;
    const struct registry_index *index = find_index(r, change, site, path, result);
    if (!index)
        return CATALOGUE_OK;
    sqlite3_stmt *row = tx_statement(tx, ST_URLSET_ADD);
    if (!row)
        return tx_failure(tx);
    sqlite3_bind_int64(row, 1, site->id);
    statement_bind_text(row, 2, fresh.path);
    statement_bind_text(row, 3, fresh.page_pattern);
    sqlite3_bind_int64(row, 4, index->id);
    sqlite3_bind_int64(row, 5, fresh.with);
    sqlite3_bind_int64(row, 6, fresh.max_pages);
    sqlite3_bind_int64(row, 7, fresh.expires_s);
    return admin_insert(tx, row, result);
}

/* Fills what the urlset is to be. Refuses what it cannot. */
static enum catalogue_status check_update(struct tx *tx, const struct change *change,
                                          const struct registry *r,
                                          const struct registry_index *urlset,
                                          struct registry_index *to, struct change_result *result)
{
    const struct urlset_fields *fields = &change->urlset;
    const struct registry_site *site = registry_site_by_id(r, urlset->site_id);
    uint32_t last = urlset->page_count > 0 ? urlset->pages[urlset->page_count - 1] : 0;
    struct occupancy_index *occupancy;
    enum catalogue_status status = open_urlset(tx, urlset, &occupancy);
    if (status != CATALOGUE_OK)
        return status;
    for (uint32_t i = 0; i < occupancy->page_count; i++)
        if (occupancy->pages[i]->entries > 0)
            last = i + 1;
    *to = *urlset;
    if (fields->set & URLSET_SET_MAX_PAGES)
        to->max_pages = fields->max_pages > 0 ? fields->max_pages : LIMIT_URLSET_PAGES;
    if (fields->set & URLSET_SET_EXPIRES)
        to->expires_s = fields->expires_s;
    if (fields->set & URLSET_SET_INDEX) {
        const struct registry_index *index = find_index(r, change, site, urlset->path, result);
        to->of_index = index ? index->id : 0;
    }
    if (result->status != CATALOGUE_OK || !check_fields(fields, result))
        return CATALOGUE_OK;
    if (to->max_pages < last) {
        result_refuse(result, RULE_URLSET_FULL, "max_pages");
        snprintf(result->detail, sizeof result->detail, "it has page URLs on its page %u", last);
        return CATALOGUE_OK;
    }
    if (urlset->expires_s == 0 && to->expires_s != 0 && occupancy->entries > 0) {
        result_decline(result, CATALOGUE_CONFLICT,
                       "only a urlset that is empty can be told to expire its page URLs");
        result->field = "expires";
        return CATALOGUE_OK;
    }
    if (to->max_pages <= urlset->max_pages)
        return CATALOGUE_OK;
    return index_names_check(tx, r, site, to, 1, urlset->max_pages + 1, to->max_pages, result);
}

enum catalogue_status apply_urlset_update(struct tx *tx, const struct change *change,
                                          struct change_result *result, bool *keep)
{
    const struct registry *r;
    const struct registry_index *urlset;
    struct registry_index to;
    enum catalogue_status status = index_find_asked(tx, change, LIST_URLSET, result, &r, &urlset);
    if (status != CATALOGUE_OK || !urlset)
        return status;
    result->id = urlset->id;
    if (result_frozen(result, change, registry_freeze(r, urlset)))
        return CATALOGUE_OK;
    status = check_update(tx, change, r, urlset, &to, result);
    if (status != CATALOGUE_OK || result->status != CATALOGUE_OK)
        return status;
    bool moves = to.of_index != urlset->of_index;
    if (!moves && to.max_pages == urlset->max_pages && to.expires_s == urlset->expires_s) {
        result->unchanged = 1;
        return CATALOGUE_OK;
    }
    status = tx_run(tx, ST_URLSET_UPDATE, to.id, to.of_index, (int64_t)to.max_pages, to.expires_s);
    result->updated = 1;
    result->changed = true;
    tx_registry_touch(tx);
    if (status == CATALOGUE_OK && moves)
        status = tx_registry(tx, &r);
    if (status == CATALOGUE_OK && moves)
        status = urlset_return(tx, registry_list_by_id(r, to.id), change, result);
    if (result->status != CATALOGUE_OK) {
        *keep = result->changed = false;
        result->updated = 0;
    }
    return status;
}

/* CHANGE_INDEXNOW: how far the page URLs of a site's urlsets were told. */
enum catalogue_status apply_indexnow(struct tx *tx, const struct change *change,
                                     struct change_result *result)
{
    const struct indexnow_write *w = &change->indexnow;
    enum catalogue_status status =
        tx_run(tx, ST_INDEXNOW_PUT, w->site_id, (int64_t)w->to.revision, (int64_t)w->to.parts,
               (int64_t)w->from.revision, (int64_t)w->from.parts);

    if (status == CATALOGUE_OK && sqlite3_changes64(tx->db) == 0)
        result_decline(result, CATALOGUE_CONFLICT, "another was told of the site since");
    return status;
}
