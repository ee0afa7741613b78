/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The verifier is a frame (frame.h) whose handler is a text list (here) or a urlset
 * (sitemap_urlset.c). Both add what they read to one hash and one struct of pages, which give the
 * verdict at the end. */
#include "server/input/sitemap_file.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "server/base/text.h"
#include "server/input/content_coding.h"
#include "server/input/entry_validate.h"
#include "server/input/frame.h"
#include "server/input/html_page.h"
#include "server/input/sitemap_parts.h"
#include "server/rules/loc.h"
#include "server/rules/scope.h"
#include "server/rules/url.h"

/* ---- remarks ---- */

static struct sitemap_remark *find_remark(struct sitemap_remarks *r, enum rule_code code)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->at[i].code == code)
            return &r->at[i];
    return NULL;
}

/* Adds a place to the remark. `given` (may be NULL) is the text there, `len` bytes. */
static void sitemap_remarks_add(struct sitemap_remarks *r, enum rule_code code, uint64_t line,
                                uint64_t column, const char *given, size_t len)
{
    struct sitemap_remark *remark = find_remark(r, code);
    if (remark == NULL) {
        if (r->count == SITEMAP_MAX_REMARKS)
            return;
        remark = &r->at[r->count++];
        *remark = (struct sitemap_remark){.code = code, .column = column};
        if (given != NULL)
            entry_validate_quote(remark->given, sizeof remark->given, given, len);
    }
    if (remark->count < SITEMAP_REMARK_PLACES)
        remark->lines[remark->count] = line;
    remark->count++;
}

/* The sentence for a page in a sitemap, if that of the code is about an entry of an index. */
static const char *sentence(enum rule_code code, const char *given)
{
    switch (code) {
    case RULE_NAMESPACE:
        return given[0] != '\0' ? rule_code_sentence(code)
                                : "there is no namespace; accepted anyway";
    case RULE_OUTSIDE_SITE:
        return "is on another host than the sitemap and its site";
    case RULE_OUTSIDE_DIRECTORY:
        return "is not in the sitemap's directory or below it";
    case RULE_SCHEME_DIFFERS:
        return "has another scheme than the sitemap";
    case RULE_LASTMOD_FUTURE:
        return "is more than a day in the future";
    case RULE_LASTMOD_OLD:
        return "is 1970-01-01 or earlier, the date of an unset clock";
    case RULE_DUPLICATE: /* an alternate, or a field of news */
        return "occurs more than once, with different values";
    case RULE_LANGUAGE:
        return strncmp(given, "news.", 5) == 0
                   ? "must be two or three letters of ISO 639, or zh-cn or zh-tw"
                   : rule_code_sentence(code);
    case RULE_LASTMOD_INVALID:
        return "is not a W3C Datetime such as 2026-11-22 or 2026-11-22T08:30:00+01:00";
    default:
        return given[0] != '\0' ? explain_loc(code, given, strlen(given))
                                : rule_code_sentence(code);
    }
}

void sitemap_remark_report(const struct sitemap_remark *remark, char *out)
{
    size_t len, size = SITEMAP_REMARK_SENTENCE;
    if (remark->code == RULE_ONE_LASTMOD) {
        snprintf(out, size,
                 "all of its pages have the same lastmod, %s: probably the time of a build",
                 remark->given);
        return;
    }
    bool quoted = remark->given[0] != '\0';
    len = (size_t)snprintf(out, size, "%s%s%s%s", quoted ? "\"" : "", remark->given,
                           quoted ? "\" " : "", sentence(remark->code, remark->given));
    if (remark->count < 2)
        return;
    len += (size_t)snprintf(out + len, size - len, "; %" PRIu64 " in all", remark->count);
    for (size_t i = 1; i < SITEMAP_REMARK_PLACES && remark->lines[i] > 0; i++)
        if (remark->lines[i] != remark->lines[i - 1])
            len += (size_t)snprintf(out + len, size - len, "%s%" PRIu64,
                                    i == 1 ? ", also line " : ", ", remark->lines[i]);
}

void sitemap_remarks_write(const struct sitemap_remarks *r, char *out)
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < r->count; i++) {
        const struct sitemap_remark *remark = &r->at[i];
        len += (size_t)snprintf(out + len, SITEMAP_REMARKS_TEXT - len, "%s %" PRIu64 " %" PRIu64,
                                rule_code_word(remark->code), remark->count, remark->column);
        for (size_t place = 0; place < SITEMAP_REMARK_PLACES; place++)
            len += (size_t)snprintf(out + len, SITEMAP_REMARKS_TEXT - len, " %" PRIu64,
                                    remark->lines[place]);
        len += (size_t)snprintf(out + len, SITEMAP_REMARKS_TEXT - len, " %s\n", remark->given);
    }
}

