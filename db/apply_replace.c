#include <assert.h>
#include <string.h>

#include "db/guard.h"
#include "db/id.h"
#include "db/replace.h"

static bool is_parked(const struct put *put)
{
    return put->row.found && put->row.address < 0;
}

/* True for an entry, here or in another index, that belongs to another source: the replace leaves
 * it alone. */
static bool is_foreign(const struct replace *r)
{
    const struct put *put = &r->put;
    return r->owner != 0 && (put->from || is_parked(put)) && put->row.source != r->owner;
}

/* Judges the line at hand by what does not depend on room. The same answer in both passes. */
static enum catalogue_status judge(struct replace *r, const struct entry *entry)
{
    struct put *put = &r->put;
    const char *prefix = r->change->replace_prefix;
    put->entry = entry;
    put->index_name = r->change->index_name;
    if (!entry->loc) {
        put->code = RULE_LOC_MISSING;
        put->field = "loc";
        return CATALOGUE_OK;
    }
    enum catalogue_status status = put_place(r->tx, put);
    if (status != CATALOGUE_OK || put->code != RULE_OK)
        return status;
    if (prefix && strncmp(put->url.text, prefix, strlen(prefix)) != 0) {
        put->code = RULE_OUTSIDE_DIRECTORY;
        put->field = "loc";
    } else if (entry->position != POSITION_NONE &&
               entry->position / LIMIT_PAGE_ENTRIES >= put->site->max_pages) {
        put->code = RULE_POSITION;
        put->field = "position";
    }
    return CATALOGUE_OK;
}

static void reject(struct replace *r, enum rule_code code, const char *field)
{
    reject_entry(r->change, r->result, r->put.entry, code, field);
}

/* ---- the first pass */

static enum catalogue_status keep_line(struct replace *r)
{
    struct put *put = &r->put;
    const struct entry *entry = put->entry;
    bool elsewhere = entry->position != POSITION_NONE &&
                     entry->position != id_address_position(put->row.address);
    sqlite3_stmt *add = tx_statement(r->tx, ST_KEEP_ADD);
    if (!add)
        return tx_failure(r->tx);
    sqlite3_bind_int64(add, 1, put->row.address);
    sqlite3_bind_int64(add, 2, (sqlite3_int64)r->ordinal);
    sqlite3_bind_int(add, 3, elsewhere);
    enum catalogue_status status = statement_run(add);
    if (status == CATALOGUE_OK && sqlite3_changes(r->tx->db) == 0)
        reject(r, RULE_DUPLICATE, "loc");
    return status;
}

static enum catalogue_status first_pass(struct replace *r, const struct entry *entry)
{
    struct put *put = &r->put;
    enum catalogue_status status = judge(r, entry);
    if (status != CATALOGUE_OK)
        return status;
    if (put->code != RULE_OK) {
        reject(r, put->code, put->field);
        if (put->forbidden && r->result->status != CATALOGUE_OK)
            r->result->forbidden = true;
    } else if (put->from == r->index && !is_foreign(r)) {
        status = keep_line(r);
    }
    return status;
}

/* ---- the second pass */

/* True where this line is the one that the first pass took for the entry at `address`. */
static enum catalogue_status is_first(struct replace *r, int64_t address, bool *yes)
{
    sqlite3_stmt *find = tx_statement(r->tx, ST_KEEP_FIND);
    if (!find)
        return tx_failure(r->tx);
    sqlite3_bind_int64(find, 1, address);
    int64_t ordinal;
    enum catalogue_status status = statement_number(find, 0, &ordinal);
    *yes = status == CATALOGUE_OK && (uint64_t)ordinal == r->ordinal;
    return status;
}

/* Nothing is written any more: a loc that would be new is compared with those before it. */
static enum catalogue_status check_fresh(struct replace *r)
{
    sqlite3_stmt *add = tx_statement(r->tx, ST_FRESH_ADD);
    if (!add)
        return tx_failure(r->tx);
    statement_bind_text(add, 1, r->put.url.text);
    enum catalogue_status status = statement_run(add);
    if (status == CATALOGUE_OK && sqlite3_changes(r->tx->db) == 0)
        reject(r, RULE_DUPLICATE, "loc");
    return status;
}

static enum catalogue_status write_present(struct replace *r)
{
    struct put *put = &r->put;
    bool parked = is_parked(put), first = false;
    enum catalogue_status status =
        is_first(r, parked ? -put->row.address : put->row.address, &first);
    if (status != CATALOGUE_OK || !first || r->result->status != CATALOGUE_OK)
        return status;
    if (parked) {
        bool back;
        status = replace_unpark(r, &back);
        if (status == CATALOGUE_OK && !back) {
            r->result->removed++;
            reject(r, RULE_SITE_FULL, "loc");
        }
        if (status != CATALOGUE_OK || !back)
            return status;
    }
    status = put_write(r->tx, put);
    if (parked || put->outcome != PUT_UNCHANGED)
        r->result->updated++;
    else
        r->result->unchanged++;
    return status;
}

