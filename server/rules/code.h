/* The stable words for what the rules refuse or remark. The API, the command line, sources and
 * logs show these words and no others (kebab-case, never changed once released). */
#pragma once

/* X(enumerator, word, default sentence for people) */
#define RULE_CODES(X)                                                                              \
    X(RULE_OK, "ok", "accepted")                                                                   \
    /* refusals: the loc */                                                                        \
    X(RULE_LOC_MISSING, "loc-missing", "there is no loc")                                          \
    X(RULE_LOC_MALFORMED, "loc-malformed", "is not a URL as in RFC 3986")                          \
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
    X(RULE_LOC_PERCENT, "loc-percent-encoding", "has a % that two hex digits do not follow")       \
    /* refusals: the place */                                                                      \
    X(RULE_SITE_UNKNOWN, "site-unknown", "belongs to no site of this catalogue")                   \
    X(RULE_INDEX_UNKNOWN, "index-unknown", "names no index of this catalogue")                     \
    X(RULE_INDEX_NEEDED, "index-needed", "a cross host's loc needs an index named")                \
    X(RULE_OUTSIDE_SITE, "outside-site", "is on another host than its index or urlset")            \
    X(RULE_OUTSIDE_DIRECTORY, "outside-directory",                                                 \
      "is not in the directory of its index or urlset, nor below")                                 \
    X(RULE_LOC_IS_PAGE, "loc-is-index-page",                                                       \
      "is the URL of an index page; an index may not list an index")                               \
    X(RULE_INDEX_COVERS_LOC, "index-covers-loc",                                                   \
      "page names of the index would cover a registered loc")                                      \
    X(RULE_INDEX_COVERS_INDEX, "index-covers-index",                                               \
      "page names of the index would cover those of another index")                                \
    X(RULE_SITE_FULL, "too-many-pages", "the site has as many index files as it may have")         \
    X(RULE_INDEX_PATH, "index-path", "must be a path that ends in .xml, without query")            \
    X(RULE_INDEX_PATTERN, "index-pattern",                                                         \
      "must hold {stem} first, then {n} once, then {suffix} last")                                 \
    X(RULE_HOST_TAKEN, "host-taken", "belongs to another site")                                    \
    X(RULE_ALL_SITES, "needs-token-of-all-sites", "only a token for all sites may do that")        \
    X(RULE_OUTSIDE_TOKEN, "outside-token-scope", "is not this token's to change")                  \
    X(RULE_FROZEN, "frozen",                                                                       \
      "its site, index or urlset is frozen; nothing changes there until it is thawed")             \
    X(RULE_ORIGIN, "origin-malformed", "must be scheme://host[:port] and nothing more")            \
    X(RULE_HOST, "host-malformed", "must be host[:port]")                                          \
    X(RULE_ROBOTS, "robots-malformed", "must be the text of a robots.txt")                         \
    X(RULE_SOURCE, "source-malformed", "does not describe a source")                               \
    X(RULE_DUPLICATE, "duplicate", "stands more than once in this list; the first counts")         \
    X(RULE_OWNED_BY_ANOTHER, "owned-by-another", "is owned by another source; it stays as it is")  \
    X(RULE_SHRINK_GUARD, "shrink-guard", "would drop too much of the index or urlset")             \
    X(RULE_CHANGED_SINCE, "changed-since", "was changed since")                                    \
    X(RULE_LIST_TOO_LONG, "list-too-long",                                                         \
      "took so long that other sites' writes would not have had their turn in time; send it in "   \
      "parts (a replace by prefix)")                                                               \
    /* refusals and remarks: lastmod */                                                            \
    X(RULE_LASTMOD_INVALID, "lastmod-invalid",                                                     \
      "is not a W3C Datetime such as 2026-11-21 or 2026-11-21T08:30:00Z")                          \
    X(RULE_LASTMOD_NO_ZONE, "lastmod-no-zone",                                                     \
      "has a time without a time zone; write Z or +01:00 behind it")                               \
    X(RULE_LASTMOD_FUTURE, "lastmod-in-future", "is more than a day ahead; dropped")               \
    X(RULE_LASTMOD_OLD, "lastmod-too-old",                                                         \
      "is 1970-01-01 or earlier: the zero of a clock, not a date; dropped")                        \
    X(RULE_LASTMOD_COARSE, "lastmod-too-coarse", "has no day; kept, not served")                   \
    X(RULE_LASTMOD_DATE_ONLY, "lastmod-date-only", "has no time; Bing wants time and offset")      \
    /* other fields */                                                                             \
    X(RULE_DIGEST, "digest-malformed",                                                             \
      "must be 1 to 256 bytes of UTF-8 without control characters")                                \
    X(RULE_NAME, "name-malformed", "must be 1 to 64 of A-Z a-z 0-9 . _ -")                         \
    X(RULE_FIELD_UNKNOWN, "unknown-field", "is not a known field")                                 \
    X(RULE_FIELD_TYPE, "wrong-type", "has the wrong type")                                         \
    X(RULE_JSON, "malformed-json", "is not valid JSON")                                            \
    X(RULE_POSITION, "position-malformed", "must be an integer from 0 on within the site's pages") \
    /* remarks */                                                                                  \
    X(RULE_LOC_LONG, "loc-long", "is longer than 1024 characters; Yandex ignores it")              \
    X(RULE_LOC_NO_SITEMAP, "loc-no-sitemap",                                                       \
      "names a folder, a page or robots.txt, where crawlers want a sitemap file")                  \
    X(RULE_LOC_AMP, "loc-amp-escaped", "holds &amp;: write a plain &, it is escaped where needed") \
    X(RULE_LASTMOD_SET_BACK, "lastmod-set-back",                                                   \
      "is more than a year before the one it had; crawlers distrust dates that go back")           \
    X(RULE_CROSS_HOST, "cross-host", "is on a cross host; Yandex ignores it")                      \
    X(RULE_SCHEME_DIFFERS, "scheme-differs", "has another scheme than its index or urlset")        \
    X(RULE_LOC_NORMALISED, "loc-normalised", "was rewritten to its normal form")                   \
    X(RULE_LOC_PADDED, "loc-padded", "had white space around it")                                  \
    X(RULE_SITE_NEARLY_FULL, "pages-nearly-used-up",                                               \
      "the site has 90 % of its index files or more")                                              \
    X(RULE_NAMESPACE, "namespace", "is not the sitemaps.org 0.9 namespace; taken as meant")        \
    X(RULE_EXTRA_ELEMENT, "extra-element", "an element that has no place here was ignored")        \
    X(RULE_LOC_IGNORED, "loc-ignored", "an ignored element contains a loc, which was not read")    \
    /* remarks: a sitemap itself */                                                                \
    X(RULE_ONE_LASTMOD, "one-lastmod", "all of its pages bear the same lastmod: a build stamp")    \
    X(RULE_GZIP_UNMARKED, "gzip-unmarked", "is gzip, and nothing but its content says so")         \
    X(RULE_EXTENSION_NAMESPACE, "extension-namespace",                                             \
      "is not quite the namespace of this extension; taken as intended")                           \
    X(RULE_IMAGES_MANY, "too-many-images",                                                         \
      "has more than 1,000 images, of which Google reads that many")                               \
    X(RULE_ENCODING_ODD, "encoding-odd",                                                           \
      "is not a content coding: most clients ignore it, strict ones reject the answer")            \
    /* refusals: page URLs and their urlsets */                                                    \
    X(RULE_URLSET_NEEDED, "urlset-needed", "a page URL needs a urlset named")                      \
    X(RULE_URLSET_UNKNOWN, "urlset-unknown", "names no urlset of this catalogue")                  \
    X(RULE_URLSET_FULL, "urlset-full", "the urlset has as many pages as it may have")              \
    X(RULE_EXTENSION_FOREIGN, "extension-foreign",                                                 \
      "has an extension that its urlset was not made for")                                         \
    X(RULE_EXTENSIONS_LONG, "extensions-too-long",                                                 \
      "has too many extensions: at most 1,000 images, 300 alternates and 262,144 bytes")           \
    X(RULE_EXPIRED, "expired", "is older than its urlset keeps page URLs")                         \
    X(RULE_OF_URLSET, "of-urlset", "is a page of a urlset, which alone makes and removes it")      \
    X(RULE_LANGUAGE, "language-malformed",                                                         \
      "is not a language tag such as en, de-CH or zh-Hant (BCP 47)")                               \
    X(RULE_EXTENSION_UNKNOWN, "extension-unknown", "must be of images, alternates and news")       \
    X(RULE_TEXT, "text-malformed", "must be 1 to 2048 bytes of UTF-8 without control characters")  \
    X(RULE_FIELD_MISSING, "field-missing", "is needed")                                            \
    /* remarks: page URLs */                                                                       \
    X(RULE_EXTENSION_DROPPED, "extension-dropped",                                                 \
      "has an image, alternate or news that breaks the rules; that was left out")                  \
    X(RULE_HINT_DROPPED, "hint-dropped",                                                           \
      "has a changefreq or priority, which no search engine uses; dropped")

enum rule_code {
#define X(enumerator, word, sentence) enumerator,
    RULE_CODES(X)
#undef X
        RULE_CODE_COUNT
};

/* A set of remarks: bit N is `enum rule_code` N. */
typedef unsigned __int128 rule_set;
#define RULE_BIT(code) ((rule_set)1 << (code))
/* What a lastmod is dropped for. */
#define RULE_LASTMOD_DROPS                                                                         \
    (RULE_BIT(RULE_LASTMOD_INVALID) | RULE_BIT(RULE_LASTMOD_NO_ZONE) |                             \
     RULE_BIT(RULE_LASTMOD_FUTURE) | RULE_BIT(RULE_LASTMOD_OLD))
_Static_assert(RULE_CODE_COUNT <= 128, "rule_set holds 128 codes");

/* The stable word, "ok" to "extra-element". Static; "unknown" outside the enum. */
const char *rule_code_word(enum rule_code code);
/* The sentence for people. Static. */
const char *rule_code_sentence(enum rule_code code);
/* The same as a remark on what was accepted: with what it is about and what became of it. Static.
 */
const char *rule_code_remark(enum rule_code code);
/* Appends the words of a set as a JSON array. */
struct str;
void rule_set_append_json(struct str *out, rule_set codes);
