#include "db/history.h"

#include <string.h>

#include "db/history/rows.h"
#include "db/read/row.h"
#include "db/read/view_pool.h"

#define CHANGE_COLUMNS                                                                             \
    "h.revision, h.at, h.who, h.kind, h.via, h.request_id, h.note, h.undoes, h.unchanged,"         \
    " h.created, h.updated, h.removed, h.parts"
#define SITE_COLUMNS " sum(i.created), sum(i.updated), sum(i.removed)"
/* Of a change `h`, or of a site: what lost its oldest for want of room is told from then on. */
#define SINCE_OF(site) "coalesce((SELECT since FROM history_site WHERE site = " site "), 0)"
#define IS_KEPT                                                                                    \
    " h.revision >= (SELECT history_from FROM catalogue) AND h.revision >= " SINCE_OF("h.site")

static const char *text_of(sqlite3_stmt *row, int column)
{
    return (const char *)sqlite3_column_text(row, column);
}

static uint64_t number_of(sqlite3_stmt *row, int column)
{
    return (uint64_t)sqlite3_column_int64(row, column);
}

/* `of_site`: the row has SITE_COLUMNS behind its own. */
static struct history_change read_change(sqlite3_stmt *row, bool of_site)
{
    struct history_change change = {
        .revision = number_of(row, 0),
        .at = sqlite3_column_int64(row, 1),
        .by = text_of(row, 2),
        .kind = text_of(row, 3),
        .via = text_of(row, 4),
        .request_id = text_of(row, 5),
        .note = text_of(row, 6),
        .undoes = number_of(row, 7),
        .unchanged = number_of(row, 8),
        .created = number_of(row, 9),
        .updated = number_of(row, 10),
        .removed = number_of(row, 11),
        .whole = true,
    };
    if (!of_site)
        return change;
    uint64_t created = number_of(row, 13), updated = number_of(row, 14);
    uint64_t removed = number_of(row, 15);
    change.whole = created + updated + removed == change.created + change.updated + change.removed;
    if (!change.whole) {
        change.created = created;
        change.updated = updated;
        change.removed = removed;
        change.note = NULL;
    }
    return change;
}

enum catalogue_status catalogue_view_history_from(struct catalogue_view *v, int64_t site_id,
                                                  uint64_t *from)
{
    sqlite3_stmt *row = view_statement(
        v, VIEW_HISTORY_FROM,
        "SELECT max(history_from, iif(?1 = 0, 0, " SINCE_OF("?1") ")) FROM catalogue");
    int rc = view_bind(row, "i", site_id);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(row);
    *from = rc == SQLITE_ROW ? number_of(row, 0) : 0;
    sqlite3_reset(row);
    return view_status(v, rc);
}

enum catalogue_status catalogue_view_history_shortened(struct catalogue_view *v,
                                                       history_each_shortened *each, void *context)
{
    sqlite3_stmt *row = view_statement(
        v, VIEW_HISTORY_SHORTENED,
        "SELECT site, since FROM history_site WHERE since > (SELECT history_from FROM catalogue)"
        " ORDER BY since DESC LIMIT ?1");
    int rc = view_bind(row, "i", (int64_t)HISTORY_SHORTENED_TOLD);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(row);
        if (rc == SQLITE_ROW)
            each(context, sqlite3_column_int64(row, 0), number_of(row, 1));
    }
    sqlite3_reset(row);
    return view_status(v, rc);
}

/* ---- the rows of a change */

/* Reads a part, or, where there are none, the few rows in the change's own line, into `part`, which
 * is empty. `*found` is false where there is no such part. */
static enum catalogue_status read_part(struct catalogue_view *v, uint64_t revision, uint64_t number,
                                       struct history_part *part, bool *found)
{
    sqlite3_stmt *row =
        number == 0
            ? view_statement(v, VIEW_HISTORY_FEW,
                             "SELECT few FROM history WHERE revision = ?1"
                             " AND few IS NOT NULL AND ?2 = 0")
            : view_statement(v, VIEW_HISTORY_PART,
                             "SELECT rows FROM history_rows WHERE revision = ?1 AND part = ?2");
    int rc = view_bind(row, "ii", (int64_t)revision, (int64_t)number);
    *found = false;
    if (rc == SQLITE_OK)
        rc = sqlite3_step(row);
    enum catalogue_status status = view_status(v, rc);
    if (rc == SQLITE_ROW) {
        const void *bytes = sqlite3_column_blob(row, 0);
        *found = true;
        if (!bytes || !history_part_unpack(part, bytes, (size_t)sqlite3_column_bytes(row, 0)))
            status = part->failed || !bytes ? CATALOGUE_NO_MEMORY : CATALOGUE_CORRUPT;
    }
    sqlite3_reset(row);
    return status;
}

