/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Finds mistakes that no single line shows: settings, sites, sources and tokens that contradict
 * each other, and files that cannot be read. */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/settings.h"
#include "server/base/file.h"
#include "server/base/process.h"
#include "server/base/str.h"
#include "server/rules/entry.h"
#include "server/rules/host_map.h"
#include "server/rules/robots.h"
#include "server/rules/scope.h"
#include "server/rules/url.h"

/* The line of the file that set a setting outside named sections; 0: no line did. */
static unsigned line_of(const struct config *c, const char *section, const char *key)
{
    return c->set_by[setting_find(section, key) - config_settings].line;
}

/* Makes `m` report the line, the variable or the flag that set this setting. */
static void blame(struct mistakes *m, const struct config *c, const char *section, const char *key)
{
    m->line = line_of(c, section, key);
    m->file = m->line > 0 ? c->file : NULL;
}

static bool is_wildcard(const char *address)
{
    return strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
}

static void check_listeners(const struct config *c, struct mistakes *m)
{
    const char *public_port = strrchr(c->listen, ':') + 1;
    const char *admin_port = strrchr(c->admin_listen, ':') + 1;

    if (strtoul(public_port, NULL, 10) != strtoul(admin_port, NULL, 10) ||
        strtoul(public_port, NULL, 10) == 0)
        return;
    if (strcmp(c->listen, c->admin_listen) != 0 && !is_wildcard(c->listen) &&
        !is_wildcard(c->admin_listen))
        return;
    blame(m, c, "admin", "listen");
    mistakes_add(
        m, "conflict: the admin listener (%s) and the public listener (%s) use the same address",
        c->admin_listen, c->listen);
}

static void evaluate_tls(const struct config *c, const char *section, const char *cert,
                         const char *key, struct mistakes *m)
{
    if ((cert == NULL) == (key == NULL))
        return;
    blame(m, c, section, cert != NULL ? "tls_cert" : "tls_key");
    mistakes_add(m, "tls_cert and tls_key must both be set; %s is missing",
                 cert != NULL ? "tls_key" : "tls_cert");
}

static void check_user(const struct config *c, struct mistakes *m)
{
    const char *user = c->user;

    if (user == NULL || process_find_user(user) != NULL)
        return;
    blame(m, c, "server", "user");
    mistakes_add(m, "user %s: %s", user, errno == 0 ? "user not found" : strerror(errno));
}

/* The start creates the file, not its folder. */
static void check_access_log(const struct config *c, struct mistakes *m)
{
    char *copy = c->access_log == NULL ? NULL : strdup(c->access_log);
    const char *folder = copy == NULL ? NULL : dirname(copy);
    struct stat found;

    blame(m, c, "log", "access_log");
    if (folder != NULL && stat(folder, &found) != 0)
        mistakes_add(m, "access_log %s: folder %s: %s", c->access_log, folder, strerror(errno));
    else if (folder != NULL && !S_ISDIR(found.st_mode))
        mistakes_add(m, "access_log %s: %s is not a folder", c->access_log, folder);
    free(copy);
}

static void check_limits(const struct config *c, struct mistakes *m)
{
    if (c->max_body_bytes > c->max_bulk_bytes) {
        blame(m, c, "limits", "max_body");
        mistakes_add(m, "max_body is larger than max_bulk");
    }
}

/* Origins and hosts are in their normal form. */
static const char *origin_host(const char *origin)
{
    return strstr(origin, "//") + 2;
}

static bool has_index(const struct config_site *site, const char *path)
{
    for (size_t i = 0; i < site->index_count; i++)
        if (strcmp(site->indexes[i], path) == 0)
            return true;
    return site->index_count == 0 && strcmp(path, INDEX_PATH_DEFAULT) == 0;
}

static void check_repeated(const char *const *texts, size_t count, const char *what,
                           struct mistakes *m)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(texts[i], texts[j]) == 0) {
                mistakes_add(m, "%s %s occurs twice", what, texts[i]);
                break;
            }
}

/* The rule that adding an index follows, too (db/write/apply/index.c). */
static void check_page_names(const struct config_site *site, struct mistakes *m)
{
    const char *pattern = site->page_pattern != NULL ? site->page_pattern : PAGE_PATTERN_DEFAULT;

    for (size_t i = 0; i < site->index_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(site->indexes[i], site->indexes[j]) != 0 &&
                scope_pages_meet(site->indexes[i], pattern, site->indexes[j], pattern,
                                 site->max_indexes))
                mistakes_add(m, "the page names of index %s would conflict with those of index %s",
                             site->indexes[i], site->indexes[j]);
}

static bool check_file(const char *key, const char *path, struct mistakes *m)
{
    struct stat found;

    if (stat(path, &found) != 0 || access(path, R_OK) != 0)
        mistakes_add(m, "%s %s cannot be read: %s", key, path, strerror(errno));
    else if (!S_ISREG(found.st_mode))
        mistakes_add(m, "%s %s is not a file", key, path);
    else
        return true;
    return false;
}

