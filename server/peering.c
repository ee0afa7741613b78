/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Downloads the catalogue's file from another node. Each reaction to a peer is bounded:
 *
 *     the peer                         reaction
 *     does not answer, rejects         try the next peer
 *     is still making its copy         ask again, up to once a second, for half an hour at most
 *     breaks off, stalls               continue from the last byte, unless too few bytes come
 *     has another file meanwhile       begin again, once
 *     sends less, more, other bytes    try the next peer
 *
 * The catalogue (db/shared/join.c) then validates the file, and uses the snapshot in PostgreSQL if
 * no peer provided a file. */
#include "server/peering.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "server/api/handlers/handlers.h"
#include "server/base/clock.h"
#include "server/base/text.h"
#include "server/client/loop.h"
#include "server/crypto/token.h"
#include "server/following.h"
#include "server/log/log.h"

#define POLL_MS 200 /* how often to check whether to stop */
/* First pause between two requests for a copy that is being made; a small one is ready at once. */
#define PENDING_MS      50
#define PENDING_LAST_MS 1000 /* doubled up to this */
#define PENDING_MOST_MS (30 * 60 * INT64_C(1000))
#define STALL_S         15
#define STALL_BYTES     (64u << 10) /* a second */
#define TRIES           5           /* in a row that brought less than: */
#define TRY_BYTES       (1u << 20)
#define TRY_MS          1000
#define SAY_AGAIN_MS    60000
#define TAG_SIZE        72
#define ORIGIN_SIZE     300

struct peering {
    struct shared_peers calls;
    char authorization[CONFIG_PEER_TOKEN_SIZE + 32];
    uint8_t token_sha256[32], key[SHARED_KEY_BYTES];
    const char *ca_file, *advertise; /* of the configuration */
    struct following *following;     /* NULL: the log is in PostgreSQL */
    /* Only for the catalogue's thread. */
    /* of the last file; of the last file that was rejected */
    char tag[TAG_SIZE], rejected[TAG_SIZE];
    /* the last warning, and when: there is a try each second */
    char said[512];
    int64_t said_at;
};

/* One file from one peer. */
struct download {
    struct peering *p;
    const char *name, *origin;
    int fd;
    bool (*stops)(void *context);
    void *stops_context;
    struct fetch_loop *loop;

    struct token_digest *digest; /* of the bytes received */
    uint64_t got, bytes;         /* `bytes` 0: unknown yet */
    char tag[TAG_SIZE];          /* "": unknown yet */
    char fault[256];             /* why the peer cannot be used; "": no reason yet */

    /* Of the request under way. */
    bool headed, ended, pending;
    enum fetch_status status;
    unsigned reply_status;
};

static void warn(struct peering *p, const char *name, const char *why)
{
    int64_t now = clock_now_ms();
    char text[sizeof p->said];

    snprintf(text, sizeof text, "%s: %s", name, why);
    if (strcmp(text, p->said) == 0 && now - p->said_at < SAY_AGAIN_MS)
        return;
    memcpy(p->said, text, sizeof text);
    p->said_at = now;
    log_event(LOG_LEVEL_WARNING, "shared-peer-failed",
              "the catalogue could not be copied from node %s; %s", text,
              p->following != NULL ? "retrying" : "trying the next node, then PostgreSQL");
}

/* ---- a request ----------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static bool fail(struct download *d, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(d->fault, sizeof d->fault, format, args);
    va_end(args);
    return false;
}

static bool has_room(const struct download *d)
{
    struct statvfs disk;

    return fstatvfs(d->fd, &disk) != 0 || d->bytes / disk.f_frsize < disk.f_bavail;
}

static bool is_tag(const char *tag)
{
    return tag != NULL && strlen(tag) == 66 && tag[0] == '"' &&
           strspn(tag + 1, "0123456789abcdef") == 64 && tag[65] == '"';
}

/* The first response shows the size and hash of the file; each further one must continue where the
 * last one ended. */
static bool check_head(struct download *d, const struct fetch_reply *reply)
{
    const char *tag = fetch_header(reply, "ETag"), *range = fetch_header(reply, "Content-Range");
    const char *length = fetch_header(reply, "Content-Length");
    char expected[96];

    if (!is_tag(tag))
        return fail(d, "its answer has no hash");
    if (d->got > 0) {
        snprintf(expected, sizeof expected, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, d->got,
                 d->bytes - 1, d->bytes);
        if (reply->status != 206 || range == NULL || strcmp(range, expected) != 0 ||
            strcmp(tag, d->tag) != 0)
            return fail(d, "it did not resume the copy where it was interrupted");
        return true;
    }
    char *end = NULL;
    errno = 0;
    d->bytes = length != NULL ? strtoull(length, &end, 10) : 0;
    if (reply->status != 200 || end == NULL || *end != '\0' || errno != 0 || d->bytes == 0)
        return fail(d, "its answer has no Content-Length");
    if (!has_room(d))
        return fail(d, "no space: its file has %" PRIu64 " bytes", d->bytes);
    memcpy(d->tag, tag, 67);
    return true;
}

