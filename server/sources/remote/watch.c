/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Finds the sitemaps to watch: the members of the lists of remote sources, and the entries of sites
 * with `check`. A pass reads all of them in steps that are short for the catalogue. It begins
 * within seconds after a change that polls did not make, and at once after remote_wake. But it
 * always pauses twenty times as long as the pass before took, so that a client that makes changes
 * without end uses at most a twentieth of the thread. A part that took long, such as a site with
 * very many entries, pauses by itself: passes skip it until then, and others need not wait for it.
 * All such parts together use at most half of the thread. */
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/sources/remote/run.h"

#define LOOKED           2000u /* rows in a slice */
#define SLICES           4u    /* in a step */
#define LOAD_ROWS        5000u
#define REST_LEAST_MS    2000
#define SLOW_MS          50 /* a part that takes longer pauses by itself */
#define FOLLOW_REST_MS   10000
#define SPREAD_RATE      0.8
#define RETRY_REJECTED_S 60
#define READ_AGAIN_S     10

struct gather {
    struct remote *remote;
    const char *source; /* "": registered sitemaps */
    bool full;
    int64_t removed[CHECK_WRITES_MAX];
    size_t removed_count;
};

/* Spreads first polls so that they leave room for others. */
static int64_t first_poll(struct remote *r, const struct remote_source *source, int64_t site_id,
                          const char *loc)
{
    struct url url;
    int64_t now = run_now(r);
    struct remote_host *host = run_request_url(source, loc, &url) ? run_host(r, &url) : NULL;
    struct host_part *part = host != NULL ? run_part(host, site_id) : NULL;
    if (part == NULL)
        return now;
    double at = part->spread_at > (double)now ? part->spread_at : (double)now;
    part->spread_at = at + 1 / (SPREAD_RATE * r->plan->bounds.rate);
    return (int64_t)at;
}

static void move_count(uint64_t counts[CHECK_STATES], int from, enum check_state to)
{
    if (from >= 0)
        counts[from] -= counts[from] > 0;
    counts[to]++;
}

/* Without memory for a site's row, the next recount counts it. */
static void move_bad(struct remote *r, int64_t site_id, int from, enum check_state to)
{
    bool was_bad = from >= 0 && check_is_bad((enum check_state)from);
    struct site_bad *row = site_table_find(&r->bad, site_id);
    if (was_bad == check_is_bad(to))
        return;
    if (row == NULL && !was_bad)
        row = site_table_add(&r->bad, site_id, sizeof *row);
    if (row != NULL && !was_bad)
        row->bad++;
    else if (row != NULL && row->bad > 0)
        row->bad--;
}

void watch_count_moved(struct remote *r, struct remote_source *source, int64_t site_id, int from,
                       enum check_state to)
{
    pthread_mutex_lock(&r->lock);
    move_count(r->counts.states, from, to);
    move_count(source != NULL ? source->status.states : r->counts.registered, from, to);
    if (source == NULL)
        move_bad(r, site_id, from, to);
    pthread_mutex_unlock(&r->lock);
}

static bool add(void *context, int64_t site_id, const char *loc)
{
    struct gather *g = context;
    struct check_write write = {
        .kind = CHECK_ADD,
        .record = {.loc = loc,
                   .source = g->source,
                   .site_id = site_id,
                   .next_at = first_poll(g->remote, run_source(g->remote, g->source), site_id, loc),
                   .interval_s = interval_first(run_bounds(g->remote))}};
    bool written = run_write(g->remote, &write);
    if (written)
        watch_count_moved(g->remote, run_source(g->remote, g->source), site_id, -1, CHECK_NEW);
    g->full = !written || g->remote->batch_count == CHECK_WRITES_MAX;
    return !g->full;
}

/* Whether the settings of its source or site still require it to be watched. */
static bool is_wanted(struct remote *r, const char *source, int64_t site_id, bool list)
{
    const struct remote_source *of = run_source(r, source);
    const struct registry_site *site = registry_site_by_id(r->registry, site_id);
    if (*source == '\0')
        return site != NULL && site->check;
    return of != NULL && (list || of->settings->check);
}

