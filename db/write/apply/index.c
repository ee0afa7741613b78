/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Adds, freezes and removes indexes, and checks the names of their pages. */
#include <stdio.h>
#include <string.h>

#include "db/read/row.h"
#include "db/write/apply/apply.h"
#include "db/write/apply/entry.h"
#include "db/write/guard.h"
#include "server/base/clock.h"
#include "server/base/text.h"
#include "server/rules/scope.h"

#define NAME_SIZE (LOC_MAX_CHARS + 1 + PAGE_PATH_SIZE)

/* ---- names of other indexes */

static bool refuse_if_met(const struct registry_site *site, const struct registry_index *index,
                          uint32_t last, struct change_result *result)
{
    const struct registry_index *other;
    for (size_t i = 0; (other = registry_site_list(site, i)) != NULL; i++) {
        bool urlset = other->kind == LIST_URLSET;
        uint32_t most = urlset && other->max_pages > last ? other->max_pages : last;
        bool same = strcmp(other->path, index->path) == 0;
        if ((same && other->kind == index->kind) ||
            !scope_pages_meet(index->path, index->page_pattern, other->path, other->page_pattern,
                              most))
            continue;
        result_refuse(result, RULE_INDEX_COVERS_INDEX, "page_pattern");
        snprintf(result->detail, sizeof result->detail,
                 "its page names would conflict with those of %.180s, another %s of this site",
                 other->path, urlset ? "urlset" : "index");
        return true;
    }
    return false;
}

/* ---- names that are locs */

struct search {
    struct tx *tx;
    const struct registry *registry;
    const struct registry_site *site;
    uint32_t first, last;
    unsigned lookups;
    char base[LOC_MAX_CHARS + 1]; /* "https://www.example.com" */
    size_t base_len;
    char found[NAME_SIZE]; /* the loc that the last lookup found; "": none */
    bool live;             /* it is in an index that was not removed */
};

/* The first loc of the site from `from` on, before `to`. */
static enum catalogue_status look_up(struct search *s, const char *from, const char *to)
{
    s->found[0] = '\0';
    s->lookups++;
    sqlite3_stmt *row;
    enum catalogue_status status = tx_first(s->tx, ST_LOC_FROM, &row, s->site->id, from, to);
    if (row != NULL) {
        const char *loc = (const char *)sqlite3_column_text(row, 0);
        snprintf(s->found, sizeof s->found, "%s", loc ? loc : "");
        s->live = registry_index_by_id(s->registry,
                                       id_address_index(sqlite3_column_int64(row, 1))) != NULL;
    }
    sqlite3_reset(row);
    return status;
}

/* Sets `*taken` if the URL of page `number`, gzipped or not, is a registered loc. */
static enum catalogue_status look_for_page(struct search *s, const struct registry_index *index,
                                           uint32_t number, bool *taken)
{
    enum catalogue_status status = CATALOGUE_OK;
    *taken = false;
    for (int gz = 0; gz < 2 && status == CATALOGUE_OK && !*taken; gz++) {
        char name[NAME_SIZE], behind[NAME_SIZE + 1], path[PAGE_PATH_SIZE];
        scope_page_path(index->path, index->page_pattern, number, gz == 1, path);
        snprintf(name, sizeof name, "%s%s", s->base, path);
        snprintf(behind, sizeof behind, "%s\x01",
                 name); /* between this and `name` there is no loc */
        status = look_up(s, name, behind);
        *taken = s->found[0] != '\0' && s->live;
    }
    return status;
}

/* The lowest number of `digits` digits that may follow `head_len` bytes in a loc that is not before
 * the one found; `*there` if that one contains it. */
static uint64_t next_number(const char *found, size_t head_len, unsigned digits, bool *there)
{
    uint64_t number = 0;
    unsigned read = 0;
    for (; read < digits && ascii_is_digit(found[head_len + read]); read++)
        number = number * 10 + (uint64_t)(found[head_len + read] - '0');
    *there = read == digits;
    if (!*there && found[head_len + read] > '9')
        number++;
    for (; read < digits; read++)
        number *= 10;
    return number;
}

/* Numbers with the same number of digits are ordered like their texts: after each loc found, the
 * search continues at the next possible number. */
