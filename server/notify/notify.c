/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The state of each source is compared with the one before; each difference is an event, a line of
 * JSON. Lines of one kind are sent together, at most once a minute: if a whole site fails, that is
 * one request, not a thousand. Lines that are not accepted (anything but a 2xx) are sent again for
 * a day, after a minute and then less often, or as Retry-After asks. KIND_MAX_LINES bounds the
 * memory: further events are counted, and the count is sent, too.
 *
 * The URL may contain a secret, as those of chat services do, so it is never logged. */
#include "server/notify/notify.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/map.h"
#include "server/base/str.h"
#include "server/base/text.h"
#include "server/base/thread.h"
#include "server/client/client.h"
#include "server/client/loop.h"
#include "server/log/log.h"
#include "server/rules/lastmod.h"

#define LOOK_MS        10000
#define PACE_MS        60000
#define KEEP_MS        86400000
#define TIMEOUT_MS     30000
#define ANSWER_BYTES   65536
#define KIND_MAX_LINES 50u
#define SITE_MAX_LINES 10u /* lines about single sitemaps of one site */
/* Lines about one site: a site whose failing sources get new names all the time must leave room for
 * others. */
#define SITE_PART (KIND_MAX_LINES / 2)

enum kind {
    SOURCE_FAILING,
    SOURCE_WELL,
    REMOVAL_HELD,
    REMOVAL_SETTLED,
    SITEMAPS_BAD,
    SITEMAPS_WELL,
    OF_ONE, /* and the following: in the order of enum notify_word */
    KINDS = OF_ONE + NOTIFY_WORDS
};
static const char *const kind_words[KINDS] = {
    "source-failing", "source-well",  "removal-held", "removal-settled", "sitemaps-bad",
    "sitemaps-well",  "sitemap-gone", "sitemap-back", "date-stale",      "date-well",
};
/* For one sitemap, for several. */
static const char *const word_sentences[NOTIFY_WORDS][2] = {
    {"is gone", "are gone"},
    {"is available again", "are available again"},
    {"changed, but its date in the index could not be changed",
     "changed, but their dates in the index could not be changed"},
    {"has a new date", "have new dates"},
};

/* Waiting lines of one kind. Times are of the monotonic clock. */
struct waiting {
    struct str lines;
    unsigned count;
    uint32_t sites[KIND_MAX_LINES]; /* for each line, the hash of its site; 0: unknown */
    uint64_t more;                  /* events beyond KIND_MAX_LINES or SITE_PART */
    int64_t first_at;               /* of the oldest line */
    int64_t next_at;                /* do not send earlier */
    unsigned tries;
};

/* A source at the last look, or the registered sitemaps of a site. */
struct known {
    char *name; /* of the source, or the site's origin; owned */
    bool registered;
    uint64_t held, bad;
    unsigned waits; /* bits: the kinds with a waiting line about this source */
    bool failing, seen;
};

/* Sitemaps of one source, or registered in one site, with the same event: they become one line,
 * which names the first. Texts owned. */
struct gathered {
    char *source, *site, *loc;
    int64_t at;
    uint64_t more; /* besides the first */
};

/* Events that become lines once the earlier lines of their kind have been sent. */
struct gathering {
    struct gathered each[KIND_MAX_LINES];
    unsigned count;
    uint64_t more; /* events for which there was no room */
};

struct notify {
    struct notify_options options;
    struct url url;
    char *agent;
    struct address_guard guard;
    struct fetch_loop *loop;
    struct thread thread;
    pthread_mutex_t lock; /* guards the members below */
    struct gathering words[NOTIFY_WORDS];
    /* Only for the thread. */
    size_t known_count, known_room;
    size_t known_next; /* where the next source is, if they come in the order of the last look */
    struct known *known;
    struct waiting kinds[KINDS];
    enum kind sending; /* KINDS: none */
    struct str body;   /* of the current request */
    unsigned sent_count;
    uint64_t sent_more;
    bool logged; /* the failure was logged */
};

/* ---- events ---------------------------------------------------------------------------- */

