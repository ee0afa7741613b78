/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Decides where an entry goes and writes it: place, owner, dates, room, row, history. */
#include "db/write/apply/entry.h"

#include <stdio.h>
#include <string.h>

#include "db/history/recorder.h"
#include "db/read/row.h"
#include "db/write/apply/apply.h"
#include "db/write/guard.h"
#include "server/rules/http/negotiate.h"
#include "server/rules/lastmod.h"
#include "server/rules/page/extension.h"

static bool read_text(sqlite3_stmt *statement, int column, char *out, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    out[0] = '\0';
    if (!text)
        return false;
    size_t len = strnlen(text, size - 1);
    memcpy(out, text, len);
    out[len] = '\0';
    return true;
}

void put_row_read(struct tx *tx, sqlite3_stmt *statement, struct put_row *row)
{
    row->extensions = NULL;
    row->extensions_len = 0;
    if (sqlite3_column_type(statement, 9) != SQLITE_NULL &&
        read_text(statement, 9, tx->extensions, sizeof tx->extensions)) {
        row->extensions = tx->extensions;
        row->extensions_len = strlen(row->extensions);
    }
    row->found = true;
    row->address = sqlite3_column_int64(statement, 0);
    row->has_lastmod = read_text(statement, 3, row->lastmod, sizeof row->lastmod);
    row->has_digest = read_text(statement, 4, row->digest, sizeof row->digest);
    row->source = sqlite3_column_int64(statement, 5);
    row->serial = sqlite3_column_int64(statement, 6);
    row->registered_at = sqlite3_column_int64(statement, 7);
    row->changed_at = sqlite3_column_int64(statement, 8);
}

enum catalogue_status put_find(struct tx *tx, int64_t scope, const char *loc, struct put_row *row)
{
    row->found = false;
    sqlite3_stmt *statement;
    enum catalogue_status status = tx_first(tx, ST_ENTRY_BY_LOC, &statement, scope, loc);
    if (statement != NULL)
        put_row_read(tx, statement, row);
    sqlite3_reset(statement);
    return status;
}

/* Looks the loc up in a site; if it is registered and no index was named, it stays in its index. */
static enum catalogue_status look_in(struct tx *tx, struct put *put, const struct registry *r,
                                     const struct registry_site *site)
{
    enum catalogue_status status = put_find(tx, site->id, put->url.text, &put->row);
    if (status != CATALOGUE_OK || !put->row.found)
        return status;
    put->site = site;
    put->from = registry_index_by_id(r, id_address_index(put->row.address));
    return CATALOGUE_OK;
}

static void forget_place(struct put *put)
{
    put->code = RULE_OK;
    put->forbidden = false;
    put->field = NULL;
    put->site = NULL;
    put->index = put->from = NULL;
    put->row.found = false;
    put->occupancy = NULL;
    put->position = POSITION_NONE;
    put->relocates = false;
}

/* For a loc on a host of no site, at most this many sites that have it as a cross host are
 * searched; otherwise each line would cost a lookup in every such site. If more have it, the caller
 * must name the index. */
#define CROSS_SITES_ASKED 100

/* Looks a loc on a host of no site up in the sites that have it as a cross host. It is found only
 * if exactly one of them has it: otherwise one site could register the loc of another, and would
 * get its updates. */
static enum catalogue_status look_in_cross_sites(struct tx *tx, struct put *put,
                                                 const struct registry *r, int64_t only)
{
    const struct registry_site *site = NULL;
    struct put_row other = {.found = false};
    int asked = 0;
    while ((site = registry_next_cross_site(r, &put->url, only, site)) != NULL) {
        enum catalogue_status status = CATALOGUE_OK;
        if (asked++ == CROSS_SITES_ASKED)
            other.found = true; /* perhaps */
        else if (put->from == NULL)
            status = look_in(tx, put, r, site);
        else
            status = put_find(tx, site->id, put->url.text, &other);
        if (status != CATALOGUE_OK)
            return status;
        if (other.found) {
            forget_place(put);
            break;
        }
    }
    return CATALOGUE_OK;
}

/* Without an index name, a registered loc stays in its index: in the site of its own origin; if its
 * host belongs to no site, in the site that has it as a cross host. So a site with a cross host of
 * another site never gets that site's entries, and the cost of a list does not depend on others'
 * cross hosts. */
static enum catalogue_status find_registered(struct tx *tx, struct put *put,
                                             const struct registry *r)
{
    char origin[LOC_MAX_CHARS + 1];
    memcpy(origin, put->url.text, put->url.origin_len);
    origin[put->url.origin_len] = '\0';
    const struct registry_site *own = registry_site_by_origin(r, origin);
    int64_t only = put->grant.site_id; /* a token does not see entries of other sites */
    if (own && (only == 0 || own->id == only))
        return look_in(tx, put, r, own);
    return look_in_cross_sites(tx, put, r, only);
}

