#include "server/bootstrap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/log/log.h"
#include "server/rules/str.h"
#include "server/token/token.h"

#define FIRST_TOKEN_NAME "first"

/* Applies a change; where it adds something, CONFLICT means "is there already". */
static bool make_sure(struct catalogue *c, const struct change *change, const char *what,
                      const char *name)
{
    struct change_result result;
    enum catalogue_status status = catalogue_apply(c, change, &result);
    entry_record_done(&result.entry);
    bool adds = change->kind == CHANGE_SITE_ADD || change->kind == CHANGE_INDEX_ADD ||
                change->kind == CHANGE_TOKEN_ADD;
    if (status == CATALOGUE_OK || (adds && status == CATALOGUE_CONFLICT))
        return true;
    log_failure(name, "cannot make the %s: %s: %s", what,
                status == CATALOGUE_REFUSED ? rule_code_word(result.code)
                                            : catalogue_status_word(status),
                result.detail);
    return false;
}

static bool make_index(struct catalogue *c, const char *origin, const char *path,
                       const char *pattern)
{
    struct str url = STR_INIT;
    str_append_text(&url, origin);
    str_append_text(&url, path);
    struct change change = {
        .kind = CHANGE_INDEX_ADD,
        .override_managed = true,
        .index_url = str_text(&url),
        .page_pattern = pattern,
    };
    bool done = !url.failed && make_sure(c, &change, "index", str_text(&url));
    str_done(&url);
    return done;
}

/* The registry now; NULL (and a log line) where the catalogue cannot be read. */
static struct registry *read_registry(struct catalogue *c)
{
    struct catalogue_view *v;
    struct registry *registry = NULL;
    enum catalogue_status status = catalogue_view_begin(c, &v);
    if (status == CATALOGUE_OK) {
        status = catalogue_view_registry(v, &registry);
        catalogue_view_end(v);
    }
    if (status != CATALOGUE_OK) {
        log_failure("catalogue", "cannot be read: %s", catalogue_status_word(status));
        return NULL;
    }
    return registry;
}

static int64_t site_id_of(struct catalogue *c, const char *origin)
{
    struct registry *registry = read_registry(c);
    struct url url;
    if (registry == NULL || url_parse_origin(origin, strlen(origin), &url) != RULE_OK) {
        registry_unref(registry);
        return 0;
    }
    const struct registry_site *site = registry_site_by_origin(registry, url.text);
    int64_t id = site == NULL ? 0 : site->id;
    registry_unref(registry);
    return id;
}

/* A NULL-terminated list of borrowed strings; NULL when out of memory. */
static const char **terminated(char *const *items, size_t count)
{
    const char **list = calloc(count + 1, sizeof *list);
    for (size_t i = 0; list != NULL && i < count; i++)
        list[i] = items[i];
    return list;
}

static bool names_index(const struct config_site *site, const char *path)
{
    if (site->index_count == 0)
        return strcmp(path, BOOTSTRAP_INDEX_PATH) == 0;
    for (size_t i = 0; i < site->index_count; i++)
        if (strcmp(site->indexes[i], path) == 0)
            return true;
    return false;
}

/* The URLs of pages that crawlers know do not change beneath them: an index keeps the pattern that
 * it was made with. Whoever has written another one is told. */
static void tell_kept_patterns(struct catalogue *c, const struct config_site *site)
{
    struct registry *registry = site->page_pattern != NULL ? read_registry(c) : NULL;
    struct url url;
    const struct registry_site *found =
        registry != NULL && url_parse_origin(site->origin, strlen(site->origin), &url) == RULE_OK
            ? registry_site_by_origin(registry, url.text)
            : NULL;
    for (size_t i = 0; found != NULL && i < found->index_count; i++) {
        const struct registry_index *index = &found->indexes[i];
        if (names_index(site, index->path) && strcmp(index->page_pattern, site->page_pattern) != 0)
            log_event(LOG_LEVEL_WARNING, "page-pattern-kept",
                      "%s%s: its pages keep the pattern that it was made with, %s; not %s",
                      found->origin, index->path, index->page_pattern, site->page_pattern);
    }
    registry_unref(registry);
}

