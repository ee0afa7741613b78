#include "db/put.h"

#include <string.h>

#include "db/guard.h"
#include "db/id.h"
#include "server/rules/lastmod.h"
#include "server/rules/render.h"

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

/* What of a lastmod shows in the XML: NULL where nothing does. */
static const char *rendered(bool has, const char *lastmod)
{
    return has && lastmod_renders(lastmod) ? lastmod : NULL;
}

/* The lastmod and digest that the entry has after this upsert. With a digest that stands still the
 * date does too: that is what makes it honest. */
static void merge(const struct entry *entry, const struct put_row *old, struct put_row *new)
{
    bool same_digest = entry->digest_state == FIELD_SET && old->has_digest &&
                       strcmp(entry->digest, old->digest) == 0;
    *new = *old;
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
}

static enum catalogue_status update(struct tx *tx, struct put *put)
{
    const struct put_row *old = &put->row;
    struct put_row new;
    merge(put->entry, old, &new);
    bool same_lastmod = same_text(old->has_lastmod, old->lastmod, new.has_lastmod, new.lastmod);
    put->outcome = PUT_UNCHANGED;
    if (same_lastmod && same_text(old->has_digest, old->digest, new.has_digest, new.digest))
        return CATALOGUE_OK;

    const char *shown = rendered(old->has_lastmod, old->lastmod);
    const char *shows = rendered(new.has_lastmod, new.lastmod);
    new.changed_at = tx->now;
    sqlite3_stmt *row = tx_statement(tx, ST_ENTRY_UPDATE);
    if (!row)
        return tx_failure(tx);
    sqlite3_bind_int64(row, 1, old->address);
    statement_bind_text(row, 2, new.has_lastmod ? new.lastmod : NULL);
    statement_bind_text(row, 3, new.has_digest ? new.digest : NULL);
    sqlite3_bind_int64(row, 4, new.changed_at);
    enum catalogue_status status = statement_run(row);
    if (status != CATALOGUE_OK)
        return status;
    tx->changed = true;
    put->outcome = PUT_UPDATED;
    /* A digest is not served: the page, and with it Last-Modified, stays as it is. */
    if (!same_text(shown != NULL, shown, shows != NULL, shows)) {
        struct fill_index *fill;
        status = fill_index(tx, put->index->site_id, put->index->id, &fill);
        if (status == CATALOGUE_OK)
            status = fill_touch(tx, fill, id_address_position(old->address));
    }
    put->row = new;
    return status;
}

enum catalogue_status put_release(struct tx *tx, const struct registry_index *index,
                                  int64_t address, const char *loc, size_t loc_len)
{
    struct fill_index *fill;
    enum catalogue_status status = fill_index(tx, index->site_id, index->id, &fill);
    if (status != CATALOGUE_OK)
        return status;
    sqlite3_stmt *row = tx_statement(tx, ST_ENTRY_DELETE);
    if (!row)
        return tx_failure(tx);
    sqlite3_bind_int64(row, 1, address);
    status = statement_run(row);
    if (status == CATALOGUE_OK)
        status =
            fill_release(tx, fill, id_address_position(address), render_entry_bytes(loc, loc_len));
    return status;
}

enum catalogue_status put_take_out(struct tx *tx, const struct registry_index *index,
                                   int64_t address, const char *loc, size_t loc_len)
{
    struct fill_index *fill;
    enum catalogue_status status = put_release(tx, index, address, loc, loc_len);
    if (status == CATALOGUE_OK)
        status = fill_index(tx, index->site_id, index->id, &fill);
    if (status == CATALOGUE_OK)
        guard_single_removal(fill);
    return status;
}

/* Frees (site, loc) for the new row: moves it out of the index it was in, or drops the remains
 * that a removed index left. */
static enum catalogue_status vacate(struct tx *tx, const struct put *put)
{
    if (!put->row.found)
        return CATALOGUE_OK;
    if (put->from)
        return put_take_out(tx, put->from, put->row.address, put->url.text, put->url.len);
    sqlite3_stmt *row = tx_statement(tx, ST_ENTRY_DELETE);
    if (!row)
        return tx_failure(tx);
    sqlite3_bind_int64(row, 1, put->row.address);
    return statement_run(row);
}

static enum catalogue_status insert(struct tx *tx, struct put *put)
{
    struct put_row *row = &put->row;
    sqlite3_stmt *statement = tx_statement(tx, ST_ENTRY_INSERT);
    if (!statement)
        return tx_failure(tx);
    sqlite3_bind_int64(statement, 1, row->address);
    sqlite3_bind_int64(statement, 2, put->site->id);
    sqlite3_bind_text(statement, 3, put->url.text, put->url.len, SQLITE_STATIC);
    statement_bind_text(statement, 4, row->has_lastmod ? row->lastmod : NULL);
    statement_bind_text(statement, 5, row->has_digest ? row->digest : NULL);
    sqlite3_bind_int64(statement, 6, row->source);
    sqlite3_bind_int64(statement, 7, row->serial);
    sqlite3_bind_int64(statement, 8, row->registered_at);
    sqlite3_bind_int64(statement, 9, row->changed_at);
    enum catalogue_status status = statement_run(statement);
    if (status != CATALOGUE_OK)
        return status;
    if (sqlite3_changes(tx->db) == 0) {
        /* It is registered. Only who did not look can be surprised. */
        put->outcome = PUT_KNOWN;
        tx->serial--;
        return put->expect_new ? CATALOGUE_OK : CATALOGUE_CORRUPT;
    }
    tx->changed = true;
    return fill_take(tx, put->fill, put->position, put->weight);
}

enum catalogue_status put_write(struct tx *tx, struct put *put)
{
    bool live = put->row.found && put->from != NULL;
    if (live && put->from == put->index)
        return update(tx, put);

    enum catalogue_status status = vacate(tx, put);
    if (status != CATALOGUE_OK)
        return status;
    struct put_row new = {.registered_at = tx->now};
    if (live) {
        merge(put->entry, &put->row, &new);
    } else {
        const char *source = put->entry->source ? put->entry->source : put->source;
        struct put_row nothing = new;
        merge(put->entry, &nothing, &new);
        status = tx_source(tx, source ? source : "", true, &new.source);
        if (status != CATALOGUE_OK)
            return status;
    }
    new.found = true;
    new.serial = ++tx->serial;
    new.address = id_address(put->index->id, put->position);
    new.changed_at = tx->now;
    put->row = new;
    put->from = put->index;
    put->outcome = live ? PUT_MOVED : PUT_CREATED;
    return insert(tx, put);
}
