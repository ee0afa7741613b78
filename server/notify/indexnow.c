/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A batch has the changes of a site after its stored position in the history, each URL once: at
 * most BATCH_MAX_URLS and, rounded up to a part, BATCH_MAX_BYTES. Sites take turns, and each reads
 * at most LOOK_PARTS; if these have nothing to send, only the position moves, once that is worth a
 * write. A batch is kept until it was accepted (200, 202) and the position has moved past it by
 * compare and set. Nobody waits for that move; if it fails, only the move is tried again. A batch
 * that is not accepted is sent again at growing intervals or as Retry-After asks; after a day of
 * failures, changes older than a day are dropped and counted. A site that is enabled for the first
 * time begins with the next change: crawlers know its present pages from its sitemaps. In a shared
 * catalogue, one node sends.
 *
 * If the history has nothing to send, a batch has the changed page URLs of one mirrored sitemap:
 * the difference of its replaced and its current copy (server/sources/child_changes.h). That needs
 * no position: while the replaced copy exists, there is something to send.
 *
 * Memory: a batch for each site, and 24 bytes for each page URL of the replaced copy while a
 * mirrored sitemap is sent. */
#include "server/notify/indexnow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/str.h"
#include "server/base/thread.h"
#include "server/client/client.h"
#include "server/client/loop.h"
#include "server/log/log.h"
#include "server/sources/child_changes.h"
#include "server/trace/trace.h"

#define LEAD            "indexnow" /* the lease of the node that sends */
#define LOOK_MS         5000       /* changes within it are sent together */
#define PACE_MS         1000       /* after a batch was accepted, the next look */
#define STOP_LOOK_MS    10
#define RETRY_MIN_MS    30000
#define KEEP_SECONDS    86400
#define TIMEOUT_MS      30000
#define ANSWER_BYTES    65536
#define BATCH_MAX_URLS  10000u
#define BATCH_MAX_BYTES (2u << 20)
#define SENDING_MAX     4u
#define LOOK_PARTS      256u /* of about a thousand rows */
/* Moving the position over so many parts or revisions is worth a write, */
#define PASSED_PARTS     64u
#define PASSED_REVISIONS 1000u
#define PASSED_MS        3600000 /* or after this time, since the history is limited */
/* So many changed page URLs of a mirrored sitemap are never a bulk. */
#define BULK_FREE  100u
#define COMPARE_MS 1000 /* of each look, for comparing copies */

struct batch {
    struct indexnow_position from, to;
    int64_t newest_at; /* of its changes, Unix time */
    struct str texts;  /* NUL-terminated locs */
    size_t *places, count, room;
    struct str body;
    size_t taken;   /* changes of the mirrored sitemap, including those of other hosts */
    unsigned parts; /* parts that were read */
    bool more;      /* there are more changes */
    char headers[128];
};

enum move { MOVE_NONE, MOVE_ASKED, MOVE_DONE, MOVE_FAILED };

struct notified_site {
    struct indexnow *n;
    const struct config_site *config;
    struct url origin, endpoint;
    struct batch batch; /* empty: none */
    uint64_t seen;      /* the catalogue's revision when there was nothing more to send */
    int64_t next_at, failing_since;
    uint64_t gap_reported; /* the beginning of the history at the last report of a gap; 0: never */
    int64_t pass_at; /* when to move the position although there is nothing to send; 0: never */
    unsigned tries;
    bool sending;
    int64_t site_id; /* 0: the site does not exist */
    /* The mirrored sitemap of the batch; NULL: the batch is from urlsets. */
    struct child_changes *changes;
    /* changes that were sent before the batch, and all of them */
    uint64_t changes_from, changes_count;
    /* state of the move; the writer's thread sets the result */
    atomic_int move;
};

struct indexnow {
    struct config *config; /* a reference */
    struct catalogue *catalogue;
    struct child_store *store; /* NULL: no sitemap is mirrored */
    struct trace *trace;
    struct indexnow_counts *counts;
    struct address_guard guard;
    struct fetch_loop *loop;
    struct thread thread;
    size_t site_count, turn; /* the next site */
    struct notified_site *sites;
    unsigned sending;
    int64_t next_look;
};

