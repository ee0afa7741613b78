/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Validates the fields of an entry for all formats: raw text in, an entry or a rejection out.
 * Internal to server/input/. */
#pragma once

#include "server/input/reader.h"
#include "server/rules/lastmod.h"
#include "server/rules/page/fragment.h"
#include "server/rules/url.h"

/* The fields that a format found, borrowed and not NUL-terminated. Zero it, then set what is there.
 */
struct raw_entry {
    const char *loc; /* NULL: none */
    size_t loc_len;
    enum rule_code loc_fault; /* set by the format if it knows better than url_parse */
    const char *loc_why;      /* the sentence for loc_fault; NULL: the code's own */
    const char *lastmod;
    size_t lastmod_len;
    enum field_state lastmod_state;
    const char *lastmod_why; /* not NULL: why the lastmod is invalid */
    const char *digest;
    size_t digest_len;
    enum field_state digest_state;
    const char *index; /* NULL: none */
    size_t index_len;
    const char *source; /* NULL: none */
    size_t source_len;
    uint32_t position; /* or POSITION_NONE */
    uint64_t line;
    rule_set remarks;
    bool has_extensions;            /* for a page URL: they are in validated_entry.fragment */
    enum rule_code extension_fault; /* a fault in the fragment, which has field and reason */
};

/* Storage for the validated strings; one for a whole document, so that an entry needs no malloc. */
struct validated_entry {
    struct entry entry; /* strings point into this object */
    struct url url;
    struct lastmod lastmod;
    char digest[DIGEST_MAX_BYTES + 1];
    char index[LOC_MAX_CHARS + 1];
    char source[NAME_MAX_BYTES + 1];
    char given[LOC_MAX_CHARS + 1]; /* rejection.loc points here */
    struct fragment *fragment;     /* owned; NULL unless page URLs are read */
    bool failed;                   /* out of memory */
};

/* False when out of memory. */
bool validated_entry_init(struct validated_entry *v, const struct reader_options *options);
void validated_entry_done(struct validated_entry *v);

/* On RULE_OK `out->entry` is filled, unless out->failed; otherwise `rejection`, whose loc and field
 * point into `out`. */
enum rule_code entry_validate(const struct raw_entry *raw, const struct reader_options *options,
                              struct validated_entry *out, struct rejection *rejection);

/* Fills `rejection` for this raw entry: line, loc (stored in `out`), code, field and a sentence
 * (`why`, or if NULL that of the code). Returns `code`. */
enum rule_code entry_validate_reject(const struct raw_entry *raw, struct validated_entry *out,
                                     struct rejection *rejection, enum rule_code code,
                                     const char *field, const char *why);

/* Writes `text` for people: cut at a character; controls and invalid bytes become `?`. `size` >= 8.
 */
void entry_validate_quote(char *out, size_t size, const char *text, size_t len);
