/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The thread of a folder: waits for changes, scans, retries and logs. */
#include "server/sources/source.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/str.h"
#include "server/base/text.h"
#include "server/input/sitemap_file.h"

static struct scan_request *source_next_request(struct source *s);

enum { LEVEL_ERROR, LEVEL_WARNING, LEVEL_INFO };

/* Files that flip between good and bad must not fill the log. */
#define LINES_A_MINUTE 100u

__attribute__((format(printf, 4, 5))) static void
source_log(struct source *s, int level, const char *event, const char *format, ...)
{
    char detail[1600];
    va_list arguments;
    int64_t now = clock_now_ms();
    if (now - s->log_began >= 60000) {
        s->log_began = now;
        s->log_lines = 0;
    }
    if (s->event == NULL || s->log_lines == LINES_A_MINUTE)
        return;
    if (++s->log_lines == LINES_A_MINUTE) {
        snprintf(detail, sizeof detail,
                 "%.64s: more than %u log lines in a minute; the rest is not logged",
                 s->settings.name, LINES_A_MINUTE - 1);
        s->event(s->event_context, LEVEL_WARNING, event, detail);
        return;
    }
    int len = snprintf(detail, sizeof detail, "%.64s: ", s->settings.name);
    va_start(arguments, format);
    vsnprintf(detail + len, sizeof detail - (size_t)len, format, arguments);
    va_end(arguments);
    s->event(s->event_context, level, event, detail);
}

/* Logs the first of a file's remarks in full, and names the others. */
static bool report_remarks(struct source *s, const struct source_file *file)
{
    struct sitemap_remarks remarks;
    char sentence[SITEMAP_REMARK_SENTENCE], place[64] = "", others[SITEMAP_MAX_REMARKS * 32] = "";
    sitemap_remarks_read(file->remarks, &remarks);
    if (remarks.count == 0)
        return false;
    const struct sitemap_remark *first = &remarks.at[0];
    sitemap_remark_report(first, sentence);
    if (first->lines[0] > 0)
        snprintf(place, sizeof place, ", line %" PRIu64 ", column %" PRIu64, first->lines[0],
                 first->column);
    for (size_t i = 1; i < remarks.count; i++)
        snprintf(others + strlen(others), sizeof others - strlen(others), "%s%s",
                 i == 1 ? " (also " : ", ", rule_code_word(remarks.at[i].code));
    source_log(s, LEVEL_INFO, "source-file-remark", "%s: %s%s: %s%s%s", file->path,
               rule_code_word(first->code), place, sentence, others, *others ? ")" : "");
    return true;
}

/* Logs the change of one file; true if it was worth a line. */
static bool source_report_change(struct source *s, const char *what, const struct source_file *file)
{
    char place[64] = "";
    if (strcmp(what, "split") == 0) {
        source_log(s, LEVEL_INFO, "source-file-split",
                   "%s: its %" PRIu64 " page URLs are now a urlset: %s", file->path, file->urls,
                   file->detail != NULL ? file->detail : "");
        return true;
    }
    if (strcmp(what, "recovered") == 0) {
        source_log(s, LEVEL_INFO, "source-file-recovered", "%s is good again", file->path);
        if (file->remarks != NULL)
            report_remarks(s, file);
        return true;
    }
    if (file->state == SOURCE_FILE_LISTED && file->remarks != NULL)
        return report_remarks(s, file);
    if (strcmp(what, "problem") != 0)
        return false;
    if (file->line > 0)
        snprintf(place, sizeof place, ", line %" PRIu64 ", column %" PRIu64, file->line,
                 file->column);
    source_log(s, LEVEL_WARNING, "source-file-problem", "%s: %s%s: %.200s%s", file->path,
               file->problem, place, file->detail != NULL ? file->detail : "",
               file->has_entry ? " (its last good entry stays)" : "");
    return true;
}

/* Logs the result of a scan if it is worth a line. `state` is that after the scan; `is_news`: it
 * did not fail before, or for another reason. */
