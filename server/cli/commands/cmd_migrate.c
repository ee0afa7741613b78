/* `migrate`: looks at a site's robots.txt, its indexes and a sample of their sitemaps, and prints
 * what takes them over: a configuration, or commands, with what it found and what will be different
 * as comments. All that is printed is of the one syntax, so that it can be appended or run. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/base/text.h"
#include "server/cli/backend/reach.h"
#include "server/cli/commands/commands.h"
#include "server/cli/output.h"
#include "server/input/reader.h"
#include "server/rules/http/negotiate.h"
#include "server/rules/http/query.h"
#include "server/rules/lastmod.h"
#include "server/rules/robots.h"

#define MAX_INDEXES    20u
#define MAX_HOSTS      20u
#define DEFAULT_SAMPLE 5u
#define MAX_SAMPLE     1000u
#define NOW_SECONDS    60

static const char *const usual[] = {"/sitemap_index.xml", "/sitemap.xml", "/wp-sitemap.xml",
                                    "/sitemap-index.xml"};

struct site {
    struct cli *cli;
    struct reach reach;
    bool commands;
    unsigned sample;
    char address[INET6_ADDRSTRLEN]; /* where the site is now */
    struct url origin;              /* its robots.txt */
    uint64_t rules;                 /* lines of robots.txt that are not for sitemaps */
    size_t named;                   /* of the indexes those that robots.txt names */
    size_t index_count;
    struct url indexes[MAX_INDEXES]; /* to look at, in this order */
    size_t under[MAX_INDEXES];       /* the index that lists it; its own number: none */
    size_t host_count;
    char hosts[MAX_HOSTS][HOST_MAX_CHARS + 7]; /* other ones, that sitemaps lie on */
    struct str sources;                        /* what is printed behind the site */
    struct str paths;                          /* and within it, for each index */
    size_t good;
    char why_not[320]; /* of the first usual place */
};

/* One index as it was read. */
struct look {
    struct site *site;
    size_t number;
    uint64_t members, bad, dated, now_dates, foreign;
    int64_t date; /* of the answer */
    char first_lastmod[LASTMOD_MAX_CHARS + 1];
    bool dates_differ, no_memory;
    struct str refused; /* notes on what cannot be listed */
    size_t room;
    char **locs;  /* owned, as what follows */
    bool *looked; /* into each */
};

/* ---- comments -------------------------------------------------------------------------- */

static void note(struct site *s, struct str *out, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void note(struct site *s, struct str *out, const char *format, ...)
{
    char text[3 * LOC_MAX_CHARS];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c != '\0'; c++) /* what others wrote stays within the comment */
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    str_append_format(out, "%c %s\n", s->commands ? '#' : ';', text);
}

/* As one word of a shell: a URL may hold an apostrophe, and what the origin redirects to is its own
 * choice. */
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

/* ---- robots.txt ------------------------------------------------------------------------ */

static bool add_index(struct site *s, const struct url *url, size_t under)
{
    for (size_t i = 0; i < s->index_count; i++)
        if (strcmp(s->indexes[i].text, url->text) == 0)
            return false;
    if (s->index_count == MAX_INDEXES)
        return false;
    s->under[s->index_count] = under == SIZE_MAX ? s->index_count : under;
    s->indexes[s->index_count++] = *url;
    return true;
}

static void read_robots(struct site *s, const char *text, size_t len)
{
    struct robots_line line = {0};
    struct robots_cursor at = {0};
    struct robots_sitemap sitemap;
    struct url url;

    while (robots_next_line(text, len, &line))
        s->rules += line.key_len > 0 && !robots_has_key(&line, "sitemap");
    while (robots_next_sitemap(text, len, &at, &sitemap))
        if (robots_sitemap_guess(&sitemap, &s->origin, &url))
            s->named += add_index(s, &url, SIZE_MAX);
}

