/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Copies and comparisons of a source's settings, which follow from their rows. */
#include "server/rules/source_settings.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/str.h"
#include "server/rules/host_map.h"
#include "server/rules/url.h"

/* URLs in their normal form; what is not a URL stays. */
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

#define COPY_TEXT(name) to->name = text_copy(from->name, &failed);
#define COPY_LIST(name) to->name = texts_copy(from->name, &failed);
#define NOTHING(...)

bool source_settings_copy(const struct source_settings *from, struct source_settings *to)
{
    char why[128];
    bool failed = false;
    *to = *from;
    SOURCE_SETTINGS_MEMBERS(COPY_TEXT, COPY_LIST, NOTHING)
    to->split = normalise(to->split, &failed);
    to->host_map = to->map != NULL ? host_map_new(to->map, why, sizeof why) : NULL;
    return !failed && (to->map == NULL || to->host_map != NULL);
}

#define FREE_TEXT(name) free((char *)s->name);
#define FREE_LIST(name) texts_free(s->name);

void source_settings_done(struct source_settings *s)
{
    if (s->credentials != NULL)
        explicit_bzero((char *)s->credentials, strlen(s->credentials));
    SOURCE_SETTINGS_MEMBERS(FREE_TEXT, FREE_LIST, NOTHING)
    host_map_free(s->host_map);
}

#define SAME_TEXT(name)        &&text_equal(a->name, b->name)
#define SAME_LIST(name)        &&texts_equal(a->name, b->name)
#define SAME_VALUE(type, name) &&a->name == b->name

bool source_settings_equal(const struct source_settings *a, const struct source_settings *b)
{
    return true SOURCE_SETTINGS_MEMBERS(SAME_TEXT, SAME_LIST, SAME_VALUE);
}
