/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Remarks on a sitemap that is good as a whole: for each rule how many pages break it, the places
 * of the first ones, and the text of the first one. Bounded, however many there are. Plain values;
 * pure functions, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/code.h"
#include "server/rules/host_map.h"
#include "server/rules/limits.h"
#include "server/rules/url.h"

#define SITEMAP_MAX_REMARKS     8u    /* rules for one file; further ones are not reported */
#define SITEMAP_REMARK_PLACES   3u    /* for each rule */
#define SITEMAP_REMARK_GIVEN    96u   /* bytes of the quoted text, with the NUL */
#define SITEMAP_REMARK_SENTENCE 320u  /* enough for any sentence */
#define SITEMAP_REMARKS_TEXT    2048u /* enough for any text form */

struct sitemap_remark {
    enum rule_code code;
    uint64_t count; /* pages, or other places, that break the rule */
    /* 1-based, of the first places; 0: unknown, or no more */
    uint64_t lines[SITEMAP_REMARK_PLACES];
    uint64_t column;                  /* of the first place; 0: unknown */
    char given[SITEMAP_REMARK_GIVEN]; /* the text there, for people; "": none */
};

struct sitemap_remarks {
    size_t count;
    struct sitemap_remark at[SITEMAP_MAX_REMARKS]; /* in the order of their first places */
};

/* Writes the sentence of a remark, without its first place, SITEMAP_REMARK_SENTENCE bytes: `"/a"
 * must be an absolute URL; 3 times, next on line 7`. */
void sitemap_remark_report(const struct sitemap_remark *remark, char *out);

/* Writes the text form that is stored, a line for each remark. SITEMAP_REMARKS_TEXT bytes; "":
 * none. */
void sitemap_remarks_write(const struct sitemap_remarks *r, char *out);
/* Parses that text form. Skips unknown rules. */
void sitemap_remarks_read(const char *text, struct sitemap_remarks *out);

/* Verifies the bytes of a sitemap as they arrive, for polls, folders, `probe`, `doctor` and splits:
 * a `urlset` with any extension namespaces, a text list of URLs, or a feed, each also gzipped.
 * Counts pages, checks the protocol's limits, and hashes the parsed content, so that a new comment,
 * indentation, compression or mtime is not a change. Memory is bounded whatever the input: the file
 * is not kept. docs/remote.md, "Codes", has the codes and what crawlers do about each. */

#define SITEMAP_FILE_MAX_URLS  50000u
#define SITEMAP_FILE_MAX_BYTES 52428800u /* decoded */
#define SITEMAP_FILE_MAX_DEPTH 32u       /* nested elements */
#define SITEMAP_FILE_MAX_TEXT  65536u    /* bytes of one element's text, or one line */

enum sitemap_file_kind {
    SITEMAP_FILE_URLSET,
    SITEMAP_FILE_TEXT,
    SITEMAP_FILE_FEED,  /* RSS or Atom, which an index may list */
    SITEMAP_FILE_EMPTY, /* a urlset, text list or feed without URLs */
    SITEMAP_FILE_INDEX, /* a sitemap index: an index may not list one */
    SITEMAP_FILE_PAGE,  /* an HTML page: an error page, a login */
    /* an HTML page that says nothing about the sitemap: a challenge of a bot wall, or a maintenance
     * page */
    SITEMAP_FILE_WALL,
    SITEMAP_FILE_OTHER,  /* not a sitemap at all: robots.txt, an image, other XML */
    SITEMAP_FILE_BROKEN, /* intended as a sitemap, but invalid */
};

/* Whether crawlers can read the pages of the sitemap. */
static inline bool sitemap_file_is_good(enum sitemap_file_kind kind)
{
    return kind == SITEMAP_FILE_URLSET || kind == SITEMAP_FILE_TEXT || kind == SITEMAP_FILE_FEED;
}

/* The packing that the name of a file, or its Content-Type, announces. */
enum sitemap_packing { SITEMAP_PACKING_ANY, SITEMAP_PACKING_PLAIN, SITEMAP_PACKING_GZIP };
/* By the name: GZIP if it ends in .gz, else PLAIN. */
enum sitemap_packing sitemap_packing_of(const char *path, size_t len);
/* The packing to expect after Content-Encoding is removed, by these headers (NULL: none) and the
 * packing `name` that the name announces. */
enum sitemap_packing sitemap_packing_reported(enum sitemap_packing name,
                                              const char *content_encoding,
                                              const char *content_type);

/* Parameters of the verification. Borrowed until the verifier is freed. */
struct sitemap_expect {
    int64_t now;           /* Unix seconds, for the pages' lastmods */
    const struct url *url; /* of the file; NULL: do not check the hosts and folders of its pages */
    /* Hosts ("www.example.com", or with a port) whose pages it may list besides its own host: those
     * of its site, with aliases and cross hosts. If all pages are on other hosts, the file is
     * BROKEN. With host_count 0 (and NULL) the hosts are unknown, and such a file is good with a
     * remark. */
    const char *const *hosts;
    size_t host_count;
    enum sitemap_packing packing;
    const struct host_map *map; /* applied to the file; `url` is mapped already. NULL: none */
};

struct sitemap_file {
    enum sitemap_file_kind kind;
    bool gzip;   /* the file is gzip, apart from content codings */
    bool no_xml; /* OTHER: text that begins neither like XML nor like HTML */
    bool feed;   /* it is a feed, also if it is EMPTY or BROKEN */
    uint64_t urls;
    uint64_t bytes;                             /* decoded */
    uint64_t hash[2];                           /* XXH3-128 of the parsed content */
    uint64_t dateless[2];                       /* the same without the dates of its pages */
    char newest_lastmod[LASTMOD_MAX_CHARS + 1]; /* of its pages; "": none has one */
    bool one_lastmod; /* more than one URL, and all have the same lastmod */
    /* and that is the date of a build, not of the pages; with RULE_ONE_LASTMOD */
    bool stamp;
    uint64_t bad_urls; /* without a loc, or with an invalid one */
    /* Faults of single pages, or of the file, that do not make it bad. For a BROKEN file, those
     * before the fatal one. */
    struct sitemap_remarks remarks;
    /* Why it is not good (docs/remote.md, "Codes"): a stable word, static, and a sentence; "" if it
     * is good. */
    const char *code;
    uint64_t line, column; /* 1-based; 0: unknown */
    char detail[192];
};

/* True if `word` is the code of a file that is not good. Accepts NULL. */
bool sitemap_file_has_code(const char *word);

struct sitemap_verifier;

/* NULL when out of memory. One thread. */
struct sitemap_verifier *sitemap_verifier_new(const struct sitemap_expect *expect);
/* Sets the headers of an HTTP response: Content-Encoding (several fields joined with commas) and
 * Content-Type; NULL: none. Call it before the first byte. Codings are removed before the file is
 * checked. */
void sitemap_verifier_head(struct sitemap_verifier *v, const char *content_encoding,
                           const char *content_type);
/* Sets the receiver of the file's bytes, without content codings. Call it before the first byte. */
void sitemap_verifier_copy(struct sitemap_verifier *v,
                           void (*copy)(void *context, const char *bytes, size_t len),
                           void *context);
/* Takes the next bytes. False once the verdict is final (the rest need not be read). */
bool sitemap_verifier_feed(struct sitemap_verifier *v, const void *bytes, size_t len);
/* The input is complete: fills `*out`. False when out of memory. */
bool sitemap_verifier_finish(struct sitemap_verifier *v, struct sitemap_file *out);
void sitemap_verifier_free(struct sitemap_verifier *v);