char *config_robots_read(const char *path, const char **why)
{
    size_t len = 0;
    char *text = file_read(path, FILE_PLAIN, ROBOTS_MAX_BYTES + 1, &len, NULL);

    if (text != NULL)
        robots_repair_comments(text, len);
    /* The same check as for a robots.txt that is set by the API or the command line. */
    *why = text == NULL ? strerror(errno) : robots_fault(text, len);
    if (*why == NULL)
        return text;
    free(text);
    return NULL;
}

static void check_robots_file(const struct config_site *site, struct mistakes *m)
{
    const char *path = site->robots_file, *why;

    if (!site->robots) {
        mistakes_add(m, "robots_file cannot be combined with robots = no");
    } else if (check_file("robots_file", path, m)) {
        char *text = config_robots_read(path, &why);

        if (text == NULL)
            mistakes_add(m, "robots_file %s %s", path, why);
        free(text);
    }
}

/* The form of a key: https://www.indexnow.org/documentation */
#define INDEXNOW_KEY_MIN 8u
#define INDEXNOW_KEY_MAX 128u

static void check_indexnow(const struct config *c, const struct config_site *site,
                           struct mistakes *m)
{
    const char *key = site->indexnow_key;
    size_t len = key == NULL ? 0 : strlen(key);

    if (key == NULL)
        return;
    if (len < INDEXNOW_KEY_MIN || len > INDEXNOW_KEY_MAX ||
        strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != len)
        mistakes_add(m, "indexnow_key is not 8 to 128 letters, digits and dashes");
    if (c->history_keep_ms == 0)
        mistakes_add(
            m, "indexnow_key needs the history, which keep = 0 in [history] turns off; set keep");
}

/* Each alias is in the routing table, which is rebuilt with every change of a site. */
#define SITE_ALIASES_MAX 1000u

/* The place of the alias for this path; alias_count if none exists. */
static size_t find_alias(const struct config_site *site, const char *path)
{
    size_t at = 0;

    while (at < site->alias_count && strcmp(site->aliases[at].from, path) != 0)
        at++;
    return at;
}

/* A loop would redirect clients forever. It is reported at its first alias. */
static void check_alias_loops(const struct config_site *site, struct mistakes *m)
{
    size_t next[SITE_ALIASES_MAX];

    for (size_t i = 0; i < site->alias_count; i++)
        next[i] = find_alias(site, site->aliases[i].to);
    for (size_t i = 0; i < site->alias_count; i++) {
        size_t at = next[i];

        if (at == i)
            mistakes_add(m, "alias %s redirects to itself", site->aliases[i].from);
        for (size_t steps = 1; at > i && at < site->alias_count && steps < site->alias_count;
             steps++) {
            at = next[at];
            if (at == i)
                mistakes_add(m, "alias %s redirects to itself through %s", site->aliases[i].from,
                             site->aliases[i].to);
        }
    }
}

static void check_aliases(const struct config_site *site, struct mistakes *m)
{
    if (site->alias_count > SITE_ALIASES_MAX) {
        mistakes_add(m, "has %zu aliases; at most %u are allowed", site->alias_count,
                     SITE_ALIASES_MAX);
        return;
    }
    for (size_t i = 0; i < site->alias_count; i++) {
        const struct config_alias *alias = &site->aliases[i];

        if (has_index(site, alias->from))
            mistakes_add(m, "alias %s is the path of an index", alias->from);
        else if (strcmp(alias->from, "/robots.txt") == 0)
            mistakes_add(m,
                         "alias /robots.txt: set robots = no to leave that path to another server");
        for (size_t j = 0; j < i; j++)
            if (strcmp(alias->from, site->aliases[j].from) == 0)
                mistakes_add(m, "alias %s occurs twice", alias->from);
    }
    check_alias_loops(site, m);
}

/* The path must be absolute: a relative one would depend on the folder that the server was started
 * in. */
static void check_roots(const char *const *roots, size_t count, struct mistakes *m)
{
    for (size_t i = 0; i < count; i++)
        if (roots[i][0] != '/')
            mistakes_add(m, "source_root %s must be an absolute path", roots[i]);
}

static void evaluate_site(const struct config *c, const struct config_site *site,
                          struct mistakes *m)
{
    check_repeated(site->indexes, site->index_count, "index", m);
    check_page_names(site, m);
    check_repeated(site->cross_hosts, site->cross_host_count, "cross_host", m);
    check_repeated(site->host_aliases, site->host_alias_count, "host_alias", m);
    check_aliases(site, m);
    check_indexnow(c, site, m);
    check_roots(site->source_roots, site->source_root_count, m);
    if (site->robots_file != NULL)
        check_robots_file(site, m);
    if (site->index_count > site->max_indexes)
        mistakes_add(m, "has more indexes than max_indexes allows");
}

