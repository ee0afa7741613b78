/* From text to field: reads a value as its setting's kind says and stores it. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_field.h"
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

/* ---- text ------------------------------------------------------------------------------ */

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
    const struct setting_trait *trait = &setting_traits[s->kind];

    if (s->kind == SETTING_CHOICE)
        return is_choice(s->choices, text) ? NULL : trait->must;
    return trait->holds(text) ? NULL : trait->must;
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
        complain(s, text, setting_traits[s->kind].must, m);
        return;
    }
    alias = setting_list_grow(s, base, sizeof *alias);
    if (alias != NULL) {
        alias->from = strdup(from);
        alias->to = strdup(to);
    }
    if (alias == NULL || alias->from == NULL || alias->to == NULL)
        mistakes_add(m, "out of memory");
}

/* True where it is a range. A mistake in a prefix may well trust a network for a machine, so it is
 * refused, and the range that may be meant is named. */
static bool judge_range(const struct setting *s, const char *text, struct mistakes *m)
{
    char whole[VALUE_RANGE_SIZE], must[sizeof whole + 128];

    switch (value_ip_range(text, whole)) {
    case VALUE_RANGE_GOOD:
        return true;
    case VALUE_RANGE_MALFORMED:
        complain(s, text, setting_traits[s->kind].must, m);
        break;
    case VALUE_RANGE_TOO_LONG_4:
        complain(s, text, "must have a prefix of at most 32 bits", m);
        break;
    case VALUE_RANGE_TOO_LONG_6:
        complain(s, text, "must have a prefix of at most 128 bits", m);
        break;
    case VALUE_RANGE_HOST_BITS:
        snprintf(must, sizeof must,
                 "has bits set behind its prefix; write %s for the range, or the address alone",
                 whole);
        complain(s, text, must, m);
        break;
    }
    return false;
}

static bool judge_word(const struct setting *s, const char *text, struct mistakes *m)
{
    const char *must;

    if (s->kind == SETTING_IP_RANGE)
        return judge_range(s, text, m);
    must = judge_text(s, text);
    if (must != NULL)
        complain(s, text, must, m);
    return must == NULL;
}

static void assign_text(const struct setting *s, void *base, const char *text, struct mistakes *m)
{
    char *copy, **slot;

    if (!judge_word(s, text, m))
        return;
    if (s->kind == SETTING_OFF_OR_PATH && strcmp(text, "off") == 0) {
        setting_clear(s, base);
        return;
    }
    copy = strdup(text);
    slot = s->count_offset != 0 ? setting_list_grow(s, base, sizeof *slot) : setting_field(s, base);
    if (copy == NULL || slot == NULL) {
        free(copy);
        if (slot != NULL && s->count_offset != 0)
            --*setting_count(s, base);
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
        complain(s, text, setting_traits[s->kind].must, m);
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
        *(uint64_t *)setting_field(s, base) = value;
    else
        *(uint32_t *)setting_field(s, base) = (uint32_t)value; /* max fits: a test sees to it */
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
        if (!value_bool(text, setting_field(s, base)))
            complain(s, text, setting_traits[s->kind].must, m);
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
