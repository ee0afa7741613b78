#include <string.h>

#include "db/id.h"
#include "db/put.h"
#include "server/rules/render.h"

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

void put_row_read(sqlite3_stmt *statement, struct put_row *row)
{
    row->found = true;
    row->address = sqlite3_column_int64(statement, 0);
    row->has_lastmod = read_text(statement, 3, row->lastmod, sizeof row->lastmod);
    row->has_digest = read_text(statement, 4, row->digest, sizeof row->digest);
    row->source = sqlite3_column_int64(statement, 5);
    row->serial = sqlite3_column_int64(statement, 6);
    row->registered_at = sqlite3_column_int64(statement, 7);
    row->changed_at = sqlite3_column_int64(statement, 8);
}

enum catalogue_status put_find(struct tx *tx, int64_t site_id, const char *loc, struct put_row *row)
{
    row->found = false;
    sqlite3_stmt *statement = tx_statement(tx, ST_ENTRY_BY_LOC);
    if (!statement)
        return tx_failure(tx);
    sqlite3_bind_int64(statement, 1, site_id);
    statement_bind_text(statement, 2, loc);
    bool found;
    enum catalogue_status status = statement_first(statement, &found);
    if (found)
        put_row_read(statement, row);
    sqlite3_reset(statement);
    return status;
}

/* Looks the loc up in a site, and where it is registered and no index was named, lets it stay. */
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

static bool names_host(const struct registry_site *site, const struct url *url)
{
    for (size_t i = 0; i < site->cross_host_count; i++) {
        const char *host = site->cross_hosts[i];
        if (strncmp(host, url->text + url->host_at, url->host_len) == 0 &&
            (host[url->host_len] == '\0' || host[url->host_len] == ':'))
            return true;
    }
    return false;
}

/* Without an index named, a registered loc stays where it is: in the site of its own origin, or in
 * one that has its host as a cross host. */
static enum catalogue_status find_registered(struct tx *tx, struct put *put,
                                             const struct registry *r)
{
    char origin[LOC_MAX_CHARS + 1];
    memcpy(origin, put->url.text, put->url.origin_len);
    origin[put->url.origin_len] = '\0';
    const struct registry_site *own = registry_site_by_origin(r, origin);
    int64_t only = put->token_site_id; /* another site's entry is none of a token's business */
    if (own && (only == 0 || own->id == only)) {
        enum catalogue_status status = look_in(tx, put, r, own);
        if (status != CATALOGUE_OK || put->from)
            return status;
    }
    struct put_row own_row = put->row;
    for (size_t i = 0; i < r->site_count; i++) {
        const struct registry_site *site = &r->sites[i];
        if (site == own || site->cross_host_count == 0 || (only != 0 && site->id != only) ||
            !names_host(site, &put->url))
            continue;
        enum catalogue_status status = look_in(tx, put, r, site);
        if (status != CATALOGUE_OK || put->from)
            return status;
    }
    put->site = own;
    put->row = own_row;
    return CATALOGUE_OK;
}

static void refuse(struct put *put, enum rule_code code)
{
    put->code = code;
    put->field = code == RULE_INDEX_UNKNOWN || code == RULE_INDEX_NEEDED ? "index" : "loc";
}

static void check_token(struct put *put)
{
    if (put->token_site_id == 0 || !put->site || put->site->id == put->token_site_id)
        return;
    put->forbidden = true;
    refuse(put, RULE_SITE_UNKNOWN);
}

enum catalogue_status put_place(struct tx *tx, struct put *put)
{
    put->code = RULE_OK;
    put->forbidden = false;
    put->field = NULL;
    put->site = NULL;
    put->index = put->from = NULL;
    put->row.found = false;
    put->fill = NULL;
    put->position = POSITION_NONE;

    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    const char *loc = put->entry->loc;
    size_t len = strlen(loc);
    enum rule_code code = RULE_OK;
    if (!put->normalised || !url_split(loc, len, &put->url))
        code = url_parse(loc, len, &put->url, NULL);
    if (code != RULE_OK) {
        refuse(put, code);
        return CATALOGUE_OK;
    }
    if (!put->index_name && !put->expect_new) {
        status = find_registered(tx, put, r);
        if (status != CATALOGUE_OK)
            return status;
        if (put->from) {
            put->index = put->from;
            check_token(put);
            return CATALOGUE_OK;
        }
    }
    struct placement placement;
    code = registry_place(r, &put->url, put->index_name, &placement);
    put->site = placement.site;
    check_token(put); /* before the reason: it would tell of a site that is none of its business */
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

enum catalogue_status put_room(struct tx *tx, struct put *put)
{
    if (put->code != RULE_OK || put->from == put->index)
        return CATALOGUE_OK;
    const struct registry_site *site = put->site;
    if (put->entry->position != POSITION_NONE &&
        put->entry->position / LIMIT_PAGE_ENTRIES >= site->max_pages) {
        put->code = RULE_POSITION;
        put->field = "position";
        return CATALOGUE_OK;
    }
    enum catalogue_status status = fill_index(tx, site->id, put->index->id, &put->fill);
    if (status != CATALOGUE_OK)
        return status;
    put->weight = render_entry_bytes(put->url.text, put->url.len);
    struct fill_room room = {
        .weight = put->weight, .max_pages = site->max_pages, .wanted = put->entry->position};
    if (put->from) {
        /* A move may leave the page it comes from empty, and so make room for another. */
        struct fill_index *from;
        status = fill_index(tx, site->id, put->from->id, &from);
        if (status != CATALOGUE_OK)
            return status;
        room.spare = fill_would_empty(from, id_address_position(put->row.address)) ? 1 : 0;
    }
    status = fill_find(tx, put->fill, &room, &put->position);
    if (status == CATALOGUE_OK && put->position == POSITION_NONE)
        refuse(put, RULE_SITE_FULL);
    return status;
}
