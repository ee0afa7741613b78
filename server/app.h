/* The assembly: the one place that sees every part. Opens the catalogue, starts publisher and
 * listeners, and ends them in the order that loses nothing (design.md 3, "Start and stop"). */
#ifndef SITEMAPD_APP_H
#define SITEMAPD_APP_H

struct config;

/* Serves until SIGTERM or SIGINT. `sites` are origins to make sure of (NULL-terminated or NULL).
 * Returns the process's exit status. */
int app_serve(const struct config *config, const char *const *sites);

#endif
