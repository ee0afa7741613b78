/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The rules of web servers that `migrate` prints: they pass on to sitemapd the paths of the
 * indexes, robots.txt and the sitemaps that it serves. */
#include "server/cli/commands/migrate.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/text.h"

/* Appends a regular expression (PCRE and RE2) that matches exactly the text. Unusual characters are
 * written by number, so that they have no meaning in the web server's file. */
static void append_regex(struct str *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (ascii_is_alnum(text[i]) || strchr("/_-~%=,", text[i]) != NULL)
            str_append_char(out, text[i]);
        else
            str_append_format(out, text[i] == '.' ? "\\." : "\\x%02X", (unsigned char)text[i]);
}

/* The pages of an index, of whatever number, and their gzip forms. */
static void append_pages_regex(struct str *out, const char *path, const char *pattern)
{
    const char *number = strstr(pattern, "{n}");
    const char *before = pattern + strlen("{stem}"), *after = number + strlen("{n}");

    append_regex(out, path, strlen(path) - strlen(".xml"));
    str_append_char(out, '(');
    append_regex(out, before, (size_t)(number - before));
    str_append_text(out, "([2-9]|[1-9][0-9]+)");
    append_regex(out, after, strlen(after) - strlen("{suffix}"));
    str_append_text(out, ")?\\.xml(\\.gz)?");
}

/* The addresses of sitemaps that differ by their numbers: "/posts-1.xml" and those that follow. */
static void append_numbered_regex(struct str *out, const char *address)
{
    for (size_t len; *address != '\0'; address += len) {
        len = strspn(address, "0123456789");
        if (len > 0) {
            str_append_text(out, "[0-9]+");
            continue;
        }
        len = strcspn(address, "0123456789");
        append_regex(out, address, len);
    }
}

/* One rule: the requested path, and its target. */
struct rule {
    struct str regex;
    bool exact;         /* compared with path and query as they are sent; else with the path */
    const char *target; /* a path that it redirects to; NULL: to sitemapd */
};

static size_t collect_rules(const struct old_site *s, struct rule *rules)
{
    const char *pattern = s->pattern != NULL ? s->pattern : PAGE_PATTERN_DEFAULT;
    size_t count = 0;

    rules[count++] = (struct rule){0};
    str_append_text(&rules[0].regex, "/robots\\.txt");
    for (size_t i = 0; i < migrate_path_count(s); i++)
        if (migrate_path_at(s, i) != NULL) {
            rules[count] = (struct rule){.exact = migrate_needs_query(s, migrate_path_at(s, i))};
            append_pages_regex(&rules[count++].regex, migrate_path_at(s, i), pattern);
        }
    for (size_t i = 0; i < s->index_count; i++) {
        const struct old_index *old = &s->indexes[i];
        const char *address = old->url.text + old->url.origin_len;

        if (!migrate_is_root(s, i) || old->kept || !migrate_is_own(s, &old->url))
            continue;
        rules[count] = (struct rule){.exact = true};
        rules[count].target = migrate_is_aliased(s, old) && !s->commands ? NULL : old->path;
        append_regex(&rules[count++].regex, address, strlen(address));
    }
    return count;
}

#define RULES_SERVED 200u /* kinds of addresses of sitemaps; more are named in a comment */
#define RULES_MAX    (2 * MIGRATE_INDEXES + 2 + RULES_SERVED)

/* Whether the URL is that of an old index: nothing is served there, unless the new index has this
 * address. */
static bool is_index(const struct old_site *s, const struct url *url)
{
    for (size_t i = 0; i < s->index_count; i++)
        if (s->indexes[i].index && strcmp(s->indexes[i].url.text, url->text) == 0)
            return true;
    return false;
}

/* Where the sitemaps are served here: a rule for each kind of address. False: there are more. */
static bool collect_served(const struct old_site *s, struct rule *rules, size_t *count)
{
    const size_t first = *count;

    for (size_t i = 0; i < migrate_address_count(s); i++) {
        struct rule rule = {.exact = false};
        struct url url;
        const char *address = migrate_address_at(s, i, &url);
        bool known = address == NULL || is_index(s, &url);

        if (!known)
            append_numbered_regex(&rule.regex, address);
        rule.exact = !known && (strchr(address, '?') != NULL || strchr(address, '%') != NULL);
        for (size_t k = first; !known && k < *count; k++)
            known = rules[k].exact == rule.exact &&
                    strcmp(str_text(&rules[k].regex), str_text(&rule.regex)) == 0;
        if (known) {
            str_done(&rule.regex);
        } else if (*count - first == RULES_SERVED) {
            str_done(&rule.regex);
            return false;
        } else {
            rules[(*count)++] = rule;
        }
    }
    return true;
}

