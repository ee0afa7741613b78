/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sources that the API or the command line creates. Each belongs to one site, whose tokens may
 * change it and in which alone it may list.
 *
 * A source's name owns entries and rows of files, which outlive the source. So a token for one site
 * cannot use a name that has files of another site or of a configuration: its first scan would
 * remove them all. A row of source_made records the site even after the source was removed. */
#include "db/write/apply/apply.h"

#include <stdio.h>
#include <string.h>

#include "server/base/str.h"
#include "server/rules/entry.h"
#include "server/rules/host_map.h"

static void refuse(struct change_result *result, const char *field, const char *sentence)
{
    result_refuse(result, RULE_SOURCE, field);
    snprintf(result->detail, sizeof result->detail, "%s", sentence);
}

/* ---- new settings and old ones */

static void set_usual(struct source_settings *made)
{
#define X(bit, kind, c, member, option, column, usual, ...) made->c = usual;
    SOURCE_SETTINGS(X)
#undef X
}

static void merge(struct source_settings *out, const struct source_settings *asked, unsigned set)
{
#define X(bit, kind, c, ...) out->c = set & SOURCE_SET_##bit ? asked->c : out->c;
    SOURCE_SETTINGS(X)
#undef X
}

/* ---- checked alone */

/* An absolute path without "." and "..", so that its text shows the folders above it. (Opening it
 * later fails if a symlink leads out of the allowed folder.) */
static bool is_plain_directory(const char *path)
{
    if (path[0] != '/' || strlen(path) > 1000)
        return false;
    for (const char *at = path; *at; at += strcspn(at, "/")) {
        size_t len = strcspn(++at, "/");
        bool dots = (len == 1 && at[0] == '.') || (len == 2 && memcmp(at, "..", 2) == 0);
        if (dots || (len == 0 && at[0] != '\0'))
            return false;
    }
    return true;
}

static void check_length(size_t len, const char *field, struct change_result *result)
{
    if (result->status == CATALOGUE_OK && len > SOURCE_MADE_LIST_BYTES)
        refuse(result, field, "the names are longer than 4 KiB in total");
}

static void check_lines(const char *const *list, const char *field, struct change_result *result)
{
    size_t len = 0;
    for (; list && *list; list++)
        len += strlen(*list) + 1;
    check_length(len > 0 ? len - 1 : 0, field, result);
}

static void check_pairs(const char *text, const char *field, struct change_result *result)
{
    char why[128];
    struct host_map *map = text ? host_map_new(text, why, sizeof why) : NULL;
    if (text && !map && result->status == CATALOGUE_OK)
        refuse(result, field, why);
    check_length(text ? strlen(text) : 0, field, result);
    host_map_free(map);
}

static void check_span(uint32_t value, uint32_t min, uint32_t max, const char *field,
                       const char *sentence, struct change_result *result)
{
    if (result->status == CATALOGUE_OK && (value < min || value > max))
        refuse(result, field, sentence);
}

