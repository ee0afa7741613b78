/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Spans wait in a ring of fixed size. One site gets at most a quarter of it, so that no tenant's
 * requests displace the spans of others; spans without room are dropped and counted. One thread
 * sends them, a batch each second or when one is full. A batch that the endpoint cannot accept now
 * (no answer, 429, 502, 503, 504) is sent again for five minutes at growing intervals; any other
 * error drops it. The intervals grow over batches until one is accepted.
 *
 * Sampling depends on the trace id alone, so all nodes decide alike; a caller's decision not to
 * record is respected. If a span is not recorded, the requests that it causes carry the caller's
 * header unchanged, so that the trace has no gap. */
#include "server/trace/trace.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <jansson.h>

#include "server/base/clock.h"
#include "server/base/str.h"
#include "server/base/text.h"
#include "server/base/thread.h"
#include "server/client/loop.h"
#include "server/log/log.h"
#include "server/rules/limits.h"

#define QUEUE_SPANS   1024u
#define SITE_SPANS    (QUEUE_SPANS / 4)
#define BATCH_SPANS   128u
#define LOOK_MS       1000
#define TIMEOUT_MS    10000
#define ANSWER_BYTES  65536
#define FIRST_WAIT_MS 1000
#define MOST_WAIT_MS  60000
#define KEEP_MS       300000
#define LINKS         256u
#define SITE_BYTES    128u
#define TRACES_PATH   "/v1/traces"

struct span {
    struct trace_end end; /* its site and source are in the members below */
    struct traceparent context;
    char parent[SPAN_ID_CHARS + 1];
    char site[SITE_BYTES], source[NAME_MAX_BYTES + 1];
    int64_t began_ns, ended_ns;
};

struct link {
    int64_t site_id;
    uint64_t revision;
    struct traceparent context;
};

struct trace {
    atomic_bool on;
    atomic_uint sample_percent;
    _Atomic uint64_t sent, dropped;
    atomic_bool failing;
    pthread_mutex_t lock; /* guards the members below */
    struct span *spans;   /* [QUEUE_SPANS], a ring; NULL until it is on */
    size_t first, count;
    int64_t site_ids[QUEUE_SPANS]; /* of the places of the ring */
    struct link links[LINKS];      /* by site_id: sites that share a place replace each other */
    /* Used by the thread, or by trace_configure while no thread runs. */
    struct thread thread;
    struct url url;
    const char *target;
    char *node;
    struct fetch_loop *loop;
    struct str body; /* the batch */
    size_t batch_count;
    int64_t batch_at, next_at;
    unsigned failures; /* since a batch was accepted */
    bool sending;
};

/* `count` characters of lower-case hex, not all zeros, and a NUL. False: no randomness. */
static bool make_id(char *out, size_t count)
{
    uint8_t bytes[TRACE_ID_CHARS / 2];

    if (getrandom(bytes, count / 2, GRND_NONBLOCK) != (ssize_t)(count / 2))
        return false;
    bytes[0] |= 1;
    hex_write(out, bytes, count / 2);
    return true;
}

static bool is_in_sample(const struct trace *t, const char *trace_id)
{
    char last[9];

    snprintf(last, sizeof last, "%.8s", trace_id + TRACE_ID_CHARS - 8);
    return strtoull(last, NULL, 16) * 100 < (uint64_t)atomic_load(&t->sample_percent) << 32;
}

void trace_begin(struct trace *t, const struct traceparent *from, struct trace_span *span)
{
    bool has_parent = from != NULL && traceparent_is_set(from);
    char trace_id[TRACE_ID_CHARS + 1], span_id[SPAN_ID_CHARS + 1];

    *span = (struct trace_span){0};
    if (has_parent)
        span->context = *from;
    if (t == NULL || !atomic_load(&t->on) || (has_parent && !traceparent_is_sampled(from)))
        return;
    if (has_parent)
        snprintf(trace_id, sizeof trace_id, "%.*s", TRACE_ID_CHARS, traceparent_trace_id(from));
    else if (!make_id(trace_id, TRACE_ID_CHARS))
        return;
    if (!is_in_sample(t, trace_id) || !make_id(span_id, SPAN_ID_CHARS))
        return;
    if (has_parent)
        snprintf(span->parent, sizeof span->parent, "%.*s", SPAN_ID_CHARS,
                 traceparent_span_id(from));
    traceparent_make(trace_id, span_id, true, &span->context);
    span->began_ns = clock_unix_ns();
    span->recorded = true;
}

