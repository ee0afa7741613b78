/* Verifies one sitemap file as its bytes arrive: a `urlset` with any extension namespaces, or a
 * text list of URLs, each also gzipped (told by content, not name). Counts, holds it to the
 * protocol's limits, and hashes what it says, so that a changed comment, indentation, a re-gzip or
 * a touch is no change. Memory is bounded whatever the input: nothing of the file is kept. */
#ifndef SITEMAPD_INGEST_SITEMAP_FILE_H
#define SITEMAPD_INGEST_SITEMAP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/limits.h"

#define SITEMAP_FILE_MAX_URLS  50000u
#define SITEMAP_FILE_MAX_BYTES 52428800u /* decoded */
#define SITEMAP_FILE_MAX_DEPTH 32u       /* nested elements */
#define SITEMAP_FILE_MAX_TEXT  65536u    /* bytes of one element's text, or one line */

enum sitemap_file_kind {
    SITEMAP_FILE_URLSET,
    SITEMAP_FILE_TEXT,
    SITEMAP_FILE_EMPTY,  /* a urlset or text list without URLs: left out, without fault */
    SITEMAP_FILE_INDEX,  /* a sitemap index: an index may not list one; beside sitemaps, ignored */
    SITEMAP_FILE_OTHER,  /* no sitemap at all: robots.txt, HTML, a feed, an image; ignored */
    SITEMAP_FILE_BROKEN, /* meant as a sitemap, but refused: see `code` */
};

struct sitemap_file {
    enum sitemap_file_kind kind;
    bool gzip; /* the bytes were gzip */
    uint64_t urls;
    uint64_t bytes;                             /* decoded */
    uint64_t hash[2];                           /* XXH3-128 of the parsed content */
    char newest_lastmod[LASTMOD_MAX_CHARS + 1]; /* of its pages; "" where none bears one */
    bool one_lastmod;  /* more than one URL, and all bear the same lastmod: a build stamp */
    uint64_t bad_urls; /* locs that the rules refuse: counted, no fault of the file */
    /* BROKEN: why. `code` is a stable word: "malformed-xml", "truncated", "doctype",
     * "too-many-urls", "file-too-large", "gzip-bomb", "malformed-gzip", "nesting-too-deep",
     * "text-too-long", "not-utf8", "empty-file" (no byte: half-written); static, "" otherwise. */
    const char *code;
    uint64_t line, column; /* 1-based; 0: unknown */
    char detail[192];
};

struct sitemap_verifier;

/* `now` (Unix seconds) judges the pages' lastmods. NULL when out of memory. One thread. */
struct sitemap_verifier *sitemap_verifier_new(int64_t now);
/* Takes the next bytes. False once the verdict is final (the rest need not be read). */
bool sitemap_verifier_feed(struct sitemap_verifier *v, const void *bytes, size_t len);
/* The input is over: fills `*out`. False when out of memory. */
bool sitemap_verifier_finish(struct sitemap_verifier *v, struct sitemap_file *out);
void sitemap_verifier_free(struct sitemap_verifier *v);

#endif
