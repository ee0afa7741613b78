/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* `migrate`: reads a site's robots.txt, its indexes and a sample of their sitemaps, and prints a
 * configuration that takes them over (migrate_print.c). The output is always valid: anything that
 * cannot be taken over becomes a comment with the reason. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/base/text.h"
#include "server/cli/commands/commands.h"
#include "server/cli/commands/migrate.h"
#include "server/cli/output.h"
#include "server/input/reader.h"
#include "server/rules/http/negotiate.h"
#include "server/rules/http/query.h"
#include "server/rules/lastmod.h"
#include "server/rules/robots.h"

#define DEFAULT_SAMPLE 5u
#define MAX_SAMPLE     1000u
#define NOW_SECONDS    60
#define SHOWN_REFUSED  3u /* unusable members of an index that are named */

static const char *const usual[] = {"/sitemap_index.xml", "/sitemap.xml", "/wp-sitemap.xml",
                                    "/sitemap-index.xml"};

struct visit {
    struct cli *cli;
    struct reach reach;
    const char *proxy; /* print only the rules of this proxy; NULL: of all */
    unsigned sample;
    size_t named;                      /* indexes that robots.txt names */
    char why_not[512];                 /* why nothing was found, a sentence */
    struct url lasts[MIGRATE_INDEXES]; /* URL of each index after redirects */
    struct old_site site;
};

/* The index that is being read. */
struct look {
    struct visit *visit;
    size_t number;
    uint64_t members, bad, dated, now_dates, foreign, other_scheme;
    size_t first; /* index of its first member */
    int64_t date; /* of the response */
    char first_lastmod[LASTMOD_MAX_CHARS + 1];
    bool dates_differ, no_memory;
    struct str refused; /* notes on members that cannot be listed */
    bool *looked;       /* by member: it was read; owned */
};

static void add_note(struct str *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add_note(struct str *out, const char *format, ...)
{
    char text[3 * LOC_MAX_CHARS];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c != '\0'; c++) /* texts of other servers must be one line */
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    str_append_format(out, "%s\n", text);
}

/* ---- robots.txt ------------------------------------------------------------------------ */

static bool add_index(struct visit *v, const struct url *url, size_t under)
{
    struct old_site *s = &v->site;

    for (size_t i = 0; i < s->index_count; i++)
        if (strcmp(s->indexes[i].url.text, url->text) == 0)
            return false;
    if (s->index_count == MIGRATE_INDEXES) {
        add_note(&s->notes, "%s is skipped: there are more than %u indexes", url->text,
                 MIGRATE_INDEXES);
        return false;
    }
    s->indexes[s->index_count].url = *url;
    s->indexes[s->index_count].under = under == SIZE_MAX ? s->index_count : under;
    s->index_count++;
    return true;
}

/* The twin of "www.example.com" is "example.com", and the reverse. False: the host has none. */
static bool twin_of(const struct url *url, struct url *out)
{
    const char *host = url->text + url->host_at;
    bool www = url->host_len > 4 && memcmp(host, "www.", 4) == 0;
    char text[LOC_MAX_CHARS + 8];

    if (memchr(host, '.', url->host_len) == NULL || *host == '[' ||
        ascii_is_digit(host[url->host_len - 1]))
        return false;
    snprintf(text, sizeof text, "%.*s%s%s", url->host_at, url->text, www ? "" : "www.",
             host + (www ? 4 : 0));
    return url_parse(text, strlen(text), out, NULL) == RULE_OK;
}

static bool same_host_name(const struct url *a, const struct url *b)
{
    return a->host_len == b->host_len &&
           memcmp(a->text + a->host_at, b->text + b->host_at, a->host_len) == 0;
}

/* Many a robots.txt still has the http URLs of a site that has moved to https. */
static void change_scheme(struct visit *v, struct url *url)
{
    const struct url *own = &v->site.robots;
    char text[LOC_MAX_CHARS + 8];

    if (url->https == own->https || !same_host_name(url, own) ||
        own->port != (own->https ? 443 : 80) || url->port != (url->https ? 443 : 80))
        return;
    snprintf(text, sizeof text, "%.*s%s", own->origin_len, own->text, url->text + url->origin_len);
    if (strlen(text) > LOC_MAX_CHARS)
        return;
    add_note(&v->site.notes, "robots.txt names %s; the site answers at %.*s, which is used",
             url->text, own->origin_len, own->text);
    if (url_parse(text, strlen(text), url, NULL) != RULE_OK)
        return;
}

