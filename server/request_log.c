/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Writes the access log and the log of failed requests, and counts crawlers. */
#include "server/request_log.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "server/api/routes.h"
#include "server/base/clock.h"
#include "server/crawlers/crawlers.h"
#include "server/http/listener.h"
#include "server/log/log.h"

/* Failed requests logged in one second; the rest are counted. A full disk fails all of them. */
#define MAX_LOGGED_A_SECOND 10u

bool request_log_open(const struct config *config, struct access_log **out)
{
    bool json = strcmp(config->access_format, "json") == 0;

    if (access_log_open(config->access_log, json ? ACCESS_JSON : ACCESS_COMBINED, out))
        return true;
    log_failure(config->access_log,
                "cannot open the access log: %s; its folder must exist and be writable for this "
                "process (access_log in [log])",
                strerror(errno));
    return false;
}

static void write_line(struct access_log *log, const struct completion *c)
{
    const struct request *request = c->request;
    struct access_line line = {
        .peer = request->peer,
        .host = request->host,
        .method = c->method,
        .path = c->path,
        .query = c->query,
        .version = c->version,
        .referer = c->referer,
        .user_agent = c->user_agent,
        .token_name = request->token_name,
        .request_id = request->id,
        .listener = c->listener,
        .route = c->route,
        .status = c->status,
        .body_bytes = c->body_bytes,
        .micros = c->micros,
    };
    access_log_write(log, &line);
}

_Static_assert((unsigned)CODINGS == CRAWLERS_CODINGS, "the ledger counts each coding");

/* Records a crawler's request in the ledger. */
static void record_fetch(struct crawlers *crawlers, const struct completion *c)
{
    const struct request *request = c->request;
    const struct resource *page = request->reply.resource;
    struct crawler_fetch fetch = {
        .user_agent = c->user_agent,
        .address = request->peer,
        .status = c->status,
        .whole = c->whole && request->method == HTTP_GET,
        .offered = (uint8_t)request->reply.offered,
        .bytes = c->body_bytes,
        .site_id = request->site_id,
    };

    if (page != NULL && page->held.kind == HELD_PAGE) {
        fetch.index_id = page->index_id;
        fetch.page = page->number;
        fetch.revision = page->page_revision;
        fetch.stamp = page->page_stamp;
        fetch.changed_at = page->changed_at;
    }
    /* a page, not robots.txt */
    if (page != NULL && page->held.kind == HELD_FILE && page->changed_at != 0)
        fetch.child = crawlers_child_of(request->path, request->query);
    crawlers_fetched(crawlers, &fetch, (int64_t)time(NULL));
}

void request_log_public(void *context, const struct completion *completion)
{
    const struct app_context *app = context;

    if (app->access_log != NULL)
        write_line(app->access_log, completion);
    if (app->crawlers != NULL)
        record_fetch(app->crawlers, completion);
}

static const char *advice_for(const char *problem)
{
    static const struct {
        const char *problem, *advice;
    } table[] = {
        {"no-space", "no space left on the disk of the catalogue: free some"},
        {"busy", "too many writes are waiting, or another process or node has the lock"},
        {"unavailable", "the catalogue's file cannot be read or written: check /readyz, the file, "
                        "its folder and their permissions"},
        {"corrupt",
         "the catalogue is corrupt: keep the file, and replace it by a backup (`sitemapd "
         "check` shows details)"},
        {"newer", "the catalogue was made by a newer version of sitemapd: run that version"},
        {"no-memory", "out of memory: raise the memory limit, or lower snapshot_budget in [cache]"},
        {"too-many-waiting", "the limit of waiting requests is reached (max_suspended in [admin])"},
    };

    for (size_t i = 0; problem != NULL && i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].problem, problem) == 0)
            return table[i].advice;
    return "see the preceding log lines";
}

/* False if enough lines were logged in this second. */
static bool may_report(int64_t now, unsigned *left_out)
{
    static atomic_int_fast64_t second;
    static atomic_uint logged;
    int_fast64_t was = atomic_load(&second);

    *left_out = 0;
    if (was != now && atomic_compare_exchange_strong(&second, &was, now)) {
        unsigned before = atomic_exchange(&logged, 1);
        *left_out = before > MAX_LOGGED_A_SECOND ? before - MAX_LOGGED_A_SECOND : 0;
        return true;
    }
    return atomic_fetch_add(&logged, 1) < MAX_LOGGED_A_SECOND;
}

/* Whether a response with this problem is normal, not a failure of the server. */
static bool is_expected(const char *problem)
{
    return strcmp(problem, "stopping") == 0 || strcmp(problem, "cancelled") == 0 ||
           strcmp(problem, "snapshot-pending") == 0;
}

static void report_failure(const struct completion *c)
{
    const char *problem = c->request->reply.problem;
    unsigned left_out;

    if (problem != NULL && is_expected(problem))
        return;
    if (problem == NULL && c->status == 503) /* /readyz; its reasons are logged elsewhere */
        return;
    if (!may_report(c->request->now, &left_out))
        return;
    if (left_out > 0)
        log_event(LOG_LEVEL_WARNING, "request-failed", "%u more failed requests were not logged",
                  left_out);
    struct traceparent trace;
    request_traceparent(c->request, &trace);
    log_request(LOG_LEVEL_WARNING, "request-failed",
                &(struct log_ids){c->request->id, traceparent_trace_id(&trace)},
                "%s %s was answered %u %s: %s", c->method, c->path, c->status,
                problem != NULL ? problem : "without a code", advice_for(problem));
}

void request_log_admin(void *context, const struct completion *completion)
{
    const struct app_context *app = context;

    if (app->access_log != NULL)
        write_line(app->access_log, completion);
    if (completion->status >= 500 && completion->status != 501)
        report_failure(completion);
}

#define PLAIN_EACH_MS 60000

void request_log_plain(void *context, const char *peer)
{
    static atomic_int_fast64_t next_ms;
    int_fast64_t now = clock_now_ms(), due = atomic_load(&next_ms);

    (void)context;
    if (now >= due && atomic_compare_exchange_strong(&next_ms, &due, now + PLAIN_EACH_MS))
        log_event(LOG_LEVEL_WARNING, "plain-http",
                  "a client at %s sent plain HTTP to a TLS port: its URL must begin with https://",
                  peer);
}
