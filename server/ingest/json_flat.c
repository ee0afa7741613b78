#include "server/ingest/json_flat.h"

#include <string.h>

#include "server/rules/word.h"

/* A bulk is a million lines of this form: a tree of each, with its allocations and the hash of its
 * names, would cost as much as all that is done with it afterwards. */

struct text {
    const char *at; /* NULL: absent */
    size_t len;
};

struct cursor {
    const char *at, *end;
};

/* RFC 8259 2 */
static void skip_space(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

static bool take(struct cursor *c, char wanted)
{
    skip_space(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

/* True: none of the eight bytes ends a string, or asks for a closer look. */
static inline bool is_plain(uint64_t word)
{
    return !(word_has_high(word) || word_has_below(word, 0x20) || word_has(word, '"') ||
             word_has(word, '\\') || word_has(word, 0x7f));
}

static bool take_string(struct cursor *c, struct text *out)
{
    if (!take(c, '"'))
        return false;
    out->at = c->at;
    while ((size_t)(c->end - c->at) >= WORD_BYTES && is_plain(word_at(c->at)))
        c->at += WORD_BYTES;
    for (; c->at < c->end; c->at++) {
        unsigned char byte = (unsigned char)*c->at;
        if (byte == '"') {
            out->len = (size_t)(c->at - out->at);
            c->at++;
            return true;
        }
        if (byte < 0x20 || byte >= 0x7f || byte == '\\')
            return false;
    }
    return false;
}

enum { FIELD_LOC, FIELD_LASTMOD, FIELD_DIGEST, FIELD_INDEX, FIELD_COUNT };

static int field_of(struct text name)
{
    static const char *const names[FIELD_COUNT] = {"loc", "lastmod", "digest", "index"};
    int field = 0;

    while (field < FIELD_COUNT &&
           (strlen(names[field]) != name.len || memcmp(names[field], name.at, name.len) != 0))
        field++;
    return field;
}

static bool take_member(struct cursor *c, struct text fields[FIELD_COUNT])
{
    struct text name;

    if (!take_string(c, &name))
        return false;
    int field = field_of(name);
    if (field == FIELD_COUNT || fields[field].at)
        return false;
    return take(c, ':') && take_string(c, &fields[field]);
}

bool json_flat_read(const char *text, size_t len, const struct reader_options *options,
                    struct raw_entry *raw)
{
    struct cursor c = {text, text + len};
    struct text fields[FIELD_COUNT] = {{NULL, 0}};

    if (!take(&c, '{'))
        return false;
    do {
        if (!take_member(&c, fields))
            return false;
    } while (take(&c, ','));
    if (!take(&c, '}'))
        return false;
    skip_space(&c);
    if (c.at != c.end || !fields[FIELD_LOC].at)
        return false;

    raw->loc = fields[FIELD_LOC].at;
    raw->loc_len = fields[FIELD_LOC].len;
    if (fields[FIELD_LASTMOD].at && !options->drop_lastmod) {
        raw->lastmod = fields[FIELD_LASTMOD].at;
        raw->lastmod_len = fields[FIELD_LASTMOD].len;
        raw->lastmod_state = FIELD_SET;
    }
    if (fields[FIELD_DIGEST].at) {
        raw->digest = fields[FIELD_DIGEST].at;
        raw->digest_len = fields[FIELD_DIGEST].len;
        raw->digest_state = FIELD_SET;
    }
    raw->index = fields[FIELD_INDEX].at;
    raw->index_len = fields[FIELD_INDEX].len;
    return true;
}