/* ---- gathering ------------------------------------------------------------------------- */

static void batch_clear(struct batch *b)
{
    b->to = b->from = (struct indexnow_position){0};
    b->newest_at = 0;
    b->parts = 0;
    b->taken = 0;
    b->more = false;
    str_clear(&b->texts);
    str_clear(&b->body);
    b->count = 0;
}

static void batch_done(struct batch *b)
{
    str_done(&b->texts);
    str_done(&b->body);
    free(b->places);
}

struct gathering {
    struct notified_site *site;
    const struct registry *registry;
    bool failed;
};

/* False if only the owner or digest has changed. */
static bool is_news(const struct entry_record *before, const struct entry_record *after)
{
    return before == NULL || after == NULL || !text_equal(before->lastmod, after->lastmod) ||
           !text_equal(before->extensions, after->extensions);
}

/* Engines accept only URLs of the site's host. */
static bool is_of_site(const struct notified_site *s, const char *loc)
{
    size_t len = s->origin.origin_len;
    return strncmp(loc, s->origin.text, len) == 0 && loc[len] == '/';
}

static bool add_loc(struct batch *b, const char *loc)
{
    if (b->count == b->room) {
        size_t *grown = reallocarray(b->places, b->room * 2 + 64, sizeof *grown);
        if (grown == NULL)
            return false;
        b->places = grown;
        b->room = b->room * 2 + 64;
    }
    size_t place = b->texts.len;
    str_append(&b->texts, loc, strlen(loc) + 1);
    if (b->texts.failed)
        return false;
    b->places[b->count++] = place;
    return true;
}

static void gather_row(void *context, const struct entry_record *before,
                       const struct entry_record *after)
{
    struct gathering *g = context;
    const struct entry_record *row = after != NULL ? after : before;
    const struct registry_index *list = registry_list_by_id(g->registry, row->index_id);

    if (list == NULL || list->kind != LIST_URLSET || !is_news(before, after) ||
        !is_of_site(g->site, row->loc))
        return;
    g->failed |= !add_loc(&g->site->batch, row->loc);
}

static bool is_full(const struct batch *b)
{
    return b->count >= BATCH_MAX_URLS || b->texts.len >= BATCH_MAX_BYTES || b->parts >= LOOK_PARTS;
}

/* Adds the parts of a change after the batch's end, as many as fit. `*whole`: the end of the change
 * was reached. */
static enum catalogue_status gather_change(struct gathering *g, struct catalogue_view *view,
                                           bool *whole)
{
    struct batch *b = &g->site->batch;
    enum catalogue_status status = CATALOGUE_OK;
    bool more = true;

    *whole = false;
    while (status == CATALOGUE_OK && more && !g->failed) {
        size_t before = b->count, text = b->texts.len;
        if (is_full(b))
            return status;
        status = catalogue_view_history_rows(view, b->to.revision, 0, b->to.parts + 1, gather_row,
                                             g, &more);
        if (b->count > BATCH_MAX_URLS && before > 0) {
            b->count = before;
            b->texts.len = text;
            return status;
        }
        b->to.parts++;
        b->parts++;
    }
    *whole = true;
    return status;
}

static const char *sort_texts; /* only for the thread */

static int by_text(const void *a, const void *b)
{
    return strcmp(sort_texts + *(const size_t *)a, sort_texts + *(const size_t *)b);
}

static void drop_repeated(struct batch *b)
{
    size_t kept = 0;

    sort_texts = b->texts.data;
    if (b->count > 1)
        qsort(b->places, b->count, sizeof *b->places, by_text);
    for (size_t i = 0; i < b->count; i++)
        if (kept == 0 || by_text(&b->places[kept - 1], &b->places[i]) != 0)
            b->places[kept++] = b->places[i];
    b->count = kept;
}