static enum catalogue_status search_digits(struct search *s, const struct registry_index *index,
                                           const char *head, unsigned digits, uint32_t *taken)
{
    size_t head_len = strlen(head);
    uint64_t low = 1, high, first = s->first > 2 ? s->first : 2;
    for (unsigned i = 1; i < digits; i++)
        low *= 10;
    high = low * 10 - 1 < s->last ? low * 10 - 1 : s->last;
    for (uint64_t number = low < first ? first : low; number <= high;) {
        char from[NAME_SIZE + 24], to[NAME_SIZE + 24];
        snprintf(from, sizeof from, "%s%llu", head, (unsigned long long)number);
        snprintf(to, sizeof to, "%s:", head); /* after the last digit */
        enum catalogue_status status = look_up(s, from, to);
        if (status != CATALOGUE_OK || s->found[0] == '\0' || s->lookups > INDEX_NAMES_MAX_LOOKUPS)
            return status;
        bool there, taken_here = false;
        number = next_number(s->found, head_len, digits, &there);
        if (number < low || number > high)
            return CATALOGUE_OK;
        if (there)
            status = look_for_page(s, index, (uint32_t)number, &taken_here);
        if (taken_here)
            *taken = (uint32_t)number;
        if (status != CATALOGUE_OK || taken_here)
            return status;
        number += there;
    }
    return CATALOGUE_OK;
}

/* Everything up to the number in the names of further pages, below the base. */
static void write_head(const struct search *s, const struct registry_index *index, char *out)
{
    char second[PAGE_PATH_SIZE];
    const char *pattern = index->page_pattern;
    scope_page_path(index->path, pattern, 2, false, second);
    size_t stem = strlen(index->path) - strlen(".xml");
    size_t before = (size_t)(strstr(pattern, "{n}") - pattern) - strlen("{stem}");
    snprintf(out, NAME_SIZE, "%s%.*s", s->base, (int)(stem + before), second);
}

static enum catalogue_status search_index(struct search *s, const struct registry_index *index,
                                          uint32_t *taken)
{
    char head[NAME_SIZE], from[NAME_SIZE + 1], to[NAME_SIZE + 1];
    enum catalogue_status status;
    *taken = 0;
    if (s->first == 1) {
        bool here;
        status = look_for_page(s, index, 1, &here);
        if (here)
            *taken = 1;
        if (status != CATALOGUE_OK || here)
            return status;
    }
    write_head(s, index, head);
    snprintf(from, sizeof from, "%s1", head);
    snprintf(to, sizeof to, "%s:", head);
    status = look_up(s, from, to); /* mostly there is no such loc */
    if (s->found[0] == '\0')
        return status;
    uint64_t low = 1;
    for (unsigned digits = 1; status == CATALOGUE_OK && *taken == 0 && low <= s->last; digits++) {
        status = search_digits(s, index, head, digits, taken);
        low *= 10;
    }
    return status;
}

/* Writes the N-th base of the site's page URLs: its origin, then those of the other scheme and of
 * alias hosts, which serve the pages, too, but where only locs of cross hosts can be. False past
 * the last. */
static bool name_base(struct search *s, size_t n)
{
    const struct registry_site *site = s->site;
    const struct url *origin = &site->origin_url;
    if (n > 0 && site->cross_host_count == 0)
        return false;
    if (n == 0)
        snprintf(s->base, sizeof s->base, "%s", site->origin);
    else if (n == 1)
        snprintf(s->base, sizeof s->base, "%s://%s", origin->https ? "http" : "https",
                 site->origin + origin->host_at);
    else if ((n - 2) / 2 < site->alias_host_count)
        snprintf(s->base, sizeof s->base, "%s://%s", n % 2 == 0 ? "https" : "http",
                 site->alias_hosts[(n - 2) / 2]);
    else
        return false;
    return true;
}

/* For most bases one lookup shows that nothing of the site lies there. */
static enum catalogue_status is_used(struct search *s, bool *used)
{
    char from[LOC_MAX_CHARS + 2], to[LOC_MAX_CHARS + 2];
    snprintf(from, sizeof from, "%s/", s->base);
    snprintf(to, sizeof to, "%s0", s->base); /* '0' follows '/' */
    enum catalogue_status status = look_up(s, from, to);
    *used = s->found[0] != '\0';
    return status;
}

static void refuse_loc(const struct search *s, const struct registry_index *index, uint32_t number,
                       struct change_result *result)
{
    char name[PAGE_PATH_SIZE];
    result_refuse(result, RULE_INDEX_COVERS_LOC, "page_pattern");
    scope_page_path(index->path, index->page_pattern, number > 0 ? number : 1, false, name);
    if (number > 0)
        snprintf(result->detail, sizeof result->detail,
                 "its page name %.180s is a registered loc; choose another page pattern",
                 s->found + s->base_len);
    else
        snprintf(result->detail, sizeof result->detail,
                 "too many registered locs begin like its page names (%.120s) to compare all of "
                 "them; choose another page pattern",
                 name);
}

