/* The lists of hosts that a site is made or changed with: cross hosts, host aliases. Internal to
 * db/; the writer's thread. */
#ifndef SITEMAPD_DB_SITE_HOSTS_H
#define SITEMAPD_DB_SITE_HOSTS_H

#include "db/catalogue.h"
#include "db/tx.h"

#define SITE_HOST_SIZE (HOST_MAX_CHARS + 7)

struct site_hosts {
    char (*name)[SITE_HOST_SIZE]; /* owned; normalised, by bytes, each once */
    size_t count;
};

/* Normalises a NULL-terminated list (NULL: empty). Refuses with `field` (static) what is no host,
 * and lists that are too long. The caller ends `out` with site_hosts_done, whatever came of it. */
enum catalogue_status site_hosts_read(const char *const *given, const char *field,
                                      struct site_hosts *out, struct change_result *result);
bool site_hosts_equal(const struct site_hosts *a, const char *const *b, size_t b_count);
/* A host alias belongs to one site: with a token for one, nobody takes requests from another.
 * Declines where one of `alias` is taken. `site` (NULL: a new one) keeps what it has. The
 * configuration's word counts before all others', also at request time. */
void site_hosts_check_free(const struct registry *r, const struct change *change,
                           const struct registry_site *site, const struct site_hosts *alias,
                           struct change_result *result);
/* Puts the list in the place of the site's own; `kind` is "cross" or "alias". */
enum catalogue_status site_hosts_write(struct tx *tx, int64_t site_id, const char *kind,
                                       const struct site_hosts *hosts);
void site_hosts_done(struct site_hosts *hosts);

#endif
