#include "config/config_field.h"

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
        if (s->kind != SETTING_SECRET && !setting_equal(s, a, b))
            each(context, s->section, s->key, s->live);
    }
}
