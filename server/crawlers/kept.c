/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Restores what an earlier run stored, and merges imported visits. */
#include "server/crawlers/kept.h"

#include <string.h>
#include <time.h>

static void restore_page(void *context, const struct crawler_page_kept *from)
{
    crawlers_restore_page(context, from->crawler, &from->is);
}

static void restore_day(void *context, const struct crawler_day_kept *from)
{
    crawlers_restore_day(context, from->crawler, &from->is, (int64_t)time(NULL));
}

static void restore_child(void *context, const struct crawler_child_kept *from)
{
    crawlers_restore_child(context, from->crawler, &from->is);
}

enum catalogue_status crawlers_restore(struct crawlers *c, struct catalogue_view *view,
                                       const char *node)
{
    struct crawlers_begun begun;
    enum catalogue_status status = catalogue_view_crawlers_begun(view, &begun);

    if (status != CATALOGUE_OK || begun.since == 0 ||
        (node != NULL && begun.node[0] != '\0' && strcmp(begun.node, node) != 0))
        return status;
    crawlers_restore_since(c, begun.since);
    status = catalogue_view_crawlers(view, restore_page, restore_day, c);
    return status == CATALOGUE_OK ? catalogue_view_crawler_children(view, restore_child, c)
                                  : status;
}

/* ---- other nodes --------------------------------------------------------------------------- */

struct learning {
    struct crawlers *crawlers;
    const char *node;
};

static void learn_page(void *context, const struct crawler_page_kept *page)
{
    const struct learning *l = context;
    restore_page(l->crawlers, page);
}

/* A sum that this node reported itself: needed if its file was replaced by an older or a new one.
 */
static void learn_day(void *context, const struct crawler_day_kept *from)
{
    const struct learning *l = context;

    if (strcmp(from->node, l->node) == 0)
        crawlers_restore_day(l->crawlers, from->crawler, &from->is, (int64_t)time(NULL));
    else
        crawlers_others_day(l->crawlers, from->crawler, &from->is, (int64_t)time(NULL));
}

enum catalogue_status crawlers_learn(struct crawlers *c, struct catalogue_view *view,
                                     const char *node, bool again)
{
    struct learning learning = {c, node};
    int64_t times, since;
    enum catalogue_status status = catalogue_view_crawlers_times(view, &times, &since);

    if (status != CATALOGUE_OK || times == 0 || !crawlers_others_begin(c, again ? 0 : times))
        return status;
    status = catalogue_view_crawlers_reported(view, learn_page, learn_day, &learning);
    crawlers_others_end(c, status == CATALOGUE_OK ? times : 0);
    crawlers_restore_since(c, since);
    return status;
}

enum catalogue_status crawlers_learn_all(struct crawlers *c, struct catalogue_view *view)
{
    struct crawlers_begun begun;
    enum catalogue_status status = catalogue_view_crawlers_begun(view, &begun);

    return status == CATALOGUE_OK ? crawlers_learn(c, view, begun.node, true) : status;
}

/* ---- logs ---------------------------------------------------------------------------------- */

static void merge_visits(void *context, const struct crawler_visits *visits)
{
    crawlers_import(context, visits, (int64_t)time(NULL));
}

enum catalogue_status crawlers_merge_imported(struct crawlers *c, struct catalogue_view *view,
                                              int64_t *last)
{
    return catalogue_view_crawler_visits(view, last, merge_visits, c);
}
