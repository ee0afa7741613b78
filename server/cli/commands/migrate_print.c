/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Prints the result of `migrate`: configuration or commands. */
#include "server/cli/commands/migrate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "server/base/text.h"

/* ---- words ------------------------------------------------------------------------------- */

/* A comment of one line, whatever characters others wrote. */
static void append_note(const struct old_site *s, struct str *out, const char *text, size_t len)
{
    str_append_text(out, s->commands ? "# " : "; ");
    for (size_t i = 0; i < len;) {
        size_t step = utf8_char_len(text + i, len - i);

        if (step == 0 || (utf8_is_unprintable(text + i, step) && text[i] != '\t'))
            str_append_char(out, '?');
        else
            str_append(out, text + i, step);
        i += step == 0 ? 1 : step;
    }
    str_append_char(out, '\n');
}

static void append_notes(const struct old_site *s, struct str *out, const struct str *notes)
{
    for (const char *at = str_text(notes); *at != '\0';) {
        size_t len = strcspn(at, "\n");

        append_note(s, out, at, len);
        at += len + (at[len] == '\n');
    }
}

static void add_note(const struct old_site *s, struct str *out, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add_note(const struct old_site *s, struct str *out, const char *format, ...)
{
    char text[3 * LOC_MAX_CHARS];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    append_note(s, out, text, strlen(text));
}

/* Appends one quoted word for a shell: a URL may contain an apostrophe, and the origin chooses its
 * redirects. */
static void append_quoted(struct str *out, const char *text, size_t len)
{
    str_append_char(out, '\'');
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\'')
            str_append_text(out, "'\\''");
        else
            str_append_char(out, text[i]);
    str_append_char(out, '\'');
}

static void append_word(struct str *out, const char *before, const char *text)
{
    str_append_text(out, before);
    append_quoted(out, text, strlen(text));
}

static void append_index_word(const struct old_site *s, struct str *out, const char *before,
                              const char *path)
{
    char url[LOC_MAX_CHARS + INDEX_PATH_MAX_CHARS];

    snprintf(url, sizeof url, "%.*s%s", s->robots.origin_len, s->robots.text, path);
    append_word(out, before, url);
}

/* ---- a configuration ---------------------------------------------------------------------- */

static void append_connect(const struct old_site *s, const struct url *url, struct str *out)
{
    bool v6 = strchr(s->address, ':') != NULL;

    /* --connect applies only to the URL that it was given for. */
    if (s->reach->connect != NULL && url_same_origin(url, &s->reach->url)) {
        str_append_format(out, "connect = %s\n\n", s->reach->connect);
        return;
    }
    add_note(s, out,
             "after the host name points to this server, set the address of the old server:");
    str_append_format(out, ";connect = %s%s%s:%u\n\n", v6 ? "[" : "", s->address, v6 ? "]" : "",
                      (unsigned)url->port);
}

static void append_serve(const struct old_site *s, struct str *out)
{
    if (s->serves)
        str_append_text(out, "serve = yes\n");
}

/* The only other origin of all sitemaps of an index. False: none exists. */
static bool find_other_origin(const struct old_site *s, size_t number, struct url *other)
{
    size_t count = 0;

    for (size_t i = 0; i < s->member_count; i++) {
        struct url url;
        const char *loc = s->members[i].loc;

        if (s->members[i].from != number)
            continue;
        if (url_parse(loc, strlen(loc), &url, NULL) != RULE_OK || migrate_is_own(s, &url) ||
            (count > 0 && !url_same_origin(&url, other)))
            return false;
        *other = url;
        count++;
    }
    return count > 0;
}

/* A headless CMS lists the host that it runs on. */
static void append_map(const struct old_site *s, size_t number, struct str *out)
{
    struct url other;
    const struct url *own = &s->indexes[number].url;

    if (!migrate_is_own(s, own) || !find_other_origin(s, number, &other))
        return;
    add_note(s, out,
             "all its sitemaps are on %.*s; if that is a CMS with the pages of this site, replace "
             "upstream and connect by these lines, and forward the paths of the sitemaps, too: "
             "sitemapd then serves them with this host in their URLs",
             other.origin_len, other.text);
    str_append_format(out, ";upstream = %.*s%s\n;map = %.*s %.*s\n%s", other.origin_len, other.text,
                      own->text + own->origin_len, other.origin_len, other.text,
                      s->robots.origin_len, s->robots.text, s->serves ? "" : ";serve = yes\n");
}

static void append_source(const struct old_site *s, size_t number, size_t nth, struct str *out)
{
    const struct old_index *old = &s->indexes[number];
    char name[MIGRATE_NAME_SIZE], suffix[24] = "";

    migrate_name(s, name);
    if (nth > 1)
        snprintf(suffix, sizeof suffix, "-%zu", nth);
    str_append_format(out, "[source \"%s%s\"]\nupstream = %s\nindex = %.*s%s\n", name, suffix,
                      old->url.text, s->robots.origin_len, s->robots.text,
                      s->indexes[migrate_root_of(s, number)].path);
    append_serve(s, out);
    if (old->http_members)
        str_append_format(out, "map = http://%.*s %.*s\n", s->robots.origin_len - s->robots.host_at,
                          s->robots.text + s->robots.host_at, s->robots.origin_len, s->robots.text);
    append_map(s, number, out);
    append_connect(s, &old->url, out);
}