static void source_report_outcome(struct source *s, const struct scan_outcome *outcome,
                                  const struct source_state *state, bool is_news)
{
    const struct scan_counts *c = &outcome->counts;
    uint64_t held = outcome->result.would_remove;
    if (outcome->watch_limit)
        source_log(s, LEVEL_WARNING, "source-watch-limit",
                   "the system's inotify limit (fs.inotify.max_user_watches, max_user_instances), "
                   "or the site's share of it, is reached: raise it, or changes in the folders "
                   "without a watch are found only by rescans");
    if (!outcome->applied) {
        if (is_news)
            source_log(s, LEVEL_WARNING, "source-scan-failed", "%s", outcome->failure);
        return;
    }
    if (outcome->outside > 0 && s->outside != outcome->outside)
        source_log(s, LEVEL_INFO, "source-link-outside", "%" PRIu64 " %s ignored: %s%s",
                   outcome->outside,
                   plural(outcome->outside, "symlink leads out of the folder and is",
                          "symlinks lead out of the folder and are"),
                   outcome->outside_path, plural(outcome->outside, "", ", ..."));
    if (held > 0 && s->held != held)
        source_log(
            s, LEVEL_WARNING, "source-removals-held",
            "%" PRIu64 " %s kept by the shrink guard; scan with max_removed to remove %s%s", held,
            plural(held, "entry whose URL no file of the folder has is",
                   "entries whose URLs no file of the folder has are"),
            plural(held, "it", "them"),
            s->settings.serve ? "; crawlers get the last version of a file in memory, else 503, "
                                "and 404 if its URL is not below the source's url"
                              : "");
    if (outcome->result.frozen > 0 && s->frozen != outcome->result.frozen)
        source_log(s, LEVEL_INFO, "source-frozen",
                   "%" PRIu64 " %s held back until the index is thawed: it is frozen",
                   outcome->result.frozen, plural(outcome->result.frozen, "file is", "files are"));
    if (s->failures > 0)
        source_log(s, LEVEL_INFO, "source-scan-works", "the folder can be scanned again");
    if (s->scanned && !outcome->result.changed &&
        c->added + c->changed + c->gone + c->problems + c->recovered + c->empty + c->remarked == 0)
        return;
    source_log(s, LEVEL_INFO, "source-scanned",
               "%" PRIu64 " %s, %" PRIu64 " read: %" PRIu64 " new, %" PRIu64 " changed, %" PRIu64
               " gone, %" PRIu64 " with a problem, %" PRIu64 " recovered, %" PRIu64
               " empty; remarks: %" PRIu64 " dated in the future, %" PRIu64
               " with the same lastmod on all pages, %" PRIu64 " with any remark",
               c->files, plural(c->files, "file", "files"), c->read, c->added, c->changed, c->gone,
               state->quarantined, c->recovered, c->empty, c->future, c->one_lastmod,
               state->remarked);
}

/* requested scans of one source that may wait; each keeps a connection waiting */
#define SCANS_WAITING  16
#define TURN_MS        200
#define LEAD_MS        1000 /* how soon a node that does not lead a folder tries again */
#define RETRY_FIRST_MS 1000
#define RETRY_MOST_MS  60000
/* A folder that never settles is scanned after so many times `settle`, or after this time. */
#define UNREST_TIMES   10
#define UNREST_MOST_MS 300000
/* inotify does not report that the top was replaced through a parent folder (a mount, a symlink to
 * releases), so its inode is checked at this interval. */
#define LOOK_MS     5000
#define PROGRESS_MS 10000
/* The pause before a scan that only tries again what was rejected: at least this long, and so many
 * times the last scan's time. */
#define RETRY_REJECTED_MS 60000
#define REST_TIMES        20
/* The rescan interval if rescans are off and the limit of inotify is reached. */
#define LIMIT_RESCAN_MS 3600000
/* Files of one scan that are logged one by one; a last line counts the others. */
#define MAX_LOGGED_FILES 20

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- watching ----------------------------------------------------------------------------- */

static void set_watching(struct source *s, enum source_watching watching)
{
    pthread_mutex_lock(&s->lock);
    s->watching = watching;
    pthread_mutex_unlock(&s->lock);
}

static void unrest(struct source *s, int64_t now)
{
    int64_t settle = s->settings.settle_ms;
    if (s->settle_at == 0)
        s->settle_bound = now + most(settle, least(UNREST_TIMES * settle, UNREST_MOST_MS));
    s->settle_at = least(now + settle, s->settle_bound);
}