static void report_gap(const struct notified_site *s)
{
    log_event(LOG_LEVEL_WARNING, "indexnow-gap",
              "%s: the history no longer has the changes since the last notification; IndexNow is "
              "not notified of them",
              s->config->origin);
}

/* Fills the batch with the changes since its `from`; the catalogue is at `revision`. */
static enum catalogue_status gather_all(struct gathering *g, struct catalogue_view *view,
                                        int64_t site_id, uint64_t revision)
{
    struct batch *b = &g->site->batch;
    uint64_t first, next = 0;
    enum catalogue_status status = catalogue_view_history_from(view, site_id, &first);
    bool whole = true;

    if (status == CATALOGUE_OK && first > b->to.revision) {
        /* equal: reported already, the position has not moved yet */
        if (g->site->gap_reported != first)
            report_gap(g->site);
        g->site->gap_reported = first;
        b->to = (struct indexnow_position){first, 0};
        g->site->pass_at = clock_now_ms(); /* move the position, so that the gap is reported once */
    }
    b->more = true;
    while (status == CATALOGUE_OK && whole && !g->failed && !is_full(b)) {
        int64_t at;
        status = catalogue_view_indexnow_next(view, site_id, b->to.revision, &next, &at);
        if (status != CATALOGUE_OK)
            break;
        if (next == 0) {
            b->to = (struct indexnow_position){revision + 1, 0};
            b->more = false;
            break;
        }
        if (next != b->to.revision)
            b->to = (struct indexnow_position){next, 0};
        status = gather_change(g, view, &whole);
        if (b->count > 0)
            b->newest_at = at;
        if (status == CATALOGUE_OK && whole)
            b->to = (struct indexnow_position){next + 1, 0};
    }
    drop_repeated(b);
    return status == CATALOGUE_OK && g->failed ? CATALOGUE_NO_MEMORY : status;
}

/* CONFLICT: another node has moved it. */
static void moved(void *context, struct change_result *result)
{
    struct notified_site *s = context;
    bool done = result->status == CATALOGUE_OK || result->status == CATALOGUE_CONFLICT;

    atomic_store(&s->move, done ? MOVE_DONE : MOVE_FAILED);
}

static void move_to(struct notified_site *s, int64_t site_id)
{
    const struct change change = {
        .kind = CHANGE_INDEXNOW, .indexnow = {site_id, s->batch.from, s->batch.to}, .context = s};

    s->pass_at = 0;
    atomic_store(&s->move, MOVE_ASKED);
    catalogue_submit(s->n->catalogue, &change, moved);
}

/* The parts that were read have nothing to send. */
static void skip_site(struct notified_site *s, int64_t site_id)
{
    const struct batch *b = &s->batch;
    uint64_t revisions = b->to.revision - b->from.revision;

    if (b->parts >= PASSED_PARTS || revisions >= PASSED_REVISIONS ||
        (s->pass_at != 0 && clock_now_ms() >= s->pass_at))
        move_to(s, site_id);
    else if (s->pass_at == 0 && revisions > 0)
        s->pass_at = clock_now_ms() + PASSED_MS;
}

static void make_body(struct notified_site *s)
{
    struct batch *b = &s->batch;

    struct traceparent trace;
    trace_linked(s->n->trace, s->site_id, b->from.revision, b->to.revision + (b->to.parts > 0),
                 &trace);
    snprintf(b->headers, sizeof b->headers,
             "Content-Type: application/json; charset=utf-8\r\n%s%s%s",
             traceparent_is_set(&trace) ? "traceparent: " : "", trace.text,
             traceparent_is_set(&trace) ? "\r\n" : "");
    str_append_text(&b->body, "{\"host\":");
    str_append_json_text(&b->body, strstr(s->config->origin, "://") + 3);
    str_append_format(&b->body, ",\"key\":\"%s\",\"keyLocation\":\"%s/%s.txt\",\"urlList\":[",
                      s->config->indexnow_key, s->config->origin, s->config->indexnow_key);
    for (size_t i = 0; i < b->count; i++) {
        if (i > 0)
            str_append_char(&b->body, ',');
        str_append_json_text(&b->body, b->texts.data + b->places[i]);
    }
    str_append_text(&b->body, "]}");
}

