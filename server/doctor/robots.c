#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/doctor/robots_txt.h"
#include "server/doctor/visit.h"
#include "server/rules/robots.h"

/* One line, its key and value trimmed; a comment is cut off. */
struct line {
    const char *key, *value;
    size_t key_len, value_len;
};

static size_t trimmed(const char *text, size_t len)
{
    while (len > 0 && strchr(" \t\r", text[len - 1]) != NULL)
        len--;
    return len;
}

/* Reads the line at `*at` and moves behind it. False at the end. */
static bool next_line(const char **at, struct line *out)
{
    const char *text = *at, *colon;
    size_t len = strcspn(text, "\n"), used;

    if (*text == '\0')
        return false;
    *at = text + len + (text[len] == '\n');
    if (strncmp(text, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark, as editors leave it */
        text += 3;
        len -= 3;
    }
    used = strcspn(text, "#\n");
    len = trimmed(text, used < len ? used : len);
    colon = memchr(text, ':', len);
    *out = (struct line){.key = text, .value = text};
    if (colon == NULL)
        return true;
    out->key += strspn(text, " \t");
    out->key_len = trimmed(out->key, colon > out->key ? (size_t)(colon - out->key) : 0);
    out->value = colon + 1;
    while (out->value < text + len && (*out->value == ' ' || *out->value == '\t'))
        out->value++;
    out->value_len = (size_t)(text + len - out->value);
    return true;
}

static bool has_key(const struct line *l, const char *key)
{
    return l->key_len == strlen(key) && strncasecmp(l->key, key, l->key_len) == 0;
}

bool robots_txt_matches(const char *pattern, size_t len, const char *path)
{
    bool to_end = len > 0 && pattern[len - 1] == '$';
    size_t p = 0, star = SIZE_MAX;
    const char *from = path, *s = path;

    if (to_end)
        len--;
    for (;;) {
        if (p < len && pattern[p] == '*') {
            star = ++p;
            from = s;
        } else if (p < len && *s != '\0' && pattern[p] == *s) {
            p++;
            s++;
        } else if (p == len && (!to_end || *s == '\0')) {
            return true;
        } else if (star != SIZE_MAX && *from != '\0') {
            p = star;
            s = ++from;
        } else {
            return false;
        }
    }
}

/* What the groups of one agent say of a path. */
struct verdict {
    bool named; /* there is a group of the agent */
    bool allowed;
    size_t longest; /* of the rule that decided */
};

static void weigh(struct verdict *v, const struct line *l, const char *path)
{
    bool allow = has_key(l, "allow");

    if ((!allow && !has_key(l, "disallow")) || l->value_len == 0 ||
        !robots_txt_matches(l->value, l->value_len, path))
        return;
    if (l->value_len > v->longest || (l->value_len == v->longest && allow)) {
        v->longest = l->value_len;
        v->allowed = allow;
    }
}

static struct verdict judge(const char *text, const char *agent, const char *path)
{
    struct verdict v = {.allowed = true};
    bool naming = false, mine = false;
    struct line l;

    while (next_line(&text, &l)) {
        if (has_key(&l, "user-agent")) {
            if (!naming)
                mine = false;
            naming = true;
            if (l.value_len == strlen(agent) && strncasecmp(l.value, agent, l.value_len) == 0)
                mine = v.named = true;
        } else if (has_key(&l, "allow") || has_key(&l, "disallow")) {
            naming = false;
            if (mine)
                weigh(&v, &l, path);
        }
    }
    return v;
}

bool robots_txt_allows(const char *text, const char *agent, const char *path)
{
    struct verdict v = judge(text, agent, path);

    return v.named ? v.allowed : judge(text, "*", path).allowed;
}

size_t robots_txt_next_sitemap(const char **at, const char **value)
{
    size_t value_len;

    while (**at != '\0') {
        const char *line = *at;
        size_t len = strcspn(line, "\n");

        *at += len + (line[len] == '\n');
        if (robots_sitemap_line(line, len, value, &value_len) && value_len > 0)
            return value_len;
    }
    return 0;
}

/* robots.txt: whether it is there, names the index, and lets crawlers in. */

void visit_fetch_robots(struct visit *v, const struct url *of, struct visit_robots *out)
{
    char text[LOC_MAX_CHARS + 32];
    struct fetch_reply r;
    struct url url;
    unsigned hops;

    *out = (struct visit_robots){.text = STR_INIT};
    snprintf(out->origin, sizeof out->origin, "%.*s", of->origin_len, of->text);
    snprintf(text, sizeof text, "%s/robots.txt", out->origin);
    if (url_parse(text, strlen(text), &url, NULL) != RULE_OK)
        return;
    if (visit_follow(v, &url, "Accept-Encoding: identity\r\n", VISIT_MAX_ROBOTS, &r, &hops) ==
        FETCH_OK)
        out->status = r.status;
    if (out->status == 200)
        str_append(&out->text, r.body.data, r.body.len);
    v->no_memory = v->no_memory || out->text.failed;
    fetch_reply_done(&r);
}

const char *visit_forbidden(const struct visit_robots *robots, const struct url *url)
{
    static const struct {
        const char *agent, *name;
    } crawlers[] = {{"*", "all crawlers"}, {"googlebot", "Googlebot"}, {"bingbot", "Bingbot"}};
    const char *path = url->text + url->origin_len;

    for (size_t i = 0; i < sizeof crawlers / sizeof *crawlers; i++)
        if (!robots_txt_allows(str_text(&robots->text), crawlers[i].agent, path))
            return crawlers[i].name;
    return NULL;
}

/* The same page, its .gz form included: robots.txt names one of the two. */
static bool is_same_page(const char *named, const char *asked)
{
    size_t len = strlen(named);

    return strncmp(named, asked, len) == 0 &&
           (asked[len] == '\0' || strcmp(asked + len, ".gz") == 0);
}

/* What is compared: behind a proxy that ends TLS (--connect) the index is asked for by http and is
 * named, as its site is, by https. */
static const char *compared(const struct visit *v, const struct url *url)
{
    return v->options->connect != NULL ? url->text + strcspn(url->text, ":") : url->text;
}

bool visit_names_index(const struct visit *v, const struct visit_robots *robots)
{
    const char *at = str_text(&robots->text), *value;
    size_t len;
    struct url url;

    while ((len = robots_txt_next_sitemap(&at, &value)) > 0)
        if (url_parse(value, len, &url, NULL) == RULE_OK &&
            (is_same_page(compared(v, &url), compared(v, &v->url)) ||
             is_same_page(compared(v, &url), compared(v, v->options->url))))
            return true;
    return false;
}

/* ---- its Sitemap lines ------------------------------------------------------------------- */

struct named {
    const char *value;
    size_t len;
};

static int compare_named(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = memcmp(x->value, y->value, x->len < y->len ? x->len : y->len);

    if (order == 0)
        order = (x->len > y->len) - (x->len < y->len);
    return order != 0 ? order : (x->value > y->value) - (x->value < y->value);
}

static uint64_t line_of(const struct visit_robots *robots, const char *at)
{
    uint64_t line = 1;

    for (const char *c = str_text(&robots->text); c < at; c++)
        line += *c == '\n';
    return line;
}

static void say_line(struct visit *v, const char *code, const struct named *named, uint64_t count,
                     const char *todo, const char *why)
{
    char url[LOC_MAX_CHARS + 32], times[48] = "";
    const struct visit_about about = {
        .code = code,
        .url = url,
        .line = line_of(&v->robots, named->value),
        .count = count,
    };

    snprintf(url, sizeof url, "%s/robots.txt", v->robots.origin);
    if (count > 1)
        snprintf(times, sizeof times, "; %" PRIu64 " such lines in all", count);
    visit_tell(v, DOCTOR_WARNING, "robots", &about, todo,
               "%s: line %" PRIu64 ": Sitemap: %.*s %s%s", url, about.line,
               named->len < 500 ? (int)named->len : 500, named->value, why, times);
}

/* `all` is in order, and has `count`. The line of a double is that of its second one. */
static void judge_doubles(struct visit *v, const struct named *all, size_t count)
{
    const struct named *first = NULL;
    uint64_t doubles = 0;

    for (size_t i = 1; i < count; i++)
        if (all[i].len == all[i - 1].len &&
            memcmp(all[i].value, all[i - 1].value, all[i].len) == 0) {
            doubles++;
            if (first == NULL)
                first = &all[i];
        }
    if (first != NULL)
        say_line(v, "sitemap-line-doubled", first, doubles,
                 "name each index once: what is served at /robots.txt may join two files that both "
                 "name it",
                 "stands on an earlier line as well");
}

/* False where one of them is no good. */
static bool judge_lines(struct visit *v)
{
    const char *at = str_text(&v->robots.text);
    struct named named, first_bad = {0};
    struct named *all;
    size_t count = 0, lines = 0;
    uint64_t bad = 0;
    enum rule_code first_code = RULE_OK;
    unsigned warnings = v->counts[DOCTOR_WARNING];

    for (const char *c = at; *c != '\0'; c++)
        lines += *c == '\n';
    all = calloc(lines + 1, sizeof *all);
    if (all == NULL) {
        v->no_memory = true;
        return false;
    }
    while ((named.len = robots_txt_next_sitemap(&at, &named.value)) > 0) {
        struct url url;
        enum rule_code code = url_parse(named.value, named.len, &url, NULL);

        all[count++] = named;
        if (code != RULE_OK && bad++ == 0) {
            first_bad = named;
            first_code = code;
        }
    }
    qsort(all, count, sizeof *all, compare_named);
    if (bad > 0)
        say_line(v, rule_code_word(first_code), &first_bad, bad,
                 "write the whole URL of the index: crawlers resolve nothing here",
                 rule_code_sentence(first_code));
    judge_doubles(v, all, count);
    free(all);
    return v->counts[DOCTOR_WARNING] == warnings;
}

void visit_robots(struct visit *v)
{
    const char *forbidden;
    bool good;
    unsigned status;

    if (v->robots.origin[0] == '\0')
        visit_fetch_robots(v, &v->url, &v->robots);
    status = v->robots.status;
    if (status == 0 || status >= 500 || status == 429) {
        visit_tell(
            v, DOCTOR_WRONG, "robots", &(struct visit_about){.code = "robots-unreachable"},
            "make /robots.txt answer: while it fails, crawlers stay away from the whole site",
            "%s/robots.txt %s", v->robots.origin,
            status == 0 ? "cannot be fetched" : "answers with an error");
        return;
    }
    if (status != 200) {
        visit_tell(v, DOCTOR_WARNING, "robots", &(struct visit_about){.code = "robots-missing"},
                   "pass /robots.txt on to sitemapd, or write the Sitemap line into your own",
                   "%s/robots.txt answers %u: crawlers are not told of the index", v->robots.origin,
                   status);
        return;
    }
    forbidden = visit_forbidden(&v->robots, &v->url);
    if (forbidden != NULL)
        visit_tell(v, DOCTOR_WRONG, "robots", &(struct visit_about){.code = "robots-forbids"},
                   "take the Disallow off, or add an Allow for this path",
                   "it forbids the index to %s", forbidden);
    good = judge_lines(v);
    if (!visit_names_index(v, &v->robots))
        visit_tell(v, DOCTOR_WARNING, "robots", &(struct visit_about){.code = "index-not-named"},
                   "add a line to it: Sitemap: and the URL of the index",
                   "%s/robots.txt does not name %s", v->robots.origin, v->url.text);
    else if (forbidden == NULL && good)
        visit_say(v, DOCTOR_OK, "robots", NULL, "names the index, and lets crawlers in");
}
