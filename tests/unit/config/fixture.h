/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What the tests of the configuration share: a configuration read from text, and the mistakes that
 * were reported, as `line: message` or `- message` for what is in no file. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/settings.h"
#include "tests/unit/scratch.h"

#define ROWS(table) (sizeof(table) / sizeof(table)[0])

struct told {
    unsigned count;
    char text[16384];
};

static inline void report_mistake(void *context, const char *file, unsigned line,
                                  const char *message)
{
    struct told *told = context;
    size_t len = strlen(told->text);

    told->count++;
    if (file == NULL)
        snprintf(told->text + len, sizeof told->text - len, "- %s\n", message);
    else
        snprintf(told->text + len, sizeof told->text - len, "%u: %s\n", line, message);
}

/* Reads `len` bytes as a file. */
static inline bool read_bytes(struct config *c, const char *bytes, size_t len, struct told *told)
{
    char path[SCRATCH_MAX_BYTES];
    scratch_name(path, "sitemapd-config");
    int fd = mkstemp(path);
    bool good;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    close(fd);
    memset(told, 0, sizeof *told);
    good = config_read_file(c, path, report_mistake, told);
    unlink(path);
    assert_int_equal(good, told->count == 0);
    return good;
}

static inline bool read_text(struct config *c, const char *text, struct told *told)
{
    return read_bytes(c, text, strlen(text), told);
}

/* One row: the mistakes of the text, all of them and nothing else. */
static inline void check_told(const char *row, const struct told *told, const char *want)
{
    if (strcmp(told->text, want) != 0)
        fail_msg("%s:\ntold\n%swant\n%s", row, told->text, want);
}

static inline bool is_number(const struct setting *s)
{
    return s->kind == SETTING_COUNT || s->kind == SETTING_PERCENT || s->kind == SETTING_SIZE ||
           s->kind == SETTING_DURATION;
}

/* A file, and what is reported of it. */
struct file_row {
    const char *text, *told;
};

static inline void check_rows(const struct file_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct config *c;
        struct told told;

        assert_non_null(c = config_new());
        read_text(c, rows[i].text, &told);
        check_told(rows[i].text, &told, rows[i].told);
        config_unref(c);
    }
}