static void refuse(struct put *put, enum rule_code code)
{
    put->code = code;
    put->field = code == RULE_INDEX_UNKNOWN || code == RULE_INDEX_NEEDED     ? "index"
                 : code == RULE_URLSET_UNKNOWN || code == RULE_URLSET_NEEDED ? "urlset"
                                                                             : "loc";
}

/* The message for a `code` that is not RULE_OK. Static. */
static const char *put_why(const struct put *put)
{
    return put->forbidden ? rule_code_sentence(put->code)
                          : registry_place_why(put->registry, put->code, &put->url, put->site);
}

enum catalogue_status put_explain(struct tx *tx, const struct put *put, char *out, size_t size)
{
    snprintf(out, size, "%s", put_why(put));
    const struct registry_index *index = put->from ? put->from : put->index;
    if (put->code != RULE_OWNED_BY_ANOTHER || put->forbidden || !put->site || !index)
        return CATALOGUE_OK;
    sqlite3_stmt *row;
    enum catalogue_status status = tx_first(tx, ST_SOURCE_NAME, &row, put->row.source);
    const char *name = row != NULL ? (const char *)sqlite3_column_text(row, 0) : NULL;
    snprintf(out, size, "is owned by \"%s\", in %s%s; it was not changed", name ? name : "",
             put->site->origin, index->path);
    sqlite3_reset(row);
    return status;
}

static void forbid(struct put *put, enum rule_code code)
{
    put->forbidden = true;
    refuse(put, code);
}

/* A token of one site gets the same answer for another site's object as for an unknown one. */
static void check_site(struct put *put, enum rule_code code)
{
    bool unknown =
        code == RULE_SITE_UNKNOWN || code == RULE_INDEX_UNKNOWN || code == RULE_URLSET_UNKNOWN;
    int64_t only = put->grant.site_id;
    if (put->index_name && code != RULE_SITE_UNKNOWN)
        unknown = unknown && !registry_is_name_of(put->registry, put->index_name, only);
    if (put->site ? !grant_has_site(&put->grant, put->site->id) : unknown && only != 0)
        forbid(put, RULE_SITE_UNKNOWN);
}

static void check_frozen(struct put *put)
{
    if (put->code != RULE_OK || put->pass_frozen ||
        (!registry_is_frozen(put->registry, put->index) &&
         !registry_is_frozen(put->registry, put->from)))
        return;
    put->code = RULE_FROZEN;
    put->field = NULL;
}

enum catalogue_status put_check_owner(struct tx *tx, struct put *put)
{
    const struct grant *grant = &put->grant;
    const char *source = put->entry->source ? put->entry->source : put->source;
    if (put->code != RULE_OK || !grant->own)
        return CATALOGUE_OK;
    int64_t own = 0;
    enum catalogue_status status = tx_source(tx, grant->name ? grant->name : "", false, &own);
    if (status != CATALOGUE_OK)
        return status;
    if (put->from ? put->row.source != own : !grant_has_source(grant, source)) {
        forbid(put, RULE_OUTSIDE_TOKEN);
        put->field = put->from ? "loc" : "source";
    }
    return CATALOGUE_OK;
}

/* A page URL goes into the urlset that is named, and only its urlset knows it. */
static enum catalogue_status locate_row(struct tx *tx, struct put *put)
{
    const struct registry *r = put->registry;
    const struct entry *entry = put->entry;
    const struct registry_index *urlset =
        put->index_name ? registry_list_by_name(r, put->index_name, LIST_URLSET, &put->site) : NULL;
    enum rule_code code = put->index_name ? RULE_URLSET_UNKNOWN : RULE_URLSET_NEEDED;
    if (!urlset)
        put->site = NULL;
    check_site(put, urlset ? RULE_OK : code);
    if (put->forbidden)
        return CATALOGUE_OK;
    if (urlset)
        code = registry_place_in(r, &put->url, urlset);
    if (code != RULE_OK) {
        refuse(put, code);
        return CATALOGUE_OK;
    }
    put->index = urlset;
    bool extended = entry->extensions_state == FIELD_SET;
    if (extended && strlen(entry->extensions) > EXTENSIONS_MAX_BYTES)
        put->code = RULE_EXTENSIONS_LONG;
    else if (extended && (extensions_of(entry->extensions) & ~urlset->with) != 0)
        put->code = RULE_EXTENSION_FOREIGN;
    put->field = put->code != RULE_OK ? "extensions" : NULL;
    if (put->code != RULE_OK || put->expect_new)
        return CATALOGUE_OK;
    enum catalogue_status status = put_find(tx, list_scope(urlset), put->url.text, &put->row);
    put->from = put->row.found ? urlset : NULL;
    return status;
}