#define CHECK_path(...)
#define CHECK_url(...)
#define CHECK_yes_no(...)
#define CHECK_lines(c, member, ...) check_lines(made->c, #member, result);
#define CHECK_pairs(c, member, ...) check_pairs(made->c, #member, result);
#define CHECK_span(c, member, least, most, wrong)                                                  \
    check_span(made->c, (least)*1000u, (most)*1000u, #member, wrong, result);
#define CHECK(bit, kind, c, member, option, column, usual, least, most, wrong, ...)                \
    CHECK_##kind(c, member, least, most, wrong)

#define FOLDER_URL_MAX_CHARS 1947 /* leaves room for a file name, up to LOC_MAX_CHARS */
#define AS_TEXT(number)      AS_TEXT_(number)
#define AS_TEXT_(number)     #number

/* The folder's URL, normalised in `url`. */
static void check_folder(struct source_settings *made, struct url *url,
                         struct change_result *result)
{
    const char *text = made->url ? made->url : "";
    size_t len = strlen(text);
    enum rule_code code = url_parse(text, len, url, NULL);
    if (!is_plain_directory(made->directory))
        refuse(result, "directory", "must be an absolute path without . and ..");
    else if (len == 0)
        refuse(result, "url", "is required with a directory: the URL of the folder");
    else if (code != RULE_OK)
        result_refuse(result, code, "url");
    else if (text[len - 1] != '/' || strchr(text, '?'))
        refuse(result, "url", "must end in a slash, such as https://www.example.com/sitemaps/");
    else if (url->len > FOLDER_URL_MAX_CHARS)
        refuse(result, "url",
               "is longer than " AS_TEXT(FOLDER_URL_MAX_CHARS) " characters, percent-encoded");
    SOURCE_SETTINGS_OF_FOLDER(CHECK)
    made->url = url->text;
}

static void check_upstream(struct source_settings *made, struct url *url,
                           struct change_result *result)
{
    enum rule_code code = url_parse(made->upstream, strlen(made->upstream), url, NULL);
    if (code != RULE_OK)
        result_refuse(result, code, "upstream");
    if (result->status == CATALOGUE_OK && made->serve && !made->check)
        refuse(result, "serve", "cannot be combined with check = no");
    SOURCE_SETTINGS_OF_UPSTREAM(CHECK)
    made->upstream = url->text;
}

#define NAMED(bit, kind, c, member, ...) ", " #member

static void check_alone(unsigned set, struct source_settings *made, struct url *url,
                        struct change_result *result)
{
    bool folder = made->directory != NULL;
    if (entry_check_name(made->name, strlen(made->name)) != RULE_OK)
        result_refuse(result, RULE_NAME, "name");
    else if (folder == (made->upstream != NULL))
        refuse(result, folder ? "upstream" : "directory",
               "a source has either a directory or an upstream");
    else if (set & (folder ? SOURCE_SET_OF_UPSTREAM : SOURCE_SET_OF_FOLDER))
        refuse(result, folder ? "upstream" : "directory",
               (folder ? SOURCE_SETTINGS_OF_UPSTREAM(NAMED) " cannot be used for a folder"
                       : SOURCE_SETTINGS_OF_FOLDER(NAMED) " cannot be used for an upstream") +
                   2);
    else if (folder)
        check_folder(made, url, result);
    else
        check_upstream(made, url, result);
}

bool source_settings_are_sound(const struct source_settings *made, char *why, size_t why_size)
{
    struct source_settings copy = *made;
    struct change_result result = {.status = CATALOGUE_OK};
    struct url url;

    check_alone(0, &copy, &url, &result);
    if (result.status != CATALOGUE_OK)
        snprintf(why, why_size, "%s%s%s", result.field != NULL ? result.field : "",
                 result.field != NULL ? " " : "",
                 result.detail[0] != '\0' ? result.detail : rule_code_word(result.code));
    return result.status == CATALOGUE_OK;
}

/* ---- checked against the others */

static bool has_cross_host(const struct registry_site *site, const struct url *url)
{
    const char *host = url->text + url->host_at;
    size_t whole = (size_t)(url->origin_len - url->host_at);
    for (size_t i = 0; i < site->cross_host_count; i++) {
        size_t len = strlen(site->cross_hosts[i]);
        if ((len == whole || len == url->host_len) && memcmp(site->cross_hosts[i], host, len) == 0)
            return true;
    }
    return false;
}

/* The site of a source: that of its folder's URL; for an upstream the requested one, else that of
 * its index, else that of the upstream's host. NULL: rejected; a token for one site gets the same
 * answer for another site and for an unknown one. */
static const struct registry_site *
find_site(const struct registry *r, const struct change *change, const struct source_settings *made,
          const struct url *url, const struct registry_site *of_index, struct change_result *result)
{
    char origin[LOC_MAX_CHARS + 1];
    snprintf(origin, sizeof origin, "%.*s", (int)url->origin_len, url->text);
    const struct registry_site *own = registry_site_by_origin(r, origin);
    const struct registry_site *site = own;
    if (!made->directory && made->site_id != 0)
        site = registry_site_by_id(r, made->site_id);
    else if (!made->directory && of_index)
        site = of_index;
    else if (!made->directory && !own)
        site = registry_next_cross_site(r, url, change->grant.site_id, NULL);
    if (change->grant.site_id != 0 && (!site || !grant_has_site(&change->grant, site->id))) {
        result_forbid(result);
        return NULL;
    }
    if (!site) {
        result_refuse(result, RULE_SITE_UNKNOWN, made->directory ? "url" : "upstream");
        if (!made->directory)
            snprintf(
                result->detail, sizeof result->detail,
                "belongs to no site of this catalogue; name the index that lists its sitemaps");
    } else if (of_index && of_index != site) {
        result_refuse(result, RULE_OUTSIDE_SITE, "index");
    }
    return site;
}

/* Whether the caller lacks the right. An upstream may list any URL, so only a token for a whole
 * site may create one, on hosts of that site. */
static bool is_forbidden(const struct change *change, const struct source_settings *made,
                         const struct registry_site *site, const struct url *url,
                         struct change_result *result)
{
    const struct grant *grant = &change->grant;
    if (!grant_has_site(grant, site->id))
        result_forbid(result);
    else if (!grant_has_source(grant, made->name))
        result_outside(result, "name",
                       "permission denied: the token may change only its own entries");
    else if (grant->prefix && !made->directory)
        result_outside(result, "upstream",
                       "permission denied: a token with a prefix cannot add an upstream");
    else if (made->directory && !grant_has_loc(grant, url->text))
        result_outside(result, "url", "is not under the token's prefix");
    return result->status != CATALOGUE_OK;
}

/* Rejects, for a token for one site, an upstream on a host that is not the site's. */
static void evaluate_host(const struct change *change, const struct source_settings *made,
                          const struct registry_site *site, const struct url *url,
                          struct change_result *result)
{
    if (change->grant.site_id == 0 || made->directory || url_same_origin(url, &site->origin_url) ||
        has_cross_host(site, url))
        return;
    result_refuse(result, RULE_OUTSIDE_SITE, "upstream");
    snprintf(result->detail, sizeof result->detail,
             "is on no host of the token's site, nor on a cross host of it");
}

/* Rejects a map to hosts that are not the source's site's, since the mapped URLs become sitemaps
 * and pages of these hosts. A token for all sites may also use a host of no site. */
static void evaluate_map(const struct registry *r, const struct change *change,
                         const struct source_settings *made, const struct registry_site *site,
                         struct change_result *result)
{
    char why[128];
    struct host_map *map = host_map_new(made->map, why, sizeof why); /* check_map has accepted it */
    struct url to;

    for (size_t i = 0; map != NULL && i < map->count && result->status == CATALOGUE_OK; i++) {
        if (url_parse_origin(map->pairs[i].to, map->pairs[i].to_len, &to) != RULE_OK ||
            url_same_origin(&to, &site->origin_url) || has_cross_host(site, &to))
            continue;
        char host[LOC_MAX_CHARS + 1];
        snprintf(host, sizeof host, "%.*s", (int)(to.origin_len - to.host_at),
                 to.text + to.host_at);
        bool is_free = registry_site_of_host(r, host, site) == NULL &&
                       registry_site_of_alias(r, host, site) == NULL;
        if (registry_site_of_alias(r, host, NULL) == site ||
            (change->grant.site_id == 0 && is_free))
            continue;
        result_refuse(result, RULE_OUTSIDE_SITE, "map");
        snprintf(result->detail, sizeof result->detail,
                 "leads to %.150s, which is on no host of the source's site", map->pairs[i].to);
    }
    host_map_free(map);
}

static enum catalogue_status check_new(struct tx *tx, const struct registry *r,
                                       const struct change *change,
                                       const struct source_settings *made,
                                       struct change_result *result)
{
    size_t of_site = 0;
    int64_t owner = -1, removed = 0;
    for (size_t i = 0; i < r->source_count; i++)
        of_site += r->sources[i].site_id == made->site_id;
    if (r->source_count >= SOURCES_MADE_MAX ||
        (change->grant.site_id != 0 && of_site >= SOURCES_MADE_MAX_ONE_SITE)) {
        result_decline(result, CATALOGUE_FULL, "");
        snprintf(result->detail, sizeof result->detail,
                 "limit exceeded: there can be at most %u sources%s",
                 r->source_count >= SOURCES_MADE_MAX ? SOURCES_MADE_MAX : SOURCES_MADE_MAX_ONE_SITE,
                 r->source_count >= SOURCES_MADE_MAX
                     ? " outside the configuration"
                     : " of one site; a token for all sites can create more");
        return CATALOGUE_OK;
    }
    if (change->grant.site_id == 0)
        return CATALOGUE_OK;
    enum catalogue_status status = tx_number(tx, ST_SOURCE_OF_SITE, -1, &owner, made->name);
    if (status == CATALOGUE_OK && owner != -1 && owner != made->site_id) {
        result_decline(result, CATALOGUE_CONFLICT,
                       "conflict: entries of another site's source have this name; choose another");
        result->field = "name";
    }
    if (status == CATALOGUE_OK && owner == -1)
        status = tx_number(tx, ST_SOURCES_REMOVED, 0, &removed, made->site_id);
    if (status == CATALOGUE_OK && removed >= SOURCES_REMOVED_MAX_ONE_SITE) {
        result_decline(result, CATALOGUE_FULL, "");
        snprintf(result->detail, sizeof result->detail,
                 "limit exceeded: the site has %u removed sources whose entries or files are still "
                 "stored; reuse one of their names",
                 SOURCES_REMOVED_MAX_ONE_SITE);
    }
    return status;
}

/* ---- writing */

static enum catalogue_status write_row(struct tx *tx, const struct source_settings *made)
{
#define X(bit, kind, c, ...) made->c,
    return tx_run(tx, ST_SOURCE_MADE_WRITE, made->name, made->site_id,
                  SOURCE_SETTINGS(X) made->by_site);
#undef X
}

/* The source to change, if the caller may change it; NULL: rejected, as "not found" if the caller
 * may not see it. */
static const struct source_settings *find_old(const struct registry *r, const struct change *change,
                                              const char *name, struct change_result *result)
{
    const struct source_settings *old = registry_source(r, name);
    const struct registry_site *site = old ? registry_site_by_id(r, old->site_id) : NULL;
    struct url url;
    if (!site || !grant_has_site(&change->grant, site->id)) {
        result_decline(result, CATALOGUE_NOT_FOUND, "source not found");
        return NULL;
    }
    const char *text = old->upstream ? old->upstream : old->url;
    if (url_parse(text, strlen(text), &url, NULL) == RULE_OK &&
        is_forbidden(change, old, site, &url, result))
        return NULL;
    return result_frozen(result, change, site->frozen) ? NULL : old;
}

static enum catalogue_status validate_source(struct tx *tx, const struct registry *r,
                                             const struct change *change, unsigned set, bool is_new,
                                             struct source_settings *made, struct url *url,
                                             char index_url[LOC_MAX_CHARS + 1],
                                             struct change_result *result)
{
    const struct registry_site *site = NULL, *of_index = NULL;
    check_alone(set, made, url, result);
    if (result->status == CATALOGUE_OK && made->index) {
        const struct registry_index *index = registry_index_by_name(r, made->index, &of_index);
        if (!index || !grant_has_site(&change->grant, index->site_id))
            result_refuse(result, RULE_INDEX_UNKNOWN, "index");
        else
            snprintf(index_url, LOC_MAX_CHARS + 1, "%s%s", of_index->origin, index->path);
        made->index = index_url;
    }
    if (result->status == CATALOGUE_OK)
        site = find_site(r, change, made, url, of_index, result);
    if (result->status != CATALOGUE_OK || is_forbidden(change, made, site, url, result) ||
        result_frozen(result, change, site->frozen))
        return CATALOGUE_OK;
    made->site_id = site->id;
    evaluate_host(change, made, site, url, result);
    if (result->status == CATALOGUE_OK && made->map != NULL && set & SOURCE_SET_MAP)
        evaluate_map(r, change, made, site, result);
    return is_new && result->status == CATALOGUE_OK ? check_new(tx, r, change, made, result)
                                                    : CATALOGUE_OK;
}

enum catalogue_status apply_source_put(struct tx *tx, const struct change *change,
                                       const struct change_source_put *put,
                                       struct change_result *result)
{
    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    bool is_new = change->kind == CHANGE_SOURCE_ADD;
    const char *name = put->made.name ? put->made.name : "";
    const struct source_settings *old = is_new ? registry_source(r, name) : NULL;
    struct source_settings made = {.name = name, .site_id = is_new ? put->made.site_id : 0};
    struct url url;
    char index_url[LOC_MAX_CHARS + 1];
    if (old) {
        result_decline(result, CATALOGUE_CONFLICT,
                       "conflict: a source with this name already exists");
        return CATALOGUE_OK;
    }
    if (!is_new) {
        old = find_old(r, change, name, result);
        if (!old)
            return CATALOGUE_OK;
        made = *old;
    } else {
        set_usual(&made);
    }
    merge(&made, &put->made, put->set);
    made.name = name;
    /* Only an operator who names the folder opens it by the roots for tokens of all sites. */
    made.by_site =
        change->grant.site_id != 0 || (made.by_site && !(put->set & SOURCE_SET_DIRECTORY));
    status = validate_source(tx, r, change, put->set, is_new, &made, &url, index_url, result);
    if (status != CATALOGUE_OK || result->status != CATALOGUE_OK)
        return status;
    result->id = made.site_id;
    if (old && source_settings_equal(old, &made)) {
        result->unchanged = 1;
        return CATALOGUE_OK;
    }
    status = write_row(tx, &made);
    result->created = is_new;
    result->updated = !is_new;
    result->changed = true;
    tx_registry_touch(tx);
    return status;
}

enum catalogue_status source_touch(struct tx *tx, int64_t site_id, int64_t source)
{
    enum catalogue_status status =
        tx_run(tx, ST_SOURCE_TOUCH, site_id, source, (sqlite3_int64)tx->revision + 1);
    return status == CATALOGUE_OK ? tx_run(tx, ST_LIST_FETCH_AGAIN, site_id, source) : status;
}

enum catalogue_status sources_touch(struct tx *tx, int64_t site_id)
{
    enum catalogue_status status =
        tx_run(tx, ST_SOURCES_TOUCH, site_id, (sqlite3_int64)tx->revision + 1);
    return status == CATALOGUE_OK ? tx_run(tx, ST_LISTS_FETCH_AGAIN, site_id) : status;
}

/* Removes a source that no configuration names any more. The catalogue does not know the
 * configurations of other servers: if one still has the source, its next scan restores it. */
static enum catalogue_status remove_unnamed(struct tx *tx, const char *name,
                                            struct change_result *result)
{
    enum catalogue_status status = tx_run(tx, ST_SOURCE_UNNAMED_REMOVE, name);
    if (status != CATALOGUE_OK)
        return status;
    if (sqlite3_changes(tx->db) == 0) {
        result_decline(result, CATALOGUE_NOT_FOUND, "source not found");
        return CATALOGUE_OK;
    }
    result->removed = 1;
    result->changed = true;
    tx_registry_touch(tx);
    return CATALOGUE_OK;
}

/* Everything that belongs to a source refers to its row, so all of it is the successor's at once.
 * Nothing happens if the successor has a row already. */
static enum catalogue_status rename_source(struct tx *tx, const char *name, const char *successor,
                                           struct change_result *result)
{
    enum catalogue_status status = tx_run(tx, ST_SOURCE_RENAME, name, successor);
    if (status != CATALOGUE_OK || sqlite3_changes(tx->db) == 0)
        return status;
    tx->source_id = 0; /* it may be the remembered one */
    result->updated = 1;
    result->changed = true;
    tx_registry_touch(tx);
    return CATALOGUE_OK;
}

enum catalogue_status apply_source_remove(struct tx *tx, const struct change *change,
                                          const struct change_source_remove *removal,
                                          struct change_result *result)
{
    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    const char *name = removal->name ? removal->name : "";
    if (registry_source(r, name) == NULL && change->grant.site_id == 0) {
        if (removal->successor)
            status = rename_source(tx, name, removal->successor, result);
        return status != CATALOGUE_OK || result->changed ? status
                                                         : remove_unnamed(tx, name, result);
    }
    const struct source_settings *old = find_old(r, change, name, result);
    if (!old)
        return CATALOGUE_OK;
    result->id = old->site_id;
    status = tx_run(tx, ST_SOURCE_MADE_REMOVE, name);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_SOURCE_MADE_DROP, name);
    result->removed = 1;
    result->changed = true;
    tx_registry_touch(tx);
    return status;
}
