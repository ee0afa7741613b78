/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Names of pages of an index, and the check that a loc is in an index's directory. */
#include "server/rules/scope.h"

#include <string.h>

#include "server/base/text.h"

#define XML_SUFFIX     ".xml"
#define GZ_SUFFIX      ".gz"
#define XML_SUFFIX_LEN (sizeof XML_SUFFIX - 1)
#define GZ_SUFFIX_LEN  (sizeof GZ_SUFFIX - 1)

#define NUMBER_MAX_DIGITS 10 /* of a uint32_t */
/* The room that PAGE_PATH_SIZE leaves for the literals of a pattern. */
#define LITERALS_MAX_CHARS                                                                         \
    (PAGE_PATH_SIZE - INDEX_PATH_MAX_CHARS - NUMBER_MAX_DIGITS - GZ_SUFFIX_LEN - 1)

size_t scope_directory_len(const char *path, size_t len)
{
    while (len > 0 && path[len - 1] != '/')
        len--;
    return len;
}

bool scope_holds(const char *index_path, const struct url *loc)
{
    size_t len = scope_directory_len(index_path, strlen(index_path));

    return loc->path_len >= len && memcmp(loc->text + loc->origin_len, index_path, len) == 0;
}

static bool ends_with(const char *text, size_t len, const char *suffix, size_t suffix_len)
{
    return len >= suffix_len && memcmp(text + len - suffix_len, suffix, suffix_len) == 0;
}

enum rule_code scope_check_index_path(const char *path)
{
    static const char origin[] = "http://host.invalid";
    char text[sizeof origin + INDEX_PATH_MAX_CHARS];
    size_t len = strlen(path);
    struct url url;
    rule_set remarks = 0;

    if (path[0] != '/' || len > INDEX_PATH_MAX_CHARS ||
        !ends_with(path, len, XML_SUFFIX, XML_SUFFIX_LEN))
        return RULE_INDEX_PATH;
    /* Checks the path as part of a loc, so that there is only one rule for normalised paths. */
    memcpy(text, origin, sizeof origin - 1);
    memcpy(text + sizeof origin - 1, path, len + 1);
    if (url_parse(text, sizeof origin - 1 + len, &url, &remarks) != RULE_OK ||
        (remarks & RULE_BIT(RULE_LOC_NORMALISED)) != 0 || url.path_len != len)
        return RULE_INDEX_PATH;
    return RULE_OK;
}

/* The parts of a pattern: "{stem}" before "{n}" after "{suffix}". */
struct pattern {
    const char *before, *after;
    size_t before_len, after_len;
};

static bool split_pattern(const char *text, struct pattern *out)
{
    static const char stem[] = "{stem}", number[] = "{n}", suffix[] = "{suffix}";
    const char *at_number = strstr(text, number);
    const char *at_suffix;

    if (at_number == NULL || strncmp(text, stem, sizeof stem - 1) != 0)
        return false;
    out->before = text + sizeof stem - 1;
    out->before_len = (size_t)(at_number - out->before);
    out->after = at_number + sizeof number - 1;
    at_suffix = strstr(out->after, suffix);
    if (at_suffix == NULL || at_suffix[sizeof suffix - 1] != '\0')
        return false;
    out->after_len = (size_t)(at_suffix - out->after);
    return true;
}

/* Whether all characters are allowed in a path segment without percent-encoding (RFC 3986 3.3). */
static bool is_literal(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!ascii_is_alnum(text[i]) && strchr("-._~!$&'()*+,;=:@", text[i]) == NULL)
            return false;
    }
    return true;
}

enum rule_code scope_check_pattern(const char *pattern)
{
    struct pattern p;

    if (!split_pattern(pattern, &p) || p.before_len == 0 ||
        p.before_len + p.after_len > LITERALS_MAX_CHARS || !is_literal(p.before, p.before_len) ||
        !is_literal(p.after, p.after_len))
        return RULE_INDEX_PATTERN;
    return RULE_OK;
}

