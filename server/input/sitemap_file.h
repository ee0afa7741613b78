/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What is remarked of a sitemap that is good as a whole: for each rule how many break it, where the
 * first ones stand and what the first one says. Bounded, however many there are. Plain values;
 * pure functions, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/code.h"
#include "server/rules/host_map.h"
#include "server/rules/limits.h"
#include "server/rules/url.h"

#define SITEMAP_MAX_REMARKS     8u /* rules of one file; what breaks a further one is not reported */
#define SITEMAP_REMARK_PLACES   3u    /* of each */
#define SITEMAP_REMARK_GIVEN    96u   /* bytes of what is there, with the NUL */
#define SITEMAP_REMARK_SENTENCE 320u  /* bytes that hold any sentence */
#define SITEMAP_REMARKS_TEXT    2048u /* bytes that hold any text form */

struct sitemap_remark {
    enum rule_code code;
    uint64_t count;                        /* pages, or what else breaks the rule */
    uint64_t lines[SITEMAP_REMARK_PLACES]; /* 1-based, of the first ones; 0: unknown, or no more */
    uint64_t column;                       /* of the first one; 0: unknown */
    char given[SITEMAP_REMARK_GIVEN];      /* what is there, for people; "" where nothing does */
};

struct sitemap_remarks {
    size_t count;
    struct sitemap_remark at[SITEMAP_MAX_REMARKS]; /* in the order of the first ones */
};

/* Writes a sentence of one remark, without the place of the first one, SITEMAP_REMARK_SENTENCE
 * bytes:
 * `"/a" must be an absolute URL; 3 times, next on line 7`. */
void sitemap_remark_report(const struct sitemap_remark *remark, char *out);

/* The text form that is kept: a line for each. SITEMAP_REMARKS_TEXT bytes; "" for none. */
void sitemap_remarks_write(const struct sitemap_remarks *r, char *out);
/* The same back. Skips what it does not know. */
void sitemap_remarks_read(const char *text, struct sitemap_remarks *out);

/* The one check of a sitemap's bytes, for polls, folders, `probe`, `doctor` and splits: as they
 * arrive it verifies a `urlset` with any extension namespaces, a text list of URLs, or a feed, each
 * also gzipped. Counts, holds it to the protocol's limits, and hashes what it says, so that a
 * changed comment, indentation, a re-gzip or a touch is not a change. Memory is bounded whatever
 * the input: nothing of the file is kept. The codes and what crawlers do about each are in
 * docs/remote.md, "Codes". */

#define SITEMAP_FILE_MAX_URLS  50000u
#define SITEMAP_FILE_MAX_BYTES 52428800u /* decoded */
#define SITEMAP_FILE_MAX_DEPTH 32u       /* nested elements */
#define SITEMAP_FILE_MAX_TEXT  65536u    /* bytes of one element's text, or one line */

enum sitemap_file_kind {
    SITEMAP_FILE_URLSET,
    SITEMAP_FILE_TEXT,
    SITEMAP_FILE_FEED,   /* RSS or Atom, which an index may list */
    SITEMAP_FILE_EMPTY,  /* a urlset, text list or feed without URLs */
    SITEMAP_FILE_INDEX,  /* a sitemap index: an index may not list one */
    SITEMAP_FILE_PAGE,   /* an HTML page: an error page, a login */
    SITEMAP_FILE_WALL,   /* an HTML page that says nothing about the sitemap: a challenge of a bot
                            wall, or of maintenance */
    SITEMAP_FILE_OTHER,  /* no sitemap at all: robots.txt, an image, other XML */
    SITEMAP_FILE_BROKEN, /* meant as a sitemap, but refused */
};

/* A sitemap whose pages crawlers can read. */
static inline bool sitemap_file_is_good(enum sitemap_file_kind kind)
{
    return kind == SITEMAP_FILE_URLSET || kind == SITEMAP_FILE_TEXT || kind == SITEMAP_FILE_FEED;
}

