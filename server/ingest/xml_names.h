/* Which element is which, by namespace and local name as expat gives them (`URI LF name`).
 * Pure. Internal to ingest. */
#ifndef SITEMAPD_INGEST_XML_NAMES_H
#define SITEMAPD_INGEST_XML_NAMES_H

#include <stdbool.h>

#define XML_NAME_SEPARATOR '\n' /* no namespace can hold it: expat refuses those that do */

enum xml_space {
    XML_SPACE_SITEMAP, /* http://www.sitemaps.org/schemas/sitemap/0.9 */
    XML_SPACE_MEANT,   /* none, or a known misspelling or forerunner of it */
    XML_SPACE_OTHER,   /* an extension's */
};

/* The local name, borrowed from `name`. */
const char *xml_name_local(const char *name);
enum xml_space xml_name_space(const char *name);

#endif