/* Places the loc in the index that its URL, or the change, names. */
static enum catalogue_status relocate(struct tx *tx, struct put *put, const struct registry *r)
{
    struct placement placement;
    const struct registry_site *site;
    enum rule_code code = registry_place(r, &put->url, put->index_name, &placement);
    put->site = placement.site;
    /* Many sites may have its host as a cross host; a token learns of its own site only. */
    if (code == RULE_INDEX_NEEDED && put->grant.site_id != 0 &&
        (site = registry_next_cross_site(r, &put->url, put->grant.site_id, NULL)) != NULL)
        put->site = site;
    /* Before the reason, which would reveal another site. */
    check_site(put, code);
    if (put->forbidden)
        return CATALOGUE_OK;
    if (code != RULE_OK) {
        refuse(put, code);
        return CATALOGUE_OK;
    }
    put->index = placement.index;
    if (!put->index_name || put->expect_new)
        return CATALOGUE_OK;
    return look_in(tx, put, r, placement.site);
}

static enum catalogue_status locate(struct tx *tx, struct put *put)
{
    forget_place(put);
    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    put->registry = r;
    const char *loc = put->entry->loc;
    size_t len = strlen(loc);
    enum rule_code code = RULE_OK;
    if (!put->normalised || !url_split(loc, len, &put->url))
        code = url_parse(loc, len, &put->url, NULL);
    if (code != RULE_OK) {
        refuse(put, code);
        return CATALOGUE_OK;
    }
    if (!grant_has_loc(&put->grant, put->url.text)) {
        forbid(put, RULE_OUTSIDE_TOKEN);
        return CATALOGUE_OK;
    }
    if (put->list == LIST_URLSET)
        return locate_row(tx, put);
    if (!put->index_name && !put->expect_new) {
        status = find_registered(tx, put, r);
        if (status != CATALOGUE_OK)
            return status;
        if (put->from) {
            put->index = put->from;
            check_site(put, RULE_OK);
            return CATALOGUE_OK;
        }
    }
    return relocate(tx, put, r);
}

enum catalogue_status entry_locate(struct tx *tx, struct put *put)
{
    enum catalogue_status status = locate(tx, put);
    if (status == CATALOGUE_OK && put->code == RULE_OK && put->from && put->row.source < 0)
        refuse(put, RULE_OF_URLSET);
    if (status == CATALOGUE_OK)
        check_frozen(put);
    return status;
}

static uint32_t weight_of(const struct registry_index *list, const char *loc, size_t loc_len,
                          size_t extensions_len)
{
    return occupancy_weight(list->kind, loc, loc_len, extensions_len);
}

uint32_t put_row_weight(const struct registry_index *list, const struct put_row *row,
                        const char *loc)
{
    return weight_of(list, loc, strlen(loc), row->extensions_len);
}

/* Length of the row's extensions after this upsert. */
static size_t extensions_len_then(const struct put *put)
{
    const struct entry *entry = put->entry;
    if (entry->extensions_state == FIELD_ABSENT)
        return put->row.found ? put->row.extensions_len : 0;
    return entry->extensions_state == FIELD_SET ? strlen(entry->extensions) : 0;
}

static enum catalogue_status find_place(struct tx *tx, struct put *put, uint32_t spare)
{
    struct occupancy_room room = {.weight = put->weight,
                                  .max_pages = registry_max_pages(put->registry, put->index),
                                  .spare = spare,
                                  .wanted = put->relocates ? POSITION_NONE : put->entry->position};
    enum rule_code code;
    enum catalogue_status status =
        urlset_find(tx, put->index, put->occupancy, &room, &put->position, &code);
    if (status == CATALOGUE_OK && code != RULE_OK)
        refuse(put, code);
    return status;
}

/* A registered page URL has grown: finds room in its page, or in another one. */
static enum catalogue_status room_to_grow(struct tx *tx, struct put *put)
{
    uint32_t before = put_row_weight(put->index, &put->row, put->url.text);
    put->weight = weight_of(put->index, put->url.text, put->url.len, extensions_len_then(put));
    if (put->weight <= before)
        return CATALOGUE_OK;
    enum catalogue_status status =
        occupancy_index(tx, put->site->id, put->index->id, &put->occupancy);
    if (status != CATALOGUE_OK ||
        occupancy_may_grow(put->occupancy, id_address_position(put->row.address), before,
                           put->weight))
        return status;
    put->relocates = true;
    return find_place(tx, put, 0);
}

