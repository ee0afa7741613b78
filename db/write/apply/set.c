/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sets of entries: a bulk, which applies each line like a single registration, and a replace. The
 * writer's thread.
 *
 * A replace acts on the index's entries of `replace.source` (NULL: all sources) with locs that
 * begin with `replace.prefix` (NULL: all). It makes two passes over the list, with the removals in
 * between, so that they make room for additions:
 *   1. validate every line; remember in temp.keep which entries of the index the list names, also
 *      in lines that are rejected (with `skip`): a mistake in a line must not remove its entry
 *   2. prune: remove the others of these entries
 *   3. park: entries that an export's lines put at another position get the address -address,
 *      which no entry has
 *   4. write: update, move parked entries to their positions, add what is new. */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "db/read/row.h"
#include "db/write/apply/apply.h"
#include "db/write/apply/entry.h"
#include "db/write/guard.h"
#include "server/rules/http/negotiate.h"

#define TOUCHED_MOST 16u

struct replace {
    struct tx *tx;
    const struct change *change;
    const struct change_replace *part;
    struct change_result *result;
    const struct registry_index *index;
    struct occupancy_index *occupancy;
    const char *prefix; /* of the locs acted on; NULL: any */
    int64_t owner;      /* the source acted on; 0: anyone's; -1: one that owns nothing yet */
    uint64_t ordinal;   /* of the current line, from 1 */
    uint64_t foreign;   /* lines that equal an entry of another source */
    uint64_t share;     /* number of entries acted on, before the replace */
    uint64_t held;      /* of these: entries that stay because their line was rejected */
    int64_t touched[TOUCHED_MOST]; /* sources whose entries were removed */
    size_t touched_count;          /* TOUCHED_MOST + 1: more */
    struct put put;                /* the current line */
};

/* A sitemap that is a urlset's page: the list of an index (an export, the index itself) names it,
 * too, and leaves it unchanged. */
static bool is_of_urlset(const struct put *put)
{
    return put->list == LIST_INDEX && put->code == RULE_OF_URLSET && !put->forbidden;
}

/* Checks If-Match against the state of the index that a list names (RFC 9110 13.1.1). */
static enum catalogue_status evaluate_state(struct tx *tx, const struct change *change,
                                            const struct occupancy_index *index,
                                            struct change_result *result)
{
    enum catalogue_status status = occupancy_state(tx, index, false, result->index_state);
    if (status != CATALOGUE_OK || !change->if_match ||
        negotiate_match_state(change->if_match, result->index_state))
        return status;
    result_decline(result, CATALOGUE_CONFLICT,
                   "conflict: the index has changed since the state given in If-Match");
    result->precondition_failed = true;
    return CATALOGUE_OK;
}

/* True if the replace must end here: it is rejected, and rolled back. */
static bool is_to_end(const struct replace *r)
{
    return list_ends(r->tx, r->change, r->result);
}

/* Where entries of any owner are removed: only their sources are read again. */
static enum catalogue_status touch_owner(struct replace *r, int64_t source)
{
    for (size_t i = 0; i < r->touched_count && i < TOUCHED_MOST; i++)
        if (r->touched[i] == source)
            return CATALOGUE_OK;
    if (r->touched_count > TOUCHED_MOST)
        return CATALOGUE_OK;
    if (r->touched_count++ == TOUCHED_MOST)
        return sources_touch(r->tx, r->index->site_id);
    r->touched[r->touched_count - 1] = source;
    return source_touch(r->tx, r->index->site_id, source);
}

