/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Downloads the log of the followed node over HTTP. All requests are bounded: a response must begin
 * in time, keep a minimum speed and have the length that it announces, and it is rejected before it
 * could fill the disk. The catalogue checks the contents (db/shared/followed.c). */
#include "server/following.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "server/api/handlers/handlers.h"
#include "server/base/clock.h"
#include "server/client/loop.h"

#define POLL_MS     50 /* how often to check whether to stop */
#define STALL_S     10
#define STALL_BYTES (16u << 10) /* a second */
#define SPARE_BYTES ((uint64_t)64 << 20)
#define MAY_MS      5000

struct following {
    struct shared_followed calls;
    struct url url;
    const char *authorization, *ca_file; /* borrowed */
    char origin[];
};

struct link {
    const struct following *f;
    struct fetch_loop *loop;
};

/* A request under way. */
struct getting {
    int fd;
    struct shared_followed_reply *out;
    int64_t begins_until_ms;
    uint64_t announced;
    bool headed, ended, failed;
};

__attribute__((format(printf, 2, 3))) static bool fail(struct getting *g, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(g->out->detail, sizeof g->out->detail, format, args);
    va_end(args);
    g->failed = true;
    return false;
}

static bool check_head(struct getting *g, const struct fetch_reply *reply)
{
    const char *length = fetch_header(reply, "Content-Length");
    struct statvfs disk;
    char *end = NULL;
    errno = 0;
    g->headed = true;
    g->announced = length != NULL ? strtoull(length, &end, 10) : 0;
    if (end == NULL || end == length || *end != '\0' || errno != 0)
        return fail(g, "its answer has no Content-Length");
    if (fstatvfs(g->fd, &disk) == 0 &&
        g->announced / disk.f_frsize + SPARE_BYTES / disk.f_frsize >= disk.f_bavail)
        return fail(g, "no space: its answer has %" PRIu64 " bytes", g->announced);
    return true;
}

static bool take(void *context, const struct fetch_reply *reply, const char *bytes, size_t len)
{
    struct getting *g = context;
    struct shared_followed_reply *out = g->out;
    if (!g->headed && !check_head(g, reply))
        return false;
    if (reply->status != 200)
        return fail(g, "HTTP status %u", reply->status);
    if (len > g->announced - out->bytes)
        return fail(g, "it sent more than its Content-Length");
    while (len > 0) {
        ssize_t n = pwrite(g->fd, bytes, len, (off_t)out->bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail(g, "it cannot be written: %s", strerror(n < 0 ? errno : ENOSPC));
        bytes += n;
        len -= (size_t)n;
        out->bytes += (uint64_t)n;
    }
    return true;
}

static void end_request(void *context, enum fetch_status status, struct fetch_reply *reply)
{
    struct getting *g = context;
    const char *body = str_text(&reply->body);
    g->ended = true;
    if (g->failed)
        return;
    if (status != FETCH_OK) {
        fail(g, "%s", reply->why);
        return;
    }
    if (reply->status == 200 && (!g->headed || g->out->bytes != g->announced)) {
        fail(g, "its answer is empty or truncated");
        return;
    }
    g->out->status = reply->status;
    if (reply->status / 100 == 2)
        return;
    nodes_read_text(body, "code", g->out->code, sizeof g->out->code);
    nodes_read_text(body, "detail", g->out->detail, sizeof g->out->detail);
}

static void get(void *context, const struct shared_followed_request *request,
                struct shared_followed_reply *out)
{
    const struct link *link = context;
    struct getting g = {.fd = request->fd,
                        .out = out,
                        .begins_until_ms = clock_now_ms() + (int64_t)request->timeout_ms};
    const struct fetch_request asked = {.url = &link->f->url,
                                        .target = request->target,
                                        .method = "GET",
                                        .agent = "sitemapd",
                                        .headers = link->f->authorization,
                                        .stall_s = STALL_S + request->timeout_ms / 1000,
                                        .stall_bytes = STALL_BYTES,
                                        .max_bytes = 4096,
                                        .ca_more = link->f->ca_file,
                                        .take = take,
                                        .context = &g};
    struct fetch_transfer *transfer = fetch_loop_add(link->loop, &asked, end_request);
    *out = (struct shared_followed_reply){.status = 0};
    if (transfer == NULL)
        fail(&g, "out of memory");
    while (transfer != NULL && !g.ended && !request->stops(request->stops_context) &&
           (g.headed || clock_now_ms() < g.begins_until_ms))
        fetch_loop_poll(link->loop, POLL_MS);
    if (transfer != NULL && !g.ended) {
        fetch_loop_remove(link->loop, transfer);
        fail(&g, "timeout");
    }
    if (g.failed)
        out->status = 0;
}

/* ---- beginning and end --------------------------------------------------------------------- */

static void *open_link(void *context)
{
    struct link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return NULL;
    link->f = context;
    link->loop = fetch_loop_new();
    if (link->loop != NULL)
        return link;
    free(link);
    return NULL;
}

static void close_link(void *context)
{
    struct link *link = context;
    fetch_loop_free(link->loop);
    free(link);
}

struct following *following_new(const char *origin, const char *authorization, const char *ca_file)
{
    size_t size = strlen(origin) + 1;
    struct following *f = calloc(1, sizeof *f + size);
    if (f == NULL)
        return NULL;
    memcpy(f->origin, origin, size);
    f->authorization = authorization;
    f->ca_file = ca_file;
    f->calls = (struct shared_followed){f, f->origin, open_link, close_link, get};
    if (url_parse_origin(f->origin, size - 1, &f->url) == RULE_OK)
        return f;
    free(f); /* cannot happen: the configuration was validated */
    return NULL;
}

void following_free(struct following *f)
{
    free(f);
}

const struct shared_followed *following_calls(const struct following *f)
{
    return f != NULL ? &f->calls : NULL;
}

static bool never_stops(void *context)
{
    (void)context;
    return false;
}

bool following_may(const struct following *f, char *why, size_t why_size)
{
    struct shared_followed_reply reply = {.status = 0};
    int fd = memfd_create("log", MFD_CLOEXEC);
    struct link *link = open_link((void *)(uintptr_t)f);
    if (fd >= 0 && link != NULL) {
        const struct shared_followed_request request = {
            .target = "/peer/log", .fd = fd, .timeout_ms = MAY_MS, .stops = never_stops};
        get(link, &request, &reply);
    }
    if (link != NULL)
        close_link(link);
    if (fd >= 0)
        close(fd);
    if (reply.status != 404 && (reply.status != 421 || strcmp(reply.code, "host-not-allowed") == 0))
        return true;
    snprintf(
        why, why_size,
        "%s does not serve a log: follow the admin listener of a node of a shared catalogue that "
        "has peer_token_file in [shared]; the catalogue of a single machine cannot be followed",
        f->origin);
    return false;
}
