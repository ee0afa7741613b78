/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* When a node requests the file, a thread makes a copy of the catalogue in one read transaction,
 * without the writer. It pauses as long as it works, so that others get half of the disk's time.
 * Until the copy is complete the answer is 503 snapshot-pending. A complete copy is a nameless
 * file; its ETag is the SHA-256 of its bytes. It is kept for requests that continue after a broken
 * connection, and sent again while it is fresh. A node that could not use it (If-None-Match) does
 * not get it again, since the log may have been replaced: it gets the next copy, even if the bytes
 * are the same, since the obstacle may be gone.
 *
 * One node at a time gets the whole file. A request that continues (Range with If-Match of the
 * ETag) is also accepted while the server has not noticed the end of the broken one. All others get
 * 503 with Retry-After, and ask another node. */
#include "server/api/peer_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/api/auth.h"
#include "server/api/copy.h"
#include "server/api/errors.h"
#include "server/base/clock.h"
#include "server/base/text.h"
#include "server/base/thread.h"
#include "server/crypto/token.h"
#include "server/log/log.h"

#define FRESH_MS     300000 /* maximum age of a copy for a node that begins to download */
#define KEEP_MS      600000 /* time since the last request for it ended */
#define LOOK_MS      10000
#define REST_MOST_MS 100 /* after each 4 MiB */
#define FAILED_MS    5000
#define READ_BYTES   ((size_t)1 << 20)
#define SENT_MOST    2u
#define TAG_SIZE     67

struct peer_files {
    const struct app_context *app; /* borrowed */
    struct thread maker;
    int64_t step_ms; /* only for the maker: when its last step began */

    pthread_mutex_t lock; /* guards the members below */
    bool wanted;
    int64_t failed_at;
    int fd; /* -1: no copy has been made */
    uint64_t bytes;
    char tag[TAG_SIZE];
    bool is_same; /* its bytes are those of the previous copy, and it has not been sent yet */
    int64_t made_at, used_at;
    unsigned sending;
};

/* ---- making it ----------------------------------------------------------------------------- */

/* Pauses as long as the last step took, so that others have half of the disk. False: the server is
 * stopping. */
static bool rest(struct peer_files *p)
{
    int64_t took = clock_now_ms() - p->step_ms;

    bool goes_on = thread_wait(&p->maker, took < REST_MOST_MS ? took : REST_MOST_MS);
    p->step_ms = clock_now_ms();
    return goes_on;
}

static bool record_step(void *context, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    return rest(context);
}

/* False: the file cannot be read, or the server is stopping. */
static bool hash_file(struct peer_files *p, int fd, char tag[TAG_SIZE])
{
    struct token_digest *digest = token_digest_new();
    uint8_t sha256[32], *buffer = malloc(READ_BYTES);
    bool good = digest != NULL && buffer != NULL;
    ssize_t n = 1;

    for (off_t at = 0; good && n > 0; at += n) {
        n = pread(fd, buffer, READ_BYTES, at);
        good = n >= 0 && (n == 0 || token_digest_add(digest, buffer, (size_t)n)) && rest(p);
    }
    free(buffer);
    token_digest_end(digest, sha256);
    tag[0] = '"';
    hex_write(tag + 1, sha256, sizeof sha256);
    memcpy(tag + TAG_SIZE - 2, "\"", 2);
    return good;
}

/* Returns the descriptor of a complete copy; -1, with a sentence in `why`. */
static int copy_catalogue(struct peer_files *p, char *why, size_t why_size)
{
    char *name = copy_make_file(p->app);
    int fd = -1;

    if (name == NULL) {
        snprintf(why, why_size, "%s", strerror(errno));
        return -1;
    }
    unlink(name); /* the name must be free */
    if (catalogue_backup(p->app->catalogue, name, record_step, p, why, why_size) == CATALOGUE_OK) {
        fd = open(name, O_RDONLY | O_CLOEXEC);
        unlink(name);
    }
    free(name);
    return fd;
}

static void make(struct peer_files *p)
{
    char why[512] = "the copy cannot be read back", tag[TAG_SIZE];
    struct stat st;

    p->step_ms = clock_now_ms();
    int fd = copy_catalogue(p, why, sizeof why);
    bool good = fd >= 0 && fstat(fd, &st) == 0 && hash_file(p, fd, tag);
    if (!good && !thread_stops(&p->maker))
        log_event(LOG_LEVEL_WARNING, "shared-peer-copy-failed",
                  "the catalogue could not be copied for another node: %s", why);
    if (!good && fd >= 0)
        close(fd);
    pthread_mutex_lock(&p->lock);
    p->wanted = false;
    p->failed_at = good ? 0 : clock_now_ms();
    if (good) {
        if (p->fd >= 0)
            close(p->fd);
        p->fd = fd;
        p->bytes = (uint64_t)st.st_size;
        p->is_same = strcmp(p->tag, tag) == 0;
        memcpy(p->tag, tag, sizeof tag);
        p->made_at = p->used_at = clock_now_ms();
    }
    pthread_mutex_unlock(&p->lock);
}

