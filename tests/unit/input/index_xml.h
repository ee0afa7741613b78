/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The pieces of a sitemap index. */
#pragma once

#include "tests/unit/input/check.h"

#define NS   "http://www.sitemaps.org/schemas/sitemap/0.9"
#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define OPEN "<sitemapindex xmlns=\"" NS "\">"
#define SHUT "</sitemapindex>"
#define URL  "https://example.com/a.xml"
#define ONE  "<sitemap><loc>" URL "</loc></sitemap>"
