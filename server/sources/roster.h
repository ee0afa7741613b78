/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The running remote sources as an immutable snapshot: callers hold it while they use it, so that a
 * reload does not disturb them. (For folders: struct source_list.) */
#pragma once

#include <pthread.h>
#include <stddef.h>

#include "server/sources/remote/remote.h"

struct roster;

/* Holds the current roster. */
struct roster_place {
    pthread_mutex_t lock; /* for the pointer alone */
    struct roster *roster;
};

/* An empty place. */
void roster_place_init(struct roster_place *place);
/* Nobody may use it any more. */
void roster_place_done(struct roster_place *place);

/* A picture of these settings, copied but for their credentials, with a reference for the caller.
 * NULL: out of memory. */
struct roster *roster_new(const struct source_settings *settings, size_t count);
/* Puts it in the place of the one before; takes the reference over. */
void roster_add(struct roster_place *place, struct roster *roster);
/* The present one, held; NULL: none was put there. Any thread. */
struct roster *roster_hold(struct roster_place *place);
void roster_release(struct roster *roster); /* takes NULL */

/* NULL is as an empty one. What is reported is borrowed. */
size_t roster_count(const struct roster *roster);
const struct source_settings *roster_at(const struct roster *roster, size_t at);
/* NULL: there is none of this name. */
const struct source_settings *roster_find(const struct roster *roster, const char *name);