/* What the name of a file, or its Content-Type, says of its bytes. */
enum sitemap_packing { SITEMAP_PACKING_ANY, SITEMAP_PACKING_PLAIN, SITEMAP_PACKING_GZIP };
/* By its name: GZIP where it ends in .gz, else PLAIN. */
enum sitemap_packing sitemap_packing_of(const char *path, size_t len);
/* What is left to expect of bytes whose answer has this Content-Encoding and Content-Type (NULL:
 * none), where the name says `name`. */
enum sitemap_packing sitemap_packing_reported(enum sitemap_packing name,
                                              const char *content_encoding,
                                              const char *content_type);

/* What a file is checked by, beside its content. Borrowed until its verifier is freed. */
struct sitemap_expect {
    int64_t now;           /* Unix seconds, for the pages' lastmods */
    const struct url *url; /* the file's own; NULL: where its pages are is not checked */
    /* Hosts ("www.example.com", or with a port) whose pages it may list beside its own host's: its
     * site's, with the aliases and cross hosts. NULL where host_count is 0: then they are not
     * known, and a file of which all pages are elsewhere is good with a remark, else it is BROKEN.
     */
    const char *const *hosts;
    size_t host_count;
    enum sitemap_packing packing;
    const struct host_map *map; /* that it is read through; `url` is mapped already. NULL: none */
};

struct sitemap_file {
    enum sitemap_file_kind kind;
    bool gzip;   /* the bytes were gzip, content codings aside */
    bool no_xml; /* OTHER: text that begins as no XML does, nor HTML */
    bool feed;   /* it is a feed, be it EMPTY or BROKEN */
    uint64_t urls;
    uint64_t bytes;                             /* decoded */
    uint64_t hash[2];                           /* XXH3-128 of the parsed content */
    uint64_t dateless[2];                       /* the same without the dates of its pages */
    char newest_lastmod[LASTMOD_MAX_CHARS + 1]; /* of its pages; "" where none bears one */
    bool one_lastmod;  /* more than one URL, and all bear the same lastmod */
    bool stamp;        /* and that is the date of a build, not theirs, with RULE_ONE_LASTMOD */
    uint64_t bad_urls; /* without a loc, or with one that the rules refuse */
    /* What is wrong with some of its pages, or with itself, and costs it nothing. Of a file that is
     * BROKEN what was seen until then. */
    struct sitemap_remarks remarks;
    /* What it is where it is not good, as in docs/remote.md, "Codes": a stable word, static, and a
     * sentence; "" where it is good. */
    const char *code;
    uint64_t line, column; /* 1-based; 0: unknown */
    char detail[192];
};

/* True where `word` is the code of a file that is not good. Takes NULL. */
bool sitemap_file_has_code(const char *word);

struct sitemap_verifier;

/* NULL when out of memory. One thread. */
struct sitemap_verifier *sitemap_verifier_new(const struct sitemap_expect *expect);
/* Before the first byte of an HTTP answer's body: its Content-Encoding (several fields joined with
 * commas) and Content-Type; NULL: it has none. Codings come off before the file is checked. */
void sitemap_verifier_head(struct sitemap_verifier *v, const char *content_encoding,
                           const char *content_type);
/* Before the first byte: who is given the file's bytes, content codings removed, as they come. */
void sitemap_verifier_copy(struct sitemap_verifier *v,
                           void (*copy)(void *context, const char *bytes, size_t len),
                           void *context);
/* Takes the next bytes. False once the verdict is final (the rest need not be read). */
bool sitemap_verifier_feed(struct sitemap_verifier *v, const void *bytes, size_t len);
/* The input is over: fills `*out`. False when out of memory. */
bool sitemap_verifier_finish(struct sitemap_verifier *v, struct sitemap_file *out);
void sitemap_verifier_free(struct sitemap_verifier *v);