static bool on_unwatched(void *context, const struct check_named *row)
{
    struct gather *g = context;
    struct check_write write = {.kind = CHECK_REMOVE, .record = {.id = row->id}};
    const struct remote *r = g->remote;
    if (row->named && is_wanted(g->remote, row->source, row->site_id, row->list))
        return true;
    if (row->named && *row->source != '\0' && run_source(g->remote, row->source) == NULL &&
        r->options.wanted_elsewhere != NULL &&
        r->options.wanted_elsewhere(r->catalogue, row->source))
        return true;
    if (run_write(g->remote, &write))
        g->removed[g->removed_count++] = row->id;
    g->full = g->remote->batch_count == CHECK_WRITES_MAX;
    return !g->full;
}

static void next_phase(struct remote *r, enum look_phase phase, size_t at)
{
    r->look.phase = phase;
    r->look.at = at;
    r->look.after[0] = '\0';
    r->look.after_id = 0;
}

/* Whether the pass skips the part. */
static bool skips(struct remote *r, int64_t site_id)
{
    const struct look_part *part = site_table_find(&r->look.parts, site_id);
    int64_t until_ms = part != NULL ? part->rests_ms : 0;
    if (until_ms <= r->look.began_ms)
        return false;
    if (r->look.due_ms == 0 || until_ms < r->look.due_ms)
        r->look.due_ms = until_ms;
    return true;
}

/* Without memory its time counts for all parts together. */
static void count_part(struct remote *r, int64_t site_id, uint64_t began_ns)
{
    struct look_part *part = site_table_add(&r->look.parts, site_id, sizeof *part);
    if (part != NULL)
        part->took_ns += clock_now_ns() - began_ns;
}

static enum catalogue_status watch_source(struct remote *r, struct catalogue_view *view)
{
    size_t count = r->plan->count;
    while (r->look.at < count &&
           (!r->plan->settings[r->look.at].check || skips(r, r->sources[r->look.at].site_id)))
        r->look.at++;
    if (r->look.at >= count) {
        next_phase(r, LOOK_SITES, 0);
        return CATALOGUE_OK;
    }
    struct gather g = {.remote = r, .source = r->plan->settings[r->look.at].name};
    char last[LOC_MAX_CHARS + 1];
    uint64_t began_ns = clock_now_ns();
    enum catalogue_status status =
        catalogue_view_unwatched_files(view, g.source, r->look.after, LOOKED, last, add, &g);
    count_part(r, r->sources[r->look.at].site_id, began_ns);
    if (*last == '\0')
        next_phase(r, LOOK_SOURCES, r->look.at + 1);
    else
        memcpy(r->look.after, last, sizeof last);
    return status;
}

static enum catalogue_status look_at_site(struct remote *r, struct catalogue_view *view)
{
    const struct registry_site *sites = r->registry->sites;
    while (r->look.at < r->registry->site_count &&
           (!sites[r->look.at].check || skips(r, sites[r->look.at].id)))
        r->look.at++;
    if (r->look.at >= r->registry->site_count) {
        next_phase(r, LOOK_LEFT, 0);
        return CATALOGUE_OK;
    }
    struct gather g = {.remote = r, .source = ""};
    char last[LOC_MAX_CHARS + 1];
    int64_t site_id = sites[r->look.at].id;
    uint64_t began_ns = clock_now_ns();
    enum catalogue_status status =
        catalogue_view_unwatched_entries(view, site_id, r->look.after, LOOKED, last, add, &g);
    count_part(r, site_id, began_ns);
    if (*last == '\0')
        next_phase(r, LOOK_SITES, r->look.at + 1);
    else
        memcpy(r->look.after, last, sizeof last);
    return status;
}

static enum catalogue_status remove_unwatched(struct remote *r, struct catalogue_view *view)
{
    struct gather g = {.remote = r};
    int64_t last;
    if (skips(r, LOOK_LEFT_PART)) {
        next_phase(r, LOOK_REST, 0);
        return CATALOGUE_OK;
    }
    uint64_t began_ns = clock_now_ns();
    enum catalogue_status status =
        catalogue_view_checks_named(view, r->look.after_id, LOOKED, &last, on_unwatched, &g);
    count_part(r, LOOK_LEFT_PART, began_ns);
    if (g.removed_count > 0)
        run_move_due(r, g.removed, g.removed_count, 0);
    r->look.removed = r->look.removed || g.removed_count > 0;
    r->look.after_id = last;
    if (last == 0)
        next_phase(r, LOOK_REST, 0);
    return status;
}

/* The catalogue could not be read: the pass begins again. */
static void abandon_pass(struct remote *r)
{
    r->look.revision = 0;
    next_phase(r, LOOK_REST, 0);
}