static bool answers_to(const struct config_site *site, const char *host)
{
    if (strcmp(origin_host(site->origin), host) == 0)
        return true;
    for (size_t i = 0; i < site->host_alias_count; i++)
        if (strcmp(site->host_aliases[i], host) == 0)
            return true;
    return false;
}

/* Two sites must not have a host in common: the request's host selects the site. */
static void check_pair(const struct config_site *site, const struct config_site *earlier,
                       struct mistakes *m)
{
    const char *host = origin_host(site->origin);

    if (strcmp(site->origin, earlier->origin) == 0) {
        mistakes_add(m, "origin %s is already that of [site \"%s\"]", site->origin,
                     earlier->named.name);
        return;
    }
    if (answers_to(earlier, host))
        mistakes_add(m, "host %s already answers for [site \"%s\"]", host, earlier->named.name);
    for (size_t i = 0; i < site->host_alias_count; i++)
        if (answers_to(earlier, site->host_aliases[i]))
            mistakes_add(m, "host_alias %s already answers for [site \"%s\"]",
                         site->host_aliases[i], earlier->named.name);
}

/* A process that guesses the token of the environment administers all sites; one that guesses the
 * peer token gets the whole catalogue. */
#define TOKEN_MIN_CHARS 32u

/* Whether the section has the key, even with an invalid value that was already reported. */
static bool is_there(const struct config_named *section, const char *word, const char *key)
{
    const struct section_table *table = section_find(word, strlen(word));

    return section->seen[section_setting(table, key) - table->settings] != 0;
}

/* Reads at most `most` bytes of a file that no other user may read; the caller wipes and frees
 * them. On failure NULL, and `why` gets a sentence about `what`. */
static char *read_secret(const char *what, const char *path, size_t most, size_t *len,
                         char why[256])
{
    mode_t mode = 0;
    char *text = file_read(path, FILE_PLAIN, most, len, &mode);

    if (text == NULL && errno == EINVAL)
        snprintf(why, 256, "%.140s is not a file", what);
    else if (text == NULL)
        snprintf(why, 256, "%.140s cannot be read: %.60s", what, strerror(errno));
    if (text == NULL || (mode & S_IRWXO) == 0)
        return text;
    snprintf(why, 256,
             "%.140s permissions are too open: other users can read it; run chmod o= on it", what);
    explicit_bzero(text, *len);
    free(text);
    return NULL;
}

static const char *read_credentials(const char *path, char out[CONFIG_CREDENTIALS_SIZE],
                                    char why[256])
{
    char what[160];
    size_t len = 0;

    snprintf(what, sizeof what, "credentials_file %.120s", path);
    char *text = read_secret(what, path, CONFIG_CREDENTIALS_SIZE - 1, &len, why);

    memset(out, 0, CONFIG_CREDENTIALS_SIZE);
    if (text == NULL)
        return why;
    memcpy(out, text, len);
    explicit_bzero(text, len);
    free(text);
    return NULL;
}

const char *config_source_credentials(const struct config_source *source,
                                      char out[CONFIG_CREDENTIALS_SIZE], char why[256])
{
    if (read_credentials(source->credentials_file, out, why) != NULL)
        return why;
    size_t len = strlen(out);
    while (len > 0 && strchr(" \t\r\n", out[len - 1]) != NULL)
        out[--len] = '\0';
    bool basic = strncasecmp(out, "basic ", 6) == 0 && strchr(out + 6, ':') != NULL;
    bool bearer = strncasecmp(out, "bearer ", 7) == 0 && len > 7;
    bool plain = len < CONFIG_CREDENTIALS_SIZE - 1;
    for (size_t i = 0; i < len; i++)
        plain = plain && (unsigned char)out[i] >= ' ' && out[i] != 0x7f;
    if (plain && (basic || bearer))
        return NULL;
    explicit_bzero(out, CONFIG_CREDENTIALS_SIZE);
    snprintf(why, 256,
             "credentials_file %.120s: must be one line, basic USER:PASSWORD or bearer "
             "TOKEN",
             source->credentials_file);
    return why;
}

/* A key of the other kind of source would have no effect. */
static void check_other_kind(const struct config_source *source, struct mistakes *m)
{
    const struct section_table *table = section_find("source", strlen("source"));
    const char *kind = source->is.upstream != NULL ? "an upstream" : "a directory";

    for (size_t i = 0; i < table->setting_count; i++) {
        const struct setting *s = &table->settings[i];
        if (s->of != NULL && strcmp(s->of, kind) != 0 && source->named.seen[i] != 0)
            mistakes_add(m, "[source \"%s\"]: %s can only be used with %s", source->named.name,
                         s->key, s->of);
    }
}

bool config_source_splits(const struct config_source *source)
{
    bool yes = false;

    return source->split_count == 1 && value_bool(source->is.split[0], &yes) && yes;
}

