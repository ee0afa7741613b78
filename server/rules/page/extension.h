/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The extensions that page URLs may have, and the namespaces that a urlset declares for them. Pure,
 * thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/str.h"

/* The catalogue stores sets of them: bits never change their meaning. */
#define EXTENSION_IMAGES     1u /* image:image (Google's image sitemaps) */
#define EXTENSION_ALTERNATES 2u /* xhtml:link rel="alternate" hreflang="…" */
#define EXTENSION_NEWS       4u /* news:news (Google News sitemaps) */
#define EXTENSION_VIDEOS     8u /* video:video (Google's video sitemaps) */
#define EXTENSIONS_ALL       15u
#define EXTENSION_COUNT      4u

struct extension {
    unsigned bit;
    const char *word;       /* "images", in the API and on the command line */
    const char *prefix;     /* "image", of its elements */
    const char *name_space; /* of the prefix */
};
/* In the order of the declarations in a urlset, and of the elements in a fragment. */
extern const struct extension extensions[EXTENSION_COUNT];

/* The bit of a word such as "images"; 0 for an unknown word. */
unsigned extension_named(const char *word);

/* Writes their words in that order, separated by commas: "news,images"; "" for none. */
#define EXTENSION_WORDS_SIZE 32
void extension_words(unsigned set, char out[EXTENSION_WORDS_SIZE]);

/* The limits of rows and bytes for a page of a urlset with these extensions, if `asked` is
 * configured; 0: the limit of the protocol, for news that of Google. */
uint32_t page_limit_urls(uint32_t asked, unsigned with);
uint32_t page_limit_bytes(uint32_t asked);

/* The extensions in a fragment, by the prefixes of its elements. */
unsigned extensions_of(const char *fragment);

/* The texts within extensions. Pure, thread safe. */

/* Part of a canonical fragment, borrowed. */
struct extension_span {
    const char *at;
    size_t len;
};
/* Skips `wanted`. False, and `*at` stays: it is not there. */
bool extension_skip(const char **at, const char *wanted);
/* Reads the text up to the next markup or quote (escaped within the text), and skips `behind`,
 * which must follow it. */
bool extension_read_text(const char **at, const char *behind, struct extension_span *out);
/* Normalises a text for people: white space within becomes one space, and is removed around it.
 * False: it is empty, longer than `max_bytes`, or not valid in XML 1.0. */
bool extension_text_read(const char *text, size_t len, size_t max_bytes, struct str *out);
/* Whether XML 1.0 accepts the characters, and each & begins one of its five escapes. */
bool extension_text_is_xml(const char *text);
/* Appends a text with the five escapes of XML as a JSON string. */
void extension_text_append_json(struct str *out, const char *text, size_t len);
