/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Receives the body of a list piece by piece, parses and spools it. */
#include "server/api/upload.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/api/auth.h"
#include "server/api/errors.h"
#include "server/rules/http/query.h"

#define UPLOAD_INLINE_BYTES 65536u /* a body of up to this size is read on the HTTP thread */
#define UPLOAD_MAX_RATIO    200u   /* decoded : encoded of a gzip body */

const size_t upload_size = sizeof(struct upload);

/* A spooled entry takes more room than its line if the loc is short. */
#define SPOOL_FACTOR 4u

/* Warnings that the reply to a list contains: a date or extension that was dropped, a loc that is
 * probably not the intended one. All others are shown with each entry. */
#define REPORTED                                                                                   \
    (RULE_BIT(RULE_EXTENSION_DROPPED) | RULE_BIT(RULE_DUPLICATE) | RULE_LASTMOD_DROPS |            \
     RULE_BIT(RULE_LOC_NO_SITEMAP) | RULE_BIT(RULE_LOC_AMP))
/* Warnings that the reply contains once, for the first such line, since usually all lines have
 * them. */
#define REPORTED_ONCE RULE_BIT(RULE_HINT_DROPPED)

static bool add_entry(void *context, const struct entry *entry)
{
    struct upload *upload = context;
    rule_set once = entry->remarks & REPORTED_ONCE & ~upload->reported_once;

    upload->spooled = spool_add(upload->spool, entry);
    if (upload->spooled == SPOOL_OK)
        findings_remark(&upload->findings, entry->line, entry->loc,
                        (entry->remarks & REPORTED) | once);
    upload->reported_once |= once;
    return upload->spooled == SPOOL_OK;
}

static bool add_rejection(void *context, const struct rejection *rejection)
{
    struct upload *upload = context;
    struct entry entry;
    struct url url;

    findings_refuse(&upload->findings, rejection);
    if (upload->skip && upload->replaces && reader_rejected_entry(rejection, &url, &entry))
        upload->spooled = spool_add(upload->spool, &entry);
    return upload->spooled == SPOOL_OK;
}

static void upload_cleanup(struct call *call)
{
    struct upload *upload = (struct upload *)call;

    json_entry_done(&upload->single);
    reader_free(upload->reader);
    spool_free(upload->spool);
    str_done(&upload->held);
    findings_done(&upload->findings);
}

/* ---- begin ------------------------------------------------------------------------------- */

static bool type_is(const char *header, const char *type)
{
    size_t len = strlen(type);

    return header != NULL && strncasecmp(header, type, len) == 0 &&
           (header[len] == '\0' || header[len] == ';' || header[len] == ' ');
}

static bool read_headers(struct upload *upload)
{
    struct request *request = upload->call.request;
    const char *encoding = request_header(request, HEADER_CONTENT_ENCODING);
    const char *length = request_header(request, HEADER_CONTENT_LENGTH);
    uint64_t bytes;

    upload->ndjson = type_is(request_header(request, HEADER_CONTENT_TYPE), "application/x-ndjson");
    if (encoding != NULL && strcasecmp(encoding, "identity") != 0) {
        upload->gzip = strcasecmp(encoding, "gzip") == 0 || strcasecmp(encoding, "x-gzip") == 0;
        if (!upload->gzip) {
            reply_problem(&request->reply, 415, "unsupported-encoding", NULL,
                          "the body must be uncompressed or have Content-Encoding: gzip");
            reply_header(&request->reply, "Accept-Encoding", "gzip, identity");
            return false;
        }
    }
    /* Rejected before the body is sent, if its length is known. */
    if (length == NULL ||
        (query_number(length, UINT64_MAX, &bytes) && bytes <= upload->call.app->max_bulk_bytes))
        return true;
    reply_problem(&request->reply, 413, "body-too-large", NULL,
                  "the body is larger than max_bulk in [limits] allows");
    return false;
}

/* Whether the token may write anywhere, and under any name. */
static bool has_all(const struct grant *grant)
{
    return grant->site_id == 0 && grant->prefix == NULL && !grant->own;
}

static struct reader_options options_of(const struct upload *upload)
{
    const struct app_context *app = upload->call.app;

    return (struct reader_options){
        .format = upload->ndjson ? READER_NDJSON : READER_JSON,
        .pages = upload->call.change.list == LIST_URLSET,
        .lenient = upload->skip,
        .allow_gzip = upload->gzip,
        /* An export that is copied here keeps owners and positions. */
        .allow_placed = has_all(&upload->call.request->grant),
        .max_bytes = app->max_bulk_bytes,
        .max_entries = app->max_bulk_entries,
        .max_ratio = UPLOAD_MAX_RATIO,
        .now = catalogue_now(app->catalogue),
    };
}

/* False when out of memory: the reply is filled. */
static bool open_reader(struct upload *upload)
{
    struct app_context *app = upload->call.app;
    const struct reader_options options = options_of(upload);
    const struct reader_sink sink = {
        .context = upload, .entry = add_entry, .reject = add_rejection};
    uint64_t max_spool = app->max_bulk_bytes > UINT64_MAX / SPOOL_FACTOR - SPOOL_MEMORY_BYTES
                             ? UINT64_MAX
                             : app->max_bulk_bytes * SPOOL_FACTOR + SPOOL_MEMORY_BYTES;

    if (upload->reader != NULL)
        return true;
    upload->reader = reader_new(&options, &sink);
    upload->spool = catalogue_spool(app->catalogue, max_spool);
    if (upload->spool != NULL)
        spool_share(upload->spool, &app->spool_room, upload->call.request->grant.site_id);
    if (upload->reader != NULL && upload->spool != NULL)
        return true;
    upload->over = true;
    errors_reply_status(&upload->call.request->reply, CATALOGUE_NO_MEMORY);
    return false;
}

