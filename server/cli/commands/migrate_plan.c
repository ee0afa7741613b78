/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The plan of `migrate`: what the new indexes and sites are called, and where they are. */
#include "server/cli/commands/migrate.h"

#include <string.h>
#include <xxhash.h>

#include "server/base/text.h"

bool migrate_is_own(const struct old_site *s, const struct url *url)
{
    size_t len = s->robots.origin_len - s->robots.host_at;

    return url->origin_len - url->host_at == (int)len &&
           memcmp(url->text + url->host_at, s->robots.text + s->robots.host_at, len) == 0;
}

void migrate_https(const struct old_site *s, struct url *url)
{
    char text[LOC_MAX_CHARS + 2];

    if (url->https || !migrate_is_own(s, url))
        return;
    snprintf(text, sizeof text, "%.*s%s", s->robots.origin_len, s->robots.text,
             url->text + url->origin_len);
    if (url_parse(text, strlen(text), url, NULL) != RULE_OK) /* one character too long: it stays */
        return;
}

size_t migrate_root_of(const struct old_site *s, size_t number)
{
    while (s->indexes[number].under != number)
        number = s->indexes[number].under;
    return number;
}

bool migrate_is_root(const struct old_site *s, size_t number)
{
    return s->indexes[number].index && s->indexes[number].under == number;
}

static bool migrate_has_query(const struct url *url)
{
    return url->len > url->origin_len + url->path_len;
}

size_t migrate_address_count(const struct old_site *s)
{
    return s->member_count + s->index_count;
}

const char *migrate_address_at(const struct old_site *s, size_t i, struct url *room)
{
    if (i < s->member_count) {
        if (!url_split(s->members[i].loc, strlen(s->members[i].loc), room))
            return NULL;
    } else {
        *room = s->indexes[i - s->member_count].url;
    }
    return migrate_is_own(s, room) ? room->text + room->origin_len : NULL;
}

/* True if `address`, with or without a query, is at the path. */
static bool migrate_is_at(const char *address, const char *path)
{
    size_t len = strlen(path);

    return strncmp(address, path, len) == 0 && (address[len] == '\0' || address[len] == '?');
}

static bool planned(const struct old_site *s, size_t before, const char *path)
{
    for (size_t i = 0; i < before; i++)
        if (migrate_is_root(s, i) && strcmp(s->indexes[i].path, path) == 0)
            return true;
    return strcmp(s->home, path) == 0;
}

static void choose_free(struct old_site *s, size_t before, char path[INDEX_PATH_MAX_CHARS + 1])
{
    static const char *const names[] = {INDEX_PATH_DEFAULT, "/sitemap-index.xml", "/sitemaps.xml"};

    for (unsigned n = 0;; n++) {
        bool taken;

        if (n < sizeof names / sizeof *names)
            strcpy(path, names[n]);
        else
            snprintf(path, INDEX_PATH_MAX_CHARS + 1, "/sitemapd%u.xml", n);
        taken = planned(s, before, path);
        for (size_t i = 0; !taken && i < migrate_address_count(s); i++) {
            struct url url;
            const char *address = migrate_address_at(s, i, &url);

            taken = address != NULL && migrate_is_at(address, path);
        }
        if (!taken)
            return;
    }
}

/* True if an index at the path can list all its sitemaps. */
static bool fits(const struct old_site *s, size_t root, const char *path)
{
    char gz[INDEX_PATH_MAX_CHARS + 4];

    snprintf(gz, sizeof gz, "%s.gz", path);
    for (size_t i = 0; i < s->member_count; i++) {
        struct url url;

        if (!url_split(s->members[i].loc, strlen(s->members[i].loc), &url))
            continue;
        if (migrate_root_of(s, s->members[i].from) == root && !scope_holds(path, &url))
            return false;
        if (migrate_is_own(s, &url) && strcmp(url.text + url.origin_len, gz) == 0)
            return false;
    }
    return true;
}

static void plan_index(struct old_site *s, size_t number)
{
    struct old_index *old = &s->indexes[number];
    const struct url *url = &old->url;
    int len = url->path_len;

    old->path[0] = '\0';
    if (migrate_is_own(s, url) && !migrate_has_query(url) && len < (int)sizeof old->path) {
        memcpy(old->path, url->text + url->origin_len, (size_t)len);
        old->path[len] = '\0';
        /* "/a.xml.gz" is the other form of "/a.xml". */
        if (len > 7 && strcmp(old->path + len - 7, ".xml.gz") == 0)
            old->path[len - 3] = '\0';
    }
    old->kept = old->path[0] != '\0' && scope_check_index_path(old->path) == RULE_OK &&
                !planned(s, number, old->path) && fits(s, number, old->path);
    if (!old->kept)
        choose_free(s, number, old->path);
}

/* "/sitemap-0.xml" beside "/sitemap.xml": the next ones would be the index's further pages. */
static bool is_numbered(const char *address, const char *path)
{
    size_t stem = strlen(path) - strlen(".xml"), digits;

    if (strncmp(address, path, stem) != 0 || address[stem] != '-')
        return false;
    digits = strspn(address + stem + 1, "0123456789");
    return digits > 0 && strncmp(address + stem + 1 + digits, ".xml", 4) == 0;
}

