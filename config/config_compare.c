#include <string.h>

#include "config/config_settings.h"

static bool texts_equal(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static const void *field(const struct setting *s, const struct config *c)
{
    return (const char *)c + s->offset;
}

static size_t count(const struct setting *s, const struct config *c)
{
    return *(const size_t *)(const void *)((const char *)c + s->count_offset);
}

static bool values_equal(const struct setting *s, const struct config *a, const struct config *b)
{
    if (s->count_offset != 0) {
        char *const *x = *(char *const *const *)field(s, a);
        char *const *y = *(char *const *const *)field(s, b);
        bool equal = count(s, a) == count(s, b);
        for (size_t i = 0; equal && i < count(s, a); i++)
            equal = texts_equal(x[i], y[i]);
        return equal;
    }
    switch (s->kind) {
    case SETTING_BOOL:
    case SETTING_COUNT:
    case SETTING_PERCENT:
    case SETTING_SIZE:
    case SETTING_DURATION:
        return memcmp(field(s, a), field(s, b), s->width) == 0;
    default:
        return texts_equal(*(char *const *)field(s, a), *(char *const *)field(s, b));
    }
}

void config_compare(const struct config *a, const struct config *b, config_difference *each,
                    void *context)
{
    for (size_t i = 0; i < config_settings_count; i++) {
        const struct setting *s = &config_settings[i];
        /* What nobody set is the same, though its default may follow the surroundings: the
         * database's is another once root has become somebody else. */
        if (a->set_by[i].level == LEVEL_DEFAULT && b->set_by[i].level == LEVEL_DEFAULT)
            continue;
        /* A secret is taken in once and wiped: there is nothing to compare. */
        if (s->kind != SETTING_SECRET && !values_equal(s, a, b))
            each(context, s->section, s->key, s->live);
    }
}