/* Finds out where the site is, too: http may lead to https. An exit status, told. */
static int ask_robots(struct site *s)
{
    struct reach_answer a;
    int status = EXIT_DONE;

    reach_ask(&s->reach, NULL, "Accept-Encoding: identity\r\n", NULL, &a);
    if (a.status != FETCH_OK)
        status = cli_fail(s->reach.url.text, "cannot be fetched: %s", a.reply.why);
    s->origin = a.way.last;
    snprintf(s->address, sizeof s->address, "%s", a.reply.address);
    if (status == EXIT_DONE && a.reply.status == 200 && a.way.verdict == HOP_END &&
        !robots_is_page(str_text(&a.reply.body), a.reply.body.len))
        read_robots(s, str_text(&a.reply.body),
                    a.reply.body.len < ROBOTS_MAX_BYTES ? a.reply.body.len : ROBOTS_MAX_BYTES);
    reach_answer_done(&a);
    return status;
}

/* ---- an index -------------------------------------------------------------------------- */

static void take_host(struct site *s, const struct url *loc)
{
    char host[HOST_MAX_CHARS + 7];

    snprintf(host, sizeof host, "%.*s", loc->origin_len - loc->host_at, loc->text + loc->host_at);
    for (size_t i = 0; i < s->host_count; i++)
        if (strcmp(s->hosts[i], host) == 0)
            return;
    if (s->host_count < MAX_HOSTS)
        strcpy(s->hosts[s->host_count++], host);
}

static void take_date(struct look *l, const char *text)
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

static bool take_member(void *context, const struct entry *entry)
{
    struct look *l = context;
    struct url loc;

    take_date(l, entry->lastmod);
    if (url_split(entry->loc, strlen(entry->loc), &loc) &&
        !url_same_origin(&loc, &l->site->origin)) {
        l->foreign++;
        take_host(l->site, &loc);
    }
    if (l->members == l->room) {
        size_t room = l->room * 2 + 64;
        char **grown = reallocarray(l->locs, room, sizeof *grown);

        l->no_memory = grown == NULL;
        if (grown == NULL)
            return false;
        l->locs = grown;
        l->room = room;
    }
    l->locs[l->members] = strdup(entry->loc);
    l->no_memory = l->locs[l->members] == NULL;
    l->members += !l->no_memory;
    return !l->no_memory;
}

static bool take_bad(void *context, const struct rejection *rejection)
{
    struct look *l = context;

    if (l->bad++ < 3)
        note(l->site, &l->refused, "- cannot be listed: %.*s (%s)", 500,
             rejection->loc != NULL ? rejection->loc : "an entry without a loc",
             rule_code_word(rejection->code));
    return true;
}

/* False where it is no index that can be read whole, which `why` says. */
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
        reader_new(&options, &(struct reader_sink){l, take_member, take_bad, NULL});
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

static bool look_into(struct look *l, uint64_t number, struct sampled *sum)
{
    struct site *s = l->site;
    const char *loc = l->locs[number];
    struct reach_answer a;
    struct reach_verdict v;
    struct url url;
    bool good;

    if (l->looked[number] || !url_split(loc, strlen(loc), &url))
        return true;
    l->looked[number] = true;
    reach_ask(&s->reach, &url, "Accept-Encoding: gzip\r\n", NULL, &a);
    good = reach_judge(&a, &v);
    sum->looked++;
    if (good && v.state == CHECK_GOOD) {
        sum->good++;
        sum->urls += v.file.urls;
    } else if (good && v.list) {
        sum->nested++;
        if (add_index(s, &url, s->under[l->number]))
            note(s, &s->sources,
                 "- %s is an index itself, which no index may list: its sitemaps are taken instead",
                 loc);
    } else if (good) {
        note(s, &s->sources, "- %s: %s (%s)", loc, v.detail, v.code);
    }
    reach_answer_done(&a);
    return good;
}

/* Some of them, spread over the list; where one is an index, as many more as there is room for. */
static bool look_into_some(struct look *l)
{
    struct site *s = l->site;
    struct sampled sum = {0};
    uint64_t count = l->members < s->sample ? l->members : s->sample;
    bool good;

    l->looked = calloc(l->members + 1, sizeof *l->looked);
    good = l->looked != NULL;
    for (uint64_t i = 0; good && i < count; i++)
        good = look_into(l, i * l->members / count, &sum);
    if (sum.nested > 0)
        for (uint64_t i = 0; good && i < l->members && s->index_count < MAX_INDEXES; i++)
            good = look_into(l, i, &sum);
    if (sum.looked > 0)
        note(s, &s->sources,
             "- looked into %" PRIu64 " of them: %" PRIu64 " good, with %" PRIu64 " %s", sum.looked,
             sum.good, sum.urls, plural(sum.urls, "URL", "URLs"));
    return good;
}

