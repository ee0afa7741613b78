/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The texts within extensions. Pure, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/base/str.h"

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