static bool take(void *context, const struct fetch_reply *reply, const char *bytes, size_t len)
{
    struct download *d = context;

    if (!d->headed && !(d->headed = check_head(d, reply)))
        return false;
    if (len > d->bytes - d->got)
        return fail(d, "it sent more than its Content-Length");
    if (!token_digest_add(d->digest, bytes, len))
        return fail(d, "out of memory");
    while (len > 0) {
        ssize_t n = pwrite(d->fd, bytes, len, (off_t)d->got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail(d, "it cannot be written: %s", strerror(n < 0 ? errno : ENOSPC));
        bytes += n;
        len -= (size_t)n;
        d->got += (uint64_t)n;
    }
    return true;
}

static void end_request(void *context, enum fetch_status status, struct fetch_reply *reply)
{
    struct download *d = context;
    const char *body = str_text(&reply->body);

    d->ended = true;
    d->status = status;
    d->reply_status = reply->status;
    d->pending = reply->status == 503 && strstr(body, "\"snapshot-pending\"") != NULL;
    if (d->fault[0] != '\0' || status != FETCH_OK) {
        if (d->fault[0] == '\0' && d->got == 0)
            fail(d, "%s", reply->why);
        return;
    }
    if (reply->status == 401)
        fail(d, "it rejects the secret (peer_token_file)");
    else if (reply->status != 200 && reply->status != 206 && reply->status != 412 && !d->pending) {
        char detail[160];
        nodes_read_text(body, "detail", detail, sizeof detail);
        fail(d, "HTTP status %u: %.120s", reply->status, *detail != '\0' ? detail : body);
    } else if (reply->status / 100 == 2 && !d->headed)
        fail(d, "its answer is empty");
}

/* Sends one request, and waits until it is over or the node stops. */
static void ask(struct download *d, const char *epoch)
{
    struct url url;
    char target[80];
    struct str headers = STR_INIT;

    d->headed = d->ended = d->pending = false;
    snprintf(target, sizeof target, "/peer/snapshot?epoch=%s", epoch);
    str_append_text(&headers, d->p->authorization);
    if (d->got > 0)
        str_append_format(&headers, "Range: bytes=%" PRIu64 "-\r\nIf-Match: %s\r\n", d->got,
                          d->tag);
    else if (d->p->rejected[0] != '\0')
        str_append_format(&headers, "If-None-Match: %s\r\n", d->p->rejected);
    const struct fetch_request request = {.url = &url,
                                          .target = target,
                                          .method = "GET",
                                          .agent = "sitemapd",
                                          .headers = str_text(&headers),
                                          .stall_s = STALL_S,
                                          .stall_bytes = STALL_BYTES,
                                          .max_bytes = 4096,
                                          .ca_more = d->p->ca_file,
                                          .take = take,
                                          .context = d};
    struct fetch_transfer *transfer = NULL;
    if (url_parse_origin(d->origin, strlen(d->origin), &url) != RULE_OK)
        fail(d, "its address is invalid");
    else if (headers.failed || (transfer = fetch_loop_add(d->loop, &request, end_request)) == NULL)
        fail(d, "out of memory");
    while (transfer != NULL && !d->ended && !d->stops(d->stops_context))
        fetch_loop_poll(d->loop, POLL_MS);
    if (transfer != NULL && !d->ended)
        fetch_loop_remove(d->loop, transfer);
    str_done(&headers);
}

/* ---- a file -------------------------------------------------------------------------------- */

static bool begin_again(struct download *d)
{
    token_digest_end(d->digest, NULL);
    d->digest = token_digest_new();
    d->got = d->bytes = 0;
    d->tag[0] = '\0';
    return d->digest != NULL && ftruncate(d->fd, 0) == 0;
}

static void rest(struct download *d, int64_t ms)
{
    int64_t until = clock_now_ms() + ms;

    while (clock_now_ms() < until && !d->stops(d->stops_context)) {
        const struct timespec step = {.tv_nsec = 50000000};
        nanosleep(&step, NULL);
    }
}

static bool is_as_announced(struct download *d)
{
    uint8_t sha256[32];
    char hex[65];

    token_digest_end(d->digest, sha256);
    d->digest = NULL;
    hex_write(hex, sha256, sizeof sha256);
    return memcmp(hex, d->tag + 1, 64) == 0 ||
           fail(d, "checksum mismatch: the copy does not have the hash that it announced");
}

/* Sends requests until the file is complete (true) or the peer cannot be used (false). */
static bool copy_file(struct download *d, const char *epoch)
{
    const int64_t pending_until = clock_now_ms() + PENDING_MOST_MS;
    int64_t pending_ms = PENDING_MS;
    int tries = 0, restarts = 0;

    while (begin_again(d) && restarts++ < 2) {
        do {
            uint64_t before = d->got;
            ask(d, epoch);
            if (d->stops(d->stops_context) || d->fault[0] != '\0')
                return false;
            if (d->bytes > 0 && d->got == d->bytes)
                return is_as_announced(d);
            if (d->pending && clock_now_ms() > pending_until)
                return fail(d, "timeout: its copy was not ready in time");
            tries = d->pending || d->got - before >= TRY_BYTES ? 0 : tries + 1;
            if (tries > TRIES)
                return fail(d, "the connection was closed after %" PRIu64 " of %" PRIu64 " bytes",
                            d->got, d->bytes);
            rest(d, d->pending ? pending_ms : TRY_MS * tries);
            if (d->pending && (pending_ms *= 2) > PENDING_LAST_MS)
                pending_ms = PENDING_LAST_MS;
        } while (d->reply_status != 412);
    }
    return fail(d, "its copy was replaced during the transfer");
}

static bool fetch_file(void *context, const struct shared_member *from, const char *epoch, int fd,
                       bool (*stops)(void *stops_context), void *stops_context, char *why,
                       size_t why_size)
{
    struct peering *p = context;
    char origin[ORIGIN_SIZE];
    struct download d = {.p = p,
                         .name = from->name,
                         .origin = origin,
                         .fd = fd,
                         .stops = stops,
                         .stops_context = stops_context,
                         .loop = fetch_loop_new()};
    int64_t began = clock_now_ms();

    nodes_read_text(from->state, "advertise", origin, sizeof origin);
    /* A node whose file was deleted may find itself under its former name. */
    bool is_this = p->advertise != NULL && strcmp(p->advertise, origin) == 0;
    bool whole = !is_this && d.loop != NULL && copy_file(&d, epoch);
    fetch_loop_free(d.loop);
    token_digest_end(d.digest, NULL);
    memcpy(p->tag, d.tag, sizeof p->tag);
    if (whole)
        log_event(LOG_LEVEL_INFO, "shared-peer-copied",
                  "copied %" PRIu64 " bytes from node %s at %s in %.1f s", d.bytes, from->name,
                  origin, (double)(clock_now_ms() - began) / 1000);
    else if (!is_this && !stops(stops_context))
        warn(p, from->name, d.fault);
    snprintf(why, why_size, "%s", d.fault);
    return whole;
}

static bool offers_file(void *context, const struct shared_member *member)
{
    char origin[ORIGIN_SIZE];

    (void)context;
    nodes_read_text(member->state, "advertise", origin, sizeof origin);
    return origin[0] != '\0';
}

static void reject_file(void *context, const struct shared_member *from, const char *why)
{
    struct peering *p = context;

    memcpy(p->rejected, p->tag, sizeof p->rejected);
    warn(p, from->name, why);
}

/* ---- beginning and end --------------------------------------------------------------------- */

/* The key differs from the hash that the secret is compared by: a value that is derived for one
 * purpose must be useless for another. */
static bool make_key(struct peering *p, const char *token)
{
    static const char purpose[] = "sitemapd notifications ";
    struct token_digest *digest = token_digest_new();
    bool good = digest != NULL && token_digest_add(digest, purpose, sizeof purpose - 1) &&
                token_digest_add(digest, token, strlen(token));

    token_digest_end(digest, good ? p->key : NULL);
    return good;
}

struct peering *peering_new(const struct config *config)
{
    struct peering *p = calloc(1, sizeof *p);
    char token[CONFIG_PEER_TOKEN_SIZE], why[256] = "out of memory";
    bool good = p != NULL && config_peer_token(config, token, why) == NULL &&
                token_sha256(token, strlen(token), p->token_sha256) && make_key(p, token);

    if (good) {
        snprintf(p->authorization, sizeof p->authorization, "Authorization: Bearer %s\r\n", token);
        p->calls = (struct shared_peers){p, offers_file, fetch_file, reject_file};
        p->ca_file = config->shared_ca_file;
        p->advertise = config->shared_advertise;
        if (config->shared_follow != NULL) {
            p->following = following_new(config->shared_follow, p->authorization, p->ca_file);
            good = p->following != NULL;
            snprintf(why, sizeof why, "out of memory");
        }
    }
    if (!good) {
        log_failure("shared", "%s", why);
        free(p);
        p = NULL;
    }
    explicit_bzero(token, sizeof token);
    return p;
}

void peering_free(struct peering *p)
{
    if (p == NULL)
        return;
    following_free(p->following);
    explicit_bzero(p->authorization, sizeof p->authorization);
    explicit_bzero(p->key, sizeof p->key);
    free(p);
}

const struct shared_peers *peering_calls(const struct peering *p)
{
    return p != NULL ? &p->calls : NULL;
}

const struct following *peering_following(const struct peering *p)
{
    return p->following;
}

const uint8_t *peering_key(const struct peering *p)
{
    return p != NULL ? p->key : NULL;
}

const uint8_t *peering_token_sha256(const struct peering *p)
{
    return p->token_sha256;
}
