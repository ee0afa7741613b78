/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Queries over the history: lists of changes with filters, one change with its rows, and the
 * changes that IndexNow was not notified of. */
#include "db/history/read.h"

#include <string.h>

#include "db/indexnow.h"
#include "db/read/row.h"
#include "db/read/view_pool.h"

#define CHANGE_COLUMNS                                                                             \
    "h.revision, h.at, h.who, h.kind, h.via, h.request_id, h.note, h.undoes, h.unchanged,"         \
    " h.created, h.updated, h.removed, h.parts, h.few,"                                            \
    " (SELECT origin FROM site WHERE id = h.site),"                                                \
    " (SELECT path FROM sitemap_index WHERE id = h.list)"
#define SITE_COLUMNS " sum(i.created), sum(i.updated), sum(i.removed)"
/* The first revision of a site that is still complete, if changes were dropped for space. */
#define SINCE_OF(site) "coalesce((SELECT since FROM history_site WHERE site = " site "), 0)"
#define IS_KEPT                                                                                    \
    " h.revision >= (SELECT history_from FROM catalogue) AND h.revision >= " SINCE_OF("h.site")

/* `of_site`: the row has SITE_COLUMNS after its own. */
static struct history_change read_change(sqlite3_stmt *row, bool of_site)
{
    struct history_change change = {
        .revision = row_number(row, 0),
        .at = sqlite3_column_int64(row, 1),
        .by = row_text(row, 2),
        .kind = row_text(row, 3),
        .via = row_text(row, 4),
        .request_id = row_text(row, 5),
        .note = row_text(row, 6),
        .unchanged = row_number(row, 8),
        .created = row_number(row, 9),
        .updated = row_number(row, 10),
        .removed = row_number(row, 11),
        .site = row_text(row, 14),
        .list = row_text(row, 15),
        .whole = true,
    };
    /* The column `undoes` has the change for both kinds. */
    *(change.kind != NULL && strcmp(change.kind, "restore") == 0 ? &change.restores
                                                                 : &change.undoes) =
        row_number(row, 7);
    if (!of_site)
        return change;
    uint64_t created = row_number(row, 16), updated = row_number(row, 17);
    uint64_t removed = row_number(row, 18);
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
        v, "SELECT max(history_from, iif(?1 = 0, 0, " SINCE_OF("?1") ")) FROM catalogue");
    int rc = sql_bind(row, site_id);
    *from = sql_next(row, &rc) ? row_number(row, 0) : 0;
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_history_shortened(struct catalogue_view *v,
                                                       history_each_shortened *each, void *context)
{
    sqlite3_stmt *row = view_statement(
        v, "SELECT site, since FROM history_site WHERE since > (SELECT history_from FROM catalogue)"
           " ORDER BY since DESC LIMIT ?1");
    int rc = sql_bind(row, HISTORY_SHORTENED_MAX);
    while (sql_next(row, &rc))
        each(context, sqlite3_column_int64(row, 0), row_number(row, 1));
    return view_end_statement(v, row, rc);
}

/* ---- the rows of a change */

enum catalogue_status history_read_part(struct catalogue_view *v, uint64_t revision,
                                        uint64_t number, struct history_part *part, bool *found)
{
    sqlite3_stmt *row =
        number == 0
            ? view_statement(v, "SELECT few FROM history WHERE revision = ?1"
                                " AND few IS NOT NULL AND ?2 = 0")
            : view_statement(v, "SELECT rows FROM history_rows WHERE revision = ?1 AND part = ?2");
    int rc = sql_bind(row, revision, number);
    *found = sql_next(row, &rc);
    enum catalogue_status status = view_status(v, rc);
    if (*found) {
        const void *bytes = sqlite3_column_blob(row, 0);
        if (bytes == NULL ||
            !history_part_unpack(part, bytes, (size_t)sqlite3_column_bytes(row, 0)))
            status = part->failed || bytes == NULL ? CATALOGUE_NO_MEMORY : CATALOGUE_CORRUPT;
    }
    sqlite3_reset(row);
    return status;
}