static bool ends_in(const char *url, size_t len, const char *suffix)
{
    size_t suffix_len = strlen(suffix);

    return len > suffix_len && memcmp(url + len - suffix_len, suffix, suffix_len) == 0;
}

static size_t without_suffix(const char *url)
{
    size_t len = strlen(url);

    len -= ends_in(url, len, ".gz") ? strlen(".gz") : 0;
    return len - (ends_in(url, len, ".xml") || ends_in(url, len, ".txt") ? strlen(".xml") : 0);
}

/* all.xml, all.xml.gz and all.txt become one urlset (server/sources/split.c): each would undo the
 * changes of the other. */
static bool is_one_urlset(const char *url, const char *other)
{
    size_t len = without_suffix(url);

    return without_suffix(other) == len && strncmp(url, other, len) == 0;
}

/* Reports URLs in `split` of `source` that would share a urlset with another one, of `source`
 * itself or of `before`. */
static void check_splits_apart(const struct config_source *source,
                               const struct config_source *before, struct mistakes *m)
{
    bool itself = source == before;
    char whose[128];

    snprintf(whose, sizeof whose, "[source \"%.100s\"] ", before->named.name);
    for (size_t i = 0; i < source->split_count; i++)
        for (size_t j = 0; j < (itself ? i : before->split_count); j++) {
            const char *one = before->is.split[j], *other = source->is.split[i];

            if (is_one_urlset(one, other) && !(itself && strcmp(one, other) == 0))
                mistakes_add(m,
                             "[source \"%s\"]: split names \"%.200s\" and %s\"%.200s\", which "
                             "would be the same urlset; remove one of them",
                             source->named.name, itself ? one : other, itself ? "" : whose,
                             itself ? other : one);
        }
}

static void evaluate_split(const struct config_source *source, struct mistakes *m)
{
    struct url url;
    bool is_word;

    if (source->is.upstream == NULL &&
        (source->split_count > 1 ||
         (source->split_count == 1 && !value_bool(source->is.split[0], &is_word))))
        mistakes_add(m, "[source \"%s\"]: split must be yes or no (also on, off, true, false)",
                     source->named.name);
    for (size_t i = 0; source->is.upstream != NULL && i < source->split_count; i++)
        if (url_parse(source->is.split[i], strlen(source->is.split[i]), &url, NULL) != RULE_OK)
            mistakes_add(m,
                         "[source \"%s\"]: split must be the URL of a sitemap that the upstream "
                         "lists, such as https://www.example.com/products.xml, not \"%.200s\"",
                         source->named.name, source->is.split[i]);
}

static char *map_text(const struct config_source *source, bool *failed)
{
    struct str text = STR_INIT;

    if (source->map_count == 0)
        return NULL;
    for (size_t i = 0; i < source->map_count; i++) {
        str_append_text(&text, i == 0 ? "" : i % 2 == 0 ? "\n" : " ");
        str_append_text(&text, source->map[i]);
    }
    *failed = *failed || text.failed;
    if (!text.failed)
        return text.data;
    str_done(&text);
    return NULL;
}

/* public_check of the upstream's site; true if the upstream is on no site of the configuration. */
static bool is_public_checked(const struct config *c, const struct config_source *source)
{
    for (size_t i = 0; i < c->site_count; i++) {
        const char *origin = c->sites[i].origin;
        size_t len = strlen(origin);
        if (strncmp(source->is.upstream, origin, len) == 0 && source->is.upstream[len] == '/')
            return c->sites[i].public_check;
    }
    return true;
}

bool config_source_settings(const struct config *c, const struct config_source *source,
                            struct source_settings *out, char **map)
{
    bool failed = false;

    *out = source->is;
    out->name = source->named.name;
    out->managed = true;
    out->splits = config_source_splits(source);
    out->split_bytes = c->max_spool_bytes / 2; /* like the lists of one site */
    out->public_check = out->upstream != NULL && is_public_checked(c, source);
    out->map = *map = map_text(source, &failed);
    return !failed;
}

static bool is_beneath(const char *root, const char *directory)
{
    size_t len = strlen(root);

    while (len > 0 && root[len - 1] == '/')
        len--;
    return strncmp(root, directory, len) == 0 && (directory[len] == '/' || directory[len] == '\0');
}

const char *config_source_root(const struct config *c, const char *origin, bool all_sites,
                               const char *directory)
{
    for (size_t i = 0; origin != NULL && i < c->site_count; i++)
        for (size_t k = 0; k < c->sites[i].source_root_count; k++)
            if (text_equal(c->sites[i].origin, origin) &&
                is_beneath(c->sites[i].source_roots[k], directory))
                return c->sites[i].source_roots[k];
    for (size_t i = 0; all_sites && i < c->source_root_count; i++)
        if (is_beneath(c->source_roots[i], directory))
            return c->source_roots[i];
    return NULL;
}

