/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Fetches a sitemap that `split` names, which may exceed the limits of a sitemap: into a nameless
 * file beside the catalogue, verifying it meanwhile as any other. If it exceeds the limits or
 * already has a urlset, it is split from there (server/sources/split.h).
 *
 * This runs on its own thread, so that other polls wait neither for the disk nor for the parser or
 * writer. Only one runs at a time, which bounds disk and network use; sites share that place
 * (share.h). Until it is over, its thread may read the poll and all that it points to. The polling
 * thread starts it, is woken at the end, and only then frees a cancelled poll.
 *
 * The nameless file disappears however the process ends. Part of the disk is reserved for the
 * catalogue. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/thread.h"
#include "server/sources/remote/run.h"
#include "server/sources/split.h"

#define TIMEOUT_MS   3600000u
#define STALL_S      30u
#define STALL_BYTES  10240u
#define LOOK_BYTES   (1u << 20) /* how often to check the disk */
#define TURN_MS      200
#define BUSY_TURNS   3000u
#define AGAIN_S      10   /* if another one is under way, or the urlset is frozen */
#define LATER_S      3600 /* if the fetched file could not be used */
#define WAIT_LEAST_S 3600u
#define BYTES_A_S    262144u /* 22 GB a day */

struct split_end {
    enum fetch_status status;
    struct fetch_reply reply;
    struct sitemap_file file; /* the verdict; after a split, that of the rows */
    bool read, decided;       /* `file` is set; the verdict was final before the end */
    bool split, later;
    bool guarded;        /* it began with the shrink guard on */
    const char *trouble; /* a failure of this server, not the origin: a stable word; NULL */
    char detail[256];
    char did[SPLIT_TEXT], left_out[SPLIT_TEXT];
};

struct split_fetch {
    struct poll *poll;
    struct fetch_loop *wake; /* of the polling thread */
    struct thread thread;
    atomic_bool over, released;
    int64_t began_ms;
    struct split_file file;
    bool has_urlset, fetched;
    uint64_t written, looked;
    struct split_end *end;
};

/* ---- on its thread: fetching ---------------------------------------------------------------- */

static bool fail(struct split_fetch *f, const char *code, const char *what, const char *why)
{
    f->end->trouble = code;
    snprintf(f->end->detail, sizeof f->end->detail, "%.80s: %.170s", what, why);
    return false;
}

