/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What the two forms of a sitemap (XML, text) work on: the hash of what it says, what is known of
 * its pages, and its verdict. Internal to server/input/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/input/frame.h"
#include "server/input/sitemap_file.h"
#include "server/rules/lastmod.h"

/* The hash is XXH3-128 over a stream of framed fields, so that no two sequences of fields run into
 * the same bytes. What a field is. The values are hashed, and hashes are kept in catalogues: never
 * renumber. */
enum sitemap_hash_tag {
    HASH_LIST = 'L',      /* a text list begins; an XML file begins with its root's start */
    HASH_LINE = 'l',      /* one line of it */
    HASH_START = '<',     /* an element begins: `URI LF name` */
    HASH_ATTRIBUTE = '@', /* of the element that has just begun: `URI LF name` */
    HASH_VALUE = '=',     /* of that attribute */
    HASH_TEXT = 't',      /* character data between two tags */
    HASH_END = '>',       /* an element ends */
};

struct sitemap_hash;
void sitemap_hash_field(struct sitemap_hash *h, enum sitemap_hash_tag tag, const char *bytes,
                        size_t len);
/* The text of a page's lastmod: HASH_TEXT, but for the hash without dates. */
void sitemap_hash_date(struct sitemap_hash *h, const char *bytes, size_t len);
/* The attributes of an element, in the order of their names: `list` is names and values in turn
 * with NULL behind, as expat gives it, and is sorted in place. Names are unique. */
void sitemap_hash_attributes(struct sitemap_hash *h, const char **list);

/* What is known of the pages that a sitemap lists. */

#define PAGE_LASTMOD_BYTES 64u  /* longer ones are not compared with the one before */
#define PAGE_ORIGIN_BYTES  280u /* hold any origin */

struct sitemap_pages {
    struct sitemap_expect expect;
    size_t folder_len; /* of the file's own URL, up to and with its last slash; 0: not checked */
    uint64_t urls, bad_urls;
    uint64_t useless; /* of the bad ones those that no crawler can ask for */
    uint64_t foreign; /* of the others those of hosts that are neither its own nor its site's */
    struct sitemap_remarks remarks;
    /* The last origin other than the file's own, and what is to be said of its pages: neighbours
     * mostly share theirs. */
    char other[PAGE_ORIGIN_BYTES];
    size_t other_len;
    enum rule_code other_code;
    uint64_t dated;        /* of them with a lastmod that is valid and not ahead */
    uint64_t news;         /* pages with news */
    bool lastmods_differ;  /* among those */
    struct lastmod newest; /* "" where none is dated */
    /* The last lastmod that was read, and from what: builds stamp all pages alike, and what is
     * alike need not be read twice. */
    struct lastmod one;      /* of the last valid one */
    enum rule_code one_code; /* of what `given` holds */
    size_t given_len;        /* 0: none, or too long to keep */
    char given[PAGE_LASTMOD_BYTES];
};

/* What a form works on. Of `core` only error, options and bytes are used; READER_WRONG_KIND is no
 * fault but says that the file is `kind`. */
struct sitemap_work {
    struct reader_state core;
    uint64_t strange; /* lines of a list that do not even begin as a URL does */
    bool no_xml;      /* of struct sitemap_file */
    bool feed;        /* the same */
    enum sitemap_file_kind kind;
    struct sitemap_pages pages;
    struct sitemap_hash *hash;
};

/* Counts one more page. False: it is one too many, and the core knows. */
bool sitemap_work_add_page(struct sitemap_work *w, uint64_t line, uint64_t column);
/* The file is not a sitemap, but `kind`: `code` and the sentence say what. Returns false, for tail
 * calls. */
bool sitemap_work_other(struct sitemap_work *w, enum sitemap_file_kind kind, const char *code,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));
/* It is an HTML page, of which `head` is the beginning. The same. */
bool sitemap_work_page(struct sitemap_work *w, const char *head, size_t len);
/* True where `text` begins as an absolute http or https URL does. */
bool sitemap_pages_is_url(const char *text, size_t len);
/* Checks a loc, which is at `at`, and remarks what is wrong with it. RULE_OK, or what
 * sitemap_pages_count is to be reported. */