/* One segment at a time, since SQLite keeps all rows of RETURNING in memory. */
static enum catalogue_status prune_segment(struct replace *r, uint32_t first)
{
    struct tx *tx = r->tx;
    sqlite3_stmt *gone = tx_bind(tx, ST_SEGMENT_PRUNE, id_address(r->index->id, first),
                                 id_address(r->index->id, first + SEGMENT_POSITIONS - 1),
                                 sql_not_0(r->owner), r->prefix);
    if (gone == NULL)
        return tx_failure(tx);
    bool found;
    enum catalogue_status status;
    while ((status = statement_first(gone, &found)) == CATALOGUE_OK && found) {
        const char *loc = (const char *)sqlite3_column_text(gone, 1);
        size_t len = (size_t)sqlite3_column_bytes(gone, 1);
        size_t extensions = (size_t)sqlite3_column_int64(gone, 2);
        if (!loc)
            status = CATALOGUE_NO_MEMORY;
        else
            status = occupancy_release(tx, r->occupancy,
                                       id_address_position(sqlite3_column_int64(gone, 0)),
                                       occupancy_weight(r->index->kind, loc, len, extensions));
        if (status == CATALOGUE_OK)
            status = touch_owner(r, sqlite3_column_int64(gone, 3));
        if (status != CATALOGUE_OK)
            break;
        r->result->removed++;
    }
    sqlite3_reset(gone);
    return status;
}

static enum catalogue_status replace_prune(struct replace *r)
{
    for (uint32_t number = 1; number <= r->occupancy->page_count; number++) {
        struct occupancy_page *page = r->occupancy->pages[number - 1];
        if (page->entries == 0)
            continue;
        enum catalogue_status status = occupancy_load_segments(r->tx, r->occupancy, page);
        for (uint32_t s = 0; status == CATALOGUE_OK && s < PAGE_SEGMENTS; s++) {
            if (page->segments->entries[s] == 0)
                continue;
            status = prune_segment(r, (number - 1) * LIMIT_PAGE_ENTRIES + s * SEGMENT_POSITIONS);
            if (status == CATALOGUE_OK && is_to_end(r))
                return CATALOGUE_OK;
        }
        if (status != CATALOGUE_OK)
            return status;
    }
    return CATALOGUE_OK;
}

static enum catalogue_status park_one(struct replace *r, int64_t address)
{
    struct tx *tx = r->tx;
    sqlite3_stmt *row;
    enum catalogue_status status = tx_first(tx, ST_ENTRY_BY_ADDRESS, &row, address);
    uint32_t weight = 0;
    if (row != NULL)
        weight = occupancy_weight(r->index->kind, (const char *)sqlite3_column_text(row, 2),
                                  (size_t)sqlite3_column_bytes(row, 2),
                                  (size_t)sqlite3_column_bytes(row, 9));
    sqlite3_reset(row);
    if (status != CATALOGUE_OK || row == NULL)
        return status;
    status = tx_run(tx, ST_ENTRY_READDRESS, address, -address);
    if (status == CATALOGUE_OK)
        status = occupancy_release(tx, r->occupancy, id_address_position(address), weight);
    return status;
}

static enum catalogue_status replace_park(struct replace *r)
{
    int64_t address = 0;
    uint64_t parked = 0;
    enum catalogue_status status = CATALOGUE_OK;
    while (status == CATALOGUE_OK) {
        status = tx_number(r->tx, ST_KEEP_WANTED, 0, &address, address);
        if (status != CATALOGUE_OK || address == 0)
            break;
        status = park_one(r, address);
        if (++parked % APPLY_LOOK == 0 && is_to_end(r))
            break;
    }
    return status;
}

/* Restores the parked entry of the current line, if possible at the wanted position. `*back` is
 * false if there was no room: then the entry is removed. */
static enum catalogue_status replace_unpark(struct replace *r, bool *back)
{
    struct tx *tx = r->tx;
    struct put *put = &r->put;
    int64_t parked = put->row.address;
    struct occupancy_room room = {.weight = put_row_weight(r->index, &put->row, put->url.text),
                                  .max_pages = registry_max_pages(put->registry, r->index),
                                  .wanted = put->entry->position};
    uint32_t position;
    enum rule_code code;
    enum catalogue_status status = urlset_find(tx, r->index, r->occupancy, &room, &position, &code);
    if (status != CATALOGUE_OK)
        return status;
    *back = code == RULE_OK;
    if (!*back)
        return tx_run(tx, ST_ENTRY_DELETE, parked);
    put->row.address = id_address(r->index->id, position);
    put->from = put->index;
    status = tx_run(tx, ST_ENTRY_READDRESS, parked, put->row.address);
    if (status == CATALOGUE_OK)
        status = urlset_reserve(tx, r->index, r->occupancy, position, room.weight);
    return status == CATALOGUE_OK ? urlset_record_age(tx, r->index, &put->row) : status;
}

