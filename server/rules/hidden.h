/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* White space and format characters of Unicode beyond ASCII, which do not show and come along when
 * a URL is copied from a page or a table: U+00A0, U+2003, U+200B, U+FEFF and their like. Around a
 * URL of a list they are dropped with a remark, within one they are refused by name. Pure
 * functions, thread safe. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* What is wrong with a URL that has this character, which is UTF-8 of `char_len` bytes, to stand
 * behind the URL; static. NULL: it is not one of them. */
const char *hidden_sentence(const char *text, size_t char_len);

/* The bytes of the one that `text` begins, or ends with; 0: none. */
size_t hidden_front(const char *text, size_t len);
size_t hidden_back(const char *text, size_t len);
