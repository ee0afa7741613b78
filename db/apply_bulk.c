#include "db/apply.h"

static void count_put(enum put_outcome outcome, struct change_result *result)
{
    if (outcome == PUT_CREATED)
        result->created++;
    else if (outcome == PUT_UNCHANGED)
        result->unchanged++;
    else
        result->updated++;
}

static enum catalogue_status apply_line(struct tx *tx, const struct change *change,
                                        const struct entry *entry, struct put *put,
                                        struct change_result *result);

/* It was taken for new and may not be. */
static enum catalogue_status look_again(struct tx *tx, const struct change *change,
                                        const struct entry *entry, struct put *put,
                                        struct change_result *result)
{
    put->expect_new = false;
    return apply_line(tx, change, entry, put, result);
}

/* One line. After a strict bulk's first refusal nothing is written any more, but every further bad
 * line is still found and told. */
static enum catalogue_status apply_line(struct tx *tx, const struct change *change,
                                        const struct entry *entry, struct put *put,
                                        struct change_result *result)
{
    put->entry = entry;
    put->index_name = entry->index ? entry->index : change->index_name;
    if (!entry->loc) {
        reject_entry(change, result, entry, RULE_LOC_MISSING, "loc");
        return CATALOGUE_OK;
    }
    enum catalogue_status status = put_place(tx, put);
    if (status == CATALOGUE_OK)
        status = put_room(tx, put);
    if (status != CATALOGUE_OK)
        return status;
    /* What is registered stays, even where it would not be placed, and needs no room. */
    if (put->code != RULE_OK && put->expect_new)
        return look_again(tx, change, entry, put, result);
    if (put->code != RULE_OK) {
        reject_entry(change, result, entry, put->code, put->field);
        if (put->forbidden && result->status != CATALOGUE_OK)
            result->forbidden = true;
        return CATALOGUE_OK;
    }
    if (result->status != CATALOGUE_OK)
        return CATALOGUE_OK;
    status = put_write(tx, put);
    if (status == CATALOGUE_OK && put->outcome == PUT_KNOWN)
        return look_again(tx, change, entry, put, result);
    if (status == CATALOGUE_OK)
        count_put(put->outcome, result);
    return status;
}

/* A loc of one site may be registered in another that has its host as a cross host: then only a
 * look can tell. */
static enum catalogue_status may_expect_new(struct tx *tx, bool *may)
{
    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    *may = status == CATALOGUE_OK;
    for (size_t i = 0; *may && i < r->site_count; i++)
        *may = r->sites[i].cross_host_count == 0;
    return status;
}

enum catalogue_status apply_bulk(struct tx *tx, const struct change *change,
                                 struct change_result *result, bool *keep)
{
    const struct entry_stream *stream = change->stream;
    struct put put = {
        .source = change->source, .token_site_id = change->token_site_id, .normalised = true};
    struct entry entry;
    uint64_t done = 0;
    int more;
    bool may_expect, was_new = false;
    enum catalogue_status status = may_expect_new(tx, &may_expect);
    if (status != CATALOGUE_OK)
        return status;
    while ((more = stream->next(stream->context, &entry)) == 1) {
        /* After a new one comes a new one, mostly: inserting finds out for less than looking. */
        uint64_t created = result->created;
        put.expect_new = may_expect && was_new && result->status == CATALOGUE_OK;
        status = apply_line(tx, change, &entry, &put, result);
        if (status != CATALOGUE_OK)
            return status;
        was_new = result->created > created;
        breathe(tx, change, ++done);
    }
    if (more < 0)
        reject_stream(result);
    result->changed = tx->changed;
    finish_set(tx, change, result, keep);
    return CATALOGUE_OK;
}