static void read_robots(struct visit *v, char *text, size_t len)
{
    struct old_site *s = &v->site;
    struct robots_line line = {0};
    struct robots_cursor at = {0};
    struct robots_sitemap sitemap;

    robots_repair_comments(text, len);
    s->robots_fault = robots_fault(text, len);
    len = len < ROBOTS_MAX_BYTES ? len : ROBOTS_MAX_BYTES;
    while (robots_next_line(text, len, &line))
        s->rules += line.key_len > 0 && !robots_has_key(&line, "sitemap");
    while (robots_next_sitemap(text, len, &at, &sitemap)) {
        const char *code, *why;
        struct url url;
        bool good = robots_sitemap_url(&sitemap, &url, &code, &why);

        if (!good)
            add_note(&s->notes, "robots.txt, line %" PRIu64 ": \"%.*s\" %s%s", sitemap.line,
                     sitemap.url_len < 500 ? (int)sitemap.url_len : 500, sitemap.url, why,
                     robots_sitemap_guess(&sitemap, &s->robots, &url)
                         ? "; the intended URL is used here"
                         : "");
        if (!good && !robots_sitemap_guess(&sitemap, &s->robots, &url))
            continue;
        change_scheme(v, &url);
        v->named += add_index(v, &url, SIZE_MAX);
    }
}

static void forget(struct visit *v)
{
    struct old_site *s = &v->site;

    for (size_t i = 0; i < s->index_count; i++)
        str_done(&s->indexes[i].notes);
    for (size_t i = 0; i < s->member_count; i++)
        free(s->members[i].loc);
    memset(s->indexes, 0, sizeof s->indexes);
    str_clear(&s->notes);
    s->index_count = s->member_count = s->host_count = v->named = 0;
    s->rules = 0;
    s->robots_fault = NULL;
    s->robots_unread[0] = '\0';
}

/* Requests the robots.txt of an origin, which becomes the site's origin after redirects (http to
 * https). False, with the reason in `why_not`: no response. `*twin`: the origin to continue with if
 * the redirect leads there, else "". */
static bool fetch_robots(struct visit *v, const struct url *robots, struct url *twin)
{
    struct old_site *s = &v->site;
    struct reach_answer a;
    struct url to;
    bool good;

    forget(v);
    twin->len = 0;
    reach_fetch(&v->reach, robots, "Accept-Encoding: identity\r\n", NULL, &a);
    s->robots = a.way.last;
    snprintf(s->address, sizeof s->address, "%s", a.reply.address);
    good = a.status == FETCH_OK;
    if (!good)
        snprintf(v->why_not, sizeof v->why_not, "cannot be fetched: %.300s", a.reply.why);
    if (good && a.way.verdict == HOP_FOREIGN && twin_of(&s->robots, &to)) {
        struct url next;

        if (url_parse(str_text(&a.reply.redirect), strcspn(str_text(&a.reply.redirect), "#"), &next,
                      NULL) == RULE_OK &&
            same_host_name(&next, &to))
            *twin = next;
    }
    if (good && a.reply.status == 200 && a.way.verdict == HOP_END && a.reply.body.len > 0 &&
        !robots_is_page(a.reply.body.data, a.reply.body.len))
        read_robots(v, a.reply.body.data, a.reply.body.len);
    else if (good && a.way.verdict != HOP_END)
        snprintf(s->robots_unread, sizeof s->robots_unread, "%s", hop_sentence(a.way.verdict));
    else if (good && a.reply.status != 200 && a.reply.status != 404 && a.reply.status != 410)
        snprintf(s->robots_unread, sizeof s->robots_unread, "answers %u", a.reply.status);
    reach_answer_done(&a);
    return good;
}

