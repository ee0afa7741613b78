#include "server/crawler_keeper.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/base/clock.h"
#include "server/crawlers/kept.h"
#include "server/log/log.h"

/* What is written goes in small changes, so that no other write waits for long. A kill -9 loses the
 * visits of a minute. Rows are the node's own: they make no revision, and nothing is published for
 * their sake. */

#define EACH_SECONDS    60
#define PAGES_AT_A_TIME 500u
#define DAYS_AT_A_TIME  100u
#define DAY_SECONDS     86400

static_assert(LAG_CELLS == CRAWLER_KEPT_LAGS, "what is kept of lags");
static_assert(CRAWLER_NAME_MAX < CRAWLER_KEPT_NAME, "what is kept of names");

struct crawler_keeper {
    struct catalogue *catalogue;
    struct crawlers *crawlers;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping; /* lock */
    /* The thread's, then the stop's. */
    bool tidied, told;
    int64_t taken_in; /* up to here what logs told is in the ledger, and is still to go; 0: none */
    struct crawler_held held[PAGES_AT_A_TIME];
    struct crawler_day sums[DAYS_AT_A_TIME];
    struct crawler_page_kept pages[PAGES_AT_A_TIME];
    struct crawler_day_kept days[DAYS_AT_A_TIME];
};

/* ---- writing ------------------------------------------------------------------------------- */

static void copy_name(const struct crawler_keeper *k, size_t crawler, char out[CRAWLER_KEPT_NAME])
{
    snprintf(out, CRAWLER_KEPT_NAME, "%s", crawlers_name(k->crawlers, crawler));
}

static void fill_page(const struct crawler_keeper *k, const struct crawler_held *from,
                      struct crawler_page_kept *to)
{
    *to = (struct crawler_page_kept){
        .held = from->row.held,
        .status = from->row.status,
        .page = from->page,
        .ok = from->row.ok,
        .not_modified = from->row.not_modified,
        .other = from->row.other,
        .index_id = from->index_id,
        .held_stamp = from->held_stamp,
        .held_changed_at = from->row.held_changed_at,
        .stale_since = from->row.stale_since,
        .fetched_at = from->row.fetched_at,
    };
    copy_name(k, from->row.crawler, to->crawler);
}

static void fill_day(const struct crawler_keeper *k, const struct crawler_day *from,
                     struct crawler_day_kept *to)
{
    *to = (struct crawler_day_kept){
        .day = from->day,
        .site_id = from->site_id,
        .ok = from->ok,
        .not_modified = from->not_modified,
        .other = from->other,
        .impostors = from->impostors,
        .bytes = from->bytes,
        .last_fetch_at = from->last_fetch_at,
        .lag_max_s = from->lags.max_s,
    };
    memcpy(to->lags, from->lags.cells, sizeof to->lags);
    copy_name(k, from->crawler, to->crawler);
}

static bool write_part(struct crawler_keeper *k, const char *epoch, size_t pages, size_t days)
{
    int32_t today = (int32_t)(time(NULL) / DAY_SECONDS);
    struct change_result result;
    struct change change = {
        .kind = CHANGE_CRAWLERS,
        .crawlers = {.epoch = epoch,
                     .since = crawlers_since(k->crawlers),
                     .tidy_before_day = k->tidied ? 0 : today - CRAWLERS_KEEP_DAYS + 1,
                     .page_count = pages,
                     .day_count = days,
                     .pages = k->pages,
                     .days = k->days,
                     .visits_taken = k->taken_in},
    };

    for (size_t i = 0; i < pages; i++)
        fill_page(k, &k->held[i], &k->pages[i]);
    for (size_t i = 0; i < days; i++)
        fill_day(k, &k->sums[i], &k->days[i]);
    enum catalogue_status status = catalogue_apply(k->catalogue, &change, &result);
    change_result_done(&result);
    if (status != CATALOGUE_OK && !k->told)
        log_event(LOG_LEVEL_WARNING, "crawlers-not-kept",
                  "what crawlers fetched cannot be written to the catalogue now: %s; it is tried "
                  "again each minute",
                  catalogue_status_word(status));
    k->told = status != CATALOGUE_OK;
    k->tidied |= status == CATALOGUE_OK;
    if (status == CATALOGUE_OK)
        k->taken_in = 0;
    return status == CATALOGUE_OK;
}

