/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Applies the configuration to the catalogue at the start and at each reload: sites, tokens, the
 * first token, robots files. */
#include "server/configured.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/api/handlers/handlers.h"
#include "server/base/str.h"
#include "server/crypto/token.h"
#include "server/log/log.h"
#include "server/rules/scope.h"

#define FIRST_TOKEN_NAME "first"

/* Logs why a change was rejected: its code or status, and a sentence. */
static bool report_failure(const char *name, const char *what, const struct change_result *result)
{
    log_failure(name, "cannot create the %s: %s: %s", what,
                result->status == CATALOGUE_REFUSED ? rule_code_word(result->code)
                                                    : catalogue_status_word(result->status),
                result->detail);
    return false;
}

/* The current registry; NULL, logged, if the catalogue cannot be read. */
static struct registry *read_registry(struct catalogue *c)
{
    struct registry *registry;
    enum catalogue_status status = catalogue_registry(c, &registry);
    if (status != CATALOGUE_OK)
        log_failure("catalogue", "cannot be read: %s", catalogue_status_word(status));
    return registry;
}

/* ---- declaring ------------------------------------------------------------------------- */

struct declared {
    struct site_declaration *sites;
    size_t count;
    struct token_declaration *tokens;
    struct config_grant *grants; /* that the tokens point to */
    size_t token_count;
    /* declared by another node; indexed as in the registry */
    bool *site_elsewhere, *token_elsewhere;
};

/* An empty list: in a change, NULL would leave the list as it is. */
static const char *const no_names[] = {NULL};

/* Allocates room for all that the configuration declares and for all that may be released from the
 * registry. False, logged: out of memory. */
static bool make_room(const struct config *config, const struct registry *r, struct declared *out)
{
    size_t sites = config->site_count + config->origin_count + r->site_count;
    size_t tokens = config->token_count + r->token_count;
    out->sites = calloc(sites + 1, sizeof *out->sites);
    out->tokens = calloc(tokens + 1, sizeof *out->tokens);
    out->grants = calloc(config->token_count + 1, sizeof *out->grants);
    out->site_elsewhere = calloc(r->site_count + 1, sizeof *out->site_elsewhere);
    out->token_elsewhere = calloc(r->token_count + 1, sizeof *out->token_elsewhere);
    if (out->sites != NULL && out->tokens != NULL && out->grants != NULL &&
        out->site_elsewhere != NULL && out->token_elsewhere != NULL)
        return true;
    log_failure("configuration", "out of memory");
    return false;
}

static void done(struct declared *d)
{
    free(d->sites);
    free(d->tokens);
    free(d->grants);
    free(d->site_elsewhere);
    free(d->token_elsewhere);
}

/* False, logged: a token's file cannot be read. */
static bool declare_tokens(const struct config *config, struct declared *out)
{
    for (size_t i = 0; i < config->token_count; i++) {
        struct config_grant *grant = &out->grants[i];
        struct token_declaration *token = &out->tokens[out->token_count];
        const char *fault = config_token_read(&config->tokens[i], grant);
        if (fault != NULL) {
            log_failure(config->tokens[i].named.name, "cannot create the token: %s", fault);
            return false;
        }
        token->grant = grant->grant;
        token->site = grant->site[0] != '\0' ? grant->site : NULL;
        memcpy(token->sha256, grant->sha256, sizeof grant->sha256);
        out->token_count++;
    }
    return true;
}

/* The strings are borrowed from the configuration. */
static void declare_sites(const struct config *config, bool starts, struct declared *out)
{
    static const char *const usual[] = {INDEX_PATH_DEFAULT, NULL};
    for (size_t i = 0; i < config->site_count; i++) {
        const struct config_site *site = &config->sites[i];
        out->sites[out->count++] = (struct site_declaration){
            .origin = site->origin,
            .managed = true,
            .index_paths = site->indexes != NULL ? site->indexes : usual,
            .cross_hosts = site->cross_hosts != NULL ? site->cross_hosts : no_names,
            .alias_hosts = site->host_aliases != NULL ? site->host_aliases : no_names,
            .page_pattern = site->page_pattern,
            .max_pages = site->max_indexes,
            .check = site->check,
        };
    }
    for (size_t i = 0; starts && i < config->origin_count; i++)
        out->sites[out->count++] =
            (struct site_declaration){.origin = config->origins[i], .index_paths = usual};
}