/* True if robots.txt names only sitemaps of the twin host. */
static bool names_twin_alone(const struct old_site *s, const struct url *twin)
{
    size_t theirs = 0;

    for (size_t i = 0; i < s->index_count; i++) {
        if (migrate_is_own(s, &s->indexes[i].url))
            return false;
        theirs += same_host_name(&s->indexes[i].url, twin);
    }
    return theirs > 0;
}

/* ---- an index -------------------------------------------------------------------------- */

static void add_host(struct old_site *s, const struct url *loc)
{
    char host[HOST_MAX_CHARS + 7];

    snprintf(host, sizeof host, "%.*s", loc->origin_len - loc->host_at, loc->text + loc->host_at);
    for (size_t i = 0; i < s->host_count; i++)
        if (strcmp(s->hosts[i], host) == 0)
            return;
    if (s->host_count < MIGRATE_HOSTS)
        strcpy(s->hosts[s->host_count++], host);
    else
        add_note(&s->notes, "its sitemaps are on more than %u other hosts: %s is left out",
                 MIGRATE_HOSTS, host);
}

static void count_date(struct look *l, const char *text)
{
    struct lastmod lastmod;

    if (text == NULL ||
        lastmod_parse(text, strlen(text), (int64_t)time(NULL), &lastmod, NULL) != RULE_OK)
        return;
    if (l->dated++ == 0)
        strcpy(l->first_lastmod, lastmod.text);
    l->dates_differ = l->dates_differ || strcmp(l->first_lastmod, lastmod.text) != 0;
    l->now_dates +=
        strchr(lastmod.text, 'T') != NULL && llabs(l->date - lastmod.unix_seconds) <= NOW_SECONDS;
}

static bool add_member(void *context, const struct entry *entry)
{
    struct look *l = context;
    struct old_site *s = &l->visit->site;
    struct url loc;

    count_date(l, entry->lastmod);
    bool known = url_split(entry->loc, strlen(entry->loc), &loc);
    l->other_scheme += known && migrate_is_own(s, &loc) && loc.https != s->robots.https;
    if (known && !migrate_is_own(s, &loc)) {
        l->foreign++;
        add_host(s, &loc);
        if (s->host_count == MIGRATE_HOSTS)
            s->indexes[l->number].bad_members = true;
    }
    if (s->member_count == s->member_room) {
        size_t room = s->member_room * 2 + 64;
        struct member *grown = reallocarray(s->members, room, sizeof *grown);

        l->no_memory = grown == NULL;
        if (grown == NULL)
            return false;
        s->members = grown;
        s->member_room = room;
    }
    s->members[s->member_count] = (struct member){strdup(entry->loc), l->number};
    l->no_memory = s->members[s->member_count].loc == NULL;
    s->member_count += !l->no_memory;
    l->members += !l->no_memory;
    return !l->no_memory;
}

static bool count_rejection(void *context, const struct rejection *rejection)
{
    struct look *l = context;
    struct old_index *old = &l->visit->site.indexes[l->number];

    old->bad_members = true;
    if (l->bad++ < SHOWN_REFUSED)
        add_note(&l->refused, "- cannot be listed: %.*s (%s)", 500,
                 rejection->loc != NULL ? rejection->loc : "an entry without a loc",
                 rule_code_word(rejection->code));
    return true;
}

/* False, with the reason in `why`: it is not a complete index. */
static bool read_members(struct look *l, const struct reach_answer *a, char *why, size_t why_size)
{
    struct reader_options options = {
        .format = READER_XML,
        .lenient = true,
        .allow_gzip = true,
        .max_bytes = SITEMAP_FILE_MAX_BYTES,
        .max_entries = SITEMAP_FILE_MAX_URLS,
        .now = (int64_t)time(NULL),
    };
    struct reader *reader =
        reader_new(&options, &(struct reader_sink){l, add_member, count_rejection, NULL});
    const char *date = fetch_header(&a->reply, "Date");
    char codings[CODINGS_TEXT];
    bool good;

    if (date == NULL || !http_date_parse(date, options.now, &l->date))
        l->date = options.now;
    if (reader == NULL) {
        l->no_memory = true;
        return false;
    }
    reader_content_encoding(
        reader, fetch_header_joined(&a->reply, "Content-Encoding", codings, sizeof codings));
    reader_feed(reader, str_text(&a->reply.body), a->reply.body.len);
    reader_finish(reader);
    good = reader_error(reader)->status == READER_OK;
    snprintf(why, why_size, "%s (%s)", reader_error(reader)->detail, reader_error(reader)->code);
    reader_free(reader);
    return good;
}

