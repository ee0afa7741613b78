/* /healthz: the process answers. /readyz: crawlers get what they ask for, and how well. */
#include <inttypes.h>
#include <stdio.h>

#include "server/api/errors.h"
#include "server/api/handlers/handlers.h"
#include "server/api/handlers/nodes.h"
#include "server/api/json.h"
#include "server/api/routes.h"
#include "server/base/text.h"
#include "server/rules/lastmod.h"
#include "server/sources/remote/remote.h"
#include "server/sources/roster.h"
#include "server/sources/sources.h"

enum handled health_alive(void *context, struct request *request)
{
    (void)context;
    str_append_text(&request->reply.body, "{\"status\":\"ok\"}\n");
    reply_json(&request->reply, 200);
    return HANDLED;
}

static void append_reason(struct str *out, size_t *count, const char *code, const char *detail)
{
    if ((*count)++ > 0)
        str_append_char(out, ',');
    str_append_text(out, "{\"code\":");
    str_append_json_text(out, code);
    str_append_text(out, ",\"detail\":");
    str_append_json_text(out, detail);
    str_append_char(out, '}');
}

static void append_failure(struct str *out, size_t *count, const struct source_health *health)
{
    struct str detail = STR_INIT;

    str_append_format(&detail, "%s: %s", health->name, health->failure);
    append_reason(out, count, "source-failing", str_text(&detail));
    str_done(&detail);
}

static void append_number_of(struct str *out, size_t *count, const char *code,
                             const struct source_health *health, uint64_t number, const char *what)
{
    struct str detail = STR_INIT;

    str_append_format(&detail, "%s: %" PRIu64 " %s", health->name, number, what);
    append_reason(out, count, code, str_text(&detail));
    str_done(&detail);
}

/* What is wrong with a folder costs freshness, never service. One thing does not hide another: each
 * asks for something else to be done. */
static void append_sources(struct str *out, size_t *count, struct sources *sources)
{
    struct source_list *list = sources == NULL ? NULL : sources_hold(sources);
    for (size_t at = 0; list != NULL && at < sources_count(list); at++) {
        struct source_health health;

        sources_health(list, at, &health);
        if (health.failing)
            append_failure(out, count, &health);
        if (health.state.held > 0)
            append_number_of(out, count, "source-held", &health, health.state.held,
                             plural(health.state.held, "removal is held back by the shrink guard",
                                    "removals are held back by the shrink guard"));
        if (health.state.quarantined > 0)
            append_number_of(out, count, "source-problems", &health, health.state.quarantined,
                             plural(health.state.quarantined,
                                    "file is refused; GET /v1/sources tells why",
                                    "files are refused; GET /v1/sources tells why"));
    }
    sources_let_go(list);
}

/* More than one in a hundred is no sitemap where it lies: crawlers meet it, too. */
static void append_bad_checks(struct str *out, size_t *count, const char *name,
                              const uint64_t states[CHECK_STATES])
{
    static const enum check_state bad[] = {CHECK_GONE, CHECK_BROKEN, CHECK_NOT_A_SITEMAP};
    struct str detail = STR_INIT;
    uint64_t all = 0, sum = 0;
    const char *some = NULL;

    for (unsigned i = 0; i < CHECK_STATES; i++)
        all += states[i];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        sum += states[bad[i]];
    if (sum == 0 || sum * 100 <= all)
        return;
    str_append_format(&detail, "%s: of %" PRIu64 " sitemaps", name, all);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (states[bad[i]] == 0)
            continue;
        str_append_format(&detail, "%s %" PRIu64 " %s %s", some != NULL ? "," : "", states[bad[i]],
                          plural(states[bad[i]], "is", "are"), check_state_word(bad[i]));
        some = some != NULL ? some : check_state_word(bad[i]);
    }
    str_append_format(&detail, "; GET /v1/checks?source=%s&state=%s tells which", name, some);
    append_reason(out, count, "source-checks", str_text(&detail));
    out->failed |= detail.failed;
    str_done(&detail);
}

/* The same of those that lie elsewhere: crawlers are served what was known last. */
static void append_remotes(struct str *out, size_t *count, const struct app_context *app)
{
    struct roster *roster = app->remotes == NULL ? NULL : roster_hold(app->remotes);

    for (size_t at = 0; at < roster_count(roster); at++) {
        struct remote_status status;
        struct str detail = STR_INIT;
        const char *name = roster_at(roster, at)->name;

        if (!remote_status(app->remote, name, &status))
            continue;
        if (status.failing) {
            str_append_format(&detail, "%s: %s", name, status.failure);
            append_reason(out, count, "source-failing", str_text(&detail));
        }
        str_clear(&detail);
        if (status.held > 0) {
            str_append_format(&detail, "%s: %" PRIu64 " %s", name, status.held,
                              plural(status.held, "removal is held back by the shrink guard",
                                     "removals are held back by the shrink guard"));
            append_reason(out, count, "source-held", str_text(&detail));
        }
        out->failed |= detail.failed;
        str_done(&detail);
        append_bad_checks(out, count, name, status.states);
    }
    roster_let_go(roster);
}

