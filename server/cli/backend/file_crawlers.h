/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Who is a crawler, by the configuration, and what a catalogue keeps of them. Internal to
 * server/cli/. */
#pragma once

#include "config/config.h"
#include "db/catalogue.h"
#include "server/crawlers/crawlers.h"

/* The ledger of the catalogue as it is now, as a server makes it at its start. NULL, which may have
 * been reported, where it cannot be made. */
struct crawlers *file_crawlers_ledger(struct catalogue *catalogue, const struct config *config);
/* An empty ledger with the names and ranges of the configuration. NULL, and reported (`report`
 * NULL: on stderr), where these are none. */
struct crawlers *file_crawlers_new(const struct config *config, config_report *report,
                                   void *context);
