/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* How sources stand where nothing in this process runs them: what the catalogue remembers, and what
 * any process can see. No server is asked. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "db/catalogue.h"
#include "server/api/handlers/handlers.h"

bool sources_at_rest_has(const struct sources_at_rest *rest, const char *name)
{
    for (size_t i = 0; rest != NULL && i < rest->count; i++)
        if (strcmp(rest->configured[i].name, name) == 0)
            return true;
    return false;
}

/* The catalogue does not remember that a folder cannot be read. Any process can see that it does
 * not exist; whether it may be read depends on the server's user. */
static void find_missing(const char *directory, char *why, size_t size)
{
    struct stat st;
    if (directory == NULL)
        return;
    bool found = stat(directory, &st) == 0;
    int error = found ? ENOTDIR : errno;
    if ((found && S_ISDIR(st.st_mode)) || (error != ENOENT && error != ENOTDIR))
        return;
    snprintf(why, size, "%s: %s", directory, strerror(error));
}

static enum catalogue_status find_state(struct catalogue_view *view, struct source_at_rest *source)
{
    struct check_record list = {.id = 0};
    enum catalogue_status status = catalogue_view_source_state(view, source->name, &source->state);
    if (status != CATALOGUE_OK || !source->remote) {
        find_missing(source->made != NULL ? source->made->directory : NULL, source->failure,
                     sizeof source->failure);
        return status;
    }
    status = catalogue_view_check_bad_counts(view, source->name, source->states);
    if (status == CATALOGUE_OK)
        status = catalogue_view_check_list(view, source->name, &list);
    if (status == CATALOGUE_OK && list.problem != NULL)
        snprintf(source->failure, sizeof source->failure, "%s",
                 list.detail != NULL ? list.detail : list.problem);
    return status == CATALOGUE_NOT_FOUND ? CATALOGUE_OK : status;
}

/* The receiver of each. */
struct telling {
    const struct sources_at_rest *rest;
    struct catalogue_view *view;
    const struct registry *registry;
    source_at_rest_each *each;
    void *context;
};

static enum catalogue_status tell(const struct telling *t, const char *name,
                                  const struct source_settings *made, bool remote, bool managed)
{
    struct source_at_rest source = {
        .name = name, .made = made, .remote = remote, .managed = managed};
    enum catalogue_status status = find_state(t->view, &source);
    if (status == CATALOGUE_OK && !t->each(t->context, &source))
        return CATALOGUE_NO_MEMORY;
    return status;
}

/* The names of those that were read into the catalogue and that nobody declares: a server's with
 * --source or another configuration, or a folder that a command scanned. Copied, for a view has one
 * question at a time. */
struct undeclared {
    const struct telling *telling;
    struct {
        char *name;
        bool remote;
    } * items;
    size_t count;
    bool failed;
};

static bool keep_undeclared(void *context, const char *name, bool remote)
{
    struct undeclared *u = context;
    if (sources_at_rest_has(u->telling->rest, name) ||
        registry_source(u->telling->registry, name) != NULL)
        return true;
    void *grown = reallocarray(u->items, u->count + 1, sizeof *u->items);
    if (grown != NULL) {
        u->items = grown;
        u->items[u->count].remote = remote;
        u->items[u->count].name = strdup(name);
    }
    u->failed = grown == NULL || u->items[u->count].name == NULL;
    u->count += !u->failed;
    return !u->failed;
}

static enum catalogue_status tell_undeclared(const struct telling *t)
{
    struct undeclared u = {.telling = t};
    enum catalogue_status status = catalogue_view_sources_scanned(t->view, keep_undeclared, &u);
    if (u.failed)
        status = CATALOGUE_NO_MEMORY;
    for (size_t i = 0; i < u.count; i++) {
        if (status == CATALOGUE_OK)
            status = tell(t, u.items[i].name, NULL, u.items[i].remote, false);
        free(u.items[i].name);
    }
    free(u.items);
    return status;
}

enum catalogue_status sources_at_rest_each(const struct sources_at_rest *rest,
                                           struct catalogue_view *view,
                                           const struct registry *registry,
                                           source_at_rest_each *each, void *context)
{
    const struct telling t = {rest, view, registry, each, context};
    enum catalogue_status status = CATALOGUE_OK;
    for (size_t i = 0; i < rest->count && status == CATALOGUE_OK; i++)
        status = tell(&t, rest->configured[i].name, &rest->configured[i],
                      rest->configured[i].upstream != NULL, true);
    for (size_t i = 0; i < registry->source_count && status == CATALOGUE_OK; i++) {
        const struct source_settings *made = &registry->sources[i];
        if (!sources_at_rest_has(rest, made->name))
            status = tell(&t, made->name, made, made->upstream != NULL, false);
    }
    return status == CATALOGUE_OK ? tell_undeclared(&t) : status;
}
