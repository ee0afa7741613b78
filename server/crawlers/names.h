/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Who a crawler is: the table of names with the product tokens and address ranges of each. A table
 * is immutable once made (but for its cache, which is atomic); any thread may ask it. Internal to
 * server/crawlers/. */
#pragma once

#include "server/crawlers/crawlers.h"
#include "server/crawlers/ranges.h"

struct crawler_name {
    char text[CRAWLER_NAME_MAX + 1];
    bool has_ranges;
    struct ranges ranges;
    uint8_t slot; /* of the counts and of the ledger, see crawlers.c */
};

/* `of[0]` is "other": every client that has no name. */
size_t names_count(const struct crawler_names *names);
struct crawler_name *names_at(struct crawler_names *names, size_t at);
/* The name that a User-Agent field bears, as a place in the table; NULL text: 0. */
size_t names_classify(struct crawler_names *names, const char *user_agent);