static bool is_parked(const struct put *put)
{
    return put->row.found && put->row.address < 0;
}

/* True for an entry, in any index, of another source: the replace does not change it, and rejects a
 * line that would. */
static bool is_foreign(const struct replace *r)
{
    const struct put *put = &r->put;
    bool is_new = put->row.serial > r->tx->first_serial; /* made by a line before this one */
    return r->owner != 0 && !is_new && (put->from || is_parked(put)) && put->row.source != r->owner;
}

static bool is_in_prefix(const struct replace *r)
{
    return !r->prefix || strncmp(r->put.url.text, r->prefix, strlen(r->prefix)) == 0;
}

/* Validates the current line by what does not depend on room. The same answer in both passes. */
static enum catalogue_status validate_line(struct replace *r, const struct entry *entry)
{
    struct put *put = &r->put;
    put->entry = entry;
    put->index_name = r->change->index_name;
    if (!entry->loc) {
        put->code = RULE_LOC_MISSING;
        put->field = "loc";
        return CATALOGUE_OK;
    }
    enum catalogue_status status = entry_locate(r->tx, put);
    if (status != CATALOGUE_OK || put->code != RULE_OK)
        return status;
    if (!is_in_prefix(r)) {
        put->code = RULE_OUTSIDE_DIRECTORY;
        put->field = "loc";
    } else if (is_foreign(r) && put_changes(r->tx, put)) {
        put->code = RULE_OWNED_BY_ANOTHER;
        put->field = "loc";
    } else if (entry->position != POSITION_NONE &&
               entry->position / LIMIT_PAGE_ENTRIES >=
                   registry_max_pages(put->registry, put->index)) {
        put->code = RULE_POSITION;
        put->field = "position";
    }
    return CATALOGUE_OK;
}

/* A list with a line outside of the token's rights is rejected for that reason, whatever else is
 * wrong with it; likewise a list with a line for a frozen list. */
static void record_forbidden(const struct change *change, struct change_result *result,
                             const struct put *put)
{
    if (result->status == CATALOGUE_OK || change->skip || result->forbidden ||
        !(put->forbidden || put->code == RULE_FROZEN))
        return;
    result->forbidden = put->forbidden;
    result_refuse(result, put->code, put->field);
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
    enum catalogue_status status =
        tx_run(r->tx, ST_KEEP_ADD, put->row.address, (sqlite3_int64)r->ordinal, elsewhere);
    if (status != CATALOGUE_OK)
        return status;
    if (sqlite3_changes(r->tx->db) == 0)
        reject(r, RULE_DUPLICATE, "loc");
    else
        r->share++;
    return CATALOGUE_OK;
}

/* Keeps the entry of a rejected line as it is. */
static enum catalogue_status hold_entry(struct replace *r)
{
    struct put_row row;
    enum catalogue_status status = put_find(r->tx, list_scope(r->index), r->put.url.text, &row);
    if (status != CATALOGUE_OK || !row.found || id_address_index(row.address) != r->index->id ||
        row.source < 0 || (r->owner != 0 && row.source != r->owner) || !is_in_prefix(r))
        return status;
    status = tx_run(r->tx, ST_KEEP_ADD, row.address, (sqlite3_int64)r->ordinal, (sqlite3_int64)0);
    if (status == CATALOGUE_OK && sqlite3_changes(r->tx->db) > 0) {
        r->share++;
        r->held++;
    }
    return status;
}

