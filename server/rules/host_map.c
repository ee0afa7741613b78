/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses the pairs of origins and maps URLs in both directions. */
#include "server/rules/host_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char space[] = " \t\r\n";

static const char not_pairs[] =
    "must be pairs of origins, such as https://cms.example.com https://www.example.com";

/* Parses the next word of `*text` as an origin. Returns NULL, or the fault. The normal form of an
 * origin may be longer than the input: [::1:2] becomes [::0.1.0.2]. */
static const char *parse_origin(const char **text, char **origin, size_t *len)
{
    struct url url;
    const char *word = *text + strspn(*text, space);
    size_t word_len = strcspn(word, space);
    *text = word + word_len;
    if (url_parse_origin(word, word_len, &url) != RULE_OK)
        return not_pairs;
    *len = url.origin_len;
    *origin = strndup(url.text, *len);
    return *origin != NULL ? NULL : "out of memory";
}

/* Parses a pair. Returns NULL, or the fault. */
static const char *parse_pair(struct host_map *m, const char **text)
{
    if (m->count == HOST_MAP_MAX)
        return "names more than 32 pairs of origins";
    struct host_map_pair *pair = &m->pairs[m->count++];
    const char *wrong = parse_origin(text, &pair->from, &pair->from_len);
    if (wrong == NULL)
        wrong = parse_origin(text, &pair->to, &pair->to_len);
    if (wrong != NULL)
        return wrong;
    if (strcmp(pair->from, pair->to) == 0)
        return "maps an origin to itself";
    for (const struct host_map_pair *other = m->pairs; other < pair; other++)
        if (strcmp(other->from, pair->from) == 0)
            return "names the same first origin twice";
    return NULL;
}

struct host_map *host_map_new(const char *text, char *why, size_t why_size)
{
    struct host_map *m = calloc(1, sizeof *m);
    const char *wrong = m == NULL ? "out of memory" : NULL;
    while (wrong == NULL && text[strspn(text, space)] != '\0')
        wrong = parse_pair(m, &text);
    if (wrong == NULL)
        return m;
    snprintf(why, why_size, "%s", wrong);
    host_map_free(m);
    return NULL;
}

void host_map_free(struct host_map *m)
{
    for (size_t i = 0; m != NULL && i < m->count; i++) {
        free(m->pairs[i].from);
        free(m->pairs[i].to);
    }
    free(m);
}

static bool has_origin(const struct url *url, const char *origin, size_t len)
{
    return url->origin_len == len && memcmp(url->text, origin, len) == 0;
}

static bool replace_origin(const struct url *url, const char *origin, size_t len, struct url *out)
{
    char text[2 * LOC_MAX_CHARS + 1];
    size_t rest = (size_t)url->len - url->origin_len;
    if (len + rest > LOC_MAX_CHARS)
        return false;
    memcpy(text, origin, len);
    memcpy(text + len, url->text + url->origin_len, rest + 1);
    struct url changed;
    if (!url_split(text, len + rest, &changed))
        return false;
    *out = changed;
    return true;
}

bool host_map_url(const struct host_map *m, const struct url *url, struct url *out)
{
    *out = *url;
    for (size_t i = 0; m != NULL && i < m->count; i++)
        if (has_origin(url, m->pairs[i].from, m->pairs[i].from_len))
            return replace_origin(url, m->pairs[i].to, m->pairs[i].to_len, out);
    return false;
}

bool host_map_reverse(const struct host_map *m, const struct url *upstream, const struct url *url,
                      struct url *out)
{
    *out = *url;
    for (size_t i = 0; m != NULL && i < m->count; i++)
        if (has_origin(url, m->pairs[i].to, m->pairs[i].to_len))
            return replace_origin(url, upstream->text, upstream->origin_len, out);
    return false;
}