/* Collects the site's next batch; `count` 0: nothing to send. */
static enum catalogue_status collect_changes(struct notified_site *s, struct catalogue_view *view,
                                             const struct registry *registry, uint64_t revision)
{
    const struct registry_site *site = registry_site_by_origin(registry, s->config->origin);
    struct gathering g = {.site = s, .registry = registry};
    struct batch *b = &s->batch;

    batch_clear(b);
    if (site == NULL)
        return CATALOGUE_OK;
    enum catalogue_status status = catalogue_view_indexnow(view, site->id, &b->from);
    b->to = b->from;
    if (status != CATALOGUE_OK)
        return status;
    if (b->from.revision == 0) { /* the first time */
        b->to.revision = revision + 1;
        move_to(s, site->id);
        return CATALOGUE_OK;
    }
    status = gather_all(&g, view, site->id, revision);
    if (status != CATALOGUE_OK)
        return status;
    if (b->count == 0) {
        skip_site(s, site->id);
        return CATALOGUE_OK;
    }
    make_body(s);
    return b->body.failed ? CATALOGUE_NO_MEMORY : CATALOGUE_OK;
}

/* ---- sending --------------------------------------------------------------------------- */

/* False: the `sent` copies cannot be dropped. */
static bool close_changes(struct notified_site *s, bool sent)
{
    bool closed = s->changes == NULL || child_changes_close(s->changes, sent);

    s->changes = NULL;
    return closed;
}

/* Moves the position past the batch. */
static void move_on(struct notified_site *s)
{
    struct registry *registry = NULL;
    const struct registry_site *site = NULL;

    s->tries = 0;
    if (s->changes != NULL) {
        s->changes_from += s->batch.taken;
        if (s->changes_from >= s->changes_count)
            close_changes(s, true);
        batch_clear(&s->batch);
        return;
    }
    atomic_store(&s->move, MOVE_FAILED);
    if (catalogue_registry(s->n->catalogue, &registry) != CATALOGUE_OK)
        return;
    site = registry_site_by_origin(registry, s->config->origin);
    if (site != NULL)
        move_to(s, site->id);
    else
        atomic_store(&s->move, MOVE_DONE);
    registry_unref(registry);
}

/* Handles the result of the move. If it failed, only the move is repeated, as long as no other node
 * sends. */
static void settle_move(struct notified_site *s, bool leads)
{
    int move = atomic_load(&s->move);

    if (move == MOVE_NONE || move == MOVE_ASKED)
        return;
    if (move == MOVE_FAILED && s->batch.count > 0 && leads) {
        move_on(s);
        return;
    }
    batch_clear(&s->batch);
    s->seen = 0;
    atomic_store(&s->move, MOVE_NONE);
}

static void record_well(struct notified_site *s)
{
    s->n->counts->failing -= s->failing_since != 0;
    s->failing_since = 0;
    s->tries = 0;
}

static void record_accepted(struct notified_site *s)
{
    bool failed = s->failing_since != 0;
    record_well(s);
    s->n->counts->taken++;
    s->n->counts->urls += s->batch.count;
    if (failed)
        log_event(LOG_LEVEL_INFO, "indexnow-well", "%s: page URLs are accepted again by %s",
                  s->config->origin, s->config->indexnow_endpoint);
    s->next_at = clock_now_ms() + PACE_MS;
    if (s->n->next_look > s->next_at)
        s->n->next_look = s->next_at;
    move_on(s);
}

static void record_failed(struct notified_site *s, const char *why, const struct fetch_reply *reply)
{
    int64_t now = clock_unix_ms() / 1000;

    s->n->counts->refused++;
    if (s->failing_since == 0) {
        s->failing_since = now;
        s->n->counts->failing++;
        log_event(LOG_LEVEL_WARNING, "indexnow-failed",
                  "%s: %s rejected page URLs: %s; retrying for a day", s->config->origin,
                  s->config->indexnow_endpoint, why);
    }
    s->next_at = clock_now_ms() + again_wait_ms(s->tries++, RETRY_MIN_MS, reply, now);
    if (now - s->failing_since > KEEP_SECONDS && now - s->batch.newest_at > KEEP_SECONDS) {
        s->n->counts->lost += s->batch.count;
        log_event(LOG_LEVEL_ERROR, "indexnow-given-up",
                  "%s: %s did not accept %zu page URLs for a day; they are dropped",
                  s->config->origin, s->config->indexnow_endpoint, s->batch.count);
        move_on(s);
    }
}

