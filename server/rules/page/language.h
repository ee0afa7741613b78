/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Language tags (BCP 47: RFC 5646), as hreflang and news name a language. Well-formed by the
 * grammar of section 2.1, but for tags of old that are exceptions there (i-klingon) and for those
 * of private use alone (x-klingon); whether a subtag is registered is not asked. Pure, thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define LANGUAGE_MAX_BYTES 35u /* RFC 5646 4.4.1 */

/* Writes the tag as section 2.1.1 recommends to spell it ("EN-us" -> "en-US", "zh-hant" ->
 * "zh-Hant"), so that one language has one spelling. False, `out` undefined, for an invalid tag. */
bool language_parse(const char *text, size_t len, char out[LANGUAGE_MAX_BYTES + 1]);