static bool make_managed(struct catalogue *c, const struct config_site *site)
{
    struct change change = {
        .kind = CHANGE_SITE_ADD,
        .override_managed = true,
        .site = {.set = SITE_SET_MANAGED, .origin = site->origin, .managed = true},
    };
    if (!make_sure(c, &change, "site", site->origin))
        return false;
    const char **cross = terminated(site->cross_hosts, site->cross_host_count);
    const char **alias = terminated(site->host_aliases, site->host_alias_count);
    change.kind = CHANGE_SITE_UPDATE;
    change.site_id = site_id_of(c, site->origin);
    change.site.set |= SITE_SET_CROSS_HOSTS | SITE_SET_ALIAS_HOSTS | SITE_SET_MAX_PAGES;
    change.site.cross_hosts = cross;
    change.site.alias_hosts = alias;
    change.site.max_pages = site->max_indexes;
    bool done = cross != NULL && alias != NULL && change.site_id != 0 &&
                make_sure(c, &change, "site", site->origin);
    free(cross);
    free(alias);
    if (done && site->index_count == 0)
        done = make_index(c, site->origin, BOOTSTRAP_INDEX_PATH, site->page_pattern);
    for (size_t i = 0; done && i < site->index_count; i++)
        done = make_index(c, site->origin, site->indexes[i], site->page_pattern);
    if (done)
        tell_kept_patterns(c, site);
    return done;
}

/* An index whose line was taken out goes on being served: its entries are not the file's to throw
 * away, and the shrink guard has nobody to ask here. So it is told. */
static bool tell_unnamed_indexes(struct catalogue *c, const struct config_site *site)
{
    struct url origin;
    struct registry *registry = read_registry(c);
    const struct registry_site *known = NULL;
    if (registry == NULL)
        return false;
    if (url_parse_origin(site->origin, strlen(site->origin), &origin) == RULE_OK)
        known = registry_site_by_origin(registry, origin.text);
    for (size_t i = 0; known != NULL && i < known->index_count; i++) {
        const char *path = known->indexes[i].path;
        if (!names_index(site, path))
            log_event(LOG_LEVEL_WARNING, "index-no-longer-configured",
                      "%s%s is not in the site's section; it stays, entries and all", origin.text,
                      path);
    }
    registry_unref(registry);
    return true;
}

static bool is_configured(const struct config *config, const char *origin)
{
    for (size_t i = 0; i < config->site_count; i++) {
        const char *text = config->sites[i].origin;
        struct url url;
        if (text != NULL && url_parse_origin(text, strlen(text), &url) == RULE_OK &&
            strcmp(url.text, origin) == 0)
            return true;
    }
    return false;
}

bool bootstrap_managed_sites(struct catalogue *c, const struct config *config)
{
    struct registry *registry = read_registry(c);
    bool done = registry != NULL;
    for (size_t i = 0; done && i < registry->site_count; i++) {
        const struct registry_site *site = &registry->sites[i];
        if (!site->managed || is_configured(config, site->origin))
            continue;
        struct change change = {
            .kind = CHANGE_SITE_UPDATE,
            .override_managed = true,
            .site_id = site->id,
            .site = {.set = SITE_SET_MANAGED, .managed = false},
        };
        log_event(LOG_LEVEL_WARNING, "site-no-longer-configured",
                  "%s is not in the configuration any more; it stays, and the API may change it",
                  site->origin);
        done = make_sure(c, &change, "site", site->origin);
    }
    registry_unref(registry);
    for (size_t i = 0; done && i < config->site_count; i++)
        done = make_managed(c, &config->sites[i]) && tell_unnamed_indexes(c, &config->sites[i]);
    return done;
}

static bool had_index(const struct registry_site *site, const char *path)
{
    for (size_t i = 0; i < site->index_count; i++)
        if (strcmp(site->indexes[i].path, path) == 0)
            return true;
    return false;
}

