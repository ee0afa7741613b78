/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The limits of the protocol (sitemaps.org, Google's index limits), and the units that the
 * catalogue and the publisher share. Operators cannot change these; config/config.h has those that
 * they can. */
#pragma once

#define LIMIT_PAGE_ENTRIES 50000u    /* entries of one index file */
#define LIMIT_PAGE_BYTES   52428800u /* bytes of one index file, uncompressed */
#define LIMIT_SITE_PAGES   500u      /* index files of one site: default of max_indexes */
/* the largest number of positions */
#define LIMIT_SITE_PAGES_MAX  (4294967295u / LIMIT_PAGE_ENTRIES)
#define LIMIT_SITE_PAGES_WARN 450u /* from here on a registration gets a warning */

/* Urlsets: the default and the largest number of pages; the page URLs of a page with news (Google's
 * news sitemaps). */
#define LIMIT_URLSET_PAGES     1000u
#define LIMIT_URLSET_PAGES_MAX 50000u
#define LIMIT_NEWS_ROWS        1000u
/* The lowest limit for the pages of a urlset: smaller pages would be too many files. */
#define LIMIT_PAGE_ENTRIES_MIN 1000u
#define LIMIT_PAGE_BYTES_MIN   1048576u
#define LIMIT_SITE_URLSETS     500u

#define SEGMENT_POSITIONS 250u /* positions that are rendered and compressed together */
#define PAGE_SEGMENTS     (LIMIT_PAGE_ENTRIES / SEGMENT_POSITIONS)
#define PAGE_SEGMENT_BITS ((PAGE_SEGMENTS + 63) / 64) /* words, one bit for each segment */

#define LOC_MIN_CHARS           12u
#define LOC_MAX_CHARS           2047u
#define LOC_LINT_CHARS          1024u /* longer: accepted, warned about (Yandex) */
#define LASTMOD_MAX_CHARS       35u   /* YYYY-MM-DDThh:mm:ss.nnnnnnnnn+hh:mm */
#define LASTMOD_FRACTION_DIGITS 9u
#define LASTMOD_FUTURE_SECONDS  86400 /* further ahead: dropped */
#define LIMIT_IMAGES            1000u /* of a page URL (Google, "Image sitemaps") */
#define DIGEST_MAX_BYTES        256u
#define EXTENSIONS_MAX_BYTES    262144u /* of a page URL, as canonical XML */
#define NAME_MAX_BYTES          64u     /* of a source or token */
#define INDEX_PATH_MAX_CHARS    512u
#define HOST_MAX_CHARS          253u
