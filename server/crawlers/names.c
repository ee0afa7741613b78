/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Two halves: address ranges, read from files and searched for the address of a client that says it
 * is a crawler; and names, found by the product tokens in a User-Agent: one pass over its words, a
 * hash lookup for each. */
#include "server/crawlers/names.h"

#include <errno.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "server/base/address_range.h"
#include "server/base/file.h"

/* Reads files of address ranges, sorts them, and finds an address by binary search. */

/* A file is accepted as a whole or not at all: with half a list, real crawlers would count as
 * impostors. */

/* Wider ranges are a mistake in the file: any client would be verified. */
#define LEAST_BITS_4 (96u + 8u)
#define LEAST_BITS_6 16u
#define LINE_MAX     128u

/* "192.0.2.0/24"; bits after the prefix are ignored. NULL, or what is wrong. */
static const char *parse_range(const char *text, struct range *out)
{
    bool v4 = strchr(text, ':') == NULL;
    struct address_range range;

    if (!address_range_parse(text, &range))
        return "is not an address or range";
    if (range.bits < (v4 ? LEAST_BITS_4 : LEAST_BITS_6))
        return "is wider than the range of any crawler";
    memcpy(out->first, range.bytes, sizeof out->first);
    memcpy(out->last, range.bytes, sizeof out->last);
    for (unsigned i = range.bits; i < 128; i++) {
        uint8_t bit = (uint8_t)(0x80u >> (i % 8));
        out->first[i / 8] &= (uint8_t)~bit;
        out->last[i / 8] |= bit;
    }
    return NULL;
}

static bool add_range(struct ranges *r, const char *text, size_t most, char *why, size_t why_size)
{
    struct range range;
    const char *fault = parse_range(text, &range);

    if (fault != NULL) {
        snprintf(why, why_size, "\"%.60s\" %s", text, fault);
        return false;
    }
    if (r->count >= most) {
        snprintf(why, why_size, "there are more than %u ranges", RANGES_MAX);
        return false;
    }
    if (r->count == r->room) {
        size_t room = r->room == 0 ? 64 : r->room * 2;
        struct range *of = reallocarray(r->of, room, sizeof *of);
        if (of == NULL) {
            snprintf(why, why_size, "out of memory");
            return false;
        }
        r->of = of;
        r->room = room;
    }
    r->of[r->count++] = range;
    return true;
}

static bool parse_json(struct ranges *r, const char *text, size_t len, size_t most, char *why,
                       size_t why_size)
{
    json_error_t error;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error), *element;
    const json_t *prefixes = json_object_get(root, "prefixes");
    bool good = true;
    size_t i;

    if (root == NULL) {
        snprintf(why, why_size, "line %d: %.100s", error.line, error.text);
        return false;
    }
    if (!json_is_array(prefixes)) {
        snprintf(why, why_size, "has no list \"prefixes\"");
        good = false;
    }
    for (i = 0; good && i < json_array_size(prefixes); i++) {
        element = json_array_get(prefixes, i);
        const char *four = json_string_value(json_object_get(element, "ipv4Prefix"));
        const char *six = json_string_value(json_object_get(element, "ipv6Prefix"));
        if (four == NULL && six == NULL) {
            snprintf(why, why_size, "element %zu of \"prefixes\" has no ipv4Prefix or ipv6Prefix",
                     i);
            good = false;
        }
        good = good && (four == NULL || add_range(r, four, most, why, why_size)) &&
               (six == NULL || add_range(r, six, most, why, why_size));
    }
    json_decref(root);
    return good;
}

static bool parse_line(struct ranges *r, const char *text, size_t len, size_t most, char *why,
                       size_t why_size)
{
    char line[LINE_MAX];
    const char *comment = memchr(text, '#', len);

    if (comment != NULL)
        len = (size_t)(comment - text);
    while (len > 0 && strchr(" \t\r", *text) != NULL && *text != '\0')
        text++, len--;
    while (len > 0 && strchr(" \t\r", text[len - 1]) != NULL && text[len - 1] != '\0')
        len--;
    if (len == 0)
        return true;
    if (len >= sizeof line || memchr(text, '\0', len) != NULL) {
        snprintf(why, why_size, "has a line that is not an address or range");
        return false;
    }
    memcpy(line, text, len);
    line[len] = '\0';
    return add_range(r, line, most, why, why_size);
}

