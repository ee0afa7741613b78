/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What an HTML page is that came where a sitemap was due: a page like any other, the challenge of a
 * bot wall, or a maintenance page. Recognised by the names that such pages use for their own parts,
 * and by what they say to people. Pure, thread safe. */
#pragma once

#include <stddef.h>

enum html_page_kind { HTML_PAGE_ANY, HTML_PAGE_WALL, HTML_PAGE_MAINTENANCE };

#define HTML_PAGE_TITLE 64u

struct html_page {
    enum html_page_kind kind;
    const char *wall;            /* whose wall it is, for people: "Anubis"; static; NULL: unknown */
    char title[HTML_PAGE_TITLE]; /* for people; "" */
};

/* Checks a page by its first bytes; no more than FRAME_BLOCK_BYTES are looked at. */
void html_page_check(const char *head, size_t len, struct html_page *out);
/* What it is, for people: "a challenge page of a bot wall (Anubis)". */
#define HTML_PAGE_WHAT 128u
void html_page_describe(const struct html_page *page, char out[static HTML_PAGE_WHAT]);
/* "bot-wall", "maintenance-page"; NULL for any other page. */
const char *html_page_code(const struct html_page *page);