/* ---- scanning ----------------------------------------------------------------------------- */

struct progress {
    struct source *source;
    const struct scan_outcome *outcome;
    int64_t logged_at;
    unsigned logged; /* files */
    uint64_t more;   /* files with a problem that were not logged one by one */
    bool shown;      /* the outcome was shown, and the members below are set */
    bool is_news;    /* it fails for another reason than before */
    struct source_state state;
};

static void on_progress(void *context, uint64_t seen, uint64_t read)
{
    struct progress *p = context;
    if (seen % 256 != 0)
        return;
    int64_t now = clock_now_ms();
    if (now - p->logged_at < PROGRESS_MS)
        return;
    p->logged_at = now;
    source_log(p->source, 2, "source-scanning", "%llu files seen, %llu read so far",
               (unsigned long long)seen, (unsigned long long)read);
}

static void set_scanning(struct source *s, bool scanning)
{
    pthread_mutex_lock(&s->lock);
    s->scanning = scanning;
    pthread_mutex_unlock(&s->lock);
}

/* Reads the state of the source; the old state if that fails. `registry` (may be NULL): the
 * revision of sites and sources, unchanged if that fails. */
static struct source_state read_state(struct source *s, uint64_t *registry)
{
    struct catalogue_view *view;
    struct catalogue_revisions revisions;
    struct source_state state = s->state; /* only this thread sets it */
    if (catalogue_view_begin(s->catalogue, &view) != CATALOGUE_OK)
        return state;
    if (catalogue_view_source_state(view, s->settings.name, &state) != CATALOGUE_OK)
        state = s->state;
    if (registry != NULL && catalogue_view_revisions(view, &revisions) == CATALOGUE_OK)
        *registry = revisions.registry_revision;
    catalogue_view_end(view);
    return state;
}

void source_recall(struct source *s)
{
    s->state = read_state(s, &s->registry_seen);
    s->touched = s->state.touched; /* the first scan begins now */
}

/* Publishes the outcome once, when the scan is committed or has failed, before it is logged. */
static void show_outcome(struct progress *p)
{
    struct source *s = p->source;
    const struct scan_outcome *outcome = p->outcome;
    if (p->shown)
        return;
    p->shown = true;
    p->state = read_state(s, NULL);
    pthread_mutex_lock(&s->lock);
    p->is_news = strcmp(s->failure, outcome->failure) != 0;
    s->state = p->state;
    s->scans++;
    s->files_read += outcome->counts.read;
    s->failed_at = outcome->applied ? 0 : time(NULL);
    memcpy(s->failure, outcome->failure, sizeof s->failure);
    pthread_mutex_unlock(&s->lock);
}

static void on_change(void *context, const char *what, const struct source_file *file)
{
    struct progress *p = context;
    show_outcome(p);
    if (p->logged < MAX_LOGGED_FILES)
        p->logged += source_report_change(p->source, what, file);
    else if (strcmp(what, "problem") == 0)
        p->more++;
}

/* What was rejected may be accepted now, although the files are the same: a site or host was added,
 * another source was removed. Changes of other sites count, too, so the folder is not scanned at
 * each of them. */
static void retry_rejected(struct source *s, int64_t now)
{
    int64_t at = most(now, s->scanned_at + most(RETRY_REJECTED_MS, s->scan_took * REST_TIMES));
    if (s->again_at == 0 || at < s->again_at)
        s->again_at = at;
}

/* Reads the state again: a command on the catalogue's file may have scanned the folder and
 * confirmed removals. True: another change may have changed entries since the last call. */
static bool look_at_state(struct source *s, int64_t now)
{
    uint64_t registry = s->registry_seen;
    struct source_state state = read_state(s, &registry);
    bool touched = state.touched != s->touched;
    if (registry != s->registry_seen && state.quarantined + state.remarked > 0)
        retry_rejected(s, now);
    s->registry_seen = registry;
    pthread_mutex_lock(&s->lock);
    s->state = state;
    pthread_mutex_unlock(&s->lock);
    s->held = state.held;
    s->touched = state.touched;
    return touched;
}

