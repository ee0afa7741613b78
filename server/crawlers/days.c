/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Daily counts of each crawler and site in a fixed number of rows. */
#include "server/crawlers/ledger.h"

#include <pthread.h>
#include <stdlib.h>

/* One table of fixed size, hashed by site, crawler and day, with chains; one lock. The first call
 * on a new day frees sums older than DAYS_KEPT.
 *
 * If the table is full, the site with the most sums gives up its oldest one for a site with fewer;
 * a site that has about as many replaces an older one of its own. So no site displaces the sums of
 * a site with fewer, however many crawlers visit it. Places do not move back and forth: either two
 * sites become more equal, or a site's days newer. Today's sums are never dropped: counted again
 * from 0, they would replace the saved counts. */

#define BUCKETS   8192u
#define AT_A_TIME 64u /* copied under the lock, and then reported without it */

struct sum {
    struct crawler_day is;
    uint32_t next;         /* in its bucket, or in the free list */
    uint32_t next_of_site; /* in its share's list */
    bool used;
    bool taken; /* collected, and not changed since */
};

struct days {
    pthread_mutex_t lock;
    int32_t newest;
    uint32_t free, used; /* sums beyond `used` were never used */
    uint32_t buckets[BUCKETS];
    uint32_t first_of[CRAWLERS_SHARES], count_of[CRAWLERS_SHARES];
    struct sum sums[CRAWLERS_MAX_DAY_ROWS + 1];
};

struct days *days_new(void)
{
    struct days *d = calloc(1, sizeof *d);
    if (d == NULL)
        return NULL;
    pthread_mutex_init(&d->lock, NULL);
    return d;
}