/* ---- its sitemaps ---------------------------------------------------------------------- */

struct sampled {
    uint64_t looked, good, urls, nested;
};

/* Pages may be on the hosts that the site has as it is printed. */
static bool check_member(const struct old_site *s, const struct reach_answer *a,
                         struct reach_verdict *out)
{
    char own[HOST_MAX_CHARS + 7];
    const char *hosts[MIGRATE_HOSTS + 1] = {own};

    snprintf(own, sizeof own, "%.*s", s->robots.origin_len - s->robots.host_at,
             s->robots.text + s->robots.host_at);
    for (size_t i = 0; i < s->host_count; i++)
        hosts[i + 1] = s->hosts[i];
    return reach_check(a, hosts, s->host_count + 1, NULL, out);
}

static bool look_into(struct look *l, uint64_t number, struct sampled *sum)
{
    struct visit *v = l->visit;
    struct str *notes = &v->site.indexes[l->number].notes;
    const char *loc = v->site.members[l->first + number].loc;
    struct reach_answer a;
    struct reach_verdict verdict;
    struct url url;
    bool good;

    if (l->looked[number] || !url_split(loc, strlen(loc), &url))
        return true;
    l->looked[number] = true;
    if (v->site.indexes[l->number].http_members)
        migrate_https(&v->site, &url);
    reach_fetch(&v->reach, &url, "Accept-Encoding: gzip\r\n", NULL, &a);
    good = check_member(&v->site, &a, &verdict);
    sum->looked++;
    if (good && verdict.list) {
        sum->nested++;
        if (add_index(v, &url, l->number))
            add_note(notes,
                     "- %s is an index itself, and an index may not list an index: its sitemaps "
                     "are listed %s",
                     loc,
                     v->site.commands
                         ? "instead"
                         : "by a source of their own, and it is removed after drop_after (3 days)");
        else
            add_note(
                notes,
                "- cannot be listed: %s is an index itself, and an index may not list an index",
                loc);
    } else if (good && verdict.state == CHECK_GOOD) {
        sum->good++;
        sum->urls += verdict.file.urls;
    } else if (good) {
        add_note(notes, "- %s: %s (%s)", loc, verdict.detail, verdict.code);
    }
    reach_answer_done(&a);
    return good;
}

/* The kind of a sitemap: a hash of its loc without digits, which number pages or parts. */
static uint64_t kind_of(const char *loc)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    for (const char *c = loc; *c != '\0'; c++)
        if (!ascii_is_digit(*c))
            hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    return hash;
}

/* Reads one sitemap of each kind, then others spread over the list, `sample` in all; if one is an
 * index, as many more as there is room for. */
static bool look_into_some(struct look *l)
{
    struct visit *v = l->visit;
    struct sampled sum = {0};
    uint64_t kinds[MAX_SAMPLE];
    size_t kind_count = 0;
    bool good;

    l->looked = calloc(l->members + 1, sizeof *l->looked);
    good = l->looked != NULL;
    for (uint64_t i = 0; good && i < l->members && kind_count < v->sample; i++) {
        uint64_t kind = kind_of(v->site.members[l->first + i].loc);
        size_t k = 0;

        while (k < kind_count && kinds[k] != kind)
            k++;
        if (k < kind_count)
            continue;
        kinds[kind_count++] = kind;
        good = look_into(l, i, &sum);
    }
    for (uint64_t i = 0; good && i < v->sample && sum.looked < v->sample && i < l->members; i++)
        good = look_into(l, l->members > v->sample ? i * l->members / v->sample : i, &sum);
    if (sum.nested > 0)
        for (uint64_t i = 0; good && i < l->members && v->site.index_count < MIGRATE_INDEXES; i++)
            good = look_into(l, i, &sum);
    if (sum.looked > 0)
        add_note(&v->site.indexes[l->number].notes,
                 "- checked %" PRIu64 " of them: %" PRIu64 " good, with %" PRIu64 " %s", sum.looked,
                 sum.good, sum.urls, plural(sum.urls, "URL", "URLs"));
    return good;
}