/* Names of sources, which rows have by number: mostly one after the other the same. */
struct namer {
    struct catalogue_view *v;
    int64_t id;
    bool known;
    char name[NAME_MAX_BYTES + 1];
};

static enum catalogue_status name_source(struct namer *n, int64_t id)
{
    if (n->known && n->id == id)
        return CATALOGUE_OK;
    sqlite3_stmt *row =
        view_statement(n->v, VIEW_HISTORY_SOURCE, "SELECT name FROM source WHERE id = ?1");
    int rc = view_bind(row, "i", id);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(row);
    const char *name = rc == SQLITE_ROW ? text_of(row, 0) : NULL;
    size_t len = name ? strnlen(name, sizeof n->name - 1) : 0;
    memcpy(n->name, name ? name : "", len);
    n->name[len] = '\0';
    sqlite3_reset(row);
    n->id = id;
    n->known = true;
    return view_status(n->v, rc);
}

/* The strings are the part's, and the namer's: borrowed. */
static enum catalogue_status make_record(struct namer *n, const struct history_part *part,
                                         const struct history_row *row,
                                         const struct history_image *image, char source[],
                                         struct entry_record *out)
{
    enum catalogue_status status = name_source(n, image->source);
    memcpy(source, n->name, sizeof n->name);
    *out = (struct entry_record){
        .loc = part->text.data + row->loc.at,
        .lastmod = image->lastmod.at == UINT32_MAX ? NULL : part->text.data + image->lastmod.at,
        .digest = image->digest.at == UINT32_MAX ? NULL : part->text.data + image->digest.at,
        .source = source,
        .site_id = row->site,
        .index_id = id_address_index(image->address),
        .position = id_address_position(image->address),
        .page = id_address_position(image->address) / LIMIT_PAGE_ENTRIES + 1,
        .registered_at = image->registered_at,
        .changed_at = image->changed_at,
    };
    id_format(out->index_id, out->position, image->serial, out->id);
    return status;
}

static enum catalogue_status tell_row(struct namer *n, const struct history_part *part,
                                      const struct history_row *row, history_each_row *each,
                                      void *context)
{
    struct entry_record before, after;
    char sources[2][NAME_MAX_BYTES + 1];
    enum catalogue_status status = CATALOGUE_OK;
    if (row->has_before)
        status = make_record(n, part, row, &row->before, sources[0], &before);
    if (row->has_after && status == CATALOGUE_OK)
        status = make_record(n, part, row, &row->after, sources[1], &after);
    if (status == CATALOGUE_OK)
        each(context, row->has_before ? &before : NULL, row->has_after ? &after : NULL);
    return status;
}

/* How many parts a change has; `*found` false: the history does not have it. */
static enum catalogue_status count_parts(struct catalogue_view *v, uint64_t revision, bool *found,
                                         uint64_t *parts)
{
    sqlite3_stmt *row = view_statement(
        v, VIEW_HISTORY_PARTS, "SELECT parts FROM history AS h WHERE revision = ?1 AND" IS_KEPT);
    int rc = view_bind(row, "i", (int64_t)revision);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(row);
    *found = rc == SQLITE_ROW;
    *parts = *found ? number_of(row, 0) : 0;
    sqlite3_reset(row);
    return view_status(v, rc);
}

enum catalogue_status catalogue_view_history_rows(struct catalogue_view *v, uint64_t revision,
                                                  int64_t site_id, uint64_t number,
                                                  history_each_row *each, void *context, bool *more)
{
    struct history_part part = {.rows = NULL};
    struct namer namer = {.v = v};
    bool found;
    uint64_t parts;
    *more = false;
    enum catalogue_status status = count_parts(v, revision, &found, &parts);
    if (status == CATALOGUE_OK && found && (parts > 0 || number == 1))
        status = read_part(v, revision, parts > 0 ? number : 0, &part, &found);
    for (uint32_t i = 0; status == CATALOGUE_OK && i < part.count; i++)
        if (site_id == 0 || part.rows[i].site == site_id)
            status = tell_row(&namer, &part, &part.rows[i], each, context);
    *more = number < parts;
    history_part_done(&part);
    return status;
}

/* ---- changes */

enum catalogue_status
catalogue_view_history_change(struct catalogue_view *v, uint64_t revision, int64_t site_id,
                              void (*each)(void *context, const struct history_change *change),
                              void *context)
{
    sqlite3_stmt *row = view_statement(
        v, VIEW_HISTORY_CHANGE,
        "SELECT " CHANGE_COLUMNS "," SITE_COLUMNS " FROM history AS h LEFT JOIN history_index AS i"
        " ON i.revision = h.revision AND i.site = ?2 WHERE h.revision = ?1 AND" IS_KEPT
        " AND (?2 = 0 OR (i.site IS NOT NULL AND h.revision >= " SINCE_OF(
            "?2") "))"
                  " GROUP BY h.revision");
    int rc = view_bind(row, "ii", (int64_t)revision, site_id);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(row);
    bool found = rc == SQLITE_ROW;
    if (found) {
        struct history_change change = read_change(row, site_id != 0);
        each(context, &change);
    }
    sqlite3_reset(row);
    enum catalogue_status status = view_status(v, rc);
    return status == CATALOGUE_OK && !found ? CATALOGUE_NOT_FOUND : status;
}