static void tell_dates(struct look *l)
{
    struct site *s = l->site;

    if (l->members > 1 && l->dated == l->members && l->now_dates == l->members)
        note(s, &s->sources,
             "- its dates are the moment of the request, which tells crawlers nothing%s",
             s->commands ? ": they are left out" : ": true ones come with the first changes");
    else if (l->members > 1 && l->dated == l->members && !l->dates_differ)
        note(s, &s->sources, "- its dates are all %s%s", l->first_lastmod,
             s->commands ? ": they are left out" : ": a date will move when the content does");
    else if (l->dated < l->members)
        note(s, &s->sources, "- %" PRIu64 " of %" PRIu64 " have no date%s", l->members - l->dated,
             l->members, s->commands ? "" : ": they get true ones");
    if (l->foreign > 0)
        note(s, &s->sources, "- %" PRIu64 " %s on %s", l->foreign,
             plural(l->foreign, "lies", "lie"), l->foreign == 1 ? "another host" : "other hosts");
}

/* ---- what takes it over ---------------------------------------------------------------- */

/* "example" of www.example.com. */
static void write_name(const struct site *s, char out[NAME_MAX_BYTES])
{
    const char *host = s->origin.text + s->origin.host_at;
    size_t len = s->origin.host_len, n = 0;

    if (len > 4 && memcmp(host, "www.", 4) == 0) {
        host += 4;
        len -= 4;
    }
    while (n < len && n < NAME_MAX_BYTES - 8 && (ascii_is_alnum(host[n]) || host[n] == '-'))
        n++;
    snprintf(out, NAME_MAX_BYTES, "%.*s", (int)n, host);
}

static void append_source(struct look *l, const struct url *url)
{
    struct site *s = l->site;
    const struct url *index = &s->indexes[s->under[l->number]];
    char name[NAME_MAX_BYTES], number[16] = "";

    write_name(s, name);
    if (s->good > 0)
        snprintf(number, sizeof number, "-%zu", s->good + 1);
    str_append_format(&s->sources, "[source \"%s%s\"]\nupstream = %s\nindex = %s\n", name, number,
                      url->text, index->text);
    note(s, &s->sources, "once the name leads to this server: where the old one is");
    if (s->reach.connect != NULL)
        str_append_format(&s->sources, ";connect = %s\n\n", s->reach.connect);
    else
        str_append_format(&s->sources,
                          strchr(s->address, ':') != NULL ? ";connect = [%s]:%u\n\n"
                                                          : ";connect = %s:%u\n\n",
                          s->address, (unsigned)url->port);
}

/* The indexes that the list holds came with it, and are none of its sitemaps. */
static void append_nested(const struct look *l)
{
    struct site *s = l->site;

    for (size_t i = 0; i < s->index_count; i++)
        for (uint64_t k = 0; s->under[i] != i && k < l->members; k++)
            if (strcmp(s->indexes[i].text, l->locs[k]) == 0) {
                str_append_text(&s->sources, "sitemapd remove ");
                append_quoted(&s->sources, l->locs[k], strlen(l->locs[k]));
                str_append_text(&s->sources, "\n");
            }
}

static void append_import(struct look *l, const struct url *url)
{
    struct site *s = l->site;
    bool stamps = l->members > 1 && l->dated == l->members &&
                  (!l->dates_differ || l->now_dates == l->members);

    str_append_text(&s->sources, "sitemapd import --index ");
    append_quoted(&s->sources, s->indexes[s->under[l->number]].text,
                  strlen(s->indexes[s->under[l->number]].text));
    str_append_text(&s->sources, stamps ? " --drop-lastmod" : "");
    str_append_text(&s->sources, l->bad > 0 ? " --skip-invalid " : " ");
    append_quoted(&s->sources, url->text, strlen(url->text));
    str_append_text(&s->sources, "\n");
    append_nested(l);
    str_append_text(&s->sources, "\n");
}

