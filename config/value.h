/* The little grammars of values. Pure functions, thread safe. Internal to config/. */
#ifndef SITEMAPD_CONFIG_VALUE_H
#define SITEMAPD_CONFIG_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/settings.h"

/* Each returns false where `text` is malformed, and then leaves `*out` alone. */

/* yes, no, on, off, true, false, in any case. */
bool value_bool(const char *text, bool *out);
/* A decimal, digits only. */
bool value_count(const char *text, uint64_t *out);
/* Bytes: a decimal, alone or with K, M, G or T behind it (powers of 1,024). */
bool value_size(const char *text, uint64_t *out);
/* Milliseconds: a decimal with ms, s, m, h or d behind it; 0 needs none. */
bool value_duration(const char *text, uint64_t *out);
enum value_range {
    VALUE_RANGE_GOOD,
    VALUE_RANGE_MALFORMED,
    VALUE_RANGE_TOO_LONG_4, /* more than 32 bits */
    VALUE_RANGE_TOO_LONG_6, /* more than 128 */
    VALUE_RANGE_HOST_BITS,  /* bits behind its prefix are set */
};

#define VALUE_RANGE_SIZE 50 /* of the longest, with its NUL */

/* An IPv4 address or an IPv6 one without brackets, alone or with `/bits` behind it. HOST_BITS
 * writes the range that the address lies in to `whole`; else it is left alone. */
enum value_range value_ip_range(const char *text, char whole[VALUE_RANGE_SIZE]);
/* `1.2.3.4:80` or `[::1]:80`; port 0 to 65535. */
bool value_is_address(const char *text);
/* `host` or `host:port`: letters, digits, hyphens and dots, or a bracketed IPv6 address. */
bool value_is_host(const char *text);
/* `http://host[:port]` or https, a slash behind it allowed. */
bool value_is_origin(const char *text);
/* Begins with a slash and has neither blanks nor `?` nor `#`. */
bool value_is_url_path(const char *text);
/* {stem}, {n}, {suffix}: each once, in this order, something between the first two, no slash. */
bool value_is_pattern(const char *text);

/* The field of a setting: where it lies, and what its kind makes of it. One table of kinds is
 * behind reading a value, comparing two, and freeing one. Internal to config/. */

enum setting_storage {
    STORED_PLAIN, /* `width` bytes, which own nothing */
    STORED_TEXT,  /* a char *, owned; NULL: none */
    STORED_ALIAS, /* a struct config_alias, whose texts are owned (list only) */
};

struct setting_trait {
    enum setting_storage storage;
    bool (*holds)(
        const char *text); /* STORED_TEXT, but for choices and ranges: whether it may be `text` */
    const char *must;      /* what a text that it does not take is told */
};

extern const struct setting_trait setting_traits[]; /* by kind */
/* How many elements a list has. */
size_t *setting_count(const struct setting *s, void *base);
/* Whether both hold the same; lists element by element. */
bool setting_equal(const struct setting *s, const void *a, const void *b);

#endif
