/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* /healthz: the process answers. /readyz: whether crawlers get their pages, and what needs
 * attention. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/api/auth.h"
#include "server/api/errors.h"
#include "server/api/forward.h"
#include "server/api/handlers/handlers.h"
#include "server/api/json.h"
#include "server/api/objects.h"
#include "server/api/routes.h"
#include "server/base/text.h"
#include "server/rules/lastmod.h"
#include "server/sources/child_store.h"
#include "server/sources/reasons.h"
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

/* The reasons why the server needs attention, as written in the answer. */
struct reasons {
    struct str out;
    size_t count;
    bool hides; /* whether to hide the sentences, which name indexes and sources of every site, from
                 * this caller */
    /* The same as a line for each check, and the codes of the current check. */
    struct str lines, codes;
};

static void append_reason(struct reasons *r, const char *code, const char *detail)
{
    if (r->count++ > 0)
        str_append_char(&r->out, ',');
    str_append_text(&r->out, "{\"code\":");
    str_append_json_text(&r->out, code);
    str_append_text(&r->out, ",\"detail\":");
    str_append_json_text(&r->out, r->hides ? "send a token for all sites for the details" : detail);
    str_append_char(&r->out, '}');
    str_append_format(&r->codes, "%s%s", r->codes.len > 0 ? ", " : " ", code);
}

/* Ends a check: the reasons added since the previous check belong to it. */
static void end_check(struct reasons *r, const char *name)
{
    bool well = r->codes.len == 0;

    str_append_format(&r->lines, "[%c]%s%s%s\n", well ? '+' : '-', name, well ? " ok" : ":",
                      str_text(&r->codes));
    r->out.failed |= r->codes.failed || r->lines.failed;
    str_clear(&r->codes);
}

static void add_reason(void *context, const char *code, const char *detail)
{
    append_reason(context, code, detail);
}

static void append_standing(struct reasons *r, const struct source_standing *standing)
{
    if (!reasons_of(standing, add_reason, r))
        r->out.failed = true;
}

/* Folder sources with problems. These make pages stale, but never stop service. */
static void append_sources(struct reasons *r, struct sources *sources)
{
    struct source_list *list = sources == NULL ? NULL : sources_hold(sources);
    for (size_t at = 0; list != NULL && at < sources_count(list); at++) {
        struct source_health health;

        sources_health(list, at, &health);
        append_standing(r,
                        &(struct source_standing){.name = health.name,
                                                  .failure = health.failing ? health.failure : NULL,
                                                  .held = health.state.held,
                                                  .serve = health.serve,
                                                  .refused = health.state.quarantined});
    }
    sources_release(list);
}

/* The same for remote sources: crawlers get the last known state. */
static void append_remotes(struct reasons *r, const struct app_context *app)
{
    struct roster *roster = app->remotes == NULL ? NULL : roster_hold(app->remotes);
    struct remote_counts counts;

    for (size_t at = 0; at < roster_count(roster); at++) {
        struct remote_status status;
        const char *name = roster_at(roster, at)->name;

        if (!remote_status(app->remote, name, &status))
            continue;
        append_standing(r,
                        &(struct source_standing){.name = name,
                                                  .failure = status.failing ? status.failure : NULL,
                                                  .held = status.held,
                                                  .refused = status.refused,
                                                  .states = status.states});
    }
    roster_release(roster);
    if (app->remote == NULL)
        return;
    remote_counts_get(app->remote, &counts);
    append_standing(r, &(struct source_standing){.states = counts.registered});
}

/* Sources that are no longer configured: otherwise nobody would notice that their entries are stale
 * or 404. */
static void append_orphans(struct reasons *r, const struct app_context *app)
{
    struct roster *orphans = app->orphans == NULL ? NULL : roster_hold(app->orphans);

    for (size_t at = 0; at < roster_count(orphans); at++) {
        const char *name = roster_at(orphans, at)->name;
        struct str detail = STR_INIT;

        if (app->wanted_elsewhere(app->catalogue, name))
            continue;
        str_append_format(
            &detail,
            "%s: no source has this name any more, but its sitemaps are still listed; the server "
            "no longer reads or serves them; configure the source again, or run `sitemapd source "
            "remove %s` to let another source take them over",
            name, name);
        append_reason(r, "source-orphaned", str_text(&detail));
        r->out.failed |= detail.failed;
        str_done(&detail);
    }
    roster_release(orphans);
}

