/* What is kept of crawlers, in the writer's transaction. Internal to db/; the writer's thread. */
#ifndef SITEMAPD_DB_WRITE_APPLY_CRAWLER_H
#define SITEMAPD_DB_WRITE_APPLY_CRAWLER_H

#include "db/catalogue.h"
#include "db/write/tx.h"

/* Writes tables of the node's own alone: no revision. */
enum catalogue_status apply_crawlers(struct tx *tx, const struct change *change);

#endif
