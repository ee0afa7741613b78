/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The stable words for refusals and remarks of the rules. The API, the command line, sources and
 * logs use only these words (kebab-case, never changed once released). */
#pragma once

/* X(enumerator, word, default sentence for people) */
#define RULE_CODES(X)                                                                              \
    X(RULE_OK, "ok", "accepted")                                                                   \
    /* refusals: the loc */                                                                        \
    X(RULE_LOC_MISSING, "loc-missing", "the loc is missing")                                       \
    X(RULE_LOC_MALFORMED, "loc-malformed", "is malformed: not a valid URL (RFC 3986)")             \
    X(RULE_LOC_MARKUP, "loc-markup", "the loc contains an element")                                \
    X(RULE_LOC_REPEATED, "loc-repeated", "there is more than one loc in this element")             \
    X(RULE_LOC_RELATIVE, "loc-relative", "must be an absolute URL (https://host/path)")            \
    X(RULE_LOC_SCHEME, "loc-scheme", "must be an http or https URL")                               \
    X(RULE_LOC_TOO_SHORT, "loc-too-short", "is shorter than 12 characters")                        \
    X(RULE_LOC_TOO_LONG, "loc-too-long", "is longer than 2047 characters")                         \
    X(RULE_LOC_FRAGMENT, "loc-fragment", "has a fragment (#...); crawlers never send one")         \
    X(RULE_LOC_CREDENTIALS, "loc-credentials", "has a user name or password")                      \
    X(RULE_LOC_CONTROL, "loc-control-character", "has a control character")                        \
    X(RULE_LOC_SPACE, "loc-space", "has a raw space; write %20")                                   \
    X(RULE_LOC_UTF8, "loc-not-utf8", "is not valid UTF-8")                                         \
    X(RULE_LOC_HOST, "loc-host", "has no valid host")                                              \
    X(RULE_LOC_HOST_IDN, "loc-host-not-ascii", "has a non-ASCII host; use its punycode form")      \
    X(RULE_LOC_PORT, "loc-port", "has an invalid port")                                            \
    X(RULE_LOC_PERCENT, "loc-percent-encoding",                                                    \
      "has malformed percent-encoding: a % without two hex digits")                                \
    /* refusals: the place */                                                                      \
    X(RULE_SITE_UNKNOWN, "site-unknown", "site not found in this catalogue")                       \
    X(RULE_INDEX_UNKNOWN, "index-unknown", "index not found in this catalogue")                    \
    X(RULE_INDEX_NEEDED, "index-needed", "the index is missing: a loc on a cross host needs one")  \
    X(RULE_OUTSIDE_SITE, "outside-site", "is on another host than its index or urlset")            \
    X(RULE_OUTSIDE_DIRECTORY, "outside-directory",                                                 \
      "is not in or below the directory of its index or urlset")                                   \
    X(RULE_LOC_IS_PAGE, "loc-is-index-page",                                                       \
      "is the URL of an index page; an index may not list an index")                               \
    X(RULE_INDEX_COVERS_LOC, "index-covers-loc",                                                   \
      "page names of the index would conflict with a registered loc")                              \
    X(RULE_INDEX_COVERS_INDEX, "index-covers-index",                                               \
      "page names of the index would conflict with those of another index")                        \
    X(RULE_SITE_FULL, "too-many-pages",                                                            \
      "the site has reached its limit of index files (max_indexes)")                               \
    X(RULE_INDEX_PATH, "index-path", "must be a path that ends in .xml, without query")            \
    X(RULE_INDEX_PATTERN, "index-pattern",                                                         \
      "must contain {stem} first, then {n} once, then {suffix} last")                              \
    X(RULE_HOST_TAKEN, "host-taken", "conflict: the host already belongs to another site")         \
    X(RULE_ALL_SITES, "needs-token-of-all-sites",                                                  \
      "permission denied: only a token for all sites may do this")                                 \
    X(RULE_OUTSIDE_TOKEN, "outside-token-scope",                                                   \
      "permission denied: outside the scope of this token")                                        \
    X(RULE_FROZEN, "frozen", "its site, index or urlset is frozen: read-only until it is thawed")  \
    X(RULE_ORIGIN, "origin-malformed", "must be scheme://host[:port] and nothing more")            \
    X(RULE_HOST, "host-malformed", "must be host[:port]")                                          \
    X(RULE_ROBOTS, "robots-malformed", "must be the text of a robots.txt")                         \
    X(RULE_SOURCE, "source-malformed", "is not a valid source")                                    \
    X(RULE_DUPLICATE, "duplicate", "occurs more than once in this list; list it once")             \
    X(RULE_OWNED_BY_ANOTHER, "owned-by-another", "is owned by another source; it was not changed") \
    X(RULE_SHRINK_GUARD, "shrink-guard", "would remove too much of the index or urlset")           \
    X(RULE_CHANGED_SINCE, "changed-since", "conflict: has changed since that revision")            \
    X(RULE_LIST_TOO_LONG, "list-too-long",                                                         \
      "is too large: other sites' writes would time out; send it in parts (a replace by prefix)")  \
    /* refusals and remarks: lastmod */                                                            \
    X(RULE_LASTMOD_INVALID, "lastmod-invalid",                                                     \
      "is not a W3C Datetime such as 2026-11-21 or 2026-11-21T08:30:00Z")                          \
    X(RULE_LASTMOD_NO_ZONE, "lastmod-no-zone",                                                     \
      "has a time without a time zone; append Z or an offset such as +01:00")                      \
    X(RULE_LASTMOD_FUTURE, "lastmod-in-future", "is more than a day in the future; dropped")       \
    X(RULE_LASTMOD_OLD, "lastmod-too-old",                                                         \
      "is 1970-01-01 or earlier, the date of an unset clock; dropped")                             \
    X(RULE_LASTMOD_COARSE, "lastmod-too-coarse", "has no day; stored but not served")              \
    X(RULE_LASTMOD_DATE_ONLY, "lastmod-date-only",                                                 \
      "has no time; Bing wants a time with an offset")                                             \
    /* other fields */                                                                             \
    X(RULE_DIGEST, "digest-malformed",                                                             \
      "must be 1 to 256 bytes of UTF-8 without control characters")                                \
    X(RULE_NAME, "name-malformed", "must be 1 to 64 of A-Z a-z 0-9 . _ -")                         \
    X(RULE_FIELD_UNKNOWN, "unknown-field", "is not a known field")                                 \
    X(RULE_FIELD_TYPE, "wrong-type", "has the wrong type")                                         \
    X(RULE_JSON, "malformed-json", "is not valid JSON")                                            \
    X(RULE_POSITION, "position-malformed",                                                         \
      "must be an integer of 0 or more, within the site's pages")                                  \
    /* remarks */                                                                                  \
    X(RULE_LOC_LONG, "loc-long", "is longer than 1024 characters; Yandex ignores it")              \
    X(RULE_LOC_NO_SITEMAP, "loc-no-sitemap",                                                       \
      "is a folder, a page or robots.txt; crawlers expect a sitemap file")                         \
    X(RULE_LOC_AMP, "loc-amp-escaped", "contains &amp;; write a plain &, the server escapes it")   \
    X(RULE_LASTMOD_SET_BACK, "lastmod-set-back",                                                   \
      "is more than a year before the previous lastmod; crawlers distrust dates that move back")   \
    X(RULE_CROSS_HOST, "cross-host", "is on a cross host; Yandex ignores it")                      \
    X(RULE_SCHEME_DIFFERS, "scheme-differs",                                                       \
      "has a different scheme (http or https) than its index or urlset")                           \
    X(RULE_LOC_NORMALISED, "loc-normalised", "was rewritten to its normal form")                   \
    X(RULE_LOC_PADDED, "loc-padded", "had leading or trailing white space, which was removed")     \
    X(RULE_SITE_NEARLY_FULL, "pages-nearly-used-up",                                               \
      "the site has used 90 % or more of its index files (max_indexes)")                           \
    X(RULE_NAMESPACE, "namespace", "is not the sitemaps.org 0.9 namespace; accepted anyway")       \
    X(RULE_EXTRA_ELEMENT, "extra-element", "an unexpected element was ignored")                    \
    X(RULE_LOC_IGNORED, "loc-ignored", "an ignored element contains a loc, which was not read")    \
    /* remarks: a sitemap itself */                                                                \
    X(RULE_ONE_LASTMOD, "one-lastmod",                                                             \
      "all of its pages have the same lastmod: probably the time of a build")                      \
    X(RULE_GZIP_UNMARKED, "gzip-unmarked", "is gzip, but neither its name nor a header says so")   \
    X(RULE_EXTENSION_NAMESPACE, "extension-namespace",                                             \
      "is a misspelled namespace of this extension; accepted anyway")                              \
    X(RULE_IMAGES_MANY, "too-many-images",                                                         \
      "has more than 1,000 images; Google reads only that many")                                   \
    X(RULE_ENCODING_ODD, "encoding-odd",                                                           \
      "is not a content coding: most clients ignore it, strict ones reject the answer")            \
    /* refusals: page URLs and their urlsets */                                                    \
    X(RULE_URLSET_NEEDED, "urlset-needed", "the urlset is missing: name it for a page URL")        \
    X(RULE_URLSET_UNKNOWN, "urlset-unknown", "urlset not found in this catalogue")                 \
    X(RULE_URLSET_FULL, "urlset-full", "the urlset has reached its limit of pages (max_pages)")    \
    X(RULE_EXTENSION_FOREIGN, "extension-foreign",                                                 \
      "has an extension that its urlset does not support")                                         \
    X(RULE_EXTENSIONS_LONG, "extensions-too-long",                                                 \
      "has too many extensions: at most 1,000 images, 300 alternates and 262,144 bytes")           \
    X(RULE_EXPIRED, "expired", "has expired: it is older than the urlset's expires allows")        \
    X(RULE_OF_URLSET, "of-urlset", "is a page of a urlset; only the urlset can add or remove it")  \
    X(RULE_LANGUAGE, "language-malformed",                                                         \
      "is not a language tag such as en, de-CH or zh-Hant (BCP 47)")                               \
    X(RULE_EXTENSION_UNKNOWN, "extension-unknown",                                                 \
      "is an unknown extension; use images, videos, alternates or news")                           \
    X(RULE_TEXT, "text-malformed", "must be 1 to 2048 bytes of UTF-8 without control characters")  \
    X(RULE_FIELD_MISSING, "field-missing", "is required and is missing")                           \
    /* remarks: page URLs */                                                                       \
    X(RULE_EXTENSION_DROPPED, "extension-dropped",                                                 \
      "has an image, video, alternate or news that breaks the rules; it was left out")             \
    X(RULE_HINT_DROPPED, "hint-dropped",                                                           \
      "has a changefreq, priority or video field that no search engine uses; dropped")             \
    /* refusals: videos of page URLs */                                                            \
    X(RULE_VIDEO, "video-malformed", "is not a valid field of a video")

