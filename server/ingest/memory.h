/* Whether memory has run out within expat or jansson. Neither tells it reliably: expat 2.5 takes a
 * prefix that it found no room for as unbound, jansson 2.14 a string as a syntax
 * error, or takes it with a character missing; and what is
 * the machine's fault must not be told as the document's. Internal to ingest. Thread safe. */
#ifndef SITEMAPD_INGEST_MEMORY_H
#define SITEMAPD_INGEST_MEMORY_H

#include <expat.h>
#include <stdbool.h>

/* XML_ParserCreateNS; the caller frees it with XML_ParserFree. NULL when out of memory. */
XML_Parser memory_new_parser(const char *encoding, char separator);

/* Begins to watch what this thread allocates in the two. */
void memory_watch(void);
/* Whether any of it failed since then. */
bool memory_failed(void);

#endif
