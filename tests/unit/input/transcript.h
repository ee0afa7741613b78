/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Runs a reader over an input, cut in a given way, and writes down all that it says, so that two
 * runs can be compared as text. For the unit tests and the fuzz targets. */
#pragma once

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/str.h"
#include "server/input/reader.h"
#include "server/rules/lastmod.h"
#include "server/rules/page/fragment.h"
#include "server/rules/url.h"

#define TEST_NOW 1790000000 /* 2026-09-21 */

struct transcript {
    struct str text;  /* everything */
    struct str brief; /* without sentences for people, which may change */
    size_t entries, rejections;
    rule_set remarks; /* of the document, and of all entries */
    enum reader_status status;
    char code[32];
    uint64_t line, column;
    size_t text_at;
    uint64_t stop_at; /* set before: the callback that returns false; 0: none */
};

/* How an input is cut: 0 whole, 1 byte by byte, else the seed of random pieces. */
enum { CUT_WHOLE = 0, CUT_BYTES = 1 };

static inline struct reader_options test_options(enum reader_format format)
{
    return (struct reader_options){.format = format, .allow_gzip = true, .now = TEST_NOW};
}

static inline void transcript_remarks(struct str *out, rule_set remarks)
{
    for (unsigned code = 0; code < RULE_CODE_COUNT; code++)
        if (remarks & RULE_BIT(code))
            str_append_format(out, " +%s", rule_code_word((enum rule_code)code));
}

static inline void transcript_field(struct str *out, const char *name, enum field_state state,
                                    const char *text)
{
    if (state == FIELD_NULL)
        str_append_format(out, " %s=null", name);
    else if (state == FIELD_SET)
        str_append_format(out, " %s=%s", name, text);
}

static inline void transcript_begin(struct transcript *t)
{
    t->text_at = t->text.len;
}

/* What stands since transcript_begin goes into `brief` too. */
static inline void transcript_both(struct transcript *t)
{
    str_append(&t->brief, str_text(&t->text) + t->text_at, t->text.len - t->text_at);
}

static inline bool transcript_go_on(const struct transcript *t)
{
    return !t->stop_at || t->entries + t->rejections < t->stop_at;
}

static inline void transcript_require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "not so: %s\n", what);
    abort();
}

/* What the catalogue relies on, whatever the input: strings are there when their state says so,
 * and are in the form that checking them again gives. */
static inline void transcript_check(const struct entry *entry)
{
    static struct url url;
    struct lastmod lastmod;
    size_t len = strlen(entry->loc);
    transcript_require(url_parse(entry->loc, len, &url, NULL) == RULE_OK, "the loc is one");
    transcript_require(strcmp(url.text, entry->loc) == 0, "the loc is normalised");
    transcript_require((entry->lastmod != NULL) == (entry->lastmod_state == FIELD_SET),
                       "lastmod agrees with its state");
    transcript_require((entry->digest != NULL) == (entry->digest_state == FIELD_SET),
                       "digest agrees with its state");
    if (entry->lastmod)
        transcript_require(lastmod_parse(entry->lastmod, strlen(entry->lastmod), TEST_NOW, &lastmod,
                                         NULL) == RULE_OK &&
                               strcmp(lastmod.text, entry->lastmod) == 0,
                           "lastmod is normalised");
    if (entry->digest)
        transcript_require(entry_check_digest(entry->digest, strlen(entry->digest)) == RULE_OK,
                           "the digest is one");
}

/* Shown as JSON and read again a fragment is what it was, byte by byte. */
static inline void transcript_check_extensions(const struct entry *entry)
{
    struct str json = STR_INIT;
    struct reader_options options = test_options(READER_JSON);
    struct json_entry again;
    struct rejection rejection;
    transcript_require((entry->extensions != NULL) == (entry->extensions_state == FIELD_SET),
                       "extensions agree with their state");
    if (!entry->extensions)
        return;
    transcript_require(strlen(entry->extensions) <= EXTENSIONS_MAX_BYTES, "extensions are bounded");
    options.pages = true;
    str_append_text(&json, "{\"loc\":");
    str_append_json_text(&json, entry->loc);
    fragment_append_json(&json, entry->extensions);
    str_append_char(&json, '}');
    transcript_require(
        json_entry_parse(str_text(&json), json.len, 0, &options, &again, &rejection) == RULE_OK &&
            strcmp(again.entry.extensions, entry->extensions) == 0,
        "extensions are canonical");
    json_entry_done(&again);
    str_done(&json);
}

static inline void transcript_check_rejection(const struct rejection *rejection)
{
    transcript_require(rejection->code > RULE_OK && rejection->code < RULE_CODE_COUNT,
                       "a rejection has a code");
    transcript_require(!rejection->loc || strlen(rejection->loc) <= LOC_MAX_CHARS,
                       "a rejected loc is cut");
    transcript_require(rejection->detail[0] &&
                           utf8_is_valid(rejection->detail, strlen(rejection->detail)),
                       "a rejection has a sentence");
}

