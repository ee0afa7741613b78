/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads lists of sitemaps or page URLs in all formats as the bytes arrive: XML (a sitemap index, or
 * a sitemap with its extensions), NDJSON, a JSON object or array, a plain list of URLs; each also
 * gzipped. Validates and normalises each entry by server/rules and passes it on. Memory is bounded
 * by READER_MAX_ITEM_BYTES and the tables of zlib, expat and jansson, whatever the input. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/entry.h"
#include "server/rules/host_map.h"
#include "server/rules/url.h"

/* Limit of one line or array element; a page URL with all its extensions fits. */
#define READER_MAX_ITEM_BYTES 393216u
#define READER_MAX_TEXT_BYTES 65536u /* of one tag, comment, or text of an element in XML */

enum reader_format {
    READER_AUTO,   /* recognised by content: gzip magic, '<', '{', '[', else a list */
    READER_JSON,   /* one object or one array of objects */
    READER_NDJSON, /* one object a line; blank lines are skipped */
    READER_XML,    /* a sitemap index; for page URLs a sitemap */
    READER_LIST,   /* one URL a line; blank lines and lines that begin with # are skipped */
};

struct reader_options {
    enum reader_format format;
    /* Reads page URLs, the rows of a urlset. JSON then has "urlset" instead of "index", and
     * "images", "videos", "alternates" and "news" (server/rules/page/fragment.h): an entry with one
     * of the four, or an element of a sitemap, replaces all of them. "changefreq" and "priority"
     * are dropped, with RULE_HINT_DROPPED. */
    bool pages;
    /* an invalid lastmod or extension is dropped and does not reject its entry (import,
     * on_error=skip, sources) */
    bool lenient;
    bool allow_gzip;
    bool drop_lastmod; /* --drop-lastmod: ignore all lastmods */
    /* accepts the fields of `export` (id, page, position, …), which are read or ignored; without it
     * they are unknown */
    bool allow_export_fields;
    bool allow_placed;          /* of these, accepts only position and source */
    uint64_t max_bytes;         /* decoded; 0: no limit */
    uint64_t max_entries;       /* 0: no limit */
    uint32_t max_ratio;         /* decoded : encoded, checked past 1 MiB decoded; 0: no limit */
    int64_t now;                /* Unix seconds */
    const struct host_map *map; /* applied to the bytes first; may be NULL. Borrowed */
};

enum reader_status {
    READER_OK,
    READER_MALFORMED,  /* broken as a whole: XML not well-formed, not JSON, truncated */
    READER_WRONG_KIND, /* well-formed, but a urlset, HTML, a feed, … */
    READER_TOO_LARGE,  /* max_bytes, max_entries, max_ratio, an item too long, nested too deep */
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
    uint64_t line, column; /* 1-based; 0: unknown */
    char detail[256];      /* a sentence for people */
    char field[64];        /* "item-too-large" in JSON: the member that is too large; "": unknown */
};

/* Receives the results. Entries before a failure are not taken back: for all or nothing, keep them
 * (spool.h) until reader_finish returns READER_OK. Results do not depend on how the input is cut
 * into calls of reader_feed. */
struct reader_sink {
    void *context;
    /* A valid entry; strings are valid for the call. Remarks are in entry->remarks. False stops the
     * reader. */
    bool (*entry)(void *context, const struct entry *entry);
    /* An invalid entry. False stops the reader. */
    bool (*reject)(void *context, const struct rejection *rejection);
    /* A remark on the document itself: RULE_NAMESPACE once, RULE_EXTRA_ELEMENT for each ignored
     * element (of page URLs also those of unsupported extensions), with its local name, valid for
     * the call (NULL: text, or a repeated element). May be NULL. */
    void (*remark)(void *context, enum rule_code code, uint64_t line, const char *element);
};

/* Fills `out` with the loc of a rejected line, normalised in `url`, if the line has a valid one: in
 * a replace that skips the line, its entry stays. */
bool reader_rejected_entry(const struct rejection *rejection, struct url *url, struct entry *out);

struct reader;

/* NULL when out of memory. `options` and `sink` are copied. One thread at a time. */
struct reader *reader_new(const struct reader_options *options, const struct reader_sink *sink);
/* Sets the Content-Encoding of an HTTP response (several fields joined with commas; NULL: none).
 * Call it before the first byte. Codings are removed before the list is read; if one cannot be
 * decoded, the reader fails with "encoding". */
void reader_content_encoding(struct reader *r, const char *value);
/* Whether the list itself, without content codings, is gzip. */
bool reader_is_gzip(const struct reader *r);
/* Takes the next bytes. After a status other than OK, every later call returns the same. */
enum reader_status reader_feed(struct reader *r, const void *bytes, size_t len);
/* The input is complete: an incomplete document is truncated (READER_MALFORMED). */
enum reader_status reader_finish(struct reader *r);
/* The failure; status READER_OK if none exists. Borrowed. */
const struct reader_error *reader_error(const struct reader *r);
/* Whether a JSON body was a single object. */
bool reader_single_object(const struct reader *r);
void reader_free(struct reader *r);

/* One entry as JSON, `{"loc", "lastmod"?, "digest"?, "index"?}`, or a page URL, with owned copies
 * of its strings. */
struct json_entry {
    struct entry entry;
    char *storage; /* owned */
};

/* Parses and validates one JSON object. On RULE_OK `out` is filled, else `rejection`, whose loc and
 * field point into `out->storage`. Call json_entry_done in both cases. `line` is copied to both.
 * Thread safe. */
enum rule_code json_entry_parse(const char *text, size_t len, uint64_t line,
                                const struct reader_options *options, struct json_entry *out,
                                struct rejection *rejection);
void json_entry_done(struct json_entry *e);
