/* The little grammars of values. Pure functions, thread safe. Internal to config/. */
#ifndef SITEMAPD_CONFIG_CONFIG_VALUE_H
#define SITEMAPD_CONFIG_CONFIG_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each returns false where `text` is malformed, and then leaves `*out` alone. */

/* yes, no, on, off, true, false, in any case. */
bool value_bool(const char *text, bool *out);
/* A decimal, digits only. */
bool value_count(const char *text, uint64_t *out);
/* Bytes: a decimal, alone or with K, M, G or T behind it (powers of 1,024). */
bool value_size(const char *text, uint64_t *out);
/* Milliseconds: a decimal with ms, s, m, h or d behind it; 0 needs none. */
bool value_duration(const char *text, uint64_t *out);

/* Visible ASCII without spaces, at least one. */
bool value_is_word(const char *text);
/* The same with spaces. */
bool value_is_header(const char *text);
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
/* Such a path that ends in .xml. */
bool value_is_index_path(const char *text);
/* An http(s) URL whose path ends in a slash, without query. */
bool value_is_folder_url(const char *text);
/* A path that ends in .xml, or an http(s) URL with such a path. */
bool value_is_index_name(const char *text);
/* {stem}, {n}, {suffix}: each once, in this order, something between the first two, no slash. */
bool value_is_pattern(const char *text);

#endif