static void check_dates(struct look *l)
{
    const struct old_site *s = &l->visit->site;
    struct old_index *old = &l->visit->site.indexes[l->number];
    bool all = l->members > 1 && l->dated == l->members;

    old->drop_dates = all && (!l->dates_differ || l->now_dates == l->members);
    if (all && l->now_dates == l->members)
        add_note(
            &old->notes, "- its dates are the time of the request, which is useless to crawlers%s",
            s->commands ? ": they are left out" : ": they are replaced once the sitemaps change");
    else if (all && !l->dates_differ)
        add_note(&old->notes, "- its dates are all %s%s", l->first_lastmod,
                 s->commands ? ": they are left out"
                             : ": a date will change when the content does");
    else if (l->dated < l->members)
        add_note(&old->notes, "- %" PRIu64 " of %" PRIu64 " have no valid date",
                 l->members - l->dated, l->members);
    if (l->foreign > 0)
        add_note(&old->notes, "- %" PRIu64 " %s on %s", l->foreign, plural(l->foreign, "is", "are"),
                 l->foreign == 1 ? "another host" : "other hosts");
}

/* An index lists its own scheme alone; a CMS behind a TLS proxy often writes http. */
static void check_scheme(struct look *l)
{
    const struct old_site *s = &l->visit->site;
    struct old_index *old = &l->visit->site.indexes[l->number];
    uint64_t n = l->other_scheme;

    if (n == 0)
        return;
    old->http_members = s->robots.https && !s->commands;
    old->bad_members = old->bad_members || !old->http_members;
    if (old->http_members)
        add_note(&old->notes, "- %" PRIu64 " %s http: map lists %s as https", n,
                 plural(n, "is", "are"), plural(n, "it", "them"));
    else if (s->robots.https)
        add_note(&old->notes,
                 "- cannot be listed: %" PRIu64 " %s http, and the site is https; correct the "
                 "program that writes the index, or use the configuration (without --commands), "
                 "which lists %s as https",
                 n, plural(n, "is", "are"), plural(n, "it", "them"));
    else
        add_note(&old->notes,
                 "- cannot be listed: %" PRIu64 " %s https, and the site is http; if it answers by "
                 "https, run migrate with https",
                 n, plural(n, "is", "are"));
}

/* Adds to `why_not` why nothing was found at an address. */
static void explain(struct visit *v, const struct old_index *old, const char *why)
{
    const char *unread = v->site.robots_unread;
    size_t len = strlen(v->why_not);

    if (!old->guessed && len == 0)
        snprintf(v->why_not, sizeof v->why_not, "%.150s: %s", old->url.text, why);
    if (old->guessed)
        snprintf(v->why_not + len, sizeof v->why_not - len, "%s%s%s (%.80s)",
                 len == 0 ? unread : "",
                 len > 0           ? ", "
                 : *unread == '\0' ? "names no sitemap, and none was found at "
                                   : ", and no sitemap was found at ",
                 old->url.text + old->url.origin_len, why);
}

static bool look_at_members(struct look *l, const struct reach_answer *a)
{
    struct old_index *old = &l->visit->site.indexes[l->number];
    char why[320];

    l->first = l->visit->site.member_count;
    bool good = read_members(l, a, why, sizeof why);
    if (l->no_memory)
        return false;
    if (good && l->members == 0)
        snprintf(why, sizeof why, "it lists no sitemap that can be listed here (empty)");
    if (!good || l->members == 0) { /* an upstream must name one, too */
        add_note(&old->notes, "%s cannot be taken over: %s", old->url.text, why);
        str_append_text(&old->notes, str_text(&l->refused));
        explain(l->visit, old, why);
        return true;
    }
    old->index = true;
    add_note(&old->notes, "%s lists %" PRIu64 " %s, in %" PRIu64 " bytes", old->url.text,
             l->members, plural(l->members, "sitemap", "sitemaps"), (uint64_t)a->reply.body.len);
    str_append_text(&old->notes, str_text(&l->refused));
    if (l->bad > SHOWN_REFUSED)
        add_note(&old->notes, "- and %" PRIu64 " more that cannot be listed",
                 l->bad - SHOWN_REFUSED);
    check_dates(l);
    check_scheme(l);
    return look_into_some(l);
}