static void record_outcome(struct source *s, const struct scan_outcome *outcome, int64_t now)
{
    set_scanning(s, false);
    s->again_at = outcome->again_ms ? now + outcome->again_ms : 0;
    if (outcome->applied) {
        s->folder.links = outcome->links;
        s->outside = outcome->outside;
        s->held = outcome->result.would_remove;
        s->frozen = outcome->result.frozen;
        s->scanned = true;
        s->failures = 0;
        s->retry_at = 0;
        if (s->on_scanned != NULL)
            s->on_scanned(s->on_scanned_context, s->number);
        return;
    }
    unsigned doublings = s->failures < 6 ? s->failures : 6;
    s->retry_at = now + least((int64_t)RETRY_FIRST_MS << doublings, RETRY_MOST_MS);
    s->failures++;
}

/* A scan takes memory for each file, so the folders that API and command line opened for one site
 * are scanned one at a time. */
static struct {
    pthread_mutex_t lock;
    struct source *scanning; /* the first; of different sites */
} turns = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool source_try_turn(struct source *s)
{
    bool is_free = true;
    pthread_mutex_lock(&turns.lock);
    for (const struct source *other = turns.scanning; other != NULL; other = other->next_scanning)
        is_free =
            is_free && (s->settings.site_id == 0 || other->settings.site_id != s->settings.site_id);
    if (is_free) {
        s->next_scanning = turns.scanning;
        turns.scanning = s;
    }
    pthread_mutex_unlock(&turns.lock);
    return is_free;
}

void source_end_turn(struct source *s)
{
    pthread_mutex_lock(&turns.lock);
    struct source **at = &turns.scanning;
    while (*at != s)
        at = &(*at)->next_scanning;
    *at = s->next_scanning;
    pthread_mutex_unlock(&turns.lock);
}

static void take_wakes(const struct source *s)
{
    uint64_t count;
    ssize_t taken = read(s->wake_fd, &count, sizeof count);
    (void)taken;
}

/* False: the source is to end. */
static bool wait_for_turn(struct source *s)
{
    struct pollfd wake = {.fd = s->wake_fd, .events = POLLIN};
    while (!source_try_turn(s)) {
        if (poll(&wake, 1, TURN_MS) > 0)
            take_wakes(s);
        if (thread_stops(&s->thread))
            return false;
    }
    return true;
}

static struct scan_options scan_options_of(struct source *s, int64_t max_removed)
{
    return (struct scan_options){
        .catalogue = s->catalogue,
        .settings = &s->settings,
        .site_id = s->settings.site_id,
        .kind = &folder_kind,
        .place = &s->folder,
        .max_removed = max_removed,
        .max_files = s->settings.site_id != 0 ? SOURCE_MADE_MAX_FILES : 0,
        .max_names = s->settings.site_id != 0 ? SOURCE_MADE_MAX_NAMES : 0,
        .stop = &s->thread.stops,
    };
}

static void scan(struct source *s, int64_t max_removed, struct scan_outcome *outcome)
{
    int64_t began = clock_now_ms();
    struct progress logged = {.source = s, .outcome = outcome, .logged_at = began};
    struct scan_progress progress = {
        .change = on_change, .progress = on_progress, .context = &logged};
    struct scan_options options = scan_options_of(s, max_removed);
    options.progress = &progress;
    enum source_watching before = s->watching; /* only this thread sets it */
    set_scanning(s, true);
    s->settle_at = 0;
    bool no_instance = folder_watch(&s->folder);
    scan_run(&options, outcome);
    bool limit = no_instance || outcome->watch_limit;
    outcome->watch_limit = limit && before != SOURCE_WATCH_LIMIT;
    set_watching(s, limit                     ? SOURCE_WATCH_LIMIT
                    : s->folder.watch != NULL ? SOURCE_WATCHES
                                              : SOURCE_RESCANS_ONLY);
    show_outcome(&logged);
    if (logged.more > 0)
        source_log(s, LEVEL_WARNING, "source-file-problem",
                   "%" PRIu64 " more %s; GET /v1/sources/%s lists them", logged.more,
                   plural(logged.more, "file has a problem", "files have problems"),
                   s->settings.name);
    if (!thread_stops(&s->thread))
        source_report_outcome(s, outcome, &logged.state, logged.is_news);
    int64_t now = clock_now_ms();
    record_outcome(s, outcome, now);
    uint32_t rescan_ms = s->settings.rescan_ms;
    if (rescan_ms == 0 && limit)
        rescan_ms = LIMIT_RESCAN_MS;
    s->rescan_at = rescan_ms ? now + rescan_ms : 0;
    s->scanned_at = now;
    s->scan_took = now - began;
    s->look_at = now + LOOK_MS;
}