static bool append_at_rest(void *context, const struct source_at_rest *source)
{
    struct reasons *r = context;

    append_standing(
        r, &(struct source_standing){.name = source->name,
                                     .failure = source->failure[0] != '\0' ? source->failure : NULL,
                                     .held = source->state.held,
                                     .refused = source->state.quarantined,
                                     .states = source->remote ? source->states : NULL});
    return !r->out.failed;
}

/* The same for sources that do not run in this process, and for sitemaps registered by the API on
 * sites with `check`. It reads the catalogue, on the thread of the operator's command. */
static void append_sources_at_rest(struct reasons *r, const struct app_context *app)
{
    uint64_t states[CHECK_STATES] = {0};
    struct registry *registry = NULL;
    struct catalogue_view *view = NULL;
    enum catalogue_status status = CATALOGUE_OK;

    if (app->at_rest == NULL)
        return;
    status = catalogue_view_begin(app->catalogue, &view);
    if (status == CATALOGUE_OK)
        status = catalogue_view_registry(view, &registry);
    if (status == CATALOGUE_OK)
        status = sources_at_rest_each(app->at_rest, view, registry, append_at_rest, r);
    if (status == CATALOGUE_OK)
        status = catalogue_view_check_bad_counts(view, "", states);
    if (status == CATALOGUE_OK)
        append_standing(r, &(struct source_standing){.states = states});
    else
        r->out.failed = true;
    registry_unref(registry);
    catalogue_view_end(view);
}

/* Copies of sitemaps: a sitemap without one is not served while its origin is down. */
static void append_children(struct reasons *r, const struct app_context *app)
{
    struct child_store_stats stats;

    if (app->children == NULL || !app->serves_children(app->source_set))
        return;
    child_store_stats_get(app->children, &stats);
    if (stats.failing)
        append_reason(r, "child-store-failed",
                      "copies of sitemaps cannot be written: sitemaps that have changed are served "
                      "and dated as before, and those without a copy are not served while their "
                      "origin is down; the log says why (child-store-failed)");
    if (stats.full)
        append_reason(
            r, "child-store-full",
            "not all sitemaps have a copy, because [fetch] store_bytes limits copies; "
            "sitemaps without one are not served while their origin is down; raise store_bytes");
}

/* Engines that reject the credentials: otherwise a revoked key would go unnoticed. */
static void append_engines(struct reasons *r, const struct app_context *app)
{
    char detail[160];

    for (size_t i = 0; i < ENGINE_COUNT; i++) {
        const struct engine_counts *engine = &app->engines[i];
        if (!atomic_load(&engine->configured) || !atomic_load(&engine->refused))
            continue;
        snprintf(detail, sizeof detail,
                 "%s rejects the credentials of [engine \"%s\"]; `sitemapd engines` says why",
                 engine_names[i], engine_names[i]);
        append_reason(r, "engine-refused", detail);
    }
}

/* Likewise an IndexNow endpoint: unsent page URLs are dropped after a day. */
static void append_indexnow(struct reasons *r, const struct app_context *app)
{
    char detail[160];
    int failing = atomic_load(&app->indexnow.failing);
    if (failing == 0)
        return;
    snprintf(detail, sizeof detail,
             "IndexNow does not accept the page URLs of %d %s; the log says why (indexnow-failed)",
             failing, plural((uint64_t)failing, "site", "sites"));
    append_reason(r, "indexnow-failing", detail);
}

static void append_clock(struct reasons *r, int64_t changed_at, int64_t now)
{
    char changed[21], clock[21], detail[256];

    if (changed_at <= now + CLOCK_SLACK_SECONDS)
        return;
    lastmod_format_utc(changed_at, changed);
    lastmod_format_utc(now, clock);
    snprintf(detail, sizeof detail,
             "clock skew: the clock says %s, but the newest change in the catalogue is dated %s: "
             "correct the wrong clock, this machine's or another node's; pages dated in the future "
             "keep that date until they change again",
             clock, changed);
    append_reason(r, "clock-behind", detail);
}

/* A transaction that takes longer than other writes may wait: these get 503 meanwhile. */
static void append_stuck(struct reasons *r, const struct catalogue_stats *catalogue)
{
    struct str detail = STR_INIT;

    if (catalogue->busy_ms <= catalogue->write_timeout_ms)
        return;
    str_append_format(&detail,
                      "one write has blocked the catalogue for %" PRIu64
                      " s; other writes time out with 503",
                      catalogue->busy_ms / 1000);
    append_reason(r, "writer-stuck", str_text(&detail));
    r->out.failed |= detail.failed;
    str_done(&detail);
}