/* ---- what no configuration lists any more ----------------------------------------------- */

/* Each node of a shared catalogue has its own configuration. A node releases only sites and tokens
 * that no node declares any more, so that two different configurations do not undo each other. A
 * node that has been silent for a week does not count. The order prevents a race with a node that
 * declares something meanwhile: only what is in the registry is released, and the registry is read
 * before the reports of the other nodes. Since a node reports what it will declare before it
 * declares it (shared_node.c), its report contains all that the registry has of it. */
#define GONE_MS     (7 * 86400 * INT64_C(1000))
#define EXCHANGE_MS 5000

struct elsewhere {
    struct catalogue *catalogue;
    const struct registry *registry;
    struct declared *declared;
    const char *own; /* this node's name */
    bool any_site, any_token;
};

static void record_site(void *context, const char *name, size_t len)
{
    struct elsewhere *e = context;
    for (size_t i = 0; i < e->registry->site_count; i++) {
        const struct registry_site *site = &e->registry->sites[i];
        if (strlen(site->origin) == len && memcmp(site->origin, name, len) == 0)
            e->declared->site_elsewhere[i] = true;
    }
}

static void record_token(void *context, const char *name, size_t len)
{
    struct elsewhere *e = context;
    for (size_t i = 0; i < e->registry->token_count; i++) {
        const char *known = e->registry->tokens[i].grant.name;
        if (strlen(known) == len && memcmp(known, name, len) == 0)
            e->declared->token_elsewhere[i] = true;
    }
}

static void record_member(void *context, const struct shared_member *member)
{
    struct elsewhere *e = context;
    if (strcmp(member->name, e->own) == 0 || member->silent_ms > GONE_MS)
        return;
    /* A node that has not reported yet may declare anything. */
    e->any_site |= !nodes_read_names(member->state, "sites", record_site, e);
    e->any_token |= !nodes_read_names(member->state, "tokens", record_token, e);
}

static bool has_site(const struct config *config, const char *origin)
{
    for (size_t i = 0; i < config->site_count; i++)
        if (strcmp(config->sites[i].origin, origin) == 0)
            return true;
    return false;
}

static bool has_token(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->token_count; i++)
        if (strcmp(config->tokens[i].named.name, name) == 0)
            return true;
    return false;
}

static bool releases_any(const struct config *config, const struct registry *r)
{
    bool any = false;
    for (size_t i = 0; i < r->site_count && !any; i++)
        any = r->sites[i].managed && !has_site(config, r->sites[i].origin);
    for (size_t i = 0; i < r->token_count && !any; i++)
        any = r->tokens[i].managed && !has_token(config, r->tokens[i].grant.name);
    return any;
}

/* Call it before the declarations are added: a declared token may have the secret of a released
 * token of another name. */
static void release(struct catalogue *c, const struct config *config, const struct registry *r,
                    struct declared *out)
{
    struct shared_state state;
    struct elsewhere e = {.registry = r, .declared = out, .own = state.node};
    if (releases_any(config, r) && catalogue_shared_state(c, &state)) {
        e.any_site = e.any_token = !catalogue_shared_exchange(c, EXCHANGE_MS);
        catalogue_shared_members(c, record_member, &e);
    }
    for (size_t i = 0; i < r->site_count; i++)
        if (r->sites[i].managed && !e.any_site && !out->site_elsewhere[i] &&
            !has_site(config, r->sites[i].origin))
            out->sites[out->count++] = (struct site_declaration){.origin = r->sites[i].origin,
                                                                 .released = true,
                                                                 .index_paths = no_names,
                                                                 .cross_hosts = no_names,
                                                                 .alias_hosts = no_names};
    for (size_t i = 0; i < r->token_count; i++)
        if (r->tokens[i].managed && !e.any_token && !out->token_elsewhere[i] &&
            !has_token(config, r->tokens[i].grant.name))
            out->tokens[out->token_count++] = (struct token_declaration){
                .grant = {.name = r->tokens[i].grant.name}, .released = true};
}

/* ---- reporting ------------------------------------------------------------------------- */

static bool is_among(const char *const *paths, const char *path)
{
    for (; *paths != NULL; paths++)
        if (strcmp(*paths, path) == 0)
            return true;
    return false;
}

