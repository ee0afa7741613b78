#include <stdlib.h>
#include <string.h>

#include "server/publish/routing.h"
#include "server/rules/url.h"

static bool copy_text(const char *text, const char **out)
{
    *out = text == NULL ? NULL : strdup(text);
    return text == NULL || *out != NULL;
}

static bool copy_site(const struct publish_site *from, struct publish_site *to)
{
    struct url origin;
    const char *name = from->origin;
    if (url_parse_origin(name, strlen(name), &origin) == RULE_OK)
        name = origin.text;
    to->robots_off = from->robots_off;
    if (!copy_text(name, &to->origin) || !copy_text(from->robots_prefix, &to->robots_prefix))
        return false;
    if (from->alias_count == 0)
        return true;
    struct publish_alias *aliases = calloc(from->alias_count, sizeof *aliases);
    if (aliases == NULL)
        return false;
    to->aliases = aliases;
    to->alias_count = from->alias_count;
    for (size_t i = 0; i < from->alias_count; i++)
        if (!copy_text(from->aliases[i].from, &aliases[i].from) ||
            !copy_text(from->aliases[i].to, &aliases[i].to))
            return false;
    return true;
}

bool routing_policies_init(struct routing_policies *out, const struct publisher_options *options)
{
    out->strict_host = options->strict_host;
    out->sites = calloc(options->site_count + 1, sizeof *out->sites);
    if (out->sites == NULL)
        return false;
    for (; out->count < options->site_count; out->count++)
        if (!copy_site(&options->sites[out->count], &out->sites[out->count])) {
            out->count++; /* the half-copied one is freed as well */
            return false;
        }
    return true;
}

void routing_policies_done(struct routing_policies *p)
{
    for (size_t i = 0; i < p->count; i++) {
        struct publish_site *site = &p->sites[i];
        for (size_t k = 0; k < site->alias_count; k++) {
            free((char *)site->aliases[k].from);
            free((char *)site->aliases[k].to);
        }
        free((struct publish_alias *)site->aliases);
        free((char *)site->origin);
        free((char *)site->robots_prefix);
    }
    free(p->sites);
    p->sites = NULL;
    p->count = 0;
}
