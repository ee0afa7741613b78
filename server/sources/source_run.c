#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/sources/beneath.h"
#include "server/sources/source.h"
#include "server/sources/walk.h"

#define RETRY_FIRST_MS 1000
#define RETRY_MOST_MS  60000
/* A folder that never rests is scanned all the same: after so many times `settle`, or so long. */
#define UNREST_TIMES   10
#define UNREST_MOST_MS 300000
/* inotify does not tell of the top's being replaced by way of the folders above it (a mount, a
 * symlink of releases): a look at its inode does. */
#define LOOK_MS     5000
#define PROGRESS_MS 10000
/* Where rescans are off and the limit of inotify is reached. */
#define LIMIT_RESCAN_MS 3600000
/* Files told one by one, of one scan; the last line counts all. */
#define TOLD_MOST 20

static int64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

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

/* Tries again at each rescan: the limit may have been raised. True where the limit is reached. */
static bool watch_try(struct source *s)
{
    if (!s->settings.watch || s->watch)
        return false;
    s->watch = tree_watch_new(s->settings.directory);
    return s->watch == NULL && errno != ENOMEM;
}

static bool watch_one(void *context, int fd, const char *path)
{
    struct source *s = context;
    return tree_watch_folder(s->watch, fd, path);
}

/* A folder came to be: watched at once, with all in it, so that what is being put there counts as
 * unrest. What the limit does not allow, the scan that follows finds out. */
static void appeared(void *context, const char *path)
{
    struct source *s = context;
    struct walk_visit visit = {.folder = watch_one, .context = s};
    struct walk_result result;
    int top = beneath_open_top(s->settings.directory);
    if (top < 0)
        return;
    walk_folder(top, path, &s->match, &visit, &result);
    close(top);
}

static void not_yet(void *context, const char *path)
{
    (void)context;
    (void)path;
}

/* What has happened until now, the scan that begins now sees for itself. */
static void drain(struct source *s)
{
    struct tree_watch_news news;
    s->settle_at = 0;
    if (s->watch)
        tree_watch_read(s->watch, &s->match, not_yet, s, &news);
}

static void unrest(struct source *s, int64_t now)
{
    int64_t settle = s->settings.settle_ms;
    if (s->settle_at == 0)
        s->settle_bound = now + most(settle, least(UNREST_TIMES * settle, UNREST_MOST_MS));
    s->settle_at = least(now + settle, s->settle_bound);
}

static void look(struct source *s, int64_t now)
{
    struct stat st;
    s->look_at = now + LOOK_MS;
    bool found = stat(s->settings.directory, &st) == 0;
    if (s->failures == 0 && (!found || st.st_dev != s->top_device || st.st_ino != s->top_inode))
        unrest(s, now);
}

/* ---- scanning ----------------------------------------------------------------------------- */

struct progress {
    struct source *source;
    int64_t told_at;
    unsigned told; /* files */
};

static void on_progress(void *context, uint64_t seen, uint64_t read)
{
    struct progress *p = context;
    if (seen % 256 != 0)
        return;
    int64_t now = clock_ms();
    if (now - p->told_at < PROGRESS_MS)
        return;
    p->told_at = now;
    source_tell(p->source, 2, "source-scanning", "%llu files seen, %llu read so far",
                (unsigned long long)seen, (unsigned long long)read);
}

static void on_change(void *context, const char *what, const struct source_file *file)
{
    struct progress *p = context;
    if (p->told < TOLD_MOST && source_tell_change(p->source, what, file))
        p->told++;
}

/* The folder as it is when the scan begins: another one later is news. */
static void note_top(struct source *s)
{
    struct stat st;
    bool found = stat(s->settings.directory, &st) == 0;
    s->top_device = found ? st.st_dev : 0;
    s->top_inode = found ? st.st_ino : 0;
}

static void set_scanning(struct source *s, bool scanning)
{
    pthread_mutex_lock(&s->lock);
    s->scanning = scanning;
    pthread_mutex_unlock(&s->lock);
}

/* How the source stands now; as before where that cannot be read. */
static struct source_state read_state(struct source *s)
{
    struct catalogue_view *view;
    struct source_state state = s->state; /* only this thread sets it */
    if (catalogue_view_begin(s->catalogue, &view) != CATALOGUE_OK)
        return state;
    if (catalogue_view_source_state(view, s->settings.name, &state) != CATALOGUE_OK)
        state = s->state;
    catalogue_view_end(view);
    return state;
}