static void append_alternatives(struct str *out, const struct rule *rules, size_t count, bool exact)
{
    bool first = true;

    str_append_text(out, "^(");
    for (size_t i = 0; i < count; i++)
        if (rules[i].target == NULL && rules[i].exact == exact) {
            str_append_text(out, first ? "" : "|");
            str_append_text(out, str_text(&rules[i].regex));
            first = false;
        }
    str_append_text(out, ")$");
}

static bool has_exact(const struct rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rules[i].target == NULL && rules[i].exact)
            return true;
    return false;
}

static void append_target(const struct old_site *s, struct str *out, const struct rule *rule)
{
    str_append(out, s->robots.text, s->robots.origin_len);
    str_append_text(out, rule->target);
}

static void append_nginx(const struct old_site *s, const struct rule *rules, size_t count,
                         struct str *out)
{
    /* With a port the site is found by the field as it came. */
    const char *host =
        s->robots.origin_len - s->robots.host_at == s->robots.host_len ? "$host" : "$http_host";

    str_append_format(out,
                      "# nginx: in the server block of %.*s, before other locations with ~\n"
                      "location ~ \"",
                      s->robots.origin_len - s->robots.host_at, s->robots.text + s->robots.host_at);
    append_alternatives(out, rules, count, false);
    str_append_format(out,
                      "\" {\n    proxy_pass http://127.0.0.1:8080;\n"
                      "    proxy_set_header Host %s;\n    gzip off;\n}\n",
                      host);
    for (size_t i = 0; i < count; i++)
        if (rules[i].target != NULL) {
            str_append_format(out, "if ($request_uri ~ \"^%s$\") {\n    return 301 ",
                              str_text(&rules[i].regex));
            append_target(s, out, &rules[i]);
            str_append_text(out, ";\n}\n");
        }
    if (!has_exact(rules, count))
        return;
    str_append_text(out, "# Paths that differ only in the query.\n"
                         "if ($request_uri ~ \"");
    append_alternatives(out, rules, count, true);
    str_append_format(out,
                      "\") {\n    rewrite ^ /.sitemapd$uri last;\n}\n"
                      "location ^~ /.sitemapd/ {\n    internal;\n"
                      "    proxy_pass http://127.0.0.1:8080/;\n"
                      "    proxy_set_header Host %s;\n    gzip off;\n}\n",
                      host);
}

static void append_caddy(const struct old_site *s, const struct rule *rules, size_t count,
                         struct str *out)
{
    static const char handle[] = " {\n\treverse_proxy 127.0.0.1:8080 {\n\t\ttransport http {\n"
                                 "\t\t\tcompression off\n\t\t}\n\t}\n}\n";

    str_append_format(out, "# Caddy: in the block of %.*s\n@sitemapd path_regexp ",
                      s->robots.origin_len - s->robots.host_at, s->robots.text + s->robots.host_at);
    append_alternatives(out, rules, count, false);
    str_append_format(out, "\nhandle @sitemapd%s", handle);
    for (size_t i = 0; i < count; i++)
        if (rules[i].target != NULL) {
            str_append_format(out,
                              "@old%zu expression `{http.request.uri}.matches(r\"^%s$\")`\n"
                              "redir @old%zu ",
                              i, str_text(&rules[i].regex), i);
            append_target(s, out, &rules[i]);
            str_append_text(out, " 301\n");
        }
    if (!has_exact(rules, count))
        return;
    str_append_text(out, "# Paths that differ only in the query.\n"
                         "@exact expression `{http.request.uri}.matches(r\"");
    append_alternatives(out, rules, count, true);
    str_append_format(out, "\")`\nhandle @exact%s", handle);
}

/* Each site has ACLs of its own: HAProxy combines those of one name by OR, and a frontend may have
 * several sites. */
static void append_haproxy(const struct old_site *s, const struct rule *rules, size_t count,
                           struct str *out)
{
    char name[MIGRATE_NAME_SIZE];