static bool has_room(const struct waiting *w, uint32_t site)
{
    unsigned of_site = 0;

    for (unsigned i = 0; i < w->count; i++)
        of_site += w->sites[i] == site;
    return w->count < KIND_MAX_LINES && (site == 0 || of_site < SITE_PART);
}

/* Adds an event as a line. `url`: of the sitemap; NULL: it is about several. */
static void add_line(struct notify *n, enum kind kind, const struct notify_state *state,
                     const char *url, int64_t since, const char *sentence)
{
    struct waiting *w = &n->kinds[kind];
    char time[21];
    size_t before = w->lines.len;
    uint32_t site =
        state->site != NULL ? map_hash(MAP_HASH_BASIS, state->site, strlen(state->site)) : 0;

    if (w->count == 0 && w->more == 0)
        w->first_at = clock_now_ms();
    if (!has_room(w, site)) {
        w->more++;
        return;
    }
    lastmod_format_utc(since != 0 ? since : clock_unix_ms() / 1000, time);
    str_append_format(&w->lines, "{\"event\":\"%s\",\"site\":", kind_words[kind]);
    str_append_json_text(&w->lines, state->site);
    str_append_text(&w->lines, ",\"source\":");
    str_append_json_text(&w->lines, state->name[0] != '\0' ? state->name : NULL);
    if (url != NULL) {
        str_append_text(&w->lines, ",\"url\":");
        str_append_json_text(&w->lines, url);
    }
    str_append_text(&w->lines, ",\"sentence\":");
    str_append_json_text(&w->lines, sentence);
    str_append_format(&w->lines, ",\"since\":\"%s\"}\n", time);
    if (w->lines.failed) { /* out of memory: drop this event, keep the other lines intact */
        w->lines.failed = false;
        w->lines.len = before;
        w->more++;
        return;
    }
    w->sites[w->count++] = site;
}

