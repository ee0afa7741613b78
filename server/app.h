/* The assembly: the one place that sees every part. Opens the catalogue, starts publisher and
 * listeners, and ends them in the order that loses nothing. */
#ifndef SITEMAPD_APP_H
#define SITEMAPD_APP_H

struct config;
struct config_reader;

/* Serves until SIGTERM or SIGINT; SIGHUP reloads through `again`. `sites` are origins to make sure
 * of (NULL-terminated or NULL). Returns the process's exit status. */
int app_serve(struct config *config, const char *const *sites, const struct config_reader *again);

#endif