/* "/shop/sitemap_index.xml" without its ".xml". */
static size_t stem_len(const char *index_path)
{
    return strlen(index_path) - XML_SUFFIX_LEN;
}

static char *append_bytes(char *at, const char *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

static char *append_number(char *at, uint32_t number)
{
    char digits[NUMBER_MAX_DIGITS];
    size_t first = sizeof digits;

    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return append_bytes(at, digits + first, sizeof digits - first);
}

void scope_page_path(const char *index_path, const char *pattern, uint32_t number, bool gz,
                     char *out)
{
    struct pattern p;
    char *at = append_bytes(out, index_path, stem_len(index_path));

    if (number > 1 && split_pattern(pattern, &p)) {
        at = append_bytes(at, p.before, p.before_len);
        at = append_number(at, number);
        at = append_bytes(at, p.after, p.after_len);
    }
    at = append_bytes(at, XML_SUFFIX, XML_SUFFIX_LEN);
    if (gz)
        at = append_bytes(at, GZ_SUFFIX, GZ_SUFFIX_LEN);
    *at = '\0';
}

/* Parses a number from 2 on as scope_page_path writes it; else 0. */
static uint32_t read_number(const char *text, size_t len, uint32_t max_number)
{
    uint64_t number = 0;

    if (len < 1 || len > NUMBER_MAX_DIGITS || text[0] == '0')
        return 0;
    for (size_t i = 0; i < len; i++) {
        if (!ascii_is_digit(text[i]))
            return 0;
        number = number * 10 + (uint64_t)(text[i] - '0');
    }
    return number >= 2 && number <= max_number ? (uint32_t)number : 0;
}

uint32_t scope_page_number(const char *index_path, const char *pattern, uint32_t max_number,
                           const char *path_and_query, size_t len)
{
    size_t stem = stem_len(index_path);
    struct pattern p;

    if (ends_with(path_and_query, len, GZ_SUFFIX, GZ_SUFFIX_LEN))
        len -= GZ_SUFFIX_LEN;
    if (!ends_with(path_and_query, len, XML_SUFFIX, XML_SUFFIX_LEN))
        return 0;
    len -= XML_SUFFIX_LEN;
    if (len < stem || memcmp(path_and_query, index_path, stem) != 0)
        return 0;
    if (len == stem)
        return max_number >= 1 ? 1 : 0;

    path_and_query += stem;
    len -= stem;
    if (!split_pattern(pattern, &p) || len < p.before_len + p.after_len ||
        memcmp(path_and_query, p.before, p.before_len) != 0 ||
        !ends_with(path_and_query, len, p.after, p.after_len))
        return 0;
    return read_number(path_and_query + p.before_len, len - p.before_len - p.after_len, max_number);
}

/* ---- two indexes ------------------------------------------------------------------------ */

/* The text before and after the number in the names of an index's further pages. */
struct numbered {
    char head[PAGE_PATH_SIZE];
    size_t head_len;
    const char *tail; /* not NUL-terminated */
    size_t tail_len;
};

static bool read_numbered(const char *index_path, const char *pattern, struct numbered *out)
{
    struct pattern p;
    size_t stem = stem_len(index_path);

    if (!split_pattern(pattern, &p) || stem + p.before_len > sizeof out->head)
        return false;
    append_bytes(append_bytes(out->head, index_path, stem), p.before, p.before_len);
    out->head_len = stem + p.before_len;
    out->tail = p.after;
    out->tail_len = p.after_len;
    return true;
}

static bool same_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
    return a_len == b_len && memcmp(a, b, a_len) == 0;
}

/* The number made of the digits `lead`, `lowest` and `trail`, each at most NUMBER_MAX_DIGITS long;
 * UINT64_MAX if it is invalid or exceeds 32 bits. */
