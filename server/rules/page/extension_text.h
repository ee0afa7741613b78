/* The texts within extensions. Pure, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/base/str.h"

/* Reads a text for people: `out` has one space where there was white space within, and none around
 * it. False: it is empty, longer than `max_bytes`, or not a text of XML 1.0. */
bool extension_text_read(const char *text, size_t len, size_t max_bytes, struct str *out);
/* Appends a text that has the five escapes of XML in it as a JSON string. */
void extension_text_append_json(struct str *out, const char *text, size_t len);