void config_open_source(const struct config *c, const char *origin, struct source_settings *made)
{
    if (made->directory == NULL)
        return;
    made->root = config_source_root(c, origin, !made->by_site, made->directory);
    made->closed = made->root == NULL;
}

static const struct config_site *site_of_url(const struct config *c, const struct url *url)
{
    struct url origin;

    for (size_t i = 0; i < c->site_count; i++) {
        const char *own = c->sites[i].origin;

        if (own != NULL && url_parse_origin(own, strlen(own), &origin) == RULE_OK &&
            url_same_origin(url, &origin))
            return &c->sites[i];
    }
    return NULL;
}

/* A source with an index belongs to the index's site: URLs that the map leads to another site would
 * be rejected at each poll. */
static void check_map_sites(const struct config *c, const struct config_source *source,
                            const struct host_map *map, struct mistakes *m)
{
    const char *index = source->is.index;
    struct url url;

    if (index == NULL || url_parse(index, strlen(index), &url, NULL) != RULE_OK)
        return;
    const struct config_site *site = site_of_url(c, &url);

    for (size_t i = 0; site != NULL && i < map->count; i++) {
        const char *to = map->pairs[i].to, *host = strstr(to, "://") + 3;
        const struct config_site *other =
            url_parse_origin(to, strlen(to), &url) == RULE_OK ? site_of_url(c, &url) : NULL;
        bool is_listed = false;

        for (size_t k = 0; k < site->cross_host_count; k++)
            is_listed = is_listed || strcmp(site->cross_hosts[k], host) == 0;
        if (other != NULL && other != site && !is_listed)
            mistakes_add(
                m, "[source \"%s\"]: map leads to %s, which belongs to another site than its index",
                source->named.name, to);
    }
}

static void check_map(const struct config *c, const struct config_source *source,
                      struct mistakes *m)
{
    char why[128];
    bool failed = false;
    char *text = map_text(source, &failed);
    struct host_map *map = text != NULL ? host_map_new(text, why, sizeof why) : NULL;

    if (failed)
        mistakes_add(m, "out of memory");
    else if (text != NULL && map == NULL)
        mistakes_add(m, "[source \"%s\"]: map %s", source->named.name, why);
    else if (map != NULL)
        check_map_sites(c, source, map, m);
    host_map_free(map);
    free(text);
}

static void check_upstream(const struct config *c, const struct config_source *source,
                           struct mistakes *m)
{
    char secret[CONFIG_CREDENTIALS_SIZE], why[256];

    if (source->is.serve && !source->is.check)
        mistakes_add(m,
                     "[source \"%s\"]: serve cannot be combined with check = no: only polls fetch "
                     "the copies that are served",
                     source->named.name);
    check_map(c, source, m);
    if (source->is.ca_file != NULL)
        check_file("ca_file", source->is.ca_file, m);
    if (source->credentials_file == NULL)
        return;
    if (strncmp(source->is.upstream, "https://", 8) != 0)
        mistakes_add(m, "credentials_file: credentials are only sent over https");
    else if (config_source_credentials(source, secret, why) != NULL)
        mistakes_add(m, "%s", why);
    explicit_bzero(secret, sizeof secret);
}

static void check_folder(const struct config_source *source, struct mistakes *m)
{
    struct stat found;

    if (source->is.directory != NULL && stat(source->is.directory, &found) == 0 &&
        !S_ISDIR(found.st_mode))
        mistakes_add(m, "directory %s is not a folder", source->is.directory);
    if (source->is.url == NULL && !is_there(&source->named, "source", "url"))
        mistakes_add(m,
                     "[source \"%s\"] needs a url, such as url = https://www.example.com/sitemaps/",
                     source->named.name);
}

static void check_source(const struct config *c, const struct config_source *source,
                         struct mistakes *m)
{
    const char *name = source->named.name;
    bool upstream = is_there(&source->named, "source", "upstream");
    bool directory = is_there(&source->named, "source", "directory");

    /* The name is the owner of the source's entries, also in URLs and on the command line. */
    if (entry_check_name(name, strlen(name)) != RULE_OK)
        mistakes_add(m, "[source \"%s\"]: a name may have only A-Z a-z 0-9 . _ -", name);
    if (source->is.index != NULL && source->is.index[0] == '/' && c->site_count > 1)
        mistakes_add(m,
                     "[source \"%s\"]: with several sites, index must be a URL, such as "
                     "https://www.example.com%s",
                     name, source->is.index);
    if (upstream && directory) {
        mistakes_add(m, "[source \"%s\"] has both a directory and an upstream; remove one", name);
        return;
    }
    if (!upstream && !directory) {
        mistakes_add(m,
                     "[source \"%s\"] needs a directory, such as directory = /srv/sitemaps, or an "
                     "upstream, such as upstream = https://www.example.com/sitemap_index.xml",
                     name);
        return;
    }
    if (source->is.upstream != NULL || source->is.directory != NULL)
        check_other_kind(source, m);
    if (source->is.upstream != NULL || source->is.directory != NULL)
        evaluate_split(source, m);
    if (source->is.upstream != NULL)
        check_upstream(c, source, m);
    else if (!upstream)
        check_folder(source, m);
}