static void add_notification(struct notify *n, enum kind kind, const struct notify_state *state,
                             int64_t since, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
static void add_notification(struct notify *n, enum kind kind, const struct notify_state *state,
                             int64_t since, const char *format, ...)
{
    char sentence[512];
    va_list args;

    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    add_line(n, kind, state, NULL, since, sentence);
}

/* ---- single sitemaps ------------------------------------------------------------------- */

static void gathered_done(struct gathered *g)
{
    free(g->source);
    free(g->site);
    free(g->loc);
}

/* Registered sitemaps are gathered by site, so that one tenant's do not hide another's. */
static bool is_of(const struct gathered *g, const struct notify_sitemap *what)
{
    return strcmp(g->source, what->source) == 0 &&
           (what->source[0] != '\0' || strcmp(g->site, what->site) == 0);
}

static void gather_sitemap(struct gathering *of, const struct notify_sitemap *what)
{
    struct gathered g = {.at = what->at};
    unsigned of_site = 0;

    for (unsigned i = 0; i < of->count; i++) {
        if (is_of(&of->each[i], what)) {
            of->each[i].more += strcmp(of->each[i].loc, what->loc) != 0;
            return;
        }
        of_site += strcmp(of->each[i].site, what->site) == 0;
    }
    if (of->count < KIND_MAX_LINES && of_site < SITE_MAX_LINES) {
        g.source = strdup(what->source);
        g.site = strdup(what->site);
        g.loc = strdup(what->loc);
    }
    if (g.source != NULL && g.site != NULL && g.loc != NULL) {
        of->each[of->count++] = g;
        return;
    }
    gathered_done(&g);
    of->more++;
}

void notify_sitemap(void *context, const struct notify_sitemap *what)
{
    struct notify *n = context;

    pthread_mutex_lock(&n->lock);
    gather_sitemap(&n->words[what->word], what);
    pthread_mutex_unlock(&n->lock);
}

static void add_gathered(struct notify *n, enum notify_word word, const struct gathered *g)
{
    char sentence[LOC_MAX_CHARS + 128];

    if (g->more == 0)
        snprintf(sentence, sizeof sentence, "%s %s", g->loc, word_sentences[word][0]);
    else
        snprintf(sentence, sizeof sentence, "%s and %" PRIu64 " more %s", g->loc, g->more,
                 word_sentences[word][1]);
    add_line(n, OF_ONE + word, &(struct notify_state){.name = g->source, .site = g->site}, g->loc,
             g->at, sentence);
}

/* Turns gathered events into lines, if no line of the kind waits and sending is allowed now. */
static void add_all_gathered(struct notify *n, enum notify_word word)
{
    struct waiting *w = &n->kinds[OF_ONE + word];
    struct gathering of;

    if (w->count > 0 || w->next_at > clock_now_ms())
        return;
    pthread_mutex_lock(&n->lock);
    of = n->words[word];
    n->words[word].count = 0;
    n->words[word].more = 0;
    pthread_mutex_unlock(&n->lock);
    for (unsigned i = 0; i < of.count; i++) {
        add_gathered(n, word, &of.each[i]);
        gathered_done(&of.each[i]);
    }
    w->more += of.more;
}

/* ---- looking --------------------------------------------------------------------------- */

static struct known *find_source(struct notify *n, const struct notify_state *state)
{
    bool registered = state->name[0] == '\0';
    const char *name = registered && state->site != NULL ? state->site : state->name;
    struct known *grown;

    for (size_t i = 0; i < n->known_count; i++) {
        size_t at = (n->known_next + i) % n->known_count;
        struct known *k = &n->known[at];
        if (k->registered == registered && strcmp(k->name, name) == 0) {
            n->known_next = at + 1;
            return k;
        }
    }
    if (n->known_count == n->known_room) {
        grown = reallocarray(n->known, n->known_room * 2 + 8, sizeof *grown);
        if (grown == NULL)
            return NULL;
        n->known = grown;
        n->known_room = n->known_room * 2 + 8;
    }
    grown = &n->known[n->known_count];
    *grown = (struct known){.name = strdup(name), .registered = registered};
    if (grown->name == NULL)
        return NULL;
    n->known_count++;
    return grown;
}

/* The subject of a sentence. */
static const char *subject(const struct notify_state *state)
{
    return state->name[0] != '\0' ? "of the source" : "registered by API";
}

/* Whether a line may be added: a source has at most one waiting line of each kind, so that one that
 * changes all the time leaves room for others. Its later state is reported after that line was
 * sent. */
static bool has_place(struct known *k, enum kind kind)
{
    bool has = (k->waits & 1u << kind) == 0;

    k->waits |= 1u << kind;
    return has;
}

static void check_failure(struct notify *n, struct known *k, const struct notify_state *state)
{
    bool failing = state->failure != NULL;

    if (failing == k->failing || !has_place(k, failing ? SOURCE_FAILING : SOURCE_WELL))
        return;
    if (failing)
        add_notification(n, SOURCE_FAILING, state, state->failed_at, "%s", state->failure);
    else
        add_notification(n, SOURCE_WELL, state, 0, "the source can be read again");
    k->failing = failing;
}

/* True if there are more than before, or none any more, and a line may be added. */
static bool is_news(struct known *k, uint64_t *known, uint64_t now, enum kind more, enum kind none)
{
    bool moved = now > *known || (now == 0 && *known > 0);

    if (moved && !has_place(k, now > 0 ? more : none))
        return false;
    *known = now;
    return moved;
}

static void check_held(struct notify *n, struct known *k, const struct notify_state *state)
{
    if (!is_news(k, &k->held, state->held, REMOVAL_HELD, REMOVAL_SETTLED))
        return;
    if (state->held > 0)
        add_notification(n, REMOVAL_HELD, state, 0,
                         "%" PRIu64
                         " %s held back by the shrink guard; a scan with max_removed allows it",
                         state->held, plural(state->held, "removal is", "removals are"));
    else
        add_notification(n, REMOVAL_SETTLED, state, 0, "removals are no longer held back");
}

static void check_bad(struct notify *n, struct known *k, const struct notify_state *state)
{
    if (!is_news(k, &k->bad, state->bad, SITEMAPS_BAD, SITEMAPS_WELL))
        return;
    if (state->bad > 0)
        add_notification(n, SITEMAPS_BAD, state, 0,
                         "%" PRIu64 " %s %s %s; GET /v1/checks lists them", state->bad,
                         plural(state->bad, "sitemap", "sitemaps"), subject(state),
                         plural(state->bad, "has a problem", "have problems"));
    else
        add_notification(n, SITEMAPS_WELL, state, 0, "all sitemaps %s are good again",
                         subject(state));
}

static void on_state(void *context, const struct notify_state *state)
{
    struct notify *n = context;
    struct known *k = find_source(n, state);

    if (k == NULL)
        return;
    k->seen = true;
    check_failure(n, k, state);
    check_held(n, k, state);
    check_bad(n, k, state);
}

/* Compares all sources; forgets removed ones without an event. */
static void find_trouble(struct notify *n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n->known_count; i++)
        n->known[i].seen = false;
    n->options.look(n->options.context, on_state, n);
    for (enum notify_word word = 0; word < NOTIFY_WORDS; word++)
        add_all_gathered(n, word);
    for (size_t i = 0; i < n->known_count; i++)
        if (n->known[i].seen)
            n->known[kept++] = n->known[i];
        else
            free(n->known[i].name);
    n->known_count = kept;
    n->known_next = 0;
}