enum catalogue_status put_room(struct tx *tx, struct put *put)
{
    if (put->code != RULE_OK || (put->from == put->index && put->list == LIST_INDEX))
        return CATALOGUE_OK;
    if (put->list == LIST_URLSET && urlset_is_expired(tx, put)) {
        put->code = RULE_EXPIRED;
        put->field = "lastmod";
        return CATALOGUE_OK;
    }
    if (put->from == put->index)
        return room_to_grow(tx, put);
    const struct registry_site *site = put->site;
    if (put->entry->position != POSITION_NONE &&
        put->entry->position / LIMIT_PAGE_ENTRIES >=
            registry_max_pages(put->registry, put->index)) {
        put->code = RULE_POSITION;
        put->field = "position";
        return CATALOGUE_OK;
    }
    enum catalogue_status status = occupancy_index(tx, site->id, put->index->id, &put->occupancy);
    if (status != CATALOGUE_OK)
        return status;
    put->weight = weight_of(put->index, put->url.text, put->url.len, extensions_len_then(put));
    uint32_t spare = 0;
    if (put->from) {
        /* A move may empty the page that the entry leaves, and so make room for a new page. */
        struct occupancy_index *from;
        status = occupancy_index(tx, site->id, put->from->id, &from);
        if (status != CATALOGUE_OK)
            return status;
        spare = occupancy_would_empty(from, id_address_position(put->row.address)) ? 1 : 0;
    }
    return find_place(tx, put, spare);
}

static bool same_text(bool has_a, const char *a, bool has_b, const char *b)
{
    return has_a == has_b && (!has_a || strcmp(a, b) == 0);
}

static void copy_text(char *to, size_t size, const char *from)
{
    size_t len = strnlen(from, size - 1);
    memcpy(to, from, len);
    to[len] = '\0';
}

/* The part of a lastmod that is rendered; NULL: none. */
static const char *rendered(bool has, const char *lastmod)
{
    return has && lastmod_renders(lastmod) ? lastmod : NULL;
}

/* The lastmod and digest that the entry has after this upsert. An unchanged digest keeps a date
 * that is there: the content has not changed. */
static void merge(struct put *put, const struct put_row *old, struct put_row *new)
{
    const struct entry *entry = put->entry;
    bool same_digest = entry->digest_state == FIELD_SET && old->has_digest && old->has_lastmod &&
                       strcmp(entry->digest, old->digest) == 0;
    *new = *old;
    if (put->takes_over != 0)
        new->source = put->takes_over;
    if (entry->digest_state != FIELD_ABSENT) {
        new->has_digest = entry->digest_state == FIELD_SET;
        if (new->has_digest)
            copy_text(new->digest, sizeof new->digest, entry->digest);
    }
    if (entry->lastmod_state != FIELD_ABSENT && !same_digest) {
        new->has_lastmod = entry->lastmod_state == FIELD_SET;
        if (new->has_lastmod)
            copy_text(new->lastmod, sizeof new->lastmod, entry->lastmod);
    }
    if (entry->extensions_state != FIELD_ABSENT) {
        new->extensions = entry->extensions_state == FIELD_SET ? entry->extensions : NULL;
        new->extensions_len = new->extensions ? strlen(new->extensions) : 0;
    }
    if (old->has_lastmod && new->has_lastmod && lastmod_is_set_back(old->lastmod, new->lastmod))
        put->remarks |= RULE_BIT(RULE_LASTMOD_SET_BACK);
}

void put_merge(const struct tx *tx, const struct put *put, struct put_row *out)
{
    struct put then = *put;
    struct put_row nothing = {.registered_at = tx->now};
    merge(&then, put->row.found ? &put->row : &nothing, out);
}

static bool same_extensions(const struct put_row *a, const struct put_row *b)
{
    return same_text(a->extensions != NULL, a->extensions, b->extensions != NULL, b->extensions);
}

static bool same_row(const struct put_row *a, const struct put_row *b)
{
    return a->source == b->source &&
           same_text(a->has_lastmod, a->lastmod, b->has_lastmod, b->lastmod) &&
           same_extensions(a, b) && same_text(a->has_digest, a->digest, b->has_digest, b->digest);
}

bool put_changes(const struct tx *tx, const struct put *put)
{
    struct put_row then;
    put_merge(tx, put, &then);
    return put->from != put->index || !same_row(&put->row, &then);
}

static enum catalogue_status update(struct tx *tx, struct put *put)
{
    const struct put_row *old = &put->row;
    struct put_row new;
    merge(put, old, &new);
    bool extensions_stay = same_extensions(old, &new);
    put->outcome = PUT_UNCHANGED;
    if (same_row(old, &new))
        return CATALOGUE_OK;