static void on_sent(void *context, enum fetch_status status, struct fetch_reply *reply)
{
    struct notified_site *s = context;
    char why[64];

    s->sending = false;
    s->n->sending--;
    snprintf(why, sizeof why, "HTTP status %u", reply->status);
    if (status == FETCH_OK && (reply->status == 200 || reply->status == 202))
        record_accepted(s);
    else
        record_failed(s, status == FETCH_OK ? why : reply->why, reply);
}

static void send_batch(struct notified_site *s)
{
    struct fetch_request request = {
        .url = &s->endpoint,
        .method = "POST",
        .agent = "sitemapd/" SITEMAPD_VERSION,
        .headers = s->batch.headers,
        .timeout_ms = TIMEOUT_MS,
        .max_bytes = ANSWER_BYTES,
        .guard = &s->n->guard,
        .body = str_text(&s->batch.body),
        .give_bytes = s->batch.body.len,
        .context = s,
    };

    if (fetch_loop_add(s->n->loop, &request, on_sent) == NULL) {
        s->next_at = clock_now_ms() + RETRY_MIN_MS;
        return;
    }
    s->sending = true;
    s->n->sending++;
}

/* ---- the thread ------------------------------------------------------------------------ */

/* Another node sends now; it finds the unsent changes in the catalogue. */
static void yield_to_leader(struct indexnow *n)
{
    for (size_t i = 0; i < n->site_count; i++) {
        if (n->sites[i].sending || atomic_load(&n->sites[i].move) != MOVE_NONE)
            continue;
        close_changes(&n->sites[i], false);
        record_well(&n->sites[i]);
        batch_clear(&n->sites[i].batch);
        n->sites[i].seen = 0;
        n->sites[i].pass_at = 0;
    }
}

static bool is_read(const struct notified_site *s, uint64_t revision)
{
    return s->seen == revision && (s->pass_at == 0 || clock_now_ms() < s->pass_at);
}

static struct notified_site *site_in_turn(struct indexnow *n, size_t i)
{
    return &n->sites[(n->turn + i) % n->site_count];
}

/* The site no longer exists: drops its batch. */
static void clear_batch(struct notified_site *s)
{
    if (s->sending || atomic_load(&s->move) != MOVE_NONE)
        return;
    close_changes(s, false);
    batch_clear(&s->batch);
}

/* Collects a batch if something was written since the last one, or if there is more. */
static void find_changes(struct indexnow *n)
{
    struct catalogue_view *view;
    struct catalogue_revisions now;
    struct registry *registry = NULL;

    if (catalogue_view_begin(n->catalogue, &view) != CATALOGUE_OK)
        return;
    enum catalogue_status status = catalogue_view_revisions(view, &now);
    if (status == CATALOGUE_OK)
        status = catalogue_view_registry(view, &registry);
    for (size_t i = 0; status == CATALOGUE_OK && i < n->site_count; i++) {
        struct notified_site *s = site_in_turn(n, i);
        const struct registry_site *site = registry_site_by_origin(registry, s->config->origin);
        s->site_id = site != NULL ? site->id : 0;
        if (site == NULL)
            clear_batch(s);
        else if (n->store != NULL) /* even while no batch is accepted */
            child_store_want_changes(n->store, site->id);
        if (s->batch.count > 0 || s->changes != NULL || atomic_load(&s->move) != MOVE_NONE ||
            is_read(s, now.revision) || n->sending >= SENDING_MAX || s->next_at > clock_now_ms())
            continue;
        enum catalogue_status gathered = collect_changes(s, view, registry, now.revision);
        if (gathered != CATALOGUE_OK)
            batch_clear(&s->batch); /* a fault in one site's history must not affect others */
        else if (s->batch.count > 0)
            send_batch(s);
        else if (!s->batch.more)
            s->seen = now.revision;
    }
    registry_unref(registry);
    catalogue_view_end(view);
}