/* ---- sending --------------------------------------------------------------------------- */

/* Removes the sent lines, which come first; newer ones follow them. */
static void forget_sent(struct notify *n, struct waiting *w, size_t lines_len)
{
    memmove(w->lines.data, w->lines.data + lines_len, w->lines.len - lines_len);
    w->lines.len -= lines_len;
    w->count -= n->sent_count;
    memmove(w->sites, w->sites + n->sent_count, w->count * sizeof *w->sites);
    w->more -= n->sent_more;
    w->first_at = clock_now_ms();
    w->tries = 0;
    w->next_at = w->first_at + n->options.pace_ms;
    for (size_t i = 0; i < n->known_count; i++)
        n->known[i].waits &= ~(1u << n->sending);
}

static void record_failed(struct notify *n, struct waiting *w, size_t lines_len, const char *why,
                          const struct fetch_reply *reply)
{
    int64_t now = clock_now_ms();

    if (!n->logged)
        log_event(LOG_LEVEL_WARNING, "notify-failed",
                  "%.*s did not accept the notification: %s; retrying for a day",
                  (int)n->url.origin_len, n->url.text, why);
    n->logged = true;
    w->next_at = now + again_wait_ms(w->tries++, n->options.pace_ms, reply, clock_unix_ms() / 1000);
    if (now - w->first_at > KEEP_MS) {
        log_event(LOG_LEVEL_ERROR, "notify-given-up",
                  "%.*s did not accept %u notifications (%s) for a day; they are dropped",
                  (int)n->url.origin_len, n->url.text, n->sent_count, kind_words[n->sending]);
        forget_sent(n, w, lines_len);
    }
}

static void on_sent(void *context, enum fetch_status status, struct fetch_reply *reply)
{
    struct notify *n = context;
    struct waiting *w = &n->kinds[n->sending];
    size_t lines_len = 0;
    char why[64];

    for (unsigned i = 0; i < n->sent_count; i++)
        lines_len +=
            (size_t)(strchr(w->lines.data + lines_len, '\n') + 1 - w->lines.data) - lines_len;
    if (status == FETCH_OK && reply->status / 100 == 2) {
        if (n->logged)
            log_event(LOG_LEVEL_INFO, "notify-well", "%.*s accepts notifications again",
                      (int)n->url.origin_len, n->url.text);
        n->logged = false;
        forget_sent(n, w, lines_len);
    } else {
        snprintf(why, sizeof why, "HTTP status %u", reply->status);
        record_failed(n, w, lines_len, status == FETCH_OK ? why : reply->why, reply);
    }
    n->sending = KINDS;
}