enum rule_code sitemap_pages_loc(struct sitemap_pages *p, struct place at, const char *text,
                                 size_t len);
/* Remarks a page that is refused for another reason. Returns `code`. */
enum rule_code sitemap_pages_refuse(struct sitemap_pages *p, struct place at, enum rule_code code);
/* Remarks a rule that what is at `at` breaks; `given` (NULL: nothing) is what is there. */
void sitemap_pages_remark(struct sitemap_pages *p, struct place at, enum rule_code code,
                          const char *given, size_t len);
/* A page is over: counts it as bad unless `code` is RULE_OK. Once for each. */
void sitemap_pages_count(struct sitemap_pages *p, enum rule_code code);
/* Takes the lastmod of a page, which is at `at`. */
void sitemap_pages_lastmod(struct sitemap_pages *p, struct place at, const char *text, size_t len);
/* Remarks that the namespace is not quite the protocol's: `name` up to `local`, as expat gives it.
 */
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

/* Begins zero. */
struct sitemap_extension {
    struct fragment *fragment; /* owned; NULL: no page has had an extension yet */
    bool no_memory;
    bool begun; /* the page has one */
    unsigned images;
    bool image_has_loc;
    int field; /* of IN_FIELD, an enum news_field; of IN_VIDEO_FIELD, an enum video_field */
    char attribute[LOC_MAX_CHARS + 2]; /* of IN_VIDEO_FIELD */
    unsigned variants;                 /* EXTENSION_… whose namespaces were remarked */
    struct place at, news_at;
    unsigned open_count;
    struct sitemap_extension_open {
        enum sitemap_extension_in in;
        unsigned depth;
        struct place at;
    } open[3]; /* its open elements, outermost first */
};

void sitemap_extension_done(struct sitemap_extension *e);
/* An element that is not of the sitemap's own namespace begins within a url; of `depth` 3 or more.
 */
void sitemap_extension_start(struct sitemap_extension *e, struct sitemap_pages *pages,
                             unsigned depth, const char *name, const char **attributes,
                             struct place at);
/* An element ends, in which this text was. */
void sitemap_extension_end(struct sitemap_extension *e, struct sitemap_pages *pages, unsigned depth,
                           const char *text, size_t len);
/* The url ends. */
void sitemap_extension_end_page(struct sitemap_extension *e, struct sitemap_pages *pages);

/* A feed, from its root on. */

#define FEED_DATE_BYTES 64u

enum sitemap_feed_form { FEED_NONE, FEED_RSS, FEED_ATOM };

struct sitemap_feed {
    enum sitemap_feed_form form;
    unsigned entry_depth;
    bool open;                                                             /* an entry */
    enum { FEED_NO_FIELD, FEED_LINK, FEED_PUBLISHED, FEED_UPDATED } field; /* that is open */
    struct place field_at, date_at;
    bool updated; /* the date is that of an update, which is better than that of publication */
    size_t date_len;
    char date[FEED_DATE_BYTES]; /* of the open entry, as W3C Datetime where it could be read */
};

/* False where `root`, a local name, is not that of a feed. */
bool sitemap_feed_begin(struct sitemap_feed *f, const char *root);
/* An element begins, below the root. False: it is one too many, and the work's core knows. */
bool sitemap_feed_start(struct sitemap_feed *f, struct sitemap_work *work, unsigned depth,
                        const char *local, const char **attributes, struct place at);
/* An element ends, in which this text was. */
void sitemap_feed_end(struct sitemap_feed *f, struct sitemap_work *work, unsigned depth,
                      const char *text, size_t len);
/* An entry's link, which is at `at`. */
void sitemap_feed_link(struct sitemap_work *work, struct place at, const char *text, size_t len);

/* How an XML file begins. */
enum sitemap_start {
    START_PLAIN,    /* '<' of something */
    START_DECLARED, /* an XML declaration: meant as XML, whatever becomes of it */
    START_LATE,     /* the same, behind white space, where XML does not allow it */
    START_WIDE,     /* UTF-16 by its first bytes */
};

/* Opens a sitemap as XML at f->place. `begun`: the tag of a urlset is seen to begin. */
bool sitemap_urlset_open(struct frame *f, struct sitemap_work *work, enum sitemap_start start,
                         bool begun);
