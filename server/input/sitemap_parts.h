/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The state that the two forms of a sitemap (XML, text) share: the hash of the content, the pages,
 * and the verdict. Internal to server/input/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/input/frame.h"
#include "server/input/sitemap_file.h"
#include "server/rules/lastmod.h"

/* The kinds of fields. The hash is XXH3-128 over a stream of framed fields, so that different
 * sequences of fields never give the same bytes. The values are hashed, and hashes are stored in
 * catalogues: never renumber. */
enum sitemap_hash_tag {
    HASH_LIST = 'L',      /* a text list begins; an XML file begins with the start of its root */
    HASH_LINE = 'l',      /* one line of it */
    HASH_START = '<',     /* an element begins: `URI LF name` */
    HASH_ATTRIBUTE = '@', /* of the current element: `URI LF name` */
    HASH_VALUE = '=',     /* of that attribute */
    HASH_TEXT = 't',      /* character data between two tags */
    HASH_END = '>',       /* an element ends */
};

struct sitemap_hash;
void sitemap_hash_field(struct sitemap_hash *h, enum sitemap_hash_tag tag, const char *bytes,
                        size_t len);
/* Adds the text of a page's lastmod: as HASH_TEXT, but not to the hash without dates. */
void sitemap_hash_date(struct sitemap_hash *h, const char *bytes, size_t len);
/* Adds the attributes of an element, ordered by name: `list` alternates names and values and ends
 * with NULL, as expat provides it; it is sorted in place. Names are unique. */
void sitemap_hash_attributes(struct sitemap_hash *h, const char **list);

/* The pages that a sitemap lists. */

#define PAGE_LASTMOD_BYTES 64u  /* a longer one is not compared with the one before */
#define PAGE_ORIGIN_BYTES  280u /* enough for any origin */

struct sitemap_pages {
    struct sitemap_expect expect;
    size_t folder_len; /* of the file's URL, up to and with its last slash; 0: not checked */
    uint64_t urls, bad_urls;
    uint64_t useless; /* bad ones that no crawler can request */
    uint64_t foreign; /* good ones on hosts other than the file's and its site's */
    struct sitemap_remarks remarks;
    /* A cache, since neighbouring pages mostly share an origin: the last origin other than the
     * file's, and the result for it. */
    char other[PAGE_ORIGIN_BYTES];
    size_t other_len;
    enum rule_code other_code;
    uint64_t dated;        /* with a valid lastmod that is not in the future */
    uint64_t news;         /* pages with news */
    bool lastmods_differ;  /* among the dated ones */
    struct lastmod newest; /* "": none is dated */
    /* A cache of the last lastmod, since builds give all pages the same. */
    struct lastmod one;      /* the last valid one */
    enum rule_code one_code; /* of the text in `given` */
    size_t given_len;        /* 0: none, or too long to keep */
    char given[PAGE_LASTMOD_BYTES];
};

/* The state of a form. Only error, options and bytes of `core` are used; READER_WRONG_KIND is not a
 * fault but means that the file is `kind`. */
struct sitemap_work {
    struct reader_state core;
    uint64_t strange; /* lines of a list that do not begin like a URL */
    bool no_xml;      /* of struct sitemap_file */
    bool feed;        /* the same */
    enum sitemap_file_kind kind;
    struct sitemap_pages pages;
    struct sitemap_hash *hash;
};

/* Counts a page. False: it is one too many, which is reported to the core. */
bool sitemap_work_add_page(struct sitemap_work *w, uint64_t line, uint64_t column);
/* Reports that the file is not a sitemap but `kind`, with a code and a sentence. Returns false, for
 * tail calls. */
