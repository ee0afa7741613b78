/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Creates and changes urlsets, removes expired page URLs, and stores the position of IndexNow. */
#include <stdio.h>
#include <string.h>

#include "db/read/row.h"
#include "db/write/apply/apply.h"
#include "db/write/apply/entry.h"
#include "server/rules/lastmod.h"
#include "server/rules/page/extension.h"
#include "server/rules/scope.h"

/* ---- making and changing one */

/* Google, for news sitemaps: "articles created in the last two days". */
#define NEWS_EXPIRES_S (2 * 86400)

static void refuse_field(struct change_result *result, const char *field, const char *sentence)
{
    result_refuse(result, RULE_FIELD_TYPE, field);
    snprintf(result->detail, sizeof result->detail, "%s", sentence);
}

#define CHECK_NUMBER(c, name, least, most)                                                         \
    if (result->status == CATALOGUE_OK && fields->c != 0 &&                                        \
        (fields->c < (least) || fields->c > (most))) {                                             \
        result_refuse(result, RULE_FIELD_TYPE, #name);                                             \
        snprintf(result->detail, sizeof result->detail, "must be from %u to %u", (least), (most)); \
    }
#define CHECK_AGE(c, name, least, most)                                                            \
    if (result->status == CATALOGUE_OK && fields->c < 0)                                           \
        refuse_field(result, #name, "must be a time");
#define CHECK(kind, bit, c, name, option, least, most, ...) CHECK_##kind(c, name, least, most)

static bool check_fields(const struct urlset_fields *fields, struct change_result *result)
{
    if ((fields->with & ~EXTENSIONS_ALL) != 0)
        refuse_field(result, "with", "has an unknown extension");
    URLSET_SETTINGS(CHECK)
    return result->status == CATALOGUE_OK;
}

/* Copies the settings in `set` to `to`; for a new urlset, all. */
static void copy_fields(const struct urlset_fields *fields, unsigned set, struct registry_index *to)
{
    const unsigned with = to->with;
#define X(kind, bit, c, name, option, least, most, counts, ...)                                    \
    if (set & URLSET_SET_##bit) {                                                                  \
        const URLSET_TYPE_##kind asked = fields->c;                                                \
        to->c = counts;                                                                            \
    }
    URLSET_SETTINGS(X)
#undef X
}

static bool is_same(const struct registry_index *a, const struct registry_index *b)
{
#define X(kind, bit, c, ...) &&a->c == b->c
    return a->of_index == b->of_index URLSET_SETTINGS(X);
#undef X
}

/* As a parameter of a statement. */
#define SETTING_VALUE(kind, bit, c, ...) , list->c

/* The index that will list the urlset's pages; NULL, with the result filled, if none exists.
 * `path` is the urlset's. */
static const struct registry_index *find_index(const struct registry *r,
                                               const struct change *change, const char *name,
                                               const struct registry_site *site, const char *path,
                                               struct change_result *result)
{
    struct url url;
    char loc[LOC_MAX_CHARS + 1];
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
                                       const struct change_urlset_add *add,
                                       struct change_result *result)
{
    const struct urlset_fields *fields = &add->fields;
    struct registry_index fresh = {.kind = LIST_URLSET, .with = fields->with};
    char path[INDEX_PATH_MAX_CHARS + 1];
    const struct registry *r;
    const struct registry_site *site;
    enum catalogue_status status = tx_registry(tx, &r);
    copy_fields(fields, ~0u, &fresh);
    if ((fields->set & URLSET_SET_EXPIRES) == 0 && fields->expires_s == 0 &&
        (fields->with & EXTENSION_NEWS) != 0)
        fresh.expires_s = NEWS_EXPIRES_S;
    if (status == CATALOGUE_OK)
        status =
            index_check_new(tx, change, add->url, add->page_pattern, &fresh, path, &site, result);
    if (status != CATALOGUE_OK || result->status != CATALOGUE_OK || !check_fields(fields, result))
        return status;
    const struct registry_index *index = find_index(r, change, fields->index, site, path, result);
    if (!index)
        return CATALOGUE_OK;
    const struct registry_index *list = &fresh;
    status = tx_run(tx, ST_URLSET_ADD, site->id, list->path, list->page_pattern, index->id,
                    list->with URLSET_SETTINGS(SETTING_VALUE));
    return admin_inserted(tx, status, result);
}

/* Fills the new settings of the urlset. Rejects invalid ones. */
static enum catalogue_status check_update(struct tx *tx, const struct change *change,
                                          const struct urlset_fields *fields,
                                          const struct registry *r,
                                          const struct registry_index *urlset,
                                          struct registry_index *to, struct change_result *result)
{
    const struct registry_site *site = registry_site_by_id(r, urlset->site_id);
    uint32_t last = urlset->page_count > 0 ? urlset->pages[urlset->page_count - 1] : 0;
    struct occupancy_index *occupancy;
    enum catalogue_status status = occupancy_index(tx, urlset->site_id, urlset->id, &occupancy);
    if (status != CATALOGUE_OK)
        return status;
    for (uint32_t i = 0; i < occupancy->page_count; i++)
        if (occupancy->pages[i]->entries > 0)
            last = i + 1;
    *to = *urlset;
    copy_fields(fields, fields->set, to);
    if (fields->set & URLSET_SET_INDEX) {
        const struct registry_index *index =
            find_index(r, change, fields->index, site, urlset->path, result);
        to->of_index = index ? index->id : 0;
    }
    if (result->status != CATALOGUE_OK || !check_fields(fields, result))
        return CATALOGUE_OK;
    if (to->max_pages < last) {
        result_refuse(result, RULE_URLSET_FULL, "max_pages");
        snprintf(result->detail, sizeof result->detail,
                 "is too small: the urlset has page URLs on its page %u", last);
        return CATALOGUE_OK;
    }
    if (urlset->expires_s == 0 && to->expires_s != 0 && occupancy->entries > 0) {
        result_decline(result, CATALOGUE_CONFLICT,
                       "expires can only be set while the urlset is empty");
        result->field = "expires";
        return CATALOGUE_OK;
    }
    if (to->max_pages <= urlset->max_pages)
        return CATALOGUE_OK;
    return index_names_check(tx, r, site, to, 1, urlset->max_pages + 1, to->max_pages, result);
}

static enum catalogue_status relimit(struct tx *tx, const struct registry_index *to)
{
    struct occupancy_index *occupancy;
    enum catalogue_status status = occupancy_index(tx, to->site_id, to->id, &occupancy);
    if (status == CATALOGUE_OK)
        occupancy_relimit(occupancy, to->max_page_urls, to->max_page_bytes);
    return status;
}

enum catalogue_status apply_urlset_update(struct tx *tx, const struct change *change,
                                          const struct change_urlset_update *update,
                                          struct change_result *result, bool *keep)
{
    const struct registry *r;
    const struct registry_index *urlset;
    struct registry_index to;
    enum catalogue_status status =
        index_find_requested(tx, change, update->index_id, LIST_URLSET, result, &r, &urlset);
    if (status != CATALOGUE_OK || !urlset)
        return status;
    result->id = urlset->id;
    if (result_frozen(result, change, registry_freeze(r, urlset)))
        return CATALOGUE_OK;
    status = check_update(tx, change, &update->fields, r, urlset, &to, result);
    if (status != CATALOGUE_OK || result->status != CATALOGUE_OK)
        return status;
    bool moves = to.of_index != urlset->of_index;
    bool relimits =
        to.max_page_urls != urlset->max_page_urls || to.max_page_bytes != urlset->max_page_bytes;
    if (is_same(&to, urlset)) {
        result->unchanged = 1;
        return CATALOGUE_OK;
    }
    const struct registry_index *list = &to;
    status = tx_run(tx, ST_URLSET_UPDATE, list->id, list->of_index URLSET_SETTINGS(SETTING_VALUE));
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
    } else if (status == CATALOGUE_OK && relimits) {
        status = relimit(tx, &to);
    }
    return status;
}

/* CHANGE_INDEXNOW */
enum catalogue_status apply_indexnow(struct tx *tx, const struct change_indexnow *w,
                                     struct change_result *result)
{
    enum catalogue_status status =
        tx_run(tx, ST_INDEXNOW_PUT, w->site_id, (int64_t)w->to.revision, (int64_t)w->to.parts,
               (int64_t)w->from.revision, (int64_t)w->from.parts);

    if (status == CATALOGUE_OK && sqlite3_changes64(tx->db) == 0)
        result_decline(result, CATALOGUE_CONFLICT,
                       "conflict: another client has changed the site since");
    return status;
}

/* ---- the age of page URLs in urlsets with expires_s, and batches that remove expired ones */

#define NEWS_DATE "<news:publication_date>"

static int64_t dated_at(const struct put_row *row)
{
    const char *date = row->extensions ? strstr(row->extensions, NEWS_DATE) : NULL;
    int64_t at;
    if (date) {
        date += strlen(NEWS_DATE);
        if (urlset_read_time(date, strcspn(date, "<"), &at))
            return at;
    }
    if (row->has_lastmod && urlset_read_time(row->lastmod, strlen(row->lastmod), &at))
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

/* Most rows of a batch: tens of milliseconds. */
#define EXPIRE_ROWS      2000u
#define EXPIRE_ROW_BYTES 16384u /* a row with more extensions counts as several */

/* A row of urlset_age may be that of a page URL that was removed, or written again since. */
static enum catalogue_status expire_row(struct tx *tx, const struct registry_index *urlset,
                                        int64_t address, size_t *bytes,
                                        struct change_result *result)
{
    struct put_row row;
    char loc[LOC_MAX_CHARS + 1];
    sqlite3_stmt *at;
    enum catalogue_status status = tx_first(tx, ST_ENTRY_BY_ADDRESS, &at, address);
    if (at != NULL) {
        const char *text = (const char *)sqlite3_column_text(at, 2);
        snprintf(loc, sizeof loc, "%s", text ? text : "");
        put_row_read(tx, at, &row);
    }
    *bytes = at != NULL ? row.extensions_len : 0;
    sqlite3_reset(at);
    if (status != CATALOGUE_OK)
        return status;
    if (at != NULL && dated_at(&row) > tx->now - urlset->expires_s)
        return urlset_record_age(tx, urlset, &row);
    if (at != NULL) {
        result->removed++;
        result->changed = true;
        status = put_remove(tx, urlset, &row, loc);
    }
    return status == CATALOGUE_OK ? tx_run(tx, ST_AGE_DROP, address) : status;
}

enum catalogue_status apply_expire(struct tx *tx, struct change_result *result)
{
    const struct registry *r;
    const struct registry_index *urlset;
    uint32_t looked_at = 0;
    enum catalogue_status status = tx_registry(tx, &r);
    size_t first = tx->expire_turn;
    for (size_t s = 0; status == CATALOGUE_OK && s < r->site_count && looked_at < EXPIRE_ROWS;
         s++) {
        const struct registry_site *site = &r->sites[(first + s) % r->site_count];
        tx->expire_turn = (first + s) % r->site_count + 1; /* the site after the one served last */
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
