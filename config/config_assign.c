/* From text to field: reads a value as its setting's kind says and stores it. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_settings.h"
#include "config/config_value.h"

#define MESSAGE_SIZE 512
#define ALIAS_ARROW  "->"

void mistakes_add(struct mistakes *m, const char *format, ...)
{
    char message[MESSAGE_SIZE];
    int at = 0;
    va_list args;

    m->count++;
    if (m->report == NULL)
        return;
    if (m->name != NULL)
        at = snprintf(message, sizeof message, "%s: ", m->name);
    if (at < 0 || (size_t)at >= sizeof message)
        at = 0;
    va_start(args, format);
    vsnprintf(message + at, sizeof message - (size_t)at, format, args);
    va_end(args);
    m->report(m->context, m->file, m->line, message);
}

static void *field_of(const struct setting *s, void *base)
{
    return (char *)base + s->offset;
}

/* ---- text ------------------------------------------------------------------------------ */

static bool is_visible(const char *text, bool blanks)
{
    for (const char *p = text; *p != '\0'; p++)
        if (*p > '~' || *p < ' ' || (*p == ' ' && !blanks))
            return false;
    return *text != '\0';
}

static bool is_choice(const char *choices, const char *text)
{
    size_t len = strlen(text);

    for (const char *p = choices; *p != '\0'; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");

        if (n == len && strncmp(p, text, n) == 0)
            return true;
        p += n;
    }
    return false;
}

/* What is wrong with `text`: what it must be; NULL where nothing is. */
static const char *judge_text(const struct setting *s, const char *text)
{
    switch (s->kind) {
    case SETTING_ADDRESS:
        return value_is_address(text)
                   ? NULL
                   : "must be an IP address and a port, as 127.0.0.1:8080 or [::1]:8080";
    case SETTING_IP:
        return value_is_ip(text) ? NULL : "must be an IP address, as 10.0.0.1 or fd00::1";
    case SETTING_ORIGIN:
        return value_is_origin(text)
                   ? NULL
                   : "must be a scheme and a host and nothing more, as https://www.example.com";
    case SETTING_HOST:
        return value_is_host(text) ? NULL : "must be a host, as cdn.example.com";
    case SETTING_INDEX_PATH: {
        size_t len = strlen(text);
        return value_is_url_path(text) && len >= 5 && strcmp(text + len - 4, ".xml") == 0
                   ? NULL
                   : "must be a path that ends in .xml, as /sitemap_index.xml";
    }
    case SETTING_PATTERN:
        return value_is_pattern(text)
                   ? NULL
                   : "must hold {stem} first, then {n}, then {suffix} last, as {stem}-{n}{suffix}";
    case SETTING_FOLDER_URL:
        return value_is_folder_url(text)
                   ? NULL
                   : "must be a URL that ends in a slash, as https://www.example.com/sitemaps/";
    case SETTING_INDEX_NAME:
        return value_is_index_name(text) ? NULL
                                         : "must be an index's path or URL, as /sitemap_index.xml";
    case SETTING_WORD:
    case SETTING_SECRET:
        return is_visible(text, false) ? NULL : "must be visible ASCII characters without spaces";
    case SETTING_HEADER:
        return is_visible(text, true) ? NULL : "must be visible ASCII characters and spaces";
    case SETTING_CHOICE:
        return is_choice(s->choices, text) ? NULL : "must be one of: ";
    default:
        return *text != '\0' ? NULL : "must not be empty";
    }
}

/* Tells that `text` is wrong, showing it unless it is a secret. A variable or flag is named by
 * itself already. */
static void complain(const struct setting *s, const char *text, const char *must,
                     struct mistakes *m)
{
    const char *more = s->kind == SETTING_CHOICE ? s->choices : "";
    const char *key = m->name == NULL ? s->key : "", *colon = m->name == NULL ? ": " : "";

