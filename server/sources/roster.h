/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The running remote sources as an immutable snapshot with references, so that a reload does not
 * disturb its users. (For folders: struct source_list.) */
#pragma once

#include <pthread.h>
#include <stddef.h>

#include "server/sources/remote/remote.h"

struct roster;

/* Holds the current roster. */
struct roster_place {
    pthread_mutex_t lock; /* guards the pointer only */
    struct roster *roster;
};

void roster_place_init(struct roster_place *place);
/* No thread may use it any more. */
void roster_place_done(struct roster_place *place);

/* Copies the settings except their credentials; returns a reference for the caller. NULL: out of
 * memory. */
struct roster *roster_new(const struct source_settings *settings, size_t count);
/* Replaces the current roster; takes the reference over. */
void roster_add(struct roster_place *place, struct roster *roster);
/* A reference to the current roster; NULL: none exists. Any thread. */
struct roster *roster_hold(struct roster_place *place);
void roster_release(struct roster *roster); /* accepts NULL */

/* A NULL roster counts as empty. Results are borrowed. */
size_t roster_count(const struct roster *roster);
const struct source_settings *roster_at(const struct roster *roster, size_t at);
/* NULL: none exists of this name. */
const struct source_settings *roster_find(const struct roster *roster, const char *name);
