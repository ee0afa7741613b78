/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A byte-wise state machine over XML or text that replaces origins where a URL may be. */
#include "server/input/host_rewriter.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/text.h"

enum state {
    START, /* only white space or a byte order mark so far */
    LINE,  /* the rest of a line of a list, after the beginning of its URL */
    TEXT,
    OPEN, /* after "<" and the bytes in `word` */
    NAME, /* of a start tag */
    TAG,  /* in a start tag, after its name, outside values */
    VALUE,
    END_TAG, /* or a declaration */
    COMMENT,
    CDATA,
    INSTRUCTION,
    ORIGIN, /* the bytes may be an origin of the map */
};

#define NAME_BYTES 16u

struct host_rewriter {
    const struct host_map *map;
    host_rewriter_take *take;
    void *context;
    enum state state, behind; /* `behind`: the state to return to after the origin */
    bool wants_text;          /* the open element contains a URL, which has not begun */
    bool is_link;             /* the open tag is a `link` */
    bool slash;               /* the last byte of the tag was a slash */
    bool gap;                 /* white space follows the word */
    char quote;               /* of the current value */
    char word[NAME_BYTES];    /* the last bytes of a name, or of a possible end of a construct */
    size_t word_len;
    uint32_t left; /* in ORIGIN: bits of the pairs whose first origin begins with `held` */
    size_t held_len;
    char held[LOC_MAX_CHARS];
};
_Static_assert(HOST_MAP_MAX <= 32, "a bit for each pair");

struct host_rewriter *host_rewriter_new(const struct host_map *m, host_rewriter_take *take,
                                        void *context)
{
    struct host_rewriter *w = calloc(1, sizeof *w);
    if (w != NULL)
        *w = (struct host_rewriter){.map = m, .take = take, .context = context};
    return w;
}

void host_rewriter_free(struct host_rewriter *w)
{
    free(w);
}

static void add_to_word(struct host_rewriter *w, char c)
{
    if (w->word_len == NAME_BYTES) {
        memmove(w->word, w->word + 1, NAME_BYTES - 1);
        w->word_len--;
    }
    w->word[w->word_len++] = c;
}

static bool word_ends_with(const struct host_rewriter *w, const char *end)
{
    size_t len = strlen(end);
    return w->word_len >= len && memcmp(w->word + w->word_len - len, end, len) == 0;
}

static bool word_is(const struct host_rewriter *w, const char *name)
{
    return w->word_len == strlen(name) && word_ends_with(w, name);
}

static void enter_state(struct host_rewriter *w, enum state state)
{
    w->state = state;
    w->word_len = 0;
}

static void enter_origin(struct host_rewriter *w)
{
    w->behind = w->state;
    w->state = ORIGIN;
    w->wants_text = false;
    w->held_len = 0;
    w->left = (uint32_t)((UINT64_C(1) << w->map->count) - 1);
}

/* After "<": determines the construct by its first bytes. */
static void open_construct(struct host_rewriter *w, char c)
{
    static const char cdata[] = "![CDATA[", comment[] = "!--";
    add_to_word(w, c);
    if (c == '/' && w->word_len == 1) {
        w->wants_text = false;
        enter_state(w, END_TAG);
    } else if (c == '?' && w->word_len == 1) {
        enter_state(w, INSTRUCTION);
    } else if (word_is(w, comment)) {
        enter_state(w, COMMENT);
    } else if (word_is(w, cdata)) {
        enter_state(w, CDATA);
    } else if (*w->word != '!') {
        w->state = NAME;
    } else if (memcmp(w->word, cdata, w->word_len) != 0 &&
               memcmp(w->word, comment, w->word_len) != 0) {
        enter_state(w, END_TAG);
    }
}

/* Prefixes are ignored: the name begins again after a colon. */
static void parse_name(struct host_rewriter *w, char c)
{
    if (c == ':') {
        w->word_len = 0;
    } else if (ascii_is_space(c) || c == '/' || c == '>') {
        w->is_link = word_is(w, "link");
        w->wants_text = w->is_link || word_is(w, "loc") || word_ends_with(w, "_loc");
        w->slash = c == '/';
        enter_state(w, c == '>' ? TEXT : TAG);
    } else {
        add_to_word(w, c);
    }
}

static void parse_tag(struct host_rewriter *w, char c)
{
    if (c == '"' || c == '\'') {
        bool is_url = w->is_link && word_is(w, "href");
        w->quote = c;
        enter_state(w, VALUE);
        if (is_url) {
            bool wants_text = w->wants_text; /* for a feed's link that has both */
            enter_origin(w);
            w->wants_text = wants_text;
        }
    } else if (c == '>') {
        w->wants_text = w->wants_text && !w->slash;
        enter_state(w, TEXT);
    } else if (c == ':') {
        w->word_len = 0;
    } else if (c != '=' && !ascii_is_space(c)) {
        if (w->gap)
            w->word_len = 0;
        add_to_word(w, c);
    }
    w->gap = ascii_is_space(c);
    w->slash = c == '/';
}

