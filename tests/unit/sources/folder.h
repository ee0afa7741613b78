/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A folder of its own for a test, and short names for what is done to it. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* cmocka.h needs some of these. */
#include <cmocka.h>

#include "tests/unit/lib/scratch.h"

struct temp_folder {
    char path[64];
    char outside[64]; /* another, not below it */
};

static inline void folder_make(struct temp_folder *f)
{
    scratch_make(f->path, "sitemapd-source");
    scratch_make(f->outside, "sitemapd-beside");
}

/* A command in the folder. */
static inline void folder_do(const struct temp_folder *f, const char *format, ...)
{
    char text[4096];
    va_list arguments;
    int len = snprintf(text, sizeof text, "cd '%s' && OUT='%s' && ", f->path, f->outside);
    va_start(arguments, format);
    vsnprintf(text + len, sizeof text - (size_t)len, format, arguments);
    va_end(arguments);
    if (system(text) != 0)
        fail_msg("%s", text);
}

static inline void folder_remove(struct temp_folder *f)
{
    char command[256];
    snprintf(command, sizeof command, "chmod -R u+rwx '%s'; rm -rf '%s' '%s'", f->path, f->path,
             f->outside);
    assert_int_equal(system(command), 0);
}

/* A test's, whose state it is. */
static inline int folder_setup(void **state)
{
    struct temp_folder *f = malloc(sizeof *f);
    folder_make(f);
    *state = f;
    return 0;
}

static inline int folder_teardown(void **state)
{
    folder_remove(*state);
    free(*state);
    return 0;
}

/* Writes a file whole, in place. */
static inline void folder_write(const struct temp_folder *f, const char *path, const char *text)
{
    char name[2048];
    snprintf(name, sizeof name, "%s/%s", f->path, path);
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Dates a file so many seconds before now (negative: ahead). */
static inline void folder_date(const struct temp_folder *f, const char *path, int64_t age)
{
    char name[2048];
    struct timespec times[2];
    snprintf(name, sizeof name, "%s/%s", f->path, path);
    times[0] = times[1] = (struct timespec){.tv_sec = time(NULL) - age};
    assert_int_equal(utimensat(AT_FDCWD, name, times, 0), 0);
}

/* A sitemap of one page, and a comment that counts for nothing. */
static inline void folder_sitemap(const struct temp_folder *f, const char *path, const char *page,
                                  const char *comment, int64_t age)
{
    char text[1024];
    snprintf(text, sizeof text,
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- %s -->\n"
             "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">"
             "<url><loc>https://www.example.com/%s</loc></url></urlset>\n",
             comment, page);
    folder_write(f, path, text);
    folder_date(f, path, age);
}