/* Reports a full disk before a write fails: a quiet catalogue may not be written for days. */
static void append_disk(struct reasons *r, const struct catalogue_stats *catalogue, bool full)
{
    if (!catalogue->writable)
        append_reason(r, "catalogue-not-writable",
                      catalogue->trouble[0] != '\0' ? catalogue->trouble
                                                    : "the catalogue cannot be written");
    else if (full)
        append_reason(r, "catalogue-not-writable",
                      "no-space: the disk of the catalogue is full; writes are rejected");
    else if (catalogue->disk_short)
        append_reason(
            r, "disk-nearly-full",
            "no-space: the catalogue's disk is nearly full, and the rest is reserved for tokens "
            "for all sites; lists and soon all writes by tokens for one site are rejected");
}

/* Frozen indexes: the freeze is intended, but easily forgotten. */
static void append_frozen(struct reasons *r, const struct app_context *app)
{
    const struct page_map *routing = publisher_page_map(app->publisher);
    const struct registry *registry = page_map_registry(routing);
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
    str_append_text(&detail, frozen > 1 ? " are frozen (read-only) until they are thawed"
                                        : " is frozen (read-only) until it is thawed");
    if (frozen > 0)
        append_reason(r, "frozen", str_text(&detail));
    publisher_page_map_done(routing);
    str_done(&detail);
}

/* A configuration that was rejected: the next start would fail with it. */
static void append_refusal(struct reasons *r, struct app_context *app)
{
    char detail[REFUSAL_SIZE + 160], why[REFUSAL_SIZE];

    if (!atomic_load(&app->reload_refused))
        return;
    pthread_mutex_lock(&app->refusal_lock);
    snprintf(why, sizeof why, "%s", app->refusal);
    pthread_mutex_unlock(&app->refusal_lock);
    snprintf(detail, sizeof detail,
             "the last reload was rejected, and a start may fail: %s; correct it, run `sitemapd "
             "check-config`, then reload",
             why[0] != '\0' ? why : "the log says why (reload-refused)");
    append_reason(r, "config-refused", detail);
}

static void append_alias(void *context, bool hides, size_t count, const char *first)
{
    struct reasons *r = context;
    struct str detail = STR_INIT;

    str_append_text(&detail, first);
    if (count > 1)
        str_append_format(&detail, " (and %zu more)", count - 1);
    str_append_text(&detail,
                    hides ? "; crawlers cannot read it: remove the alias from [site]"
                          : "; crawlers get 404: correct the alias in [site], or add the index");
    append_reason(r, hides ? "alias-hides-sitemap" : "alias-leads-nowhere", str_text(&detail));
    r->out.failed |= detail.failed;
    str_done(&detail);
}

/* ?verbose: text, a line for each check, in the form of Kubernetes' own servers. */
static void reply_lines(struct reply *reply, struct reasons *r, bool serves)
{
    str_append_format(&r->lines, "readyz check %s%s", serves ? "passed" : "failed",
                      serves && r->count > 0 ? " (degraded)" : "");
    r->out.failed |= r->lines.failed;
    reply_text(reply, serves ? 200 : 503, str_text(&r->lines));
}

static bool has_sites(const struct app_context *app)
{
    const struct page_map *routing = publisher_page_map(app->publisher);
    bool has = page_map_registry(routing)->site_count > 0;

    publisher_page_map_done(routing);
    return has;
}

static void append_forwarding(struct str *out, const struct app_context *app)
{
    struct forward_target target;

    forward_target_get(app->forward, &target);
    if (target.why == FORWARD_NOT)
        return;
    const struct forward_counts *counts = forward_counts_get(app->forward);
    const struct json_forwarding shown = {
        .to = target.origin,
        .node = target.node[0] != '\0' ? target.node : NULL,
        .reason = target.why == FORWARD_FAR ? "far" : "follows",
        .under_way = atomic_load(&counts->under_way),
        .answered = atomic_load(&counts->answered),
        .direct = atomic_load(&counts->direct),
        .failed = atomic_load(&counts->failed),
        .unknown = atomic_load(&counts->unknown),
        .unseen = atomic_load(&counts->unseen),
        .loops = atomic_load(&counts->loops),
    };
    str_append_text(out, ",\"forwarding\":");
    json_append_object(out, &json_forwarding, &shown);
}