static void append_path(struct site *s, size_t number)
{
    const struct url *url = &s->indexes[number];

    if (s->under[number] != number)
        return;
    if (!url_same_origin(url, &s->origin))
        note(s, &s->paths, "robots.txt names %s, of another origin: that is no index of this site",
             url->text);
    else if (!s->commands)
        str_append_format(&s->paths, "index = %.*s\n", url->path_len, url->text + url->origin_len);
    else {
        str_append_text(&s->paths, "sitemapd index add ");
        append_quoted(&s->paths, url->text, strlen(url->text));
        str_append_text(&s->paths, "\n");
    }
}

static bool look_at_members(struct look *l, const struct reach_answer *a)
{
    struct site *s = l->site;
    const struct url *url = &s->indexes[l->number];
    char why[320];

    if (!read_members(l, a, why, sizeof why)) {
        note(s, &s->sources, "%s cannot be taken over: %s", url->text, why);
        str_append_text(&s->sources, "\n");
        return !l->no_memory;
    }
    note(s, &s->sources, "%s lists %" PRIu64 " %s, in %" PRIu64 " bytes", url->text, l->members,
         plural(l->members, "sitemap", "sitemaps"), (uint64_t)a->reply.body.len);
    str_append_text(&s->sources, str_text(&l->refused));
    tell_dates(l);
    if (!look_into_some(l))
        return false;
    append_path(s, l->number);
    if (s->commands)
        append_import(l, url);
    else
        append_source(l, url);
    s->good++;
    return true;
}

static void look_at_sitemap(struct site *s, const struct url *url, uint64_t urls)
{
    note(s, &s->sources, "%s is a sitemap of %" PRIu64 " %s, no index%s", url->text, urls,
         plural(urls, "URL", "URLs"), s->commands ? "" : "; once the site is made:");
    str_append_text(&s->sources, s->commands ? "sitemapd add " : "; sitemapd add ");
    append_quoted(&s->sources, url->text, strlen(url->text));
    str_append_text(&s->sources, "\n\n");
}

/* False when out of memory. */
static bool look_at(struct site *s, size_t number)
{
    struct look l = {.site = s, .number = number};
    const struct url *url = &s->indexes[number];
    bool guessed = number >= s->named && s->under[number] == number, good;
    struct reach_verdict v;
    struct reach_answer a;

    reach_ask(&s->reach, url, "Accept-Encoding: gzip\r\n", NULL, &a);
    good = reach_judge(&a, &v);
    if (good && v.list)
        good = look_at_members(&l, &a);
    else if (good && v.state == CHECK_GOOD)
        look_at_sitemap(s, url, v.file.urls);
    else if (good && !guessed)
        note(s, &s->sources, "%s cannot be taken over: %s (%s)\n", url->text, v.detail, v.code);
    else if (good && number == 0)
        snprintf(s->why_not, sizeof s->why_not, "%s", v.detail);
    for (size_t i = 0; i < l.members; i++)
        free(l.locs[i]);
    free(l.locs);
    free(l.looked);
    str_done(&l.refused);
    reach_answer_done(&a);
    return good;
}

/* ---- printing -------------------------------------------------------------------------- */

static void print_robots(struct site *s, const char *name, struct str *out)
{
    if (s->rules == 0)
        return;
    note(s, out, "robots.txt has %" PRIu64 " %s of its own, which would be lost with the switch%s",
         s->rules, plural(s->rules, "line", "lines"),
         s->commands ? "" : "; saved, it is named here");
    if (s->commands) {
        str_append_text(out, "curl -sf ");
        append_quoted(out, s->origin.text, s->origin.len);
        str_append_text(out, " -o robots.txt\nsitemapd site update ");
        append_quoted(out, s->origin.text, s->origin.origin_len);
        str_append_text(out, " --robots robots.txt\n");
    } else {
        str_append_format(out, ";robots_file = /etc/sitemapd/%s-robots.txt\n", name);
    }
}