static bool read_code(const char *word, enum rule_code *out)
{
    for (unsigned code = 0; code < RULE_CODE_COUNT; code++)
        if (strcmp(rule_code_word((enum rule_code)code), word) == 0) {
            *out = (enum rule_code)code;
            return true;
        }
    return false;
}

static bool read_one(const char *line, size_t len, struct sitemap_remark *out)
{
    char text[SITEMAP_REMARKS_TEXT], word[64];
    int given = 0;
    _Static_assert(SITEMAP_REMARK_PLACES == 3, "as many numbers are read");
    snprintf(text, sizeof text, "%.*s", (int)len, line);
    *out = (struct sitemap_remark){0};
    if (sscanf(text, "%63s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 "%n", word,
               &out->count, &out->column, &out->lines[0], &out->lines[1], &out->lines[2],
               &given) != 6)
        return false;
    if (text[given] == ' ')
        snprintf(out->given, sizeof out->given, "%s", text + given + 1);
    return read_code(word, &out->code);
}

void sitemap_remarks_read(const char *text, struct sitemap_remarks *out)
{
    out->count = 0;
    for (const char *at = text; *at != '\0' && out->count < SITEMAP_MAX_REMARKS;) {
        size_t len = strcspn(at, "\n");
        if (len < SITEMAP_REMARKS_TEXT && read_one(at, len, &out->at[out->count]))
            out->count++;
        at += len + (at[len] == '\n');
    }
}

/* ---- the hash of the content ---- */

#define STAGE_BYTES  4096u
#define HEADER_BYTES 5u /* the tag and the length */

/* Buffers fields, which are short (a tag's name, a date), to save calls of the library. */
struct hash_stream {
    XXH3_state_t *state;
    size_t staged;
    unsigned char stage[STAGE_BYTES];
};

struct sitemap_hash {
    struct hash_stream all, dateless;
};

static void sitemap_hash_free(struct sitemap_hash *h)
{
    if (h == NULL)
        return;
    XXH3_freeState(h->all.state);
    XXH3_freeState(h->dateless.state);
    free(h);
}

/* NULL when out of memory. */
static struct sitemap_hash *sitemap_hash_new(void)
{
    struct sitemap_hash *h = malloc(sizeof *h);
    if (h == NULL)
        return NULL;
    h->all.staged = h->dateless.staged = 0;
    h->all.state = XXH3_createState();
    h->dateless.state = XXH3_createState();
    if (h->all.state == NULL || h->dateless.state == NULL) {
        sitemap_hash_free(h);
        return NULL;
    }
    XXH3_128bits_reset(h->all.state);
    XXH3_128bits_reset(h->dateless.state);
    return h;
}

static void flush(struct hash_stream *h)
{
    XXH3_128bits_update(h->state, h->stage, h->staged);
    h->staged = 0;
}

static void add_field(struct hash_stream *h, enum sitemap_hash_tag tag, const char *bytes,
                      size_t len)
{
    if (h->staged + HEADER_BYTES + len > STAGE_BYTES)
        flush(h);
    unsigned char *at = h->stage + h->staged;
    at[0] = (unsigned char)tag;
    for (unsigned i = 0; i < 4; i++) /* no field has 4 GiB; fixed byte order */
        at[1 + i] = (unsigned char)(len >> (8 * i));
    h->staged += HEADER_BYTES;
    if (len > STAGE_BYTES - HEADER_BYTES) {
        flush(h);
        XXH3_128bits_update(h->state, bytes, len);
    } else if (len > 0) {
        memcpy(at + HEADER_BYTES, bytes, len);
        h->staged += len;
    }
}

void sitemap_hash_field(struct sitemap_hash *h, enum sitemap_hash_tag tag, const char *bytes,
                        size_t len)
{
    add_field(&h->all, tag, bytes, len);
    add_field(&h->dateless, tag, bytes, len);
}

void sitemap_hash_date(struct sitemap_hash *h, const char *bytes, size_t len)
{
    add_field(&h->all, HASH_TEXT, bytes, len);
}

struct attribute {
    const char *name, *value;
};

static int compare_attributes(const void *a, const void *b)
{
    const struct attribute *x = a, *y = b;
    return strcmp(x->name, y->name);
}