static bool has_place(const struct trace *t, int64_t site_id)
{
    size_t of_site = 0;

    for (size_t i = 0; i < t->count; i++)
        of_site += t->site_ids[(t->first + i) % QUEUE_SPANS] == site_id;
    return t->spans != NULL && t->count < QUEUE_SPANS && of_site < SITE_SPANS;
}

void trace_end(struct trace *t, struct trace_span *span, const struct trace_end *end)
{
    if (!span->recorded)
        return;
    span->recorded = false;
    pthread_mutex_lock(&t->lock);
    if (has_place(t, end->site_id)) {
        size_t at = (t->first + t->count++) % QUEUE_SPANS;
        struct span *s = &t->spans[at];

        *s = (struct span){.end = *end, .context = span->context, .began_ns = span->began_ns};
        s->ended_ns = clock_unix_ns();
        memcpy(s->parent, span->parent, sizeof s->parent);
        utf8_copy_cut(s->site, sizeof s->site, end->site != NULL ? end->site : "");
        utf8_copy_cut(s->source, sizeof s->source, end->source != NULL ? end->source : "");
        t->site_ids[at] = end->site_id;
    } else {
        atomic_fetch_add(&t->dropped, 1);
    }
    pthread_mutex_unlock(&t->lock);
}

void trace_link(struct trace *t, int64_t site_id, uint64_t revision,
                const struct traceparent *context)
{
    if (t == NULL || site_id == 0 || !traceparent_is_set(context))
        return;
    pthread_mutex_lock(&t->lock);
    t->links[(uint64_t)site_id % LINKS] = (struct link){site_id, revision, *context};
    pthread_mutex_unlock(&t->lock);
}

void trace_linked(struct trace *t, int64_t site_id, uint64_t from, uint64_t to,
                  struct traceparent *out)
{
    out->text[0] = '\0';
    if (t == NULL)
        return;
    pthread_mutex_lock(&t->lock);
    const struct link *l = &t->links[(uint64_t)site_id % LINKS];
    if (l->site_id == site_id && l->revision >= from && l->revision < to)
        *out = l->context;
    pthread_mutex_unlock(&t->lock);
}

void trace_counts_get(struct trace *t, struct trace_counts *out)
{
    *out = (struct trace_counts){0};
    if (t == NULL)
        return;
    out->sent = atomic_load(&t->sent);
    out->dropped = atomic_load(&t->dropped);
    out->on = atomic_load(&t->on);
    out->failing = atomic_load(&t->failing);
}

/* ---- a batch: ExportTraceServiceRequest of opentelemetry-proto, in the JSON of protobuf -------
 */

static void append_attribute(struct str *out, const char *key, const char *value)
{
    if (value == NULL || *value == '\0' || out->failed)
        return;
    if (out->data[out->len - 1] != '[')
        str_append_char(out, ',');
    str_append_format(out, "{\"key\":\"%s\",\"value\":{\"stringValue\":", key);
    str_append_json_text(out, value);
    str_append_text(out, "}}");
}

static void append_number(struct str *out, const char *key, uint64_t value)
{
    if (value == 0 || out->failed)
        return;
    if (out->data[out->len - 1] != '[')
        str_append_char(out, ',');
    str_append_format(out, "{\"key\":\"%s\",\"value\":{\"intValue\":\"%" PRIu64 "\"}}", key, value);
}