    const char *shown = rendered(old->has_lastmod, old->lastmod);
    const char *shows = rendered(new.has_lastmod, new.lastmod);
    new.changed_at = tx->now;
    const struct recorder_row changed = {list_scope(put->index), put->url.text, put->url.len, old,
                                         &new};
    recorder_report(tx->recorder, &changed);
    enum catalogue_status status =
        tx_run(tx, ST_ENTRY_UPDATE, old->address, new.has_lastmod ? new.lastmod : NULL,
               new.has_digest ? new.digest : NULL, new.changed_at, new.extensions, new.source);
    recorder_reported(tx->recorder);
    if (status != CATALOGUE_OK)
        return status;
    tx->changed = true;
    put->outcome = PUT_UPDATED;
    struct occupancy_index *occupancy;
    status = occupancy_index(tx, put->index->site_id, put->index->id, &occupancy);
    /* A digest is not served: the page, and with it Last-Modified, stays as it is. */
    if (status == CATALOGUE_OK && extensions_stay &&
        same_text(shown != NULL, shown, shows != NULL, shows))
        occupancy_touch_unseen(tx, occupancy);
    else if (status == CATALOGUE_OK && extensions_stay)
        status = occupancy_touch(tx, occupancy, id_address_position(old->address));
    else if (status == CATALOGUE_OK)
        status = occupancy_reweigh(tx, occupancy, id_address_position(old->address),
                                   put_row_weight(put->index, old, put->url.text),
                                   put_row_weight(put->index, &new, put->url.text));
    put->row = new;
    return status == CATALOGUE_OK ? urlset_record_age(tx, put->index, &put->row) : status;
}

enum catalogue_status put_release(struct tx *tx, const struct registry_index *list,
                                  const struct put_row *row, const char *loc)
{
    struct occupancy_index *occupancy;
    enum catalogue_status status = occupancy_index(tx, list->site_id, list->id, &occupancy);
    if (status != CATALOGUE_OK)
        return status;
    uint32_t weight = put_row_weight(list, row, loc);
    status = tx_run(tx, ST_ENTRY_DELETE, row->address);
    if (status == CATALOGUE_OK)
        status = occupancy_release(tx, occupancy, id_address_position(row->address), weight);
    return status;
}

enum catalogue_status put_drop_remains(struct tx *tx, int64_t address, const char *loc)
{
    enum catalogue_status status = tx_run(tx, ST_REMOVED_LOC_ADD, address, loc);
    return status == CATALOGUE_OK ? tx_run(tx, ST_ENTRY_DELETE, address) : status;
}

enum catalogue_status put_remove(struct tx *tx, const struct registry_index *list,
                                 const struct put_row *row, const char *loc)
{
    struct occupancy_index *occupancy;
    enum catalogue_status status = put_release(tx, list, row, loc);
    if (status == CATALOGUE_OK)
        status = occupancy_index(tx, list->site_id, list->id, &occupancy);
    if (status == CATALOGUE_OK)
        occupancy_single_removal(occupancy);
    return status;
}

/* Frees (site, loc) for the new row: moves it out of the index it was in, or drops the remains
 * that a removed index left. */
static enum catalogue_status vacate(struct tx *tx, const struct put *put)
{
    if (!put->row.found)
        return CATALOGUE_OK;
    if (put->relocates)
        return put_release(tx, put->from, &put->row, put->url.text);
    if (put->from && put->of_set) {
        struct occupancy_index *occupancy;
        enum catalogue_status status = put_release(tx, put->from, &put->row, put->url.text);
        if (status == CATALOGUE_OK)
            status = occupancy_index(tx, put->from->site_id, put->from->id, &occupancy);
        if (status == CATALOGUE_OK)
            occupancy->moved++;
        return status;
    }
    if (put->from)
        return put_remove(tx, put->from, &put->row, put->url.text);
    return put_drop_remains(tx, put->row.address, put->url.text);
}

enum catalogue_status put_inserted(struct tx *tx, struct put *put)
{
    tx->changed = true;
    enum catalogue_status status =
        urlset_reserve(tx, put->index, put->occupancy, put->position, put->weight);
    return status == CATALOGUE_OK ? urlset_record_age(tx, put->index, &put->row) : status;
}

enum catalogue_status put_is_known(struct tx *tx, struct put *put)
{
    put->outcome = PUT_KNOWN;
    tx->serial--;
    return put->expect_new ? CATALOGUE_OK : CATALOGUE_CORRUPT;
}

static enum catalogue_status insert(struct tx *tx, struct put *put)
{
    struct put_row *row = &put->row;
    int64_t scope = list_scope(put->index);
    const struct recorder_row changed = {scope, put->url.text, put->url.len, NULL, row};
    recorder_report(tx->recorder, &changed);
    enum catalogue_status status =
        tx_run(tx, ST_ENTRY_INSERT, ENTRY_VALUES(scope, put->url.text, row));
    recorder_reported(tx->recorder);
    if (status != CATALOGUE_OK)
        return status;
    return sqlite3_changes(tx->db) == 0 ? put_is_known(tx, put) : put_inserted(tx, put);
}