/* A command on the catalogue's file may have confirmed removals that a list's last poll held. */
static void look_at_held(struct remote *r, struct catalogue_view *view)
{
    for (size_t i = 0; i < r->plan->count; i++) {
        struct source_state state;
        if (r->sources[i].status.held == 0 ||
            catalogue_view_source_state(view, r->plan->settings[i].name, &state) != CATALOGUE_OK)
            continue;
        pthread_mutex_lock(&r->lock);
        r->sources[i].status.held = state.held;
        pthread_mutex_unlock(&r->lock);
    }
}

/* Whether an undo has reverted entries of the list: then full_at of its row is a revision instead
 * of a time (FETCH_FORGET). */
static bool is_undone(struct catalogue_view *view, const char *name, uint64_t revision)
{
    struct check_record k;
    return catalogue_view_check_list(view, name, &k) == CATALOGUE_OK && k.full_at > 0 &&
           (uint64_t)k.full_at <= revision;
}

/* What was rejected may be accepted now, although the list is the same: its site or host was added,
 * another source was removed, an index has room again. */
static bool may_be_accepted(const struct remote *r, const struct remote_source *s)
{
    bool rejected =
        s->status.refused > 0 || (s->problem != NULL && strcmp(s->problem, "catalogue") == 0);
    return rejected && s->registry_seen != r->registry->registry_revision;
}

/* The list is due so long after its last poll: changes of other sites count, too, so it is not read
 * at each of them. */
static void read_again(struct remote *r, struct remote_source *s, int64_t wait_s)
{
    int64_t now = run_now(r), at = s->status.polled_at + wait_s;
    s->whole = true;
    if (at < now || s->status.polled_at > now)
        at = now;
    if (at < s->next_at)
        s->next_at = at;
}

static void retry_rejected(struct remote *r, struct remote_source *s)
{
    if (s->polling != NULL) { /* it may have begun before the change */
        atomic_store(&r->look_soon, true);
        return;
    }
    s->registry_seen = r->registry->registry_revision;
    read_again(r, s, RETRY_REJECTED_S);
}

/* What a freeze kept from the index is to be in it soon after the thaw: such lists are due. So are
 * those of which something was rejected that may be accepted now. */
static void look_at_lists(struct remote *r, struct catalogue_view *view)
{
    for (size_t i = 0; i < r->plan->count; i++) {
        struct remote_source *s = &r->sources[i];
        if (may_be_accepted(r, s))
            retry_rejected(r, s);
        bool again = s->polling == NULL && s->list_id != 0 &&
                     (s->frozen || is_undone(view, s->settings->name, r->look.revision));
        if (!again || remote_is_frozen(r->registry, s->settings))
            continue;
        s->frozen = false;
        read_again(r, s, READ_AGAIN_S);
    }
}

static bool have_same_hosts(const struct registry_site *a, const struct registry_site *b)
{
    bool same =
        a->cross_host_count == b->cross_host_count && a->alias_host_count == b->alias_host_count;
    for (size_t i = 0; same && i < a->cross_host_count; i++)
        same = strcmp(a->cross_hosts[i], b->cross_hosts[i]) == 0;
    for (size_t i = 0; same && i < a->alias_host_count; i++)
        same = strcmp(a->alias_hosts[i], b->alias_hosts[i]) == 0;
    return same;
}

struct outsiders {
    int64_t ids[LOOKED];
    size_t count;
};

static void add_outsider(void *context, const struct check_record *record)
{
    struct outsiders *o = context;
    if (record->problem != NULL && strcmp(record->problem, rule_code_word(RULE_OUTSIDE_SITE)) == 0)
        o->ids[o->count++] = record->id;
}

/* Polls sitemaps soon whose pages are all on other hosts, and may be on hosts of their site now. */
static enum catalogue_status look_at_outsiders(struct remote *r, struct catalogue_view *view,
                                               const struct registry *before)
{
    enum catalogue_status status = CATALOGUE_OK;
    if (before == NULL || before->registry_revision == r->registry->registry_revision)
        return CATALOGUE_OK;
    for (size_t i = 0; status == CATALOGUE_OK && i < r->registry->site_count; i++) {
        const struct registry_site *now = &r->registry->sites[i];
        const struct registry_site *was = registry_site_by_id(before, now->id);
        struct check_filter broken = {.state = CHECK_BROKEN, .site_id = now->id, .limit = LOOKED};
        struct outsiders o;
        int64_t next;
        if (was == NULL || have_same_hosts(was, now))
            continue;
        o.count = 0;
        status = catalogue_view_checks(view, &broken, add_outsider, &o, &next);
        if (o.count > 0)
            run_move_due(r, o.ids, o.count, (uint32_t)(run_now(r) + RETRY_REJECTED_S));
    }
    return status;
}

