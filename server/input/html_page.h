/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Classifies an HTML page that was received instead of a sitemap: the challenge of a bot wall, a
 * maintenance page, or any other page. Recognised by names of their parts, and by phrases in text
 * and title. Pure, thread safe. */
#pragma once

#include <stddef.h>

enum html_page_kind { HTML_PAGE_ANY, HTML_PAGE_WALL, HTML_PAGE_MAINTENANCE };

#define HTML_PAGE_TITLE 64u

struct html_page {
    enum html_page_kind kind;
    const char *wall;            /* the product, for people: "Anubis"; static; NULL: unknown */
    char title[HTML_PAGE_TITLE]; /* for people; "" */
};

/* Classifies a page by its first bytes, at most FRAME_BLOCK_BYTES. */
void html_page_check(const char *head, size_t len, struct html_page *out);
/* Describes the page for people: "a challenge page of a bot protection (Anubis)". */
#define HTML_PAGE_WHAT 128u
void html_page_describe(const struct html_page *page, char out[static HTML_PAGE_WHAT]);
/* "bot-wall", "maintenance-page"; NULL for any other page. */
const char *html_page_code(const struct html_page *page);