static void append_span(struct str *out, const struct span *s)
{
    const struct trace_end *end = &s->end;

    str_append_format(out, "{\"traceId\":\"%.*s\",\"spanId\":\"%.*s\"", TRACE_ID_CHARS,
                      traceparent_trace_id(&s->context), SPAN_ID_CHARS,
                      traceparent_span_id(&s->context));
    if (s->parent[0] != '\0')
        str_append_format(out, ",\"parentSpanId\":\"%s\"", s->parent);
    str_append_format(out,
                      ",\"name\":\"%s%s%s\",\"kind\":%d,\"startTimeUnixNano\":\"%" PRId64
                      "\",\"endTimeUnixNano\":\"%" PRId64 "\",\"attributes\":[",
                      end->method != NULL ? end->method : "", end->method != NULL ? " " : "",
                      end->name, end->method != NULL ? 2 : 3, s->began_ns, s->ended_ns);
    append_attribute(out, "http.request.method", end->method);
    append_attribute(out, "http.route", end->method != NULL ? end->name : NULL);
    append_number(out, "http.response.status_code", end->status);
    append_attribute(out, "error.type", end->problem);
    append_attribute(out, "sitemapd.site", s->site);
    append_attribute(out, "sitemapd.source", s->source);
    append_number(out, "sitemapd.revision", end->revision);
    str_append_format(out, "],\"status\":{%s}}", end->failed ? "\"code\":2" : "");
}

