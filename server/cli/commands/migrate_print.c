/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Prints the result of `migrate`: configuration or commands, and the rules of web servers. */
#include "server/cli/commands/migrate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "server/base/text.h"

/* ---- the plan ---------------------------------------------------------------------------- */

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

static size_t root_of(const struct old_site *s, size_t number)
{
    while (s->indexes[number].under != number)
        number = s->indexes[number].under;
    return number;
}

/* Whether no other index lists it. */
static bool is_root(const struct old_site *s, size_t number)
{
    return s->indexes[number].index && s->indexes[number].under == number;
}

static bool has_query(const struct url *url)
{
    return url->len > url->origin_len + url->path_len;
}

/* The addresses that the old server answers: those of sitemaps, and those in robots.txt. address_at
 * returns NULL if address `i` is on another host. */
static size_t address_count(const struct old_site *s)
{
    return s->member_count + s->index_count;
}

static const char *address_at(const struct old_site *s, size_t i, struct url *room)
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
static bool is_at(const char *address, const char *path)
{
    size_t len = strlen(path);

    return strncmp(address, path, len) == 0 && (address[len] == '\0' || address[len] == '?');
}

static bool planned(const struct old_site *s, size_t before, const char *path)
{
    for (size_t i = 0; i < before; i++)
        if (is_root(s, i) && strcmp(s->indexes[i].path, path) == 0)
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
        for (size_t i = 0; !taken && i < address_count(s); i++) {
            struct url url;
            const char *address = address_at(s, i, &url);

            taken = address != NULL && is_at(address, path);
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
        if (root_of(s, s->members[i].from) == root && !scope_holds(path, &url))
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
    if (migrate_is_own(s, url) && !has_query(url) && len < (int)sizeof old->path) {
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
    for (size_t i = 0; i < address_count(s); i++) {
        struct url url;
        const char *address = address_at(s, i, &url);

        if (address != NULL &&
            (scope_page_number(path, pattern, UINT32_MAX, address, strlen(address)) > 1 ||
             (strcmp(pattern, PAGE_PATTERN_DEFAULT) == 0 && is_numbered(address, path))))
            return false;
    }
    return true;
}

/* The number of the new indexes, and the path of one. */
static size_t path_count(const struct old_site *s)
{
    return s->index_count + 1;
}

static const char *path_at(const struct old_site *s, size_t i)
{
    if (i == s->index_count)
        return s->home[0] != '\0' ? s->home : NULL;
    return is_root(s, i) ? s->indexes[i].path : NULL;
}

static bool all_fit(const struct old_site *s, const char *pattern)
{
    for (size_t i = 0; i < path_count(s); i++) {
        const char *path = path_at(s, i);

        if (path == NULL)
            continue;
        if (!pattern_fits(s, path, pattern))
            return false;
        for (size_t k = 0; k < i; k++)
            if (path_at(s, k) != NULL &&
                scope_pages_meet(path_at(s, k), pattern, path, pattern, UINT32_MAX))
                return false;
    }
    return true;
}

/* The index that lists a urlset; NULL: none. */
static const char *index_of(const struct old_site *s, const struct url *urlset)
{
    const char *found = NULL;

    for (size_t i = 0; i < path_count(s); i++) {
        const char *path = path_at(s, i);

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
        if (is_root(s, i))
            plan_index(s, i);
    for (size_t i = 0; s->home[0] == '\0' && i < s->index_count; i++)
        if (s->indexes[i].urlset && index_of(s, &s->indexes[i].url) == NULL) {
            char path[sizeof s->home];

            choose_free(s, s->index_count, path);
            strcpy(s->home, path);
        }
    while (chosen + 1 < sizeof patterns / sizeof *patterns && !all_fit(s, patterns[chosen]))
        chosen++;
    s->pattern = chosen > 0 ? patterns[chosen] : NULL;
    for (size_t i = 0; i < s->member_count; i++) {
        struct url url;
        const char *address = address_at(s, i, &url);

        for (size_t k = 0; address != NULL && k < path_count(s); k++)
            if (path_at(s, k) != NULL && strcmp(address, path_at(s, k)) == 0)
                s->indexes[s->members[i].from].bad_members = true; /* it lists itself */
    }
}

/* ---- words ------------------------------------------------------------------------------- */

/* A comment of one line, whatever characters others wrote. */
static void append_note(const struct old_site *s, struct str *out, const char *text, size_t len)
{
    str_append_text(out, s->commands ? "# " : "; ");
    for (size_t i = 0; i < len;) {
        size_t step = utf8_char_len(text + i, len - i);

        if (step == 0 || (utf8_is_control(text + i, step) && text[i] != '\t'))
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

/* The whole host, so that no two sites have one name. A name of a section has 40 bytes here: more
 * would not fit between the brackets. */
#define NAME_ROOM 40u

static void write_name(const struct old_site *s, char out[NAME_ROOM])
{
    char host[HOST_MAX_CHARS + 7];
    int len = s->robots.origin_len - s->robots.host_at;

    snprintf(host, sizeof host, "%.*s", len, s->robots.text + s->robots.host_at);
    for (char *c = host; *c != '\0'; c++)
        if (!ascii_is_alnum(*c) && *c != '.' && *c != '-')
            *c = '_'; /* before a port; an address of IPv6 */
    if (len <= 32)
        snprintf(out, NAME_ROOM, "%s", host);
    else
        snprintf(out, NAME_ROOM, "%.23s-%08x", host, (unsigned)XXH32(host, strlen(host), 0));
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
    add_note(s, out, "once the name points to this server, the address of the old one:");
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
    add_note(
        s, out,
        "all its sitemaps are on %.*s; if that is a CMS with the pages of this site, replace "
        "upstream and connect by these lines, and pass their paths on as well: they are served "
        "here, with this host inside",
        other.origin_len, other.text);
    str_append_format(out, ";upstream = %.*s%s\n;map = %.*s %.*s\n%s", other.origin_len, other.text,
                      own->text + own->origin_len, other.origin_len, other.text,
                      s->robots.origin_len, s->robots.text, s->serves ? "" : ";serve = yes\n");
}

static void append_source(const struct old_site *s, size_t number, size_t nth, struct str *out)
{
    const struct old_index *old = &s->indexes[number];
    char name[NAME_ROOM], suffix[24] = "";

    write_name(s, name);
    if (nth > 1)
        snprintf(suffix, sizeof suffix, "-%zu", nth);
    str_append_format(out, "[source \"%s%s\"]\nupstream = %s\nindex = %.*s%s\n", name, suffix,
                      old->url.text, s->robots.origin_len, s->robots.text,
                      s->indexes[root_of(s, number)].path);
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
    char name[NAME_ROOM], suffix[24] = "";

    write_name(s, name);
    if (nth > 1)
        snprintf(suffix, sizeof suffix, "-%zu", nth);
    str_append_format(out, "[source \"%s%s\"]\nupstream = %s\nindex = %.*s%s\n", name, suffix,
                      old->url.text, s->robots.origin_len, s->robots.text, index_of(s, &old->url));
    append_serve(s, out);
    append_connect(s, &old->url, out);
}

/* Whether its old address needs an alias. */
static bool is_aliased(const struct old_site *s, const struct old_index *old)
{
    if (!migrate_is_own(s, &old->url) || has_query(&old->url) || old->kept)
        return false;
    for (const char *c = old->url.text + old->url.origin_len; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~')
            return false;
    return old->url.path_len > 1;
}

static void append_aliases(const struct old_site *s, struct str *out)
{
    for (size_t i = 0; i < s->index_count; i++)
        if (is_root(s, i) && is_aliased(s, &s->indexes[i]))
            str_append_format(out, "alias = %s -> %s\n",
                              s->indexes[i].url.text + s->indexes[i].url.origin_len,
                              s->indexes[i].path);
}

static void append_robots(const struct old_site *s, struct str *out)
{
    char name[NAME_ROOM], connect[INET6_ADDRSTRLEN + HOST_MAX_CHARS + 16];

    if (s->rules == 0)
        return;
    write_name(s, name);
    add_note(s, out, "robots.txt has %" PRIu64 " %s that the switch would lose: %s", s->rules,
             s->rules == 1 ? "rule" : "rules",
             s->robots_fault != NULL ? "correct it and serve it here"
             : s->commands           ? "it is served here"
                                     : "save it under this name");
    if (s->robots_fault != NULL)
        add_note(s, out, "%s", s->robots_fault);
    if (!s->commands) {
        str_append_format(out, ";robots_file = /etc/sitemapd/%s-robots.txt\n", name);
        return;
    }
    str_append_text(out, s->robots_fault != NULL ? "# curl -sf " : "curl -sf ");
    if (s->reach->connect != NULL && url_same_origin(&s->robots, &s->reach->url)) {
        snprintf(connect, sizeof connect, "::%.300s", s->reach->connect);
        append_word(out, "--connect-to ", connect);
        str_append_char(out, ' ');
    }
    append_quoted(out, s->robots.text, s->robots.len);
    str_append_format(out, " -o '%s-robots.txt'\n%ssitemapd site update ", name,
                      s->robots_fault != NULL ? "# " : "");
    append_quoted(out, s->robots.text, s->robots.origin_len);
    str_append_format(out, " --robots '%s-robots.txt'\n", name);
}

static void append_site(const struct old_site *s, struct str *out)
{
    bool check = false;
    char name[NAME_ROOM];

    write_name(s, name);
    append_notes(s, out, &s->notes);
    str_append_format(out, "[site \"%s\"]\norigin = %.*s\n", name, s->robots.origin_len,
                      s->robots.text);
    for (size_t i = 0; i < path_count(s); i++)
        if (path_at(s, i) != NULL)
            str_append_format(out, "index = %s\n", path_at(s, i));
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
    for (size_t i = 0; i < path_count(s); i++)
        if (path_at(s, i) != NULL) {
            append_index_word(s, out, "sitemapd index add ", path_at(s, i));
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

    append_index_word(s, out, "sitemapd import --index ", s->indexes[root_of(s, number)].path);
    str_append_text(out, old->drop_dates ? " --drop-lastmod" : "");
    str_append_text(out, old->bad_members ? " --skip-invalid" : "");
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
    append_index_word(s, out, "sitemapd add --index ", index_of(s, &old->url));
    append_word(out, " ", old->url.text);
    str_append_text(out, "\n\n");
}

/* ---- a web server's rules ------------------------------------------------------------------ */

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

/* True if the old server has different sitemaps at the path for different queries, or a web server
 * that decodes paths would not recognise it. */
static bool needs_query(const struct old_site *s, const char *path)
{
    char gz[INDEX_PATH_MAX_CHARS + 4];

    snprintf(gz, sizeof gz, "%s.gz", path);
    if (strchr(path, '%') != NULL)
        return true;
    for (size_t i = 0; i < address_count(s); i++) {
        struct url url;
        const char *address = address_at(s, i, &url);

        if (address != NULL && strchr(address, '?') != NULL &&
            (is_at(address, path) || is_at(address, gz)))
            return true;
    }
    return false;
}

static size_t collect_rules(const struct old_site *s, struct rule *rules)
{
    const char *pattern = s->pattern != NULL ? s->pattern : PAGE_PATTERN_DEFAULT;
    size_t count = 0;

    rules[count++] = (struct rule){0};
    str_append_text(&rules[0].regex, "/robots\\.txt");
    for (size_t i = 0; i < path_count(s); i++)
        if (path_at(s, i) != NULL) {
            rules[count] = (struct rule){.exact = needs_query(s, path_at(s, i))};
            append_pages_regex(&rules[count++].regex, path_at(s, i), pattern);
        }
    for (size_t i = 0; i < s->index_count; i++) {
        const struct old_index *old = &s->indexes[i];
        const char *address = old->url.text + old->url.origin_len;

        if (!is_root(s, i) || old->kept || !migrate_is_own(s, &old->url))
            continue;
        rules[count] = (struct rule){.exact = true};
        rules[count].target = is_aliased(s, old) && !s->commands ? NULL : old->path;
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

    for (size_t i = 0; i < address_count(s); i++) {
        struct rule rule = {.exact = false};
        struct url url;
        const char *address = address_at(s, i, &url);
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

static void append_haproxy(const struct old_site *s, const struct rule *rules, size_t count,
                           struct str *out)
{
    str_append_text(out, "# HAProxy: in the frontend, before other use_backend lines; the backend "
                         "sitemapd has \"server sitemapd 127.0.0.1:8080\"\n"
                         "acl sitemapd path -m reg '");
    append_alternatives(out, rules, count, false);
    str_append_text(out, "'\n");
    if (has_exact(rules, count)) {
        str_append_text(out, "# Paths that differ only in the query.\n"
                             "acl sitemapd pathq -m reg '");
        append_alternatives(out, rules, count, true);
        str_append_text(out, "'\n");
    }
    str_append_format(out, "acl sitemapd_host hdr(host),host_only -i %.*s\n", s->robots.host_len,
                      s->robots.text + s->robots.host_at);
    for (size_t i = 0; i < count; i++)
        if (rules[i].target != NULL) {
            str_append_text(out, "http-request redirect code 301 location ");
            append_target(s, out, &rules[i]);
            str_append_format(out, " if sitemapd_host { pathq -m reg '^%s$' }\n",
                              str_text(&rules[i].regex));
        }
    str_append_text(out, "use_backend sitemapd if sitemapd_host sitemapd\n");
}

static const struct {
    const char *name;
    void (*append)(const struct old_site *s, const struct rule *rules, size_t count,
                   struct str *out);
} proxies[] = {{"nginx", append_nginx}, {"caddy", append_caddy}, {"haproxy", append_haproxy}};

/* `name` NULL: all of them. */
static void append_proxies(const struct old_site *s, const char *name, struct str *out)
{
    struct rule *rules = calloc(RULES_MAX, sizeof *rules);
    size_t count = rules != NULL ? collect_rules(s, rules) : 0;

    if (rules != NULL && s->serves && !collect_served(s, rules, &count))
        str_append_text(out,
                        "# Not all sitemaps are here: their addresses are of too many kinds. Pass "
                        "on the folders that hold them.\n");
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

        if (!is_root(s, i) || old->kept)
            continue;
        add_note(s, out, "%s cannot be the address of an index here: ours is %.*s%s, and %s",
                 old->url.text, s->robots.origin_len, s->robots.text, old->path,
                 !migrate_is_own(s, &old->url)        ? "crawlers find it in robots.txt"
                 : is_aliased(s, old) && !s->commands ? "the alias redirects the old address"
                                                      : "the rules below redirect the old address");
        add_note(s, out,
                 "- remove the Sitemap line of the old address from the robots.txt that you keep");
    }
    for (size_t i = 0; i < path_count(s); i++) {
        const char *path = path_at(s, i);

        if (!s->serves && path != NULL && needs_query(s, path) && strchr(path, '%') == NULL)
            add_note(
                s, out,
                "the old server has sitemaps at %s?...: pass on the address without a query alone",
                path);
    }
    if (s->pattern != NULL)
        add_note(
            s, out,
            "the old server has sitemaps with numbered names: page_pattern keeps the pages of the "
            "index apart from them");
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
             "The switch. These rules of a web server pass on only the paths of the index%s and "
             "robots.txt; --proxy prints one of them.",
             s->serves ? ", its sitemaps" : "");
    append_switch_notes(s, &out);
    append_proxies(s, NULL, &rules);
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

    append_proxies(s, proxy, &out);
    return print_out(&out);
}
