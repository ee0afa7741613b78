/* The character data between two tags as its pieces arrive: without the white space around it,
 * bounded, copied in whole pieces, for there is much of it. Internal to ingest. */
#ifndef SITEMAPD_INGEST_SITEMAP_RUN_H
#define SITEMAPD_INGEST_SITEMAP_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "server/ingest/sitemap_file.h"

struct sitemap_run {
    size_t len;
    char data[SITEMAP_FILE_MAX_TEXT];
};

/* Takes a piece. False where it has more than fits; `*at` is then the place in the piece of the
 * first byte that is too many. White space too many is no fault while nothing follows it. */
bool sitemap_run_append(struct sitemap_run *run, const char *bytes, size_t len, size_t *at);
/* The length without the white space behind. */
size_t sitemap_run_end(const struct sitemap_run *run);

#endif
