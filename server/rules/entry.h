/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One sitemap, or one page URL of a urlset, validated and normalised, on its way from the API, the
 * command line or a source to the catalogue. Plain values; the strings are borrowed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/code.h"
#include "server/rules/limits.h"

/* In an upsert an absent field keeps what is stored, null clears it. */
enum field_state { FIELD_ABSENT, FIELD_NULL, FIELD_SET };

#define POSITION_NONE UINT32_MAX

/* The owner of the index entry for a page of a urlset: this prefix and the urlset's path. Only the
 * catalogue writes such an entry, in the change that creates, changes or empties the page. Its
 * lastmod is the last change of the page's content. */
#define URLSET_OWNER "urlset:"

struct fragment; /* server/rules/page/fragment.h */

struct entry {
    const char *loc;     /* normalised by url_parse, NUL-terminated */
    const char *lastmod; /* normalised by lastmod_parse; NULL unless lastmod_state is FIELD_SET */
    const char *digest;  /* NULL unless digest_state is FIELD_SET */
    /* the named index: its URL or path as given; NULL: by scope. For a page URL the urlset, named
     * here or with the change */
    const char *index;
    const char *source; /* the owner if it is new (import of an export); NULL: the caller */
    /* For a page URL: its extensions as canonical XML, which is served unchanged, at most
     * EXTENSIONS_MAX_BYTES. NULL unless extensions_state is FIELD_SET. */
    const char *extensions;
    enum field_state lastmod_state;
    enum field_state digest_state;
    enum field_state extensions_state;
    bool gone;         /* in a split: remove the page URL */
    bool rejected;     /* in a replace: the line is invalid and was reported; its entry stays */
    uint32_t position; /* wanted position (import of an export) or POSITION_NONE */
    uint64_t line;     /* 1-based line or array element it came from; 0: single */
    rule_set remarks;  /* warnings so far */
    /* For a page URL from the reader: its extensions, and what was left out of them; NULL: it has
     * none. */
    const struct fragment *fragment;
};

/* A rejected entry and the reason. Strings are borrowed for the call that receives it. */
struct rejection {
    uint64_t line;   /* 1-based line or array element; 0: single */
    const char *loc; /* as given, cut at LOC_MAX_CHARS; NULL: there was none */
    enum rule_code code;
    const char *field; /* "loc", "lastmod", "images[3].loc", …; NULL: no field is at fault */
    char detail[256];  /* a sentence for people */
};

/* The remarks that follow from a stored entry's text and its index's URL: those of loc_lint,
 * RULE_CROSS_HOST, RULE_SCHEME_DIFFERS, RULE_LASTMOD_COARSE, RULE_LASTMOD_DATE_ONLY. `index_origin`
 * is the site's origin; `lastmod` may be NULL. Pure, thread safe. */
rule_set entry_lint(const char *loc, const char *lastmod, const char *index_origin);

/* The same for a page URL: without RULE_LOC_NO_SITEMAP. */
rule_set entry_lint_page_url(const char *loc, const char *lastmod, const char *index_origin);

/* Selects entries. A zeroed one selects all. */
struct entry_filter {
    const char *contains; /* in the loc, byte by byte; NULL: anything */
    bool warned;          /* only those with remarks (entry_lint) */
    bool page_urls;       /* they are page URLs (entry_lint_page_url) */
};
#define FILTER_MIN_CONTAINS 3u
#define FILTER_MAX_CONTAINS 200u
bool entry_filter_holds(const struct entry_filter *filter, const char *loc, const char *lastmod,
                        const char *index_origin);

/* RULE_OK or RULE_DIGEST. */
enum rule_code entry_check_digest(const char *digest, size_t len);
/* A source's or token's name: RULE_OK or RULE_NAME. */
enum rule_code entry_check_name(const char *name, size_t len);

/* An entry as the API returns it and the command line prints it. */
struct entry_shown {
    const char *id, *loc, *lastmod, *digest, *source; /* lastmod, digest: NULL if absent */
    const char *origin,
        *path;        /* of its index: "https://www.example.com" and "/x.xml"; NULL: removed */
    bool is_page_url; /* its list is a urlset */
    const char *extensions; /* its fragment; NULL: none */
    uint32_t page, position;
    int64_t registered_at, changed_at;
    rule_set remarks; /* besides those of entry_lint */
};

/* Appends the entry as a JSON object, without a line end. */
struct str;
void entry_append_json(struct str *out, const struct entry_shown *entry);
/* The same with its position: a line of the API's export, which an import accepts. */
void entry_append_json_placed(struct str *out, const struct entry_shown *entry);
/* Appends the object of an export: the fields that another catalogue needs. */
void entry_append_export(struct str *out, const struct entry_shown *entry);