    if (s->kind == SETTING_SECRET)
        mistakes_add(m, "%s%s%s", key, colon, must);
    else
        mistakes_add(m, "%s%s\"%.100s\" %s%s", key, colon, text, must, more);
}

/* ---- lists ----------------------------------------------------------------------------- */

static size_t *count_of(const struct setting *s, void *base)
{
    return (size_t *)(void *)((char *)base + s->count_offset);
}

/* Makes room for one more element. NULL when out of memory. */
static void *list_grow(const struct setting *s, void *base, size_t element)
{
    void **array = field_of(s, base);
    size_t *count = count_of(s, base);
    char *grown = reallocarray(*array, *count + 1, element);

    if (grown == NULL)
        return NULL;
    *array = grown;
    memset(grown + *count * element, 0, element);
    return grown + (*count)++ * element;
}

static void assign_alias(const struct setting *s, void *base, const char *text, struct mistakes *m)
{
    char from[PATH_MAX];
    const char *arrow = strstr(text, ALIAS_ARROW), *to;
    size_t len = arrow != NULL ? (size_t)(arrow - text) : 0;
    struct config_alias *alias;

    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        len--;
    to = arrow != NULL ? arrow + strlen(ALIAS_ARROW) + strspn(arrow + strlen(ALIAS_ARROW), " \t")
                       : "";
    if (len >= sizeof from)
        len = 0;
    memcpy(from, text, len);
    from[len] = '\0';
    if (!value_is_url_path(from) || !value_is_url_path(to)) {
        complain(s, text, "must be two paths, as /sitemap.xml -> /sitemap_index.xml", m);
        return;
    }
    alias = list_grow(s, base, sizeof *alias);
    if (alias != NULL) {
        alias->from = strdup(from);
        alias->to = strdup(to);
    }
    if (alias == NULL || alias->from == NULL || alias->to == NULL)
        mistakes_add(m, "out of memory");
}

static void assign_text(const struct setting *s, void *base, const char *text, struct mistakes *m)
{
    const char *must = judge_text(s, text);
    char *copy, **slot;

    if (must != NULL) {
        complain(s, text, must, m);
        return;
    }
    if (s->kind == SETTING_OFF_OR_PATH && strcmp(text, "off") == 0) {
        setting_clear(s, base);
        return;
    }
    copy = strdup(text);
    slot = s->count_offset != 0 ? list_grow(s, base, sizeof *slot) : field_of(s, base);
    if (copy == NULL || slot == NULL) {
        free(copy);
        if (slot != NULL && s->count_offset != 0)
            --*count_of(s, base);
        mistakes_add(m, "out of memory");
        return;
    }
    free(*slot);
    *slot = copy;
}

/* ---- numbers --------------------------------------------------------------------------- */

static bool read_number(const struct setting *s, const char *text, uint64_t *out)
{
    char digits[24];
    size_t len = strlen(text);

    switch (s->kind) {
    case SETTING_SIZE:
        return value_size(text, out);
    case SETTING_DURATION:
        return value_duration(text, out);
    case SETTING_PERCENT:
        if (len > 0 && text[len - 1] == '%')
            len--;
        if (len >= sizeof digits)
            return false;
        memcpy(digits, text, len);
        digits[len] = '\0';
        return value_count(digits, out);
    default:
        return value_count(text, out);
    }
}

/* Writes a bound as it would be written in the file. */
static void write_number(enum setting_kind kind, uint64_t value, char *out, size_t size)
{
    static const struct {
        enum setting_kind kind;
        uint64_t factor;
        const char *unit;
    } units[] = {
        {SETTING_SIZE, 1ull << 40, "T"},   {SETTING_SIZE, 1ull << 30, "G"},
        {SETTING_SIZE, 1ull << 20, "M"},   {SETTING_SIZE, 1ull << 10, "K"},
        {SETTING_DURATION, 86400000, "d"}, {SETTING_DURATION, 3600000, "h"},
        {SETTING_DURATION, 60000, "m"},    {SETTING_DURATION, 1000, "s"},
        {SETTING_DURATION, 1, "ms"},       {SETTING_PERCENT, 1, "%"},
    };

    for (size_t i = 0; value > 0 && i < sizeof units / sizeof *units; i++) {
        if (units[i].kind == kind && value % units[i].factor == 0) {
            snprintf(out, size, "%llu%s", (unsigned long long)(value / units[i].factor),
                     units[i].unit);
            return;
        }
    }
    snprintf(out, size, "%llu", (unsigned long long)value);
}

