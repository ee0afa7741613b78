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
#include "tests/unit/lib/scratch.h"

#define ROWS(table) (sizeof(table) / sizeof(table)[0])

struct mistake_list {
    unsigned count;
    char text[16384];
};

static inline void report_mistake(void *context, const char *file, unsigned line,
                                  const char *message)
{
    struct mistake_list *mistakes = context;
    size_t len = strlen(mistakes->text);

    mistakes->count++;
    if (file == NULL)
        snprintf(mistakes->text + len, sizeof mistakes->text - len, "- %s\n", message);
    else
        snprintf(mistakes->text + len, sizeof mistakes->text - len, "%u: %s\n", line, message);
}

/* Reads `len` bytes as a file. */
static inline bool read_bytes(struct config *c, const char *bytes, size_t len,
                              struct mistake_list *mistakes)
{
    char path[SCRATCH_MAX_BYTES];
    int fd = scratch_file(path, "sitemapd-config");
    bool good;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    close(fd);
    memset(mistakes, 0, sizeof *mistakes);
    good = config_read_file(c, path, report_mistake, mistakes);
    unlink(path);
    assert_int_equal(good, mistakes->count == 0);
    return good;
}

static inline bool read_text(struct config *c, const char *text, struct mistake_list *mistakes)
{
    return read_bytes(c, text, strlen(text), mistakes);
}

/* One row: the mistakes of the text, all of them and nothing else. */
static inline void check_mistakes(const char *row, const struct mistake_list *mistakes,
                                  const char *want)
{
    if (strcmp(mistakes->text, want) != 0)
        fail_msg("%s:\nreported\n%swant\n%s", row, mistakes->text, want);
}

static inline bool is_number(const struct setting *s)
{
    return s->kind == SETTING_COUNT || s->kind == SETTING_PERCENT || s->kind == SETTING_SIZE ||
           s->kind == SETTING_DURATION;
}

/* A file, and what is reported of it. */
struct file_row {
    const char *text, *mistakes;
};

static inline void check_rows(const struct file_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct config *c;
        struct mistake_list mistakes;

        assert_non_null(c = config_new());
        read_text(c, rows[i].text, &mistakes);
        check_mistakes(rows[i].text, &mistakes, rows[i].mistakes);
        config_unref(c);
    }
}