static bool is_part_due(const struct remote *r, int64_t now_ms)
{
    return r->look.due_ms != 0 && now_ms >= r->look.due_ms;
}

/* Whether to read the catalogue's revision, or begin a pass whatever it is. */
static bool may_begin_pass(const struct remote *r, int64_t now_ms)
{
    return atomic_load(&r->look_soon) || is_part_due(r, now_ms) || r->look.revision == 0 ||
           catalogue_news(r->catalogue) != r->look.news;
}

/* Begins a pass if there is something to look for. `news`: as before the view began. */
static bool begin_pass(struct remote *r, struct catalogue_view *view, uint64_t news, int64_t now_ms)
{
    struct catalogue_revisions revisions;
    bool asked = atomic_exchange(&r->look_soon, false) || is_part_due(r, now_ms);
    if (catalogue_view_revisions(view, &revisions) != CATALOGUE_OK)
        return false;
    r->look.news = news;
    if (!asked && revisions.revision == r->look.revision)
        return false;
    look_at_held(r, view);
    r->look.revision = revisions.revision;
    r->look.removed = false;
    r->look.began_ms = now_ms;
    r->look.took_ms = r->look.due_ms = 0;
    for (struct look_part *part = site_table_next(&r->look.parts, NULL), *next; part != NULL;
         part = next) {
        next = site_table_next(&r->look.parts, part);
        part->took_ns = 0;
        if (part->rests_ms <= now_ms)
            site_table_remove(&r->look.parts, part);
    }
    next_phase(r, LOOK_SOURCES, 0);
    return true;
}

static enum catalogue_status look(struct remote *r, struct catalogue_view *view, bool begins)
{
    struct registry *before = r->registry;
    r->registry = NULL;
    enum catalogue_status status = catalogue_view_registry(view, &r->registry);
    if (begins && status == CATALOGUE_OK)
        look_at_lists(r, view);
    if (status == CATALOGUE_OK)
        status = look_at_outsiders(r, view, before);
    registry_unref(before);
    for (unsigned slices = 0; slices < SLICES && status == CATALOGUE_OK &&
                              r->look.phase != LOOK_REST && r->batch_count == 0;
         slices++) {
        if (r->look.phase == LOOK_SOURCES)
            status = watch_source(r, view);
        else if (r->look.phase == LOOK_SITES)
            status = look_at_site(r, view);
        else
            status = remove_unwatched(r, view);
    }
    return status;
}

/* At the end of a pass, chooses how long it and its slow parts pause. */
static void record_duration(struct remote *r, int64_t began_ms, int64_t now_ms)
{
    int64_t shared = r->look.took_ms += now_ms - began_ms;
    if (r->look.phase != LOOK_REST)
        return;
    for (struct look_part *part = NULL; (part = site_table_next(&r->look.parts, part)) != NULL;) {
        int64_t took_ms = (int64_t)(part->took_ns / 1000000);
        if (took_ms < SLOW_MS)
            continue;
        shared -= took_ms;
        part->rests_ms = now_ms + interval_rest_ms(took_ms);
    }
    int64_t rest = interval_pass_rest_ms(shared, r->look.took_ms);
    r->look.rests_ms = now_ms + rest;
    r->look.next_ms = now_ms + (rest < REST_LEAST_MS ? REST_LEAST_MS : rest);
}