static void assign_number(const struct setting *s, void *base, const char *text, struct mistakes *m)
{
    char must[128], min[32], max[32];
    uint64_t value;

    if (!read_number(s, text, &value)) {
        complain(s, text,
                 s->kind == SETTING_SIZE       ? "must be a size, as 512K, 64M or 1G"
                 : s->kind == SETTING_DURATION ? "must be a duration, as 500ms, 30s, 5m or 1h"
                 : s->kind == SETTING_PERCENT  ? "must be a percentage, as 30%"
                                               : "must be a number, digits only",
                 m);
        return;
    }
    if (value < s->min || value > s->max) {
        write_number(s->kind, s->min, min, sizeof min);
        write_number(s->kind, s->max, max, sizeof max);
        snprintf(must, sizeof must, "must be from %s to %s", min, max);
        complain(s, text, must, m);
        return;
    }
    if (s->width == sizeof(uint64_t))
        *(uint64_t *)field_of(s, base) = value;
    else
        *(uint32_t *)field_of(s, base) = (uint32_t)value; /* max fits: a test sees to it */
}

void setting_assign_list(const struct setting *s, void *base, const char *text, struct mistakes *m)
{
    char *copy, *rest, *word;

    if (s->kind != SETTING_WORDS) {
        setting_assign(s, base, text, m);
        return;
    }
    copy = strdup(text);
    if (copy == NULL) {
        mistakes_add(m, "out of memory");
        return;
    }
    word = strtok_r(copy, " \t\r\n", &rest);
    if (word == NULL)
        assign_text(s, base, "", m); /* says what is missing */
    for (; word != NULL; word = strtok_r(NULL, " \t\r\n", &rest))
        assign_text(s, base, word, m);
    free(copy);
}

void setting_assign(const struct setting *s, void *base, const char *text, struct mistakes *m)
{
    switch (s->kind) {
    case SETTING_BOOL:
        if (!value_bool(text, field_of(s, base)))
            complain(s, text, "must be yes or no (also on, off, true, false)", m);
        return;
    case SETTING_COUNT:
    case SETTING_PERCENT:
    case SETTING_SIZE:
    case SETTING_DURATION:
        assign_number(s, base, text, m);
        return;
    case SETTING_ALIAS:
        assign_alias(s, base, text, m);
        return;
    case SETTING_WORDS:
        setting_assign_list(s, base, text, m);
        return;
    default:
        assign_text(s, base, text, m);
    }
}

void setting_clear(const struct setting *s, void *base)
{
    size_t *count;

    if (s->count_offset == 0) {
        switch (s->kind) {
        case SETTING_BOOL:
        case SETTING_COUNT:
        case SETTING_PERCENT:
        case SETTING_SIZE:
        case SETTING_DURATION:
            break; /* owns nothing */
        default:
            free(*(char **)field_of(s, base));
        }
        memset(field_of(s, base), 0, s->width);
        return;
    }
    count = count_of(s, base);
    for (size_t i = 0; i < *count; i++) {
        if (s->kind == SETTING_ALIAS) {
            struct config_alias *alias = &(*(struct config_alias **)field_of(s, base))[i];

            free(alias->from);
            free(alias->to);
        } else {
            free((*(char ***)field_of(s, base))[i]);
        }
    }
    free(*(void **)field_of(s, base));
    memset(field_of(s, base), 0, s->width);
    *count = 0;
}