enum catalogue_status index_names_check(struct tx *tx, const struct registry *r,
                                        const struct registry_site *site,
                                        const struct registry_index *indexes, size_t count,
                                        uint32_t first, uint32_t last, struct change_result *result)
{
    struct search s = {.tx = tx, .registry = r, .site = site, .first = first, .last = last};
    for (size_t i = 0; i < count; i++)
        if (refuse_if_met(site, &indexes[i], last, result))
            return CATALOGUE_OK;
    for (size_t n = 0; name_base(&s, n); n++) {
        bool used;
        enum catalogue_status status = is_used(&s, &used);
        s.base_len = strlen(s.base);
        for (size_t i = 0; status == CATALOGUE_OK && used && i < count; i++) {
            uint32_t taken;
            status = search_index(&s, &indexes[i], &taken);
            if (status == CATALOGUE_OK && (taken > 0 || s.lookups > INDEX_NAMES_MAX_LOOKUPS)) {
                refuse_loc(&s, &indexes[i], taken, result);
                return CATALOGUE_OK;
            }
        }
        if (status != CATALOGUE_OK)
            return status;
    }
    return CATALOGUE_OK;
}

/* ---- making one */

/* Splits the URL, or with one site the path, into site and path. Refuses an invalid one. */
static const struct registry_site *locate(const struct registry *r, const char *url,
                                          char path[INDEX_PATH_MAX_CHARS + 1],
                                          struct change_result *result)
{
    struct url parsed;
    char whole[LOC_MAX_CHARS + 1];
    const char *text = url ? url : "";
    if (text[0] == '/' && r->site_count == 1) {
        /* Normalised like any URL. */
        int len = snprintf(whole, sizeof whole, "%s%s", r->sites[0].origin, text);
        text = len > 0 && (size_t)len < sizeof whole ? whole : "";
    }
    enum rule_code code = url_parse(text, strlen(text), &parsed, NULL);
    if (code != RULE_OK) {
        result_refuse(result, code, "url");
        return NULL;
    }
    char origin[LOC_MAX_CHARS + 1];
    memcpy(origin, parsed.text, parsed.origin_len);
    origin[parsed.origin_len] = '\0';
    const struct registry_site *site = registry_site_by_origin(r, origin);
    size_t path_len = (size_t)parsed.len - parsed.origin_len; /* with a query, if there is one */
    if (!site)
        result_refuse(result, RULE_SITE_UNKNOWN, "url");
    else if (path_len > INDEX_PATH_MAX_CHARS)
        result_refuse(result, RULE_INDEX_PATH, "url");
    else
        memcpy(path, parsed.text + parsed.origin_len, path_len + 1);
    return site;
}

/* Rejects a new list if there is no id left. */
static enum catalogue_status evaluate_id(struct tx *tx, struct change_result *result)
{
    int64_t last_id;
    enum catalogue_status status = tx_number(tx, ST_INDEX_LAST, 0, &last_id);
    if (status == CATALOGUE_OK && last_id >= ID_MAX_INDEX)
        result_decline(result, CATALOGUE_FULL,
                       "limit exceeded: the catalogue has assigned all numbers of indexes and "
                       "urlsets; export it into a new catalogue");
    return status;
}

enum catalogue_status index_check_first(struct tx *tx, const struct url *origin, const char *url,
                                        char path[INDEX_PATH_MAX_CHARS + 1],
                                        struct change_result *result)
{
    struct url parsed;
    if (url_parse(url, strlen(url), &parsed, NULL) != RULE_OK ||
        !url_same_origin(&parsed, origin) ||
        (size_t)parsed.len - parsed.origin_len > INDEX_PATH_MAX_CHARS ||
        scope_check_index_path(parsed.text + parsed.origin_len) != RULE_OK) {
        result_refuse(result, RULE_INDEX_PATH, "index");
        return CATALOGUE_OK;
    }
    memcpy(path, parsed.text + parsed.origin_len, (size_t)parsed.len - parsed.origin_len + 1);
    return evaluate_id(tx, result);
}

static const struct registry_index *list_at(const struct registry_site *site, const char *path)
{
    const struct registry_index *list;
    size_t i = 0;
    while ((list = registry_site_list(site, i)) != NULL && strcmp(list->path, path) != 0)
        i++;
    return list;
}