void watch_step(struct remote *r, int64_t now_ms)
{
    struct catalogue_view *view;
    bool begun = r->look.phase != LOOK_REST;
    int64_t rests_ms = atomic_load(&r->look_soon) ? r->look.rests_ms : r->look.next_ms;
    if (r->flight != NULL || (!begun && (now_ms < rests_ms || !may_begin_pass(r, now_ms))))
        return;
    if (begun && r->batch_count > 0) { /* the pass needs the room */
        run_flush(r);
        return;
    }
    r->look.next_ms = now_ms + REST_LEAST_MS;
    uint64_t news = catalogue_news(r->catalogue);
    if (catalogue_view_begin(r->catalogue, &view) != CATALOGUE_OK) {
        abandon_pass(r);
        return;
    }
    enum catalogue_status status = CATALOGUE_OK;
    bool looks = begun || begin_pass(r, view, news, now_ms);
    if (looks)
        status = look(r, view, !begun);
    catalogue_view_end(view);
    if (status != CATALOGUE_OK)
        abandon_pass(r);
    if (looks)
        record_duration(r, now_ms, clock_now_ms());
    if (r->batch_count > 0)
        run_flush(r);
    if (r->look.phase == LOOK_REST && r->look.removed) {
        r->look.removed = false;
        atomic_store(&r->look_soon, true); /* another source, or the site, may require it */
        watch_count(r);
    }
}

/* ---- into memory ---------------------------------------------------------------------------- */

struct loading {
    struct remote *remote;
    size_t count;
    int64_t after; /* the last row that was read */
    bool fresh;    /* only rows of fresh sources */
    int64_t ids[LOAD_ROWS];
    struct due dues[LOAD_ROWS];
    struct remote_host *hosts[LOAD_ROWS];
    int64_t sites[LOAD_ROWS];
    size_t taken;
};

/* Whether the time of a poll is further away than any possible wait: it was written with a wrong
 * clock. */
static bool is_too_far(const struct remote *r, const struct remote_host *host,
                       const struct check_due *row, int64_t in_s)
{
    double most_s = (double)r->plan->bounds.max_interval_s;
    return in_s > 2 * (int64_t)most_s && /* mostly no need to look at the other sites on the host */
           in_s > 2 * (int64_t)(most_s * run_stretch(r, host, row->site_id));
}

static bool load_row(void *context, const struct check_due *row)
{
    struct loading *l = context;
    struct remote *r = l->remote;
    struct url url;
    l->count++;
    l->after = row->id;
    const struct registry_site *site = registry_site_by_id(r->registry, row->site_id);
    const struct remote_source *source = run_source(r, row->source);
    bool wanted = is_wanted(r, row->source, row->site_id, false);
    /* Rows after max_id are loaded by watch_load. */
    if (l->fresh && (source == NULL || !source->fresh || row->id > r->max_id))
        return true;
    if (!wanted || (site == NULL && source == NULL) || !run_request_url(source, row->loc, &url))
        return true;
    struct remote_host *host = run_host(r, &url);
    if (host == NULL)
        return false;
    int64_t now = run_now(r);
    int64_t at = row->next_at < 1                               ? 1
                 : is_too_far(r, host, row, row->next_at - now) ? now
                                                                : row->next_at;
    if (at > now && row->state != CHECK_NEW)
        at = interval_together(at, row->interval_s);
    l->ids[l->taken] = row->id;
    l->dues[l->taken] = (struct due){row->id, (uint32_t)at, row->interval_s};
    l->sites[l->taken] = row->site_id;
    l->hosts[l->taken++] = host;
    return true;
}

/* Rows of a changed source may still be in a heap. */
static void apply_rows(struct loading *l)
{
    struct remote *r = l->remote;
    if (l->fresh && l->taken > 0)
        run_move_due(r, l->ids, l->taken, 0);
    for (size_t i = 0; i < l->taken; i++)
        run_enqueue(r, l->hosts[i], l->sites[i], l->dues[i]);
    l->taken = 0;
}

static bool load_rows(struct remote *r, int64_t after, bool fresh, int64_t *last)
{
    struct loading *l = malloc(sizeof *l);
    enum catalogue_status status = CATALOGUE_OK;
    if (l == NULL)
        return false;
    l->remote = r;
    l->fresh = fresh;
    l->after = after;
    l->taken = 0;
    l->count = LOAD_ROWS;
    while (l->count == LOAD_ROWS && status == CATALOGUE_OK && !thread_stops(&r->thread)) {
        struct catalogue_view *view;
        l->count = 0;
        status = catalogue_view_begin(r->catalogue, &view);
        if (status != CATALOGUE_OK)
            break;
        registry_unref(r->registry);
        r->registry = NULL;
        status = catalogue_view_registry(view, &r->registry);
        if (status == CATALOGUE_OK)
            status = catalogue_view_checks_due(view, l->after, LOAD_ROWS, load_row, l);
        catalogue_view_end(view);
        apply_rows(l);
    }
    *last = l->after;
    free(l);
    return status == CATALOGUE_OK;
}

