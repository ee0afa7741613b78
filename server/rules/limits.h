/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The protocol's limits (sitemaps.org protocol, Google's index limits) and the units that the
 * catalogue and the publisher share. Nothing here can be set by an operator; what can is in
 * config/config.h. */
#pragma once

#define LIMIT_PAGE_ENTRIES    50000u    /* entries of one index file */
#define LIMIT_PAGE_BYTES      52428800u /* bytes of one index file, uncompressed */
#define LIMIT_SITE_PAGES      500u      /* index files of one site: default of max_indexes */
#define LIMIT_SITE_PAGES_MAX  (4294967295u / LIMIT_PAGE_ENTRIES) /* what positions can number */
#define LIMIT_SITE_PAGES_WARN 450u /* from here on a registration warns */

/* Of urlsets: how many pages one may have where nobody says, and at most; pages URLs of a page of
 * news (Google's news sitemaps). */
#define LIMIT_URLSET_PAGES     1000u
#define LIMIT_URLSET_PAGES_MAX 50000u
#define LIMIT_NEWS_ROWS        1000u
/* The least that a urlset's pages may be held to: smaller ones would be as many files. */
#define LIMIT_PAGE_ENTRIES_MIN 1000u
#define LIMIT_PAGE_BYTES_MIN   1048576u
#define LIMIT_SITE_URLSETS     500u

#define SEGMENT_POSITIONS 250u /* positions rendered and compressed as one unit */
#define PAGE_SEGMENTS     (LIMIT_PAGE_ENTRIES / SEGMENT_POSITIONS)
#define PAGE_SEGMENT_BITS ((PAGE_SEGMENTS + 63) / 64) /* words with a bit for each */

#define LOC_MIN_CHARS           12u
#define LOC_MAX_CHARS           2047u
#define LOC_LINT_CHARS          1024u /* longer: accepted, warned about (Yandex) */
#define LASTMOD_MAX_CHARS       35u   /* YYYY-MM-DDThh:mm:ss.nnnnnnnnn+hh:mm */
#define LASTMOD_FRACTION_DIGITS 9u
#define LASTMOD_FUTURE_SECONDS  86400 /* further ahead: dropped */
#define LIMIT_IMAGES            1000u /* of a page (Google, "Image sitemaps") */
#define DIGEST_MAX_BYTES        256u
#define EXTENSIONS_MAX_BYTES    262144u /* of a page URL, as canonical XML */
#define NAME_MAX_BYTES          64u     /* of a source or token */
#define INDEX_PATH_MAX_CHARS    512u
#define HOST_MAX_CHARS          253u
