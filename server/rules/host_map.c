#include "server/rules/host_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char space[] = " \t\r\n";

/* Writes the next origin of `*text` to `out`, with a NUL. False: there is none. */
static bool take_origin(const char **text, char *out, size_t *len)
{
    struct url url;
    const char *word = *text + strspn(*text, space);
    size_t word_len = strcspn(word, space);
    *text = word + word_len;
    if (url_parse_origin(word, word_len, &url) != RULE_OK)
        return false;
    *len = url.origin_len;
    memcpy(out, url.text, *len);
    out[*len] = '\0';
    return true;
}

/* NULL, or what is wrong. */
static const char *take_pair(struct host_map *m, const char **text, char **room)
{
    struct host_map_pair *pair = &m->pairs[m->count];
    char *from = *room;
    if (m->count == HOST_MAP_MAX)
        return "names more than 32 pairs of origins";
    if (!take_origin(text, from, &pair->from_len))
        return "must be pairs of origins, as https://cms.example.com https://www.example.com";
    char *to = from + pair->from_len + 1;
    if (!take_origin(text, to, &pair->to_len))
        return "must be pairs of origins, as https://cms.example.com https://www.example.com";
    *room = to + pair->to_len + 1;
    pair->from = from;
    pair->to = to;
    if (strcmp(from, to) == 0)
        return "leads an origin to itself";
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->pairs[i].from, from) == 0)
            return "names the same first origin twice";
    m->count++;
    return NULL;
}

struct host_map *host_map_new(const char *text, char *why, size_t why_size)
{
    struct host_map *m = calloc(1, sizeof *m);
    /* A NUL in the place of each space, and one more for each; a host's normal form is not longer
     * than what was written, but for a root slash that goes. */
    char *room = m != NULL ? malloc(strlen(text) + 2) : NULL;
    const char *wrong = room == NULL ? "out of memory" : NULL;
    if (m != NULL)
        m->texts = room;
    while (wrong == NULL && text[strspn(text, space)] != '\0')
        wrong = take_pair(m, &text, &room);
    if (wrong == NULL)
        return m;
    snprintf(why, why_size, "%s", wrong);
    host_map_free(m);
    return NULL;
}

void host_map_free(struct host_map *m)
{
    if (m != NULL)
        free(m->texts);
    free(m);
}

static bool has_origin(const struct url *url, const char *origin, size_t len)
{
    return url->origin_len == len && memcmp(url->text, origin, len) == 0;
}

static bool put_origin(const struct url *url, const char *origin, size_t len, struct url *out)
{
    char text[2 * LOC_MAX_CHARS + 1];
    size_t rest = (size_t)url->len - url->origin_len;
    if (len + rest > LOC_MAX_CHARS)
        return false;
    memcpy(text, origin, len);
    memcpy(text + len, url->text + url->origin_len, rest + 1);
    return url_split(text, len + rest, out);
}

bool host_map_url(const struct host_map *m, const struct url *url, struct url *out)
{
    *out = *url;
    for (size_t i = 0; m != NULL && i < m->count; i++)
        if (has_origin(url, m->pairs[i].from, m->pairs[i].from_len))
            return put_origin(url, m->pairs[i].to, m->pairs[i].to_len, out);
    return false;
}

bool host_map_ask(const struct host_map *m, const struct url *upstream, const struct url *url,
                  struct url *out)
{
    *out = *url;
    for (size_t i = 0; m != NULL && i < m->count; i++)
        if (has_origin(url, m->pairs[i].to, m->pairs[i].to_len))
            return put_origin(url, upstream->text, upstream->origin_len, out);
    return false;
}