static uint64_t join_number(const char *lead, size_t lead_len, uint64_t lowest, const char *trail,
                            size_t trail_len)
{
    uint64_t number = 0;
    char digits[3 * NUMBER_MAX_DIGITS + 1];
    char *at = append_number(append_bytes(digits, lead, lead_len), (uint32_t)lowest);

    at = append_bytes(at, trail, trail_len);
    for (const char *c = digits; c < at; c++) {
        if (!ascii_is_digit(*c))
            return UINT64_MAX;
        number = number * 10 + (uint64_t)(*c - '0');
        if (number > UINT32_MAX)
            return UINT64_MAX;
    }
    return number;
}

/* Whether both have a page of the same name where the number of `a` begins with `rest` (by which
 * b's head is longer) and continues with `digits` digits, at the place of b's number. If one tail
 * is longer, it begins with the last digits of the other's number. Tries the lowest numbers: if
 * these are too high, all are. */
static bool meet_at(const struct numbered *a, const struct numbered *b, const char *rest,
                    size_t rest_len, size_t digits, uint32_t max_number)
{
    static const uint32_t lowest[] = {2, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    bool a_longer = a->tail_len < b->tail_len;
    const struct numbered *more = a_longer ? b : a; /* of a tail */
    const struct numbered *less = a_longer ? a : b;
    size_t extra = more->tail_len - less->tail_len;
    size_t shared = a_longer ? (digits > extra ? digits - extra : 0) : digits;
    uint64_t number_a, number_b;

    if (shared == 0 || shared > sizeof lowest / sizeof *lowest || extra > NUMBER_MAX_DIGITS ||
        !same_bytes(more->tail + extra, less->tail_len, less->tail, less->tail_len))
        return false;
    /* A digit followed by others may be 1; alone it is at least 2. */
    for (uint32_t first = shared == 1 ? 1 : lowest[shared - 1];; first = lowest[shared - 1]) {
        number_a = join_number(rest, rest_len, first, more->tail, a_longer ? extra : 0);
        number_b = join_number("", 0, first, more->tail, a_longer ? 0 : extra);
        if (number_a >= 2 && number_b >= 2)
            return number_a <= max_number && number_b <= max_number;
        if (first != 1)
            return false;
    }
}

/* `b` has the longer head. */
static bool numbers_meet(const struct numbered *a, const struct numbered *b, const char *path_b,
                         const char *pattern_b, uint32_t max_number)
{
    const char *rest = b->head + a->head_len;
    size_t rest_len = b->head_len - a->head_len;
    char name[2 * PAGE_PATH_SIZE];

    if (memcmp(a->head, b->head, a->head_len) != 0)
        return false;
    /* Names in which the number of `a` ends within `rest`, or at its end. */
    for (size_t digits = 1; digits <= rest_len && digits <= NUMBER_MAX_DIGITS; digits++) {
        char *at = append_bytes(append_bytes(name, a->head, a->head_len), rest, digits);
        if (read_number(rest, digits, max_number) == 0)
            continue;
        at = append_bytes(append_bytes(at, a->tail, a->tail_len), XML_SUFFIX, XML_SUFFIX_LEN);
        if (scope_page_number(path_b, pattern_b, max_number, name, (size_t)(at - name)) != 0)
            return true;
    }
    if (rest_len > NUMBER_MAX_DIGITS || (rest_len > 0 && rest[0] == '0'))
        return false;
    for (size_t digits = 1; digits + rest_len <= NUMBER_MAX_DIGITS; digits++)
        if (meet_at(a, b, rest, rest_len, digits, max_number))
            return true;
    return false;
}

bool scope_pages_meet(const char *path_a, const char *pattern_a, const char *path_b,
                      const char *pattern_b, uint32_t max_number)
{
    struct numbered a, b;

    if (scope_page_number(path_a, pattern_a, max_number, path_b, strlen(path_b)) != 0 ||
        scope_page_number(path_b, pattern_b, max_number, path_a, strlen(path_a)) != 0)
        return true;
    if (!read_numbered(path_a, pattern_a, &a) || !read_numbered(path_b, pattern_b, &b))
        return false;
    return a.head_len <= b.head_len ? numbers_meet(&a, &b, path_b, pattern_b, max_number)
                                    : numbers_meet(&b, &a, path_a, pattern_a, max_number);
}
