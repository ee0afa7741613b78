/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A byte-wise state machine over XML or text that replaces origins in places that hold URLs. */
#include "server/input/host_rewriter.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/text.h"

enum state {
    START, /* white space so far, or a byte order mark */
    LINE,  /* of a list, behind its URL's beginning */
    TEXT,
    OPEN, /* behind "<" and what `word` has */
    NAME, /* of a start tag */
    TAG,  /* of a start tag, behind its name, outside values */
    VALUE,
    END_TAG, /* or a declaration */
    COMMENT,
    CDATA,
    INSTRUCTION,
    ORIGIN, /* it may be one of the map's */
};

#define NAME_BYTES 16u

struct host_rewriter {
    const struct host_map *map;
    host_rewriter_take *take;
    void *context;
    enum state state, behind; /* `behind`: in which the origin stands */
    bool wants_text;          /* the text of the open element is a URL, which has not begun */
    bool is_link;             /* the open tag is a `link` */
    bool slash;               /* the tag's last byte was one */
    bool gap;                 /* white space is behind the word */
    char quote;               /* of the open value */
    char word[NAME_BYTES];    /* the last bytes of a name, or of what may end a construct */
    size_t word_len;
    uint32_t left; /* of ORIGIN: the pairs, as bits, that `held` may be the first origin of */
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

/* Behind "<": what begins is known by its first bytes. */
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

/* Prefixes are not looked at: a colon begins the name again. */
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
            bool wants_text = w->wants_text; /* of a feed's link with both */
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

/* A byte of what ends with these bytes. */
static void skip_until(struct host_rewriter *w, char c, const char *end)
{
    add_to_word(w, c);
    if (word_ends_with(w, end))
        enter_state(w, TEXT);
}

/* A byte outside origins. */
/* A byte of a byte order mark or white space, as may stand before the first. */
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

/* Whether an origin begins with this very byte. */
static bool begins_origin(struct host_rewriter *w, char c)
{
    if (w->state == START && c != '<' && !is_leading(c)) {
        w->state = LINE;
        return true;
    }
    return (w->state == TEXT || w->state == CDATA) && w->wants_text && c != '<' &&
           !ascii_is_space(c);
}

/* What may stand behind an origin. */
static bool ends_origin(char c)
{
    return ascii_is_space(c) || (c != '\0' && strchr("/?#<\"']", c) != NULL);
}

/* The pair whose first origin is held. */
static const struct host_map_pair *held_pair(const struct host_rewriter *w)
{
    for (size_t i = 0; i < w->map->count; i++)
        if ((w->left >> i & 1) && w->map->pairs[i].from_len == w->held_len)
            return &w->map->pairs[i];
    return NULL;
}

/* Holds a byte back. False: it does not go on as any origin does. */
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

/* The first byte from `at` that says anything in this state; `end` where none does. */
static const char *skip_plain(const struct host_rewriter *w, const char *at, const char *end)
{
    const char *found = at;
    if ((w->state == TEXT && !w->wants_text) || w->state == LINE)
        found = memchr(at, w->state == TEXT ? '<' : '\n', (size_t)(end - at));
    else if (w->state == VALUE || w->state == END_TAG)
        found = memchr(at, w->state == VALUE ? w->quote : '>', (size_t)(end - at));
    return found != NULL ? found : end;
}

/* A byte where an origin may begin or go on. False: the taker stops. `*run`: from there on nothing
 * is handed on yet. */
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