/* Logs which sites and settings the API can change from now on, or no longer. */
static void report_ownership(const struct registry *before, const struct declared *d)
{
    for (size_t i = 0; i < d->count; i++) {
        const struct site_declaration *declared = &d->sites[i];
        const struct registry_site *site = registry_site_by_origin(before, declared->origin);
        if (declared->released)
            log_event(LOG_LEVEL_WARNING, "site-no-longer-configured",
                      "%s was removed from the configuration; the site stays, and the API can "
                      "change it now; its robots_file is no longer served: set the rules with "
                      "`sitemapd site update --robots FILE`",
                      declared->origin);
        if (declared->managed && site != NULL && (site->robots != NULL || site->robots_off))
            log_event(LOG_LEVEL_WARNING, "robots-put-aside",
                      "%s: the configuration overrides its robots.txt; the one set by API or "
                      "command line is dropped",
                      site->origin);
    }
}

/* An index that the configuration no longer lists is still served: a change of the file must not
 * delete entries, and nobody could confirm that to the shrink guard here. An index also keeps the
 * page pattern that it was created with, since crawlers know the URLs of its pages. */
static void report_kept(const struct registry *after, const struct site_declaration *d)
{
    const struct registry_site *site = registry_site_by_origin(after, d->origin);
    for (size_t i = 0; d->managed && site != NULL && i < site->index_count; i++) {
        const struct registry_index *index = &site->indexes[i];
        if (!is_among(d->index_paths, index->path))
            log_event(LOG_LEVEL_WARNING, "index-no-longer-configured",
                      "%s%s was removed from the site's section of the configuration; the index "
                      "and its entries stay",
                      site->origin, index->path);
        else if (d->page_pattern != NULL && strcmp(index->page_pattern, d->page_pattern) != 0)
            log_event(LOG_LEVEL_WARNING, "page-pattern-kept",
                      "%s%s: page_pattern cannot be changed after the index is created: %s stays, "
                      "%s is ignored",
                      site->origin, index->path, index->page_pattern, d->page_pattern);
    }
}

/* ---- applying -------------------------------------------------------------------------- */

static bool report_refused(const struct declared *d, const struct change_result *result)
{
    bool is_rejected = result->status == CATALOGUE_REFUSED ||
                       result->status == CATALOGUE_CONFLICT || result->status == CATALOGUE_FULL;
    const char *path = is_rejected && result->refused_index > 0
                           ? d->sites[result->refused_at].index_paths[result->refused_index - 1]
                           : NULL;
    struct str name = STR_INIT;
    if (is_rejected && result->refused_token > 0)
        return report_failure(d->tokens[result->refused_token - 1].grant.name, "token", result);
    str_append_text(&name, is_rejected && d->count > 0 ? d->sites[result->refused_at].origin
                                                       : "catalogue");
    str_append_text(&name, path != NULL ? path : "");
    report_failure(str_text(&name), path != NULL ? "index" : "site", result);
    str_done(&name);
    return false;
}

static bool apply(struct catalogue *c, const struct registry *before, const struct declared *d)
{
    struct change change = {
        .kind = CHANGE_CONFIGURE,
        .configure = {.sites = d->sites,
                      .site_count = d->count,
                      .tokens = d->tokens,
                      .token_count = d->token_count},
    };
    struct change_result result;
    if (registry_is_declared(before, d->sites, d->count, d->tokens, d->token_count))
        return true;
    if (catalogue_apply(c, &change, &result) != CATALOGUE_OK)
        return report_refused(d, &result);
    report_ownership(before, d);
    return true;
}

bool bootstrap_sites(struct catalogue *c, const struct config *config, bool starts)
{
    struct declared d = {0};
    struct registry *before = read_registry(c), *after = NULL;
    bool good = before != NULL && make_room(config, before, &d);
    if (good) {
        release(c, config, before, &d);
        declare_sites(config, starts, &d);
    }
    good = good && declare_tokens(config, &d) && apply(c, before, &d) &&
           (after = read_registry(c)) != NULL;
    for (size_t i = 0; good && i < d.count; i++)
        report_kept(after, &d.sites[i]);
    registry_unref(before);
    registry_unref(after);
    done(&d);
    return good;
}

/* ---- the token ------------------------------------------------------------------------- */

