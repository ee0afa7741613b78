/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a loc that is accepted may still be wrong about, by its own text. Pure, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/rules/code.h"

/* RULE_LOC_LONG, RULE_LOC_NO_SITEMAP, RULE_LOC_AMP: of a normalised loc of `len` bytes, which ends
 * with a NUL and whose path begins at `path_at`. */
rule_set loc_lint(const char *loc, size_t len, size_t path_at);

/* Messages for an invalid loc: its code stays, the sentence names what was wrong and what to do.
 * Pure functions, thread safe. */

/* How many bytes of white space `text` begins, or ends with: also what does not show (U+00A0,
 * U+200B, U+FEFF and their like: url.h), which comes along when a URL is copied from a page. */
size_t explain_blank_front(const char *text, size_t len);
size_t explain_blank_back(const char *text, size_t len);

/* Whether `text` may be a URL without its scheme (www.example.com/x.xml), not a file's name
 * (products.xml) or a path. */
bool explain_may_lack_scheme(const char *text);

/* The sentence for a loc that was refused with `code`, to stand behind the loc or the word "loc".
 * Static. */
const char *explain_loc(enum rule_code code, const char *text, size_t len);