enum catalogue_status put_make_row(struct tx *tx, struct put *put)
{
    bool live = put->row.found && put->from != NULL;
    struct put_row new = {.registered_at = tx->now};
    put->remarks = 0;
    if (live) {
        merge(put, &put->row, &new);
        if (put->owner != 0)
            new.source = put->owner;
    } else if (put->owner != 0) {
        struct put_row nothing = new;
        merge(put, &nothing, &new);
        new.source = put->owner;
    } else {
        const char *source = put->entry->source ? put->entry->source : put->source;
        struct put_row nothing = new;
        merge(put, &nothing, &new);
        enum catalogue_status status = tx_source(tx, source ? source : "", true, &new.source);
        if (status != CATALOGUE_OK)
            return status;
    }
    new.found = true;
    new.serial = ++tx->serial;
    new.address = id_address(put->index->id, put->position);
    new.changed_at = tx->now;
    put->row = new;
    put->from = put->index;
    put->outcome = put->relocates ? PUT_UPDATED : live ? PUT_MOVED : PUT_CREATED;
    return CATALOGUE_OK;
}

enum catalogue_status put_write(struct tx *tx, struct put *put)
{
    if (put->row.found && put->from != NULL && put->from == put->index && !put->relocates) {
        put->remarks = 0;
        return update(tx, put);
    }
    enum catalogue_status status = vacate(tx, put);
    if (status == CATALOGUE_OK)
        status = put_make_row(tx, put);
    return status == CATALOGUE_OK ? insert(tx, put) : status;
}

enum catalogue_status put_record(struct tx *tx, int64_t site_id, const char *loc,
                                 const struct put_row *row, struct entry_record *out)
{
    sqlite3_stmt *name;
    enum catalogue_status status = tx_first(tx, ST_SOURCE_NAME, &name, row->source);
    memset(out, 0, sizeof *out);
    if (status == CATALOGUE_OK) {
        const char *source = name != NULL ? (const char *)sqlite3_column_text(name, 0) : NULL;
        out->source = strdup(source ? source : "");
        out->loc = strdup(loc);
        out->lastmod = row->has_lastmod ? strdup(row->lastmod) : NULL;
        out->digest = row->has_digest ? strdup(row->digest) : NULL;
        out->extensions = row->extensions ? strdup(row->extensions) : NULL;
        out->site_id = site_id;
        out->index_id = id_address_index(row->address);
        out->position = id_address_position(row->address);
        out->page = out->position / LIMIT_PAGE_ENTRIES + 1;
        out->registered_at = row->registered_at;
        out->changed_at = row->changed_at;
        id_format(out->index_id, out->position, row->serial, out->id);
        if (!out->source || !out->loc || (row->has_lastmod && !out->lastmod) ||
            (row->has_digest && !out->digest) || (row->extensions && !out->extensions)) {
            entry_record_done(out);
            memset(out, 0, sizeof *out);
            status = CATALOGUE_NO_MEMORY;
        }
    }
    sqlite3_reset(name);
    return status;
}

/* Checks If-Match (RFC 9110 13.1.1) against the stored entry; `record` NULL: not listed. */
static bool precondition_holds(const struct change *change, const struct entry_record *record,
                               struct change_result *result)
{
    if (!change->if_match)
        return true;
    if (record) {
        char etag[40];
        catalogue_entry_etag(record, etag);
        if (negotiate_match(change->if_match, etag))
            return true;
    }
    result_decline(result, CATALOGUE_CONFLICT,
                   "conflict: the entry has changed since the state given in If-Match");
    result->precondition_failed = true;
    return false;
}

static enum catalogue_status check_precondition(struct tx *tx, const struct change *change,
                                                int64_t site_id, const char *loc,
                                                const struct put_row *row,
                                                struct change_result *result)
{
    if (!change->if_match)
        return CATALOGUE_OK;
    struct entry_record record = {0};
    if (row) {
        enum catalogue_status status = put_record(tx, site_id, loc, row, &record);
        if (status != CATALOGUE_OK)
            return status;
    }
    precondition_holds(change, row ? &record : NULL, result);
    entry_record_done(&record);
    return CATALOGUE_OK;
}

/* Collects the warnings for the reply to a registration. */
static enum catalogue_status gather_remarks(struct tx *tx, const struct put *put,
                                            struct change_result *result)
{
    struct occupancy_index *occupancy;
    enum catalogue_status status = occupancy_index(tx, put->site->id, put->index->id, &occupancy);
    if (status != CATALOGUE_OK)
        return status;
    result->remarks |= put->entry->remarks | put->remarks;
    result->remarks |= (put->list == LIST_URLSET ? entry_lint_page_url : entry_lint)(
        put->url.text, put->row.has_lastmod ? put->row.lastmod : NULL, put->site->origin);
    if (put->list == LIST_INDEX && occupancy_nearly_full(occupancy->site, put->site->max_pages))
        result->remarks |= RULE_BIT(RULE_SITE_NEARLY_FULL);
    return CATALOGUE_OK;
}

