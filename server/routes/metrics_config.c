/* The configuration in force, and the certificate of the public listener. */
#include "server/routes/exposition.h"
#include "server/routes/metrics_parts.h"

void metrics_append_config(struct str *out, const struct app_context *app)
{
    int64_t expires = app->certificate_expires;

    metric_family(out, "sitemapd_config_reloads_total", "counter",
                  "Reloads of the configuration, by what came of them.");
    metric_sample(out, "sitemapd_config_reloads_total", LABELS("result", "applied"),
                  app->reloads_applied);
    metric_sample(out, "sitemapd_config_reloads_total", LABELS("result", "refused"),
                  app->reloads_refused);
    metric_gauge(out, "sitemapd_config_refused", "1 where the last reload was refused.",
                 app->reload_refused ? 1 : 0);
    metric_gauge(out, "sitemapd_config_loaded_seconds",
                 "When the configuration in force was read, Unix time.",
                 (uint64_t)app->config_loaded_at);
    if (expires > 0)
        metric_gauge(out, "sitemapd_tls_certificate_expires_seconds",
                     "When the certificate of the public listener expires, Unix time.",
                     (uint64_t)expires);
}