bool sitemap_work_other(struct sitemap_work *w, enum sitemap_file_kind kind, const char *code,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same for an HTML page that begins with `head`. */
bool sitemap_work_page(struct sitemap_work *w, const char *head, size_t len);
/* True if `text` begins like an absolute http or https URL. */
bool sitemap_pages_is_url(const char *text, size_t len);
/* Checks a loc at `at` and adds a remark for a fault. Returns the code for sitemap_pages_count. */
enum rule_code sitemap_pages_loc(struct sitemap_pages *p, struct place at, const char *text,
                                 size_t len);
/* Adds a remark for a page that is invalid for another reason. Returns `code`. */
enum rule_code sitemap_pages_refuse(struct sitemap_pages *p, struct place at, enum rule_code code);
/* Adds a remark for a rule that is broken at `at`; `given` (may be NULL) is the text there. */
void sitemap_pages_remark(struct sitemap_pages *p, struct place at, enum rule_code code,
                          const char *given, size_t len);
/* Counts a page, as bad unless `code` is RULE_OK. Call it once for each page. */
void sitemap_pages_count(struct sitemap_pages *p, enum rule_code code);
/* Takes the lastmod of a page at `at`. */
void sitemap_pages_lastmod(struct sitemap_pages *p, struct place at, const char *text, size_t len);
/* Adds a remark that the namespace is a misspelling of the protocol's: `name` up to `local`, as
 * expat gives it. */
void sitemap_pages_namespace(struct sitemap_pages *p, struct place at, const char *name,
                             const char *local);

/* The extensions of a page, element by element. */

enum sitemap_extension_in {
    IN_PAGE,
    IN_IMAGE,
    IN_IMAGE_LOC,
    IN_NEWS,
    IN_PUBLICATION,
    IN_FIELD,
    IN_VIDEO,
    IN_VIDEO_FIELD,
};

struct fragment;

/* Initialise with zeros. */
struct sitemap_extension {
    struct fragment *fragment; /* owned; NULL: no page has had an extension yet */
    bool no_memory;
    bool begun; /* the page has one */
    unsigned images;
    bool image_has_loc;
    int field; /* in IN_FIELD an enum news_field; in IN_VIDEO_FIELD an enum video_field */
    char attribute[LOC_MAX_CHARS + 2]; /* in IN_VIDEO_FIELD */
    unsigned variants;                 /* EXTENSION_… with a remark on the namespace */
    struct place at, news_at;
    unsigned open_count;
    struct sitemap_extension_open {
        enum sitemap_extension_in in;
        unsigned depth;
        struct place at;
    } open[3]; /* the open elements, outermost first */
};

void sitemap_extension_done(struct sitemap_extension *e);
/* An element of another namespace than the sitemap's begins within a url; `depth` is 3 or more. */
void sitemap_extension_start(struct sitemap_extension *e, struct sitemap_pages *pages,
                             unsigned depth, const char *name, const char **attributes,
                             struct place at);
/* An element ends, in which this text was. */
void sitemap_extension_end(struct sitemap_extension *e, struct sitemap_pages *pages, unsigned depth,
                           const char *text, size_t len);
/* The url ends. */
void sitemap_extension_end_page(struct sitemap_extension *e, struct sitemap_pages *pages);

/* A feed. */

#define FEED_DATE_BYTES 64u

enum sitemap_feed_form { FEED_NONE, FEED_RSS, FEED_ATOM };

struct sitemap_feed {
    enum sitemap_feed_form form;
    unsigned entry_depth;
    bool open;                                                             /* an entry */
    enum { FEED_NO_FIELD, FEED_LINK, FEED_PUBLISHED, FEED_UPDATED } field; /* the open element */
    struct place field_at, date_at;
    bool updated; /* the date is that of an update, which outranks that of publication */
    size_t date_len;
    char date[FEED_DATE_BYTES]; /* of the open entry, as W3C Datetime if it could be parsed */
};

/* False: `root`, a local name, is not the root of a feed. */
bool sitemap_feed_begin(struct sitemap_feed *f, const char *root);
/* An element below the root begins. False: the page is one too many, which is reported to the core.
 */
bool sitemap_feed_start(struct sitemap_feed *f, struct sitemap_work *work, unsigned depth,
                        const char *local, const char **attributes, struct place at);
/* An element ends, in which this text was. */
void sitemap_feed_end(struct sitemap_feed *f, struct sitemap_work *work, unsigned depth,
                      const char *text, size_t len);
/* Takes the link of an entry at `at`. */
void sitemap_feed_link(struct sitemap_work *work, struct place at, const char *text, size_t len);

/* How an XML file begins. */
enum sitemap_start {
    START_PLAIN,    /* '<' of anything else */
    START_DECLARED, /* an XML declaration: intended as XML, even if it is broken */
    START_LATE,     /* the same after white space, which XML does not allow */
    START_WIDE,     /* UTF-16 by its first bytes */
};

/* Opens a sitemap as XML at f->place. `begun`: the tag of a urlset has begun. */
bool sitemap_urlset_open(struct frame *f, struct sitemap_work *work, enum sitemap_start start,
                         bool begun);
