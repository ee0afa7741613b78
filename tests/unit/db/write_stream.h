/* Entry streams for tests of bulk and replace: from an array, or made by a function. */
#ifndef SITEMAPD_TESTS_WRITE_STREAM_H
#define SITEMAPD_TESTS_WRITE_STREAM_H

#include <errno.h>

#include "tests/unit/db/write_fixture.h"

struct test_stream {
    /* Fills entry `n` (from 0); `text` is room for its loc. */
    void (*make)(void *context, uint64_t n, struct entry *out, char *text);
    void *context;
    uint64_t count, at;
    uint64_t fails_at; /* 0: never */
    char text[LOC_MAX_CHARS + 1];
    struct entry_stream stream;
};

static inline int stream_next(void *context, struct entry *out)
{
    struct test_stream *s = context;
    if (s->fails_at != 0 && s->at == s->fails_at) {
        errno = EIO;
        return -1;
    }
    if (s->at == s->count)
        return 0;
    memset(out, 0, sizeof *out);
    out->position = POSITION_NONE;
    out->line = s->at + 1;
    s->make(s->context, s->at++, out, s->text);
    return 1;
}

static inline bool stream_rewind(void *context)
{
    struct test_stream *s = context;
    s->at = 0;
    return true;
}

static inline struct entry_stream *stream_open(struct test_stream *s)
{
    s->stream = (struct entry_stream){s, stream_next, stream_rewind, s->count};
    return &s->stream;
}

/* One line of a literal list; a zero position means none, since literals leave it out: use `at`. */
struct line {
    const char *loc, *lastmod;
    uint32_t at; /* position + 1; 0: none */
    const char *index;
};

static inline void make_line(void *context, uint64_t n, struct entry *out, char *text)
{
    const struct line *line = &((const struct line *)context)[n];
    (void)text;
    out->loc = line->loc;
    out->lastmod = line->lastmod;
    out->lastmod_state = line->lastmod ? FIELD_SET : FIELD_ABSENT;
    out->index = line->index;
    if (line->at > 0)
        out->position = line->at - 1;
}

/* ORIGIN/<context>/<n>.xml */
static inline void make_numbered(void *context, uint64_t n, struct entry *out, char *text)
{
    snprintf(text, LOC_MAX_CHARS + 1, ORIGIN "/%s/%" PRIu64 ".xml", (const char *)context, n);
    out->loc = text;
}

struct rejections {
    size_t count;
    struct {
        uint64_t line;
        enum rule_code code;
    } each[64];
};

static inline void note_rejection(void *context, const struct rejection *rejection)
{
    struct rejections *r = context;
    assert_true(r->count < 64);
    r->each[r->count].line = rejection->line;
    r->each[r->count++].code = rejection->code;
    assert_true(rejection->detail[0] != '\0');
}

static inline struct change_result apply_stream(struct write_fixture *f, struct change change,
                                                struct test_stream *s)
{
    change.stream = stream_open(s);
    if (!change.source)
        change.source = "tests";
    return apply(f, &change);
}

static inline struct change_result apply_lines(struct write_fixture *f, struct change change,
                                               const struct line *lines, size_t count)
{
    struct test_stream s = {.make = make_line, .context = (void *)lines, .count = count};
    return apply_stream(f, change, &s);
}

#define LINES(lines) (lines), sizeof(lines) / sizeof *(lines)

static inline struct change_result bulk_numbered(struct write_fixture *f, const char *folder,
                                                 uint64_t count)
{
    struct test_stream s = {.make = make_numbered, .context = (void *)folder, .count = count};
    return apply_stream(f, (struct change){.kind = CHANGE_BULK}, &s);
}

#endif