struct search {
    struct catalogue_view *v;
    const struct history_query *query;
    uint64_t looked_at;
    struct history_part part; /* the one at hand */
};

static enum catalogue_status part_has(struct search *s, uint64_t revision, uint64_t number,
                                      bool *has)
{
    const char *loc = s->query->loc;
    bool found;
    history_part_clear(&s->part);
    enum catalogue_status status = read_part(s->v, revision, number, &s->part, &found);
    *has = false;
    for (uint32_t i = 0; status == CATALOGUE_OK && !*has && i < s->part.count; i++) {
        const struct history_row *row = &s->part.rows[i];
        *has = (s->query->site_id == 0 || row->site == s->query->site_id) &&
               strcmp(s->part.text.data + row->loc.at, loc) == 0;
    }
    return status;
}

/* Whether the change touched the query's loc: by the filters, then for certain. */
static enum catalogue_status touches_loc(struct search *s, uint64_t revision, uint64_t parts,
                                         bool *has)
{
    if (parts == 0)
        return part_has(s, revision, 0, has);
    *has = false;
    sqlite3_stmt *row =
        view_statement(s->v, VIEW_HISTORY_FILTERS,
                       "SELECT part, filter FROM history_rows WHERE revision = ?1 ORDER BY part");
    int rc = view_bind(row, "i", (int64_t)revision);
    enum catalogue_status status = view_status(s->v, rc);
    while (status == CATALOGUE_OK && !*has && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        const void *filter = sqlite3_column_blob(row, 1);
        s->looked_at++;
        if (filter && history_filter_has(filter, (size_t)sqlite3_column_bytes(row, 1),
                                         s->query->loc, strlen(s->query->loc)))
            status = part_has(s, revision, number_of(row, 0), has);
    }
    sqlite3_reset(row);
    return status == CATALOGUE_OK ? view_status(s->v, rc) : status;
}

static bool fits(const struct history_query *query, const struct history_change *change)
{
    return (!query->by || strcmp(query->by, change->by ? change->by : "") == 0) &&
           (!query->kind || strcmp(query->kind, change->kind ? change->kind : "") == 0) &&
           (query->since == 0 || change->at >= query->since) &&
           (query->until == 0 || change->at <= query->until);
}

static sqlite3_stmt *select_changes(struct search *s)
{
    if (s->query->site_id == 0)
        return view_statement(s->v, VIEW_HISTORY_ALL,
                              "SELECT " CHANGE_COLUMNS " FROM history AS h WHERE h.revision < ?1"
                              " AND" IS_KEPT " AND ?2 = 0 AND ?3 = 0 ORDER BY h.revision DESC");
    return view_statement(
        s->v, VIEW_HISTORY_OF_SITE,
        "SELECT " CHANGE_COLUMNS "," SITE_COLUMNS " FROM history_index AS i CROSS JOIN history AS h"
        " ON h.revision = i.revision WHERE i.site = ?2 AND i.revision < ?1"
        " AND (?3 = 0 OR i.index_id = ?3)"
        " AND i.revision >= " SINCE_OF("?2") " AND" IS_KEPT
                                             " GROUP BY i.revision ORDER BY i.revision DESC");
}

enum catalogue_status
catalogue_view_history(struct catalogue_view *v, const struct history_query *query,
                       void (*each)(void *context, const struct history_change *change),
                       void *context, uint64_t *looked_at, uint64_t *next)
{
    struct search s = {.v = v, .query = query};
    sqlite3_stmt *row = select_changes(&s);
    int64_t before = query->after != 0 ? (int64_t)query->after : INT64_MAX;
    int rc = view_bind(row, "iii", before, query->site_id, query->index_id);
    enum catalogue_status status = view_status(v, rc);
    size_t told = 0;
    uint64_t last = 0;
    *next = 0;
    while (status == CATALOGUE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        if (told == query->limit || s.looked_at >= HISTORY_LOOK_MAX) {
            *next = last;
            break;
        }
        struct history_change change = read_change(row, query->site_id != 0);
        bool has = fits(query, &change);
        s.looked_at++;
        if (has && query->loc)
            status = touches_loc(&s, change.revision, number_of(row, 12), &has);
        if (status == CATALOGUE_OK && has) {
            each(context, &change);
            told++;
        }
        last = change.revision;
        /* Newest first: nothing behind it is younger. */
        if (query->since != 0 && change.at < query->since - CLOCK_SLACK_SECONDS)
            break;
    }
    sqlite3_reset(row);
    history_part_done(&s.part);
    *looked_at = s.looked_at;
    return status == CATALOGUE_OK ? view_status(v, rc) : status;
}