static bool keep_bytes(struct split_fetch *f, const char *bytes, size_t len)
{
    static const char what[] = "the fetched sitemap cannot be stored beside the catalogue";
    for (size_t at = 0; at < len;) {
        ssize_t n = write(f->file.fd, bytes + at, len - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail(f, "no-space", what, strerrordesc_np(n < 0 ? errno : ENOSPC));
        at += (size_t)n;
    }
    f->written += len;
    if (f->written - f->looked < LOOK_BYTES)
        return true;
    f->looked = f->written;
    return file_has_reserve(f->file.fd) ||
           fail(f, "no-space", what,
                "no space left: the rest of the disk is reserved for the catalogue");
}

static bool is_large(const struct sitemap_file *file)
{
    return file->kind == SITEMAP_FILE_BROKEN &&
           (strcmp(file->code, "too-many-urls") == 0 || strcmp(file->code, "file-too-large") == 0);
}

static bool finish_reading(struct split_fetch *f)
{
    struct split_end *e = f->end;
    if (!e->read)
        e->read = sitemap_verifier_finish(f->poll->verifier, &e->file);
    return e->read || fail(f, "no-memory", "it cannot be read", "out of memory");
}

static bool feed_body(void *context, const struct fetch_reply *reply, const char *bytes, size_t len)
{
    struct split_fetch *f = context;
    struct split_end *e = f->end;
    if (reply->status != 200)
        return true;
    poll_read_head(f->poll, reply);
    if (!keep_bytes(f, bytes, len))
        return false;
    if (!e->read && !sitemap_verifier_feed(f->poll->verifier, bytes, len)) {
        if (!finish_reading(f))
            return false;
        e->decided = !is_large(&e->file);
    }
    return !e->decided;
}

static void on_fetched(void *context, enum fetch_status status, struct fetch_reply *reply)
{
    struct split_fetch *f = context;
    f->fetched = true;
    f->end->status = status;
    f->end->reply = *reply;
    *reply = (struct fetch_reply){.status = 0};
}

static void fetch_file(struct split_fetch *f)
{
    struct fetch_request request = f->poll->request;
    struct fetch_loop *loop = fetch_loop_new();
    char sent[64];
    request.timeout_ms = TIMEOUT_MS;
    request.stall_s = STALL_S;
    request.stall_bytes = STALL_BYTES;
    request.take = feed_body;
    request.waits = NULL; /* its own thread delays nobody */
    request.take_bytes = f->file.max_disk;
    request.context = f;
    f->end->status = FETCH_NO_MEMORY;
    if (loop != NULL && fetch_loop_add(loop, &request, on_fetched) != NULL)
        while (!f->fetched && !thread_stops(&f->thread) && !atomic_load(&f->released))
            if (!fetch_loop_poll(loop, TURN_MS))
                thread_wait(&f->thread, TURN_MS);
    fetch_loop_free(loop);
    if (!f->fetched && atomic_load(&f->released)) {
        snprintf(sent, sizeof sent, "only %" PRIu64 " bytes received so far", f->written);
        fail(f, "too-slow", "timeout: another site's sitemap is waiting to be fetched", sent);
    }
}

/* ---- on its thread: splitting --------------------------------------------------------------- */

static void refuse(struct split_end *e, const char *code, const char *detail)
{
    e->read = true;
    e->file = (struct sitemap_file){.kind = SITEMAP_FILE_BROKEN, .code = code};
    snprintf(e->file.detail, sizeof e->file.detail, "%.190s", detail);
}

/* Waits if a folder's split is under way. */
static enum split_status run_split(struct split_fetch *f, struct split_result *out)
{
    enum split_status status = SPLIT_BUSY;
    for (unsigned turn = 0; turn < BUSY_TURNS && status == SPLIT_BUSY && !thread_stops(&f->thread);
         turn++) {
        if (turn > 0)
            thread_wait(&f->thread, TURN_MS);
        status = split_run(&f->file, out);
    }
    return status;
}

static void split(struct split_fetch *f)
{
    struct split_end *e = f->end;
    struct split_result out;
    char codings[CODINGS_TEXT];
    f->file.content_encoding =
        fetch_header_joined(&e->reply, "Content-Encoding", codings, sizeof codings);
    switch (run_split(f, &out)) {
    case SPLIT_STOPPED:
    case SPLIT_CHANGING:
    case SPLIT_BUSY:
    case SPLIT_NO_MEMORY:
        e->later = true;
        return;
    case SPLIT_REFUSED:
        if (strcmp(out.code, "no-space") == 0 || strcmp(out.code, "unreadable") == 0) {
            fail(f, out.code, "it cannot be split", out.detail);
            return;
        }
        refuse(e, out.code, out.detail);
        e->file.line = out.line;
        e->file.column = out.column;
        return;
    case SPLIT_DONE:
        break;
    }
    e->split = true;
    e->file = (struct sitemap_file){.kind = SITEMAP_FILE_URLSET,
                                    .urls = out.urls - out.repeated,
                                    .bytes = out.bytes,
                                    .hash = {out.hash[0], out.hash[1]},
                                    .code = ""};
    split_report_done(&out, e->did, sizeof e->did);
    split_report_dropped(&out, e->left_out, sizeof e->left_out);
}

static bool is_to_split(const struct split_fetch *f)
{
    const struct sitemap_file *file = &f->end->file;
    bool good = file->kind == SITEMAP_FILE_URLSET || file->kind == SITEMAP_FILE_TEXT;
    return is_large(file) || (good && f->has_urlset);
}

static void on_answer(struct split_fetch *f)
{
    struct split_end *e = f->end;
    char detail[96];
    if (e->trouble != NULL || thread_stops(&f->thread))
        return;
    if (e->status == FETCH_STOPPED && !e->decided) {
        snprintf(detail, sizeof detail,
                 "is larger as sent (compressed) than half of max_spool (in bytes): %" PRIu64,
                 f->file.max_disk);
        refuse(e, "split-too-large", detail);
        e->decided = true;
    } else if (e->status == FETCH_OK && e->reply.status == 200 && finish_reading(f) &&
               is_to_split(f)) {
        split(f);
    }
}

static void split_fetch_run(void *context)
{
    struct split_fetch *f = context;
    f->file.fd = catalogue_scratch(f->file.catalogue);
    if (f->file.fd < 0) {
        fail(f, "no-space", "cannot create a file beside the catalogue", strerrordesc_np(errno));
    } else {
        fetch_file(f);
        on_answer(f);
        close(f->file.fd);
    }
    atomic_store(&f->over, true);
    fetch_loop_wake(f->wake);
}

/* ---- on the thread of polls ----------------------------------------------------------------- */

void split_end_free(struct split_end *e)
{
    if (e == NULL)
        return;
    fetch_reply_done(&e->reply);
    free(e);
}

/* Whether `split` of its source names it. */
static bool is_named(const struct poll *p)
{
    return p->source != NULL && remote_splits(p->source->settings, p->record.loc);
}

bool split_can(const struct poll *p)
{
    struct url url;
    return is_named(p) && url_split(p->record.loc, strlen(p->record.loc), &url) &&
           url_same_origin(&p->site->origin_url, &url);
}

static const struct registry_index *urlset_of(const struct poll *p)
{
    struct url url;
    return url_split(p->record.loc, strlen(p->record.loc), &url) ? split_urlset(p->registry, &url)
                                                                 : NULL;
}

bool split_is_as_kept(const struct poll *p)
{
    bool has = p->splits && urlset_of(p) != NULL;
    return has == ((p->record.marks & CHECK_SPLIT) != 0);
}

/* Why the split cannot begin now; NULL: it may. */
static const char *why_not_now(struct poll *p, bool asked)
{
    struct remote *r = p->remote;
    const struct registry_index *urlset = urlset_of(p);
    int64_t site = p->record.site_id, now_ms = clock_now_ms();
    if (urlset != NULL && registry_is_frozen(p->registry, urlset))
        return "its urlset is frozen";
    bool busy = r->split != NULL;
    if (busy || !shares_is_turn(&r->shares, site, now_ms)) {
        if (!asked)
            shares_wait(&r->shares, site, now_ms);
        return busy ? "busy: another sitemap is being fetched and split; retry later"
                    : "busy: another site's sitemap comes first; retry later";
    }
    return asked && shares_hurry_after_s(&r->shares, site, now_ms) > 0
               ? "its site has used its share of fetches; it is polled later, in its turn"
               : NULL;
}

const char *split_requeue(struct poll *p, bool asked)
{
    const char *why = p->splits ? why_not_now(p, asked) : NULL;
    if (why != NULL && !asked)
        run_enqueue(p->remote, p->host, p->record.site_id,
                    (struct due){p->record.id, (uint32_t)(run_now(p->remote) + AGAIN_S),
                                 p->record.interval_s});
    return why;
}

/* The flag of a split that allows removals; NULL: none exists. */
static bool *allowance_of(const struct remote_source *s, const char *loc)
{
    const char *const *splits = s->settings->split;
    for (size_t i = 0; s->split_let != NULL && splits[i] != NULL; i++)
        if (strcmp(splits[i], loc) == 0)
            return &s->split_let[i];
    return NULL;
}

static int64_t max_removed_of(const struct remote_source *s, const char *loc)
{
    const bool *let = allowance_of(s, loc);
    return let != NULL && *let ? s->split_removed : MAX_REMOVED_GUARDED;
}

/* Makes the sitemap due as soon as its site may fetch early. */
static void hurry(struct remote *r, const struct check_record *k, int64_t now)
{
    int64_t at = now + shares_hurry_after_s(&r->shares, k->site_id, clock_now_ms());
    if (at == now || at < k->next_at)
        run_move_due(r, &k->id, 1, (uint32_t)at);
}

void split_admit(struct remote *r, struct remote_source *s, int64_t now, int64_t max_removed)
{
    const char *const *splits = s->settings->split;
    struct catalogue_view *view;
    size_t count = 0;
    while (splits != NULL && splits[count] != NULL)
        count++;
    if (count == 0 || max_removed == MAX_REMOVED_GUARDED ||
        (s->split_let == NULL && (s->split_let = calloc(count, sizeof *s->split_let)) == NULL) ||
        catalogue_view_begin(r->catalogue, &view) != CATALOGUE_OK)
        return;
    s->split_removed = max_removed;
    for (size_t i = 0; i < count; i++) {
        struct check_record record;
        s->split_let[i] = true;
        if (catalogue_view_check_of(view, s->settings->name, splits[i], &record) == CATALOGUE_OK)
            hurry(r, &record, now);
    }
    catalogue_view_end(view);
}

bool split_begin(struct poll *p)
{
    struct remote *r = p->remote;
    const struct source_settings *settings = p->source->settings;
    struct split_fetch *f = calloc(1, sizeof *f);
    split_end_free(p->ended);
    p->ended = calloc(1, sizeof *p->ended);
    if (f == NULL || p->ended == NULL || r->split != NULL) {
        free(f);
        return false;
    }
    url_split(p->record.loc, strlen(p->record.loc), &p->split_url);
    f->poll = p;
    f->wake = r->loop;
    f->began_ms = clock_now_ms();
    f->end = p->ended;
    f->has_urlset = urlset_of(p) != NULL;
    f->end->guarded = max_removed_of(p->source, p->record.loc) == MAX_REMOVED_GUARDED;
    f->file = (struct split_file){.catalogue = r->catalogue,
                                  .fd = -1,
                                  .url = &p->split_url,
                                  .source = settings->name,
                                  .index = settings->index,
                                  .site_id = p->record.site_id,
                                  .now = p->now,
                                  .map = settings->host_map,
                                  .max_removed = max_removed_of(p->source, p->record.loc),
                                  .max_disk = settings->split_bytes,
                                  .stop = &f->thread.stops};
    if (!thread_start(&f->thread, "split", split_fetch_run, f)) {
        free(f);
        return false;
    }
    r->split = f;
    return true;
}

bool split_drop(struct poll *p)
{
    struct split_fetch *f = p->remote->split;
    if (f == NULL || f->poll != p)
        return false;
    thread_end(&f->thread);
    p->source = NULL; /* the source may be gone by then */
    return true;
}

/* Waits for the end of the thread and takes its poll. */
static struct poll *collect(struct remote *r, bool *dropped)
{
    struct split_fetch *f = r->split;
    struct poll *p = f->poll;
    int64_t now_ms = clock_now_ms();
    thread_join(&f->thread);
    *dropped = thread_stops(&f->thread);
    shares_charge(&r->shares, p->record.site_id, now_ms - f->began_ms, f->written, now_ms);
    r->split = NULL;
    free(f);
    return p;
}

static void release_poll(struct remote *r)
{
    struct split_fetch *f = r->split;
    int64_t now_ms = clock_now_ms();
    if (shares_must_release(&r->shares, f->poll->record.site_id, now_ms - f->began_ms, now_ms))
        atomic_store(&f->released, true); /* stops a fetch under way */
}

void split_step(struct remote *r)
{
    bool dropped;
    if (r->split == NULL)
        return;
    if (!atomic_load(&r->split->over)) {
        release_poll(r);
        return;
    }
    struct poll *p = collect(r, &dropped);
    if (dropped) {
        poll_free(p);
        return;
    }
    struct split_end *e = p->ended;
    struct fetch_reply reply = e->reply;
    e->reply = (struct fetch_reply){.status = 0};
    p->decided = e->decided;
    bool *let = allowance_of(p->source, p->record.loc);
    if (let != NULL && (e->split || reply.status == 304))
        *let = false;
    poll_done(p, e->status, &reply);
    fetch_reply_done(&reply);
}

void split_stop(struct remote *r)
{
    bool dropped;
    if (r->split == NULL)
        return;
    thread_end(&r->split->thread);
    poll_free(collect(r, &dropped));
}

/* ---- the result ------------------------------------------------------------------------ */

bool split_was(const struct poll *p)
{
    return p->ended != NULL && p->ended->split;
}

const char *split_did(const struct poll *p)
{
    return p->ended->did;
}

const char *split_describe_dropped(const struct poll *p)
{
    return split_was(p) && *p->ended->left_out ? p->ended->left_out : NULL;
}

bool split_found(const struct poll *p, struct sitemap_file *out)
{
    if (p->ended != NULL && p->ended->read)
        *out = p->ended->file;
    return p->ended != NULL && p->ended->read;
}

bool split_postpone(struct poll *p, uint64_t got_bytes)
{
    if (p->ended == NULL || !p->ended->later)
        return false;
    run_enqueue(p->remote, p->host, p->record.site_id,
                (struct due){p->record.id,
                             (uint32_t)(run_now(p->remote) + split_wait(p, got_bytes, LATER_S)),
                             p->record.interval_s});
    return true;
}

void split_check(const struct poll *p, struct child_verdict *v)
{
    size_t len = strlen(v->detail);
    if (p->ended != NULL && p->ended->trouble != NULL) {
        v->state = CHECK_UNREACHABLE;
        v->problem = p->ended->trouble;
        v->host = HOST_DROPPED;
        snprintf(v->detail, sizeof v->detail, "%s", p->ended->detail);
    } else if (v->state == CHECK_BROKEN && !p->splits && is_named(p)) {
        snprintf(v->detail + len, sizeof v->detail - len,
                 "; it is not split: its URL is not on its site's own host");
    }
}

/* Whether a scan allowed the removals while the file was fetched with the guard on. */
static bool was_released_since(const struct poll *p)
{
    return p->source != NULL && p->ended != NULL && p->ended->guarded &&
           max_removed_of(p->source, p->record.loc) != MAX_REMOVED_GUARDED;
}

uint32_t split_wait(const struct poll *p, uint64_t got_bytes, uint32_t wait)
{
    if (was_released_since(p))
        return AGAIN_S;
    uint64_t least = got_bytes / BYTES_A_S, most = p->remote->plan->bounds.max_interval_s;
    if (!p->splits || got_bytes < LOOK_BYTES)
        return wait;
    least = least < WAIT_LEAST_S ? WAIT_LEAST_S : least;
    least = least > most ? most : least;
    return wait > least ? wait : (uint32_t)least;
}
