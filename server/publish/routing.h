/* The routing table: from a request's host and path to a page, robots.txt or an alias; made whole
 * from one registry and never changed. Internal to publish. */
#ifndef SITEMAPD_PUBLISH_ROUTING_H
#define SITEMAPD_PUBLISH_ROUTING_H

#include <stdatomic.h>

#include "server/publish/publisher.h"
#include "server/publish/slot.h"

/* The policies of the configuration, copied, by normalised origin. */
struct routing_policies {
    bool strict_host;
    size_t count;
    struct publish_site *sites; /* owned, with all strings */
};

bool routing_policies_init(struct routing_policies *out, const struct publisher_options *options);
void routing_policies_done(struct routing_policies *p);

/* Makes the table of `registry` (a reference is taken), with a slot from `slots` for each page,
 * which it marks `seen_in_registry`. The caller owns the one reference. NULL: out of memory. */
struct routing *routing_new(const struct registry *registry,
                            const struct routing_policies *policies, struct slot_table *slots);
void routing_ref(const struct routing *r);

/* The robots.txt of a site: the operator's text, then a Sitemap line for every page of every
 * index (sitemaps.org "Specifying the Sitemap location in your robots.txt file"). */
void robots_render(const struct registry_site *site, const char *prefix, struct str *out);

#endif