static enum catalogue_status first_pass(struct replace *r, const struct entry *entry)
{
    struct put *put = &r->put;
    enum catalogue_status status = validate_line(r, entry);
    if (status != CATALOGUE_OK)
        return status;
    if (entry->rejected)
        return hold_entry(r);
    if (is_of_urlset(put)) {
        r->result->unchanged++;
        r->foreign++;
    } else if (put->code != RULE_OK) {
        status = reject_put(r->tx, r->change, r->result, put);
        record_forbidden(r->change, r->result, put);
        if (status == CATALOGUE_OK && r->change->skip && entry->loc)
            status = hold_entry(r);
    } else if (put->from == r->index && !is_foreign(r)) {
        status = keep_line(r);
    }
    return status;
}

/* ---- the second pass */

/* `*yes`: the first pass chose this line for the entry at `address`. */
static enum catalogue_status is_first(struct replace *r, int64_t address, bool *yes)
{
    int64_t ordinal;
    enum catalogue_status status = tx_number(r->tx, ST_KEEP_FIND, 0, &ordinal, address);
    *yes = status == CATALOGUE_OK && (uint64_t)ordinal == r->ordinal;
    return status;
}

/* Looks for an earlier line with the same new loc; used once nothing is written any more. */
static enum catalogue_status check_fresh(struct replace *r)
{
    enum catalogue_status status = tx_run(r->tx, ST_FRESH_ADD, r->put.url.text);
    if (status == CATALOGUE_OK && sqlite3_changes(r->tx->db) == 0)
        reject(r, RULE_DUPLICATE, "loc");
    return status;
}

static enum catalogue_status place(struct replace *r, bool parked)
{
    struct put *put = &r->put;
    enum catalogue_status status = put_room(r->tx, put);
    if (status != CATALOGUE_OK)
        return status;
    if (put->code != RULE_OK) {
        reject(r, put->code, put->field);
        r->held += put->from == r->index;
        return CATALOGUE_OK;
    }
    status = put_write(r->tx, put);
    if (parked)
        put->outcome = PUT_UPDATED;
    count_put(r->change, r->result, put);
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
            reject(r, r->index->kind == LIST_URLSET ? RULE_URLSET_FULL : RULE_SITE_FULL, "loc");
        }
        if (status != CATALOGUE_OK || !back)
            return status;
    }
    return place(r, parked);
}

static enum catalogue_status write_new(struct replace *r)
{
    return r->result->status != CATALOGUE_OK ? check_fresh(r) : place(r, false);
}

static enum catalogue_status second_pass(struct replace *r, const struct entry *entry)
{
    struct put *put = &r->put;
    enum catalogue_status status = validate_line(r, entry);
    if (status != CATALOGUE_OK || put->code != RULE_OK || entry->rejected)
        return status; /* reported in the first pass */
    bool here = put->from == r->index;
    if (here && put->row.serial > r->tx->first_serial) {
        reject(r, RULE_DUPLICATE, "loc"); /* made by a line before this one */
        return CATALOGUE_OK;
    }
    if (is_foreign(r)) {
        r->result->unchanged++;
        r->foreign++;
        return CATALOGUE_OK;
    }
    return here || is_parked(put) ? write_present(r) : write_new(r);
}

/* ---- the whole */

typedef enum catalogue_status pass(struct replace *r, const struct entry *entry);

static enum catalogue_status read_list(struct replace *r, pass *take, bool *read)
{
    struct entry entry;
    int more;
    r->ordinal = 0;
    spool_rewind(r->change->rows);
    while ((more = spool_next(r->change->rows, &entry)) == 1) {
        r->ordinal++;
        enum catalogue_status status = take(r, &entry);
        if (status != CATALOGUE_OK)
            return status;
        report_progress(r->change, r->ordinal);
        if (r->ordinal % APPLY_LOOK == 0 && is_to_end(r))
            break;
    }
    r->put.entry = NULL;
    *read = more >= 0;
    return CATALOGUE_OK;
}

static enum catalogue_status clear_tables(struct tx *tx)
{
    enum catalogue_status status = tx_run(tx, ST_KEEP_CLEAR);
    return status == CATALOGUE_OK ? tx_run(tx, ST_FRESH_CLEAR) : status;
}

/* Whether the caller may replace the named part. A replace by a token with a prefix covers that
 * part of the index. */
