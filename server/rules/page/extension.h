/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What page URLs may bear beside loc and lastmod, and the namespaces that a urlset's frame declares
 * for it. Pure, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/str.h"

/* A set of them is kept in the catalogue: bits never change their meaning. */
#define EXTENSION_IMAGES     1u /* image:image (Google's image sitemaps) */
#define EXTENSION_ALTERNATES 2u /* xhtml:link rel="alternate" hreflang="…" */
#define EXTENSION_NEWS       4u /* news:news (Google News sitemaps) */
#define EXTENSION_VIDEOS     8u /* video:video (Google's video sitemaps) */
#define EXTENSIONS_ALL       15u
#define EXTENSION_COUNT      4u

struct extension {
    unsigned bit;
    const char *word;       /* "images", as API and command line name it */
    const char *prefix;     /* "image", of its elements */
    const char *name_space; /* what the prefix is declared as */
};
/* In the order in which a frame declares them and a row's fragment has them. */
extern const struct extension extensions[EXTENSION_COUNT];

/* The bit of "images" and its like; 0 for an unknown word. */
unsigned extension_named(const char *word);

/* "news,images": their words, in that order, with commas between; "" for none. */
#define EXTENSION_WORDS_SIZE 32
void extension_words(unsigned set, char out[EXTENSION_WORDS_SIZE]);

/* How many rows a page of a urlset with these extensions may have, and how many bytes, where that
 * is asked for; 0: as many as the protocol lets it, of news as many as Google does. */
uint32_t page_limit_urls(uint32_t asked, unsigned with);
uint32_t page_limit_bytes(uint32_t asked);

/* Of a row's fragment which extensions it has, by its elements' prefixes. */
unsigned extensions_of(const char *fragment);

/* The texts within extensions. Pure, thread safe. */

/* Part of a canonical fragment, borrowed. */
struct extension_span {
    const char *at;
    size_t len;
};
/* Steps over `wanted`. False, and `*at` stays, where it is not there. */
bool extension_skip(const char **at, const char *wanted);
/* Takes the text up to the next markup or quote, which are escaped within it, then `behind`. */
bool extension_read_text(const char **at, const char *behind, struct extension_span *out);
/* Reads a text for people: `out` has one space where there was white space within, and none around
 * it. False: it is empty, longer than `max_bytes`, or not a text of XML 1.0. */
bool extension_text_read(const char *text, size_t len, size_t max_bytes, struct str *out);
/* Appends a text that has the five escapes of XML in it as a JSON string. */
void extension_text_append_json(struct str *out, const char *text, size_t len);