/* ---- mirrored sitemaps ----------------------------------------------------------------- */

static bool add_changed(void *context, const char *loc)
{
    struct notified_site *s = context;

    if (is_full(&s->batch) || (is_of_site(s, loc) && !add_loc(&s->batch, loc)))
        return false;
    s->batch.taken++;
    return true;
}

/* Whether so many changes at once come from a new template, a relaunch or a new division into
 * sitemaps, which are not sent. */
static bool is_bulk(const struct notified_site *s, const struct child_changes_counts *counts)
{
    uint64_t pages = counts->before > counts->now ? counts->before : counts->now;
    return !s->config->indexnow_bulk && counts->changed > BULK_FREE && counts->changed * 10 > pages;
}

/* The next mirrored sitemap of the site with changes. */
static bool open_changes(struct notified_site *s, int64_t until_ms)
{
    struct child_changes_counts counts;

    s->changes_from = 0;
    while (!thread_stops(&s->n->thread) &&
           (s->changes = child_changes_open(s->n->store, s->site_id, until_ms, &counts)) != NULL) {
        s->changes_count = counts.changed;
        if (!is_bulk(s, &counts))
            return true;
        log_event(
            LOG_LEVEL_INFO, "indexnow-bulk",
            "%s: %" PRIu64 " of %" PRIu64
            " page URLs changed at once; IndexNow is not notified of them, as indexnow_bulk = no",
            counts.loc, counts.changed, counts.now);
        if (!close_changes(s, true) || clock_now_ms() >= until_ms)
            return false;
    }
    return false;
}

static void gather_changes(struct notified_site *s, int64_t until_ms)
{
    if (s->changes == NULL && !open_changes(s, until_ms))
        return;
    batch_clear(&s->batch);
    s->batch.newest_at = clock_unix_ms() / 1000;
    child_changes_read(s->changes, s->changes_from, add_changed, s);
    drop_repeated(&s->batch);
    if (s->batch.count > 0)
        make_body(s);
    if (s->batch.body.failed || (s->batch.taken == 0 && s->changes_from < s->changes_count)) {
        batch_clear(&s->batch); /* no memory, or the copies are gone: compared again, later */
        close_changes(s, false);
    } else if (s->batch.count > 0) {
        send_batch(s);
    } else {
        move_on(s); /* all changes are on other hosts */
    }
}

/* Looks for changes of mirrored sitemaps if the urlsets have nothing to send. */
static void find_changes_of_copies(struct indexnow *n)
{
    int64_t until_ms = clock_now_ms() + COMPARE_MS;

    for (size_t i = 0; n->store != NULL && i < n->site_count; i++) {
        struct notified_site *s = site_in_turn(n, i);
        if (clock_now_ms() >= until_ms || thread_stops(&n->thread))
            return;
        if (s->site_id != 0 && s->batch.count == 0 && atomic_load(&s->move) == MOVE_NONE &&
            n->sending < SENDING_MAX && s->next_at <= clock_now_ms())
            gather_changes(s, until_ms);
    }
}

static void send_again(struct indexnow *n)
{
    for (size_t i = 0; i < n->site_count && n->sending < SENDING_MAX; i++) {
        struct notified_site *s = site_in_turn(n, i);
        if (s->batch.count > 0 && !s->sending && atomic_load(&s->move) == MOVE_NONE &&
            s->next_at <= clock_now_ms())
            send_batch(s);
    }
    n->turn += n->site_count > 0;
}

static bool any_moves(const struct indexnow *n)
{
    bool any = false;

    for (size_t i = 0; i < n->site_count; i++)
        any |= atomic_load(&n->sites[i].move) == MOVE_ASKED;
    return any;
}

