/* SIGHUP: the configuration is read again, in a running server. A bad one is refused whole, every
 * mistake logged, and the old one stays. What cannot change in a running server is told. */
#ifndef SITEMAPD_RELOAD_H
#define SITEMAPD_RELOAD_H

struct app;

/* On the main thread, once the server is up. Logs what came of it. */
void reload(struct app *app);

#endif