enum catalogue_status apply_entry_put(struct tx *tx, const struct change *change,
                                      const struct entry *entry, struct change_result *result)
{
    struct put put = {.entry = entry,
                      .list = change->list,
                      .index_name = entry->index ? entry->index : change->index_name,
                      .normalised = true,
                      .source = change->source,
                      .grant = change->grant,
                      .pass_frozen = change->pass_frozen};
    if (entry->loc == NULL) {
        result_refuse(result, RULE_LOC_MISSING, "loc");
        return CATALOGUE_OK;
    }
    enum catalogue_status status = entry_locate(tx, &put);
    if (status == CATALOGUE_OK)
        status = put_check_owner(tx, &put);
    if (status == CATALOGUE_OK)
        status = put_room(tx, &put);
    if (status != CATALOGUE_OK)
        return status;
    if (put.forbidden && put.code == RULE_OUTSIDE_TOKEN)
        result_outside(result, put.field, NULL);
    else if (put.forbidden)
        result_forbid(result);
    if (put.forbidden)
        return CATALOGUE_OK;
    if (put.code != RULE_OK) {
        result_refuse(result, put.code, put.field);
        snprintf(result->detail, sizeof result->detail, "%s", put_why(&put));
        return CATALOGUE_OK;
    }
    status = check_precondition(tx, change, put.site->id, put.url.text, put.from ? &put.row : NULL,
                                result);
    if (status != CATALOGUE_OK || result->status != CATALOGUE_OK)
        return status;

    status = put_write(tx, &put);
    if (status == CATALOGUE_OK)
        status = put_record(tx, put.site->id, put.url.text, &put.row, &result->entry);
    if (status == CATALOGUE_OK)
        status = gather_remarks(tx, &put, result);
    count_put(change, result, &put);
    result->changed = put.outcome != PUT_UNCHANGED;
    return status;
}

/* ---- removal */

struct found {
    const struct registry_index *index; /* NULL: not found */
    int64_t site_id; /* of the list that the id names; 0: of none, or not by id */
    char loc[LOC_MAX_CHARS + 1];
    struct put_row row;
};

static enum catalogue_status find_by_id(struct tx *tx, const struct registry *r, const char *id,
                                        enum list_kind kind, struct found *out)
{
    int64_t index_id, serial;
    uint32_t position;
    out->index = NULL;
    if (!id_parse(id, &index_id, &position, &serial))
        return CATALOGUE_OK;
    const struct registry_index *index = registry_list_by_id(r, index_id);
    if (!index || index->kind != kind)
        return CATALOGUE_OK;
    out->site_id = index->site_id;
    sqlite3_stmt *row;
    enum catalogue_status status =
        tx_first(tx, ST_ENTRY_BY_ADDRESS, &row, id_address(index_id, position));
    if (row != NULL && sqlite3_column_int64(row, 6) == serial) {
        const char *loc = (const char *)sqlite3_column_text(row, 2);
        size_t len = loc ? strnlen(loc, LOC_MAX_CHARS) : 0;
        memcpy(out->loc, loc ? loc : "", len);
        out->loc[len] = '\0';
        put_row_read(tx, row, &out->row);
        out->index = index;
    }
    sqlite3_reset(row);
    return status;
}

static enum catalogue_status find_in_site(struct tx *tx, const struct registry *r,
                                          const struct registry_site *site, struct found *out)
{
    enum catalogue_status status = put_find(tx, site->id, out->loc, &out->row);
    if (status == CATALOGUE_OK && out->row.found)
        out->index = registry_index_by_id(r, id_address_index(out->row.address));
    return status;
}

/* Finds the loc in the named list. */
static enum catalogue_status find_in_list(struct tx *tx, const struct registry *r,
                                          const struct change *change, const struct url *url,
                                          struct change_result *result, struct found *out)
{
    bool pages = change->list == LIST_URLSET;
    const struct registry_index *list =
        change->index_name ? registry_list_by_name(r, change->index_name, change->list, NULL)
                           : NULL;
    out->index = NULL;
    if (change->index_name && change->grant.site_id != 0 &&
        (!list || !grant_has_site(&change->grant, list->site_id))) {
        result_forbid(result);
        return CATALOGUE_OK;
    }
    if (!list) {
        result_refuse(result,
                      !change->index_name ? RULE_URLSET_NEEDED
                      : pages             ? RULE_URLSET_UNKNOWN
                                          : RULE_INDEX_UNKNOWN,
                      pages ? "urlset" : "index");
        return CATALOGUE_OK;
    }
    memcpy(out->loc, url->text, (size_t)url->len + 1);
    enum catalogue_status status = put_find(tx, list_scope(list), out->loc, &out->row);
    if (out->row.found && id_address_index(out->row.address) == list->id)
        out->index = list;
    return status;
}