static bool check_grant(struct replace *r, const struct registry *registry)
{
    const struct change *change = r->change;
    const struct grant *grant = &change->grant;
    if (!grant_has_site(grant, r->index->site_id)) {
        result_forbid(r->result);
        return false;
    }
    if (!grant_narrow(grant, r->part->prefix, &r->prefix)) {
        result_outside(r->result, "prefix", NULL);
        return false;
    }
    if (!grant_has_source(grant, r->part->source)) {
        result_outside(r->result, "source", NULL);
        return false;
    }
    return !result_frozen(r->result, change, registry_freeze(registry, r->index));
}

/* Finds the index and the owner of the entries. A rejection is written into the result. */
static enum catalogue_status prepare(struct replace *r)
{
    const struct registry *registry;
    enum catalogue_status status = tx_registry(r->tx, &registry);
    if (status != CATALOGUE_OK)
        return status;
    const char *name = r->change->index_name;
    bool rows = r->change->list == LIST_URLSET;
    r->index = name ? registry_list_by_name(registry, name, r->change->list, NULL) : NULL;
    int64_t only = r->change->grant.site_id;
    if (!r->index && name && only != 0 && !registry_is_name_of(registry, name, only)) {
        result_forbid(r->result); /* the same answer as for another site's index */
        return CATALOGUE_OK;
    }
    if (!r->index) {
        if (rows)
            result_refuse(r->result, name ? RULE_URLSET_UNKNOWN : RULE_URLSET_NEEDED, "urlset");
        else
            result_refuse(r->result, name ? RULE_INDEX_UNKNOWN : RULE_INDEX_NEEDED, "index");
        return CATALOGUE_OK;
    }
    if (!check_grant(r, registry))
        return CATALOGUE_OK;
    status = occupancy_index(r->tx, r->index->site_id, r->index->id, &r->occupancy);
    if (status == CATALOGUE_OK && r->part->source) {
        status = tx_source(r->tx, r->part->source, false, &r->owner);
        if (r->owner == 0)
            r->owner = -1;
    }
    if (status == CATALOGUE_OK)
        status = evaluate_state(r->tx, r->change, r->occupancy, r->result);
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
        r->share += r->result->removed;
        if (status == CATALOGUE_OK && r->result->status == CATALOGUE_OK)
            status = replace_park(r);
    }
    if (status != CATALOGUE_OK || r->result->code == RULE_LIST_TOO_LONG)
        return status;
    if (read)
        status = read_list(r, second_pass, &read);
    if (!read)
        reject_stream(r->result);
    return status;
}

/* Number of entries acted on after the replace: those that the list names. */
static uint64_t share_now(const struct replace *r)
{
    const struct change_result *result = r->result;
    return result->created + result->updated + result->unchanged - r->foreign + r->held;
}

/* After the replace its source has exactly the list's entries: all others belong to other sources.
 */
static uint64_t count_spared(const struct replace *r)
{
    const struct change_result *result = r->result;
    uint64_t own = share_now(r);
    if (r->owner == 0 || r->prefix || result->status != CATALOGUE_OK)
        return 0;
    return r->occupancy->entries > own ? r->occupancy->entries - own : 0;
}

/* Checks the index, and the share that the list replaces, with the guard. With the index alone, the
 * empty list of a failed export could remove all entries of a pipeline in an index where others
 * have many more. */
static enum catalogue_status check_shrink(struct replace *r, struct guard_case *whole)
{
    struct tx *tx = r->tx;
    struct change_result *result = r->result;
    enum catalogue_status status = CATALOGUE_OK;
    whole->after = r->occupancy->entries;
    whole->removed = result->removed + (result->moved > 1 ? result->moved : 0);
    struct guard_case share = *whole;
    share.of_share = true;
    share.peak = share.before = r->share;
    share.after = share_now(r);
    if (result->status == CATALOGUE_OK && guard_moves(tx, r->change, result, &status) &&
        guard_check(tx, whole, result) && guard_check(tx, &share, result) &&
        guard_approved(tx, whole)) {
        occupancy_index_dirty(tx, r->occupancy);
        r->occupancy->peak_reset = true;
    }
    return status;
}