/* Takes a byte of a construct that ends with `end`. */
static void skip_until(struct host_rewriter *w, char c, const char *end)
{
    add_to_word(w, c);
    if (word_ends_with(w, end))
        enter_state(w, TEXT);
}

/* Whether the byte may precede the first one: a byte order mark or white space. */
static bool is_leading(char c)
{
    return ascii_is_space(c) || memchr("\xef\xbb\xbf", c, 3) != NULL;
}

static void parse_byte(struct host_rewriter *w, char c)
{
    switch (w->state) {
    case START:
        if (c == '<')
            enter_state(w, OPEN);
        else if (!is_leading(c))
            enter_state(w, LINE);
        break;
    case LINE:
        if (c == '\n')
            enter_origin(w);
        break;
    case TEXT:
        if (c == '<')
            enter_state(w, OPEN);
        break;
    case OPEN:
        open_construct(w, c);
        break;
    case NAME:
        parse_name(w, c);
        break;
    case TAG:
        parse_tag(w, c);
        break;
    case VALUE:
        if (c == w->quote)
            enter_state(w, TAG);
        break;
    case END_TAG:
        if (c == '>')
            enter_state(w, TEXT);
        break;
    case COMMENT:
        skip_until(w, c, "-->");
        break;
    case CDATA:
        skip_until(w, c, "]]>");
        break;
    case INSTRUCTION:
        skip_until(w, c, "?>");
        break;
    case ORIGIN:
        break;
    }
}

/* Whether an origin may begin with this byte. */
static bool begins_origin(struct host_rewriter *w, char c)
{
    if (w->state == START && c != '<' && !is_leading(c)) {
        w->state = LINE;
        return true;
    }
    return (w->state == TEXT || w->state == CDATA) && w->wants_text && c != '<' &&
           !ascii_is_space(c);
}

/* Whether the byte may follow an origin. */
static bool ends_origin(char c)
{
    return ascii_is_space(c) || (c != '\0' && strchr("/?#<\"']", c) != NULL);
}

/* The pair whose first origin is exactly `held`. */
static const struct host_map_pair *held_pair(const struct host_rewriter *w)
{
    for (size_t i = 0; i < w->map->count; i++)
        if ((w->left >> i & 1) && w->map->pairs[i].from_len == w->held_len)
            return &w->map->pairs[i];
    return NULL;
}

/* Holds a byte back if an origin of the map continues with it, else false. */
static bool hold_byte(struct host_rewriter *w, char c)
{
    uint32_t left = 0;
    for (size_t i = 0; i < w->map->count; i++) {
        const struct host_map_pair *pair = &w->map->pairs[i];
        if ((w->left >> i & 1) && w->held_len < pair->from_len &&
            pair->from[w->held_len] == ascii_lower(c))
            left |= UINT32_C(1) << i;
    }
    if (left == 0)
        return false;
    w->left = left;
    w->held[w->held_len++] = c;
    return true;
}

static bool end_origin(struct host_rewriter *w, bool ends)
{
    const struct host_map_pair *pair = ends ? held_pair(w) : NULL;
    w->state = w->behind;
    if (pair != NULL)
        return w->take(w->context, pair->to, pair->to_len);
    return w->held_len == 0 || w->take(w->context, w->held, w->held_len);
}

/* The first byte from `at` that matters in this state; `end`: none. */
static const char *skip_plain(const struct host_rewriter *w, const char *at, const char *end)
{
    const char *found = at;
    if ((w->state == TEXT && !w->wants_text) || w->state == LINE)
        found = memchr(at, w->state == TEXT ? '<' : '\n', (size_t)(end - at));
    else if (w->state == VALUE || w->state == END_TAG)
        found = memchr(at, w->state == VALUE ? w->quote : '>', (size_t)(end - at));
    return found != NULL ? found : end;
}

/* Takes a byte where an origin may begin or continue. False: `take` stops. The bytes from `*run` on
 * were not passed on yet. */
static bool parse_origin(struct host_rewriter *w, const char *at, const char **run)
{
    size_t held = w->held_len;
    if (hold_byte(w, *at)) {
        const char *before = *run;
        *run = at + 1;
        return held > 0 || at == before || w->take(w->context, before, (size_t)(at - before));
    }
    if (!end_origin(w, ends_origin(*at)))
        return false;
    parse_byte(w, *at);
    return true;
}

bool host_rewriter_feed(struct host_rewriter *w, const char *bytes, size_t len)
{
    const char *run = bytes, *end = bytes + len;
    for (const char *at = skip_plain(w, bytes, end); at < end; at = skip_plain(w, at + 1, end)) {
        if (begins_origin(w, *at))
            enter_origin(w);
        if (w->state != ORIGIN)
            parse_byte(w, *at);
        else if (w->held_len > 0 || !ascii_is_space(*at))
            if (!parse_origin(w, at, &run))
                return false;
    }
    return run == end || w->take(w->context, run, (size_t)(end - run));
}

bool host_rewriter_finish(struct host_rewriter *w)
{
    return w->state != ORIGIN || end_origin(w, true);
}