enum catalogue_status admin_inserted(struct tx *tx, enum catalogue_status status,
                                     struct change_result *result)
{
    if (status != CATALOGUE_OK)
        return status;
    result->id = sqlite3_last_insert_rowid(tx->db);
    result->created = 1;
    result->changed = true;
    tx_registry_touch(tx);
    return CATALOGUE_OK;
}

enum catalogue_status index_insert(struct tx *tx, int64_t site_id, const char *path,
                                   const char *pattern, struct change_result *result)
{
    return admin_inserted(tx, tx_run(tx, ST_INDEX_ADD, site_id, path, pattern), result);
}

static bool has_as_many_as_may_be(const struct registry_site *site, enum list_kind kind,
                                  struct change_result *result)
{
    bool urlsets = kind == LIST_URLSET;
    uint32_t most = urlsets ? LIMIT_SITE_URLSETS : SITE_INDEXES_MAX;
    if ((urlsets ? site->urlset_count : site->index_count) < most)
        return false;
    result_decline(result, CATALOGUE_FULL, "");
    snprintf(result->detail, sizeof result->detail, "a site can have at most %u %s", most,
             urlsets ? "urlsets" : "indexes");
    result->field = "url";
    return true;
}

enum catalogue_status index_check_new(struct tx *tx, const struct change *change, const char *url,
                                      const char *page_pattern, struct registry_index *list,
                                      char *path, const struct registry_site **out,
                                      struct change_result *result)
{
    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    const char *pattern = page_pattern ? page_pattern : PAGE_PATTERN_DEFAULT;
    const struct registry_site *site = locate(r, url, path, result);
    bool urlset = list->kind == LIST_URLSET;
    *out = site;
    if (change->grant.site_id != 0 &&
        (site ? site->id != change->grant.site_id : result->code == RULE_SITE_UNKNOWN))
        result_forbid(result);
    if (result->status != CATALOGUE_OK)
        return CATALOGUE_OK;
    const struct registry_index *existing = list_at(site, path);
    if (existing) {
        result_decline(result, CATALOGUE_CONFLICT,
                       existing->kind == LIST_URLSET
                           ? "conflict: a urlset with this URL already exists"
                           : "conflict: an index with this URL already exists");
        result->id = existing->id;
        return CATALOGUE_OK;
    }
    if (result_list_managed(result, change, site, list->kind) ||
        (!change->override_managed && result_frozen(result, change, site->frozen)))
        return CATALOGUE_OK;
    if ((urlset || !change->override_managed) && has_as_many_as_may_be(site, list->kind, result))
        return CATALOGUE_OK;
    if (scope_check_index_path(path) != RULE_OK) {
        result_refuse(result, scope_check_index_path(path), "url");
        return CATALOGUE_OK;
    }
    if (scope_check_pattern(pattern) != RULE_OK) {
        result_refuse(result, scope_check_pattern(pattern), "page_pattern");
        return CATALOGUE_OK;
    }
    status = evaluate_id(tx, result);
    if (status != CATALOGUE_OK || result->status != CATALOGUE_OK)
        return status;
    list->path = path;
    list->page_pattern = pattern;
    /* A registered sitemap may become a urlset, which takes over its entry. */
    return index_names_check(tx, r, site, list, 1, urlset ? 2 : 1,
                             urlset ? list->max_pages : site->max_pages, result);
}

enum catalogue_status apply_index_add(struct tx *tx, const struct change *change,
                                      const struct change_index_add *add,
                                      struct change_result *result)
{
    char path[INDEX_PATH_MAX_CHARS + 1];
    struct registry_index fresh = {.kind = LIST_INDEX};
    const struct registry_site *site;
    enum catalogue_status status =
        index_check_new(tx, change, add->url, add->page_pattern, &fresh, path, &site, result);
    if (status != CATALOGUE_OK || result->status != CATALOGUE_OK)
        return status;
    return index_insert(tx, site->id, fresh.path, fresh.page_pattern, result);
}

enum catalogue_status index_find_requested(struct tx *tx, const struct change *change, int64_t id,
                                           enum list_kind kind, struct change_result *result,
                                           const struct registry **r,
                                           const struct registry_index **out)
{
    enum catalogue_status status = tx_registry(tx, r);
    *out = NULL;
    if (status != CATALOGUE_OK)
        return status;
    const struct registry_index *index = registry_list_by_id(*r, id);
    if (!index || index->kind != kind)
        result_missing(result, &change->grant,
                       kind == LIST_URLSET ? "urlset not found" : "index not found");
    else if (!grant_has_site(&change->grant, index->site_id))
        result_forbid(result);
    else
        *out = index;
    return CATALOGUE_OK;
}