/* Removes what `site`, of a configuration that failed, has and `before` has not. */
static void take_back(struct catalogue *c, const struct registry *before,
                      const struct registry_site *site)
{
    const struct registry_site *was = registry_site_by_origin(before, site->origin);
    struct change change = {
        .kind = was == NULL ? CHANGE_SITE_REMOVE : CHANGE_INDEX_REMOVE,
        .override_managed = true,
        .site_id = site->id,
        .max_removed = MAX_REMOVED_GUARDED,
    };
    if (was == NULL) {
        make_sure(c, &change, "removal of the site", site->origin);
        return;
    }
    for (size_t i = 0; i < site->index_count; i++) {
        change.index_id = site->indexes[i].id;
        if (!had_index(was, site->indexes[i].path))
            make_sure(c, &change, "removal of the index", site->indexes[i].path);
    }
}

bool bootstrap_reload_sites(struct catalogue *c, const struct config *old,
                            const struct config *fresh)
{
    struct registry *before = read_registry(c), *after = NULL;
    bool done = before != NULL && bootstrap_managed_sites(c, fresh);
    if (before != NULL && !done)
        after = read_registry(c);
    for (size_t i = 0; after != NULL && i < after->site_count; i++)
        if (is_configured(fresh, after->sites[i].origin))
            take_back(c, before, &after->sites[i]);
    if (after != NULL)
        bootstrap_managed_sites(c, old);
    registry_unref(after);
    registry_unref(before);
    return done;
}

bool bootstrap_sites(struct catalogue *c, const char *const *origins)
{
    for (; origins != NULL && *origins != NULL; origins++) {
        struct change change = {.kind = CHANGE_SITE_ADD, .site = {.origin = *origins}};
        struct url url;
        if (!make_sure(c, &change, "site", *origins))
            return false;
        if (url_parse_origin(*origins, strlen(*origins), &url) != RULE_OK ||
            !make_index(c, url.text, BOOTSTRAP_INDEX_PATH, NULL))
            return false;
    }
    return true;
}

/* The file is whole and on disk before the catalogue knows the token: a crash between leaves an
 * unknown token in the file, and the next start writes another. */
static bool write_token_file(const char *path, const char *token)
{
    struct str text = STR_INIT;
    struct str temporary = STR_INIT;
    bool done = false;
    str_append_text(&text, token);
    str_append_char(&text, '\n');
    str_append_text(&temporary, path);
    str_append_text(&temporary, ".new");
    int fd = -1;
    if (!text.failed && !temporary.failed) {
        unlink(str_text(&temporary));
        fd = open(str_text(&temporary), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    if (fd >= 0) {
        done = write(fd, text.data, text.len) == (ssize_t)text.len && fsync(fd) == 0;
        done = close(fd) == 0 && done && rename(str_text(&temporary), path) == 0;
    }
    if (!done)
        log_failure(path, "cannot be written: %s", strerror(errno));
    if (text.data != NULL)
        explicit_bzero(text.data, text.len);
    str_done(&text);
    str_done(&temporary);
    return done;
}

bool bootstrap_token(struct catalogue *c, const struct config *config)
{
    struct registry *registry = read_registry(c);
    if (registry == NULL)
        return false;
    size_t tokens = registry->token_count;
    registry_unref(registry);
    if (tokens > 0 || config->token != NULL)
        return true;

    char token[TOKEN_TEXT_SIZE];
    uint8_t sha256[32];
    struct str path = STR_INIT;
    str_append_text(&path, config->database);
    str_append_text(&path, ".token");
    bool done = !path.failed && token_make(token) && token_sha256(token, strlen(token), sha256) &&
                write_token_file(str_text(&path), token);
    explicit_bzero(token, sizeof token);
    struct change change = {
        .kind = CHANGE_TOKEN_ADD,
        .token_name = FIRST_TOKEN_NAME,
        .token_sha256 = sha256,
    };
    done = done && make_sure(c, &change, "token", FIRST_TOKEN_NAME);
    if (done)
        log_event(LOG_LEVEL_INFO, "token-made", "the API token is in %s", str_text(&path));
    str_done(&path);
    return done;
}