/* The complete file is on disk before the catalogue knows the token. After a crash between the two,
 * the token in the file is unknown, and the next start writes another. */
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
        .via = "cli", /* the person who started the server, not a call of its API */
        .token_add = {.grant = {.name = FIRST_TOKEN_NAME, .role = GRANT_ADMIN}, .sha256 = sha256},
    };
    struct change_result result;
    enum catalogue_status status = done ? catalogue_apply(c, &change, &result) : CATALOGUE_OK;
    if (status != CATALOGUE_OK && status != CATALOGUE_CONFLICT)
        done = report_failure(FIRST_TOKEN_NAME, "token", &result);
    if (done)
        log_event(LOG_LEVEL_INFO, "token-made", "the API token is in %s", str_text(&path));
    str_done(&path);
    return done;
}

/* ---- settings for the publisher ------------------------------------------------------- */

struct policies {
    struct publish_policies public;
    struct config *config;         /* owns most of the texts; a reference */
    struct publish_alias *aliases; /* of all sites, in one array */
    char **robots;                 /* of each site; owned */
};

static char *read_robots(const char *path)
{
    const char *why;
    char *text = config_robots_read(path, &why);
    if (text == NULL)
        log_failure(path, "robots_file: %s", why);
    return text;
}

static void policies_free(struct publish_policies *public)
{
    struct policies *p = (struct policies *)public;
    for (size_t i = 0; p->robots != NULL && i < p->config->site_count; i++)
        free(p->robots[i]);
    free(p->robots);
    free(p->aliases);
    free(p->public.sites);
    config_unref(p->config);
    free(p);
}

struct publish_policies *configured_policies(struct config *config)
{
    size_t alias_count = 0;
    for (size_t i = 0; i < config->site_count; i++)
        alias_count += config->sites[i].alias_count;
    struct policies *p = calloc(1, sizeof *p);
    if (p == NULL) {
        log_failure("configuration", "out of memory");
        return NULL;
    }
    p->config = config_ref(config);
    p->public = (struct publish_policies){
        .strict_host = config->strict_host,
        .page_style = config->page_style,
        .count = config->site_count,
        .sites = calloc(config->site_count + 1, sizeof *p->public.sites),
        .free = policies_free,
    };
    p->robots = calloc(config->site_count + 1, sizeof *p->robots);
    p->aliases = calloc(alias_count + 1, sizeof *p->aliases);
    if (p->public.sites == NULL || p->robots == NULL || p->aliases == NULL) {
        log_failure("configuration", "out of memory");
        goto failed;
    }

    struct publish_alias *alias = p->aliases;
    for (size_t i = 0; i < config->site_count; i++) {
        const struct config_site *from = &config->sites[i];
        if (from->robots_file != NULL && (p->robots[i] = read_robots(from->robots_file)) == NULL)
            goto failed;
        p->public.sites[i] = (struct publish_site){
            .origin = from->origin,
            .robots_off = !from->robots,
            .robots_prefix = p->robots[i],
            .indexnow_key = from->indexnow_key,
            .alias_count = from->alias_count,
            .aliases = alias,
        };
        for (size_t k = 0; k < from->alias_count; k++)
            *alias++ = (struct publish_alias){from->aliases[k].from, from->aliases[k].to};
    }
    return &p->public;

failed:
    policies_free(&p->public);
    return NULL;
}

/* ---- crawlers ----------------------------------------------------------------------------- */

struct crawler_names *configured_crawlers(const struct config *config)
{
    struct crawler_rule *rules = calloc(config->crawler_count + 1, sizeof *rules);
    struct crawler_names *names = NULL;
    const char *which = NULL;
    char why[512] = "out of memory", what[PATH_MAX + 16] = "crawlers";

    for (size_t i = 0; rules != NULL && i < config->crawler_count; i++) {
        const struct config_crawler *from = &config->crawler_rules[i];
        rules[i] = (struct crawler_rule){
            .name = from->named.name,
            .match_count = from->match_count,
            .match = from->match,
            .range_file_count = from->range_file_count,
            .range_files = from->range_files,
        };
    }
    if (rules != NULL)
        names = crawler_names_new(rules, config->crawler_count, &which, why, sizeof why);
    for (size_t i = 0; which != NULL && config->file != NULL && i < config->crawler_count; i++)
        if (strcmp(config->crawler_rules[i].named.name, which) == 0)
            snprintf(what, sizeof what, "%s:%u", config->file, config->crawler_rules[i].named.line);
    if (names == NULL)
        log_failure(what, "[crawler \"%s\"]: %s", which != NULL ? which : "", why);
    free(rules);
    return names;
}
