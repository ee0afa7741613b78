/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Two keepers, each with a thread: one loads the crawlers' ledger at the start and saves it once a
 * minute, the other saves the sizes of the sites. */
#include "server/keepers.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/base/clock.h"
#include "server/base/thread.h"
#include "server/crawlers/kept.h"
#include "server/log/log.h"
#include "server/rules/lastmod.h"

/* The crawlers' ledger is written in small changes, so that no other write waits for long. A kill
 * -9 loses the visits of a minute. The rows are local to the node: they create no revision, and
 * nothing is published because of them.
 *
 * A node of a shared catalogue reports its rows to the others as soon as it can reach the log, and
 * learns theirs: the newer row of each page, and each node's sums of a day. Before it reports, it
 * also learns what it reported itself earlier: so a node whose file was lost, or is older,
 * continues from there. */

#define EACH_SECONDS       60
#define PAGES_AT_A_TIME    500u
#define DAYS_AT_A_TIME     100u
#define CHILDREN_AT_A_TIME 500u
#define JOIN_SECONDS       1 /* before the node has joined */

static_assert(CRAWLER_NAME_MAX < CRAWLER_KEPT_NAME, "what is kept of names");

struct crawler_keeper {
    struct catalogue *catalogue;
    struct crawlers *crawlers;
    struct thread thread;
    /* Used by the thread, and after its end by the stop. */
    bool logged;
    int32_t tidied_day; /* 0: not yet */
    size_t written;     /* pages written since the last clean-up */
    bool joined;        /* the rows of other nodes are known: until then, look every second */
    bool tidied;        /* cleaned up since the last report to other nodes */
    struct shared_state shared; /* of a shared catalogue; else its node is "" */
    int64_t taken_in; /* imported visits up to this id are in the ledger, and not yet removed from
                         the catalogue; 0: none */
    struct crawler_held held[PAGES_AT_A_TIME];
    struct crawler_day sums[DAYS_AT_A_TIME];
    struct crawler_page_kept pages[PAGES_AT_A_TIME];
    struct crawler_day_kept days[DAYS_AT_A_TIME];
    struct crawler_child fetched[CHILDREN_AT_A_TIME];
    struct crawler_child_kept children[CHILDREN_AT_A_TIME];
};

/* ---- writing ------------------------------------------------------------------------------- */

static void copy_name(const struct crawler_keeper *k, size_t crawler, char out[CRAWLER_KEPT_NAME])
{
    snprintf(out, CRAWLER_KEPT_NAME, "%s", crawlers_name(k->crawlers, crawler));
}

static int32_t this_day(void)
{
    return (int32_t)(time(NULL) / DAY_SECONDS);
}

/* Removed pages and old days are dropped once a day, or earlier if much was written. */
static bool tidy_is_due(const struct crawler_keeper *k)
{
    return k->tidied_day != this_day() || k->written >= CRAWLERS_MAX_ROWS;
}

static enum catalogue_status apply(struct crawler_keeper *k, const struct change *change)
{
    struct change_result result;
    enum catalogue_status status = catalogue_apply(k->catalogue, change, &result);
    change_result_done(&result);
    return status;
}

static bool write_part(struct crawler_keeper *k, const char *epoch, size_t pages, size_t days,
                       size_t children)
{
    bool tidies = tidy_is_due(k);
    const struct change change = {
        .kind = CHANGE_CRAWLERS,
        .crawlers = {.epoch = epoch,
                     .node = k->shared.node,
                     .since = crawlers_since(k->crawlers),
                     .tidy_before_day = tidies ? this_day() - DAYS_KEPT + 1 : 0,
                     .page_count = pages,
                     .day_count = days,
                     .child_count = children,
                     .children = k->children,
                     .pages = k->pages,
                     .days = k->days,
                     .visits_taken = k->taken_in},
    };

    for (size_t i = 0; i < pages; i++) {
        k->pages[i].is = k->held[i];
        copy_name(k, k->held[i].row.crawler, k->pages[i].crawler);
    }
    for (size_t i = 0; i < days; i++) {
        k->days[i].is = k->sums[i];
        copy_name(k, k->sums[i].crawler, k->days[i].crawler);
    }
    for (size_t i = 0; i < children; i++) {
        k->children[i].is = k->fetched[i];
        copy_name(k, k->fetched[i].crawler, k->children[i].crawler);
    }
    enum catalogue_status status = apply(k, &change);
    if (status != CATALOGUE_OK && !k->logged)
        log_event(LOG_LEVEL_WARNING, "crawlers-not-kept",
                  "cannot write the crawlers' fetches to the catalogue: %s; retrying every minute",
                  catalogue_status_word(status));
    k->logged = status != CATALOGUE_OK;
    if (status != CATALOGUE_OK)
        return false;
    if (tidies) {
        k->tidied_day = this_day();
        k->written = 0;
        k->tidied = true;
    }
    k->written += pages;
    k->taken_in = 0;
    return true;
}

