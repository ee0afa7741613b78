/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Copies and comparisons of a source's settings, which follow from their rows. */
#include "server/rules/source_settings.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/str.h"
#include "server/rules/host_map.h"
#include "server/rules/url.h"

/* Copies a list of URLs in normal form; other texts are copied unchanged. */
static const char *const *normalise(const char *const *list, bool *failed)
{
    for (const char **at = (const char **)list; at != NULL && *at != NULL && !*failed; at++) {
        struct url url;
        if (url_parse(*at, strlen(*at), &url, NULL) != RULE_OK)
            continue;
        free((char *)*at);
        *at = text_copy(url.text, failed);
    }
    return list;
}

static void copy_text(const char **at, bool *failed)
{
    *at = text_copy(*at, failed);
}

static void copy_list(const char *const **at, bool *failed)
{
    *at = texts_copy(*at, failed);
}

static void copy_nothing(const void *at, const bool *failed)
{
    (void)at;
    (void)failed;
}

/* clang-format off */
#define COPY(bit, kind, c, ...) _Generic(&to->c, const char **: copy_text, \
    const char *const **: copy_list, default: copy_nothing)(&to->c, &failed);
/* clang-format on */

bool source_settings_copy(const struct source_settings *from, struct source_settings *to)
{
    char why[128];
    bool failed = false;
    *to = *from;
    SOURCE_SETTINGS_ALL(COPY)
    to->split = normalise(to->split, &failed);
    to->host_map = to->map != NULL ? host_map_new(to->map, why, sizeof why) : NULL;
    return !failed && (to->map == NULL || to->host_map != NULL);
}

static void free_text(const char **at)
{
    free((char *)*at);
}

static void free_list(const char *const **at)
{
    texts_free(*at);
}

static void free_nothing(const void *at)
{
    (void)at;
}

/* clang-format off */
#define FREE(bit, kind, c, ...) _Generic(&s->c, const char **: free_text, \
    const char *const **: free_list, default: free_nothing)(&s->c);
/* clang-format on */

void source_settings_done(struct source_settings *s)
{
    if (s->credentials != NULL)
        explicit_bzero((char *)s->credentials, strlen(s->credentials));
    SOURCE_SETTINGS_ALL(FREE)
    host_map_free(s->host_map);
}

static bool id_equal(int64_t a, int64_t b)
{
    return a == b;
}

static bool number_equal(uint64_t a, uint64_t b)
{
    return a == b;
}

/* clang-format off */
#define SAME(bit, kind, c, ...) && _Generic(a->c, const char *: text_equal, \
    const char *const *: texts_equal, int64_t: id_equal, default: number_equal)(a->c, b->c)
/* clang-format on */

bool source_settings_equal(const struct source_settings *a, const struct source_settings *b)
{
    return true SOURCE_SETTINGS_ALL(SAME);
}