/* Appends a line that is not a check: where writes are forwarded, and how many failed. */
static void append_forwarding_line(struct str *lines, const struct app_context *app)
{
    struct forward_target target;

    forward_target_get(app->forward, &target);
    if (target.why == FORWARD_NOT)
        return;
    const struct forward_counts *counts = forward_counts_get(app->forward);
    str_append_format(lines,
                      "[+]forwarding ok: to %s, %" PRIu64 " answered, %" PRIu64 " direct, %" PRIu64
                      " failed, %" PRIu64 " unknown\n",
                      target.origin, atomic_load(&counts->answered), atomic_load(&counts->direct),
                      atomic_load(&counts->failed), atomic_load(&counts->unknown));
}

static void append_json(struct reply *reply, const struct reasons *r, const struct app_context *app,
                        bool serves)
{
    struct str *out = &reply->body;

    str_append_format(out, "{\"status\":\"%s\",\"reasons\":[",
                      !serves        ? "unavailable"
                      : r->count > 0 ? "degraded"
                                     : "ok");
    str_append_text(out, str_text(&r->out));
    str_append_char(out, ']');
    nodes_append(out, app->catalogue);
    append_forwarding(out, app);
    str_append_text(out, "}\n");
}

static bool append_stopping(struct reasons *r, const struct app_context *app)
{
    bool stops = atomic_load(&app->draining);

    if (stops)
        append_reason(r, "stopping",
                      "the server is stopping: it closes its ports after shutdown_delay");
    return stops;
}

/* Unavailable only where nothing can be served: a server with snapshots in memory keeps serving
 * them, and an orchestrator that restarted it would throw them away. */
enum handled health_ready(void *context, struct request *request)
{
    struct app_context *app = context;
    struct publisher_stats publisher;
    struct catalogue_stats catalogue;
    struct reasons reasons = {.out = STR_INIT, .lines = STR_INIT, .codes = STR_INIT};
    struct reply *reply = &request->reply;
    bool serves, allowed;

    if (!auth_sees_all(app, request, &allowed))
        return HANDLED;
    reasons.hides = !allowed;
    publisher_stats_get(app->publisher, &publisher);
    catalogue_stats_get(app->catalogue, &catalogue);
    serves = publisher.readable || publisher.snapshots > 0;

    if (!publisher.readable)
        append_reason(&reasons, "catalogue-unreadable",
                      publisher.trouble[0] != '\0' ? publisher.trouble
                                                   : "the catalogue cannot be read");
    else if (publisher.trouble[0] != '\0')
        append_reason(&reasons, "publishing", publisher.trouble);
    append_disk(&reasons, &catalogue, catalogue_disk_is_full(app->catalogue));
    append_stuck(&reasons, &catalogue);
    end_check(&reasons, "catalogue");
    bool joined = nodes_report_reasons(app, add_reason, &reasons);
    serves = serves && joined;
    end_check(&reasons, "shared");
    if (publisher.readable && joined && !has_sites(app))
        append_reason(&reasons, "no-site",
                      "there is no site yet, and crawlers get 421: create one with `sitemapd site "
                      "add ORIGIN` or POST /v1/sites");
    publisher_alias_faults(app->publisher, append_alias, &reasons);
    end_check(&reasons, "sites");
    append_clock(&reasons, publisher_newest_at(app->publisher), request->now);
    end_check(&reasons, "clock");
    append_sources(&reasons, app->sources);
    append_remotes(&reasons, app);
    append_orphans(&reasons, app);
    append_sources_at_rest(&reasons, app);
    append_children(&reasons, app);
    end_check(&reasons, "sources");
    append_engines(&reasons, app);
    append_indexnow(&reasons, app);
    end_check(&reasons, "engines");
    append_frozen(&reasons, app);
    end_check(&reasons, "frozen");
    append_refusal(&reasons, app);
    end_check(&reasons, "configuration");
    bool stops = append_stopping(&reasons, app);
    serves = serves && !stops;
    end_check(&reasons, "shutdown");
    append_forwarding_line(&reasons.lines, app);

    if (request->query != NULL && strcmp(request->query, "verbose") == 0) {
        reply_lines(reply, &reasons, serves);
    } else {
        append_json(reply, &reasons, app, serves);
        reply_json(reply, serves ? 200 : 503);
    }
    if (reasons.out.failed)
        reply->body.failed = true;
    str_done(&reasons.out);
    str_done(&reasons.lines);
    str_done(&reasons.codes);
    if (!serves)
        reply_header(reply, "Retry-After", "5");
    return HANDLED;
}