/* The other address of the same list: one redirects to the other, or is its gzip form. */
static const char *double_of(const struct visit *v, size_t number, const struct url *last)
{
    const struct old_site *s = &v->site;
    const char *text = s->indexes[number].url.text;
    size_t len = strlen(text);

    for (size_t i = 0; i < s->index_count; i++) {
        const char *other = s->indexes[i].url.text;

        if (i != number && (s->indexes[i].index || s->indexes[i].urlset) &&
            (strcmp(v->lasts[i].text, last->text) == 0 ||
             (len == strlen(other) + 3 && strncmp(text, other, len - 3) == 0 &&
              strcmp(text + len - 3, ".gz") == 0)))
            return other;
    }
    return NULL;
}

/* False when out of memory. */
static bool look_at(struct visit *v, size_t number)
{
    struct look l = {.visit = v, .number = number};
    struct old_index *old = &v->site.indexes[number];
    struct reach_verdict verdict;
    struct reach_answer a;
    const char *twice;
    char why[400];
    bool good;

    reach_fetch(&v->reach, &old->url, "Accept-Encoding: gzip\r\n", NULL, &a);
    good = reach_check(&a, NULL, 0, NULL, &verdict);
    v->lasts[number] = a.way.last;
    twice = good && verdict.state != CHECK_GONE ? double_of(v, number, &a.way.last) : NULL;
    if (twice != NULL && (verdict.list || verdict.state == CHECK_GOOD)) {
        add_note(&old->notes, "%s is a duplicate of %s", old->url.text, twice);
    } else if (good && verdict.list) {
        good = look_at_members(&l, &a);
    } else if (good && verdict.state == CHECK_GOOD) {
        old->urlset = true;
        old->upstream = verdict.file.kind == SITEMAP_FILE_URLSET;
        if (!migrate_is_own(&v->site, &old->url))
            add_host(&v->site, &old->url);
        add_note(&old->notes,
                 "%s is a sitemap of %" PRIu64 " %s, not an index: the index here lists it",
                 old->url.text, verdict.file.urls, plural(verdict.file.urls, "URL", "URLs"));
    } else if (good && !old->guessed) {
        add_note(&old->notes, "%s cannot be taken over: %s (%s)", old->url.text, verdict.detail,
                 verdict.code);
        snprintf(why, sizeof why, "%s (%s)", verdict.detail, verdict.code);
        explain(v, old, why);
    } else if (good) {
        explain(v, old, verdict.detail);
    }
    free(l.looked);
    str_done(&l.refused);
    reach_answer_done(&a);
    return good;
}

static bool found_any(const struct old_site *s)
{
    for (size_t i = 0; i < s->index_count; i++)
        if (s->indexes[i].index || s->indexes[i].urlset)
            return true;
    return false;
}

/* Finds the first usual address that has an index; one without is free for the new index. False
 * when out of memory. */
static bool look_at_usual(struct visit *v)
{
    struct old_site *s = &v->site;

    for (size_t i = 0; !found_any(s) && i < sizeof usual / sizeof *usual; i++) {
        size_t number = s->index_count;
        char text[LOC_MAX_CHARS + 32];
        struct url url;

        snprintf(text, sizeof text, "%.*s%s", s->robots.origin_len, s->robots.text, usual[i]);
        if (url_parse(text, strlen(text), &url, NULL) != RULE_OK || !add_index(v, &url, SIZE_MAX))
            continue;
        s->indexes[number].guessed = true;
        if (!look_at(v, number))
            return false;
        if (s->indexes[number].notes.len == 0)
            s->index_count = number;
    }
    return true;
}

