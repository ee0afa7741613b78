/* A growable byte string with a sticky out-of-memory flag: append freely, check once.
 *
 * All functions: O(1) amortised, no errno, not thread safe for one object. After a failed
 * allocation the contents stay as they were, `failed` is set, and later appends do nothing. */
#ifndef SITEMAPD_RULES_STR_H
#define SITEMAPD_RULES_STR_H

#include <stdarg.h>
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
/* The text, never NULL: "" where nothing was appended. Borrowed until the next append. */
const char *str_text(const struct str *s);
/* Empties, keeps the memory, clears `failed`. */
void str_clear(struct str *s);
/* Frees the memory; the object may be used again. Takes NULL. */
void str_done(struct str *s);

#endif
