#include "config/config_field.h"

#include <stdlib.h>
#include <string.h>

#include "config/config_value.h"

static bool is_any(const char *text)
{
    return *text != '\0';
}

const struct setting_trait setting_traits[] = {
    [SETTING_WORD] = {STORED_TEXT, value_is_word,
                      "must be visible ASCII characters without spaces"},
    [SETTING_PATH] = {STORED_TEXT, is_any, "must not be empty"},
    [SETTING_OFF_OR_PATH] = {STORED_TEXT, is_any, "must not be empty"},
    [SETTING_ADDRESS] = {STORED_TEXT, value_is_address,
                         "must be an IP address and a port, as 127.0.0.1:8080 or [::1]:8080"},
    [SETTING_IP_RANGE] = {STORED_TEXT, NULL,
                          "must be an IP address or a range of them, as 10.0.0.1, 10.0.0.0/8 or "
                          "fd00::/8"},
    [SETTING_ORIGIN] = {STORED_TEXT, value_is_origin,
                        "must be a scheme and a host and nothing more, as https://www.example.com"},
    [SETTING_HOST] = {STORED_TEXT, value_is_host, "must be a host, as cdn.example.com"},
    [SETTING_INDEX_PATH] = {STORED_TEXT, value_is_index_path,
                            "must be a path that ends in .xml, as /sitemap_index.xml"},
    [SETTING_PATTERN] = {STORED_TEXT, value_is_pattern,
                         "must hold {stem} first, then {n}, then {suffix} last, as "
                         "{stem}-{n}{suffix}"},
    [SETTING_ALIAS] = {STORED_ALIAS, NULL,
                       "must be two paths, as /sitemap.xml -> /sitemap_index.xml"},
    [SETTING_WORDS] = {STORED_TEXT, is_any, "must not be empty"},
    [SETTING_FOLDER_URL] = {STORED_TEXT, value_is_folder_url,
                            "must be a URL that ends in a slash, as "
                            "https://www.example.com/sitemaps/"},
    [SETTING_INDEX_NAME] = {STORED_TEXT, value_is_index_name,
                            "must be an index's path or URL, as /sitemap_index.xml"},
    [SETTING_SECRET] = {STORED_TEXT, value_is_word,
                        "must be visible ASCII characters without spaces"},
    [SETTING_HEADER] = {STORED_TEXT, value_is_header,
                        "must be visible ASCII characters and spaces"},
    [SETTING_CHOICE] = {STORED_TEXT, NULL, "must be one of: "},
    [SETTING_BOOL] = {STORED_PLAIN, NULL, "must be yes or no (also on, off, true, false)"},
    [SETTING_COUNT] = {STORED_PLAIN, NULL, "must be a number, digits only"},
    [SETTING_PERCENT] = {STORED_PLAIN, NULL, "must be a percentage, as 30%"},
    [SETTING_SIZE] = {STORED_PLAIN, NULL, "must be a size, as 512K, 64M or 1G"},
    [SETTING_DURATION] = {STORED_PLAIN, NULL, "must be a duration, as 500ms, 30s, 5m or 1h"},
};

static const void *field_of(const struct setting *s, const void *base)
{
    return (const char *)base + s->offset;
}

static size_t count_of(const struct setting *s, const void *base)
{
    return *(const size_t *)(const void *)((const char *)base + s->count_offset);
}

void *setting_field(const struct setting *s, void *base)
{
    return (char *)base + s->offset;
}

size_t *setting_count(const struct setting *s, void *base)
{
    return (size_t *)(void *)((char *)base + s->count_offset);
}

void *setting_list_grow(const struct setting *s, void *base, size_t size)
{
    void **array = setting_field(s, base);
    size_t *count = setting_count(s, base);
    char *grown = reallocarray(*array, *count + 1, size);

    if (grown == NULL)
        return NULL;
    *array = grown;
    memset(grown + *count * size, 0, size);
    return grown + (*count)++ * size;
}

/* ---- one value of a storage ------------------------------------------------------------ */

static bool texts_equal(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool values_equal(enum setting_storage storage, const void *a, const void *b, size_t width)
{
    const struct config_alias *x = a, *y = b;

    switch (storage) {
    case STORED_TEXT:
        return texts_equal(*(char *const *)a, *(char *const *)b);
    case STORED_ALIAS:
        return texts_equal(x->from, y->from) && texts_equal(x->to, y->to);
    case STORED_PLAIN:
        break;
    }
    return memcmp(a, b, width) == 0;
}

static void value_free(enum setting_storage storage, void *value)
{
    struct config_alias *alias = value;

    switch (storage) {
    case STORED_TEXT:
        free(*(char **)value);
        break;
    case STORED_ALIAS:
        free(alias->from);
        free(alias->to);
        break;
    case STORED_PLAIN:
        break;
    }
}

/* ---- the field, or each element of a list ---------------------------------------------- */

static size_t element_size(enum setting_storage storage)
{
    return storage == STORED_ALIAS ? sizeof(struct config_alias) : sizeof(char *);
}

bool setting_equal(const struct setting *s, const void *a, const void *b)
{
    enum setting_storage storage = setting_traits[s->kind].storage;
    size_t size = element_size(storage);
    const char *x, *y;

    if (s->count_offset == 0)
        return values_equal(storage, field_of(s, a), field_of(s, b), s->width);
    if (count_of(s, a) != count_of(s, b))
        return false;
    x = *(const char *const *)field_of(s, a);
    y = *(const char *const *)field_of(s, b);
    for (size_t i = 0; i < count_of(s, a); i++)
        if (!values_equal(storage, x + i * size, y + i * size, size))
            return false;
    return true;
}

void setting_clear(const struct setting *s, void *base)
{
    enum setting_storage storage = setting_traits[s->kind].storage;
    void *field = setting_field(s, base);

    if (s->count_offset == 0) {
        value_free(storage, field);
    } else {
        char *array = *(char **)field;

        for (size_t i = 0; i < count_of(s, base); i++)
            value_free(storage, array + i * element_size(storage));
        free(array);
        *setting_count(s, base) = 0;
    }
    memset(field, 0, s->width);
}
