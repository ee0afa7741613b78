/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Undoing the removal of an index or a site. The writer's thread.
 *
 * A removal deletes no rows: it only marks the list or site as removed, and apply_purge deletes the
 * rows a day later. Until then an undo removes the mark, and entries, pages and bytes are as
 * before. Later changes take precedence: if another site or list uses the path, the origin or a
 * host alias, the undo is rejected; a loc that was registered in another list stays there and is
 * reported. Its old row was deleted when it was registered, and recorded in removed_loc, so that
 * the page is counted without it.
 *
 * The marks are removed first, then the result is checked, and rolled back if a check fails. Tokens
 * of a removed site are not restored. */
#include <stdio.h>
#include <string.h>

#include "db/history/recorder.h"
#include "db/read/row.h"
#include "db/write/apply/apply.h"
#include "db/write/apply/entry.h"
#include "db/write/occupancy.h"
#include "server/rules/page/render.h"

struct unremove {
    struct tx *tx;
    const struct change *change;
    int64_t revision;
    struct change_result *result;
    const struct registry *registry; /* borrowed */
    int64_t site_id;
    uint64_t reported;
};

static void refuse(struct unremove *u, const char *word, const char *sentence)
{
    result_decline(u->result, CATALOGUE_CONFLICT, sentence);
    u->result->conflict = word;
}

static bool is_refused(const struct unremove *u)
{
    return u->result->status != CATALOGUE_OK;
}

/* Reads the text that the statement finds by `id`; "": none. */
static enum catalogue_status read_text(struct tx *tx, enum statement which, int64_t id, char *out,
                                       size_t size)
{
    sqlite3_stmt *row;
    enum catalogue_status status = tx_first(tx, which, &row, id);
    const char *text = row != NULL ? (const char *)sqlite3_column_text(row, 0) : "";
    snprintf(out, size, "%s", text ? text : "");
    sqlite3_reset(row);
    return text ? status : CATALOGUE_NO_MEMORY;
}

/* ---- conflicts with later changes */

/* An index needs an existing site and a free path. */
static enum catalogue_status check_index(struct unremove *u, int64_t index_id)
{
    const struct registry_site *site = registry_site_by_id(u->registry, u->site_id);
    char path[INDEX_PATH_MAX_CHARS + 1];
    if (!site) {
        refuse(u, "not-undoable", "the site of the index has been removed since; undo that first");
        return CATALOGUE_OK;
    }
    int64_t kind = LIST_INDEX;
    enum catalogue_status status = tx_number(u->tx, ST_INDEX_KIND, LIST_INDEX, &kind, index_id);
    if (status != CATALOGUE_OK ||
        result_list_managed(u->result, u->change, site, (enum list_kind)kind) ||
        result_frozen(u->result, u->change, site->frozen))
        return status;
    status = read_text(u->tx, ST_INDEX_PATH, index_id, path, sizeof path);
    const struct registry_index *list;
    for (size_t i = 0; status == CATALOGUE_OK && (list = registry_site_list(site, i)) != NULL; i++)
        if (strcmp(list->path, path) == 0)
            refuse(u, "taken-since", "conflict: another index or urlset now has its URL");
    if (!is_refused(u) && (kind == LIST_URLSET ? site->urlset_count >= LIMIT_SITE_URLSETS
                                               : site->index_count >= SITE_INDEXES_MAX))
        refuse(u, "taken-since", "limit exceeded: the site cannot have more indexes or urlsets");
    return status;
}

static enum catalogue_status check_origin(struct unremove *u)
{
    char text[LOC_MAX_CHARS + 1];
    struct url origin;
    enum catalogue_status status = read_text(u->tx, ST_SITE_ORIGIN, u->site_id, text, sizeof text);
    if (status != CATALOGUE_OK)
        return status;
    if (url_parse_origin(text, strlen(text), &origin) != RULE_OK)
        return CATALOGUE_CORRUPT;
    if (registry_site_by_id(u->registry, u->site_id) ||
        site_refuse_second_scheme(u->registry, &origin, u->result))
        refuse(u, "taken-since", "conflict: a site with its origin now exists");
    return CATALOGUE_OK;
}

/* Checks the restored site against the other sites. */
static void evaluate_site(struct unremove *u, const struct registry_site *site)
{
    size_t robots = 0;
    for (size_t i = 0; i < site->alias_host_count && !is_refused(u); i++)
        if (registry_site_of_alias(u->registry, site->alias_hosts[i], site))
            refuse(u, "taken-since",
                   "conflict: one of its host aliases now belongs to another site");
    for (size_t i = 0; i < u->registry->site_count; i++)
        robots += u->registry->sites[i].robots_len;
    if (robots > SITE_ROBOTS_TOTAL_BYTES && !is_refused(u))
        refuse(u, "taken-since",
               "limit exceeded: the robots.txt of all sites together would exceed 16 MiB");
}

/* A urlset needs its index, with room for its pages. */
static enum catalogue_status check_urlset(struct unremove *u, const struct registry_site *site,
                                          const struct registry_index *urlset)
{
    if (!registry_index_by_id(u->registry, urlset->of_index)) {
        refuse(u, "taken-since",
               "the index that lists its pages has been removed since; undo that first");
        return CATALOGUE_OK;
    }
    enum catalogue_status status =
        index_names_check(u->tx, u->registry, site, urlset, 1, 2, urlset->max_pages, u->result);
    return status == CATALOGUE_OK && !is_refused(u)
               ? urlset_return(u->tx, urlset, u->change, u->result)
               : status;
}

/* Checks page names against locs and other indexes, for restored lists and for those created since.
 */