/* A dry run, which leaves no trace in `s`. */
static void try_scan(struct source *s, int64_t max_removed, struct scan_outcome *outcome)
{
    struct scan_options options = scan_options_of(s, max_removed);
    options.dry_run = true;
    set_scanning(s, true);
    scan_run(&options, outcome);
    set_scanning(s, false);
}

/* In a shared catalogue only one node scans on its own, and only one that has the folder: a node
 * that cannot read it lets another one lead. A requested scan runs on the node that gets the
 * request. */
static void scan_if_leads(struct source *s)
{
    struct scan_outcome outcome;
    char name[sizeof "source:" + NAME_MAX_BYTES];
    snprintf(name, sizeof name, "source:%s", s->settings.name);
    if (!catalogue_leads(s->catalogue, name)) {
        s->settle_at = s->again_at = s->rescan_at = 0;
        s->retry_at = clock_now_ms() + LEAD_MS; /* if this node leads then, it scans all */
        return;
    }
    if (!wait_for_turn(s))
        return;
    scan(s, MAX_REMOVED_GUARDED, &outcome);
    source_end_turn(s);
    if (s->failures > 0)
        catalogue_lead_end(s->catalogue, name);
}

static void serve_request(struct source *s, struct scan_request *request)
{
    struct scan_outcome outcome;
    if (!wait_for_turn(s)) {
        source_refuse_request(request);
        return;
    }
    if (request->dry_run)
        try_scan(s, request->max_removed, &outcome);
    else
        scan(s, request->max_removed, &outcome);
    source_end_turn(s);
    request->done(request->context, outcome.applied ? &outcome.result : NULL, outcome.failure);
    change_result_done(&outcome.result);
    free(request);
}

/* ---- waiting ------------------------------------------------------------------------------ */

/* When the next scan is due; 0: never. It waits until the folder settles, so that a half-written
 * set of files is not a change; that wait is bounded. */
static int64_t due_at(const struct source *s)
{
    const int64_t times[] = {s->rescan_at, s->retry_at, s->again_at};
    int64_t due = 0;
    if (s->settle_at != 0)
        return s->settle_at;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (times[i] != 0 && (due == 0 || times[i] < due))
            due = times[i];
    return due;
}

static void wait_for_something(struct source *s, int64_t due)
{
    struct pollfd fds[2] = {{.fd = s->wake_fd, .events = POLLIN},
                            {.fd = folder_fd(&s->folder), .events = POLLIN}};
    int64_t until = due == 0 ? s->look_at : least(due, s->look_at);
    int64_t wait = most(until - clock_now_ms(), 0);
    if (poll(fds, 2, (int)least(wait, LOOK_MS) + 1) > 0 && fds[0].revents)
        take_wakes(s);
    if (fds[1].revents) {
        struct tree_watch_news news;
        folder_read_news(&s->folder, &news);
        if (news.overflow)
            source_log(s, 2, "source-watch-overflow",
                       "inotify events were lost: rescanning the folder");
        if (news.changed)
            unrest(s, clock_now_ms()); /* now is later than any of the events, since watching a new
                                          tree takes time */
    }
    int64_t now = clock_now_ms();
    if (now >= s->look_at) {
        s->look_at = now + LOOK_MS;
        bool touched = look_at_state(s, now);
        /* Only files that change delay a scan that is due. */
        if (s->settle_at == 0 && (touched || (s->failures == 0 && folder_is_replaced(&s->folder))))
            unrest(s, now);
    }
}

/* Each folder has a thread of its own, and one site may have 20 that change all the time: crawlers
 * and writes of others go first. */
#define NICE 10