static void send_kind(struct notify *n, enum kind kind)
{
    struct waiting *w = &n->kinds[kind];
    struct fetch_request request = {
        .url = &n->url,
        .method = "POST",
        .agent = n->agent,
        .headers = "Content-Type: application/x-ndjson\r\n",
        .timeout_ms = TIMEOUT_MS,
        .max_bytes = ANSWER_BYTES,
        .guard = &n->guard,
        .context = n,
    };

    str_clear(&n->body);
    str_append(&n->body, w->lines.data, w->lines.len);
    if (w->more > 0)
        str_append_format(&n->body, "{\"event\":\"%s\",\"more\":%" PRIu64 "}\n", kind_words[kind],
                          w->more);
    n->sent_count = w->count;
    n->sent_more = w->more;
    n->sending = kind;
    request.body = str_text(&n->body);
    request.give_bytes = n->body.len;
    if (n->body.failed || fetch_loop_add(n->loop, &request, on_sent) == NULL) {
        str_done(&n->body);
        n->sending = KINDS;
        w->next_at = clock_now_ms() + n->options.pace_ms;
    }
}

/* Sends due lines. Returns how long there is nothing to do. */
static int64_t send_due(struct notify *n, int64_t next_look)
{
    int64_t now = clock_now_ms(), next = next_look;

    for (enum kind kind = 0; kind < KINDS && n->sending == KINDS; kind++) {
        if (n->kinds[kind].count == 0)
            continue;
        if (n->kinds[kind].next_at <= now)
            send_kind(n, kind);
        else if (n->kinds[kind].next_at < next)
            next = n->kinds[kind].next_at;
    }
    return next > now ? next - now : 0;
}

static void notify_run(void *context)
{
    struct notify *n = context;
    /* at the start all failures come together */
    int64_t next_look = clock_now_ms() + n->options.look_ms;

    while (!thread_stops(&n->thread)) {
        if (clock_now_ms() >= next_look) {
            find_trouble(n);
            next_look = clock_now_ms() + n->options.look_ms;
        }
        fetch_loop_poll(n->loop, (int)send_due(n, next_look));
    }
}

/* ---- start and stop -------------------------------------------------------------------- */

static bool copy_options(struct notify *n, const struct notify_options *options)
{
    n->options = *options;
    if (n->options.look_ms == 0)
        n->options.look_ms = LOOK_MS;
    if (n->options.pace_ms == 0)
        n->options.pace_ms = PACE_MS;
    n->agent = strdup(options->agent);
    return n->agent != NULL && address_guard_init(&n->guard, options->allow_addresses) &&
           url_parse(options->url, strlen(options->url), &n->url, NULL) == RULE_OK;
}

static void free_notify(struct notify *n)
{
    fetch_loop_free(n->loop);
    for (size_t i = 0; i < KINDS; i++)
        str_done(&n->kinds[i].lines);
    for (size_t word = 0; word < NOTIFY_WORDS; word++)
        for (unsigned i = 0; i < n->words[word].count; i++)
            gathered_done(&n->words[word].each[i]);
    pthread_mutex_destroy(&n->lock);
    str_done(&n->body);
    for (size_t i = 0; i < n->known_count; i++)
        free(n->known[i].name);
    free(n->known);
    address_guard_done(&n->guard);
    free(n->agent);
    free(n);
}

struct notify *notify_start(const struct notify_options *options)
{
    struct notify *n = calloc(1, sizeof *n);

    if (n == NULL)
        goto failed;
    n->sending = KINDS;
    pthread_mutex_init(&n->lock, NULL);
    n->loop = copy_options(n, options) ? fetch_loop_new() : NULL;
    if (n->loop != NULL && thread_start(&n->thread, "notify", notify_run, n))
        return n;
    free_notify(n);
failed:
    log_event(LOG_LEVEL_ERROR, "notify-failed", "[notify] is off: out of memory");
    return NULL;
}

void notify_stop(struct notify *n)
{
    if (n == NULL)
        return;
    thread_end(&n->thread);
    fetch_loop_wake(n->loop);
    thread_join(&n->thread);
    free_notify(n);
}
