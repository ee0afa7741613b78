/* A plain list: one URL a line. Internal to ingest. */
#ifndef SITEMAPD_INGEST_LIST_H
#define SITEMAPD_INGEST_LIST_H

#include "server/ingest/core.h"

struct list;

/* `line` is the number of the first line. NULL when out of memory. */
struct list *list_new(struct core *core, uint64_t line);
/* False: stop, the core knows why. */
bool list_feed(struct list *l, const char *bytes, size_t len);
bool list_finish(struct list *l);
void list_free(struct list *l);

/* True where what a body begins with is no text: more than a tenth of control characters. (A NUL,
 * which no text has, is found by list_feed wherever it stands.) */
bool list_is_binary(const char *head, size_t len);

#endif