static enum catalogue_status name_source(struct history_namer *n, int64_t id)
{
    if (n->known && n->id == id)
        return CATALOGUE_OK;
    sqlite3_stmt *row = view_statement(n->v, "SELECT " OWNER_NAME("?1"));
    int rc = sql_bind(row, id);
    const char *name = sql_next(row, &rc) ? row_text(row, 0) : NULL;
    size_t len = name != NULL ? strnlen(name, sizeof n->name - 1) : 0;
    memcpy(n->name, name != NULL ? name : "", len);
    n->name[len] = '\0';
    sqlite3_reset(row);
    n->id = id;
    n->known = true;
    return view_status(n->v, rc);
}

/* The site of a row; for a page URL, of its urlset. */
static enum catalogue_status site_of(struct history_namer *n, const struct history_row *row,
                                     int64_t *site)
{
    *site = row->site;
    if (row->site >= 0)
        return CATALOGUE_OK;
    if (n->urlset != -row->site) {
        sqlite3_stmt *found = view_statement(n->v, "SELECT site FROM sitemap_index WHERE id = ?1");
        int rc = sql_bind(found, -row->site);
        n->urlset = -row->site;
        n->site = sql_next(found, &rc) ? sqlite3_column_int64(found, 0) : 0;
        sqlite3_reset(found);
        if (rc != SQLITE_ROW)
            return rc == SQLITE_DONE ? CATALOGUE_CORRUPT : view_status(n->v, rc);
    }
    *site = n->site;
    return CATALOGUE_OK;
}

/* Borrows strings from the part and the namer. */
static enum catalogue_status make_record(struct history_namer *n, const struct history_part *part,
                                         const struct history_row *row,
                                         const struct history_image *image, char source[],
                                         struct entry_record *out)
{
    int64_t site;
    enum catalogue_status status = name_source(n, image->source);
    if (status == CATALOGUE_OK)
        status = site_of(n, row, &site);
    if (status != CATALOGUE_OK)
        return status;
    memcpy(source, n->name, sizeof n->name);
    *out = (struct entry_record){
        .loc = part->text.data + row->loc.at,
        .lastmod = image->lastmod.at == UINT32_MAX ? NULL : part->text.data + image->lastmod.at,
        .digest = image->digest.at == UINT32_MAX ? NULL : part->text.data + image->digest.at,
        .extensions = (char *)(uintptr_t)history_text_of(part, image->extensions),
        .source = source,
        .site_id = site,
        .index_id = id_address_index(image->address),
        .position = id_address_position(image->address),
        .page = id_address_position(image->address) / LIMIT_PAGE_ENTRIES + 1,
        .registered_at = image->registered_at,
        .changed_at = image->changed_at,
    };
    id_format(out->index_id, out->position, image->serial, out->id);
    return status;
}

enum catalogue_status history_report_row(struct history_namer *n, const struct history_part *part,
                                         const struct history_row *row, history_each_row *each,
                                         void *context)
{
    struct entry_record before, after;
    char sources[2][HISTORY_OWNER_SIZE];
    enum catalogue_status status = CATALOGUE_OK;
    if (row->has_before)
        status = make_record(n, part, row, &row->before, sources[0], &before);
    if (row->has_after && status == CATALOGUE_OK)
        status = make_record(n, part, row, &row->after, sources[1], &after);
    if (status == CATALOGUE_OK)
        each(context, row->has_before ? &before : NULL, row->has_after ? &after : NULL);
    return status;
}