/* False when out of memory. */
static bool look_at_all(struct visit *v)
{
    struct old_site *s = &v->site;

    v->why_not[0] = '\0';
    if (v->named == 0 && !look_at_usual(v))
        return false;
    for (size_t i = 0; i < s->index_count; i++)
        if (!s->indexes[i].guessed && !look_at(v, i))
            return false;
    return true;
}

/* ---- what is listed twice ----------------------------------------------------------------- */

/* next-sitemap names a sitemap in robots.txt that its index lists, too. */
static void drop_listed(struct old_site *s)
{
    for (size_t i = 0; i < s->member_count; i++) {
        const struct old_index *by = &s->indexes[s->members[i].from];
        struct url url;

        if (!url_split(s->members[i].loc, strlen(s->members[i].loc), &url))
            continue;
        if (by->http_members)
            migrate_https(s, &url);
        for (size_t k = 0; k < s->index_count; k++) {
            struct old_index *old = &s->indexes[k];

            if (!old->urlset || strcmp(old->url.text, url.text) != 0)
                continue;
            old->urlset = old->upstream = false;
            add_note(&old->notes, "- it is left out: %s lists it already", by->url.text);
        }
    }
}

static int compare_members(const void *a, const void *b)
{
    const struct member *x = *(const struct member *const *)a;
    const struct member *y = *(const struct member *const *)b;
    int order = strcmp(x->loc, y->loc);

    return order != 0 ? order : (x->from > y->from) - (x->from < y->from);
}

/* An entry is in one index, and one source owns it. False when out of memory. */
static bool note_shared(struct old_site *s)
{
    const struct member **sorted = calloc(s->member_count + 1, sizeof(struct member *));
    size_t with[MIGRATE_INDEXES] = {0};

    if (sorted == NULL)
        return false;
    for (size_t i = 0; i < s->member_count; i++)
        sorted[i] = &s->members[i];
    qsort(sorted, s->member_count, sizeof *sorted, compare_members);
    for (size_t i = 1, first = 0; i < s->member_count; i++) {
        struct old_index *old = &s->indexes[sorted[i]->from];

        if (strcmp(sorted[i]->loc, sorted[first]->loc) != 0) {
            first = i;
        } else if (sorted[i]->from == sorted[i - 1]->from) {
            old->bad_members = true; /* `import` rejects the second one */
        } else {
            old->shared++;
            with[sorted[i]->from] = sorted[first]->from;
        }
    }
    free(sorted);
    for (size_t i = 0; i < s->index_count; i++)
        if (s->indexes[i].shared > 0)
            add_note(
                &s->indexes[i].notes,
                "- %" PRIu64 " of them %s in %s, too, and an entry is in one index alone: %s",
                s->indexes[i].shared, plural(s->indexes[i].shared, "is", "are"),
                s->indexes[with[i]].url.text,
                s->commands
                    ? "here"
                    : "the source that reads its list first owns it, and the other one reports "
                      "owned-by-another; leave out one of the sources, or correct the lists");
    return true;
}

/* ---- the command ------------------------------------------------------------------------- */

static void report_choice(struct visit *v, const struct url *robots, const char *why)
{
    const struct url *own = &v->site.robots;

    if (!url_same_origin(robots, own))
        add_note(&v->site.notes, "%.*s %s %.*s: that is the site's origin", robots->origin_len,
                 robots->text, why, own->origin_len, own->text);
}

/* Reads the site at `robots`, or its twin host if that redirects there or has nothing. Returns an
 * exit status, with any error reported. */
