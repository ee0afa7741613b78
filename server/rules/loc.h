/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Remarks on the text of a valid loc, and explanations for an invalid one. Pure, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/rules/code.h"

/* RULE_LOC_LONG, RULE_LOC_NO_SITEMAP and RULE_LOC_AMP for a normalised loc of `len` bytes with a
 * NUL at its end, whose path begins at `path_at`. */
rule_set loc_lint(const char *loc, size_t len, size_t path_at);

/* Messages for an invalid loc: more precise than the sentence of its code, with what to do. */

/* The bytes of white space at the beginning, or the end, of `text`, with invisible characters
 * (U+00A0, U+200B, U+FEFF and others: url.h), which come along when a URL is copied from a page. */
size_t explain_blank_front(const char *text, size_t len);
size_t explain_blank_back(const char *text, size_t len);

/* Whether `text` may be a URL without its scheme (www.example.com/x.xml), and not a file name
 * (products.xml) or a path. */
bool explain_may_lack_scheme(const char *text);

/* The sentence for a loc that was refused with `code`; it follows the loc or the word "loc".
 * Static. */
const char *explain_loc(enum rule_code code, const char *text, size_t len);