enum catalogue_status apply_replace(struct tx *tx, const struct change *change,
                                    const struct change_replace *part, struct change_result *result,
                                    bool *keep)
{
    const char *source = part->source ? part->source : change->source;
    struct replace r = {.tx = tx, .change = change, .part = part, .result = result};
    r.put.source = source;
    r.put.list = change->list;
    r.put.normalised = true;
    r.put.of_set = true;
    r.put.grant = change->grant;
    r.put.pass_frozen = change->pass_frozen;
    enum catalogue_status status = prepare(&r);
    if (status != CATALOGUE_OK)
        return status;
    if (result->status == CATALOGUE_OK) {
        assert(r.occupancy != NULL);
        struct guard_case guard = {.before = r.occupancy->entries,
                                   .max_removed = change->max_removed,
                                   .of_urlset = r.occupancy->kind == LIST_URLSET};
        status = occupancy_peak(tx, r.occupancy, &guard.peak);
        if (status == CATALOGUE_OK)
            status = run_passes(&r);
        if (status != CATALOGUE_OK)
            return status;
        result->spared = count_spared(&r);
        status = check_shrink(&r, &guard);
        if (status != CATALOGUE_OK)
            return status;
    }
    finish_set(tx, change, result, keep);
    return *keep ? occupancy_state(tx, r.occupancy, true, result->index_state) : CATALOGUE_OK;
}

/* The index that a bulk names; NULL: none, or one that the caller may not see. */
struct named {
    const struct registry_index *index;
    struct occupancy_index *occupancy;
};

/* Finds the index of a bulk whose lines all go into one index: such a bulk has an index state. If
 * the index does not exist, or the token may not see it, each line reports that. */
static enum catalogue_status find_named(struct tx *tx, const struct change *change,
                                        struct change_result *result, struct named *out)
{
    const struct registry *registry;
    enum catalogue_status status = tx_registry(tx, &registry);
    if (status != CATALOGUE_OK || !change->index_name)
        return status;
    out->index = registry_list_by_name(registry, change->index_name, change->list, NULL);
    if (!out->index || !grant_has_site(&change->grant, out->index->site_id)) {
        out->index = NULL;
        result->precondition_failed = change->if_match != NULL;
        if (change->if_match)
            result_decline(result, CATALOGUE_CONFLICT,
                           "the index that If-Match refers to does not exist");
        return CATALOGUE_OK;
    }
    status = occupancy_index(tx, out->index->site_id, out->index->id, &out->occupancy);
    return status == CATALOGUE_OK ? evaluate_state(tx, change, out->occupancy, result) : status;
}

struct bulk {
    struct tx *tx;
    const struct change *change;
    struct change_result *result;
    struct named named;
    struct put put; /* the current line */
    struct entry entry;
    uint64_t done;    /* lines */
    uint64_t created; /* entries before the current line */
    bool was_new;     /* the line before it */
    int more;         /* of spool_next */
};

/* Rejects a line for another index: If-Match would not cover it. */
static void refuse_other_index(struct bulk *b)
{
    if (!b->change->if_match || b->result->status != CATALOGUE_OK || b->put.code != RULE_OK ||
        b->put.index->id == b->named.index->id)
        return;
    result_decline(
        b->result, CATALOGUE_CONFLICT,
        "If-Match needs a list for one index, named by ?index=; this list has entries for others");
    b->result->conflict = "precondition-on-list";
}

/* Checks the current line. `*ready`: it is to be written; otherwise it is finished. After a strict
 * bulk's first refusal nothing is written any more, but every further bad line is still found and
 * reported. */
