/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Checks all aliases in rounds, a bounded step at a time, and reports the result of a round at its
 * end. A new map or revision does not restart the round, which would never end while changes
 * continue; another round follows it. */
#include "server/pages/alias_watch.h"

#include <stdio.h>
#include <string.h>

#include "db/catalogue.h"
#include "db/view.h"
#include "server/base/clock.h"
#include "server/pages/page_map.h"

/* Two lookups for each alias, a few microseconds each. */
#define STEP_ALIASES 100u
#define STEP_MS      100

void alias_watch_init(struct alias_watch *w)
{
    *w = (struct alias_watch){0};
    pthread_mutex_init(&w->lock, NULL);
}

static void faults_clear(struct alias_faults *f)
{
    f->count = 0;
    str_clear(&f->first);
}

void alias_watch_done(struct alias_watch *w)
{
    publisher_page_map_done(w->map);
    str_done(&w->hidden.first);
    str_done(&w->nowhere.first);
    str_done(&w->last_hidden.first);
    str_done(&w->last_nowhere.first);
    pthread_mutex_destroy(&w->lock);
}

static enum catalogue_status is_listed(struct catalogue_view *v, const struct registry_site *site,
                                       const char *path, bool *listed)
{
    char loc[LOC_MAX_CHARS + 1];
    struct entry_record entry;
    int len = snprintf(loc, sizeof loc, "%s%s", site->origin, path);
    *listed = false;
    if (len < 0 || (size_t)len >= sizeof loc)
        return CATALOGUE_OK;
    enum catalogue_status status = catalogue_view_entry_by_loc(v, site->id, loc, &entry);
    *listed = status == CATALOGUE_OK;
    if (*listed)
        entry_record_done(&entry);
    return status == CATALOGUE_NOT_FOUND ? CATALOGUE_OK : status;
}

/* An index or urlset without entries has no page yet. */
static bool is_list(const struct registry_site *site, const char *path)
{
    const struct registry_index *list;
    size_t i = 0;
    while ((list = registry_site_list(site, i)) != NULL && strcmp(list->path, path) != 0)
        i++;
    return list != NULL;
}

static enum catalogue_status look_at(struct alias_watch *w, struct catalogue_view *v,
                                     const struct page_map_alias *alias)
{
    const struct registry_site *site = alias->site;
    bool hides, leads = alias->leads || is_list(site, alias->to);
    enum catalogue_status status = is_listed(v, site, alias->from, &hides);
    if (status == CATALOGUE_OK && !leads)
        status = is_listed(v, site, alias->to, &leads);
    if (status != CATALOGUE_OK)
        return status;
    if (hides && w->hidden.count++ == 0)
        str_append_format(&w->hidden.first,
                          "%s%s is a listed sitemap, but an alias redirects it to %s%s",
                          site->origin, alias->from, site->origin, alias->to);
    if (!leads && w->nowhere.count++ == 0)
        str_append_format(&w->nowhere.first,
                          "the alias %s%s redirects to %s%s, which does not exist here",
                          site->origin, alias->from, site->origin, alias->to);
    return CATALOGUE_OK;
}

static void swap(struct alias_faults *found, struct alias_faults *last)
{
    struct alias_faults before = *last;
    *last = *found;
    *found = before;
    faults_clear(found);
}

static void end_round(struct alias_watch *w)
{
    pthread_mutex_lock(&w->lock);
    swap(&w->hidden, &w->last_hidden);
    swap(&w->nowhere, &w->last_nowhere);
    pthread_mutex_unlock(&w->lock);
    w->at = 0;
    w->revision = w->began_at;
}

void alias_watch_step(struct alias_watch *w, const struct page_map *map, uint64_t revision,
                      struct catalogue *c)
{
    struct catalogue_view *v;
    struct page_map_alias alias;
    int64_t now_ms = clock_now_ms();
    bool is_new = map != w->map;
    if (now_ms < w->next_ms || (w->at == 0 && !is_new && revision == w->revision))
        return;
    w->next_ms = now_ms + STEP_MS;
    if (is_new) {
        publisher_page_map_done(w->map);
        page_map_ref(map);
        w->map = map;
    }
    if (w->at == 0)
        w->began_at = revision;
    else if (is_new)
        w->began_at = UINT64_MAX; /* another round follows */
    bool more = page_map_alias(map, w->at, &alias);
    if (more) {
        if (catalogue_view_begin(c, &v) != CATALOGUE_OK)
            return;
        const size_t end = w->at + STEP_ALIASES;
        while (more && w->at < end && look_at(w, v, &alias) == CATALOGUE_OK)
            more = page_map_alias(map, ++w->at, &alias);
        catalogue_view_end(v);
    }
    if (!more)
        end_round(w);
}