static void make_and_drop(void *context)
{
    struct peer_files *p = context;

    do {
        pthread_mutex_lock(&p->lock);
        bool wanted = p->wanted;
        if (p->fd >= 0 && p->sending == 0 && clock_now_ms() - p->used_at > KEEP_MS) {
            close(p->fd);
            p->fd = -1;
        }
        pthread_mutex_unlock(&p->lock);
        if (wanted)
            make(p);
    } while (thread_wait(&p->maker, LOOK_MS));
}

/* ---- giving it ----------------------------------------------------------------------------- */

enum handled peer_snapshot_begin(void *context, struct request *request)
{
    (void)context;
    request->state = NULL; /* until it is sent */
    return HANDLE_CONTINUE;
}

static enum handled refuse(struct request *request, const char *code, const char *retry_after,
                           const char *detail)
{
    reply_problem(&request->reply, 503, code, NULL, detail);
    reply_header(&request->reply, "Retry-After", retry_after);
    return HANDLED;
}

/* Called with the lock, while there is a file. */
static enum handled send_file(struct peer_files *p, struct request *request)
{
    struct reply *reply = &request->reply;
    const char *range = request_header(request, HEADER_RANGE);
    uint64_t first = 0, len = p->bytes;
    char text[96];

    if (range_parse(range, p->bytes, &first, &len) == RANGE_UNSATISFIABLE) {
        reply_problem(reply, 416, "malformed-parameter", NULL, "the file has no such part");
        return HANDLED;
    }
    int fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return refuse(request, "too-many-copies", "10", "no file can be opened now");
    reply->status = len == p->bytes ? 200 : 206;
    reply->content_type = "application/vnd.sqlite3";
    reply_file(reply, fd, len);
    reply->file_first = first;
    reply_header(reply, "ETag", p->tag);
    reply_header(reply, "Cache-Control", "no-store");
    if (reply->status == 206) {
        snprintf(text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, first,
                 first + len - 1, p->bytes);
        reply_header(reply, "Content-Range", text);
    }
    p->is_same = false;
    p->sending++;
    request->state = p;
    return HANDLED;
}

/* Called with the lock. */
static enum handled give(struct peer_files *p, struct request *request)
{
    const char *known = request_header(request, HEADER_IF_MATCH);
    const char *unfit = request_header(request, HEADER_IF_NONE_MATCH);
    bool goes_on = known != NULL && p->fd >= 0 && strcmp(known, p->tag) == 0;

    if (known != NULL && !goes_on) {
        reply_problem(&request->reply, 412, "precondition-failed", NULL,
                      "the copy is no longer there");
        return HANDLED;
    }
    if (p->sending >= (goes_on ? SENT_MOST : 1))
        return refuse(request, "too-many-copies", "10", "another node is copying the catalogue");
    if (goes_on || (p->fd >= 0 && clock_now_ms() - p->made_at < FRESH_MS &&
                    (unfit == NULL || strcmp(unfit, p->tag) != 0 || p->is_same)))
        return send_file(p, request);
    if (!p->wanted && p->failed_at != 0 && clock_now_ms() - p->failed_at < FAILED_MS)
        return refuse(request, "unavailable", "10", "the catalogue could not be copied");
    if (!p->wanted && !copy_has_space(p->app)) {
        errors_reply_status(&request->reply, CATALOGUE_NO_SPACE);
        return HANDLED;
    }
    p->wanted = true;
    thread_wake(&p->maker);
    return refuse(request, "snapshot-pending", "1", "the copy is being made");
}

enum handled peer_snapshot_get(void *context, struct request *request)
{
    struct app_context *app = context;
    struct peer_files *p = app->peer_files;
    struct shared_state state;
    char asked[64];

    if (p == NULL) {
        errors_reply_not_found(&request->reply, "resource");
        return HANDLED;
    }
    if (!auth_is_peer(app, request))
        return HANDLED;
    catalogue_shared_state(app->catalogue, &state);
    snprintf(asked, sizeof asked, "epoch=%s", state.epoch);
    if (state.phase != SHARED_JOINED)
        return refuse(request, "joining", "10", "this node has not joined");
    if (request->query == NULL || strcmp(request->query, asked) != 0) {
        reply_problem(&request->reply, 409, "other-catalogue", "epoch",
                      "this node has another shared catalogue");
        return HANDLED;
    }
    pthread_mutex_lock(&p->lock);
    enum handled handled = give(p, request);
    pthread_mutex_unlock(&p->lock);
    return handled;
}

void peer_snapshot_done(void *context, struct request *request)
{
    struct peer_files *p = request->state;

    (void)context;
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->sending--;
    p->used_at = clock_now_ms();
    pthread_mutex_unlock(&p->lock);
}

/* ---- beginning and end --------------------------------------------------------------------- */

struct peer_files *peer_files_new(const struct app_context *app)
{
    struct peer_files *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    p->app = app;
    p->fd = -1;
    pthread_mutex_init(&p->lock, NULL);
    if (thread_start(&p->maker, "peer files", make_and_drop, p))
        return p;
    pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}

void peer_files_free(struct peer_files *p)
{
    if (p == NULL)
        return;
    thread_stop(&p->maker);
    if (p->fd >= 0)
        close(p->fd);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
