#include "server/ingest/json_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/ingest/json_raw.h"

enum frame_state {
    FRAME_START,  /* before the body's first character */
    FRAME_FIRST,  /* behind `[`: an element or `]` */
    FRAME_NEXT,   /* behind a comma: an element */
    FRAME_NESTED, /* in an element that is an object or array */
    FRAME_STRING, /* in an element that is a string: no entry, but JSON */
    FRAME_SCALAR, /* in any other element: ends where a comma, bracket or space comes */
    FRAME_BEHIND, /* behind an element: a comma or `]` */
    FRAME_END,    /* nothing but white space */
};

struct json_stream {
    struct core *core;
    enum frame_state state;
    bool single;
    bool string, escape; /* within FRAME_NESTED or FRAME_STRING */
    unsigned depth;
    struct place place;   /* of the byte being read */
    struct place element; /* where the element being read begins */
    uint64_t number;      /* of that element, 1-based */
    size_t len;
    char buffer[READER_MAX_ITEM_BYTES];
};

struct json_stream *json_stream_new(struct core *core, struct place start)
{
    struct json_stream *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    memset(s, 0, offsetof(struct json_stream, buffer));
    s->core = core;
    s->place = start;
    return s;
}

static bool malformed(struct json_stream *s, const char *why)
{
    return core_fail(s->core, READER_MALFORMED, "malformed-json", s->place.line, s->place.column,
                     "line %" PRIu64 ", column %" PRIu64 ": %s", s->place.line, s->place.column,
                     why);
}

/* jansson saw the element alone: its place is counted from where the element begins. */
static bool malformed_element(struct json_stream *s, const char *why, uint64_t line,
                              uint64_t column)
{
    uint64_t at_line = s->element.line + line - 1;
    uint64_t at_column = line == 1 ? s->element.column + column - 1 : column;
    const char *cause = strstr(why, ": ");
    return core_fail(s->core, READER_MALFORMED, "malformed-json", at_line, at_column,
                     "line %" PRIu64 ", column %" PRIu64 ": %s", at_line, at_column,
                     cause ? cause + 2 : why);
}

static bool end_element(struct json_stream *s)
{
    struct core *core = s->core;
    struct rejection rejection;
    json_t *root;
    struct raw_entry raw;
    uint64_t line, column;
    s->state = s->single ? FRAME_END : FRAME_BEHIND;
    switch (json_raw_read(s->buffer, s->len, s->single ? 0 : s->number, &core->options,
                          &core->judged, &root, &raw, &rejection, &line, &column)) {
    case JSON_RAW_OK: {
        bool go_on = core_take(core, &raw);
        json_decref(root);
        return go_on;
    }
    case JSON_RAW_REJECTED:
        return core_reject(core, &rejection);
    case JSON_RAW_SYNTAX:
        return malformed_element(s, rejection.detail, line, column);
    case JSON_RAW_NO_MEMORY:
        break;
    }
    return core_no_memory(core);
}

static bool keep(struct json_stream *s, char c)
{
    if (s->len == sizeof s->buffer)
        return core_fail(s->core, READER_TOO_LARGE, "item-too-large", s->element.line,
                         s->element.column, "line %" PRIu64 ": an object is longer than %u bytes",
                         s->element.line, READER_MAX_ITEM_BYTES);
    s->buffer[s->len++] = c;
    return true;
}

static bool begin_element(struct json_stream *s, char c)
{
    if (c == ',' || c == ':' || c == ']' || c == '}')
        return malformed(s, "a value is missing");
    s->element = s->place;
    s->number++;
    s->len = 0;
    s->depth = c == '{' || c == '[';
    s->string = s->escape = false;
    s->state = s->depth ? FRAME_NESTED : c == '"' ? FRAME_STRING : FRAME_SCALAR;
    return keep(s, c);
}

/* One byte within a string. True where it ends the string. */
static bool string_ends(struct json_stream *s, char c)
{
    if (s->escape)
        s->escape = false;
    else if (c == '\\')
        s->escape = true;
    else
        return c == '"';
    return false;
}

static bool take_nested(struct json_stream *s, char c)
{
    if (!keep(s, c))
        return false;
    if (s->string) {
        s->string = !string_ends(s, c);
    } else if (c == '"') {
        s->string = true;
    } else if (c == '{' || c == '[') {
        if (++s->depth > JSON_ENTRY_MAX_DEPTH)
            return core_fail(s->core, READER_TOO_LARGE, "nested-too-deep", s->place.line,
                             s->place.column, "line %" PRIu64 ": is nested too deep",
                             s->place.line);
    } else if ((c == '}' || c == ']') && --s->depth == 0) {
        return end_element(s);
    }
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Between elements. */
static bool take_frame(struct json_stream *s, char c)
{
    if (is_space(c))
        return true;
    switch (s->state) {
    case FRAME_START:
        if (c == '[') {
            s->state = FRAME_FIRST;
            return true;
        }
        s->single = c == '{';
        return s->single ? begin_element(s, c) : malformed(s, "neither an object nor an array");
    case FRAME_FIRST:
    case FRAME_NEXT:
        if (c == ']' && s->state == FRAME_FIRST) {
            s->state = FRAME_END;
            return true;
        }
        return begin_element(s, c);
    case FRAME_BEHIND:
        if (c != ',' && c != ']')
            return malformed(s, "a comma or ] is missing");
        s->state = c == ',' ? FRAME_NEXT : FRAME_END;
        return true;
    default:
        return malformed(s, "something follows the end");
    }
}

static bool take_byte(struct json_stream *s, char c)
{
    switch (s->state) {
    case FRAME_NESTED:
        return take_nested(s, c);
    case FRAME_STRING:
        return keep(s, c) && (!string_ends(s, c) || end_element(s));
    case FRAME_SCALAR:
        if (c != ',' && c != ']' && !is_space(c))
            return keep(s, c);
        return end_element(s) && take_frame(s, c);
    default:
        return take_frame(s, c);
    }
}

bool json_stream_feed(struct json_stream *s, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!take_byte(s, bytes[i]))
            return false;
        place_step(&s->place, bytes[i]);
    }
    return true;
}

bool json_stream_finish(struct json_stream *s)
{
    if (s->state == FRAME_END)
        return true;
    if (s->state == FRAME_START)
        return malformed(s, "the body is empty");
    return core_fail(s->core, READER_MALFORMED, "truncated", s->place.line, s->place.column,
                     "line %" PRIu64 ", column %" PRIu64 ": the JSON ends too early", s->place.line,
                     s->place.column);
}

bool json_stream_single(const struct json_stream *s)
{
    return s->single;
}

void json_stream_free(struct json_stream *s)
{
    free(s);
}