static enum catalogue_status write_new(struct replace *r)
{
    struct put *put = &r->put;
    if (r->result->status != CATALOGUE_OK)
        return check_fresh(r);
    enum catalogue_status status = put_room(r->tx, put);
    if (status != CATALOGUE_OK)
        return status;
    if (put->code != RULE_OK) {
        reject(r, put->code, put->field);
        return CATALOGUE_OK;
    }
    status = put_write(r->tx, put);
    if (put->outcome == PUT_CREATED)
        r->result->created++;
    else
        r->result->updated++; /* moved from another index */
    return status;
}

static enum catalogue_status second_pass(struct replace *r, const struct entry *entry)
{
    struct put *put = &r->put;
    enum catalogue_status status = judge(r, entry);
    if (status != CATALOGUE_OK || put->code != RULE_OK)
        return status; /* told in the first pass */
    bool here = put->from == r->index;
    if (here && put->row.serial > r->tx->first_serial) {
        reject(r, RULE_DUPLICATE, "loc"); /* made by a line before this one */
        return CATALOGUE_OK;
    }
    if (is_foreign(r)) {
        r->result->unchanged++;
        return CATALOGUE_OK;
    }
    return here || is_parked(put) ? write_present(r) : write_new(r);
}

/* ---- the whole */

typedef enum catalogue_status pass(struct replace *r, const struct entry *entry);

static enum catalogue_status read_list(struct replace *r, pass *take, bool *read)
{
    const struct entry_stream *stream = r->change->stream;
    struct entry entry;
    int more;
    r->ordinal = 0;
    while ((more = stream->next(stream->context, &entry)) == 1) {
        r->ordinal++;
        enum catalogue_status status = take(r, &entry);
        if (status != CATALOGUE_OK)
            return status;
        breathe(r->tx, r->change, r->ordinal);
    }
    r->put.entry = NULL;
    *read = more == 0;
    return CATALOGUE_OK;
}

static enum catalogue_status clear_tables(struct tx *tx)
{
    sqlite3_stmt *keep = tx_statement(tx, ST_KEEP_CLEAR);
    sqlite3_stmt *fresh = tx_statement(tx, ST_FRESH_CLEAR);
    if (!keep || !fresh)
        return tx_failure(tx);
    enum catalogue_status status = statement_run(keep);
    return status == CATALOGUE_OK ? statement_run(fresh) : status;
}

/* Finds the index and whose entries are meant. A refusal is written into the result. */
static enum catalogue_status prepare(struct replace *r)
{
    const struct registry *registry;
    enum catalogue_status status = tx_registry(r->tx, &registry);
    if (status != CATALOGUE_OK)
        return status;
    const char *name = r->change->index_name;
    r->index = name ? registry_index_by_name(registry, name, NULL) : NULL;
    if (!r->index) {
        result_refuse(r->result, name ? RULE_INDEX_UNKNOWN : RULE_INDEX_NEEDED, "index");
        return CATALOGUE_OK;
    }
    if (r->change->token_site_id != 0 && r->change->token_site_id != r->index->site_id) {
        result_forbid(r->result);
        return CATALOGUE_OK;
    }
    status = fill_index(r->tx, r->index->site_id, r->index->id, &r->fill);
    if (status == CATALOGUE_OK && r->change->replace_source) {
        status = tx_source(r->tx, r->change->replace_source, false, &r->owner);
        if (r->owner == 0)
            r->owner = -1;
    }
    return status == CATALOGUE_OK ? clear_tables(r->tx) : status;
}

static enum catalogue_status run_passes(struct replace *r)
{
    bool read;
    enum catalogue_status status = read_list(r, first_pass, &read);
    if (status != CATALOGUE_OK)
        return status;
    if (r->result->status == CATALOGUE_OK && read) {
        status = replace_prune(r);
        if (status == CATALOGUE_OK)
            status = replace_park(r);
    }
    if (status != CATALOGUE_OK)
        return status;
    if (read)
        read = r->change->stream->rewind(r->change->stream->context);
    if (read)
        status = read_list(r, second_pass, &read);
    if (!read)
        reject_stream(r->result);
    return status;
}

enum catalogue_status apply_replace(struct tx *tx, const struct change *change,
                                    struct change_result *result, bool *keep)
{
    const char *source = change->replace_source ? change->replace_source : change->source;
    struct replace r = {.tx = tx, .change = change, .result = result};
    r.put.source = source;
    r.put.normalised = true;
    r.put.token_site_id = change->token_site_id;
    enum catalogue_status status = prepare(&r);
    if (status != CATALOGUE_OK)
        return status;
    if (result->status == CATALOGUE_OK) {
        assert(r.fill != NULL);
        struct guard_case guard = {.before = r.fill->entries, .max_removed = change->max_removed};
        status = guard_peak(tx, r.fill, &guard.peak);
        if (status == CATALOGUE_OK)
            status = run_passes(&r);
        if (status != CATALOGUE_OK)
            return status;
        guard.after = r.fill->entries;
        guard.removed = result->removed;
        if (result->status == CATALOGUE_OK && guard_judge(tx, &guard, result) &&
            guard_approved(tx, &guard)) {
            fill_index_dirty(tx, r.fill);
            r.fill->peak_reset = true;
        }
    }
    result->changed = tx->changed;
    finish_set(tx, change, result, keep);
    return CATALOGUE_OK;
}