void source_run(void *source)
{
    struct source *s = source;
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    scan_if_leads(s);
    while (!thread_stops(&s->thread)) {
        struct scan_request *request = source_next_request(s);
        if (request != NULL) {
            serve_request(s, request);
            continue;
        }
        /* Read the clock before the events: a thread that could not run for longer than `settle`
         * must not conclude that the folder has settled. */
        int64_t now = clock_now_ms();
        wait_for_something(s, due_at(s));
        int64_t due = due_at(s);
        if (due != 0 && now >= due && !thread_stops(&s->thread))
            scan_if_leads(s);
    }
}

struct source *source_new(const struct source_settings *settings,
                          const struct sources_options *options, char *why, size_t why_size)
{
    struct source *s = calloc(1, sizeof *s);
    if (s == NULL) {
        snprintf(why, why_size, "out of memory");
        return NULL;
    }
    atomic_init(&s->references, 1);
    pthread_mutex_init(&s->lock, NULL);
    s->wake_fd = -1;
    bool copied = source_settings_copy(settings, &s->settings);
    s->catalogue = options->catalogue;
    s->event = options->event;
    s->event_context = options->event_context;
    s->watching = SOURCE_RESCANS_ONLY;
    if (!copied) {
        snprintf(why, why_size, "out of memory");
        goto fail;
    }
    /* A source that API or command line made must not stop the others: its scans fail (begin). */
    if (!folder_init(&s->folder, &s->settings, why, why_size) && s->settings.managed)
        goto fail;
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->wake_fd < 0) {
        snprintf(why, why_size, "eventfd: %s", strerrordesc_np(errno));
        goto fail;
    }
    return s;
fail:
    source_unref(s);
    return NULL;
}

bool source_settings_check(const struct source_settings *settings, char *why, size_t why_size)
{
    struct location location;
    return location_init(&location, settings->url, why, why_size);
}

static void refuse(struct scan_request *request, const char *why)
{
    request->done(request->context, NULL, why);
    free(request);
}

void source_refuse_request(struct scan_request *request)
{
    refuse(request, "the source is being stopped");
}

void source_answer_requests(struct source *s)
{
    struct scan_request *request;
    while ((request = source_next_request(s)) != NULL)
        source_refuse_request(request);
}

void source_release(struct source *s)
{
    folder_done(&s->folder);
    pthread_mutex_lock(&s->lock);
    if (s->wake_fd >= 0)
        close(s->wake_fd);
    s->wake_fd = -1;
    pthread_mutex_unlock(&s->lock);
}

void source_ref(struct source *s)
{
    atomic_fetch_add_explicit(&s->references, 1, memory_order_relaxed);
}

void source_unref(struct source *s)
{
    if (s == NULL || atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) != 1)
        return;
    source_answer_requests(s);
    source_release(s);
    source_settings_done(&s->settings);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void source_wake(struct source *s)
{
    uint64_t one = 1;
    if (s->wake_fd < 0)
        return;
    /* If the counter is full, the thread wakes anyway. */
    ssize_t written = write(s->wake_fd, &one, sizeof one);
    (void)written;
}

void source_request(struct source *s, struct scan_request *request)
{
    request->next = NULL;
    pthread_mutex_lock(&s->lock);
    /* Checked under the lock: a request that sees no stop here is queued before
     * source_answer_requests, which answers it. */
    bool stopping = thread_stops(&s->thread);
    struct scan_request **end = &s->requests;
    size_t waiting = 0;
    for (; *end != NULL; end = &(*end)->next)
        waiting++;
    if (!stopping && waiting < SCANS_WAITING) {
        *end = request;
        source_wake(s); /* also under the lock, since source_release takes it */
    }
    pthread_mutex_unlock(&s->lock);
    if (stopping)
        source_refuse_request(request);
    else if (waiting >= SCANS_WAITING)
        refuse(request, "busy: too many scans of the source are waiting; retry later");
}

/* Removes the first request, for the caller to own; NULL: none exists. */
static struct scan_request *source_next_request(struct source *s)
{
    pthread_mutex_lock(&s->lock);
    struct scan_request *first = s->requests;
    if (first != NULL)
        s->requests = first->next;
    pthread_mutex_unlock(&s->lock);
    return first;
}