/* ---- freezing one: state, not policy, so no matter who manages the site */

enum catalogue_status apply_index_freeze(struct tx *tx, const struct change *change,
                                         const struct change_index_freeze *freeze,
                                         struct change_result *result)
{
    const struct registry *r;
    const struct registry_index *index;
    enum catalogue_status status =
        index_find_requested(tx, change, freeze->index_id, change->list, result, &r, &index);
    if (status != CATALOGUE_OK || !index)
        return status;
    result->id = index->id;
    enum freeze to = freeze->frozen ? freeze_of(&change->grant) : FREEZE_NONE;
    if (!freeze->frozen && result_freeze_holds(result, change, index->frozen))
        return CATALOGUE_OK;
    if (freeze->frozen ? index->frozen >= to : index->frozen == FREEZE_NONE) {
        result->unchanged = 1;
        return CATALOGUE_OK;
    }
    result->updated = 1;
    result->changed = true;
    status = tx_run(tx, ST_INDEX_FREEZE, index->id, (int64_t)to);
    tx_registry_touch(tx);
    return status;
}

/* ---- removing one */

enum catalogue_status index_bury(struct tx *tx, const struct registry_index *index)
{
    struct occupancy_index *occupancy;
    enum catalogue_status status = occupancy_index(tx, index->site_id, index->id, &occupancy);
    if (status != CATALOGUE_OK)
        return status;
    bool kept = tx->recorder != NULL; /* the removal can be undone until the purge (unremove.c) */
    status = tx_run(tx, ST_INDEX_REMOVE, index->id, kept ? tx->now : 0,
                    kept ? (int64_t)tx->revision + 1 : 0);
    if (status == CATALOGUE_OK)
        occupancy_bury(tx, occupancy);
    return status;
}

/* Whether the index has urlsets, whose pages are its entries. */
static bool has_urlsets(const struct registry *r, const struct registry_index *index,
                        struct change_result *result)
{
    const struct registry_site *site = registry_site_by_id(r, index->site_id);
    for (size_t i = 0; i < site->urlset_count; i++) {
        if (site->urlsets[i].of_index != index->id)
            continue;
        result_decline(result, CATALOGUE_CONFLICT, "");
        snprintf(result->detail, sizeof result->detail,
                 "conflict: it lists the pages of the urlset %.120s; give that urlset another "
                 "index (`sitemapd urlset set --index`) or remove it first",
                 site->urlsets[i].path);
        result->conflict = "has-urlsets";
        return true;
    }
    return false;
}

enum catalogue_status apply_index_remove(struct tx *tx, const struct change *change,
                                         const struct change_index_remove *removal,
                                         struct change_result *result, bool *keep)
{
    const struct registry *r;
    const struct registry_index *index;
    enum catalogue_status status =
        index_find_requested(tx, change, removal->index_id, change->list, result, &r, &index);
    if (status != CATALOGUE_OK || !index)
        return status;
    if (result_list_managed(result, change, registry_site_by_id(r, index->site_id), index->kind) ||
        result_frozen(result, change, registry_freeze(r, index)) || has_urlsets(r, index, result))
        return CATALOGUE_OK;
    struct occupancy_index *occupancy;
    status = occupancy_index(tx, index->site_id, index->id, &occupancy);
    if (status != CATALOGUE_OK)
        return status;
    struct guard_case guard = {.before = occupancy->entries,
                               .removed = occupancy->entries,
                               .max_removed = change->max_removed,
                               .of_urlset = occupancy->kind == LIST_URLSET};
    status = occupancy_peak(tx, occupancy, &guard.peak);
    if (status != CATALOGUE_OK || !guard_check(tx, &guard, result))
        return status;
    result->id = index->id;
    result->removed = guard.removed;
    result->changed = true;
    if (index->kind == LIST_URLSET)
        status = urlset_leave(tx, index, change, result);
    if (result->status != CATALOGUE_OK) {
        *keep = result->changed = false;
        result->removed = 0;
        return status;
    }
    if (status == CATALOGUE_OK)
        status = index_bury(tx, index);
    if (status == CATALOGUE_OK)
        status = sources_touch(tx, index->site_id);
    tx_registry_touch(tx);
    return status;
}

