/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The one check that every format's fields go through: raw text in, an entry or a rejection
 * out. Internal to input. */
#pragma once

#include "server/input/reader.h"
#include "server/rules/lastmod.h"
#include "server/rules/page/fragment.h"
#include "server/rules/url.h"

/* What a format found, not NUL-terminated; all borrowed. Zero it, then fill what is there. */
struct raw_entry {
    const char *loc; /* NULL: none */
    size_t loc_len;
    enum rule_code loc_fault; /* set by the format where it knows better than url_parse */
    const char *loc_why;      /* the sentence for loc_fault; NULL: the code's own */
    const char *lastmod;
    size_t lastmod_len;
    enum field_state lastmod_state;
    const char *lastmod_why; /* not NULL: the lastmod is invalid, and this is why */
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
    bool has_extensions; /* of a page URL: validated_entry.fragment has what it says of them */
    enum rule_code extension_fault; /* and this is wrong with it; field and why say more */
};

/* Where the checked strings live; one for a whole document, so that no entry costs a malloc. */
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

/* Fills `rejection` for this raw entry: its line, its loc (kept in `out`), the code, the field
 * and a sentence, the code's own where `why` is NULL. Returns `code`. */
enum rule_code entry_validate_reject(const struct raw_entry *raw, struct validated_entry *out,
                                     struct rejection *rejection, enum rule_code code,
                                     const char *field, const char *why);

/* Writes `text` for people: cut at a character, controls and bad bytes as `?`. `size` >= 8. */
void entry_validate_quote(char *out, size_t size, const char *text, size_t len);