/* A sitemap without an index: its source lists it alone. */
static void append_single(const struct old_site *s, const struct old_index *old, size_t nth,
                          struct str *out)
{
    char name[MIGRATE_NAME_SIZE], suffix[24] = "";

    migrate_name(s, name);
    if (nth > 1)
        snprintf(suffix, sizeof suffix, "-%zu", nth);
    str_append_format(out, "[source \"%s%s\"]\nupstream = %s\nindex = %.*s%s\n", name, suffix,
                      old->url.text, s->robots.origin_len, s->robots.text,
                      migrate_index_of(s, &old->url));
    append_serve(s, out);
    append_connect(s, &old->url, out);
}

static void append_aliases(const struct old_site *s, struct str *out)
{
    for (size_t i = 0; i < s->index_count; i++)
        if (migrate_is_root(s, i) && migrate_is_aliased(s, &s->indexes[i]))
            str_append_format(out, "alias = %s -> %s\n",
                              s->indexes[i].url.text + s->indexes[i].url.origin_len,
                              s->indexes[i].path);
}

static void append_robots(const struct old_site *s, struct str *out)
{
    char name[MIGRATE_NAME_SIZE], connect[INET6_ADDRSTRLEN + HOST_MAX_CHARS + 16];
    bool unread = s->robots_unread[0] != '\0';
    bool unfit = unread || s->robots_fault != NULL;

    if (s->rules == 0 && !unread)
        return;
    migrate_name(s, name);
    if (unread)
        add_note(s, out, "robots.txt: %s; the switch would lose its rules: %s", s->robots_unread,
                 s->commands ? "serve it here" : "save it under this name");
    else
        add_note(s, out, "robots.txt has %" PRIu64 " %s that the switch would lose: %s", s->rules,
                 s->rules == 1 ? "rule" : "rules",
                 unfit         ? "correct it and serve it here"
                 : s->commands ? "it is served here"
                               : "save it under this name");
    if (s->robots_fault != NULL)
        add_note(s, out, "%s", s->robots_fault);
    if (!s->commands) {
        str_append_format(out, ";robots_file = /etc/sitemapd/%s-robots.txt\n", name);
        return;
    }
    str_append_text(out, unfit ? "# curl -sf " : "curl -sf ");
    if (s->reach->connect != NULL && url_same_origin(&s->robots, &s->reach->url)) {
        snprintf(connect, sizeof connect, "::%.300s", s->reach->connect);
        append_word(out, "--connect-to ", connect);
        str_append_char(out, ' ');
    }
    append_quoted(out, s->robots.text, s->robots.len);
    str_append_format(out, " -o '%s-robots.txt'\n%ssitemapd site update ", name, unfit ? "# " : "");
    append_quoted(out, s->robots.text, s->robots.origin_len);
    str_append_format(out, " --robots '%s-robots.txt'\n", name);
}

static void append_site(const struct old_site *s, struct str *out)
{
    bool check = false;
    char name[MIGRATE_NAME_SIZE];

    migrate_name(s, name);
    append_notes(s, out, &s->notes);
    str_append_format(out, "[site \"%s\"]\norigin = %.*s\n", name, s->robots.origin_len,
                      s->robots.text);
    for (size_t i = 0; i < migrate_path_count(s); i++)
        if (migrate_path_at(s, i) != NULL)
            str_append_format(out, "index = %s\n", migrate_path_at(s, i));
    if (s->pattern != NULL)
        str_append_format(out, "page_pattern = %s\n", s->pattern);
    for (size_t i = 0; i < s->host_count; i++)
        str_append_format(out, "cross_host = %s\n", s->hosts[i]);
    append_aliases(s, out);
    for (size_t i = 0; i < s->index_count; i++)
        check = check || (s->indexes[i].urlset && !s->indexes[i].upstream);
    if (check)
        str_append_text(out, "check = yes\n");
    append_robots(s, out);
    str_append_char(out, '\n');
}

/* ---- commands ----------------------------------------------------------------------------- */

static void append_site_commands(const struct old_site *s, struct str *out)
{
    append_notes(s, out, &s->notes);
    str_append_text(out, "sitemapd site add --no-index ");
    append_quoted(out, s->robots.text, s->robots.origin_len);
    for (size_t i = 0; i < s->host_count; i++)
        append_word(out, " --cross-host ", s->hosts[i]);
    str_append_char(out, '\n');
    for (size_t i = 0; i < migrate_path_count(s); i++)
        if (migrate_path_at(s, i) != NULL) {
            append_index_word(s, out, "sitemapd index add ", migrate_path_at(s, i));
            if (s->pattern != NULL)
                append_word(out, " --pattern ", s->pattern);
            str_append_char(out, '\n');
        }
    append_robots(s, out);
    str_append_char(out, '\n');
}

