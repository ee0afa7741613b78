/* What a catalogue keeps of crawlers, for backend_file.c. Internal to server/cli/. */
#pragma once

#include "server/cli/backend/backend.h"
#include "server/crawlers/crawlers.h"

/* As the functions of server/cli/backend/backend.h. The configuration says who is a crawler. */
enum catalogue_status file_crawlers(struct catalogue_view *view, const struct config *config,
                                    const struct registry_site *site, backend_crawler_each *each,
                                    void *context);
enum catalogue_status file_crawler_pages(struct catalogue_view *view, const struct config *config,
                                         const char *name, bool stale,
                                         backend_crawler_page_each *each, void *context);
/* An empty ledger with the names and ranges of the configuration. NULL, and told (`report` NULL: on
 * stderr), where these are none. */
struct crawlers *file_crawlers_new(const struct config *config, config_report *report,
                                   void *context);
