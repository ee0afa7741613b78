/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A growable byte string with a sticky out-of-memory flag: append freely, check once.
 *
 * All functions: O(1) amortised, no errno, not thread safe for one object. After a failed
 * allocation the contents stay as they were, `failed` is set, and later appends do nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str {
    char *data;      /* owned; NUL-terminated when not NULL */
    size_t len;      /* bytes, without the NUL */
    size_t capacity; /* bytes allocated */
    bool failed;     /* an allocation failed; the contents are incomplete */
};

#define STR_INIT                                                                                   \
    {                                                                                              \
        NULL, 0, 0, false                                                                          \
    }

/* Makes room for `extra` more bytes and the NUL. False when out of memory. */
bool str_reserve(struct str *s, size_t extra);
void str_append(struct str *s, const void *bytes, size_t len);
void str_append_text(struct str *s, const char *text);
void str_append_char(struct str *s, char c);
void str_append_u64(struct str *s, uint64_t value);
void str_append_format(struct str *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Appends `text` as a JSON string with its quotes (RFC 8259 7); bytes that are not UTF-8 become
 * U+FFFD. NULL appends `null`. */
void str_append_json(struct str *s, const char *text, size_t len);
/* Appends JSON text unchanged, except that it escapes characters that a terminal obeys
 * (utf8_is_unprintable). */
void str_append_json_shown(struct str *s, const char *json);
/* As str_append_json, for a NUL-terminated text. */
void str_append_json_text(struct str *s, const char *text);
/* Appends `,"name":"text"`, a member that follows another. */
void str_append_json_member(struct str *s, const char *name, const char *text);
/* The same for an array of texts: `,"name":["…"]`. */
void str_append_json_texts(struct str *s, const char *name, const char *const *texts, size_t count);
/* The text; "" if nothing was appended, never NULL. Borrowed until the next append. */
const char *str_text(const struct str *s);
/* Empties, keeps the memory, clears `failed`. */
void str_clear(struct str *s);
/* Frees the memory; the object may be used again. Accepts NULL. */
void str_done(struct str *s);

/* Texts (each may be NULL), and NULL-terminated lists of texts (a NULL list is empty). Thread safe.
 */

bool text_equal(const char *a, const char *b);
bool texts_equal(const char *const *a, const char *const *b);
/* Copies, which the caller frees; NULL for NULL. When out of memory `*failed` is set. */
char *text_copy(const char *text, bool *failed);
const char *const *texts_copy(const char *const *texts, bool *failed);
/* Frees a list and its texts, also if copying it failed. Accepts NULL. */
void texts_free(const char *const *texts);

/* UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing past U+10FFFF. Pure
 * functions, thread safe. */

/* The length (1 to 4) of the character that `text` begins with, 0 for invalid UTF-8. `len` is at
 * least 1. */
size_t utf8_char_len(const char *text, size_t len);

/* Copies a text; one that is longer than `size` - 1 is cut after a whole character. */
void utf8_copy_cut(char *out, size_t size, const char *text);

/* True if all `len` bytes are valid UTF-8. */
bool utf8_is_valid(const char *text, size_t len);

/* True if the character of `char_len` bytes at `text` is a control: C0, DEL or C1. */
bool utf8_is_control(const char *text, size_t char_len);

/* True for a character that must not be printed as it is, because with it one name could look like
 * another: controls; characters that move or reverse the text around them (marks, embeddings,
 * overrides and isolates of the bidirectional algorithm, UAX 9; line and paragraph separators); and
 * characters without width, except the joiners (U+200C, U+200D), which scripts and emoji need. */
bool utf8_is_unprintable(const char *text, size_t char_len);

/* The code point of the character of `char_len` bytes (1 to 4) at `text`. */
uint32_t utf8_code(const char *text, size_t char_len);