bool watch_load(struct remote *r)
{
    return load_rows(r, r->max_id, false, &r->max_id);
}

bool watch_load_fresh(struct remote *r)
{
    bool some = false;
    int64_t last;
    for (size_t i = 0; i < r->plan->count; i++) {
        struct remote_source *s = &r->sources[i];
        /* A source whose list has no row yet has no sitemaps either. */
        s->fresh = s->fresh && s->settings->check && s->list_id != 0;
        some = some || s->fresh;
    }
    bool done = !some || load_rows(r, 0, true, &last);
    /* rows that came with a source from another catalogue (site move) */
    done = done && watch_load(r);
    for (size_t i = 0; i < r->plan->count; i++)
        r->sources[i].fresh = false;
    return done;
}

/* The counts of a pass over the rows: one pass for all sources, which together may have millions.
 */
struct counting {
    struct remote *remote;
    uint64_t all[CHECK_STATES], registered[CHECK_STATES];
    uint64_t (*of_source)[CHECK_STATES]; /* as in the plan; owned */
};

static void count_source(void *context, const char *source, const uint64_t counts[CHECK_STATES])
{
    struct counting *c = context;
    const struct remote_source *s = run_source(c->remote, source);
    for (unsigned i = 0; i < CHECK_STATES; i++)
        c->all[i] += counts[i];
    if (*source == '\0')
        memcpy(c->registered, counts, sizeof c->registered);
    else if (s != NULL)
        memcpy(c->of_source[s - c->remote->sources], counts, sizeof *c->of_source);
}

static void keep_counts(const uint64_t counts[CHECK_STATES], bool bad, uint64_t kept[CHECK_STATES])
{
    for (unsigned i = 0; i < CHECK_STATES; i++)
        if (!bad || check_is_bad((enum check_state)i))
            kept[i] = counts[i];
}

static void recount(struct remote *r, struct catalogue_view *view, bool bad)
{
    struct counting c = {.remote = r, .of_source = calloc(r->plan->count + 1, sizeof *c.of_source)};
    if (c.of_source != NULL &&
        catalogue_view_check_counts(view, bad, count_source, &c) == CATALOGUE_OK) {
        pthread_mutex_lock(&r->lock);
        keep_counts(c.all, bad, r->counts.states);
        keep_counts(c.registered, bad, r->counts.registered);
        for (size_t i = 0; i < r->plan->count; i++)
            keep_counts(c.of_source[i], bad, r->sources[i].status.states);
        pthread_mutex_unlock(&r->lock);
    }
    free(c.of_source);
}

static void count_site(void *context, int64_t site_id, uint64_t bad)
{
    struct site_bad *row = site_table_add(context, site_id, sizeof *row);
    if (row != NULL)
        row->bad = bad;
}

static void recount_sites(struct remote *r, struct catalogue_view *view)
{
    struct site_table fresh = {0}, old = r->bad; /* only this thread changes it */
    if (catalogue_view_check_bad_sites(view, count_site, &fresh) != CATALOGUE_OK) {
        site_table_done(&fresh);
        return;
    }
    for (struct site_bad *row = NULL; (row = site_table_next(&old, row)) != NULL;)
        if (r->registry == NULL || registry_site_by_id(r->registry, row->row.site_id) != NULL)
            site_table_add(&fresh, row->row.site_id, sizeof *row); /* it has none now, or a row */
    pthread_mutex_lock(&r->lock);
    r->bad = fresh;
    pthread_mutex_unlock(&r->lock);
    site_table_done(&old);
}

/* `bad`: only the bad states. */
static void recount_all(struct remote *r, bool bad)
{
    struct catalogue_view *view;
    if (catalogue_view_begin(r->catalogue, &view) != CATALOGUE_OK)
        return;
    recount(r, view, bad);
    recount_sites(r, view);
    catalogue_view_end(view);
}

void watch_count(struct remote *r)
{
    recount_all(r, false);
}

void watch_follow(struct remote *r, int64_t now_ms)
{
    if (now_ms < r->count_at_ms)
        return;
    list_show_all(r);
    recount_all(r, true);
    int64_t end_ms = clock_now_ms();
    int64_t rest = interval_rest_ms(end_ms - now_ms);
    r->count_at_ms = end_ms + (rest < FOLLOW_REST_MS ? FOLLOW_REST_MS : rest);
}