const char *config_peer_token(const struct config *c, char out[CONFIG_PEER_TOKEN_SIZE],
                              char why[256])
{
    char what[160];
    size_t len = 0;

    snprintf(what, sizeof what, "peer_token_file %.120s", c->peer_token_file);
    char *text = read_secret(what, c->peer_token_file, CONFIG_PEER_TOKEN_SIZE, &len, why);

    if (text == NULL)
        return why;
    size_t chars = len;
    while (chars > 0 && strchr(" \t\r\n", text[chars - 1]) != NULL)
        chars--;
    bool good = chars >= TOKEN_MIN_CHARS && chars < CONFIG_PEER_TOKEN_SIZE;
    for (size_t i = 0; good && i < chars; i++)
        good = text[i] > ' ' && text[i] < 0x7f;
    if (good)
        snprintf(out, CONFIG_PEER_TOKEN_SIZE, "%.*s", (int)chars, text);
    else
        snprintf(why, 256,
                 "peer_token_file %.120s: must be one line of %u to %u visible ASCII characters; "
                 "`openssl rand -hex 32` creates one",
                 c->peer_token_file, TOKEN_MIN_CHARS, CONFIG_PEER_TOKEN_SIZE - 1);
    explicit_bzero(text, len);
    free(text);
    return good ? NULL : why;
}

static void evaluate_peers(const struct config *c, struct mistakes *m)
{
    char token[CONFIG_PEER_TOKEN_SIZE], why[256];

    blame(m, c, "shared", "advertise");
    if (c->peer_token_file == NULL && c->shared_advertise != NULL)
        mistakes_add(m, "advertise needs peer_token_file");
    if (c->peer_token_file == NULL)
        return;
    blame(m, c, "shared", "peer_token_file");
    if (!config_is_shared(c))
        mistakes_add(m, "peer_token_file needs database or follow in [shared]");
    if (config_peer_token(c, token, why) != NULL)
        mistakes_add(m, "%s", why);
    explicit_bzero(token, sizeof token);
}

static void evaluate_forward(const struct config *c, struct mistakes *m)
{
    const char *to = c->shared_forward;
    struct url url;

    if (strcmp(to, "no") == 0 || strcmp(to, "auto") == 0)
        return;
    blame(m, c, "shared", "forward");
    if (url_parse_origin(to, strlen(to), &url) != RULE_OK)
        mistakes_add(m,
                     "forward %.200s: must be auto, no, or the address of a node such as "
                     "https://web1.internal:8081",
                     to);
    else if (!config_is_shared(c))
        mistakes_add(m, "forward needs database or follow in [shared]");
}

static void evaluate_shared(const struct config *c, struct mistakes *m)
{
    const char *node = c->shared_node;

    blame(m, c, "shared", "node");
    if (node != NULL && entry_check_name(node, strlen(node)) != RULE_OK)
        mistakes_add(m, "node %.80s: a name may have only A-Z a-z 0-9 . _ -", node);
    blame(m, c, "shared", "follow");
    if (c->shared_follow != NULL && c->shared_database != NULL)
        mistakes_add(m, "follow cannot be combined with database: a follower has no PostgreSQL");
    if (c->shared_follow != NULL && c->peer_token_file == NULL)
        mistakes_add(m, "follow needs peer_token_file");
    blame(m, c, "shared", "ca_file");
    if (c->shared_ca_file != NULL)
        check_file("ca_file", c->shared_ca_file, m);
    evaluate_peers(c, m);
    evaluate_forward(c, m);
}

static void check_fetch(const struct config *c, struct mistakes *m)
{
    if (c->fetch_min_interval_ms > c->fetch_max_interval_ms) {
        blame(m, c, "fetch", "min_interval");
        mistakes_add(m, "min_interval is longer than max_interval");
    }
    blame(m, c, "fetch", "source_root");
    check_roots(c->source_roots, c->source_root_count, m);
}

static void evaluate_sources(const struct config *c, struct mistakes *m)
{
    for (size_t i = 0; i < c->source_count; i++) {
        m->line = c->sources[i].named.line;
        check_source(c, &c->sources[i], m);
        for (size_t j = 0; c->sources[i].is.upstream != NULL && j <= i; j++)
            if (c->sources[j].is.upstream != NULL)
                check_splits_apart(&c->sources[i], &c->sources[j], m);
    }
}

/* ---- tokens */