bool ranges_parse(struct ranges *r, const char *text, size_t len, size_t most, char *why,
                  size_t why_size)
{
    size_t before = r->count, at = 0;
    bool good = true;

    while (at < len &&
           (text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n'))
        at++;
    if (at < len && text[at] == '{') {
        good = parse_json(r, text, len, most, why, why_size);
    } else {
        while (good && at < len) {
            const char *end = memchr(text + at, '\n', len - at);
            size_t line = end == NULL ? len - at : (size_t)(end - text) - at;
            good = parse_line(r, text + at, line, most, why, why_size);
            at += line + 1;
        }
    }
    if (good && r->count == before) {
        snprintf(why, why_size, "contains no range");
        good = false;
    }
    if (!good)
        r->count = before;
    return good;
}

bool ranges_read(struct ranges *r, const char *path, size_t most, char *why, size_t why_size)
{
    size_t len;
    char *text = file_read(path, FILE_PLAIN, RANGES_MAX_FILE_BYTES + 1, &len, NULL);
    bool good = false;

    if (text == NULL)
        snprintf(why, why_size, "cannot be read: %s", strerror(errno));
    else if (len > RANGES_MAX_FILE_BYTES)
        snprintf(why, why_size, "is larger than %u bytes", RANGES_MAX_FILE_BYTES);
    else
        good = ranges_parse(r, text, len, most, why, why_size);
    free(text);
    return good;
}

static int compare_ranges(const void *a, const void *b)
{
    return memcmp(((const struct range *)a)->first, ((const struct range *)b)->first, 16);
}

void ranges_seal(struct ranges *r)
{
    size_t kept = 0;

    if (r->count > 0)
        qsort(r->of, r->count, sizeof *r->of, compare_ranges);
    for (size_t i = 0; i < r->count; i++) {
        if (kept > 0 && memcmp(r->of[i].first, r->of[kept - 1].last, 16) <= 0) {
            if (memcmp(r->of[i].last, r->of[kept - 1].last, 16) > 0)
                memcpy(r->of[kept - 1].last, r->of[i].last, 16);
        } else {
            r->of[kept++] = r->of[i];
        }
    }
    r->count = kept;
}

bool ranges_hold(const struct ranges *r, const char *address)
{
    uint8_t bytes[16];
    size_t from = 0, to = r->count;

    if (!address_bytes(address, bytes))
        return false;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (memcmp(r->of[middle].last, bytes, 16) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from < r->count && memcmp(r->of[from].first, bytes, 16) <= 0;
}

void ranges_done(struct ranges *r)
{
    free(r->of);
    *r = (struct ranges){0};
}

/* A crawler is recognised by its product token (RFC 9110 10.1.5) wherever a word begins, in upper
 * or lower case: most crawlers write it into a comment of a browser's User-Agent. No letter or
 * digit may follow, so Googlebot-Image counts as Googlebot and Googlebots does not. No word begins
 * after a slash, dot, @, hyphen or underscore, as in addresses of the crawlers' pages. The first
 * token in the field counts; of two at the same place, the longer one.
 *
 * The same few User-Agents are sent again and again: a cache remembers 1,024 of them, whole, with
 * the result. A hash alone would not do: a client that finds two texts with one hash could have
 * other crawlers counted under a name of its choice. An item of the cache that another thread is
 * using is skipped. */

#define FIELD_MAX   1024u /* bytes of a User-Agent that are read */
#define TOKENS_MAX  512u
#define TOKEN_MAX   64u
#define CACHE_SLOTS 1024u
#define CACHED_MAX  252u /* bytes of a field that is remembered */

struct token {
    char text[TOKEN_MAX + 1]; /* lower case */
    size_t len;
    uint8_t name;
};

struct cached {
    atomic_flag busy;  /* by the thread that reads or writes it */
    uint8_t name, len; /* len 0: none is here */
    char field[CACHED_MAX + 1];
};

struct crawler_names {
    size_t count, token_count;
    struct crawler_name of[CRAWLERS_MAX];
    struct token tokens[TOKENS_MAX];
    bool begins[256]; /* a token does, with this byte in lower case */
    struct cached cache[CACHE_SLOTS];
};

static const struct {
    const char *name, *tokens[4]; /* the last is NULL */
} built_in[] = {
    {"googlebot", {"googlebot", "google-inspectiontool"}},
    {"googleother", {"googleother"}},
    {"google-cloudvertexbot", {"google-cloudvertexbot"}},
    {"adsbot-google", {"adsbot-google", "mediapartners-google", "apis-google"}},
    {"feedfetcher-google", {"feedfetcher-google", "google-read-aloud", "google-site-verification"}},
    {"google-agent", {"google-agent"}},
    {"bingbot", {"bingbot"}},
    {"yandexbot", {"yandexbot"}},
    {"baiduspider", {"baiduspider"}},
    {"duckduckbot", {"duckduckbot"}},
    {"duckassistbot", {"duckassistbot"}},
    {"applebot", {"applebot"}},
    {"seznambot", {"seznambot"}},
    {"yeti", {"yeti"}},
    {"petalbot", {"petalbot"}},
    {"gptbot", {"gptbot"}},
    {"oai-searchbot", {"oai-searchbot"}},
    {"chatgpt-user", {"chatgpt-user"}},
    {"claudebot", {"claudebot"}},
    {"claude-searchbot", {"claude-searchbot"}},
    {"claude-user", {"claude-user"}},
    {"perplexitybot", {"perplexitybot"}},
    {"perplexity-user", {"perplexity-user"}},
    {"mistralai-user", {"mistralai-user"}},
    {"amazonbot", {"amazonbot"}},
    {"meta-externalagent", {"meta-externalagent"}},
    {"ccbot", {"ccbot"}},
    {"bytespider", {"bytespider"}},
    {"ahrefsbot", {"ahrefsbot"}},
    {"semrushbot", {"semrushbot"}},
    /* Caches that send their own name instead of the client's User-Agent. */
    {"cache", {"amazon cloudfront", "cloudflare-alwaysonline"}},
};
#define BUILT_IN (sizeof built_in / sizeof *built_in)

size_t names_count(const struct crawler_names *names)
{
    return names->count;
}

struct crawler_name *names_at(struct crawler_names *names, size_t at)
{
    return &names->of[at];
}

/* ---- creation ---------------------------------------------------------------------------- */

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

static bool add_token(struct crawler_names *names, size_t name, const char *text, char *why,
                      size_t why_size)
{
    size_t len = strlen(text);
    struct token *token = &names->tokens[names->token_count];

    if (len < 2 || len > TOKEN_MAX || names->token_count == TOKENS_MAX) {
        snprintf(why, why_size,
                 len < 2           ? "match %.70s: a token needs at least 2 characters"
                 : len > TOKEN_MAX ? "match %.70s: a token may have at most 64 characters"
                                   : "match %.70s: there are too many tokens",
                 text);
        return false;
    }
    for (size_t i = 0; i <= len; i++)
        token->text[i] = (char)lower(text[i]);
    token->len = len;
    token->name = (uint8_t)name;
    names->begins[(unsigned char)token->text[0]] = true;
    names->token_count++;
    return true;
}

static struct crawler_name *add_name(struct crawler_names *names, const char *text)
{
    struct crawler_name *name = &names->of[names->count++];
    snprintf(name->text, sizeof name->text, "%s", text);
    return name;
}

static bool add_built_in(struct crawler_names *names, size_t name, size_t which, char *why,
                         size_t why_size)
{
    for (const char *const *token = built_in[which].tokens; *token != NULL; token++)
        if (!add_token(names, name, *token, why, why_size))
            return false;
    return true;
}

static size_t find_built_in(const char *name)
{
    size_t i = 0;
    while (i < BUILT_IN && strcmp(built_in[i].name, name) != 0)
        i++;
    return i;
}

/* Adds a crawler of the configuration: its tokens, or the built-in ones, and its ranges. */
static bool add_rule(struct crawler_names *names, const struct crawler_rule *rule, size_t *ranges,
                     char *why, size_t why_size)
{
    size_t at = names->count, which = find_built_in(rule->name);
    char fault[200];

    if (names->count == CRAWLERS_MAX || strlen(rule->name) > CRAWLER_NAME_MAX ||
        strcmp(rule->name, "other") == 0) {
        snprintf(why, why_size, "%s",
                 names->count == CRAWLERS_MAX ? "there are too many crawlers"
                 : strlen(rule->name) > CRAWLER_NAME_MAX
                     ? "a crawler's name may have at most 32 characters"
                     : "the name \"other\" is reserved");
        return false;
    }
    struct crawler_name *name = add_name(names, rule->name);
    if (rule->match_count == 0 && which == BUILT_IN) {
        snprintf(why, why_size, "match is missing, such as match = Examplebot");
        return false;
    }
    if (rule->match_count == 0 && !add_built_in(names, at, which, why, why_size))
        return false;
    for (size_t i = 0; i < rule->match_count; i++)
        if (!add_token(names, at, rule->match[i], why, why_size))
            return false;
    for (size_t i = 0; i < rule->range_file_count; i++) {
        if (!ranges_read(&name->ranges, rule->range_files[i], RANGES_MAX - *ranges, fault,
                         sizeof fault)) {
            snprintf(why, why_size, "ranges %.200s: %s", rule->range_files[i], fault);
            return false;
        }
        name->has_ranges = true;
    }
    *ranges += name->ranges.count;
    ranges_seal(&name->ranges);
    return true;
}

struct crawler_names *crawler_names_new(const struct crawler_rule *rules, size_t count,
                                        const char **which, char *why, size_t why_size)
{
    struct crawler_names *names = calloc(1, sizeof *names);
    size_t ranges = 0;

    *which = NULL;
    snprintf(why, why_size, "out of memory");
    if (names == NULL)
        return NULL;
    add_name(names, "other");
    /* Those of the configuration first: if two names have the same token, the first one counts. */
    for (size_t i = 0; i < count; i++) {
        *which = rules[i].name;
        if (!add_rule(names, &rules[i], &ranges, why, why_size))
            goto failed;
    }
    for (size_t i = 0; i < BUILT_IN; i++) {
        bool replaced = false;
        for (size_t k = 0; k < count; k++)
            replaced |= strcmp(rules[k].name, built_in[i].name) == 0;
        if (replaced)
            continue;
        *which = built_in[i].name;
        if (names->count == CRAWLERS_MAX) {
            snprintf(why, why_size, "there are too many crawlers");
            goto failed;
        }
        add_name(names, built_in[i].name);
        if (!add_built_in(names, names->count - 1, i, why, why_size))
            goto failed;
    }
    return names;
failed:
    crawler_names_free(names);
    return NULL;
}

void crawler_names_free(struct crawler_names *names)
{
    if (names == NULL)
        return;
    for (size_t i = 0; i < names->count; i++)
        ranges_done(&names->of[i].ranges);
    free(names);
}

/* ---- lookups ------------------------------------------------------------------------------- */

static bool is_word_byte(char c)
{
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z');
}

static bool begins_word(const char *field, size_t at)
{
    return at == 0 || (!is_word_byte(field[at - 1]) && strchr("-_./@", field[at - 1]) == NULL);
}

static bool is_token(const struct token *token, const char *text, size_t left)
{
    if (token->len > left)
        return false;
    for (size_t i = 0; i < token->len; i++)
        if (lower(text[i]) != (unsigned char)token->text[i])
            return false;
    return token->len == left || !is_word_byte(text[token->len]);
}

static size_t scan_field(const struct crawler_names *names, const char *field, size_t len)
{
    for (size_t at = 0; at < len; at++) {
        const struct token *found = NULL;
        if (!names->begins[lower(field[at])] || !begins_word(field, at))
            continue;
        for (size_t i = 0; i < names->token_count; i++) {
            const struct token *token = &names->tokens[i];
            if ((found == NULL || token->len > found->len) && is_token(token, field + at, len - at))
                found = token;
        }
        if (found != NULL)
            return found->name;
    }
    return 0;
}

size_t names_classify(struct crawler_names *names, const char *user_agent)
{
    if (user_agent == NULL)
        return 0;
    size_t len = strnlen(user_agent, FIELD_MAX);
    struct cached *slot = &names->cache[XXH3_64bits(user_agent, len) % CACHE_SLOTS];
    if (len == 0 || len > CACHED_MAX ||
        atomic_flag_test_and_set_explicit(&slot->busy, memory_order_acquire))
        return scan_field(names, user_agent, len);
    if (slot->len != len || memcmp(slot->field, user_agent, len) != 0) {
        slot->name = (uint8_t)scan_field(names, user_agent, len);
        slot->len = (uint8_t)len;
        memcpy(slot->field, user_agent, len);
    }
    size_t name = slot->name;
    atomic_flag_clear_explicit(&slot->busy, memory_order_release);
    return name;
}
