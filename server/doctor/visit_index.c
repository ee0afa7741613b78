/* The index itself: well-formed, within the limits, and each loc a URL that may stand in it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/doctor/visit.h"
#include "server/ingest/reader.h"
#include "server/rules/plural.h"
#include "server/rules/scope.h"

#define MAX_ENTRIES     50000u
#define MAX_CROSS_HOSTS 5u

struct found {
    struct visit *visit;
    struct str locs; /* each with its NUL */
    size_t *at;      /* owned; where each begins */
    size_t count, capacity;
    uint64_t refused, undated, bad_dates, outside;
    char first_refused[512], first_bad_date[512], first_outside[LOC_MAX_CHARS + 1];
};

static const char *loc_of(const struct found *f, size_t i)
{
    return f->locs.data + f->at[i];
}

/* ---- reading --------------------------------------------------------------------------- */

static void note_place(struct found *f, const char *loc)
{
    char path[LOC_MAX_CHARS + 1];
    const struct url *index = &f->visit->url;
    struct url url;

    snprintf(path, sizeof path, "%.*s", index->path_len, index->text + index->origin_len);
    if (url_parse(loc, strlen(loc), &url, NULL) != RULE_OK || !url_same_host(&url, index) ||
        scope_holds(path, &url))
        return;
    if (f->outside++ == 0)
        snprintf(f->first_outside, sizeof f->first_outside, "%s", loc);
}

static bool take_entry(void *context, const struct entry *entry)
{
    const rule_set bad = RULE_BIT(RULE_LASTMOD_INVALID) | RULE_BIT(RULE_LASTMOD_NO_ZONE) |
                         RULE_BIT(RULE_LASTMOD_FUTURE);
    struct found *f = context;

    if (f->count == f->capacity) {
        size_t capacity = f->capacity > 0 ? f->capacity * 2 : 256;
        size_t *grown = realloc(f->at, capacity * sizeof *grown);

        if (grown == NULL)
            return false;
        f->at = grown;
        f->capacity = capacity;
    }
    f->at[f->count++] = f->locs.len;
    str_append(&f->locs, entry->loc, strlen(entry->loc) + 1);
    note_place(f, entry->loc);
    if ((entry->remarks & bad) != 0 && f->bad_dates++ == 0)
        snprintf(f->first_bad_date, sizeof f->first_bad_date, "%.400s", entry->loc);
    if (entry->lastmod == NULL && (entry->remarks & bad) == 0)
        f->undated++;
    return !f->locs.failed;
}

static bool take_rejection(void *context, const struct rejection *rejection)
{
    struct found *f = context;

    if (f->refused++ == 0)
        snprintf(f->first_refused, sizeof f->first_refused, "line %" PRIu64 ", %.300s: %.120s",
                 rejection->line, rejection->loc != NULL ? rejection->loc : "no loc",
                 rejection->detail);
    return true;
}

static const char *todo_of(const struct reader_error *error)
{
    if (strcmp(error->code, "html-not-index") == 0)
        return "find out who answers here with a page for people: a login, an error page with 200, "
               "or a web server that does not pass the path on";
    if (strcmp(error->code, "urlset-not-index") == 0)
        return "give the URL of the index; this is a sitemap, good by itself but no index";
    return "serve the index as sitemapd renders it (`sitemapd render`), and look for what changes "
           "it on the way";
}

/* Reads the index; told where it is none. */
static bool read_index(struct visit *v, struct found *f)
{
    const struct reader_options options = {
        .format = READER_XML,
        .lenient = true,
        .allow_gzip = true,
        .max_bytes = VISIT_MAX_PAGE,
        .max_entries = MAX_ENTRIES,
        .now = v->options->now,
    };
    const struct reader_sink sink = {.context = f, .entry = take_entry, .reject = take_rejection};
    struct reader *reader = reader_new(&options, &sink);
    const struct reader_error *error;
    bool good;

    if (reader == NULL) {
        v->no_memory = true;
        return false;
    }
    reader_feed(reader, v->body.data, v->body.len);
    good = reader_finish(reader) == READER_OK;
    error = reader_error(reader);
    v->no_memory =
        v->no_memory || error->status == READER_NO_MEMORY || error->status == READER_STOPPED;
    if (!good && !v->no_memory)
        visit_say(v, DOCTOR_WRONG, "index", todo_of(error), "%s (%s)", error->detail, error->code);
    reader_free(reader);
    return good;
}

/* ---- judging --------------------------------------------------------------------------- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* How many locs stand there more than once; the first of them goes to `*which`. */
static size_t count_doubles(struct found *f, const char **which)
{
    const char **sorted = calloc(f->count + 1, sizeof *sorted);
    size_t doubles = 0;

    if (sorted == NULL) {
        f->visit->no_memory = true;
        return 0;
    }
    for (size_t i = 0; i < f->count; i++)
        sorted[i] = loc_of(f, i);
    qsort(sorted, f->count, sizeof *sorted, compare_texts);
    for (size_t i = 1; i < f->count; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0 && doubles++ == 0)
            *which = sorted[i];
    free(sorted);
    return doubles;
}