void sitemap_hash_attributes(struct sitemap_hash *h, const char **list)
{
    struct attribute *attributes = (struct attribute *)(void *)list;
    size_t count = 0;
    bool sorted = true;
    for (; attributes[count].name != NULL; count++)
        sorted = sorted &&
                 (count == 0 || compare_attributes(&attributes[count - 1], &attributes[count]) < 0);
    if (!sorted)
        qsort(attributes, count, sizeof *attributes, compare_attributes);
    for (size_t i = 0; i < count; i++) {
        const struct attribute *a = &attributes[i];
        sitemap_hash_field(h, HASH_ATTRIBUTE, a->name, strlen(a->name));
        sitemap_hash_field(h, HASH_VALUE, a->value, strlen(a->value));
    }
}

/* The hash of all fields so far, high half first. */
static void get_hash(struct hash_stream *h, uint64_t out[2])
{
    flush(h);
    XXH128_hash_t hash = XXH3_128bits_digest(h->state);
    out[0] = hash.high64;
    out[1] = hash.low64;
}

/* ---- pages ---- */

bool sitemap_work_add_page(struct sitemap_work *w, uint64_t line, uint64_t column)
{
    if (w->pages.urls == SITEMAP_FILE_MAX_URLS)
        return reader_state_fail(&w->core, READER_TOO_LARGE, "too-many-urls", line, column,
                                 "there are more than %u URLs", SITEMAP_FILE_MAX_URLS);
    w->pages.urls++;
    return true;
}