/* ---- purging removed lists, a bounded batch at a time */

/* The rows of so many purged lists of a site, and of their pages, are left, which /v1/changes still
 * reports: as many as a site can have, so that a site's removal is reported. The row of an older
 * list is left while the history may name it. */
#define PURGED_KEPT (SITE_INDEXES_MAX + LIMIT_SITE_URLSETS)

/* Makes room for one more purged list in its site. `*dropped`: rows of pages; there may be more. */
static enum catalogue_status drop_oldest(struct tx *tx, int64_t index_id, bool *dropped)
{
    int64_t oldest;
    enum catalogue_status status =
        tx_number(tx, ST_PURGED_OLD, 0, &oldest, index_id, PURGED_KEPT - 1);
    *dropped = false;
    if (status != CATALOGUE_OK || oldest == 0)
        return status;
    status = tx_run(tx, ST_PURGED_PAGES, oldest, PURGE_ROWS);
    *dropped = status == CATALOGUE_OK && sqlite3_changes64(tx->db) > 0;
    return status == CATALOGUE_OK && !*dropped ? tx_run(tx, ST_PURGED_DONE, oldest) : status;
}

static enum catalogue_status finish(struct tx *tx, int64_t index_id)
{
    enum catalogue_status status = tx_run(tx, ST_PURGE_SEGMENTS, index_id);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_PURGE_PEAKS, index_id);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_PURGE_ROBOTS, index_id);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_PURGE_DONE, index_id);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_PURGED_FORGET, index_id);
    return status;
}

/* How long a removal can be undone, unless the history is kept for less. */
#define PURGE_AFTER_SECONDS (24 * 60 * 60)

static int64_t purge_wait(const struct tx *tx)
{
    uint64_t keep = tx->options->history_keep_ms / 1000;
    return keep < PURGE_AFTER_SECONDS ? (int64_t)keep : PURGE_AFTER_SECONDS;
}

int64_t apply_purge_date(const struct tx *tx, int64_t seconds)
{
    return tx_clock(tx) + seconds - purge_wait(tx);
}

enum catalogue_status apply_purge_find(struct tx *tx, int64_t *index_id)
{
    return tx_number(tx, ST_PURGE_FIND, 0, index_id, tx_clock(tx) - purge_wait(tx));
}

/* PURGE_MS also bounds a step, since page URLs with many images take much longer than others. */
#define PURGE_MS        50
#define PURGE_TURN_ROWS 100

static enum catalogue_status purge_rows(struct tx *tx, int64_t first, int64_t end,
                                        uint64_t *removed)
{
    int64_t last, until_ms = clock_now_ms() + PURGE_MS;
    enum catalogue_status status;
    do {
        status = tx_number(tx, ST_PURGE_LAST, -1, &last, first, end, PURGE_TURN_ROWS);
        if (status == CATALOGUE_OK && last >= 0)
            status = tx_run(tx, ST_PURGE_ENTRIES, first, last);
        if (status == CATALOGUE_OK && last >= 0)
            *removed += (uint64_t)sqlite3_changes64(tx->db);
    } while (status == CATALOGUE_OK && last >= 0 && *removed < PURGE_ROWS &&
             clock_now_ms() < until_ms);
    return status;
}

enum catalogue_status apply_purge(struct tx *tx, struct change_result *result, bool *more)
{
    *more = false;
    int64_t index_id;
    enum catalogue_status status = apply_purge_find(tx, &index_id);
    if (status != CATALOGUE_OK || index_id == 0)
        return status;
    *more = true;
    int64_t first = id_address(index_id, 0), end = id_address(index_id, UINT32_MAX);
    /* Once the first row was purged, the removal cannot be undone, even if the clock is set back.
     */
    status = tx_run(tx, ST_PURGE_BEGIN, index_id);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_PURGE_LOCS, first, end, PURGE_ROWS);
    if (status == CATALOGUE_OK && sqlite3_changes64(tx->db) == 0)
        status = tx_run(tx, ST_PURGE_AGES, first, end, PURGE_ROWS);
    if (status != CATALOGUE_OK || sqlite3_changes64(tx->db) > 0)
        return status;
    status = purge_rows(tx, first, end, &result->removed);
    bool dropped = result->removed > 0;
    if (status == CATALOGUE_OK && !dropped)
        status = drop_oldest(tx, index_id, &dropped);
    return status == CATALOGUE_OK && !dropped ? finish(tx, index_id) : status;
}
