/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* JSON is read in three steps. A body is split into elements as the bytes arrive, by counting
 * brackets outside strings, so that only one element is in memory (json_stream: one object or an
 * array of them; ndjson: lines). An element becomes raw fields, in the common form without a tree
 * (json_flat_read), otherwise by jansson, which never gets deeply nested text. The fields are then
 * validated like those of any format. */

#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/text.h"
#include "server/input/frame.h"
#include "server/input/json_extensions.h"
#include "server/input/json_fields.h"

#define ENTRY_MAX_DEPTH 16u /* an entry is flat; `export` nests once ("warnings": []) */

/* ---- brackets ---- */

/* Tracks how deep a text is nested, byte by byte. */
struct nesting {
    unsigned depth;
    bool string, escape;
};

/* Takes one byte. True if it ends a string or closes the outermost bracket. */
static inline bool nesting_step(struct nesting *n, char c)
{
    if (n->string) {
        if (n->escape)
            n->escape = false;
        else if (c == '\\')
            n->escape = true;
        else
            n->string = c != '"';
        return !n->string;
    }
    if (c == '"')
        n->string = true;
    else if (c == '{' || c == '[')
        n->depth++;
    else if ((c == '}' || c == ']') && n->depth > 0)
        return --n->depth == 0;
    return false;
}

/* ---- the common form ---- */

/* A bulk may have a million lines of this form: a tree for each, with allocations and hashing,
 * would cost as much as all later steps. */

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