bool sitemap_work_other(struct sitemap_work *w, enum sitemap_file_kind kind, const char *code,
                        const char *format, ...)
{
    char why[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    w->kind = kind;
    return reader_state_fail(&w->core, READER_WRONG_KIND, code, 0, 0, "%s", why);
}

bool sitemap_work_page(struct sitemap_work *w, const char *head, size_t len)
{
    struct html_page page;
    char what[HTML_PAGE_WHAT];
    html_page_check(head, len, &page);
    html_page_describe(&page, what);
    const char *code = html_page_code(&page);
    return sitemap_work_other(w, code != NULL ? SITEMAP_FILE_WALL : SITEMAP_FILE_PAGE,
                              code != NULL ? code : "not-a-sitemap", "%s", what);
}

bool sitemap_pages_is_url(const char *text, size_t len)
{
    return (len > 7 && ascii_equals(text, 7, "http://")) ||
           (len > 8 && ascii_equals(text, 8, "https://"));
}

/* Initialises zeroed memory. `expect` is borrowed. */
static void sitemap_pages_init(struct sitemap_pages *p, const struct sitemap_expect *expect)
{
    const struct url *own = expect->url;
    p->expect = *expect;
    if (own != NULL)
        p->folder_len =
            own->origin_len + scope_directory_len(own->text + own->origin_len, own->path_len);
}

static void add_remark(struct sitemap_pages *p, enum rule_code code, struct place at,
                       const char *given, size_t len)
{
    sitemap_remarks_add(&p->remarks, code, at.line, at.column, given, len);
}

/* A host without a port matches any port, as everywhere in the registry. */
static bool is_host(const char *host, const struct url *url)
{
    size_t len = strlen(host);
    const char *at = url->text + url->host_at;
    size_t whole = url->origin_len - url->host_at;
    return (len == url->host_len || len == whole) && memcmp(host, at, len) == 0;
}

static bool expects_host(const struct sitemap_expect *expect, const struct url *page)
{
    const struct url *own = expect->url;
    const char *at = page->text + page->host_at;
    size_t len = page->origin_len - page->host_at;
    /* Default ports are dropped: http://h and https://h are one host of two schemes. */
    bool known = len == (size_t)(own->origin_len - own->host_at) &&
                 memcmp(at, own->text + own->host_at, len) == 0;
    for (size_t i = 0; i < expect->host_count && !known; i++)
        known = is_host(expect->hosts[i], page);
    return known;
}

static size_t www_len(const char *host, size_t len)
{
    return len > 4 && memcmp(host, "www.", 4) == 0 ? 4 : 0;
}

/* www.example.com, example.com and their ports are mostly one site, verified together. */
static bool is_twin(const struct url *a, const struct url *b)
{
    const char *at = a->text + a->host_at, *other = b->text + b->host_at;
    size_t skip = www_len(at, a->host_len), other_skip = www_len(other, b->host_len);
    size_t len = a->host_len - skip;
    return len == b->host_len - other_skip && memcmp(at + skip, other + other_skip, len) == 0;
}

/* The result for pages of an origin other than the file's. */
static enum rule_code check_origin(const struct sitemap_expect *expect, const struct url *page)
{
    return !expects_host(expect, page)         ? RULE_OUTSIDE_SITE
           : expect->url->https != page->https ? RULE_SCHEME_DIFFERS
                                               : RULE_OK;
}

/* The protocol's rule: a sitemap lists pages of its own host, scheme and directory. */
static void evaluate_place(struct sitemap_pages *p, struct place at, const struct url *url)
{
    const struct url *own = p->expect.url;
    enum rule_code code;
    if (own == NULL)
        return;
    if (url->len >= p->folder_len && memcmp(url->text, own->text, p->folder_len) == 0)
        return;
    if (url_same_origin(url, own)) {
        code = RULE_OUTSIDE_DIRECTORY;
    } else {
        bool same =
            p->other_len == url->origin_len && memcmp(p->other, url->text, url->origin_len) == 0;
        code = same ? p->other_code : check_origin(&p->expect, url);
        p->other_code = code;
        p->foreign += code == RULE_OUTSIDE_SITE && p->expect.host_count > 0 && !is_twin(url, own);
        p->other_len = url->origin_len <= sizeof p->other ? url->origin_len : 0;
        memcpy(p->other, url->text, p->other_len);
    }
    if (code != RULE_OK)
        add_remark(p, code, at, url->text, url->len);
}

enum rule_code sitemap_pages_loc(struct sitemap_pages *p, struct place at, const char *text,
                                 size_t len)
{
    struct url url;
    enum rule_code code = len == 0 ? RULE_LOC_MISSING : url_parse(text, len, &url, NULL);
    if (code == RULE_OK)
        evaluate_place(p, at, &url);
    else
        add_remark(p, code, at, text, len);
    return code;
}

void sitemap_pages_remark(struct sitemap_pages *p, struct place at, enum rule_code code,
                          const char *given, size_t len)
{
    add_remark(p, code, at, given, len);
}

enum rule_code sitemap_pages_refuse(struct sitemap_pages *p, struct place at, enum rule_code code)
{
    add_remark(p, code, at, NULL, 0);
    return code;
}

/* Faults that no crawler can repair to request the URL. Most crawlers repair others (a raw space, a
 * fragment, a name that is not ASCII). */
static bool is_useless(enum rule_code code)
{
    return code == RULE_LOC_MISSING || code == RULE_LOC_RELATIVE || code == RULE_LOC_SCHEME ||
           code == RULE_LOC_CONTROL;
}

void sitemap_pages_count(struct sitemap_pages *p, enum rule_code code)
{
    p->bad_urls += code != RULE_OK;
    p->useless += is_useless(code);
}

/* Reports the file as broken because none of its URLs is usable. Foreign hosts are reported first,
 * since they can be declared. */
static void sitemap_pages_refuse_all(const struct sitemap_pages *p, struct reader_state *core)
{
    char sentence[SITEMAP_REMARK_SENTENCE];
    bool foreign = p->foreign > 0;
    const struct sitemap_remark *first = p->remarks.at;
    for (size_t i = p->remarks.count; i-- > 0;)
        if (foreign ? p->remarks.at[i].code == RULE_OUTSIDE_SITE
                    : is_useless(p->remarks.at[i].code))
            first = &p->remarks.at[i];
    char urls[48] = "its one URL cannot";
    if (p->urls > 1)
        snprintf(urls, sizeof urls, "none of its %" PRIu64 " URLs can", p->urls);
    sitemap_remark_report(first, sentence);
    reader_state_fail(core, READER_MALFORMED, foreign ? "outside-site" : "no-usable-url",
                      first->lines[0], first->column, "%s be used: %s", urls, sentence);
}

void sitemap_pages_namespace(struct sitemap_pages *p, struct place at, const char *name,
                             const char *local)
{
    size_t len = local > name ? (size_t)(local - name) - 1 : 0; /* without the separator */
    add_remark(p, RULE_NAMESPACE, at, len > 0 ? name : NULL, len);
}

/* The digits after the point of a stored lastmod. */
static size_t fraction(const char *text, const char **digits)
{
    const char *point = strchr(text, '.');
    *digits = point != NULL ? point + 1 : "";
    return strspn(*digits, "0123456789");
}

/* Within one second the fractions decide: 0.5 is later than 0.25, and equal to 0.50. */
static bool is_later(const struct lastmod *a, const struct lastmod *b)
{
    if (a->unix_seconds != b->unix_seconds)
        return a->unix_seconds > b->unix_seconds;
    const char *x, *y;
    size_t x_len = fraction(a->text, &x), y_len = fraction(b->text, &y);
    for (size_t i = 0; i < LASTMOD_FRACTION_DIGITS; i++) {
        char c = i < x_len ? x[i] : '0', d = i < y_len ? y[i] : '0';
        if (c != d)
            return c > d;
    }
    return false;
}

static void read_lastmod(struct sitemap_pages *p, const char *text, size_t len)
{
    struct lastmod found;
    p->one_code = lastmod_parse(text, len, p->expect.now, &found, NULL);
    if (p->one_code == RULE_OK && lastmod_is_too_old(found.text))
        p->one_code = RULE_LASTMOD_OLD;
    if (p->one_code != RULE_OK)
        return;
    if (p->dated > 0 && strcmp(found.text, p->one.text) != 0)
        p->lastmods_differ = true;
    if (p->dated == 0 || is_later(&found, &p->newest))
        p->newest = found;
    p->one = found;
}

void sitemap_pages_lastmod(struct sitemap_pages *p, struct place at, const char *text, size_t len)
{
    bool same = len > 0 && len == p->given_len && memcmp(text, p->given, len) == 0;
    if (!same) {
        read_lastmod(p, text, len);
        p->given_len = len <= sizeof p->given ? len : 0;
        if (p->given_len > 0)
            memcpy(p->given, text, len);
    }
    if (p->one_code == RULE_OK)
        p->dated++;
    else if (len > 0) /* <lastmod/> counts as missing */
        add_remark(p, p->one_code, at, text, len);
}

/* See struct sitemap_file. */
static bool sitemap_pages_one_lastmod(const struct sitemap_pages *p)
{
    return p->urls > 1 && p->dated == p->urls && !p->lastmods_differ;
}

/* Two pages may be saved in the same second, and all news of a day may have the same date. */
static bool sitemap_pages_stamp(const struct sitemap_pages *p)
{
    bool day = strchr(p->one.text, 'T') == NULL;
    return sitemap_pages_one_lastmod(p) && p->urls > 2 && !(day && p->news == p->urls);
}

/* ---- a text list ---- */

_Static_assert(SITEMAP_FILE_MAX_TEXT < READER_MAX_ITEM_BYTES, "lines holds the longest line");

/* Whether a text only begins with a URL (a note, a CSV export) and is not a list. */
static bool is_prose(const struct sitemap_work *w)
{
    return 2 * w->strange > w->pages.urls;
}

static bool refuse_prose(struct sitemap_work *w)
{
    w->no_xml = true;
    return sitemap_work_other(w, SITEMAP_FILE_OTHER, "not-a-sitemap",
                              "text that is not a list of URLs, one per line");
}

/* Refuses a line that is too long, if the text is a list. */
static bool refuse_long(struct sitemap_work *w, uint64_t line)
{
    if (is_prose(w))
        return refuse_prose(w);
    return reader_state_fail(&w->core, READER_TOO_LARGE, "text-too-long", line, 1,
                             "a line is longer than %u bytes", SITEMAP_FILE_MAX_TEXT);
}

static bool check_line(void *context, const struct line *line)
{
    struct sitemap_work *w = context;
    struct sitemap_pages *pages = &w->pages;
    size_t skip = detect_space(line->text, line->len);
    const char *text = line->text + skip;
    size_t len = line->len - skip;
    len -= detect_space_behind(text, len);
    if (memchr(line->text, '\0', line->len) != NULL)
        return reader_state_fail(&w->core, READER_MALFORMED, "not-text", line->number, 1,
                                 "has a NUL byte");
    if (line->len > SITEMAP_FILE_MAX_TEXT)
        return refuse_long(w, line->number);
    if (len == 0)
        return true;
    if (pages->urls == SITEMAP_FILE_MAX_URLS && is_prose(w))
        return refuse_prose(w);
    if (!sitemap_work_add_page(w, line->number, 1))
        return false;
    sitemap_hash_field(w->hash, HASH_LINE, text, len);
    struct place at = {line->number, skip + 1};
    sitemap_pages_count(pages, sitemap_pages_loc(pages, at, text, len));
    if (!sitemap_pages_is_url(text, len) || detect_table(text, len))
        w->strange++;
    return true;
}

static bool list_finish(void *self)
{
    struct lines *lines = self;
    struct sitemap_work *w = lines->context;
    if (!lines_finish(lines))
        return false;
    return !is_prose(w) || refuse_prose(w);
}

static const struct handler list_handler = {lines_feed, list_finish, free};

/* ---- the verifier ---- */

/* Markup is repetitive: a sitemap in forty languages is 100 times larger than its gzip form. The
 * maximum of deflate is 1032, for repetitions of one byte. */
#define MAX_RATIO 500u

struct sitemap_verifier {
    struct sitemap_work work;
    struct frame frame;
};

/* Detects the forms of HTML that certainly are a page. */
static bool detect_page(const char *head, size_t len)
{
    return detect_html(head, len) && memmem(head, len, "<body", 5) != NULL;
}

static bool is_wide(const char *text, size_t len)
{
    return detect_utf16(text, len) ||
           (len >= 2 && (memcmp(text, "<\0", 2) == 0 || memcmp(text, "\0<", 2) == 0));
}

/* The name of an encoding in which "<" or "<?xml" is written that expat does not read; NULL: none.
 */
static const char *foreign_encoding(const char *text, size_t len)
{
    static const char *const utf32[] = {"\0\0\xfe\xff", "\xff\xfe\0\0", "\0\0\0<", "<\0\0\0"};
    for (size_t i = 0; len >= 4 && i < sizeof utf32 / sizeof *utf32; i++)
        if (memcmp(text, utf32[i], 4) == 0)
            return "UTF-32";
    return len >= 5 && memcmp(text, "\x4c\x6f\xa7\x94\x93", 5) == 0 ? "EBCDIC" : NULL;
}

static bool is_declaration(const char *text, size_t len)
{
    return len > 5 && memcmp(text, "<?xml", 5) == 0 && detect_space(text + 5, 1) == 1;
}

static bool refuse_head(struct sitemap_verifier *v, const char *code, const char *why)
{
    return reader_state_fail(&v->work.core, READER_MALFORMED, code, v->frame.place.line,
                             v->frame.place.column, "%s", why);
}

/* Whether the content of the gzip layer, or of the only content coding, is gzip again. */
static bool is_packed_twice(const struct sitemap_verifier *v, const char *head, size_t len)
{
    return detect_gzip(head, len) || (v->frame.codings > 0 && frame_is_gzip(&v->frame) &&
                                      v->work.pages.expect.packing == SITEMAP_PACKING_PLAIN);
}

static bool refuse_line(struct sitemap_verifier *v, const char *head, const char *line, size_t len)
{
    struct place at = v->frame.place;
    char shown[48];
    place_advance(&at, head, (size_t)(line - head));
    entry_validate_quote(shown, sizeof shown, line, len);
    return reader_state_fail(
        &v->work.core, READER_MALFORMED, "malformed-list", at.line, at.column,
        "\"%s\" is not a URL: each line of a text sitemap must be a URL and nothing more", shown);
}

/* Text in Latin-1 has only a few letters that are not UTF-8. */
static bool is_mostly_utf8(const char *head, size_t len)
{
    size_t bad = 0;
    for (size_t at = 0, step; at<len; at += step> 0 ? step : 1) {
        step = utf8_char_len(head + at, len - at);
        bad += step == 0;
    }
    return bad * 10 <= len;
}

/* Reports a file that is neither XML nor a list. */
static bool refuse_other(struct sitemap_verifier *v, const char *head, size_t len)
{
    struct sitemap_work *w = &v->work;
    bool binary = detect_binary(head, len) || !is_mostly_utf8(head, len);
    const char *format = detect_format(head, len);
    const char *what = format != NULL ? format
                       : binary       ? "binary data"
                                      : "text, but not a list of URLs";
    char why[96];
    if (*head == '\0')
        return refuse_head(v, "not-text", "begins with a NUL byte");
    if (w->pages.expect.packing == SITEMAP_PACKING_GZIP && !frame_is_gzip(&v->frame)) {
        snprintf(why, sizeof why, "is named .gz, but is %s: crawlers cannot decompress it", what);
        return refuse_head(v, "not-gzip", why);
    }
    w->no_xml = !binary && format == NULL;
    return sitemap_work_other(w, SITEMAP_FILE_OTHER, "not-a-sitemap", "%s", what);
}

/* Handles a file that begins neither like a URL nor like XML. */
static bool evaluate_text(struct sitemap_verifier *v, const char *head, size_t len)
{
    const char *line;
    size_t line_len;
    if (!detect_binary(head, len) && detect_list(head, len, &line, &line_len))
        return refuse_line(v, head, line, line_len);
    return refuse_other(v, head, len);
}

/* Determines the form of the file by its head. */
static bool open_form(void *context, const char *head, size_t len)
{
    struct sitemap_verifier *v = context;
    struct sitemap_work *w = &v->work;
    struct frame *f = &v->frame;
    enum sitemap_start start = START_PLAIN;
    size_t stray, root;
    if (w->core.bytes == 0)
        return reader_state_fail(&w->core, READER_MALFORMED, "empty-file", 0, 0,
                                 "is empty: nothing was written to it, or not yet");
    if (len == 0) /* only white space */
        return true;
    if (is_packed_twice(v, head, len))
        return reader_state_fail(&w->core, READER_MALFORMED, "packed-twice", 0, 0,
                                 "is compressed twice: crawlers unpack it once");
    const char *encoding = foreign_encoding(head, len);
    if (encoding != NULL)
        return reader_state_fail(&w->core, READER_MALFORMED, "not-utf8", 1, 1,
                                 "is encoded in %s; a sitemap must be UTF-8", encoding);
    stray = detect_stray(head, len, &root);
    if (stray != SIZE_MAX && !detect_page(head, len))
        return detect_refuse_stray(f, head, stray, root);
    if (detect_wide_text(head, len))
        return refuse_head(v, "not-utf8", "is text in UTF-16; a sitemap must be UTF-8");
    if (is_wide(head, len)) {
        start = START_WIDE;
    } else if (sitemap_pages_is_url(head, len)) {
        sitemap_hash_field(w->hash, HASH_LIST, "", 0);
        return frame_use(f, &list_handler, lines_new(check_line, w, f->place.line));
    } else if (detect_html(head, len)) {
        return sitemap_work_page(w, head, len);
    } else if (*head != '<') {
        return evaluate_text(v, head, len);
    } else if (is_declaration(head, len)) {
        bool first = f->place.line == 1 && f->place.column == 1;
        start = first ? START_DECLARED : START_LATE;
    }
    return sitemap_urlset_open(f, w, start, detect_urlset(head, len));
}

struct sitemap_verifier *sitemap_verifier_new(const struct sitemap_expect *expect)
{
    struct sitemap_verifier *v = calloc(1, sizeof *v);
    if (v == NULL)
        return NULL;
    v->work.hash = sitemap_hash_new();
    if (v->work.hash == NULL) {
        free(v);
        return NULL;
    }
    sitemap_pages_init(&v->work.pages, expect);
    v->work.core.options = (struct reader_options){.allow_gzip = true,
                                                   .max_bytes = SITEMAP_FILE_MAX_BYTES,
                                                   .max_ratio = MAX_RATIO,
                                                   .map = expect->map};
    frame_init(&v->frame, &v->work.core, open_form, v);
    v->frame.too_large = "file-too-large";
    return v;
}

void sitemap_verifier_free(struct sitemap_verifier *v)
{
    if (v == NULL)
        return;
    frame_done(&v->frame);
    sitemap_hash_free(v->work.hash);
    free(v);
}

static bool is_gzip_type(const char *content_type)
{
    size_t len = content_type != NULL ? strcspn(content_type, "; \t") : 0;
    return ascii_equals(content_type, len, "application/gzip") ||
           ascii_equals(content_type, len, "application/x-gzip");
}

/* A .gz with Content-Encoding: gzip may be plain after decoding, or still packed. */
enum sitemap_packing sitemap_packing_reported(enum sitemap_packing name,
                                              const char *content_encoding,
                                              const char *content_type)
{
    struct content_coding coding;
    content_coding_read(content_encoding, &coding);
    bool declared = (name == SITEMAP_PACKING_GZIP && coding.gzip > 0) ||
                    (name == SITEMAP_PACKING_PLAIN && is_gzip_type(content_type));
    return declared ? SITEMAP_PACKING_ANY : name;
}

void sitemap_verifier_head(struct sitemap_verifier *v, const char *content_encoding,
                           const char *content_type)
{
    struct sitemap_pages *pages = &v->work.pages;
    struct content_coding coding;
    content_coding_read(content_encoding, &coding);
    frame_set_codings(&v->frame, coding.gzip);
    pages->expect.packing =
        sitemap_packing_reported(pages->expect.packing, content_encoding, content_type);
    if (coding.unreadable)
        reader_state_fail(&v->work.core, READER_MALFORMED, "encoding", 0, 0,
                          "has Content-Encoding: %s, which was not requested", coding.word);
    else if (coding.odd)
        sitemap_remarks_add(&pages->remarks, RULE_ENCODING_ODD, 0, 0, coding.word,
                            strlen(coding.word));
}

bool sitemap_file_has_code(const char *word)
{
    static const char *const words[] = {
        "empty",         "empty-file",     "nested-index",  "not-a-sitemap",    "bot-wall",
        "malformed-xml", "malformed-list", "truncated",     "wrong-namespace",  "doctype",
        "too-many-urls", "file-too-large", "text-too-long", "nesting-too-deep", "not-utf8",
        "not-text",      "not-gzip",       "packed-twice",  "malformed-gzip",   "gzip-bomb",
        "no-usable-url", "outside-site",   "encoding",      "maintenance-page",
    };
    for (size_t i = 0; word != NULL && i < sizeof words / sizeof words[0]; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

enum sitemap_packing sitemap_packing_of(const char *path, size_t len)
{
    return len > 3 && ascii_equals(path + len - 3, 3, ".gz") ? SITEMAP_PACKING_GZIP
                                                             : SITEMAP_PACKING_PLAIN;
}

void sitemap_verifier_copy(struct sitemap_verifier *v,
                           void (*copy)(void *context, const char *bytes, size_t len),
                           void *context)
{
    v->frame.copy = copy;
    v->frame.copy_context = context;
}

bool sitemap_verifier_feed(struct sitemap_verifier *v, const void *bytes, size_t len)
{
    return frame_feed(&v->frame, bytes, len);
}

/* Reports a well-formed sitemap that is useless for crawlers. */
static void check_use(struct sitemap_verifier *v)
{
    const struct sitemap_pages *pages = &v->work.pages;
    if (pages->expect.packing == SITEMAP_PACKING_GZIP && !frame_is_gzip(&v->frame))
        reader_state_fail(&v->work.core, READER_MALFORMED, "not-gzip", 0, 0,
                          "is named .gz, but is not gzip: crawlers cannot decompress it");
    else if (pages->urls > 0 && pages->useless + pages->foreign == pages->urls)
        sitemap_pages_refuse_all(pages, &v->work.core);
}

static void report_content(struct sitemap_verifier *v, struct sitemap_file *out)
{
    struct sitemap_pages *pages = &v->work.pages;
    if (pages->expect.packing == SITEMAP_PACKING_PLAIN && frame_is_gzip(&v->frame))
        sitemap_remarks_add(&pages->remarks, RULE_GZIP_UNMARKED, 0, 0, NULL, 0);
    out->kind = pages->urls == 0                    ? SITEMAP_FILE_EMPTY
                : v->work.feed                      ? SITEMAP_FILE_FEED
                : v->frame.handler != &list_handler ? SITEMAP_FILE_URLSET
                                                    : SITEMAP_FILE_TEXT;
    if (out->kind == SITEMAP_FILE_EMPTY) {
        out->code = "empty";
        snprintf(out->detail, sizeof out->detail, "a %s without URLs",
                 v->work.feed ? "feed" : "sitemap");
    }
    out->urls = pages->urls;
    out->bad_urls = pages->bad_urls;
    out->one_lastmod = sitemap_pages_one_lastmod(pages);
    out->stamp = sitemap_pages_stamp(pages);
    if (out->stamp)
        sitemap_remarks_add(&pages->remarks, RULE_ONE_LASTMOD, 0, 0, pages->one.text,
                            strlen(pages->one.text));
    memcpy(out->newest_lastmod, pages->newest.text, sizeof out->newest_lastmod);
    get_hash(&v->work.hash->all, out->hash);
    get_hash(&v->work.hash->dateless, out->dateless);
}

static void report_fault(const struct reader_error *error, struct sitemap_file *out)
{
    out->code = error->code;
    out->line = error->line;
    out->column = error->column;
    snprintf(out->detail, sizeof out->detail, "%.*s", (int)sizeof out->detail - 1, error->detail);
}

bool sitemap_verifier_finish(struct sitemap_verifier *v, struct sitemap_file *out)
{
    const struct reader_error *error = &v->work.core.error;
    if (!v->frame.finished && frame_finish(&v->frame))
        check_use(v);
    if (error->status == READER_NO_MEMORY)
        return false;
    *out = (struct sitemap_file){
        .gzip = frame_is_gzip(&v->frame), .bytes = v->work.core.bytes, .code = ""};
    out->no_xml = v->work.no_xml;
    out->feed = v->work.feed;
    if (error->status == READER_OK) {
        report_content(v, out);
    } else {
        out->kind = error->status == READER_WRONG_KIND ? v->work.kind : SITEMAP_FILE_BROKEN;
        report_fault(error, out);
    }
    if (error->status != READER_WRONG_KIND)
        out->remarks = v->work.pages.remarks;
    return true;
}
