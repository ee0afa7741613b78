/* The field of a setting: where it lies, and what its kind makes of it. One table of kinds is
 * behind reading a value, comparing two, and freeing one. Internal to config/. */
#ifndef SITEMAPD_CONFIG_CONFIG_FIELD_H
#define SITEMAPD_CONFIG_CONFIG_FIELD_H

#include "config/config_settings.h"

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

/* The field in `base`, a struct config or a section; of a list, the pointer to its elements. */
void *setting_field(const struct setting *s, void *base);
/* How many elements a list has. */
size_t *setting_count(const struct setting *s, void *base);
/* Makes room for one element more, zeroed, of `size` bytes. NULL when out of memory. */
void *setting_list_grow(const struct setting *s, void *base, size_t size);
/* Whether both hold the same; lists element by element. */
bool setting_equal(const struct setting *s, const void *a, const void *b);

#endif