static void write_news(struct crawler_keeper *k)
{
    char epoch[CRAWLERS_EPOCH_SIZE];
    size_t page_at = 0, day_at = 0, child_at = 0, pages, days, children;

    crawlers_epoch(k->crawlers, epoch);
    do {
        /* Days first: a fetch between the two calls must not be counted for the day before its page
         * is collected. */
        days = crawlers_collect_days(k->crawlers, &day_at, k->sums, DAYS_AT_A_TIME);
        pages = crawlers_collect_pages(k->crawlers, &page_at, k->held, PAGES_AT_A_TIME);
        children =
            crawlers_collect_children(k->crawlers, &child_at, k->fetched, CHILDREN_AT_A_TIME);
        if ((pages + days + children > 0 || k->taken_in != 0) &&
            !write_part(k, epoch, pages, days, children)) {
            crawlers_retry(k->crawlers);
            return;
        }
    } while (pages == PAGES_AT_A_TIME || days == DAYS_AT_A_TIME || children == CHILDREN_AT_A_TIME);
}

/* Merges the visits that `sitemapd crawlers import` stored. The first change that is then written
 * also removes them, so that a kill in between counts nothing twice. */
static enum catalogue_status merge_imported(struct crawler_keeper *k)
{
    struct catalogue_view *view;
    enum catalogue_status status = CATALOGUE_OK;

    if (k->taken_in != 0) /* the merged visits are still stored, and would be read again */
        return status;
    status = catalogue_view_begin(k->catalogue, &view);
    if (status == CATALOGUE_OK) {
        status = crawlers_merge_imported(k->crawlers, view, &k->taken_in);
        catalogue_view_end(view);
    }
    return status;
}

/* ---- a shared catalogue -------------------------------------------------------------------- */

/* The stored rows may be gone: a snapshot may have replaced the file. */
static void reload_if_replaced(struct crawler_keeper *k)
{
    struct crawlers_begun begun;
    struct catalogue_view *view;

    if (catalogue_view_begin(k->catalogue, &view) != CATALOGUE_OK)
        return;
    if (catalogue_view_crawlers_begun(view, &begun) == CATALOGUE_OK && begun.since == 0)
        crawlers_retry(k->crawlers);
    crawlers_learn(k->crawlers, view, k->shared.node, true);
    catalogue_view_end(view);
}

static bool is_unreported(struct crawler_keeper *k)
{
    struct catalogue_view *view;
    bool unreported = false;

    if (catalogue_view_begin(k->catalogue, &view) != CATALOGUE_OK)
        return false;
    catalogue_view_crawlers_unreported(view, &unreported);
    catalogue_view_end(view);
    return unreported;
}

static void report_nodes(struct crawler_keeper *k)
{
    char epoch[CRAWLERS_EPOCH_SIZE];
    enum catalogue_status status = CATALOGUE_OK;

    crawlers_epoch(k->crawlers, epoch);
    while (status == CATALOGUE_OK && catalogue_shared_state(k->catalogue, &k->shared) &&
           k->shared.followed == NULL && k->shared.phase == SHARED_JOINED &&
           k->shared.away_ms == 0 && !k->shared.upgrade_pending && is_unreported(k)) {
        const struct change change = {
            .kind = CHANGE_CRAWLERS_REPORT,
            .crawlers = {.epoch = epoch,
                         .node = k->shared.node,
                         .since = crawlers_since(k->crawlers),
                         .tidy_before_day = k->tidied ? this_day() - DAYS_KEPT + 1 : 0},
        };
        status = apply(k, &change);
        k->tidied &= status != CATALOGUE_OK;
    }
}

/* Called by the thread each minute, and by the stop. */
static void keep_news(struct crawler_keeper *k)
{
    bool shared = catalogue_shared_state(k->catalogue, &k->shared);

    if (shared && k->shared.phase == SHARED_JOINING)
        return;
    if (shared)
        reload_if_replaced(k);
    write_news(k);
    if (shared)
        report_nodes(k);
    k->joined = true;
}

static void keep(void *context)
{
    struct crawler_keeper *k = context;

    while (thread_wait(&k->thread, 1000 * (k->joined ? EACH_SECONDS : JOIN_SECONDS))) {
        merge_imported(k);
        keep_news(k);
    }
}

/* ---- reading ------------------------------------------------------------------------------- */

static enum catalogue_status read_kept(struct crawler_keeper *k)
{
    struct catalogue_view *view;
    bool shared = catalogue_shared_state(k->catalogue, &k->shared);
    enum catalogue_status status = catalogue_view_begin(k->catalogue, &view);

    if (status != CATALOGUE_OK)
        return status;
    status = crawlers_restore(k->crawlers, view, shared ? k->shared.node : NULL);
    if (status == CATALOGUE_OK && shared)
        status = crawlers_learn(k->crawlers, view, k->shared.node, true);
    k->joined = !shared;
    catalogue_view_end(view);
    return status;
}

struct crawler_keeper *crawler_keeper_start(struct catalogue *catalogue, struct crawlers *crawlers)
{
    struct crawler_keeper *k = calloc(1, sizeof *k);
    enum catalogue_status status = CATALOGUE_NO_MEMORY;

