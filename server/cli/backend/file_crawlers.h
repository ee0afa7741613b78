/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The configured crawlers, and the stored ledger of a catalogue. Internal to server/cli/. */
#pragma once

#include "config/config.h"
#include "db/catalogue.h"
#include "server/crawlers/crawlers.h"

/* The ledger of the catalogue, built as a server does at its start. NULL, maybe reported, if that
 * fails. */
struct crawlers *file_crawlers_ledger(struct catalogue *catalogue, const struct config *config);
/* An empty ledger with the names and ranges of the configuration. NULL, and reported (`report`
 * NULL: on stderr), if these are invalid. */
struct crawlers *file_crawlers_new(const struct config *config, config_report *report,
                                   void *context);
