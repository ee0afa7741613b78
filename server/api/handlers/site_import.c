/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* POST /v1/sites/import: import a site that was copied from another catalogue (GET
 * /v1/sites/{id}/copy, copy.c).
 *
 * The body is a file of any size. The workers write it beside the catalogue, piece by piece, while
 * the sender waits. Then a thread of its own checks it, since that reads the whole file, and the
 * writer imports it. If the process is killed, the next one removes the file (copies_remove_left).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/catalogue.h"
#include "server/api/auth.h"
#include "server/api/call.h"
#include "server/api/copy.h"
#include "server/api/errors.h"
#include "server/api/handlers/handlers.h"
#include "server/api/json.h"
#include "server/api/objects.h"

struct site_import {
    struct call call; /* first */
    char *name;       /* owned; NULL: there is no file yet */
    FILE *file;       /* owned */
    struct str held;  /* the piece under way */
    bool counted;     /* it counts as one of the few copies of whole catalogues */
    bool over;        /* it failed: the rest of the body is dropped */
    uint64_t received;
};
const size_t site_import_size = sizeof(struct site_import);

static void import_cleanup(struct call *call)
{
    struct site_import *self = (struct site_import *)call;

    if (self->file != NULL)
        fclose(self->file);
    if (self->name != NULL)
        copy_remove_file(self->name);
    free(self->name);
    str_done(&self->held);
    if (self->counted)
        atomic_fetch_sub(&call->app->backups_open, 1);
}

static void give_up(struct site_import *self, enum catalogue_status status)
{
    if (!self->over)
        errors_reply_status(&self->call.request->reply, status);
    self->over = true;
}

/* Whether the disk has space for the file: half of the free space stays free, for the catalogue's
 * own growth. */
static bool has_space(struct site_import *self, uint64_t bytes)
{
    struct catalogue_stats stats;

    catalogue_stats_get(self->call.app->catalogue, &stats);
    if (stats.disk_free_bytes == 0 || stats.disk_free_bytes / 2 > bytes)
        return true;
    self->over = true;
    reply_problem(
        &self->call.request->reply, 413, "body-too-large", NULL,
        "no space left: the copy needs more than half of the free space on this server's disk");
    return false;
}

enum handled site_import_begin(void *context, struct request *request)
{
    struct site_import *self;

    if (call_begin(context, request) == HANDLED)
        return HANDLED;
    self = request->state;
    self->call.cleanup = import_cleanup;
    if (request->grant.site_id != 0 || !grant_has_whole(&request->grant)) {
        errors_reply_rule(&request->reply, RULE_ALL_SITES, NULL, NULL);
        return HANDLED;
    }
    self->counted = copy_reserve_whole(self->call.app);
    if (self->counted) {
        const char *length = request_header(request, HEADER_CONTENT_LENGTH);
        uint64_t bytes;

        if (length == NULL || (query_number(length, UINT64_MAX, &bytes) && has_space(self, bytes)))
            return HANDLE_CONTINUE;
        return HANDLED;
    }
    reply_problem(&request->reply, 503, "too-many-copies", NULL,
                  "busy: too many backups and sites are being copied; retry later");
    reply_header(&request->reply, "Retry-After", "10");
    return HANDLED;
}

static void write_piece(struct site_import *self)
{
    if (self->over)
        return;
    if (!has_space(self, self->received))
        return;
    if (self->name == NULL && (self->name = copy_make_file(self->call.app)) != NULL)
        self->file = fopen(self->name, "w+e");
    errno = 0;
    if (self->file == NULL ||
        fwrite(self->held.data, 1, self->held.len, self->file) != self->held.len)
        give_up(self,
                errno == ENOSPC || errno == EDQUOT ? CATALOGUE_NO_SPACE : CATALOGUE_UNAVAILABLE);
    str_clear(&self->held);
}

static void run_piece(void *context)
{
    struct site_import *self = context;

    repeat_body(&self->call, self->held.data, self->held.len);
    write_piece(self);
    request_resume(self->call.request);
}

enum handled site_import_body(void *context, struct request *request, const void *bytes, size_t len)
{
    struct site_import *self = request->state;

    (void)context;
    self->received += len;
    if (self->over)
        return HANDLE_CONTINUE;
    str_append(&self->held, bytes, len);
    if (self->held.failed) {
        give_up(self, CATALOGUE_NO_MEMORY);
        return HANDLE_CONTINUE;
    }
    return call_run(&self->call, run_piece);
}

static void answer_imported(struct call *call)
{
    struct reply *reply = &call->request->reply;
    const struct registry_site *site = registry_site_by_id(call_registry(call), call->result.id);
    char location[40], id[24];
    const struct json_site_imported shown = {.id = id, .entries = call->result.created};

    snprintf(id, sizeof id, "%" PRId64, call->result.id);
    json_append_object(&reply->body, &json_site_imported, &shown);
    str_append_char(&reply->body, '\n');
    reply_json(reply, 201);
    snprintf(location, sizeof location, "/v1/sites/%" PRId64, call->result.id);
    reply_header(reply, "Location", location);
    call_audit(call, "site-import", site != NULL ? site->origin : location);
}

static void refuse_import(struct call *call)
{
    const struct change_result *result = &call->result;

    if (result->status == CATALOGUE_CONFLICT && !result->revoked)
        reply_problem(&call->request->reply, 409,
                      result->id != 0 ? "site-exists" : "site-conflicts", NULL, result->detail);
    else
        errors_reply_result(&call->request->reply, result);
}

/* On a thread of its own: reads the whole file. */
static void run_check(void *context)
{
    struct site_import *self = context;
    struct call *call = &self->call;
    struct reply *reply = &call->request->reply;
    char why[256] = "the body is empty";
    enum catalogue_status status = CATALOGUE_CORRUPT;

    if (self->file != NULL && fclose(self->file) != 0)
        give_up(self, CATALOGUE_UNAVAILABLE);
    self->file = NULL;
    if (!self->over && self->name != NULL)
        status = catalogue_site_copy_check(self->name, why, sizeof why);
    if (!self->over && status == CATALOGUE_CORRUPT)
        reply_problem(reply, 422, "invalid-copy", NULL, why);
    else if (!self->over && status != CATALOGUE_OK)
        give_up(self, status);
    if (self->over || status != CATALOGUE_OK) {
        request_resume(call->request);
        return;
    }
    call->change.kind = CHANGE_SITE_IMPORT;
    call->change.site_import.file = self->name;
    call->refuse = refuse_import;
    call->settles_sources = true;
    call_write(call, answer_imported);
}

enum handled site_import_finish(void *context, struct request *request)
{
    struct site_import *self = request->state;
    struct app_context *app = context;

    if (self->over || !auth_still_holds(app, request))
        return HANDLED;
    if (workers_run(app->copiers, 0, run_check, self))
        return HANDLE_LATER;
    errors_reply_status(&request->reply, CATALOGUE_BUSY);
    return HANDLED;
}