static enum catalogue_status prepare_line(struct bulk *b, bool *ready)
{
    struct put *put = &b->put;
    *ready = false;
    put->entry = &b->entry;
    put->index_name = b->entry.index ? b->entry.index : b->change->index_name;
    if (!b->entry.loc) {
        reject_entry(b->change, b->result, &b->entry, RULE_LOC_MISSING, "loc");
        return CATALOGUE_OK;
    }
    enum catalogue_status status = entry_locate(b->tx, put);
    if (status == CATALOGUE_OK)
        status = put_check_owner(b->tx, put);
    if (status == CATALOGUE_OK)
        status = put_room(b->tx, put);
    if (status != CATALOGUE_OK)
        return status;
    /* A registered entry stays, even if it could not be placed now, and needs no room. */
    if (put->code != RULE_OK && put->expect_new) {
        put->expect_new = false;
        return prepare_line(b, ready);
    }
    if (is_of_urlset(put)) {
        put->outcome = PUT_UNCHANGED;
        put->remarks = RULE_BIT(RULE_OF_URLSET);
        count_put(b->change, b->result, put);
    } else if (put->code != RULE_OK) {
        status = reject_put(b->tx, b->change, b->result, put);
        record_forbidden(b->change, b->result, put);
    } else {
        *ready = b->result->status == CATALOGUE_OK;
    }
    return status;
}

/* Finishes the current line. False: the bulk ends. */
static bool end_line(struct bulk *b)
{
    refuse_other_index(b);
    b->was_new = b->result->created > b->created;
    report_progress(b->change, ++b->done);
    return b->done % APPLY_LOOK != 0 || !list_ends(b->tx, b->change, b->result);
}

/* Reads lines until one is ready to be written. */
static enum catalogue_status find_line(struct bulk *b, bool *more)
{
    enum catalogue_status status = CATALOGUE_OK;
    *more = false;
    while (status == CATALOGUE_OK && (b->more = spool_next(b->change->rows, &b->entry)) == 1) {
        /* After a new entry the next one is mostly new, too: trying to insert it costs less than a
         * lookup. */
        b->created = b->result->created;
        b->put.expect_new = b->was_new && b->result->status == CATALOGUE_OK;
        status = prepare_line(b, more);
        if (*more || (status == CATALOGUE_OK && !end_line(b)))
            break;
    }
    return status;
}

/* The current line was written (put_next). */
static enum catalogue_status next_line(void *context, bool *more)
{
    struct bulk *b = context;
    count_put(b->change, b->result, &b->put);
    *more = false;
    return end_line(b) ? find_line(b, more) : CATALOGUE_OK;
}

/* Repeats the lookup of an entry that was expected to be new and is not. */
static enum catalogue_status look_again(struct bulk *b, bool *more)
{
    b->put.expect_new = false;
    enum catalogue_status status = prepare_line(b, more);
    return status == CATALOGUE_OK && !*more && end_line(b) ? find_line(b, more) : status;
}

enum catalogue_status apply_bulk(struct tx *tx, const struct change *change,
                                 struct change_result *result, bool *keep)
{
    struct bulk b = {.tx = tx,
                     .change = change,
                     .result = result,
                     .put = {.source = change->source,
                             .list = change->list,
                             .grant = change->grant,
                             .pass_frozen = change->pass_frozen,
                             .normalised = true,
                             .of_set = true}};
    enum catalogue_status status = find_named(tx, change, result, &b.named);
    if (status != CATALOGUE_OK)
        return status;
    if (result->status != CATALOGUE_OK) {
        *keep = false;
        return CATALOGUE_OK;
    }
    spool_rewind(change->rows);
    bool more;
    status = find_line(&b, &more);
    while (status == CATALOGUE_OK && more) {
        status = put_write_run(tx, &b.put, next_line, &b, &more);
        if (status == CATALOGUE_OK && b.put.outcome == PUT_KNOWN)
            status = look_again(&b, &more);
    }
    if (status != CATALOGUE_OK)
        return status;
    if (b.more < 0)
        reject_stream(result);
    else if (result->status == CATALOGUE_OK && !guard_moves(tx, change, result, &status) &&
             status != CATALOGUE_OK)
        return status;
    finish_set(tx, change, result, keep);
    return *keep && b.named.index
               ? occupancy_state(tx, b.named.occupancy, true, result->index_state)
               : CATALOGUE_OK;
}