enum rule_code {
#define X(enumerator, word, sentence) enumerator,
    RULE_CODES(X)
#undef X
        RULE_CODE_COUNT
};

/* A set of remarks: bit N is `enum rule_code` N. */
typedef unsigned __int128 rule_set;
#define RULE_BIT(code) ((rule_set)1 << (code))
/* Remarks that mean that the lastmod was dropped. */
#define RULE_LASTMOD_DROPS                                                                         \
    (RULE_BIT(RULE_LASTMOD_INVALID) | RULE_BIT(RULE_LASTMOD_NO_ZONE) |                             \
     RULE_BIT(RULE_LASTMOD_FUTURE) | RULE_BIT(RULE_LASTMOD_OLD))
_Static_assert(RULE_CODE_COUNT <= 128, "rule_set holds 128 codes");

/* The stable word, "ok" to "extra-element". Static; "unknown" outside the enum. */
const char *rule_code_word(enum rule_code code);
/* The sentence for people. Static. */
const char *rule_code_sentence(enum rule_code code);
/* The sentence for a remark on an accepted entry: it names the subject and what was done. Static.
 */
const char *rule_code_remark(enum rule_code code);
/* Appends the words of a set as a JSON array. */
struct str;
void rule_set_append_json(struct str *out, rule_set codes);
