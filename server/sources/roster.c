/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Builds and looks up the list of remote sources. */
#include "server/sources/roster.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct roster {
    atomic_uint references;
    size_t count;
    struct source_settings at[]; /* owns their texts */
};

void roster_place_init(struct roster_place *place)
{
    pthread_mutex_init(&place->lock, NULL);
    place->roster = NULL;
}

void roster_place_done(struct roster_place *place)
{
    roster_release(place->roster);
    pthread_mutex_destroy(&place->lock);
}

void roster_release(struct roster *roster)
{
    if (roster == NULL ||
        atomic_fetch_sub_explicit(&roster->references, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < roster->count; i++)
        source_settings_done(&roster->at[i]);
    free(roster);
}

struct roster *roster_new(const struct source_settings *settings, size_t count)
{
    bool failed = false;
    struct roster *roster = calloc(1, sizeof *roster + count * sizeof *roster->at);
    if (roster == NULL)
        return NULL;
    atomic_init(&roster->references, 1);
    roster->count = count;
    for (size_t i = 0; i < count; i++) {
        struct source_settings open = settings[i];
        open.credentials = NULL;
        failed |= !source_settings_copy(&open, &roster->at[i]);
    }
    if (!failed)
        return roster;
    roster_release(roster);
    return NULL;
}

void roster_add(struct roster_place *place, struct roster *roster)
{
    pthread_mutex_lock(&place->lock);
    struct roster *before = place->roster;
    place->roster = roster;
    pthread_mutex_unlock(&place->lock);
    roster_release(before);
}

struct roster *roster_hold(struct roster_place *place)
{
    pthread_mutex_lock(&place->lock);
    struct roster *roster = place->roster;
    if (roster != NULL)
        atomic_fetch_add_explicit(&roster->references, 1, memory_order_relaxed);
    pthread_mutex_unlock(&place->lock);
    return roster;
}

size_t roster_count(const struct roster *roster)
{
    return roster == NULL ? 0 : roster->count;
}

const struct source_settings *roster_at(const struct roster *roster, size_t at)
{
    return &roster->at[at];
}

const struct source_settings *roster_find(const struct roster *roster, const char *name)
{
    for (size_t i = 0; i < roster_count(roster); i++)
        if (strcmp(roster->at[i].name, name) == 0)
            return &roster->at[i];
    return NULL;
}
