/* The hash of what a sitemap says: XXH3-128 over a stream of framed fields, so that no two
 * sequences of fields run into the same bytes. Internal to ingest. */
#ifndef SITEMAPD_INGEST_SITEMAP_HASH_H
#define SITEMAPD_INGEST_SITEMAP_HASH_H

#include <stddef.h>
#include <stdint.h>

/* What a field is. The values are hashed, and hashes are kept in catalogues: never renumber. */
enum sitemap_hash_tag {
    HASH_LIST = 'L',      /* a text list begins; an XML file begins with its root's start */
    HASH_LINE = 'l',      /* one line of it */
    HASH_START = '<',     /* an element begins: `URI LF name` */
    HASH_ATTRIBUTE = '@', /* of the element that has just begun: `URI LF name` */
    HASH_VALUE = '=',     /* of that attribute */
    HASH_TEXT = 't',      /* character data between two tags */
    HASH_END = '>',       /* an element ends */
};

struct sitemap_hash;

/* NULL when out of memory. */
struct sitemap_hash *sitemap_hash_new(void);
void sitemap_hash_field(struct sitemap_hash *h, enum sitemap_hash_tag tag, const char *bytes,
                        size_t len);
/* The attributes of an element, in the order of their names: `list` is names and values in turn
 * with NULL behind, as expat gives it, and is sorted in place. Names are unique. */
void sitemap_hash_attributes(struct sitemap_hash *h, const char **list);
/* The hash of all fields so far, high half first. */
void sitemap_hash_get(struct sitemap_hash *h, uint64_t out[2]);
void sitemap_hash_free(struct sitemap_hash *h);

#endif