    migrate_name(s, name);
    str_append_format(out,
                      "# HAProxy: in the frontend, before other use_backend lines; the backend "
                      "sitemapd has \"server sitemapd 127.0.0.1:8080\"\n"
                      "acl sitemapd_%s path -m reg '",
                      name);
    append_alternatives(out, rules, count, false);
    str_append_text(out, "'\n");
    if (has_exact(rules, count)) {
        str_append_format(out,
                          "# Paths that differ only in the query.\n"
                          "acl sitemapd_%s pathq -m reg '",
                          name);
        append_alternatives(out, rules, count, true);
        str_append_text(out, "'\n");
    }
    str_append_format(out, "acl host_%s hdr(host),host_only -i %.*s\n", name, s->robots.host_len,
                      s->robots.text + s->robots.host_at);
    for (size_t i = 0; i < count; i++)
        if (rules[i].target != NULL) {
            str_append_text(out, "http-request redirect code 301 location ");
            append_target(s, out, &rules[i]);
            str_append_format(out, " if host_%s { pathq -m reg '^%s$' }\n", name,
                              str_text(&rules[i].regex));
        }
    str_append_format(out, "use_backend sitemapd if host_%s sitemapd_%s\n", name, name);
}

/* In the text that a rewrite rule of Apache inserts, these two begin a variable. */
static void append_substituted(struct str *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '%' || text[i] == '$')
            str_append_char(out, '\\');
        str_append_char(out, text[i]);
    }
}

/* The conditions of the next rule: path and query as they are sent, of which %1 is all. */
static void append_sent(struct str *out)
{
    str_append_text(out, "RewriteCond \"%{THE_REQUEST}\" \"^[A-Z]+ ([^ ]+) HTTP\"\n"
                         "RewriteCond \"%1\" \"");
}

static void append_apache(const struct old_site *s, const struct rule *rules, size_t count,
                          struct str *out)
{
    static const char rule[] = "RewriteRule", flags[] = "[P,NE,E=no-gzip:1]";

    str_append_format(out,
                      "# Apache (a2enmod rewrite proxy_http): in the VirtualHost of %.*s, before "
                      "other rewrite rules\nRewriteEngine on\nProxyPreserveHost on\n%s \"",
                      s->robots.origin_len - s->robots.host_at, s->robots.text + s->robots.host_at,
                      rule);
    append_alternatives(out, rules, count, false);
    str_append_format(out, "\" \"http://127.0.0.1:8080$1\" %s\n", flags);
    for (size_t i = 0; i < count; i++)
        if (rules[i].target != NULL) {
            append_sent(out);
            str_append_format(out, "^%s$\"\n%s \"^\" \"", str_text(&rules[i].regex), rule);
            append_substituted(out, s->robots.text, (size_t)s->robots.origin_len);
            append_substituted(out, rules[i].target, strlen(rules[i].target));
            str_append_text(out, "\" [R=301,L,NE,QSD]\n");
        }
    if (!has_exact(rules, count))
        return;
    str_append_text(out, "# Paths that differ only in the query.\n");
    append_sent(out);
    append_alternatives(out, rules, count, true);
    str_append_format(out, "\"\n%s \"^\" \"http://127.0.0.1:8080%%1\" %s\n", rule, flags);
}

static const struct {
    const char *name;
    void (*append)(const struct old_site *s, const struct rule *rules, size_t count,
                   struct str *out);
} proxies[] = {{"nginx", append_nginx},
               {"apache", append_apache},
               {"caddy", append_caddy},
               {"haproxy", append_haproxy}};

bool migrate_knows_proxy(const char *name)
{
    for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++)
        if (strcmp(name, proxies[i].name) == 0)
            return true;
    return false;
}

/* `name` NULL: all of them. */
void migrate_append_rules(const struct old_site *s, const char *name, struct str *out)
{
    struct rule *rules = calloc(RULES_MAX, sizeof *rules);
    size_t count = rules != NULL ? collect_rules(s, rules) : 0;

    if (rules != NULL && s->serves && !collect_served(s, rules, &count))
        str_append_text(out, "# Not all sitemaps are covered: their paths are too different. "
                             "Forward the folders that contain them.\n");
    out->failed = out->failed || rules == NULL;
    for (size_t i = 0; rules != NULL && i < sizeof proxies / sizeof *proxies; i++)
        if (name == NULL || strcmp(name, proxies[i].name) == 0)
            proxies[i].append(s, rules, count, out);
    for (size_t i = 0; i < count; i++) {
        out->failed = out->failed || rules[i].regex.failed;
        str_done(&rules[i].regex);
    }
    free(rules);
}