static void note_outcome(struct source *s, const struct scan_outcome *outcome, int64_t now)
{
    struct source_state state = read_state(s);
    pthread_mutex_lock(&s->lock);
    s->scanning = false;
    s->state = state;
    s->scans++;
    s->files_read += outcome->counts.read;
    s->failed_at = outcome->applied ? 0 : time(NULL);
    memcpy(s->failure, outcome->failure, sizeof s->failure);
    pthread_mutex_unlock(&s->lock);
    s->again_at = outcome->again_ms ? now + outcome->again_ms : 0;
    if (outcome->applied) {
        s->links = outcome->links;
        s->outside = outcome->outside;
        s->held = outcome->result.would_remove;
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

static void scan(struct source *s, int64_t max_removed, struct scan_outcome *outcome)
{
    struct progress told = {s, clock_ms(), 0};
    struct scan_progress progress = {
        .change = on_change, .progress = on_progress, .context = &told};
    struct scan_options options = {
        .catalogue = s->catalogue,
        .settings = &s->settings,
        .location = &s->location,
        .max_removed = max_removed,
        .progress = &progress,
        .stop = &s->stop,
        .watch = &s->watch,
        .memory = &s->memory,
    };
    enum source_watching before = s->watching; /* only this thread sets it */
    bool no_instance = watch_try(s);
    set_scanning(s, true);
    note_top(s);
    drain(s);
    scan_run(&options, outcome);
    bool limit = no_instance || outcome->watch_limit;
    outcome->watch_limit = limit && before != SOURCE_WATCH_LIMIT;
    set_watching(s, s->watch ? SOURCE_WATCHES : limit ? SOURCE_WATCH_LIMIT : SOURCE_RESCANS_ONLY);
    if (!atomic_load(&s->stop))
        source_tell_outcome(s, outcome);
    int64_t now = clock_ms();
    note_outcome(s, outcome, now);
    uint32_t rescan_ms = s->settings.rescan_ms;
    if (rescan_ms == 0 && limit)
        rescan_ms = LIMIT_RESCAN_MS;
    s->rescan_at = rescan_ms ? now + rescan_ms : 0;
    s->look_at = now + LOOK_MS;
}

static void serve_request(struct source *s, struct scan_request *request)
{
    struct scan_outcome outcome;
    scan(s, request->max_removed, &outcome);
    request->done(request->context, outcome.applied ? &outcome.result : NULL, outcome.failure);
    free(request);
}

/* ---- waiting ------------------------------------------------------------------------------ */

/* When the next scan is due by itself; 0: not at all. Nothing goes before the rest of what is being
 * written, or half of it were a change: it is bounded. */
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
                            {.fd = s->watch ? tree_watch_fd(s->watch) : -1, .events = POLLIN}};
    int64_t until = due == 0 ? s->look_at : least(due, s->look_at);
    int64_t wait = most(until - clock_ms(), 0);
    if (poll(fds, 2, (int)least(wait, LOOK_MS) + 1) > 0 && fds[0].revents) {
        uint64_t count;
        ssize_t taken = read(s->wake_fd, &count, sizeof count);
        (void)taken;
    }
    if (fds[1].revents) {
        struct tree_watch_news news;
        tree_watch_read(s->watch, s->links ? NULL : &s->match, appeared, s, &news);
        if (news.overflow)
            source_tell(s, 2, "source-watch-overflow", "events were lost: the folder is rescanned");
        if (news.changed)
            unrest(s, clock_ms()); /* later than any of them: following a tree takes time */
    }
    int64_t now = clock_ms();
    if (now >= s->look_at)
        look(s, now);
}

void *source_run(void *source)
{
    struct source *s = source;
    struct scan_outcome outcome;
    scan(s, MAX_REMOVED_GUARDED, &outcome);
    while (!atomic_load(&s->stop)) {
        struct scan_request *request = source_take_request(s);
        if (request) {
            serve_request(s, request);
            continue;
        }
        /* The time first, then what has happened: who was kept from running for longer than
         * `settle` has not seen a folder at rest. */
        int64_t now = clock_ms();
        wait_for_something(s, due_at(s));
        int64_t due = due_at(s);
        if (due != 0 && now >= due && !atomic_load(&s->stop))
            scan(s, MAX_REMOVED_GUARDED, &outcome);
    }
    return NULL;
}
