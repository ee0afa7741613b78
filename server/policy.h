/* What the configuration says of its sites, in the publisher's form: aliases and robots files. */
#ifndef SITEMAPD_POLICY_H
#define SITEMAPD_POLICY_H

#include <stddef.h>

#include "config/config.h"
#include "server/publish/publisher.h"

/* A robots_file longer than this is refused (RFC 9309 2.5 has crawlers read 500 KiB at least). */
#define POLICY_MAX_ROBOTS_BYTES (500u * 1024)

struct policy;

/* Reads every robots_file. NULL: one could not be read, or no memory; logged. `config` must outlive
 * it. */
struct policy *policy_new(const struct config *config);
size_t policy_count(const struct policy *p);
const struct publish_site *policy_sites(const struct policy *p);
/* Takes NULL. */
void policy_free(struct policy *p);

#endif