static void append_clock(struct str *out, size_t *count, int64_t changed_at, int64_t now)
{
    char changed[21], clock[21], detail[160];

    if (changed_at <= now + CLOCK_SLACK_SECONDS)
        return;
    lastmod_format_utc(changed_at, changed);
    lastmod_format_utc(now, clock);
    snprintf(detail, sizeof detail,
             "the clock says %s, but the catalogue was last changed at %s: one of the two was set "
             "wrong",
             clock, changed);
    append_reason(out, count, "clock-behind", detail);
}

/* One transaction that takes longer than others may wait: these are answered 503 meanwhile. */
static void append_stuck(struct str *out, size_t *count, const struct catalogue_stats *catalogue)
{
    struct str detail = STR_INIT;

    if (catalogue->busy_ms <= catalogue->write_timeout_ms)
        return;
    str_append_format(&detail,
                      "one write has kept the catalogue for %" PRIu64
                      " s; others are answered 503 meanwhile",
                      catalogue->busy_ms / 1000);
    append_reason(out, count, "writer-stuck", str_text(&detail));
    out->failed |= detail.failed;
    str_done(&detail);
}

/* It is meant so, and forgotten as easily. */
static void append_frozen(struct str *out, size_t *count, const struct app_context *app)
{
    const struct site_map *routing = publisher_site_map(app->publisher);
    const struct registry *registry = site_map_registry(routing);
    struct str detail = STR_INIT;
    size_t frozen = 0;

    for (size_t i = 0; i < registry->site_count; i++)
        for (size_t k = 0; k < registry->sites[i].index_count; k++) {
            const struct registry_index *index = &registry->sites[i].indexes[k];

            if (registry_is_frozen(registry, index) && frozen++ == 0)
                str_append_format(&detail, "%s%s", registry->sites[i].origin, index->path);
        }
    if (frozen > 1)
        str_append_format(&detail, " and %zu more", frozen - 1);
    str_append_text(&detail, frozen > 1 ? " are frozen: nothing changes there until they are thawed"
                                        : " is frozen: nothing changes there until it is thawed");
    if (frozen > 0)
        append_reason(out, count, "frozen", str_text(&detail));
    publisher_site_map_done(routing);
    str_done(&detail);
}

struct reasons {
    struct str *out;
    size_t *count;
};

static void add_reason(void *context, const char *code, const char *detail)
{
    struct reasons *r = context;
    append_reason(r->out, r->count, code, detail);
}

static bool has_sites(const struct app_context *app)
{
    const struct site_map *routing = publisher_site_map(app->publisher);
    bool has = site_map_registry(routing)->site_count > 0;

    publisher_site_map_done(routing);
    return has;
}

/* Unavailable only where nothing can be served: a server with snapshots in memory keeps serving
 * them, and an orchestrator that restarted it would throw them away. */
enum handled health_ready(void *context, struct request *request)
{
    const struct app_context *app = context;
    struct publisher_stats publisher;
    struct catalogue_stats catalogue;
    struct str reasons = STR_INIT;
    struct reply *reply = &request->reply;
    size_t count = 0;
    bool serves;

    publisher_stats_get(app->publisher, &publisher);
    catalogue_stats_get(app->catalogue, &catalogue);
    serves = publisher.readable || publisher.snapshots > 0;

    if (!publisher.readable)
        append_reason(&reasons, &count, "catalogue-unreadable",
                      publisher.trouble[0] != '\0' ? publisher.trouble
                                                   : "the catalogue cannot be read");
    else if (publisher.trouble[0] != '\0')
        append_reason(&reasons, &count, "publishing", publisher.trouble);
    if (!catalogue.writable)
        append_reason(&reasons, &count, "catalogue-not-writable",
                      catalogue.trouble[0] != '\0' ? catalogue.trouble
                                                   : "the catalogue cannot be written");

    if (publisher.readable && !has_sites(app) && !nodes_is_joining(app->catalogue))
        append_reason(&reasons, &count, "no-site",
                      "there is no site yet, and crawlers get 421: make one with `sitemapd site "
                      "add ORIGIN` or POST /v1/sites");
    if (!nodes_tell_reasons(app->catalogue, add_reason, &(struct reasons){&reasons, &count}))
        serves = false;
    append_clock(&reasons, &count, catalogue_changed_at(app->catalogue), request->now);
    append_stuck(&reasons, &count, &catalogue);
    append_sources(&reasons, &count, app->sources);
    append_remotes(&reasons, &count, app);
    append_frozen(&reasons, &count, app);

    str_append_text(&reply->body, "{\"status\":");
    str_append_text(&reply->body, !serves     ? "\"unavailable\""
                                  : count > 0 ? "\"degraded\""
                                              : "\"ok\"");
    str_append_text(&reply->body, ",\"reasons\":[");
    str_append_text(&reply->body, str_text(&reasons));
    str_append_char(&reply->body, ']');
    nodes_append(&reply->body, app->catalogue);
    str_append_text(&reply->body, "}\n");
    if (reasons.failed)
        reply->body.failed = true;
    str_done(&reasons);
    reply_json(reply, serves ? 200 : 503);
    if (!serves)
        reply_header(reply, "Retry-After", "5");
    return HANDLED;
}
