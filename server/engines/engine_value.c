/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses numbers and times in the formats of the engines' responses. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "server/engines/engine.h"
#include "server/rules/lastmod.h"

#define NUMBER_MAX (INT64_C(1) << 40)    /* sums of all sitemaps must not overflow */
#define LATEST     INT64_C(253402300799) /* the year 9999 */

const char *engine_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

uint64_t engine_number(const json_t *value)
{
    if (json_is_integer(value))
        return json_integer_value(value) > 0 && json_integer_value(value) <= NUMBER_MAX
                   ? (uint64_t)json_integer_value(value)
                   : 0;
    const char *text = json_string_value(value);
    char *end;
    if (text == NULL || !isdigit((unsigned char)*text))
        return 0;
    unsigned long long number = strtoull(text, &end, 10);
    return *end == '\0' && number <= NUMBER_MAX ? number : 0;
}

int64_t engine_time(const json_t *value)
{
    const char *text = json_string_value(value);
    struct lastmod time;
    if (text == NULL || lastmod_parse(text, strlen(text), LATEST, &time, NULL) != RULE_OK)
        return 0;
    return lastmod_last_second(&time);
}

int64_t engine_bing_time(const json_t *value)
{
    const char *text = json_string_value(value);
    char *end;
    if (text == NULL || strncmp(text, "/Date(", 6) != 0)
        return 0;
    long long ms = strtoll(text + 6, &end, 10);
    bool whole = *end == ')' || *end == '+' || *end == '-'; /* the zone does not matter */
    return whole && ms / 1000 >= DAY_SECONDS && ms / 1000 < LATEST ? ms / 1000 : 0;
}

void engine_append_escaped(struct str *out, const char *text)
{
    for (; *text != '\0'; text++)
        if (isalnum((unsigned char)*text) || strchr("-._~", *text) != NULL)
            str_append_char(out, *text);
        else
            str_append_format(out, "%%%02X", (unsigned)(unsigned char)*text);
}

const char *engine_word(const json_t *text, char out[65])
{
    const char *word = json_string_value(text);
    size_t len = word != NULL ? strlen(word) : 0;
    *out = '\0';
    if (len > 64 ||
        (word != NULL && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789._-") != len))
        return out;
    if (word != NULL)
        memcpy(out, word, len + 1);
    return out;
}

static bool is_of_use(const struct engine_list *list, const char *loc)
{
    size_t origin = list->origin != NULL ? strlen(list->origin) : 0;
    if (strlen(loc) > LOC_MAX_CHARS ||
        (strncmp(loc, "https://", 8) != 0 && strncmp(loc, "http://", 7) != 0))
        return false;
    for (const char *c = loc; *c != '\0'; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return false;
    return origin == 0 || (strncmp(loc, list->origin, origin) == 0 && loc[origin] == '/');
}

void engine_list_add(struct engine_list *list, const struct engine_sitemap *sitemap)
{
    if (list->failed || list->count == ENGINE_SITEMAPS_MAX || !is_of_use(list, sitemap->loc) ||
        (list->bad_only && sitemap->errors + sitemap->warnings == 0))
        return;
    if (list->count == list->room) {
        size_t room = list->room * 2 + 16;
        struct engine_sitemap *grown = reallocarray(list->at, room, sizeof *grown);
        list->failed = grown == NULL;
        if (grown == NULL)
            return;
        list->at = grown;
        list->room = room;
    }
    struct engine_sitemap copy = *sitemap;
    char *loc = strdup(sitemap->loc), *parent = strdup(sitemap->parent);
    list->failed = loc == NULL || parent == NULL;
    if (list->failed) {
        free(loc);
        free(parent);
        return;
    }
    copy.loc = loc;
    copy.parent = parent;
    if (copy.urls > NUMBER_MAX)
        copy.urls = NUMBER_MAX;
    list->at[list->count++] = copy;
}

void engine_list_done(struct engine_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free((char *)(uintptr_t)list->at[i].loc);
        free((char *)(uintptr_t)list->at[i].parent);
    }
    free(list->at);
    *list = (struct engine_list){.at = NULL};
}
