/* What is known of the pages that a sitemap lists, and what its two forms (XML, text) share.
 * Internal to ingest. */
#ifndef SITEMAPD_INGEST_SITEMAP_PAGES_H
#define SITEMAPD_INGEST_SITEMAP_PAGES_H

#include "server/ingest/core.h"
#include "server/ingest/sitemap_file.h"
#include "server/ingest/sitemap_hash.h"
#include "server/rules/lastmod.h"

#define PAGE_LASTMOD_BYTES 64u /* longer ones are not compared with the one before */

struct sitemap_pages {
    int64_t now;
    uint64_t urls, bad_urls;
    uint64_t dated;        /* of them with a lastmod that is valid and not ahead */
    bool lastmods_differ;  /* among those */
    struct lastmod newest; /* "" where none is dated */
    /* The last lastmod that was read, and from what: builds stamp all pages alike, and what is
     * alike need not be read twice. */
    struct lastmod one; /* of the last valid one */
    bool one_valid;     /* what `given` holds was valid */
    size_t given_len;   /* 0: none, or too long to keep */
    char given[PAGE_LASTMOD_BYTES];
};

/* What a form works on. Of `core` only error, options and bytes are used; READER_WRONG_KIND is no
 * fault but says that the file is `kind`. */
struct sitemap_work {
    struct core core;
    enum sitemap_file_kind kind;
    struct sitemap_pages pages;
    struct sitemap_hash *hash;
};

/* Counts one more page. False: it is one too many, and the core knows. */
bool sitemap_work_add_page(struct sitemap_work *w, uint64_t line, uint64_t column);
/* The file is no sitemap, but `kind`. Returns false, for tail calls. */
bool sitemap_work_other(struct sitemap_work *w, enum sitemap_file_kind kind);

/* Judges the loc of a page; counts a bad one. */
void sitemap_pages_loc(struct sitemap_pages *p, const char *text, size_t len);
/* Takes the lastmod of a page. */
void sitemap_pages_lastmod(struct sitemap_pages *p, const char *text, size_t len);
/* See struct sitemap_file. */
bool sitemap_pages_one_lastmod(const struct sitemap_pages *p);
/* True where `text` begins as an absolute http or https URL does. */
bool sitemap_pages_is_url(const char *text, size_t len);

#endif
