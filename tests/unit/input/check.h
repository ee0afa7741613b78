/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Table-driven checks of a reader: each input is read whole, byte by byte and in random pieces,
 * with one and the same outcome. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/input/transcript.h"

struct input_case {
    const char *name;
    const char *input;
    size_t len;         /* 0: strlen(input) */
    const char *expect; /* transcript.brief */
    enum reader_status status;
    const char *code;      /* NULL: "ok" */
    uint64_t line, column; /* of the error; 0: not looked at */
};

static inline void check_same(const char *name, const struct transcript *a,
                              const struct transcript *b, unsigned cut)
{
    if (strcmp(str_text(&a->text), str_text(&b->text)) != 0)
        fail_msg("%s: cut %u differs:\n%s\n--- whole:\n%s", name, cut, str_text(&b->text),
                 str_text(&a->text));
}

/* Runs it whole into `t`, and in every other cut against that. */
static inline void check_cuts(const char *name, const struct reader_options *options,
                              const void *input, size_t len, struct transcript *t)
{
    transcript_run(t, options, input, len, CUT_WHOLE);
    for (unsigned cut = CUT_BYTES; cut < 12; cut++) {
        struct transcript other = {.stop_at = t->stop_at};
        transcript_run(&other, options, input, len, cut);
        check_same(name, t, &other, cut);
        transcript_done(&other);
    }
}

static inline void check_case(const struct input_case *c, const struct reader_options *options)
{
    struct transcript t = {.stop_at = 0};
    const char *code = c->code ? c->code : "ok";
    check_cuts(c->name, options, c->input, c->len ? c->len : strlen(c->input), &t);
    if (strcmp(str_text(&t.brief), c->expect ? c->expect : "") != 0)
        fail_msg("%s: expected:\n%s\n--- got:\n%s", c->name, c->expect ? c->expect : "",
                 str_text(&t.text));
    if (t.status != c->status || strcmp(t.code, code) != 0)
        fail_msg("%s: expected %d %s, got:\n%s", c->name, c->status, code, str_text(&t.text));
    if ((c->line && c->line != t.line) || (c->column && c->column != t.column))
        fail_msg("%s: expected an error at %" PRIu64 ":%" PRIu64 ", got:\n%s", c->name, c->line,
                 c->column, str_text(&t.text));
    transcript_done(&t);
}

#define check_cases(table, options)                                                                \
    do {                                                                                           \
        for (size_t check_i = 0; check_i < sizeof(table) / sizeof((table)[0]); check_i++)          \
            check_case(&(table)[check_i], (options));                                              \
    } while (0)
