/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads lists of sitemaps, or of page URLs, in every format there is, as the bytes arrive: XML (a
 * sitemap index, or a sitemap with its extensions), NDJSON, a JSON object or array, a plain list of
 * URLs; each also gzipped. Checks and normalises each entry
 * by server/rules and hands it on. Memory is bounded by READER_MAX_ITEM_BYTES and the tables of
 * zlib, expat and jansson, whatever the input. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/entry.h"
#include "server/rules/host_map.h"

/* One line or array element: a page URL with the extensions that it may have. */
#define READER_MAX_ITEM_BYTES 393216u
#define READER_MAX_TEXT_BYTES 65536u /* of XML one tag, comment, or text of an element */

enum reader_format {
    READER_AUTO,   /* recognised by content: gzip magic, '<', '{', '[', else a list */
    READER_JSON,   /* one object or one array of objects */
    READER_NDJSON, /* one object a line; blank lines are skipped */
    READER_XML,    /* a sitemap index; of page URLs a sitemap */
    READER_LIST,   /* one URL a line; blank lines and lines that begin with # are skipped */
};

struct reader_options {
    enum reader_format format;
    /* Page URLs, the rows of a urlset: JSON has "urlset" for "index", and "images", "videos",
     * "alternates" and "news" (server/rules/page/fragment.h); what has one of the four, or is an
     * element of a sitemap, says all of them. "changefreq" and "priority" are dropped, with
     * RULE_HINT_DROPPED.
     */
    bool pages;
    bool lenient; /* a bad lastmod costs only itself (import, on_error=skip, sources); so does a bad
                     extension */
    bool allow_gzip;
    bool drop_lastmod;          /* --drop-lastmod: as if no lastmod had been given */
    bool allow_export_fields;   /* NDJSON of `export` has id, page, position, … : read or ignored;
                                   else an unknown field is refused */
    bool allow_placed;          /* of these, position and source alone */
    uint64_t max_bytes;         /* decoded; 0: no limit */
    uint64_t max_entries;       /* 0: no limit */
    uint32_t max_ratio;         /* decoded : encoded, checked past 1 MiB decoded; 0: no limit */
    int64_t now;                /* Unix seconds */
    const struct host_map *map; /* what the bytes are put through first; NULL: nothing. Borrowed */
};

enum reader_status {
    READER_OK,
    READER_MALFORMED,  /* broken as a whole: XML not well-formed, no JSON, truncated */
    READER_WRONG_KIND, /* well-formed, but a urlset, HTML, a feed, … */
    READER_TOO_LARGE,  /* max_bytes, max_entries, max_ratio, an item too long, nesting too deep */
    READER_FORBIDDEN,  /* DOCTYPE, gzip not allowed */
    READER_NO_MEMORY,
    READER_STOPPED, /* a callback returned false */
};

struct reader_error {
    enum reader_status status;
    /* Stable word, static: "ok"; malformed: "malformed-xml", "malformed-json", "malformed-gzip",
     * "truncated", "encoding"; wrong kind: "packed-twice", "wrong-namespace",
     * "urlset-not-index", "html-not-index", "feed-not-index", "not-an-index" (another root), of
     * page URLs "index-not-urlset", "html-not-urlset", "feed-not-urlset", "not-a-urlset";
     * "bot-wall", "maintenance-page"; "not-text"; "not-a-list" (a table); too large:
     * "body-too-large", "too-many-entries", "item-too-large", "nested-too-deep", "gzip-bomb";
     * forbidden: "doctype", "gzip-not-allowed"; "no-memory"; "stopped". */
    const char *code;
    uint64_t line, column; /* 1-based; 0 where unknown */
    char detail[256];      /* a sentence for people */
    char field[64];        /* "item-too-large" of JSON: the member that is; "" where unknown */
};

/* What is handed on before a failure is found is not taken back: where all or nothing is intended,
 * keep it (spool.h) until reader_finish says READER_OK. How the input is cut into calls of
 * reader_feed changes nothing. */
struct reader_sink {
    void *context;
    /* An entry that passed the rules; strings are valid for the call. Remarks are in
     * entry->remarks. False stops the reader. */
    bool (*entry)(void *context, const struct entry *entry);
    /* One that did not. False stops the reader. */
    bool (*reject)(void *context, const struct rejection *rejection);
    /* A remark on the document itself: RULE_NAMESPACE once, RULE_EXTRA_ELEMENT for each one of
     * them (of page URLs also those of extensions that are not kept), with the element's local
     * name, valid for the call (NULL: text, or one too many of its kind); may be NULL. */
    void (*remark)(void *context, enum rule_code code, uint64_t line, const char *element);
};

struct reader;

/* NULL when out of memory. `options` and `sink` are copied. One thread at a time. */
struct reader *reader_new(const struct reader_options *options, const struct reader_sink *sink);
/* Before the first byte of an HTTP answer's body: its Content-Encoding (several fields joined with
 * commas; NULL: none). Codings come off before the list is read; with one that this program does
 * not decode it fails with "encoding". */
void reader_content_encoding(struct reader *r, const char *value);
/* Whether the list itself, content codings aside, is gzip. */
bool reader_is_gzip(const struct reader *r);
/* Takes the next bytes. After a status that is not OK every later call returns the same. */
enum reader_status reader_feed(struct reader *r, const void *bytes, size_t len);
/* The input is over: what is incomplete now is truncated (READER_MALFORMED). */
enum reader_status reader_finish(struct reader *r);
/* What went wrong; status READER_OK where nothing did. Borrowed. */
const struct reader_error *reader_error(const struct reader *r);
/* Whether a JSON body was a single object. */
bool reader_single_object(const struct reader *r);
void reader_free(struct reader *r);

/* One entry as JSON, `{"loc", "lastmod"?, "digest"?, "index"?}`, or as a page URL has it, with
 * owned copies of its strings. */
struct json_entry {
    struct entry entry;
    char *storage; /* owned */
};

/* Checks one JSON text (an object). On RULE_OK `out` is filled and the caller frees it with
 * json_entry_done; otherwise `rejection` says why (its loc and field, where there are any,
 * point into `out->storage`, so json_entry_done is due then too). `line` goes into both. Thread
 * safe. */
enum rule_code json_entry_parse(const char *text, size_t len, uint64_t line,
                                const struct reader_options *options, struct json_entry *out,
                                struct rejection *rejection);
void json_entry_done(struct json_entry *e);