static inline bool transcript_entry(void *context, const struct entry *entry)
{
    struct transcript *t = context;
    transcript_check(entry);
    transcript_check_extensions(entry);
    transcript_begin(t);
    t->entries++;
    t->remarks |= entry->remarks;
    str_append_format(&t->text, "%" PRIu64 " %s", entry->line, entry->loc);
    transcript_field(&t->text, "lastmod", entry->lastmod_state, entry->lastmod);
    transcript_field(&t->text, "digest", entry->digest_state, entry->digest);
    transcript_field(&t->text, "extensions", entry->extensions_state, entry->extensions);
    if (entry->index)
        str_append_format(&t->text, " index=%s", entry->index);
    if (entry->position != POSITION_NONE)
        str_append_format(&t->text, " position=%" PRIu32, entry->position);
    transcript_remarks(&t->text, entry->remarks);
    str_append_char(&t->text, '\n');
    transcript_both(t);
    return transcript_go_on(t);
}

static inline bool transcript_reject(void *context, const struct rejection *rejection)
{
    struct transcript *t = context;
    transcript_check_rejection(rejection);
    t->rejections++;
    transcript_begin(t);
    str_append_format(&t->text, "%" PRIu64 " !%s", rejection->line,
                      rule_code_word(rejection->code));
    str_append_format(&t->text, " %s", rejection->field ? rejection->field : "-");
    if (rejection->loc)
        str_append_format(&t->text, " %s", rejection->loc);
    transcript_both(t);
    str_append_char(&t->brief, '\n');
    str_append_format(&t->text, " (%s)\n", rejection->detail);
    return transcript_go_on(t);
}

static inline void transcript_remark(void *context, enum rule_code code, uint64_t line,
                                     const char *element)
{
    struct transcript *t = context;
    (void)element;
    transcript_begin(t);
    t->remarks |= RULE_BIT(code);
    str_append_format(&t->text, "%" PRIu64 " +%s\n", line, rule_code_word(code));
    transcript_both(t);
}

static inline size_t transcript_piece(unsigned cut, uint32_t *state, size_t left)
{
    if (cut == CUT_WHOLE)
        return left;
    size_t piece = 1;
    if (cut != CUT_BYTES) {
        *state = *state * 1664525u + 1013904223u;
        /* Mostly small pieces, sometimes none, sometimes large ones. */
        piece = (*state >> 28) == 0 ? (*state >> 12) % 5000 : (*state >> 12) % 17;
    }
    return piece < left ? piece : left;
}

/* Each piece is given as a heap block of its own, so that a sanitizer sees any byte read past
 * it. */
static inline enum reader_status transcript_feed(struct reader *r, const char *bytes, size_t len)
{
    char *copy = malloc(len ? len : 1);
    if (!copy)
        abort();
    if (len > 0)
        memcpy(copy, bytes, len);
    enum reader_status status = reader_feed(r, copy, len);
    free(copy);
    return status;
}

/* Fills `t`, of which only stop_at is read; transcript_done is due. */
static inline void transcript_run(struct transcript *t, const struct reader_options *options,
                                  const void *bytes, size_t len, unsigned cut)
{
    *t = (struct transcript){.text = STR_INIT, .brief = STR_INIT, .stop_at = t->stop_at};
    struct reader_sink sink = {t, transcript_entry, transcript_reject, transcript_remark};
    struct reader *r = reader_new(options, &sink);
    if (!r)
        abort();
    uint32_t state = cut;
    const char *at = bytes;
    enum reader_status status = READER_OK;
    while (len > 0 && status == READER_OK) {
        size_t piece = transcript_piece(cut, &state, len);
        status = transcript_feed(r, at, piece);
        at += piece;
        len -= piece;
    }
    t->status = reader_finish(r);
    transcript_require(status == READER_OK || t->status == status, "a failure stays what it was");
    const struct reader_error *error = reader_error(r);
    transcript_require(utf8_is_valid(error->detail, strlen(error->detail)), "an error is readable");
    transcript_require((t->status == READER_OK) == (error->detail[0] == '\0'),
                       "an error has a sentence");
    snprintf(t->code, sizeof t->code, "%s", t->status == READER_OK ? "ok" : error->code);
    t->line = error->line;
    t->column = error->column;
    str_append_format(&t->text, "= %d %s %" PRIu64 ":%" PRIu64 " %s count=%zu single=%d", t->status,
                      t->code, error->line, error->column, error->detail,
                      t->entries + t->rejections, reader_single_object(r));
    reader_free(r);
    if (t->text.failed)
        abort();
}

static inline void transcript_done(struct transcript *t)
{
    str_done(&t->text);
    str_done(&t->brief);
}