static void print_site(struct site *s)
{
    struct str out = STR_INIT;
    char name[NAME_MAX_BYTES];

    write_name(s, name);
    if (s->commands) {
        str_append_text(&out, "sitemapd site add --no-index ");
        append_quoted(&out, s->origin.text, s->origin.origin_len);
    } else
        str_append_format(&out, "[site \"%s\"]\norigin = %.*s\n", name, s->origin.origin_len,
                          s->origin.text);
    for (size_t i = 0; i < s->host_count; i++)
        if (s->commands) {
            str_append_text(&out, " --cross-host ");
            append_quoted(&out, s->hosts[i], strlen(s->hosts[i]));
        } else
            str_append_format(&out, "cross_host = %s\n", s->hosts[i]);
    str_append_text(&out, s->commands ? "\n" : "");
    str_append_text(&out, str_text(&s->paths));
    print_robots(s, name, &out);
    str_append_text(&out, "\n");
    str_append_text(&out, str_text(&s->sources));
    fputs(str_text(&out), stdout);
    str_done(&out);
}

static int look_at_all(struct site *s)
{
    for (size_t i = 0; s->named == 0 && i < sizeof usual / sizeof *usual; i++) {
        char text[LOC_MAX_CHARS + 1];
        struct url url;

        snprintf(text, sizeof text, "%.*s%s", s->origin.origin_len, s->origin.text, usual[i]);
        if (url_parse(text, strlen(text), &url, NULL) == RULE_OK)
            add_index(s, &url, SIZE_MAX);
    }
    for (size_t i = 0; i < s->index_count; i++)
        if (!look_at(s, i))
            return cli_fail(s->indexes[i].text, "out of memory");
    if (s->good == 0 && s->sources.len == 0)
        return cli_fail(s->origin.text,
                        "names no sitemap, and there is none at /sitemap_index.xml (%s), "
                        "/sitemap.xml, /wp-sitemap.xml, /sitemap-index.xml",
                        s->why_not);
    print_site(s);
    return s->good > 0 ? EXIT_DONE : EXIT_COULD_NOT;
}

static int read_options(struct cli *cli, struct site *s)
{
    const char *text = arguments_value(&cli->arguments, "--sample");
    uint64_t sample = DEFAULT_SAMPLE;

    if (text != NULL && !query_number(text, MAX_SAMPLE, &sample))
        return cli_misuse("--sample", "\"%s\" must be a number from 0 to %u", text, MAX_SAMPLE);
    s->sample = (unsigned)sample;
    s->commands = arguments_has(&cli->arguments, "--commands");
    return EXIT_DONE;
}

/* Mostly the URL of its index, or a bare host. */
static int refuse_origin(const char *text, enum rule_code code)
{
    char whole[LOC_MAX_CHARS + 9];
    struct url url;

    snprintf(whole, sizeof whole, "%s%.*s", code == RULE_LOC_RELATIVE ? "https://" : "",
             LOC_MAX_CHARS, text);
    if (url_parse(whole, strlen(whole), &url, NULL) == RULE_OK)
        return cli_misuse(text, "must be an origin; did you mean %.*s? (%s)", (int)url.origin_len,
                          url.text, rule_code_word(code));
    return cli_misuse(text, "must be an origin, as https://www.example.com (%s)",
                      rule_code_word(code));
}

int command_migrate(struct cli *cli)
{
    const char *text = cli->arguments.words[0];
    struct site *s = calloc(1, sizeof *s);
    char robots[LOC_MAX_CHARS + 16];
    struct url origin;
    enum rule_code code;
    int status = session_asks_no_server(cli);

    if (s == NULL)
        return cli_fail(text, "out of memory");
    s->cli = cli;
    if (status == EXIT_DONE)
        status = read_options(cli, s);
    code = url_parse_origin(text, strlen(text), &origin);
    if (status == EXIT_DONE && code != RULE_OK)
        status = refuse_origin(text, code);
    if (status == EXIT_DONE) {
        snprintf(robots, sizeof robots, "%s/robots.txt", origin.text);
        status = reach_init(cli, robots, &s->reach);
    }
    if (status == EXIT_DONE)
        status = ask_robots(s);
    if (status == EXIT_DONE)
        status = look_at_all(s);
    reach_done(&s->reach);
    str_done(&s->sources);
    str_done(&s->paths);
    free(s);
    return status;
}
