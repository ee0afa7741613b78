/* One <sitemap> element: what is gathered of it, and what becomes of that. Internal to ingest. */
#ifndef SITEMAPD_INGEST_XML_ITEM_H
#define SITEMAPD_INGEST_XML_ITEM_H

#include "server/ingest/judge.h"
#include "server/ingest/xml_text.h"

#define XML_LASTMOD_BYTES 256 /* a date has 35 at most; what is longer is none */

struct xml_item {
    uint64_t line; /* where it begins */
    unsigned locs, lastmods;
    bool loc_markup, lastmod_markup; /* an element stands within */
    struct xml_text loc, lastmod;    /* of the first of each */
    struct xml_text direct;          /* text beside the elements */
    char loc_data[READER_MAX_ITEM_BYTES], lastmod_data[XML_LASTMOD_BYTES],
        direct_data[LOC_MAX_CHARS + 1];
};

void xml_item_begin(struct xml_item *item, uint64_t line);
/* Fills `raw`, which borrows from `item`. Returns true where text was passed over that stood
 * beside the elements. */
bool xml_item_read(const struct xml_item *item, struct raw_entry *raw);

#endif
