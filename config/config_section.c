/* Sections that stand many times, each with a name: [site "…"], [source "…"]. */
#include <stdlib.h>
#include <string.h>

#include "config/config_settings.h"

const struct section_table config_sections[] = {
    {"site", config_site_settings, &config_site_settings_count, sizeof(struct config_site),
     offsetof(struct config, sites), offsetof(struct config, site_count)},
    {"source", config_source_settings, &config_source_settings_count, sizeof(struct config_source),
     offsetof(struct config, sources), offsetof(struct config, source_count)},
};
const size_t config_sections_count = sizeof config_sections / sizeof *config_sections;

const struct section_table *section_find(const char *section, size_t len)
{
    for (size_t i = 0; i < config_sections_count; i++)
        if (strlen(config_sections[i].section) == len &&
            strncmp(config_sections[i].section, section, len) == 0)
            return &config_sections[i];
    return NULL;
}

const struct setting *section_setting(const struct section_table *t, const char *key)
{
    for (size_t i = 0; i < *t->setting_count; i++)
        if (strcmp(t->settings[i].key, key) == 0)
            return &t->settings[i];
    return NULL;
}

size_t section_count(const struct config *c, const struct section_table *t)
{
    return *(const size_t *)(const void *)((const char *)c + t->count_offset);
}

struct config_named *section_at(const struct config *c, const struct section_table *t, size_t at)
{
    char *const *array = (char *const *)(const void *)((const char *)c + t->array_offset);

    return (struct config_named *)(void *)(*array + at * t->size);
}

static void section_done(const struct section_table *t, struct config_named *section)
{
    for (size_t i = 0; i < *t->setting_count; i++)
        setting_clear(&t->settings[i], section);
    free(section->name);
    free(section->seen);
    memset(section, 0, t->size);
}

struct config_named *section_new(struct config *c, const struct section_table *t, const char *name,
                                 unsigned line)
{
    void **array = (void **)(void *)((char *)c + t->array_offset);
    size_t *count = (size_t *)(void *)((char *)c + t->count_offset);
    void *grown = reallocarray(*array, *count + 1, t->size);
    struct mistakes m = {0};

    if (grown == NULL)
        return NULL;
    *array = grown;
    struct config_named *section = section_at(c, t, *count);
    memset(section, 0, t->size);
    section->line = line;
    section->name = strdup(name);
    section->seen = calloc(*t->setting_count, sizeof *section->seen);
    for (size_t i = 0; i < *t->setting_count; i++)
        if (t->settings[i].fallback != NULL)
            setting_assign_list(&t->settings[i], section, t->settings[i].fallback, &m);
    if (section->name == NULL || section->seen == NULL || m.count > 0) {
        section_done(t, section);
        return NULL;
    }
    ++*count;
    return section;
}

void sections_done(struct config *c, const struct section_table *t)
{
    for (size_t i = 0; i < section_count(c, t); i++)
        section_done(t, section_at(c, t, i));
    free(*(void **)(void *)((char *)c + t->array_offset));
}