    if (k == NULL)
        goto failed;
    k->catalogue = catalogue;
    k->crawlers = crawlers;
    status = read_kept(k);
    if (status == CATALOGUE_OK)
        status = merge_imported(k);
    if (status != CATALOGUE_OK)
        goto failed;
    if (thread_start(&k->thread, "crawlers", keep, k))
        return k;
    status = CATALOGUE_NO_MEMORY;
failed:
    log_event(LOG_LEVEL_WARNING, "crawlers-not-kept",
              "the crawlers' fetches are not stored, and are lost at a restart: %s",
              catalogue_status_word(status));
    free(k);
    return NULL;
}

void crawler_keeper_stop(struct crawler_keeper *k)
{
    if (k == NULL)
        return;
    thread_stop(&k->thread);
    keep_news(k);
    free(k);
}

/* Saves the sizes of sites every five minutes. */

/* Only rows that differ are written, a bounded number in each change: no other write waits for
 * long, however many sites there are. */

struct day_keeper {
    struct catalogue *catalogue;
    struct thread thread;
    int64_t ms; /* between two looks */
    /* Used by the thread, and after its end by the stop. */
    bool failed, gone; /* gone: rows of removed sites were found: there may be more */
    int32_t day; /* the last rows that were written are of this day and revision; 0: none yet */
    uint64_t revision;
    size_t count;
    struct site_day rows[SITE_DAYS_WRITE_MAX];
};

static void add_row(void *context, const struct site_day *row)
{
    struct day_keeper *k = context;
    k->gone |= row->day < 0;
    if (k->count < SITE_DAYS_WRITE_MAX)
        k->rows[k->count++] = *row;
}

static enum catalogue_status write_rows(struct day_keeper *k)
{
    const struct change change = {
        .kind = CHANGE_SITE_DAYS,
        .site_days = {.count = k->count, .rows = k->rows},
    };
    struct change_result result;
    if (k->count == 0)
        return CATALOGUE_OK;
    enum catalogue_status status = catalogue_apply(k->catalogue, &change, &result);
    change_result_done(&result);
    return status;
}

/* Ends the view before it waits for the writer. */
static enum catalogue_status write_some(struct day_keeper *k, int32_t day, int64_t *after)
{
    struct catalogue_view *view;
    k->count = 0;
    enum catalogue_status status = catalogue_view_begin(k->catalogue, &view);
    if (status != CATALOGUE_OK)
        return status;
    status = catalogue_view_site_days_due(view, day, after, add_row, k);
    catalogue_view_end(view);
    return status == CATALOGUE_OK ? write_rows(k) : status;
}

/* The revision before the first look, so that the next round finds what changes during this one. */
static enum catalogue_status find_revision(struct day_keeper *k, uint64_t *out)
{
    struct catalogue_view *view;
    struct catalogue_revisions now;
    enum catalogue_status status = catalogue_view_begin(k->catalogue, &view);
    if (status != CATALOGUE_OK)
        return status;
    status = catalogue_view_revisions(view, &now);
    catalogue_view_end(view);
    *out = now.revision;
    return status;
}

static void keep_day(struct day_keeper *k)
{
    int32_t day = (int32_t)(clock_unix_ms() / 1000 / CALENDAR_SECONDS_PER_DAY);
    struct shared_state shared;
    uint64_t revision;
    int64_t after = 0;

    if (catalogue_shared_state(k->catalogue, &shared) && shared.phase == SHARED_JOINING)
        return;
    enum catalogue_status status = find_revision(k, &revision);
    if (status == CATALOGUE_OK && k->day == day && k->revision == revision)
        return;
    do {
        k->gone &= after != 0;
        if (status == CATALOGUE_OK)
            status = write_some(k, day, &after);
    } while (status == CATALOGUE_OK && (after != 0 || k->gone));
    if (status != CATALOGUE_OK && !k->failed)
        log_event(LOG_LEVEL_WARNING, "day-sums-not-kept",
                  "cannot write the daily statistics to the catalogue: %s; the server retries",
                  catalogue_status_word(status));
    k->failed = status != CATALOGUE_OK;
    if (k->failed)
        return;
    k->day = day;
    k->revision = revision;
}

static void keep_days(void *context)
{
    struct day_keeper *k = context;
    while (thread_wait(&k->thread, k->ms))
        keep_day(k);
}

struct day_keeper *day_keeper_start(struct catalogue *catalogue, int64_t ms)
{
    struct day_keeper *k = calloc(1, sizeof *k);
    if (k != NULL) {
        k->catalogue = catalogue;
        k->ms = ms;
        if (thread_start(&k->thread, "days", keep_days, k))
            return k;
    }
    free(k);
    log_event(LOG_LEVEL_WARNING, "day-sums-not-kept",
              "the daily statistics are not stored: cannot start a thread (out of memory, or the "
              "limit of tasks is reached); restart the server to retry");
    return NULL;
}

void day_keeper_stop(struct day_keeper *k)
{
    if (k == NULL)
        return;
    thread_stop(&k->thread);
    keep_day(k);
    free(k);
}