static void make_batch(struct trace *t)
{
    struct str *out = &t->body;

    str_clear(out);
    str_append_text(out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    append_attribute(out, "service.name", "sitemapd");
    append_attribute(out, "service.version", SITEMAPD_VERSION);
    append_attribute(out, "service.instance.id", t->node);
    str_append_text(out, "]},\"scopeSpans\":[{\"scope\":{\"name\":\"sitemapd\"},\"spans\":[");
    pthread_mutex_lock(&t->lock);
    t->batch_count = t->count < BATCH_SPANS ? t->count : BATCH_SPANS;
    for (size_t i = 0; i < t->batch_count && !out->failed; i++) {
        if (i > 0)
            str_append_char(out, ',');
        append_span(out, &t->spans[(t->first + i) % QUEUE_SPANS]);
    }
    t->first = (t->first + t->batch_count) % QUEUE_SPANS;
    t->count -= t->batch_count;
    pthread_mutex_unlock(&t->lock);
    str_append_text(out, "]}]}]}");
}

/* ---- sending ---------------------------------------------------------------------------- */

static void drop_batch(struct trace *t)
{
    atomic_fetch_add(&t->dropped, t->batch_count);
    t->batch_count = 0;
}

/* How many spans of an accepted batch the collector rejected (ExportTracePartialSuccess). */
static uint64_t count_rejected(const struct trace *t, const struct fetch_reply *reply)
{
    json_t *root = json_loadb(str_text(&reply->body), reply->body.len, 0, NULL);
    const json_t *count = json_object_get(json_object_get(root, "partialSuccess"), "rejectedSpans");
    const char *text = json_string_value(count);
    uint64_t rejected =
        text != NULL ? strtoull(text, NULL, 10) : (uint64_t)json_integer_value(count);

    json_decref(root);
    return rejected < t->batch_count ? rejected : t->batch_count;
}

static void record_failed(struct trace *t, const struct fetch_reply *reply, const char *why,
                          bool again)
{
    int64_t now = clock_now_ms(), asked_s = fetch_retry_after(reply, clock_unix_ms() / 1000);
    int64_t wait = FIRST_WAIT_MS << (t->failures < 6 ? t->failures : 6);

    atomic_store(&t->failing, true); /* set before it is logged */
    if (t->failures++ == 0)
        log_event(LOG_LEVEL_WARNING, "trace-failed", "%.*s did not accept spans: %s",
                  (int)t->url.origin_len, t->url.text, why);
    wait = asked_s * 1000 > wait ? asked_s * 1000 : wait;
    t->next_at = now + (wait < MOST_WAIT_MS ? wait : MOST_WAIT_MS);
    if (!again || now - t->batch_at > KEEP_MS)
        drop_batch(t);
}

static void on_sent(void *context, enum fetch_status status, struct fetch_reply *reply)
{
    struct trace *t = context;
    char why[64];
    unsigned answer = status == FETCH_OK ? reply->status : 0;

    t->sending = false;
    if (answer / 100 != 2) {
        snprintf(why, sizeof why, "HTTP status %u", answer);
        record_failed(t, reply, status == FETCH_OK ? why : reply->why,
                      status != FETCH_OK || answer == 429 || (answer >= 502 && answer <= 504));
        return;
    }
    uint64_t rejected = count_rejected(t, reply);
    atomic_store(&t->failing, false);
    if (t->failures > 0)
        log_event(LOG_LEVEL_INFO, "trace-well", "%.*s accepts spans again", (int)t->url.origin_len,
                  t->url.text);
    t->failures = 0;
    atomic_fetch_add(&t->dropped, rejected);
    atomic_fetch_add(&t->sent, t->batch_count - rejected);
    t->batch_count = 0;
}

static void send_batch(struct trace *t)
{
    const struct fetch_request request = {
        .url = &t->url,
        .target = t->target,
        .method = "POST",
        .agent = "sitemapd/" SITEMAPD_VERSION,
        .headers = "Content-Type: application/json\r\n",
        .timeout_ms = TIMEOUT_MS,
        .max_bytes = ANSWER_BYTES,
        .body = str_text(&t->body),
        .give_bytes = t->body.len,
        .context = t,
    };

    t->sending = !t->body.failed && fetch_loop_add(t->loop, &request, on_sent) != NULL;
    if (!t->sending) { /* no memory */
        drop_batch(t);
        t->next_at = clock_now_ms() + LOOK_MS;
    }
}

static size_t count_waiting(struct trace *t)
{
    pthread_mutex_lock(&t->lock);
    size_t count = t->count;
    pthread_mutex_unlock(&t->lock);
    return count;
}

static void trace_run(void *context)
{
    struct trace *t = context;

    while (!thread_stops(&t->thread)) {
        int64_t now = clock_now_ms();
        size_t waiting = count_waiting(t);

        if (!t->sending && now >= t->next_at && (waiting > 0 || t->batch_count > 0)) {
            if (t->batch_count == 0) {
                make_batch(t);
                t->batch_at = now;
                t->next_at = waiting > BATCH_SPANS ? now : now + LOOK_MS;
            }
            send_batch(t);
        }
        fetch_loop_poll(t->loop, LOOK_MS);
    }
}

/* ---- start and stop --------------------------------------------------------------------- */

struct trace *trace_new(void)
{
    struct trace *t = calloc(1, sizeof *t);

    if (t != NULL)
        pthread_mutex_init(&t->lock, NULL);
    return t;
}

static void end_sending(struct trace *t)
{
    atomic_store(&t->on, false);
    if (t->loop == NULL)
        return;
    thread_end(&t->thread);
    fetch_loop_wake(t->loop);
    thread_join(&t->thread);
    fetch_loop_free(t->loop);
    t->loop = NULL;
    t->sending = false;
    t->failures = 0;
    t->next_at = 0;
    atomic_store(&t->failing, false);
    drop_batch(t);
}

void trace_configure(struct trace *t, const char *endpoint, unsigned sample_percent,
                     const char *node)
{
    end_sending(t);
    atomic_store(&t->sample_percent, sample_percent);
    if (endpoint == NULL)
        return;
    pthread_mutex_lock(&t->lock);
    if (t->spans == NULL)
        t->spans = calloc(QUEUE_SPANS, sizeof *t->spans);
    pthread_mutex_unlock(&t->lock);
    free(t->node);
    t->node = node != NULL ? strdup(node) : NULL;
    if (t->spans == NULL || url_parse(endpoint, strlen(endpoint), &t->url, NULL) != RULE_OK)
        goto failed;
    t->target = t->url.text[t->url.origin_len + 1] == '\0' ? TRACES_PATH : NULL;
    t->loop = fetch_loop_new();
    if (t->loop == NULL || !thread_start(&t->thread, "trace", trace_run, t))
        goto failed;
    atomic_store(&t->on, true);
    return;
failed:
    fetch_loop_free(t->loop);
    t->loop = NULL;
    log_event(LOG_LEVEL_ERROR, "trace-failed", "[trace] is off: out of memory");
}

void trace_free(struct trace *t)
{
    if (t == NULL)
        return;
    end_sending(t);
    str_done(&t->body);
    pthread_mutex_destroy(&t->lock);
    free(t->node);
    free(t->spans);
    free(t);
}