static bool accept_char(struct cursor *c, char wanted)
{
    skip_space(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

/* True: none of the eight bytes ends a string or needs a closer look. */
static inline bool is_plain(uint64_t word)
{
    return !(word_has_high(word) || word_has_below(word, 0x20) || word_has(word, '"') ||
             word_has(word, '\\') || word_has(word, 0x7f));
}

static bool parse_string(struct cursor *c, struct text *out)
{
    if (!accept_char(c, '"'))
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

/* The field that names the list: an index or a urlset. */
static const char *list_field(const struct reader_options *options)
{
    return options->pages ? "urlset" : "index";
}

static int field_of(struct text name, const struct reader_options *options)
{
    const char *const names[FIELD_COUNT] = {"loc", "lastmod", "digest", list_field(options)};
    int field = 0;

    while (field < FIELD_COUNT &&
           (strlen(names[field]) != name.len || memcmp(names[field], name.at, name.len) != 0))
        field++;
    return field;
}

static bool parse_member(struct cursor *c, const struct reader_options *options,
                         struct text fields[FIELD_COUNT])
{
    struct text name;

    if (!parse_string(c, &name))
        return false;
    int field = field_of(name, options);
    if (field == FIELD_COUNT || fields[field].at != NULL)
        return false;
    return accept_char(c, ':') && parse_string(c, &fields[field]);
}

bool json_flat_read(const char *text, size_t len, const struct reader_options *options,
                    struct raw_entry *raw)
{
    struct cursor c = {text, text + len};
    struct text fields[FIELD_COUNT] = {{NULL, 0}};

    if (!accept_char(&c, '{'))
        return false;
    do {
        if (!parse_member(&c, options, fields))
            return false;
    } while (accept_char(&c, ','));
    if (!accept_char(&c, '}'))
        return false;
    skip_space(&c);
    if (c.at != c.end || fields[FIELD_LOC].at == NULL)
        return false;

    raw->loc = fields[FIELD_LOC].at;
    raw->loc_len = fields[FIELD_LOC].len;
    if (fields[FIELD_LASTMOD].at != NULL && !options->drop_lastmod) {
        raw->lastmod = fields[FIELD_LASTMOD].at;
        raw->lastmod_len = fields[FIELD_LASTMOD].len;
        raw->lastmod_state = FIELD_SET;
    }
    if (fields[FIELD_DIGEST].at != NULL) {
        raw->digest = fields[FIELD_DIGEST].at;
        raw->digest_len = fields[FIELD_DIGEST].len;
        raw->digest_state = FIELD_SET;
    }
    raw->index = fields[FIELD_INDEX].at;
    raw->index_len = fields[FIELD_INDEX].len;
    return true;
}

/* ---- any form ---- */

enum json_raw_status {
    JSON_RAW_OK,
    JSON_RAW_REJECTED, /* valid JSON but not an entry, or a name occurs twice */
    JSON_RAW_SYNTAX,   /* not JSON */
    JSON_RAW_NO_MEMORY,
};

/* Checked before jansson, which recurses. */
static bool too_deep(const char *text, size_t len)
{
    struct nesting nesting = {0};
    for (size_t i = 0; i < len && nesting.depth <= ENTRY_MAX_DEPTH; i++)
        nesting_step(&nesting, text[i]);
    return nesting.depth > ENTRY_MAX_DEPTH;
}

/* The object that is being read, and where its fields go. */
struct fields {
    const struct reader_options *options;
    struct raw_entry *raw;
    struct validated_entry *validated;
    struct rejection *rejection;
    json_t *root;          /* `raw` borrows from it and from the text; NULL: only from the text */
    uint64_t line, column; /* on SYNTAX: the place in the text, 1-based, in characters */
    char blamed[64];       /* rejection->field points here if it is a name from the text */
};

static enum json_raw_status fail_json(struct fields *f, const char *text, const json_error_t *error)
{
    enum json_error_code code = json_error_code(error);
    if (code == json_error_out_of_memory || memory_failed())
        return JSON_RAW_NO_MEMORY;
    if (code == json_error_numeric_overflow) {
        json_member_before(text, (size_t)error->position, f->blamed, sizeof f->blamed);
        entry_validate_reject(f->raw, f->validated, f->rejection, RULE_JSON,
                              f->blamed[0] != '\0' ? f->blamed : NULL,
                              "is a number that is too large");
        return JSON_RAW_REJECTED;
    }
    f->line = error->line > 0 ? (uint64_t)error->line : 1;
    f->column = error->column > 0 ? (uint64_t)error->column : 1;
    char shown[JSON_ERROR_TEXT_LENGTH + 8], why[256];
    entry_validate_quote(shown, sizeof shown, error->text, strlen(error->text));
    if (f->line > 1)
        snprintf(why, sizeof why, "line %d, column %d of it: %s", error->line, error->column,
                 shown);
    else
        snprintf(why, sizeof why, "column %d: %s", error->column, shown);
    /* Adds hints for the two most frequent inputs that are not lines of JSON. */
    size_t len = strlen(why);
    if (strstr(shown, "end of file expected near '{'") != NULL)
        snprintf(why + len, sizeof why - len,
                 "; write one object per line (with curl use --data-binary: -d removes line ends)");
    else if (strstr(shown, "invalid token near 'http") != NULL)
        snprintf(why + len, sizeof why - len, "; a line is an object: {\"loc\": \"https://...\"}");
    entry_validate_reject(f->raw, f->validated, f->rejection, RULE_JSON, NULL, why);
    /* Errors in text that is complete JSON: only this entry is at fault. */
    return code == json_error_duplicate_key || code == json_error_null_byte_in_key
               ? JSON_RAW_REJECTED
               : JSON_RAW_SYNTAX;
}

/* Fields that `export` adds and that belong to the exporting catalogue: ignored, except `position`
 * and `source`, which are read. */
static bool is_export_field(const char *name)
{
    static const char *const names[] = {"id",         "page",     "registered_at",
                                        "changed_at", "warnings", NULL};
    for (const char *const *n = names; *n != NULL; n++)
        if (strcmp(*n, name) == 0)
            return true;
    return false;
}

/* Reads a string, or null if `nullable`. False: another type. */
static bool read_text(const json_t *value, bool nullable, const char **text, size_t *len,
                      enum field_state *state)
{
    if (nullable && json_is_null(value)) {
        *state = FIELD_NULL;
        return true;
    }
    if (!json_is_string(value))
        return false;
    *text = json_string_value(value);
    *len = json_string_length(value);
    *state = FIELD_SET;
    return true;
}

static enum rule_code read_position(const struct fields *f, const json_t *value)
{
    if (!json_is_integer(value))
        return entry_validate_reject(f->raw, f->validated, f->rejection, RULE_FIELD_TYPE,
                                     "position", "position must be a whole number");
    json_int_t position = json_integer_value(value);
    if (position < 0 || position >= (json_int_t)POSITION_NONE)
        return entry_validate_reject(f->raw, f->validated, f->rejection, RULE_POSITION, "position",
                                     NULL);
    f->raw->position = (uint32_t)position;
    return RULE_OK;
}

static enum rule_code reject_unknown(const struct fields *f, const char *name)
{
    char shown[96], why[256];
    entry_validate_quote(shown, sizeof shown, name, strlen(name));
    snprintf(why, sizeof why, "\"%s\" %s", shown, rule_code_sentence(RULE_FIELD_UNKNOWN));
    return entry_validate_reject(f->raw, f->validated, f->rejection, RULE_FIELD_UNKNOWN, NULL, why);
}

static enum rule_code read_field(const struct fields *f, const char *name, json_t *value)
{
    bool placed = f->options->allow_export_fields || f->options->allow_placed;
    struct raw_entry *raw = f->raw;
    const char *field;
    const struct json_page page = {raw, f->validated, f->options->now};
    enum field_state state; /* unused */
    bool fits;
    if (strcmp(name, "loc") == 0) {
        field = "loc"; /* first, so that every rejection can name it */
        fits = json_is_string(value);
    } else if (strcmp(name, "lastmod") == 0) {
        field = "lastmod";
        fits = f->options->drop_lastmod ||
               read_text(value, true, &raw->lastmod, &raw->lastmod_len, &raw->lastmod_state);
    } else if (strcmp(name, "digest") == 0) {
        field = "digest";
        fits = read_text(value, true, &raw->digest, &raw->digest_len, &raw->digest_state);
    } else if (strcmp(name, list_field(f->options)) == 0) {
        field = list_field(f->options);
        fits = read_text(value, false, &raw->index, &raw->index_len, &state);
    } else if (placed && strcmp(name, "position") == 0) {
        return read_position(f, value);
    } else if (placed && strcmp(name, "source") == 0) {
        field = "source";
        fits = read_text(value, true, &raw->source, &raw->source_len, &state);
    } else if ((f->options->pages && json_extension_read(&page, name, value)) ||
               (f->options->allow_export_fields && is_export_field(name))) {
        return RULE_OK;
    } else {
        return reject_unknown(f, name);
    }
    if (fits)
        return RULE_OK;
    char why[64];
    bool nullable = strcmp(field, "loc") != 0 && strcmp(field, list_field(f->options)) != 0;
    snprintf(why, sizeof why, "%s must be a string%s", field, nullable ? ", or null" : "");
    return entry_validate_reject(raw, f->validated, f->rejection, RULE_FIELD_TYPE, field, why);
}

static enum rule_code read_object(const struct fields *f, json_t *root)
{
    const char *name;
    json_t *value;
    if (!json_is_object(root))
        return entry_validate_reject(f->raw, f->validated, f->rejection, RULE_FIELD_TYPE, NULL,
                                     "is not a JSON object");
    if (f->validated->fragment != NULL)
        fragment_begin(f->validated->fragment, f->options->lenient);
    value = json_object_get(root, "loc");
    if (json_is_string(value)) {
        f->raw->loc = json_string_value(value);
        f->raw->loc_len = json_string_length(value);
    }
    json_object_foreach(root, name, value)
    {
        enum rule_code code = read_field(f, name, value);
        if (code != RULE_OK)
            return code;
    }
    return RULE_OK;
}

/* Reads `text`. On OK f->raw is filled and borrows from `text` and f->root (may be NULL), which the
 * caller frees with json_decref. Otherwise f->root is NULL and f->rejection is filled; its loc is
 * in f->validated. */
static enum json_raw_status json_raw_read(struct fields *f, const char *text, size_t len,
                                          uint64_t line_number)
{
    f->root = NULL;
    *f->raw = (struct raw_entry){.position = POSITION_NONE, .line = line_number};
    if (json_flat_read(text, len, f->options, f->raw))
        return JSON_RAW_OK;
    if (too_deep(text, len)) {
        entry_validate_reject(f->raw, f->validated, f->rejection, RULE_JSON, NULL,
                              "is nested too deeply");
        return JSON_RAW_REJECTED;
    }
    /* NULs in strings are allowed here, so that the field's own rule rejects them by name. */
    json_error_t error;
    memory_watch();
    f->root =
        json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (f->root == NULL)
        return fail_json(f, text, &error);
    enum json_raw_status status = JSON_RAW_REJECTED;
    if (memory_failed()) /* a string that could not grow has lost a character */
        status = JSON_RAW_NO_MEMORY;
    else if (read_object(f, f->root) == RULE_OK)
        return JSON_RAW_OK;
    json_decref(f->root);
    f->root = NULL;
    return status;
}

/* Passes the entry or rejection to the reader. */
static bool add_entry(struct reader_state *core, struct fields *f, enum json_raw_status status)
{
    switch (status) {
    case JSON_RAW_OK: {
        bool go_on = reader_state_add(core, f->raw);
        json_decref(f->root);
        return go_on;
    }
    case JSON_RAW_REJECTED:
    case JSON_RAW_SYNTAX:
        return reader_state_reject(core, f->rejection);
    case JSON_RAW_NO_MEMORY:
        break;
    }
    return reader_state_no_memory(core);
}

/* ---- one object a line ---- */

static bool parse_line(void *context, const struct line *line)
{
    struct reader_state *core = context;
    struct rejection rejection;
    if (line->cut) {
        struct raw_entry nothing = {.line = line->number};
        char blamed[64], why[64];
        json_member_before(line->text, line->len, blamed, sizeof blamed);
        snprintf(why, sizeof why, "is longer than %u bytes", READER_MAX_ITEM_BYTES);
        entry_validate_reject(&nothing, core->validated, &rejection, RULE_JSON,
                              blamed[0] != '\0' ? blamed : NULL, why);
        return reader_state_reject(core, &rejection);
    }
    if (detect_space(line->text, line->len) == line->len)
        return true;
    struct raw_entry raw;
    struct fields f = {&core->options, &raw, core->validated, &rejection, .root = NULL};
    return add_entry(core, &f, json_raw_read(&f, line->text, line->len, line->number));
}

static const struct handler ndjson_handler = {lines_feed, lines_finish, free};

bool ndjson_open(struct frame *f)
{
    return frame_use(f, &ndjson_handler, lines_new(parse_line, f->core, f->place.line));
}

/* ---- one object, or one array of them ---- */

enum stream_state {
    AT_START,  /* before the first character of the body */
    AT_FIRST,  /* after `[`: an element or `]` */
    AT_NEXT,   /* after a comma: an element */
    AT_NESTED, /* in an element that is an object or array */
    AT_STRING, /* in an element that is a string: JSON, but not an entry */
    AT_SCALAR, /* in any other element: ends at a comma, bracket or space */
    AT_BEHIND, /* after an element: a comma or `]` */
    AT_END,    /* only white space */
};

struct json_stream {
    struct reader_state *core;
    enum stream_state state;
    bool single;
    struct nesting nesting; /* within AT_NESTED or AT_STRING */
    struct place place;     /* of the byte being read */
    struct place element;   /* of the beginning of the current element */
    uint64_t number;        /* of the current element, 1-based */
    size_t len;
    char buffer[READER_MAX_ITEM_BYTES];
};

static bool fail_malformed(struct json_stream *s, const char *why)
{
    return reader_state_fail(s->core, READER_MALFORMED, "malformed-json", s->place.line,
                             s->place.column, "line %" PRIu64 ", column %" PRIu64 ": %s",
                             s->place.line, s->place.column, why);
}

/* jansson got only the element: its position counts from the beginning of the element. */
static bool malformed_element(struct json_stream *s, const char *why, uint64_t line,
                              uint64_t column)
{
    uint64_t at_line = s->element.line + line - 1;
    uint64_t at_column = line == 1 ? s->element.column + column - 1 : column;
    const char *cause = strstr(why, ": ");
    return reader_state_fail(s->core, READER_MALFORMED, "malformed-json", at_line, at_column,
                             "line %" PRIu64 ", column %" PRIu64 ": %s", at_line, at_column,
                             cause != NULL ? cause + 2 : why);
}

static bool end_element(struct json_stream *s)
{
    struct reader_state *core = s->core;
    struct rejection rejection;
    struct raw_entry raw;
    struct fields f = {&core->options, &raw, core->validated, &rejection, .root = NULL};
    enum json_raw_status status = json_raw_read(&f, s->buffer, s->len, s->single ? 0 : s->number);
    s->state = s->single ? AT_END : AT_BEHIND;
    if (status == JSON_RAW_SYNTAX)
        return malformed_element(s, rejection.detail, f.line, f.column);
    return add_entry(core, &f, status);
}

static bool append_to_element(struct json_stream *s, char c)
{
    if (s->len == sizeof s->buffer) {
        json_member_before(s->buffer, s->len, s->core->error.field, sizeof s->core->error.field);
        return reader_state_fail(s->core, READER_TOO_LARGE, "item-too-large", s->element.line,
                                 s->element.column,
                                 "line %" PRIu64 ": an object is longer than %u bytes",
                                 s->element.line, READER_MAX_ITEM_BYTES);
    }
    s->buffer[s->len++] = c;
    return true;
}

static bool begin_element(struct json_stream *s, char c)
{
    if (c == ',' || c == ':' || c == ']' || c == '}')
        return fail_malformed(s, "a value is missing");
    s->element = s->place;
    s->number++;
    s->len = 0;
    s->nesting = (struct nesting){0};
    nesting_step(&s->nesting, c);
    s->state = s->nesting.depth ? AT_NESTED : s->nesting.string ? AT_STRING : AT_SCALAR;
    return append_to_element(s, c);
}

static bool parse_nested(struct json_stream *s, char c)
{
    if (!append_to_element(s, c))
        return false;
    if (nesting_step(&s->nesting, c) && s->nesting.depth == 0)
        return end_element(s);
    if (s->nesting.depth > ENTRY_MAX_DEPTH)
        return reader_state_fail(s->core, READER_TOO_LARGE, "nested-too-deep", s->place.line,
                                 s->place.column, "line %" PRIu64 ": is nested too deeply",
                                 s->place.line);
    return true;
}

/* Takes a character between elements. */
static bool parse_frame(struct json_stream *s, char c)
{
    if (ascii_is_space(c))
        return true;
    switch (s->state) {
    case AT_START:
        if (c == '[') {
            s->state = AT_FIRST;
            return true;
        }
        s->single = c == '{';
        return s->single ? begin_element(s, c) : fail_malformed(s, "must be an object or an array");
    case AT_FIRST:
    case AT_NEXT:
        if (c == ']' && s->state == AT_FIRST) {
            s->state = AT_END;
            return true;
        }
        return begin_element(s, c);
    case AT_BEHIND:
        if (c != ',' && c != ']')
            return fail_malformed(s, "a comma or ] is missing");
        s->state = c == ',' ? AT_NEXT : AT_END;
        return true;
    default:
        return fail_malformed(
            s, c == '{' ? "another object follows; send several as an array, or one per line as "
                          "application/x-ndjson (with curl use --data-binary: -d removes line ends)"
                        : "unexpected data after the end");
    }
}

static bool parse_byte(struct json_stream *s, char c)
{
    switch (s->state) {
    case AT_NESTED:
        return parse_nested(s, c);
    case AT_STRING:
        return append_to_element(s, c) && (!nesting_step(&s->nesting, c) || end_element(s));
    case AT_SCALAR:
        if (c != ',' && c != ']' && !ascii_is_space(c))
            return append_to_element(s, c);
        return end_element(s) && parse_frame(s, c);
    default:
        return parse_frame(s, c);
    }
}

static bool stream_feed(void *self, const char *bytes, size_t len)
{
    struct json_stream *s = self;
    for (size_t i = 0; i < len; i++) {
        if (!parse_byte(s, bytes[i]))
            return false;
        place_step(&s->place, bytes[i]);
    }
    return true;
}

static bool stream_finish(void *self)
{
    struct json_stream *s = self;
    if (s->state == AT_END)
        return true;
    if (s->state == AT_START)
        return fail_malformed(s, "the body is empty");
    return reader_state_fail(s->core, READER_MALFORMED, "truncated", s->place.line, s->place.column,
                             "line %" PRIu64 ", column %" PRIu64 ": the JSON is truncated",
                             s->place.line, s->place.column);
}

static const struct handler stream_handler = {stream_feed, stream_finish, free};

bool json_stream_open(struct frame *f)
{
    struct json_stream *s = malloc(sizeof *s);
    if (s != NULL) {
        memset(s, 0, offsetof(struct json_stream, buffer));
        s->core = f->core;
        s->place = f->place;
    }
    return frame_use(f, &stream_handler, s);
}

bool json_stream_single(const struct frame *f)
{
    return f->handler == &stream_handler && ((const struct json_stream *)f->self)->single;
}

/* ---- NDJSON or one object, recognised by the first line ---- */

struct either {
    struct frame *frame;
    struct nesting nesting;
    bool whole; /* an object is complete */
    size_t len;
    char data[READER_MAX_ITEM_BYTES]; /* the bytes so far */
};

/* Opens the right handler and passes the collected bytes to it. Frees `e`. */
static bool decide(struct either *e)
{
    struct frame *f = e->frame;
    bool going_on = e->whole ? ndjson_open(f) : json_stream_open(f);
    going_on = going_on && f->handler->feed(f->self, e->data, e->len);
    free(e);
    return going_on;
}

static bool either_feed(void *self, const char *bytes, size_t len)
{
    struct either *e = self;
    struct frame *f = e->frame;
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n' || e->len == sizeof e->data)
            return decide(e) && f->handler->feed(f->self, bytes + i, len - i);
        e->whole = (nesting_step(&e->nesting, bytes[i]) && e->nesting.depth == 0) || e->whole;
        e->data[e->len++] = bytes[i];
    }
    return true;
}

static bool either_finish(void *self)
{
    struct either *e = self;
    struct frame *f = e->frame;
    return decide(e) && f->handler->finish(f->self);
}

static const struct handler either_handler = {either_feed, either_finish, free};

bool json_either_open(struct frame *f)
{
    struct either *e = malloc(sizeof *e);
    if (e != NULL) {
        memset(e, 0, offsetof(struct either, data));
        e->frame = f;
    }
    return frame_use(f, &either_handler, e);
}

/* ---- one entry ---- */

/* Copies `text` (may be NULL) to `*at`, and moves `*at` past it. */
static const char *store(char **at, const char *text)
{
    if (text == NULL)
        return NULL;
    size_t size = strlen(text) + 1;
    const char *kept = memcpy(*at, text, size);
    *at += size;
    return kept;
}

static size_t size_of(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

static enum rule_code no_memory(struct rejection *rejection, uint64_t line)
{
    *rejection = (struct rejection){.line = line, .code = RULE_JSON};
    strcpy(rejection->detail, "out of memory");
    return RULE_JSON;
}

static bool keep_entry(const struct entry *entry, struct json_entry *out)
{
    size_t size = size_of(entry->loc) + size_of(entry->lastmod) + size_of(entry->digest) +
                  size_of(entry->index) + size_of(entry->source) + size_of(entry->extensions);
    char *at = malloc(size + 1); /* an entry may have no text at all */
    if (at == NULL)
        return false;
    out->storage = at;
    out->entry = *entry;
    out->entry.loc = store(&at, entry->loc);
    out->entry.lastmod = store(&at, entry->lastmod);
    out->entry.digest = store(&at, entry->digest);
    out->entry.index = store(&at, entry->index);
    out->entry.source = store(&at, entry->source);
    out->entry.extensions = store(&at, entry->extensions);
    return true;
}

static bool keep_rejected(struct rejection *rejection, struct json_entry *out)
{
    char *at = malloc(size_of(rejection->loc) + size_of(rejection->field) + 1);
    if (at == NULL)
        return false;
    out->storage = at;
    rejection->loc = store(&at, rejection->loc);
    rejection->field = store(&at, rejection->field);
    return true;
}

/* Parses one entry. RULE_OK: `out` has it; else the rejection is filled. */
static bool parse_entry(struct fields *f, const char *text, size_t len, uint64_t line,
                        struct json_entry *out, enum rule_code *code)
{
    bool kept;
    switch (json_raw_read(f, text, len, line)) {
    case JSON_RAW_OK:
        *code = entry_validate(f->raw, f->options, f->validated, f->rejection);
        kept = !f->validated->failed && (*code == RULE_OK ? keep_entry(&f->validated->entry, out)
                                                          : keep_rejected(f->rejection, out));
        json_decref(f->root);
        return kept;
    case JSON_RAW_NO_MEMORY:
        return false;
    default:
        *code = f->rejection->code;
        return keep_rejected(f->rejection, out);
    }
}

enum rule_code json_entry_parse(const char *text, size_t len, uint64_t line,
                                const struct reader_options *options, struct json_entry *out,
                                struct rejection *rejection)
{
    *out = (struct json_entry){.storage = NULL};
    struct validated_entry *validated =
        malloc(sizeof *validated); /* 9 kB: too much for a thread's stack */
    enum rule_code code = RULE_OK;
    bool parsed = validated != NULL && validated_entry_init(validated, options);
    if (parsed) {
        struct raw_entry raw;
        struct fields f = {options, &raw, validated, rejection, .root = NULL};
        parsed = parse_entry(&f, text, len, line, out, &code);
        validated_entry_done(validated);
    }
    free(validated);
    return parsed ? code : no_memory(rejection, line);
}

void json_entry_done(struct json_entry *e)
{
    if (e == NULL)
        return;
    free(e->storage);
    e->storage = NULL;
}