/* The number of parts of a change; `*found` false: the history does not have the change. */
static enum catalogue_status count_parts(struct catalogue_view *v, uint64_t revision, bool *found,
                                         uint64_t *parts)
{
    sqlite3_stmt *row =
        view_statement(v, "SELECT parts FROM history AS h WHERE revision = ?1 AND" IS_KEPT);
    int rc = sql_bind(row, revision);
    *found = sql_next(row, &rc);
    *parts = *found ? row_number(row, 0) : 0;
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_history_rows(struct catalogue_view *v, uint64_t revision,
                                                  int64_t site_id, uint64_t number,
                                                  history_each_row *each, void *context, bool *more)
{
    struct history_part part = {.rows = NULL};
    struct history_namer namer = {.v = v};
    bool found;
    uint64_t parts;
    *more = false;
    enum catalogue_status status = count_parts(v, revision, &found, &parts);
    if (status == CATALOGUE_OK && found && (parts > 0 || number == 1))
        status = history_read_part(v, revision, parts > 0 ? number : 0, &part, &found);
    for (uint32_t i = 0; status == CATALOGUE_OK && i < part.count; i++) {
        int64_t site;
        status = site_of(&namer, &part.rows[i], &site);
        if (status == CATALOGUE_OK && (site_id == 0 || site == site_id))
            status = history_report_row(&namer, &part, &part.rows[i], each, context);
    }
    *more = number < parts;
    history_part_done(&part);
    return status;
}

/* ---- changes */

/* Most undos of a change, counting undos of those, and so on. */
#define UNDOS_MAX 64
struct undos {
    uint64_t revision[UNDOS_MAX], undoes[UNDOS_MAX];
    size_t count;
};

/* Reads the undos of a change, newest first; none if there are more than UNDOS_MAX: then the change
 * counts as not undone. */
static enum catalogue_status read_undos(struct catalogue_view *v, uint64_t revision,
                                        int64_t site_id, struct undos *out)
{
    sqlite3_stmt *row = view_statement(
        v, "WITH RECURSIVE undo(revision, undoes) AS ("
           " SELECT revision, undoes FROM history WHERE undoes = ?1 AND kind = 'undo' UNION"
           " SELECT h.revision, h.undoes FROM undo AS u CROSS JOIN history AS h"
           " ON h.undoes = u.revision WHERE h.kind = 'undo' LIMIT ?3)"
           " SELECT revision, undoes FROM undo WHERE ?2 = 0 OR EXISTS (SELECT 1 FROM history_index"
           " AS i WHERE i.site = ?2 AND i.revision = undo.revision) ORDER BY revision DESC");
    int rc = sql_bind(row, revision, site_id, UNDOS_MAX + 1);
    out->count = 0;
    while (sql_next(row, &rc)) {
        if (out->count == UNDOS_MAX) {
            out->count = 0;
            break;
        }
        out->revision[out->count] = row_number(row, 0);
        out->undoes[out->count++] = row_number(row, 1);
    }
    return view_end_statement(v, row, rc);
}

/* An undo that was undone itself does not count. Every undo is older than its own undos. */
static enum catalogue_status find_undone(struct catalogue_view *v, int64_t site_id,
                                         struct history_change *change)
{
    struct undos undos;
    enum catalogue_status status = read_undos(v, change->revision, site_id, &undos);
    for (size_t i = 0; status == CATALOGUE_OK && i < undos.count; i++) {
        if (undos.undoes[i] == change->revision && undos.revision[i] != 0 && change->undone_by == 0)
            change->undone_by = undos.revision[i];
        for (size_t k = i + 1; undos.revision[i] != 0 && k < undos.count; k++)
            if (undos.revision[k] == undos.undoes[i])
                undos.revision[k] = 0;
    }
    return status;
}

/* Chooses the entry that represents a small change: a page URL rather than the page of its urlset,
 * and only of the requested site or index. Its loc is in `part`. */
static enum catalogue_status find_loc(struct history_namer *n, sqlite3_stmt *row, int64_t site_id,
                                      int64_t index_id, struct history_part *part, const char **loc)
{
    const void *few = sqlite3_column_blob(row, 13);
    enum catalogue_status status = CATALOGUE_OK;
    bool is_page_url = false;
    *loc = NULL;
    history_part_clear(part);
    if (few == NULL)
        return CATALOGUE_OK;
    if (!history_part_unpack(part, few, (size_t)sqlite3_column_bytes(row, 13)))
        return part->failed ? CATALOGUE_NO_MEMORY : CATALOGUE_CORRUPT;
    for (uint32_t i = 0; status == CATALOGUE_OK && !is_page_url && i < part->count; i++) {
        const struct history_row *one = &part->rows[i];
        int64_t site;
        status = site_of(n, one, &site);
        if (status != CATALOGUE_OK || (site_id != 0 && site != site_id) ||
            (index_id != 0 && !history_row_touches(one, index_id)))
            continue;
        is_page_url = one->site < 0;
        if (*loc == NULL || is_page_url)
            *loc = part->text.data + one->loc.at;
    }
    return status;
}

/* Reads the change of the row and adds data of other tables. `part` owns its loc. */
static enum catalogue_status whole_change(struct history_namer *n, sqlite3_stmt *row,
                                          int64_t site_id, int64_t index_id,
                                          struct history_part *part, struct history_change *change)
{
    *change = read_change(row, site_id != 0);
    enum catalogue_status status = find_undone(n->v, site_id, change);
    return status == CATALOGUE_OK ? find_loc(n, row, site_id, index_id, part, &change->loc)
                                  : status;
}

enum catalogue_status catalogue_view_history_change(struct catalogue_view *v, uint64_t revision,
                                                    int64_t site_id, history_each_change *each,
                                                    void *context)
{
    sqlite3_stmt *row = view_statement(
        v,
        "SELECT " CHANGE_COLUMNS "," SITE_COLUMNS " FROM history AS h LEFT JOIN history_index AS i"
        " ON i.revision = h.revision AND i.site = ?2 WHERE h.revision = ?1 AND" IS_KEPT
        " AND (?2 = 0 OR (i.site IS NOT NULL AND h.revision >= " SINCE_OF(
            "?2") "))"
                  " GROUP BY h.revision");
    int rc = sql_bind(row, revision, site_id);
    bool found = sql_next(row, &rc);
    enum catalogue_status status = rc == SQLITE_DONE ? CATALOGUE_NOT_FOUND : view_status(v, rc);
    if (found) {
        struct history_namer namer = {.v = v};
        struct history_part part = {.rows = NULL};
        struct history_change change;
        status = whole_change(&namer, row, site_id, 0, &part, &change);
        if (status == CATALOGUE_OK)
            each(context, &change);
        history_part_done(&part);
    }
    sqlite3_reset(row);
    return status;
}

struct search {
    struct catalogue_view *v;
    const struct history_query *query;
    uint64_t looked_at;
    struct history_namer namer;
    struct history_part part; /* the current part */
};

static enum catalogue_status part_has(struct search *s, uint64_t revision, uint64_t number,
                                      bool *has)
{
    const char *loc = s->query->loc;
    bool found;
    history_part_clear(&s->part);
    enum catalogue_status status = history_read_part(s->v, revision, number, &s->part, &found);
    *has = false;
    for (uint32_t i = 0; status == CATALOGUE_OK && !*has && i < s->part.count; i++) {
        const struct history_row *row = &s->part.rows[i];
        int64_t site = 0;
        if (strcmp(s->part.text.data + row->loc.at, loc) != 0)
            continue;
        status = site_of(&s->namer, row, &site);
        *has = status == CATALOGUE_OK && (s->query->site_id == 0 || site == s->query->site_id);
    }
    return status;
}

/* Whether the change touched the query's loc: looks at the filters first, then at the rows. */
static enum catalogue_status touches_loc(struct search *s, uint64_t revision, uint64_t parts,
                                         bool *has)
{
    if (parts == 0)
        return part_has(s, revision, 0, has);
    *has = false;
    sqlite3_stmt *row = view_statement(
        s->v, "SELECT part, filter FROM history_rows WHERE revision = ?1 ORDER BY part");
    int rc = sql_bind(row, revision);
    enum catalogue_status status = CATALOGUE_OK;
    while (status == CATALOGUE_OK && !*has && sql_next(row, &rc)) {
        const void *filter = sqlite3_column_blob(row, 1);
        s->looked_at++;
        if (filter != NULL && history_filter_has(filter, (size_t)sqlite3_column_bytes(row, 1),
                                                 s->query->loc, strlen(s->query->loc)))
            status = part_has(s, revision, row_number(row, 0), has);
    }
    sqlite3_reset(row);
    return status == CATALOGUE_OK ? view_status(s->v, rc) : status;
}

/* "check" is left out by default: dates moved by polls would hide all other changes. */
static bool is_of_kind(const struct history_query *query, const char *kind)
{
    if (query->kind == NULL)
        return query->loc != NULL || strcmp(kind, "check") != 0;
    return strcmp(query->kind, HISTORY_KIND_ALL) == 0 || strcmp(query->kind, kind) == 0;
}

static bool matches_query(const struct history_query *query, const struct history_change *change)
{
    return (query->by == NULL || strcmp(query->by, change->by != NULL ? change->by : "") == 0) &&
           is_of_kind(query, change->kind != NULL ? change->kind : "") &&
           (query->since == 0 || change->at >= query->since) &&
           (query->until == 0 || change->at <= query->until);
}

static sqlite3_stmt *select_changes(struct search *s)
{
    if (s->query->site_id == 0)
        return view_statement(s->v,
                              "SELECT " CHANGE_COLUMNS " FROM history AS h WHERE h.revision < ?1"
                              " AND" IS_KEPT " AND ?2 = 0 AND ?3 = 0 ORDER BY h.revision DESC");
    return view_statement(
        s->v,
        "SELECT " CHANGE_COLUMNS "," SITE_COLUMNS " FROM history_index AS i CROSS JOIN history AS h"
        " ON h.revision = i.revision WHERE i.site = ?2 AND i.revision < ?1"
        " AND (?3 = 0 OR i.index_id = ?3)"
        " AND i.revision >= " SINCE_OF("?2") " AND" IS_KEPT
                                             " GROUP BY i.revision ORDER BY i.revision DESC");
}

enum catalogue_status catalogue_view_history(struct catalogue_view *v,
                                             const struct history_query *query,
                                             history_each_change *each, void *context,
                                             uint64_t *looked_at, uint64_t *next)
{
    struct search s = {.v = v, .query = query, .namer = {.v = v}};
    sqlite3_stmt *row = select_changes(&s);
    int64_t before = query->after != 0 ? (int64_t)query->after : INT64_MAX;
    int rc = sql_bind(row, before, query->site_id, query->index_id);
    enum catalogue_status status = CATALOGUE_OK;
    size_t listed = 0;
    uint64_t last = 0;
    *next = 0;
    while (status == CATALOGUE_OK && sql_next(row, &rc)) {
        if (listed == query->limit || s.looked_at >= HISTORY_LOOK_MAX) {
            *next = last;
            break;
        }
        struct history_change change = read_change(row, query->site_id != 0);
        bool has = matches_query(query, &change);
        s.looked_at++;
        if (has && query->loc != NULL)
            status = touches_loc(&s, change.revision, row_number(row, 12), &has);
        if (status == CATALOGUE_OK && has)
            status = whole_change(&s.namer, row, query->site_id, query->index_id, &s.part, &change);
        if (status == CATALOGUE_OK && has) {
            each(context, &change);
            listed++;
        }
        last = change.revision;
        /* Newest first: all further changes are older. */
        if (query->since != 0 && change.at < query->since - CLOCK_SLACK_SECONDS)
            break;
    }
    sqlite3_reset(row);
    history_part_done(&s.part);
    *looked_at = s.looked_at;
    return status == CATALOGUE_OK ? view_status(v, rc) : status;
}

/* ---- how far IndexNow was notified */

static int64_t first_of(sqlite3_stmt *row, int *rc, int64_t *second)
{
    int64_t first = 0;

    if (sql_next(row, rc)) {
        first = sqlite3_column_int64(row, 0);
        *second = sqlite3_column_int64(row, 1);
    }
    sqlite3_reset(row);
    return first;
}

enum catalogue_status catalogue_view_indexnow(struct catalogue_view *v, int64_t site_id,
                                              struct indexnow_position *out)
{
    sqlite3_stmt *row = view_statement(v, "SELECT revision, parts FROM indexnow WHERE site = ?1");
    int rc = sql_bind(row, site_id);
    int64_t parts = 0;

    out->revision = (uint64_t)first_of(row, &rc, &parts);
    out->parts = (uint64_t)parts;
    return view_status(v, rc);
}

enum catalogue_status catalogue_view_indexnow_next(struct catalogue_view *v, int64_t site_id,
                                                   uint64_t revision, uint64_t *next, int64_t *at)
{
    /* Finds the site's changes first, then the rows of each by its revision. */
    sqlite3_stmt *row = view_statement(
        v, "SELECT h.revision, h.at FROM history_index AS i CROSS JOIN sitemap_index AS l"
           " ON l.id = i.index_id CROSS JOIN history AS h ON h.revision = i.revision"
           " WHERE i.site = ?1 AND i.revision >= ?2 AND l.kind = 1 AND h.kind <> 'expiry'"
           " ORDER BY i.revision LIMIT 1");
    int rc = sql_bind(row, site_id, revision);

    *at = 0;
    *next = (uint64_t)first_of(row, &rc, at);
    return view_status(v, rc);
}