static void write_news(struct crawler_keeper *k)
{
    char epoch[CRAWLERS_EPOCH_SIZE];
    size_t page_at = 0, day_at = 0, pages, days;

    crawlers_epoch(k->crawlers, epoch);
    do {
        pages = crawlers_take_pages(k->crawlers, &page_at, k->held, PAGES_AT_A_TIME);
        days = crawlers_take_days(k->crawlers, &day_at, k->sums, DAYS_AT_A_TIME);
        if ((pages + days > 0 || k->taken_in != 0) && !write_part(k, epoch, pages, days)) {
            crawlers_take_again(k->crawlers);
            return;
        }
    } while (pages == PAGES_AT_A_TIME || days == DAYS_AT_A_TIME);
}

/* What `sitemapd crawlers import` left. It goes with the first of what is then written: a kill in
 * between counts nothing twice. */
static enum catalogue_status take_in(struct crawler_keeper *k)
{
    struct catalogue_view *view;
    enum catalogue_status status = CATALOGUE_OK;

    if (k->taken_in != 0) /* that has not gone yet, and would be read again */
        return status;
    status = catalogue_view_begin(k->catalogue, &view);
    if (status == CATALOGUE_OK) {
        status = crawlers_take_in(k->crawlers, view, &k->taken_in);
        catalogue_view_end(view);
    }
    return status;
}

static void *keep(void *context)
{
    struct crawler_keeper *k = context;

    pthread_mutex_lock(&k->lock);
    while (!k->stopping) {
        struct timespec until = clock_after_ms(CLOCK_MONOTONIC, EACH_SECONDS * 1000);
        while (!k->stopping &&
               pthread_cond_clockwait(&k->wake, &k->lock, CLOCK_MONOTONIC, &until) == 0)
            continue;
        if (k->stopping)
            break;
        pthread_mutex_unlock(&k->lock);
        take_in(k);
        write_news(k);
        pthread_mutex_lock(&k->lock);
    }
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

/* ---- reading ------------------------------------------------------------------------------- */

static enum catalogue_status read_kept(struct catalogue *catalogue, struct crawlers *crawlers)
{
    struct catalogue_view *view;
    enum catalogue_status status = catalogue_view_begin(catalogue, &view);

    if (status != CATALOGUE_OK)
        return status;
    status = crawlers_put_kept(crawlers, view);
    catalogue_view_end(view);
    return status;
}

struct crawler_keeper *crawler_keeper_start(struct catalogue *catalogue, struct crawlers *crawlers)
{
    struct crawler_keeper *k = calloc(1, sizeof *k);
    enum catalogue_status status = CATALOGUE_NO_MEMORY;

    if (k == NULL)
        goto failed;
    status = read_kept(catalogue, crawlers);
    if (status != CATALOGUE_OK)
        goto failed;
    k->catalogue = catalogue;
    k->crawlers = crawlers;
    status = take_in(k);
    if (status != CATALOGUE_OK)
        goto failed;
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->wake, NULL);
    if (pthread_create(&k->thread, NULL, keep, k) == 0)
        return k;
    pthread_cond_destroy(&k->wake);
    pthread_mutex_destroy(&k->lock);
    status = CATALOGUE_NO_MEMORY;
failed:
    log_event(LOG_LEVEL_WARNING, "crawlers-not-kept",
              "what crawlers fetch is not kept beyond this run: %s", catalogue_status_word(status));
    free(k);
    return NULL;
}

void crawler_keeper_stop(struct crawler_keeper *k)
{
    if (k == NULL)
        return;
    pthread_mutex_lock(&k->lock);
    k->stopping = true;
    pthread_cond_signal(&k->wake);
    pthread_mutex_unlock(&k->lock);
    pthread_join(k->thread, NULL);
    write_news(k);
    pthread_cond_destroy(&k->wake);
    pthread_mutex_destroy(&k->lock);
    free(k);
}