static enum catalogue_status check_whole(struct unremove *u, int64_t list_id, bool of_site)
{
    struct occupancy_index *occupancy;
    enum catalogue_status status = tx_registry(u->tx, &u->registry);
    if (status != CATALOGUE_OK)
        return status;
    const struct registry_site *site = registry_site_by_id(u->registry, u->site_id);
    if (!site || site->index_count == 0)
        return CATALOGUE_CORRUPT;
    if (of_site) {
        evaluate_site(u, site);
        return CATALOGUE_OK;
    }
    const struct registry_index *list = registry_list_by_id(u->registry, list_id);
    if (list && list->kind == LIST_URLSET)
        return check_urlset(u, site, list);
    status = index_names_check(u->tx, u->registry, site, site->indexes, site->index_count, 1,
                               site->max_pages, u->result);
    if (status == CATALOGUE_OK)
        status = occupancy_index(u->tx, site->id, site->indexes[0].id, &occupancy);
    if (status == CATALOGUE_OK && !is_refused(u) && occupancy->site->pages_used > site->max_pages)
        result_refuse(u->result, RULE_SITE_FULL, "loc");
    return status;
}

/* ---- restoring */

/* Reports the locs that were registered in other lists, and removes them from the pages. */
static enum catalogue_status drop_registered(struct unremove *u, struct occupancy_index *occupancy)
{
    struct tx *tx = u->tx;
    int64_t from = id_address(occupancy->id, 0), to = id_address(occupancy->id, UINT32_MAX);
    char loc[LOC_MAX_CHARS + 1];
    enum catalogue_status status = CATALOGUE_OK;
    while (status == CATALOGUE_OK && !is_refused(u)) {
        sqlite3_stmt *row;
        status = tx_first(tx, ST_REMOVED_LOC_NEXT, &row, from, to);
        const char *text = row != NULL ? (const char *)sqlite3_column_text(row, 1) : NULL;
        int64_t address = row != NULL ? sqlite3_column_int64(row, 0) : 0;
        snprintf(loc, sizeof loc, "%s", text ? text : "");
        sqlite3_reset(row);
        if (status != CATALOGUE_OK || row == NULL)
            return status;
        if (!text)
            return CATALOGUE_NO_MEMORY;
        result_conflict(u->result, u->reported++, loc, RULE_CHANGED_SINCE);
        status = occupancy_release(tx, occupancy, id_address_position(address),
                                   render_entry_bytes(loc, strlen(loc)));
        if (status == CATALOGUE_OK)
            status = tx_run(tx, ST_REMOVED_LOC_DROP, address);
        from = address + 1;
        if (u->reported % APPLY_LOOK == 0 && list_ends(tx, u->change, u->result))
            break;
    }
    return status;
}

static enum catalogue_status restore_index(struct unremove *u, int64_t index_id)
{
    struct occupancy_index *occupancy;
    enum catalogue_status status = occupancy_index(u->tx, u->site_id, index_id, &occupancy);
    if (status != CATALOGUE_OK)
        return status;
    occupancy_unbury(u->tx, occupancy);
    status = tx_run(u->tx, ST_INDEX_UNREMOVE, index_id);
    if (status == CATALOGUE_OK)
        status = drop_registered(u, occupancy);
    if (status == CATALOGUE_OK)
        status = recorder_count(u->tx->recorder, u->site_id, index_id, occupancy->entries);
    u->result->created += occupancy->entries;
    return status;
}

static enum catalogue_status next_index(const struct unremove *u, int64_t after, int64_t *index_id)
{
    return tx_number(u->tx, ST_INDEX_REMOVED_BY, 0, index_id, u->revision, after);
}

static enum catalogue_status restore_indexes(struct unremove *u, int64_t index_id, bool of_site)
{
    enum catalogue_status status = CATALOGUE_OK;
    while (status == CATALOGUE_OK && index_id != 0 && !is_refused(u)) {
        status = restore_index(u, index_id);
        if (status == CATALOGUE_OK)
            status = next_index(u, index_id, &index_id);
    }
    if (status == CATALOGUE_OK && of_site)
        status = tx_run(u->tx, ST_SITE_UNREMOVE, u->site_id);
    if (status == CATALOGUE_OK)
        status = sources_touch(u->tx, u->site_id);
    tx_registry_touch(u->tx);
    return status;
}

enum catalogue_status apply_unremove(struct tx *tx, const struct change *change, int64_t revision,
                                     struct change_result *result, bool of_site)
{
    struct unremove u = {.tx = tx, .change = change, .revision = revision, .result = result};
    int64_t index_id = 0;
    enum catalogue_status status = tx_registry(tx, &u.registry);
    if (status == CATALOGUE_OK)
        status = next_index(&u, 0, &index_id);
    if (status == CATALOGUE_OK && index_id != 0)
        status = tx_number(tx, ST_INDEX_SITE, 0, &u.site_id, index_id);
    if (status != CATALOGUE_OK)
        return status;
    if (index_id == 0)
        refuse(&u, "not-undoable",
               "removed indexes, urlsets and sites can be restored for a day; this one is gone or "
               "already restored");
    else if (!grant_may(&change->grant, GRANT_ADMIN))
        result_outside(result, NULL,
                       "permission denied: the token's role "
                       "does not allow it");
    else if (of_site && change->grant.site_id != 0)
        result_forbid(result);
    else
        status = of_site ? check_origin(&u) : check_index(&u, index_id);
    if (status == CATALOGUE_OK && !is_refused(&u))
        status = restore_indexes(&u, index_id, of_site);
    if (status == CATALOGUE_OK && !is_refused(&u))
        status = check_whole(&u, index_id, of_site);
    return status;
}