static bool pattern_fits(const struct old_site *s, const char *path, const char *pattern)
{
    for (size_t i = 0; i < migrate_address_count(s); i++) {
        struct url url;
        const char *address = migrate_address_at(s, i, &url);

        if (address != NULL &&
            (scope_page_number(path, pattern, UINT32_MAX, address, strlen(address)) > 1 ||
             (strcmp(pattern, PAGE_PATTERN_DEFAULT) == 0 && is_numbered(address, path))))
            return false;
    }
    return true;
}

size_t migrate_path_count(const struct old_site *s)
{
    return s->index_count + 1;
}

const char *migrate_path_at(const struct old_site *s, size_t i)
{
    if (i == s->index_count)
        return s->home[0] != '\0' ? s->home : NULL;
    return migrate_is_root(s, i) ? s->indexes[i].path : NULL;
}

static bool all_fit(const struct old_site *s, const char *pattern)
{
    for (size_t i = 0; i < migrate_path_count(s); i++) {
        const char *path = migrate_path_at(s, i);

        if (path == NULL)
            continue;
        if (!pattern_fits(s, path, pattern))
            return false;
        for (size_t k = 0; k < i; k++)
            if (migrate_path_at(s, k) != NULL &&
                scope_pages_meet(migrate_path_at(s, k), pattern, path, pattern, UINT32_MAX))
                return false;
    }
    return true;
}

const char *migrate_index_of(const struct old_site *s, const struct url *urlset)
{
    const char *found = NULL;

    for (size_t i = 0; i < migrate_path_count(s); i++) {
        const char *path = migrate_path_at(s, i);

        if (path != NULL && scope_holds(path, urlset) &&
            (found == NULL ||
             scope_directory_len(path, strlen(path)) > scope_directory_len(found, strlen(found))))
            found = path;
    }
    return found;
}

void migrate_plan(struct old_site *s)
{
    static const char *const patterns[] = {PAGE_PATTERN_DEFAULT, "{stem}-page-{n}{suffix}",
                                           "{stem}-index-{n}{suffix}", "{stem}.part-{n}{suffix}"};
    size_t chosen = 0;

    s->home[0] = '\0';
    for (size_t i = 0; i < s->index_count; i++)
        if (migrate_is_root(s, i))
            plan_index(s, i);
    for (size_t i = 0; s->home[0] == '\0' && i < s->index_count; i++)
        if (s->indexes[i].urlset && migrate_index_of(s, &s->indexes[i].url) == NULL) {
            char path[sizeof s->home];

            choose_free(s, s->index_count, path);
            strcpy(s->home, path);
        }
    while (chosen + 1 < sizeof patterns / sizeof *patterns && !all_fit(s, patterns[chosen]))
        chosen++;
    s->pattern = chosen > 0 ? patterns[chosen] : NULL;
    for (size_t i = 0; i < s->member_count; i++) {
        struct url url;
        const char *address = migrate_address_at(s, i, &url);

        for (size_t k = 0; address != NULL && k < migrate_path_count(s); k++)
            if (migrate_path_at(s, k) != NULL && strcmp(address, migrate_path_at(s, k)) == 0)
                s->indexes[s->members[i].from].bad_members = true; /* it lists itself */
    }
}

bool migrate_is_aliased(const struct old_site *s, const struct old_index *old)
{
    if (!migrate_is_own(s, &old->url) || migrate_has_query(&old->url) || old->kept)
        return false;
    for (const char *c = old->url.text + old->url.origin_len; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~')
            return false;
    return old->url.path_len > 1;
}

bool migrate_needs_query(const struct old_site *s, const char *path)
{
    char gz[INDEX_PATH_MAX_CHARS + 4];

    snprintf(gz, sizeof gz, "%s.gz", path);
    if (strchr(path, '%') != NULL)
        return true;
    for (size_t i = 0; i < migrate_address_count(s); i++) {
        struct url url;
        const char *address = migrate_address_at(s, i, &url);

        if (address != NULL && strchr(address, '?') != NULL &&
            (migrate_is_at(address, path) || migrate_is_at(address, gz)))
            return true;
    }
    return false;
}

void migrate_name(const struct old_site *s, char out[MIGRATE_NAME_SIZE])
{
    char host[HOST_MAX_CHARS + 7];
    int len = s->robots.origin_len - s->robots.host_at;

    snprintf(host, sizeof host, "%.*s", len, s->robots.text + s->robots.host_at);
    for (char *c = host; *c != '\0'; c++)
        if (!ascii_is_alnum(*c) && *c != '.' && *c != '-')
            *c = '_'; /* before a port; an address of IPv6 */
    if (len <= 32)
        snprintf(out, MIGRATE_NAME_SIZE, "%s", host);
    else
        snprintf(out, MIGRATE_NAME_SIZE, "%.23s-%08x", host,
                 (unsigned)XXH32(host, strlen(host), 0));
}