/* ---- the difference between two revisions */

/* The same rows may be touched again and again: what all changes tell is bounded, too, not only
 * what comes of it. */
struct difference {
    struct history_part whole;
    uint64_t looked_at;
};

/* Of another index it is not there. */
static void keep_image(struct history_part *whole, const struct history_part *part, bool has,
                       const struct history_image *image, int64_t index, bool *has_out,
                       struct history_image *out)
{
    const char *lastmod = history_text_of(part, image->lastmod);
    const char *digest = history_text_of(part, image->digest);
    *has_out = has && id_address_index(image->address) == index;
    if (!*has_out)
        return;
    *out = *image;
    out->lastmod = history_part_keep(whole, lastmod, image->lastmod.len);
    out->digest = history_part_keep(whole, digest, image->digest.len);
}

static enum catalogue_status add_row(struct history_part *whole, const struct history_part *part,
                                     const struct history_row *row, int64_t index)
{
    bool fresh;
    struct history_row *sum =
        history_part_row(whole, row->site, part->text.data + row->loc.at, row->loc.len, &fresh);
    if (!sum)
        return CATALOGUE_NO_MEMORY;
    if (fresh)
        keep_image(whole, part, row->has_before, &row->before, index, &sum->has_before,
                   &sum->before);
    keep_image(whole, part, row->has_after, &row->after, index, &sum->has_after, &sum->after);
    if (whole->failed)
        return CATALOGUE_NO_MEMORY;
    bool full = whole->count > HISTORY_DIFF_MAX || whole->text.len > HISTORY_DIFF_TEXT_MAX;
    return full ? CATALOGUE_FULL : CATALOGUE_OK;
}

static enum catalogue_status add_change(struct catalogue_view *v, struct difference *d,
                                        uint64_t revision, uint64_t parts, int64_t site,
                                        int64_t index)
{
    struct history_part part = {.rows = NULL};
    enum catalogue_status status = CATALOGUE_OK;
    bool found;
    for (uint64_t number = parts > 0 ? 1 : 0; status == CATALOGUE_OK && number <= parts; number++) {
        history_part_clear(&part);
        status = read_part(v, revision, number, &part, &found);
        d->looked_at += part.count;
        if (status == CATALOGUE_OK && d->looked_at > HISTORY_DIFF_LOOK_MAX)
            status = CATALOGUE_FULL;
        for (uint32_t i = 0; status == CATALOGUE_OK && i < part.count; i++) {
            const struct history_row *row = &part.rows[i];
            bool here = (row->has_before && id_address_index(row->before.address) == index) ||
                        (row->has_after && id_address_index(row->after.address) == index);
            if (row->site == site && here)
                status = add_row(&d->whole, &part, row, index);
        }
    }
    history_part_done(&part);
    return status;
}

enum catalogue_status catalogue_view_history_diff(struct catalogue_view *v, int64_t site_id,
                                                  int64_t index_id, uint64_t from, uint64_t to,
                                                  history_each_row *each, void *context)
{
    struct difference d = {.looked_at = 0};
    struct namer namer = {.v = v};
    uint64_t first;
    enum catalogue_status status = catalogue_view_history_from(v, site_id, &first);
    if (status != CATALOGUE_OK)
        return status;
    if (from + 1 < first)
        return CATALOGUE_NOT_FOUND;
    sqlite3_stmt *row = view_statement(
        v, VIEW_HISTORY_BETWEEN,
        "SELECT h.revision, h.parts FROM history_index AS i CROSS JOIN history AS h"
        " ON h.revision = i.revision WHERE i.site = ?1 AND i.revision > ?3 AND i.revision <= ?4"
        " AND i.index_id = ?2 ORDER BY i.revision");
    int rc = view_bind(row, "iiii", site_id, index_id, (int64_t)from, (int64_t)to);
    status = view_status(v, rc);
    while (status == CATALOGUE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW)
        status = add_change(v, &d, number_of(row, 0), number_of(row, 1), site_id, index_id);
    sqlite3_reset(row);
    if (status == CATALOGUE_OK)
        status = view_status(v, rc);
    for (uint32_t i = 0; status == CATALOGUE_OK && i < d.whole.count; i++)
        if (!history_row_is_idle(&d.whole, &d.whole.rows[i]))
            status = tell_row(&namer, &d.whole, &d.whole.rows[i], each, context);
    history_part_done(&d.whole);
    return status;
}