static int look_at_site(struct visit *v, const struct url *robots)
{
    struct old_site *s = &v->site;
    struct url asked = *robots, next, twin;
    bool has_twin = twin_of(robots, &twin);
    const char *why = "redirects to";
    char first_why[sizeof v->why_not] = "";

    for (int round = 0; round < 2; round++) {
        v->reach.url = asked; /* the URL that --connect applies to */
        bool answers = fetch_robots(v, &asked, &next);

        if (round == 0 && has_twin && answers && next.len == 0 && names_twin_alone(s, &twin)) {
            next = twin;
            why = "names sitemaps of";
        }
        if (round > 0 || next.len == 0) {
            if (answers && !look_at_all(v))
                return cli_fail(robots->text, "out of memory");
            if (answers && found_any(s)) {
                report_choice(v, robots, why);
                return EXIT_DONE;
            }
            if (first_why[0] == '\0')
                snprintf(first_why, sizeof first_why, "%s", v->why_not);
            if (!has_twin)
                break;
            why = answers ? "has no sitemap that can be taken over, unlike"
                          : "does not answer, unlike";
            next = twin;
        }
        asked = next;
    }
    return cli_fail(robots->text, "%s", first_why);
}

static int read_options(struct cli *cli, struct visit *v)
{
    const struct arguments *a = &cli->arguments;
    const char *text = arguments_value(a, "--sample");
    uint64_t sample = DEFAULT_SAMPLE;

    if (text != NULL && !query_number(text, MAX_SAMPLE, &sample))
        return cli_misuse("--sample", "\"%s\" must be a number from 0 to %u", text, MAX_SAMPLE);
    v->sample = (unsigned)sample;
    v->proxy = arguments_value(a, "--proxy");
    v->site.commands = arguments_has(a, "--commands");
    v->site.serves = arguments_has(a, "--serve");
    if (v->site.serves && v->site.commands)
        return cli_misuse("--serve", "cannot be combined with --commands");
    if (v->proxy != NULL && v->site.commands)
        return cli_misuse("--proxy", "cannot be combined with --commands");
    if (v->proxy != NULL && !migrate_knows_proxy(v->proxy))
        return cli_misuse("--proxy", "\"%s\" must be nginx, apache, caddy or haproxy", v->proxy);
    return EXIT_DONE;
}

/* The usual mistakes are the URL of an index, or a host without scheme. */
static int refuse_origin(const char *text, enum rule_code code)
{
    char whole[LOC_MAX_CHARS + 9];
    struct url url;

    snprintf(whole, sizeof whole, "%s%.*s", code == RULE_LOC_RELATIVE ? "https://" : "",
             LOC_MAX_CHARS, text);
    if (url_parse(whole, strlen(whole), &url, NULL) == RULE_OK)
        return cli_misuse(text, "must be an origin; did you mean %.*s? (%s)", (int)url.origin_len,
                          url.text, rule_code_word(code));
    return cli_misuse(text, "must be an origin, such as https://www.example.com (%s)",
                      rule_code_word(code));
}

int command_migrate(struct cli *cli)
{
    const char *text = cli->arguments.words[0];
    struct visit *v = calloc(1, sizeof *v);
    char robots[LOC_MAX_CHARS + 16];
    struct url origin, url;
    enum rule_code code;
    int status = session_refuse_server(cli);

    if (v == NULL)
        return cli_fail(text, "out of memory");
    v->cli = cli;
    v->site.reach = &v->reach;
    if (status == EXIT_DONE)
        status = read_options(cli, v);
    code = url_parse_origin(text, strlen(text), &origin);
    if (status == EXIT_DONE && code != RULE_OK)
        status = refuse_origin(text, code);
    if (status == EXIT_DONE) {
        snprintf(robots, sizeof robots, "%s/robots.txt", origin.text);
        status = reach_init(cli, robots, false, &v->reach);
    }
    if (status == EXIT_DONE) {
        url = v->reach.url;
        status = look_at_site(v, &url);
    }
    if (status == EXIT_DONE) {
        drop_listed(&v->site);
        if (!note_shared(&v->site))
            status = cli_fail(text, "out of memory");
    }
    if (status == EXIT_DONE) {
        migrate_plan(&v->site);
        if (!(v->proxy != NULL ? migrate_print_proxy(&v->site, v->proxy) : migrate_print(&v->site)))
            status = cli_fail(text, "out of memory");
    }
    reach_done(&v->reach);
    forget(v);
    str_done(&v->site.notes);
    free(v->site.members);
    free(v);
    return status;
}