enum handled upload_begin(void *context, struct request *request, void (*submit)(struct upload *))
{
    struct upload *upload;

    if (call_begin(context, request) == HANDLED)
        return HANDLED;
    upload = request->state;
    upload->call.cleanup = upload_cleanup;
    upload->submit = submit;
    upload->findings.max = upload->call.app->max_rejections;
    upload->skip = call_word_is(&upload->call, "on_error", "skip");
    return read_headers(upload) ? HANDLE_CONTINUE : HANDLED;
}

/* ---- the body ---------------------------------------------------------------------------- */

/* Fills the reply of a body that could not be read, once; later pieces are dropped. */
static void give_up(struct upload *upload)
{
    struct reply *reply = &upload->call.request->reply;

    if (upload->over)
        return;
    upload->over = true;
    if (upload->spooled != SPOOL_OK)
        errors_reply_spool(reply, upload->spooled);
    else
        errors_reply_reader(reply, reader_error(upload->reader));
}

static void feed(struct upload *upload, const void *bytes, size_t len)
{
    if (len > 0 && !upload->over && reader_feed(upload->reader, bytes, len) != READER_OK)
        give_up(upload);
}

static void feed_held(struct upload *upload)
{
    feed(upload, upload->held.data, upload->held.len);
    str_done(&upload->held);
}

static void run_piece(void *context)
{
    struct upload *upload = context;

    repeat_body(&upload->call, upload->held.data, upload->held.len);
    feed_held(upload);
    request_resume(upload->call.request);
}

/* A gzip body has a first byte with which no JSON begins. A body that is not gzip, although its
 * header says so, is rejected, or the reader would accept it as plain JSON. */
static bool gzip_promised(struct upload *upload, const void *bytes, size_t len)
{
    const unsigned char *first = upload->held.len > 0 ? (unsigned char *)upload->held.data : bytes;

    if (!upload->gzip || upload->streaming || upload->held.len + len == 0 || *first == 0x1f)
        return true;
    upload->over = true;
    reply_problem(&upload->call.request->reply, 400, "malformed-gzip", NULL,
                  "Content-Encoding says gzip, but the body is not");
    return false;
}

enum handled upload_body(void *context, struct request *request, const void *bytes, size_t len)
{
    struct upload *upload = request->state;
    struct app_context *app = context;

    upload->received += len;
    if (upload->received > app->max_bulk_bytes) {
        reply_done(&request->reply);
        reply_init(&request->reply);
        reply_problem(&request->reply, 413, "body-too-large", NULL,
                      "the body is larger than max_bulk in [limits] allows");
        return HANDLED;
    }
    if (upload->over)
        return HANDLE_CONTINUE;
    if (!upload->streaming && upload->received <= UPLOAD_INLINE_BYTES) {
        str_append(&upload->held, bytes, len);
        return HANDLE_CONTINUE;
    }
    if (!gzip_promised(upload, bytes, len))
        return HANDLE_CONTINUE;
    if (!open_reader(upload))
        return HANDLED;
    upload->streaming = true;
    /* The worker gets a copy, since after this returns the library moves the rest of a chunked body
     * over this piece in its buffer. */
    str_append(&upload->held, bytes, len);
    if (upload->held.failed) {
        errors_reply_status(&request->reply, CATALOGUE_NO_MEMORY);
        return HANDLED;
    }
    return call_run(&upload->call, run_piece);
}

/* ---- the end ----------------------------------------------------------------------------- */

/* True if all of the body is one valid entry. The reader reports what is wrong with any other. */
static bool read_single(struct upload *upload)
{
    const struct reader_options options = options_of(upload);
    const char *text = str_text(&upload->held);
    struct rejection rejection;

    /* A dry run is always handled as a list, even with one entry. */
    if (upload->call.change.dry_run || upload->ndjson || text[strspn(text, " \t\r\n")] != '{' ||
        upload->held.len > READER_MAX_ITEM_BYTES)
        return false;
    if (json_entry_parse(text, upload->held.len, 0, &options, &upload->single, &rejection) ==
        RULE_OK)
        return true;
    json_entry_done(&upload->single); /* it has the rejected loc */
    return false;
}

static bool read_to_end(struct upload *upload)
{
    if (upload->held.failed) {
        upload->over = true;
        errors_reply_status(&upload->call.request->reply, CATALOGUE_NO_MEMORY);
        return false;
    }
    repeat_body(&upload->call, upload->held.data, upload->held.len);
    if (!upload->streaming && !upload->gzip && read_single(upload))
        return true;
    if (!open_reader(upload))
        return false;
    feed_held(upload);
    if (!upload->over && reader_finish(upload->reader) != READER_OK)
        give_up(upload);
    return !upload->over;
}

static void run_end(void *context)
{
    struct upload *upload = context;

    if (read_to_end(upload))
        upload->submit(upload);
    else
        request_resume(upload->call.request);
}

bool upload_is_single(const struct upload *upload)
{
    return upload->single.storage != NULL || reader_single_object(upload->reader);
}

enum handled upload_finish(void *context, struct request *request)
{
    struct upload *upload = request->state;
    struct app_context *app = context;

    if (upload->over || !gzip_promised(upload, NULL, 0) || !auth_still_holds(app, request))
        return HANDLED;
    if (!upload->streaming && !upload->gzip) {
        if (!read_to_end(upload))
            return HANDLED;
        upload->submit(upload);
        return HANDLE_LATER;
    }
    return call_run(&upload->call, run_end);
}
