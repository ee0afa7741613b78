/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* All sources that a server should read: those of the configuration, of `--source` and of the
 * catalogue, as settings for server/sources. If two have the same name, that of the configuration
 * wins. A plan belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"
#include "server/rules/source_settings.h"

struct catalogue;
struct registry;
struct sources;

struct renamed {
    const char *old; /* owned by the plan */
    const struct source_settings *now;
};

struct source_plan {
    size_t count;
    struct source_settings *settings;
    size_t remote_count;
    struct source_settings *remotes;
    /* owns the texts of the catalogue's sources; NULL: it cannot be read */
    struct registry *registry;
    const struct config *config;
    struct sources *running; /* NULL at the start */
    char **owned;            /* texts and lists made here */
    size_t owned_count;
    /* sources of the catalogue that the configuration gives another name (source_plan_find_unread)
     */
    struct renamed *renamed;
    size_t renamed_count;
    /* names of sources of the catalogue that own entries, and that nothing reads any more; without
     * the folders of other nodes */
    const char **orphans;
    size_t orphan_count;
    const char *misses_url; /* a sentence about a folder that has a URL only until the next start */
    bool reported;          /* a failure was logged; if not, it is a lack of memory */
};

/* NULL: a folder cannot be given a URL, the catalogue cannot be read, or no memory; reported as a
 * failed start. `config` must outlive it; `running`: the folders that are read, NULL at the start.
 * Reads the catalogue. */
struct source_plan *source_plan_new(const struct config *config, struct catalogue *c,
                                    struct sources *running);
void source_plan_free(struct source_plan *p); /* accepts NULL */
/* Whether a source has this name. */
bool source_plan_has(const struct source_plan *p, const char *name);
/* The remote source of the configuration that reads this upstream, borrowed; NULL: none. */
const struct source_settings *source_plan_find_configured(const struct source_plan *p,
                                                          const char *upstream);
/* Finds the sources of the catalogue that no longer exist, and adds them to the plan as renamed
 * ones or orphans. `starts`: the latter are logged, above all after a restore without the
 * configuration. False: the catalogue cannot be read, or no memory; the plan can be used
 * nevertheless. */
bool source_plan_find_unread(struct source_plan *p, struct catalogue *c, bool starts);
