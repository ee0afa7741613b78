/* Fills the ledger from what a catalogue keeps of it (db/crawler.h). */
#ifndef SITEMAPD_CRAWLERS_KEPT_H
#define SITEMAPD_CRAWLERS_KEPT_H

#include "db/catalogue.h"
#include "server/crawlers/crawlers.h"

/* Puts all that is kept, once the pages are told and before anything is fetched. */
enum catalogue_status crawlers_put_kept(struct crawlers *c, struct catalogue_view *view);
/* Takes in what logs told; `*last`: up to where (struct crawlers_kept, visits_taken). */
enum catalogue_status crawlers_take_in(struct crawlers *c, struct catalogue_view *view,
                                       int64_t *last);

#endif