/* The loc's own site first, then the only one that has it as a cross host; a token sees only its
 * site. */
static enum catalogue_status find_by_loc(struct tx *tx, const struct registry *r,
                                         const struct change *change, const struct url *url,
                                         struct change_result *result, struct found *out)
{
    char origin[LOC_MAX_CHARS + 1];
    memcpy(origin, url->text, url->origin_len);
    origin[url->origin_len] = '\0';
    memcpy(out->loc, url->text, (size_t)url->len + 1);
    out->index = NULL;
    enum catalogue_status status = CATALOGUE_OK;
    if (change->grant.site_id != 0) {
        const struct registry_site *only = registry_site_by_id(r, change->grant.site_id);
        return only ? find_in_site(tx, r, only, out) : CATALOGUE_OK;
    }
    const struct registry_site *own = registry_site_by_origin(r, origin);
    if (own)
        status = find_in_site(tx, r, own, out);
    if (out->index)
        return status;
    struct put_row other = {.found = false};
    for (size_t i = 0; status == CATALOGUE_OK && !other.found && i < r->site_count; i++)
        status = out->index ? put_find(tx, r->sites[i].id, out->loc, &other)
                            : find_in_site(tx, r, &r->sites[i], out);
    if (other.found) {
        result_refuse(result, RULE_INDEX_NEEDED, "index");
        snprintf(result->detail, sizeof result->detail,
                 "is missing: several sites list the loc; name the index");
    }
    return status;
}

/* Whether the caller may remove the entry found. An entry that the caller may not see is answered
 * as unknown: by id those outside of the prefix, else those of other sites. */
static enum catalogue_status check_removal(struct tx *tx, const struct registry *r,
                                           const struct change *change, bool by_id,
                                           const struct found *found, struct change_result *result)
{
    const struct grant *grant = &change->grant;
    int64_t own = 0;
    enum catalogue_status status = CATALOGUE_OK;
    if (!found->index || (by_id && !grant_has_loc(grant, found->loc))) {
        const char *missing =
            change->list == LIST_URLSET ? "page URL not found" : "entry not found";
        bool of_own = found->site_id != 0 && grant_has_site(grant, found->site_id);
        if (by_id && !grant->prefix && !of_own)
            result_missing(result, grant, missing);
        else
            result_decline(result, CATALOGUE_NOT_FOUND, missing);
        return CATALOGUE_OK;
    }
    if (!grant_has_site(grant, found->index->site_id)) {
        result_forbid(result);
        return CATALOGUE_OK;
    }
    if (grant->own)
        status = tx_source(tx, grant->name ? grant->name : "", false, &own);
    if (status != CATALOGUE_OK)
        return status;
    if (grant->own && found->row.source != own)
        result_outside(result, NULL, NULL);
    else if (found->row.source < 0)
        result_refuse(result, RULE_OF_URLSET, "loc");
    else
        result_frozen(result, change, registry_freeze(r, found->index));
    return CATALOGUE_OK;
}

enum catalogue_status apply_entry_remove(struct tx *tx, const struct change *change,
                                         const struct change_entry_remove *removal,
                                         struct change_result *result)
{
    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    struct found found = {.index = NULL};
    if (removal->id != NULL) {
        status = find_by_id(tx, r, removal->id, change->list, &found);
    } else {
        struct url url;
        const char *loc = removal->loc ? removal->loc : "";
        enum rule_code code = url_parse(loc, strlen(loc), &url, NULL);
        if (code != RULE_OK) {
            result_refuse(result, code, "loc");
            return CATALOGUE_OK;
        }
        if (!grant_has_loc(&change->grant, url.text)) {
            result_outside(result, "loc", NULL);
            return CATALOGUE_OK;
        }
        if (change->list == LIST_URLSET || change->index_name)
            status = find_in_list(tx, r, change, &url, result, &found);
        else
            status = find_by_loc(tx, r, change, &url, result, &found);
    }
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = check_removal(tx, r, change, removal->id != NULL, &found, result);
    if (status != CATALOGUE_OK || result->status != CATALOGUE_OK)
        return status;
    int64_t site_id = found.index->site_id;
    status = check_precondition(tx, change, site_id, found.loc, &found.row, result);
    if (status != CATALOGUE_OK || result->status != CATALOGUE_OK)
        return status;

    status = put_remove(tx, found.index, &found.row, found.loc);
    if (status == CATALOGUE_OK)
        status = source_touch(tx, site_id, found.row.source);
    if (status == CATALOGUE_OK)
        status = put_record(tx, site_id, found.loc, &found.row, &result->entry);
    result->removed = 1;
    result->changed = true;
    return status;
}