/* 64 hex digits, and nothing after them but white space and a name, as sha256sum writes it. */
static bool parse_sha256(const char *text, uint8_t out[32])
{
    if (strspn(text, "0123456789abcdefABCDEF") != 64 ||
        (text[64] != '\0' && strchr(" \t\r\n", text[64]) == NULL))
        return false;
    for (size_t i = 0; i < 32; i++) {
        char pair[3] = {text[i * 2], text[i * 2 + 1], '\0'};
        out[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return true;
}

static const char *read_sha256(const char *path, struct config_grant *out)
{
    size_t len;
    char *text = file_read(path, FILE_PLAIN, 79, &len, NULL);
    if (text == NULL)
        snprintf(out->why, sizeof out->why, "sha256_file %.80s cannot be read: %.40s", path,
                 strerror(errno));
    else if (parse_sha256(text, out->sha256))
        out->why[0] = '\0';
    else
        snprintf(out->why, sizeof out->why,
                 "sha256_file %.60s has no SHA-256 in hex; create it with printf %%s TOKEN | "
                 "sha256sum",
                 path);
    free(text);
    return out->why[0] != '\0' ? out->why : NULL;
}

/* The token's site: `site`, else the origin of `prefix`. */
static void fill_site(const struct config_token *token, struct config_grant *out)
{
    struct url url;

    snprintf(out->site, sizeof out->site, "%s", token->site != NULL ? token->site : "");
    if (token->site == NULL && token->prefix != NULL &&
        url_parse(out->prefix, strlen(out->prefix), &url, NULL) == RULE_OK)
        snprintf(out->site, sizeof out->site, "%.*s", (int)url.origin_len, url.text);
    out->grant.site_id = out->site[0] != '\0'; /* for grant_fault: not 0 if there is a site */
}

const char *config_token_read(const struct config_token *token, struct config_grant *out)
{
    const char *fault;

    memset(out, 0, sizeof *out);
    out->grant.name = token->named.name;
    out->grant.own = token->own;
    /* The name is the owner of the token's entries, also in URLs and on the command line. */
    if (entry_check_name(token->named.name, strlen(token->named.name)) != RULE_OK)
        return "a token's name may have only A-Z a-z 0-9 . _ -";
    if (token->role == NULL || !grant_role_read(token->role, &out->grant.role))
        return "role must be read, write or admin";
    if (token->prefix != NULL && (fault = grant_read_prefix(token->prefix, out->prefix)) != NULL) {
        snprintf(out->why, sizeof out->why, "prefix %s", fault);
        return out->why;
    }
    out->grant.prefix = token->prefix != NULL ? out->prefix : NULL;
    fill_site(token, out);
    if ((fault = grant_fault(&out->grant)) != NULL)
        return fault;
    /* A duration would start again with each reload. A time in the past is valid. */
    if (token->expires != NULL && (strchr(token->expires, '-') == NULL ||
                                   !grant_read_expiry(token->expires, 0, &out->grant.expires_at)))
        return "expires must be a date or time, such as 2030-01-31";
    if (token->sha256_file == NULL)
        return "needs a sha256_file";
    return read_sha256(token->sha256_file, out);
}

static void check_tokens(const struct config *c, struct mistakes *m)
{
    struct config_grant read, earlier;

    for (size_t i = 0; i < c->token_count; i++) {
        const struct config_token *token = &c->tokens[i];
        const char *fault = config_token_read(token, &read);

        m->line = token->named.line;
        if (fault != NULL) {
            if (token->sha256_file != NULL || !is_there(&token->named, "token", "sha256_file"))
                mistakes_add(m, "[token \"%s\"]: %s", token->named.name, fault);
            continue;
        }
        for (size_t j = 0; j < i; j++)
            if (config_token_read(&c->tokens[j], &earlier) == NULL &&
                memcmp(earlier.sha256, read.sha256, sizeof read.sha256) == 0)
                mistakes_add(m, "[token \"%s\"] is the same token as [token \"%s\"]",
                             token->named.name, c->tokens[j].named.name);
    }
}

static void check_environment_token(const struct config *c, struct mistakes *m)
{
    if (c->token != NULL && strlen(c->token) < TOKEN_MIN_CHARS)
        mistakes_add(
            m,
            "SITEMAPD_TOKEN: must have at least %u characters; `openssl rand -hex 32` creates one",
            TOKEN_MIN_CHARS);
}

/* ---- crawlers */

#define CRAWLERS_MOST      40u /* fit into the ledger's table together with the built-in ones */
#define CRAWLER_NAME_CHARS 32u

static void evaluate_crawlers(const struct config *c, struct mistakes *m)
{
    for (size_t i = 0; i < c->crawler_count; i++) {
        const char *name = c->crawler_rules[i].named.name;

        m->line = c->crawler_rules[i].named.line;
        /* A label in metrics, and a part of a URL. */
        if (entry_check_name(name, strlen(name)) != RULE_OK || strlen(name) > CRAWLER_NAME_CHARS)
            mistakes_add(m, "[crawler \"%s\"]: a name may have only A-Z a-z 0-9 . _ -, %u at most",
                         name, CRAWLER_NAME_CHARS);
        else if (strcmp(name, "other") == 0)
            mistakes_add(m, "[crawler \"other\"]: this name is reserved");
        if (i == CRAWLERS_MOST)
            mistakes_add(m, "there are more than %u sections [crawler \"…\"]", CRAWLERS_MOST);
    }
}

/* ---- search engines */

#define ENGINE_SECRET_BYTES 65536u

static bool is_google(const struct config_engine *engine)
{
    return strcmp(engine->named.name, "google") == 0;
}

char *config_engine_secret(const struct config_engine *engine, char why[256])
{
    size_t len = 0;
    const char *key = is_google(engine) ? "credentials_file" : "api_key_file";
    const char *path = is_google(engine) ? engine->credentials_file : engine->api_key_file;
    char *text = read_secret(key, path, ENGINE_SECRET_BYTES, &len, why);

    while (text != NULL && len > 0 && strchr(" \t\r\n", text[len - 1]) != NULL)
        text[--len] = '\0';
    if (text == NULL || len > 0)
        return text;
    snprintf(why, 256, "%s is empty", key);
    free(text);
    return NULL;
}

/* A property of another form covers no site (server/engines/engines.c). */
static void check_property(const char *property, struct mistakes *m)
{
    bool domain = strncmp(property, "sc-domain:", 10) == 0;
    const char *name = domain ? property + 10 : property;
    char host[HOST_MAX_CHARS + 7];
    struct url origin;

    if (domain ? url_parse_host(name, strlen(name), host) != RULE_OK || strcmp(host, name) != 0
               : url_parse_origin(name, strlen(name), &origin) != RULE_OK)
        mistakes_add(m,
                     "property %.200s: must be sc-domain: and a domain in lower case, such as "
                     "sc-domain:example.com, or an origin, such as https://www.example.com/",
                     property);
}

static void evaluate_engine(const struct config_engine *engine, struct mistakes *m)
{
    const struct section_table *table = section_find("engine", strlen("engine"));
    const char *name = engine->named.name;
    char why[256];

    for (size_t i = 0; i < table->setting_count; i++) {
        const struct setting *s = &table->settings[i];
        if (s->of != NULL && strcmp(s->of, name) != 0 && engine->named.seen[i] != 0)
            mistakes_add(m, "[engine \"%s\"]: %s can only be used for %s", name, s->key, s->of);
        if (s->of != NULL && strcmp(s->of, name) == 0 && engine->named.seen[i] == 0)
            mistakes_add(m, "[engine \"%s\"] needs %s", name, s->key);
    }
    if ((is_google(engine) ? engine->credentials_file : engine->api_key_file) == NULL)
        return;
    for (size_t i = 0; i < engine->property_count; i++)
        check_property(engine->properties[i], m);
    char *secret = config_engine_secret(engine, why);
    if (secret == NULL)
        mistakes_add(m, "%s", why);
    else
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

static void evaluate_engines(const struct config *c, struct mistakes *m)
{
    for (size_t i = 0; i < c->engine_count; i++) {
        const char *name = c->engines[i].named.name;

        m->line = c->engines[i].named.line;
        if (strcmp(name, "google") == 0 || strcmp(name, "bing") == 0)
            evaluate_engine(&c->engines[i], m);
        else
            mistakes_add(m, "[engine \"%s\"]: the engines are google and bing", name);
    }
}

bool config_validate(const struct config *c, config_report *report, void *context)
{
    struct mistakes m = {.report = report, .context = context};

    check_environment_token(c, &m);
    check_listeners(c, &m);
    check_user(c, &m);
    check_access_log(c, &m);
    check_limits(c, &m);
    evaluate_shared(c, &m);
    check_fetch(c, &m);
    evaluate_tls(c, "server", c->tls_cert, c->tls_key, &m);
    evaluate_tls(c, "admin", c->admin_tls_cert, c->admin_tls_key, &m);
    m.file = c->file;
    for (size_t i = 0; i < c->site_count; i++) {
        const struct config_site *site = &c->sites[i];

        m.line = site->named.line;
        if (site->origin == NULL) {
            if (!is_there(&site->named, "site", "origin"))
                mistakes_add(
                    &m, "[site \"%s\"] needs an origin, such as origin = https://www.example.com",
                    site->named.name);
            continue;
        }
        evaluate_site(c, site, &m);
        for (size_t j = 0; j < i; j++)
            if (c->sites[j].origin != NULL)
                check_pair(site, &c->sites[j], &m);
    }
    evaluate_sources(c, &m);
    check_tokens(c, &m);
    evaluate_crawlers(c, &m);
    evaluate_engines(c, &m);
    return m.count == 0;
}