void days_free(struct days *d)
{
    if (d == NULL)
        return;
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static uint32_t bucket_of(uint8_t crawler, int64_t site_id, int32_t day)
{
    uint64_t h = (uint64_t)site_id * 0x9e3779b97f4a7c15u + (uint32_t)day * 64u + crawler;
    h ^= h >> 31;
    h *= 0xbf58476d1ce4e5b9u;
    return (uint32_t)((h >> 32) % BUCKETS);
}

static uint32_t share_of(int64_t site_id)
{
    return (uint32_t)((uint64_t)site_id % CRAWLERS_SHARES);
}

/* `*link`: the place of the sum to remove, in its share's list. */
static void remove_day(struct days *d, uint32_t *link)
{
    uint32_t at = *link;
    struct sum *sum = &d->sums[at];
    uint32_t *in_bucket = &d->buckets[bucket_of(sum->is.crawler, sum->is.site_id, sum->is.day)];

    while (*in_bucket != at)
        in_bucket = &d->sums[*in_bucket].next;
    *in_bucket = sum->next;
    *link = sum->next_of_site;
    d->count_of[share_of(sum->is.site_id)]--;
    *sum = (struct sum){.next = d->free};
    d->free = at;
}

static void expire(struct days *d, int32_t before)
{
    for (uint32_t share = 0; share < CRAWLERS_SHARES; share++) {
        uint32_t *link = &d->first_of[share];
        while (*link != 0)
            if (d->sums[*link].is.day < before)
                remove_day(d, link);
            else
                link = &d->sums[*link].next_of_site;
    }
}

static void today_is(struct days *d, int64_t now)
{
    int32_t day = (int32_t)(now / DAY_SECONDS);

    if (day > d->newest) {
        d->newest = day;
        expire(d, day - DAYS_KEPT + 1);
    }
}

/* The link to the oldest sum of the share; it holds 0 if none exists. */
static uint32_t *oldest_of(struct days *d, uint32_t share)
{
    uint32_t *oldest = &d->first_of[share];

    for (uint32_t *link = oldest; *link != 0; link = &d->sums[*link].next_of_site)
        if (d->sums[*link].is.day < d->sums[*oldest].is.day)
            oldest = link;
    return oldest;
}

/* Drops a sum to make room for one of this share and day. False: none may be dropped. */
static bool make_room(struct days *d, uint32_t share, int32_t day)
{
    uint32_t most = share;

    for (uint32_t other = 0; other < CRAWLERS_SHARES; other++)
        if (d->count_of[other] > d->count_of[most])
            most = other;
    if (d->count_of[most] <
        d->count_of[share] + 2) /* otherwise the two sites would displace each other in turn */
        most = share;
    uint32_t *link = oldest_of(d, most);
    if (*link == 0 || d->sums[*link].is.day >= (most == share ? day : d->newest))
        return false;
    remove_day(d, link);
    return true;
}

static uint64_t count_all(const struct crawler_day *day)
{
    return (uint64_t)day->ok + day->not_modified + day->other + day->impostors;
}

/* NULL: no room. */
static struct sum *find_or_make(struct days *d, uint8_t crawler, int64_t site_id, int32_t day)
{
    uint32_t bucket = bucket_of(crawler, site_id, day);

    for (uint32_t at = d->buckets[bucket]; at != 0; at = d->sums[at].next) {
        const struct crawler_day *is = &d->sums[at].is;
        if (is->day == day && is->site_id == site_id && is->crawler == crawler)
            return &d->sums[at];
    }
    uint32_t share = share_of(site_id);
    if (d->free == 0 && d->used == CRAWLERS_MAX_DAY_ROWS && !make_room(d, share, day))
        return NULL;
    uint32_t at = d->free;
    d->free = d->sums[at].next; /* place 0 is unused, and its `next` is 0 */
    if (at == 0)
        at = ++d->used;
    d->sums[at] = (struct sum){.is = {.crawler = crawler, .day = day, .site_id = site_id},
                               .next = d->buckets[bucket],
                               .next_of_site = d->first_of[share],
                               .used = true};
    d->buckets[bucket] = at;
    d->first_of[share] = at;
    d->count_of[share]++;
    return &d->sums[at];
}

/* The same for a sum that is about to change. */
static struct crawler_day *sum_of(struct days *d, uint8_t crawler, int64_t site_id, int32_t day)
{
    struct sum *sum = find_or_make(d, crawler, site_id, day);
    if (sum == NULL)
        return NULL;
    sum->taken = false;
    return &sum->is;
}

/* Cells: 0 and 1; 2; 3; 4 and 5; 6 and 7; 8 to 11; 12 to 15; … */
static size_t lag_cell(uint64_t seconds)
{
    if (seconds < 2)
        return 0;
    unsigned high = 63u - (unsigned)__builtin_clzll(seconds);
    size_t cell = 2 * high + (seconds >> (high - 1) & 1) - 1;
    return cell < CRAWLER_LAG_CELLS ? cell : CRAWLER_LAG_CELLS - 1;
}

static uint64_t lag_upper(size_t cell)
{
    size_t high = (cell + 1) / 2;
    if (cell == 0)
        return 1;
    return (cell + 1) % 2 == 1 ? ((uint64_t)2 << high) - 1
                               : ((uint64_t)1 << high) + ((uint64_t)1 << (high - 1)) - 1;
}

static void add_lag(struct crawler_lags *lags, int64_t seconds)
{
    uint32_t s = seconds > UINT32_MAX ? UINT32_MAX : (uint32_t)seconds;
    lags->cells[lag_cell(s)]++;
    if (s > lags->max_s)
        lags->max_s = s;
}

void crawler_lags_add(struct crawler_lags *to, const struct crawler_lags *from)
{
    for (size_t i = 0; i < CRAWLER_LAG_CELLS; i++)
        to->cells[i] += from->cells[i];
    if (from->max_s > to->max_s)
        to->max_s = from->max_s;
}

uint64_t crawler_lags_count(const struct crawler_lags *lags)
{
    uint64_t count = 0;
    for (size_t i = 0; i < CRAWLER_LAG_CELLS; i++)
        count += lags->cells[i];
    return count;
}

uint32_t crawler_lags_percentile(const struct crawler_lags *lags, unsigned percent)
{
    uint64_t count = crawler_lags_count(lags), wanted = (count * percent + 99) / 100, sum = 0;
    for (size_t i = 0; i < CRAWLER_LAG_CELLS; i++) {
        sum += lags->cells[i];
        if (count > 0 && sum >= wanted)
            return lag_upper(i) < lags->max_s ? (uint32_t)lag_upper(i) : lags->max_s;
    }
    return 0;
}

bool days_count(struct days *d, uint8_t crawler, int64_t site_id, enum day_kind kind,
                uint64_t bytes, int64_t lag_s, int64_t now)
{
    int32_t day = (int32_t)(now / DAY_SECONDS);

    pthread_mutex_lock(&d->lock);
    today_is(d, now);
    struct crawler_day *sum = sum_of(d, crawler, site_id, day);
    if (sum != NULL) {
        sum->ok += kind == DAY_OK;
        sum->not_modified += kind == DAY_NOT_MODIFIED;
        sum->other += kind == DAY_OTHER;
        sum->impostors += kind == DAY_IMPOSTOR;
        if (kind != DAY_IMPOSTOR) {
            sum->bytes += bytes;
            sum->last_fetch_at = now;
        }
        if (lag_s >= 0)
            add_lag(&sum->lags, lag_s);
    }
    pthread_mutex_unlock(&d->lock);
    return sum != NULL;
}

void days_each(struct days *d, void (*each)(void *context, const struct crawler_day *day),
               void *context)
{
    struct crawler_day copies[AT_A_TIME];

    uint32_t used = 1;
    for (uint32_t at = 1; at <= used;) {
        size_t count = 0;
        pthread_mutex_lock(&d->lock);
        used = d->used;
        for (uint32_t end = at + AT_A_TIME; at < end && at <= used; at++)
            if (d->sums[at].used)
                copies[count++] = d->sums[at].is;
        pthread_mutex_unlock(&d->lock);
        for (size_t i = 0; i < count; i++)
            each(context, &copies[i]);
    }
}

size_t days_collect(struct days *d, size_t *at, struct crawler_day out[], size_t max)
{
    size_t count = 0;

    pthread_mutex_lock(&d->lock);
    for (; *at < d->used && count < max; (*at)++) {
        struct sum *sum = &d->sums[*at + 1];
        if (!sum->used || sum->taken)
            continue;
        sum->taken = true;
        out[count++] = sum->is;
    }
    pthread_mutex_unlock(&d->lock);
    return count;
}

void days_retry(struct days *d)
{
    pthread_mutex_lock(&d->lock);
    for (uint32_t at = 1; at <= d->used; at++)
        d->sums[at].taken = false;
    pthread_mutex_unlock(&d->lock);
}

static bool is_kept(int32_t day, int64_t now)
{
    int32_t today = (int32_t)(now / DAY_SECONDS);
    return day <= today && day > today - DAYS_KEPT;
}

void days_restore(struct days *d, const struct crawler_day *day, int64_t now)
{
    if (!is_kept(day->day, now))
        return;
    pthread_mutex_lock(&d->lock);
    today_is(d, now);
    struct sum *sum = find_or_make(d, day->crawler, day->site_id, day->day);
    if (sum != NULL && count_all(&sum->is) < count_all(day)) {
        sum->is = *day;
        sum->taken = true;
    }
    pthread_mutex_unlock(&d->lock);
}

bool days_add(struct days *d, const struct crawler_day *day, int64_t now)
{
    if (!is_kept(day->day, now))
        return true;
    pthread_mutex_lock(&d->lock);
    today_is(d, now);
    struct crawler_day *sum = sum_of(d, day->crawler, day->site_id, day->day);
    if (sum != NULL) {
        sum->ok += day->ok;
        sum->not_modified += day->not_modified;
        sum->other += day->other;
        sum->impostors += day->impostors;
        sum->bytes += day->bytes;
        if (day->last_fetch_at > sum->last_fetch_at)
            sum->last_fetch_at = day->last_fetch_at;
        crawler_lags_add(&sum->lags, &day->lags);
    }
    pthread_mutex_unlock(&d->lock);
    return sum != NULL;
}

bool days_import(struct days *d, uint8_t crawler, const struct crawler_visits *visits,
                 int64_t lag_s, int64_t now)
{
    struct crawler_day day = {
        .crawler = crawler,
        .day = visits->day,
        .site_id = visits->site_id,
        .ok = visits->ok,
        .not_modified = visits->not_modified,
        .other = visits->other,
        .impostors = visits->impostors,
        .bytes = visits->bytes,
        .last_fetch_at = visits->fetched_at,
    };
    if (lag_s >= 0)
        add_lag(&day.lags, lag_s);
    return days_add(d, &day, now);
}

void days_clear(struct days *d)
{
    pthread_mutex_lock(&d->lock);
    expire(d, INT32_MAX);
    pthread_mutex_unlock(&d->lock);
}