static void judge_entries(struct visit *v, struct found *f)
{
    const char *twice = "";
    size_t doubles = count_doubles(f, &twice);

    if (f->refused > 0)
        visit_say(v, DOCTOR_WRONG, "index", "correct these locs where they are made",
                  "%" PRIu64 " of its locs %s no good: %s", f->refused,
                  plural(f->refused, "is", "are"), f->first_refused);
    if (f->outside > 0)
        visit_say(v, DOCTOR_WARNING, "index",
                  "put them into an index at the top of the site: one lists its own directory and "
                  "below",
                  "%" PRIu64 " %s outside its directory, %s first", f->outside,
                  plural(f->outside, "loc lies", "locs lie"), f->first_outside);
    if (f->bad_dates > 0)
        visit_say(v, DOCTOR_WARNING, "index",
                  "give W3C dates with time and zone, never of the future",
                  "%" PRIu64 " lastmod %s no good, of %s first", f->bad_dates,
                  plural(f->bad_dates, "is", "are"), f->first_bad_date);
    if (doubles > 0)
        visit_say(v, DOCTOR_WARNING, "index", "list each sitemap once",
                  "%zu %s there more than once, %s first", doubles,
                  plural(doubles, "loc stands", "locs stand"), twice);
    if (f->count == 0 && f->refused == 0)
        visit_say(v, DOCTOR_WARNING, "index", "register the sitemaps of the site",
                  "it lists nothing");
    else if (f->count > 0 && f->refused == 0)
        visit_say(v, DOCTOR_OK, "index", NULL, "valid; %zu %s, %" PRIu64 " without lastmod",
                  f->count, plural(f->count, "sitemap", "sitemaps"), f->undated);
}

/* ---- hosts and children ---------------------------------------------------------------- */

struct hosts {
    struct visit_robots robots[MAX_CROSS_HOSTS];
    size_t count;
};

static void judge_cross_host(struct visit *v, const struct visit_robots *r, const struct url *loc)
{
    const char *forbidden = visit_forbidden(r, loc);

    if (r->status == 0 || r->status >= 500 || r->status == 429)
        visit_say(
            v, DOCTOR_WRONG, "cross-host",
            "make its robots.txt answer, or answer 404: while it fails, crawlers fetch nothing "
            "there",
            "%s/robots.txt does not answer", r->origin);
    else if (forbidden != NULL)
        visit_say(v, DOCTOR_WRONG, "cross-host", "take the Disallow off there",
                  "%s/robots.txt forbids %s to %s", r->origin, loc->text, forbidden);
    else
        visit_say(v, DOCTOR_OK, "cross-host", NULL,
                  "%s/robots.txt lets crawlers fetch its sitemaps", r->origin);
}

/* The robots.txt of a loc's host, fetched once for each; NULL past the bound. */
static const struct visit_robots *robots_of(struct visit *v, struct hosts *hosts,
                                            const struct url *loc)
{
    struct visit_robots *fresh;

    if (strncmp(v->robots.origin, loc->text, loc->origin_len) == 0 &&
        v->robots.origin[loc->origin_len] == '\0')
        return &v->robots;
    for (size_t i = 0; i < hosts->count; i++)
        if (strncmp(hosts->robots[i].origin, loc->text, loc->origin_len) == 0 &&
            hosts->robots[i].origin[loc->origin_len] == '\0')
            return &hosts->robots[i];
    if (hosts->count == MAX_CROSS_HOSTS)
        return NULL;
    fresh = &hosts->robots[hosts->count++];
    visit_fetch_robots(v, loc, fresh);
    judge_cross_host(v, fresh, loc);
    return fresh;
}

static bool parse_loc(const struct visit *v, const char *loc, struct url *out)
{
    bool good = url_parse(loc, strlen(loc), out, NULL) == RULE_OK;

    if (good)
        visit_own(v, out);
    return good;
}

static bool is_address(const struct url *url)
{
    const char *host = url->text + url->host_at;

    return *host == '[' || strspn(host, "0123456789.") >= url->host_len ||
           (url->host_len == 9 && memcmp(host, "localhost", 9) == 0);
}

/* A server that is asked for by its address, before there is DNS or beside it: what follows is
 * about the site, which may be elsewhere, or nowhere yet. */
static void judge_address(struct visit *v, const struct found *f)
{
    char todo[LOC_MAX_CHARS * 3];
    struct url first;

    if (!is_address(&v->url) || v->options->connect != NULL || f->count == 0 ||
        !parse_loc(v, loc_of(f, 0), &first) || is_address(&first))
        return;
    snprintf(todo, sizeof todo,
             "to look at this very server: sitemapd doctor %s://%.*s%s --connect %.*s:%u",
             v->url.https ? "https" : "http", first.host_len, first.text + first.host_at,
             v->url.text + v->url.origin_len, v->url.host_len, v->url.text + v->url.host_at,
             v->url.port);
    visit_say(v, DOCTOR_WARNING, "index", todo,
              "it is asked for by an address, and lists sitemaps of %.*s, which are fetched from "
              "wherever that name leads",
              first.origin_len, first.text);
}

/* Looks at every host, then at children spread evenly over the index, first and last among them. */
static void visit_children(struct visit *v, struct found *f)
{
    struct hosts hosts = {0};
    size_t sample = v->options->sample < f->count ? v->options->sample : f->count;
    struct url url;

    for (size_t i = 0; i < f->count && !v->no_memory; i++)
        if (parse_loc(v, loc_of(f, i), &url))
            robots_of(v, &hosts, &url);
    for (size_t i = 0; i < sample && !v->no_memory; i++) {
        const char *loc = loc_of(f, sample == 1 ? 0 : i * (f->count - 1) / (sample - 1));

        if (parse_loc(v, loc, &url))
            visit_child(v, loc, robots_of(v, &hosts, &url));
    }
    for (size_t i = 0; i < hosts.count; i++)
        str_done(&hosts.robots[i].text);
}

void visit_index(struct visit *v)
{
    struct found f = {.visit = v, .locs = STR_INIT};

    if (read_index(v, &f)) {
        judge_entries(v, &f);
        judge_address(v, &f);
        visit_children(v, &f);
    }
    str_done(&f.locs);
    free(f.at);
}
