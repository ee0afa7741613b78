/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A reload: reads the configuration again, reports what needs a restart, and applies the rest. */
#include "server/serve_state.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "server/base/str.h"
#include "server/configured.h"
#include "server/crawlers/crawlers.h"
#include "server/log/log.h"
#include "server/pages/publisher.h"
#include "server/shared_node.h"

static void report_mistake(void *context, const char *file, unsigned line, const char *message)
{
    char *first = context, where[512] = "";

    if (file != NULL && line == 0)
        snprintf(where, sizeof where, "%.400s: ", file);
    else if (file != NULL)
        snprintf(where, sizeof where, "%.400s:%u: ", file, line);
    log_event(LOG_LEVEL_ERROR, "reload-refused", "%s%s", where, message);
    if (first[0] == '\0')
        snprintf(first, REFUSAL_SIZE, "%.100s%.400s", where, message);
}

static void report_fixed(void *context, const char *section, const char *key, bool live)
{
    (void)context;
    if (!live)
        log_event(LOG_LEVEL_WARNING, "reload-needs-restart", "needs a restart: [%s] %s", section,
                  key);
}

#define CHANGED_NAMED 20 /* settings in the log line */

struct changed {
    struct str names;
    size_t count;
};

static void name_changed(void *context, const char *section, const char *key, bool live)
{
    struct changed *changed = context;
    if (live && changed->count++ < CHANGED_NAMED)
        str_append_format(&changed->names, "%s[%s] %s", changed->count == 1 ? "" : ", ", section,
                          key);
}

/* Sites come first: only they can still be rejected, because of what is in the catalogue. */
static bool apply(struct app *app, struct config *fresh, struct publish_policies *policies,
                  struct tls_pairs *pairs, struct crawler_names **names)
{
    if (app->node != NULL ? !shared_node_reconfigure(app->node, fresh)
                          : !bootstrap_sites(app->catalogue, fresh, false))
        return false;
    app_setup_log(fresh);
    app_use_tls(app, pairs);
    app_set_limits(app, fresh);
    if (*names != NULL && crawlers_use(app->context.crawlers, *names))
        *names = NULL; /* another's now */
    else if (*names != NULL)
        log_event(LOG_LEVEL_ERROR, "reload-incomplete",
                  "the crawlers are unchanged: limit exceeded: more than %u names since the start; "
                  "restart the server to apply them",
                  CRAWLERS_MAX - 1);
    app_retune_listeners(app, fresh);
    /* From here on only memory or the disk can fail: that is logged, and the rest is applied. */
    if (!source_set_reconfigure(app->sources, fresh))
        log_event(LOG_LEVEL_ERROR, "reload-incomplete",
                  "not all sources could be started; the preceding log lines say why");
    app_retune_trace(app, fresh);
    app_retune_notify(app, fresh);
    app_retune_indexnow(app, fresh);
    app_retune_engines(app, fresh);
    if (!publisher_reconfigure(app->context.publisher, policies))
        log_event(LOG_LEVEL_ERROR, "reload-incomplete",
                  "robots.txt, aliases, strict_host and page_style are unchanged: the catalogue "
                  "cannot be read");
    return true;
}

/* `first`: the first mistake in the file; "": none, and the log was sent the reason. */
static void count(struct app_context *context, bool good, const char *first)
{
    pthread_mutex_lock(&context->refusal_lock);
    if (good || first[0] != '\0')
        snprintf(context->refusal, REFUSAL_SIZE, "%s", first);
    else
        log_first_failure(context->refusal, REFUSAL_SIZE);
    pthread_mutex_unlock(&context->refusal_lock);
    context->reload_refused = !good;
    if (!good) {
        context->reloads_refused++;
        return;
    }
    context->reloads_applied++;
    context->config_loaded_at = time(NULL);
}

/* A reload cannot switch a listener between plain HTTP and TLS. */
static void keep_kind(struct tls_pairs *pairs, enum tls_side side, const char *before,
                      const char *after)
{
    if ((before == NULL) == (after == NULL))
        return;
    report_fixed(NULL, side == TLS_ADMIN ? "admin" : "server", "tls_cert", false);
    tls_pair_free(pairs->of[side]);
    pairs->of[side] = NULL;
}

void reload(struct app *app)
{
    struct publish_policies *policies = NULL;
    struct tls_pairs pairs = {{NULL}};
    struct crawler_names *names = NULL;
    struct changed changed = {.names = STR_INIT};
    char first[REFUSAL_SIZE] = "";

    notify_reloading();
    log_failures_as("reload-refused");
    struct config *fresh = app->again->read(app->again->context, report_mistake, first);
    bool good = fresh != NULL;
    if (good) {
        policies = configured_policies(fresh);
        good = app_load_tls(fresh, &pairs);
        good = source_set_check(app->sources, fresh) && policies != NULL && good;
        if (app->context.crawlers != NULL)
            good = (names = configured_crawlers(fresh)) != NULL && good;
    }
    if (good) {
        keep_kind(&pairs, TLS_PUBLIC, app->config->tls_cert, fresh->tls_cert);
        keep_kind(&pairs, TLS_ADMIN, app->config->admin_tls_cert, fresh->admin_tls_cert);
    }
    good = good && apply(app, fresh, policies, &pairs, &names);
    count(&app->context, good, first);
    if (good) {
        policies = NULL; /* another's now */
        config_compare(app->live, fresh, name_changed, &changed);
        config_compare(app->config, fresh, report_fixed, NULL);
        config_unref(app->live);
        app->live = fresh;
        if (changed.count > CHANGED_NAMED)
            str_append_format(&changed.names, " and %zu more", changed.count - CHANGED_NAMED);
        log_event(
            LOG_LEVEL_INFO, "reloaded",
            "%s%s; sites, robots files, sources and crawlers were reloaded",
            changed.count == 0 ? "no setting changed" : "changed: ", str_text(&changed.names));
    } else {
        config_unref(fresh);
        log_event(LOG_LEVEL_ERROR, "reload-refused",
                  "the new configuration was rejected; the previous one stays in effect");
    }
    crawler_names_free(names);
    app_free_tls(&pairs);
    if (policies != NULL)
        policies->free(policies);
    str_done(&changed.names);
    app_notify_ready(app);
}