/* Appends commands that remove nested indexes, which are imported with the list but are not
 * sitemaps. */
static void append_nested(const struct old_site *s, size_t number, struct str *out)
{
    for (size_t i = 0; i < s->member_count; i++)
        for (size_t k = 0; s->members[i].from == number && k < s->index_count; k++)
            if (s->indexes[k].under != k &&
                strcmp(s->indexes[k].url.text, s->members[i].loc) == 0) {
                append_word(out, "sitemapd remove ", s->members[i].loc);
                str_append_char(out, '\n');
                break;
            }
}

static void append_import(const struct old_site *s, size_t number, struct str *out)
{
    const struct old_index *old = &s->indexes[number];

    append_index_word(s, out, "sitemapd import --index ",
                      s->indexes[migrate_root_of(s, number)].path);
    str_append_text(out, old->drop_dates ? " --drop-lastmod" : "");
    str_append_text(out, old->bad_members ? " --skip-invalid" : "");
    if (old->shared > 0) /* they leave the other index */
        str_append_format(out, " --max-removed %" PRIu64, old->shared);
    if (s->reach->connect != NULL && url_same_origin(&old->url, &s->reach->url))
        append_word(out, " --connect ", s->reach->connect);
    append_word(out, " ", old->url.text);
    str_append_char(out, '\n');
    append_nested(s, number, out);
    str_append_char(out, '\n');
}

static void append_add(const struct old_site *s, const struct old_index *old, struct str *out)
{
    if (!s->commands) {
        add_note(s, out, "register it once the server runs; check = yes watches it:");
        str_append_text(out, "; ");
    }
    append_index_word(s, out, "sitemapd add --index ", migrate_index_of(s, &old->url));
    append_word(out, " ", old->url.text);
    str_append_text(out, "\n\n");
}

/* ---- printing ------------------------------------------------------------------------------ */

static bool print_out(struct str *out)
{
    bool good = !out->failed;

    if (good)
        fputs(str_text(out), stdout);
    str_done(out);
    return good;
}

/* Appends notes on what the switch must leave alone, and what moves with it. */
static void append_switch_notes(const struct old_site *s, struct str *out)
{
    for (size_t i = 0; i < s->index_count; i++) {
        const struct old_index *old = &s->indexes[i];

        if (!migrate_is_root(s, i) || old->kept)
            continue;
        add_note(s, out, "sitemapd cannot publish an index at %s: it publishes %.*s%s, and %s",
                 old->url.text, s->robots.origin_len, s->robots.text, old->path,
                 !migrate_is_own(s, &old->url) ? "crawlers find it in robots.txt"
                 : migrate_is_aliased(s, old) && !s->commands
                     ? "the alias redirects the old address"
                     : "the rules below redirect the old address");
        add_note(
            s, out,
            "- remove the Sitemap line with the old address from the robots.txt that you keep");
    }
    for (size_t i = 0; i < migrate_path_count(s); i++) {
        const char *path = migrate_path_at(s, i);

        if (!s->serves && path != NULL && migrate_needs_query(s, path) && strchr(path, '%') == NULL)
            add_note(s, out,
                     "the old server has sitemaps at %s?...: forward only requests without a query",
                     path);
    }
    if (s->pattern != NULL)
        add_note(s, out,
                 "the old server has sitemaps with numbered names: page_pattern avoids these names "
                 "for the pages of the index");
}

bool migrate_print(const struct old_site *s)
{
    struct str out = STR_INIT, rules = STR_INIT;
    size_t nth = 0;
    bool good;

    if (s->commands)
        append_site_commands(s, &out);
    else
        append_site(s, &out);
    for (size_t i = 0; i < s->index_count; i++) {
        const struct old_index *old = &s->indexes[i];

        append_notes(s, &out, &old->notes);
        if (old->index && s->commands)
            append_import(s, i, &out);
        else if (old->index)
            append_source(s, i, ++nth, &out);
        else if (old->upstream && !s->commands)
            append_single(s, old, ++nth, &out);
        else if (old->urlset)
            append_add(s, old, &out);
        else if (old->notes.len > 0)
            str_append_char(&out, '\n');
        out.failed = out.failed || old->notes.failed;
    }
    add_note(s, &out,
             "For the switch: these web server rules forward only the paths of the index%s and "
             "robots.txt. --proxy NAME prints only those of one web server.",
             s->serves ? ", its sitemaps" : "");
    append_switch_notes(s, &out);
    migrate_append_rules(s, NULL, &rules);
    append_notes(s, &out, &rules);
    str_append_char(&out, '\n');
    out.failed = out.failed || rules.failed;
    good = print_out(&out);
    str_done(&rules);
    return good;
}

bool migrate_print_proxy(const struct old_site *s, const char *proxy)
{
    struct str out = STR_INIT;

    migrate_append_rules(s, proxy, &out);
    return print_out(&out);
}