static void indexnow_run(void *context)
{
    struct indexnow *n = context;
    while (!thread_stops(&n->thread)) {
        int64_t now = clock_now_ms();
        if (now >= n->next_look) {
            n->next_look = now + LOOK_MS;
            bool leads = catalogue_leads(n->catalogue, LEAD);
            for (size_t i = 0; i < n->site_count; i++)
                settle_move(&n->sites[i], leads);
            if (leads) {
                find_changes(n);
                find_changes_of_copies(n);
                send_again(n);
            } else {
                yield_to_leader(n);
            }
        }
        now = clock_now_ms();
        fetch_loop_poll(n->loop, n->next_look > now ? (int)(n->next_look - now) : 0);
    }
    while (any_moves(n)) /* the writer still uses them */
        fetch_loop_poll(n->loop, STOP_LOOK_MS);
}

/* ---- start and stop -------------------------------------------------------------------- */

static bool add_sites(struct indexnow *n)
{
    n->sites = calloc(n->config->site_count + 1, sizeof *n->sites);
    if (n->sites == NULL || !address_guard_init(&n->guard, n->config->allow_addresses))
        return false;
    for (size_t i = 0; i < n->config->site_count; i++) {
        const struct config_site *config = &n->config->sites[i];
        struct notified_site *s = &n->sites[n->site_count];
        *s = (struct notified_site){.n = n, .config = config};
        n->site_count +=
            config->indexnow_key != NULL &&
            url_parse_origin(config->origin, strlen(config->origin), &s->origin) == RULE_OK &&
            url_parse(config->indexnow_endpoint, strlen(config->indexnow_endpoint), &s->endpoint,
                      NULL) == RULE_OK;
    }
    return true;
}

static void free_indexnow(struct indexnow *n)
{
    fetch_loop_free(n->loop);
    for (size_t i = 0; i < n->site_count; i++) {
        record_well(&n->sites[i]);
        close_changes(&n->sites[i], false);
        batch_done(&n->sites[i].batch);
    }
    free(n->sites);
    address_guard_done(&n->guard);
    config_unref(n->config);
    free(n);
}

static bool has_key(const struct config *config)
{
    for (size_t i = 0; i < config->site_count; i++)
        if (config->sites[i].indexnow_key != NULL)
            return true;
    return false;
}

struct indexnow *indexnow_start(struct config *config, struct catalogue *catalogue,
                                struct child_store *store, struct trace *trace,
                                struct indexnow_counts *counts)
{
    struct indexnow *n = has_key(config) ? calloc(1, sizeof *n) : NULL;

    if (n == NULL)
        return NULL;
    n->config = config_ref(config);
    n->catalogue = catalogue;
    n->store = store;
    n->trace = trace;
    n->counts = counts;
    n->loop = add_sites(n) ? fetch_loop_new() : NULL;
    if (n->loop != NULL && thread_start(&n->thread, "indexnow", indexnow_run, n))
        return n;
    free_indexnow(n);
    log_event(LOG_LEVEL_ERROR, "indexnow-failed", "IndexNow is off: out of memory");
    return NULL;
}

static bool same_site(const struct config_site *a, const struct config_site *b)
{
    return text_equal(a->origin, b->origin) && text_equal(a->indexnow_key, b->indexnow_key) &&
           text_equal(a->indexnow_endpoint, b->indexnow_endpoint) &&
           a->indexnow_bulk == b->indexnow_bulk;
}

bool indexnow_is_same(const struct config *a, const struct config *b)
{
    bool same =
        a->site_count == b->site_count && texts_equal(a->allow_addresses, b->allow_addresses);

    for (size_t i = 0; same && i < a->site_count; i++)
        same = same_site(&a->sites[i], &b->sites[i]);
    return same;
}

void indexnow_stop(struct indexnow *n)
{
    if (n == NULL)
        return;
    thread_end(&n->thread);
    fetch_loop_wake(n->loop);
    thread_join(&n->thread);
    catalogue_lead_end(n->catalogue, LEAD);
    free_indexnow(n);
}
