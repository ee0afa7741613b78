/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Writes /openapi.json from the rows of calls.def, objects.def and bodies.def. A build tool. Usage:
 * openapi FILE. A row that names an object which does not exist fails the build.
 *
 * The statuses that a call may return besides those of its row follow from what it is: `standard`
 * says of each when a call has it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/api/description.h"
#include "server/base/str.h"
#include "server/rules/limits.h"

enum kind { KIND_TAG, KIND_OPEN, KIND_CALL, KIND_DOCUMENT, KIND_UPLOAD, KIND_FILE };

struct row {
    enum kind kind;
    const char *role, *method, *path, *id, *summary, *note;
    struct operation operation;
    const char *tag; /* member `named` of a TAG */
    struct member named;
};

#define BY(...)
#define BY_PAGES(...)
#define TAG(tag_, ...) {.kind = KIND_TAG, .tag = (tag_), .note = __VA_ARGS__},
#define OPEN(path_, label_, by_, id_, summary_, note_, ...)                                        \
    {KIND_OPEN, "", "GET", (path_), (id_), (summary_), (note_), .operation = {__VA_ARGS__}},
#define CALL(role_, method_, path_, label_, by_, id_, summary_, note_, ...)                        \
    {KIND_CALL, #role_, #method_, (path_), (id_), (summary_), (note_), .operation = {__VA_ARGS__}},
#define DOCUMENT(role_, method_, path_, label_, by_, id_, summary_, note_, ...)                    \
    {KIND_DOCUMENT, #role_,     #method_, (path_),                                                 \
     (id_),         (summary_), (note_),  .operation = {__VA_ARGS__}},
#define UPLOAD(method_, path_, label_, by_, id_, summary_, note_, ...)                             \
    {KIND_UPLOAD, "WRITE",    #method_, (path_),                                                   \
     (id_),       (summary_), (note_),  .operation = {__VA_ARGS__}},

#define SITE_FILE(method_, path_, label_, by_, id_, summary_, note_, ...)                          \
    {KIND_FILE, "ADMIN", #method_, (path_), (id_), (summary_), (note_), .operation = {__VA_ARGS__}},

static const struct row rows[] = {
#include "server/api/calls.def"
};
#define ROWS (sizeof rows / sizeof rows[0])

/* ---- responses that follow from the kind of a call
 * ---------------------------------------------------------- */

static bool always(const struct row *row)
{
    (void)row;
    return true;
}

static bool never(const struct row *row)
{
    (void)row;
    return false;
}

static bool needs_token(const struct row *row)
{
    return row->kind != KIND_OPEN;
}

static bool needs_role(const struct row *row)
{
    return needs_token(row) && strcmp(row->role, "READ") != 0;
}

static bool names_one(const struct row *row)
{
    return strchr(row->path, '{') != NULL;
}

static bool has_body(const struct row *row)
{
    return row->operation.body != NULL || row->kind == KIND_FILE;
}

/* Whether the call's change goes through the writer, so that an Idempotency-Key is accepted. */
static bool is_written(const struct row *row)
{
    return strcmp(row->method, "GET") != 0 && !row->operation.without_key;
}

static bool may_conflict(const struct row *row)
{
    return is_written(row) && !row->operation.without_conflict;
}

static bool heeds_if_match(const struct row *row)
{
    return row->operation.if_match != NULL;
}

static bool heeds_if_none_match(const struct row *row)
{
    return strcmp(row->method, "GET") == 0 && row->operation.answers[0].tag != NULL;
}

static const struct standard {
    unsigned status;
    bool (*when)(const struct row *row);
    const char *name, *note, *header, *example;
} standard[] = {
    {304, heeds_if_none_match, "NotModified", "The ETag is that of If-None-Match.", "ETag", NULL},
    {400, always, "Malformed",
     "The request is malformed: its framing, a header, the query, or JSON (`malformed-request`, "
     "`host-missing`, `unknown-parameter`, `repeated-parameter`, `malformed-parameter`, "
     "`missing-parameter`, `malformed-query`, `malformed-cursor`, `malformed-json`, "
     "`precondition-on-list`, `precondition-not-supported`, `malformed-idempotency-key`, "
     "`idempotency-key-not-supported`, …).",
     NULL, JSON({
         "type" : "about:blank",
         "title" : "Bad Request",
         "status" : 400,
         "detail" : "unknown query parameter",
         "code" : "unknown-parameter",
         "field" : "limt"
     })},
    {401, needs_token, "Unauthorized", "No token, or an unknown one (`unauthorized`).",
     "WWW-Authenticate", NULL},
    {403, needs_role, "Forbidden",
     "Permission denied: the token is for another site (`token-of-another-site`), needs a higher "
     "role (`token-role`), may not change this because it is outside its prefix or, with `own`, "
     "registered by another (`outside-token-scope`), or needs to be a token for all sites "
     "(`needs-token-of-all-sites`) or for a whole site (`needs-token-of-whole-site`).",
     NULL, NULL},
    {404, names_one, "NotFound",
     "There is nothing of this name (`not-found`, `index-unknown`, `site-unknown`, `page-empty`).",
     NULL, NULL},
    {409, may_conflict, "Conflict",
     "`shrink-guard`, `site-exists`, `index-exists`, `managed-by-config`, `frozen`, or a limit of "
     "the catalogue.",
     NULL, JSON({
         "type" : "about:blank",
         "title" : "Conflict",
         "status" : 409,
         "detail" : "would remove 61 entries and leave 39; max_removed=61 allows it",
         "code" : "shrink-guard",
         "would_remove" : 61
     })},
    {410, never, "Gone",
     "`revision-unknown`: the catalogue was restored or replaced; start again with 0.", NULL, NULL},
    {411, has_body, "LengthRequired",
     "The length of the body is missing: Content-Length, or chunks (`length-required`).", NULL,
     NULL},
    {412, heeds_if_match, "PreconditionFailed",
     "The entry, or for a list the index, is not as If-Match says (`precondition-failed`); nothing "
     "was applied.",
     NULL, NULL},
    {413, always, "TooLarge",
     "The body or list is too large (`body-too-large`, `too-many-entries`, `gzip-bomb`), a list by "
     "a token for one site delayed other sites' writes for half of `write_timeout` "
     "(`list-too-long`: nothing was applied; send it in parts), or a call without a body came with "
     "more than 8 KiB of one.",
     NULL, NULL},
    {414, always, "UriTooLong",
     "The request target is longer than 8 KiB (`uri-too-long`). A request line that does not fit "
     "into the memory of a connection (`max_header_bytes` and 8 KiB) is answered with 414 in HTML, "
     "without a Content-Type.",
     NULL, NULL},
    {415, has_body, "UnsupportedMediaType",
     "Another Content-Type or Content-Encoding is needed (`content-type-not-supported`, "
     "`unsupported-encoding`).",
     "Accept-Encoding", NULL},
    {421, always, "Misdirected",
     "Host is neither an IP address, nor localhost, nor one of `allowed_hosts` "
     "(`host-not-allowed`).",
     NULL, NULL},
    {422, is_written, "Refused",
     "A rule rejects a value: its code and field; or lines of a list (`entries-refused`), all of "
     "them listed; or the Idempotency-Key belongs to another request (`idempotency-key-reused`).",
     NULL, JSON({
         "type" : "about:blank",
         "title" : "Unprocessable Content",
         "status" : 422,
         "detail" : "loc must be an absolute URL (https://host/path)",
         "code" : "loc-relative",
         "field" : "loc"
     })},
    {429, needs_token, "TooManyFailures",
     "Too many wrong tokens from this address (`too-many-failures`).", "Retry-After", NULL},
    {431, always, "HeaderTooLarge",
     "The header is larger than `max_header_bytes` (`header-too-large`). A header that does not "
     "fit "
     "into the memory of a connection (`max_header_bytes` and 8 KiB) is answered with 431 in HTML, "
     "without a Content-Type.",
     NULL, NULL},
    {503, needs_token, "Unavailable",
     "Nothing was applied: `busy`, `unavailable`, `no-space`, `spool-full`, `too-many-copies`, "
     "`too-many-waiting`, `stopping`, `scan-failed`, … In a catalogue that several machines share "
     "also `shared-unavailable`, `follower`, `upgrade-pending`, `diverged`.",
     "Retry-After", NULL},
    {504, is_written, "OutcomeUnknown",
     "Only in a catalogue that several machines share: `outcome-unknown`, it may have been "
     "applied. "
     "Repeat the call with the same `Idempotency-Key`, on any node.",
     NULL, NULL},
};
#define STANDARD (sizeof standard / sizeof standard[0])

static const struct header {
    const char *name, *note;
    bool required;
    const char *schema;
} headers[] = {
    {"Accept-Encoding", "With `unsupported-encoding`: the encodings that a body may have.", false,
     JSON({"const" : "gzip, identity"})},
    {"ETag", "Strong.", true, JSON({"type" : "string", "pattern" : "^\"[!#-~]+\"$"})},
    {"ETag-Of-Index",
     "Strong. The state of the index's entries, which If-Match of a list or a `PUT` compares: the "
     "catalogue's epoch, the revision of their last change and its random stamp, with hyphens "
     "between. If the response shows more "
     "than that, a dot and a hash of the response follow.",
     true,
     JSON({"type" : "string", "pattern" : "^\"[0-9a-f]+-[0-9]+-[0-9a-f]+([.][0-9a-f]+)?\"$"})},
    {"ETag-Of-Written",
     "Strong. Of a single entry the entry's; of a list with `index` the index's, see "
     "ETag-Of-Index.",
     false, JSON({"type" : "string", "pattern" : "^\"[!#-~]+\"$"})},
    {"ETag-Of-List",
     "Strong. With `index` it begins as ETag-Of-Index does; without it, absent with "
     "application/x-ndjson.",
     false, JSON({"type" : "string", "pattern" : "^\"[!#-~]+\"$"})},
    {"ETag-Of-Change", "Strong. Absent with application/x-ndjson.", false,
     JSON({"type" : "string", "pattern" : "^\"[!#-~]+\"$"})},
    {"Idempotency-Replayed",
     "An earlier request with this Idempotency-Key made the change; this is its response.", false,
     JSON({"const" : "true"})},
    {"Revision", "Revision of the catalogue that the list shows. With application/x-ndjson.", false,
     JSON({"type" : "string", "pattern" : "^[0-9]+$"})},
    {"Location", "Where the new object is.", true,
     JSON({"type" : "string", "pattern" : "^/v1/[a-z]+/[^/]+$"})},
    {"Retry-After", "Seconds.", true, JSON({"type" : "string", "pattern" : "^[1-9][0-9]*$"})},
    {"WWW-Authenticate", "The scheme that is needed.", true,
     JSON({"const" : "Bearer realm=\"sitemapd\""})},
};
#define HEADERS (sizeof headers / sizeof headers[0])

static const char about[] =
    "The admin listener of sitemapd: a catalogue of a site's sitemap files, served to crawlers as "
    "sitemap indexes. Errors are RFC 9457 problems; ids and cursors are opaque; times are RFC 3339 "
    "UTC. Every response has `Cache-Control: no-store` and an `X-Request-Id`, which is in the logs "
    "too: the request's own if it has one of 1 to 128 letters, digits and `._~:+/=@-`, else a "
    "generated one. HEAD is answered where GET is, like it and without the body. OPTIONS is "
    "answered "
    "204, another method of a path 405, both with `Allow`; an unknown method 501, an unknown path "
    "404. Responses may gain members; clients ignore those that they do not know.";
static const char about_keys[] =
    "A name for this request. For a day, the same token with the same method, target and body gets "
    "the first response again, with `Idempotency-Replayed`, and nothing is changed. Another "
    "request "
    "with it is 422 `idempotency-key-reused`. Rejected requests and dry runs are not remembered.";
static const char about_tokens[] =
    "Made with `sitemapd token add` or a [token] section, or SITEMAPD_TOKEN. Its role is read, "
    "write "
    "or admin, each of which includes those before it: GET needs read, changes of entries write, "
    "changes of sites, indexes and tokens admin.";

/* ---- schemas -----------------------------------------------------------------------------------
 */

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "openapi: %s: %s\n", what, name);
    exit(1);
}

static void put_text(struct str *out, const char *name, const char *text)
{
    if (text == NULL)
        return;
    str_append_format(out, "\"%s\": ", name);
    str_append_json_text(out, text);
    str_append_text(out, ", ");
}

static void put_back(struct str *out, size_t len)
{
    out->len = len;
    out->data[len] = '\0';
}

/* Ends an object whose members are each written with a comma after them. */
static void put_end(struct str *out)
{
    size_t len = out->len;

    while (len > 0 && strchr(", \n", out->data[len - 1]) != NULL)
        len--;
    put_back(out, len);
    str_append_char(out, '}');
}

static void put_reference(struct str *out, const char *name, size_t len)
{
    size_t i = 0;

    while (api_objects[i] != NULL &&
           (strlen(api_objects[i]->name) != len || memcmp(api_objects[i]->name, name, len) != 0))
        i++;
    if (api_objects[i] == NULL)
        fail("there is no such object", name);
    str_append_format(out, "{\"$ref\": \"#/components/schemas/%s\"}", api_objects[i]->name);
}

/* One object, or one of several: "Site|SiteShortened". */
static void put_references(struct str *out, const char *names, bool nullable)
{
    bool several = nullable || strchr(names, '|') != NULL;

    str_append_text(out, several ? "{\"oneOf\": [" : "");
    for (size_t len; *names != '\0'; names += len) {
        len = strcspn(names, "|");
        put_reference(out, names, len);
        if (names[len] == '|') {
            str_append_text(out, ", ");
            len++;
        }
    }
    str_append_text(out, nullable ? ", {\"type\": \"null\"}" : "");
    str_append_text(out, several ? "]}" : "");
}

static void put_type(struct str *out, const struct member *member, const char *type)
{
    if ((member->is & NULLABLE) != 0)
        str_append_format(out, "\"type\": [\"%s\", \"null\"], ", type);
    else
        str_append_format(out, "\"type\": \"%s\", ", type);
}

static void put_words(struct str *out, const struct member *member)
{
    put_type(out, member, "string");
    str_append_text(out, "\"enum\": [");
    for (const char *word = member->of; *word != '\0';) {
        size_t len = strcspn(word, "|");

        str_append_json(out, word, len);
        word += len + (word[len] == '|' ? 1 : 0);
        str_append_text(out, *word != '\0' ? ", " : "");
    }
    str_append_text(out, (member->is & NULLABLE) != 0 ? ", null], " : "], ");
}

static void put_number(struct str *out, const struct member *member)
{
    put_type(out, member, "integer");
    str_append_format(out, "\"minimum\": %llu, ", (unsigned long long)member->min);
    if (member->type == MEMBER_BIT)
        str_append_text(out, "\"maximum\": 1, \"default\": 0, ");
    if (member->max != 0 && member->max < 1ull << 53) /* larger numbers are not exact in JSON */
        str_append_format(out, "\"maximum\": %llu, ", (unsigned long long)member->max);
    if (member->usual != 0)
        str_append_format(out, "\"default\": %llu, ", (unsigned long long)member->usual);
}

/* The keywords of a member's schema, each followed by a comma. */
static void put_keywords(struct str *out, const struct member *member)
{
    switch (member->type) {
    case MEMBER_TEXT:
        put_type(out, member, "string");
        break;
    case MEMBER_URI:
    case MEMBER_IRI:
    case MEMBER_TIME:
    case MEMBER_DATE:
        put_type(out, member, "string");
        put_text(out, "format",
                 member->type == MEMBER_URI    ? "uri"
                 : member->type == MEMBER_IRI  ? "iri"
                 : member->type == MEMBER_TIME ? "date-time"
                                               : "date");
        break;
    case MEMBER_INTEGER:
    case MEMBER_SECONDS:
    case MEMBER_BIT:
        put_number(out, member);
        break;
    case MEMBER_FLAG:
        put_type(out, member, "boolean");
        break;
    case MEMBER_WORD:
        put_words(out, member);
        break;
    case MEMBER_TEXTS:
        put_type(out, member, "array");
        str_append_format(out, "\"items\": {\"type\": \"string\"%s%s}, ",
                          member->of != NULL ? ", " : "", member->of != NULL ? member->of : "");
        break;
    case MEMBER_LIST:
        put_type(out, member, "array");
        str_append_text(out, "\"items\": ");
        put_references(out, member->of, false);
        str_append_text(out, ", ");
        break;
    case MEMBER_ONE:
        str_append_text(out, "\"allOf\": [");
        put_references(out, member->of, (member->is & NULLABLE) != 0);
        str_append_text(out, "], ");
        break;
    case MEMBER_SWITCH:
        str_append_text(out, "\"type\": [\"string\", \"boolean\"], ");
        break;
    case MEMBER_OPTION:
        str_append_text(out,
                        "\"oneOf\": [{\"type\": [\"string\", \"null\"]}, {\"const\": false}], ");
        break;
    case MEMBER_RAW:
    case MEMBER_ALL:
        break;
    }
    if (member->more != NULL)
        str_append_format(out, "%s, ", member->more);
}

static void put_member_schema(struct str *out, const struct member *member)
{
    if (member->note == NULL)
        fail("this member has no sentence", member->name);
    str_append_char(out, '{');
    put_keywords(out, member);
    put_text(out, "description", member->note);
    put_end(out);
}

static void put_members(struct str *out, const struct object *object)
{
    for (const struct member *m = object->members(); m->name != NULL; m++) {
        if (m->type == MEMBER_ALL) {
            put_members(out, m->all);
            continue;
        }
        str_append_format(out, "\"%s\": ", m->name);
        put_member_schema(out, m);
        str_append_text(out, ", ");
    }
}

static void put_required(struct str *out, const struct object *object, bool request)
{
    for (const struct member *m = object->members(); m->name != NULL; m++) {
        if (m->type == MEMBER_ALL)
            put_required(out, m->all, request);
        else if (request ? (m->is & NEEDED) != 0 : (m->is & OPTIONAL) == 0)
            str_append_format(out, "\"%s\", ", m->name);
    }
}

static void put_object(struct str *out, const struct object *object)
{
    struct str required = STR_INIT;

    str_append_format(out, "\"%s\": {\"type\": \"object\", ", object->name);
    put_text(out, "description", object->note);
    put_required(&required, object, object->request);
    if (required.len > 0)
        str_append_format(out, "\"required\": [%.*s], ", (int)required.len - 2, required.data);
    str_append_text(out, object->closed ? "\"additionalProperties\": false, " : "");
    str_append_text(out, "\"properties\": {");
    put_members(out, object);
    put_end(out);
    if (object->example != NULL)
        str_append_format(out, ", \"examples\": [%s]", object->example);
    str_append_text(out, "},\n");
    str_done(&required);
}

/* ---- calls -------------------------------------------------------------------------------------
 */

static void put_parameter(struct str *out, const struct member *member, const char *in)
{
    str_append_char(out, '{');
    put_text(out, "name", member->name);
    put_text(out, "in", in);
    if (member->note == NULL)
        fail("this parameter has no sentence", member->name);
    put_text(out, "description", member->note);
    if ((member->is & NEEDED) != 0 || strcmp(in, "path") == 0)
        str_append_text(out, "\"required\": true, ");
    str_append_text(out, "\"schema\": {");
    put_keywords(out, member);
    put_end(out);
    str_append_text(out, "}, ");
}

static void put_header_parameter(struct str *out, const char *name, const char *note)
{
    struct member member = {.name = name, .type = MEMBER_TEXT, .note = note};

    put_parameter(out, &member, "header");
}

static void put_parameters(struct str *out, const struct row *row, const struct row *tag)
{
    const struct member encoding = {"Content-Encoding", MEMBER_WORD, "A list may be compressed.",
                                    .of = "gzip|identity"};

    size_t before = out->len;
    str_append_text(out, "\"parameters\": [");
    size_t empty = out->len;
    if (names_one(row)) {
        if (tag->named.name == NULL)
            fail("its tag does not say what {…} is", row->path);
        put_parameter(out, &tag->named, "path");
    }
    if (is_written(row))
        str_append_text(out, "{\"$ref\": \"#/components/parameters/IdempotencyKey\"}, ");
    for (const struct member *m = row->operation.parameters; m != NULL && m->name != NULL; m++)
        put_parameter(out, m, "query");
    if (heeds_if_match(row))
        put_header_parameter(out, "If-Match", row->operation.if_match);
    if (heeds_if_none_match(row))
        put_header_parameter(out, "If-None-Match", "304 if the ETag is still this one.");
    if (row->kind == KIND_UPLOAD)
        put_parameter(out, &encoding, "header");
    if (out->len == empty) {
        put_back(out, before);
        return;
    }
    put_end(out);
    out->data[out->len - 1] = ']';
    str_append_text(out, ", ");
}

/* Lists have an example of two lines: of sitemaps, or of page URLs of a urlset. */
static void put_list_body(struct str *out, const struct row *row)
{
    bool sitemaps = strcmp(row->operation.body, "NewSitemap") == 0;
    bool one_too = strcmp(row->method, "POST") == 0;
    const char *first = sitemaps ? JSON({"loc" : "https://www.example.com/a.xml"}) : JSON({
        "loc" : "https://www.example.com/a",
        "urlset" : "https://www.example.com/products.xml"
    });
    const char *second =
        sitemaps ? JSON({"loc" : "https://www.example.com/b.xml", "lastmod" : "2026-01-31"})
                 : JSON({
                       "loc" : "https://www.example.com/b",
                       "urlset" : "https://www.example.com/products.xml"
                   });
    struct str lines = STR_INIT;

    str_append_text(out, "\"application/json\": {\"schema\": ");
    if (one_too) {
        str_append_text(out, "{\"oneOf\": [");
        put_references(out, row->operation.body, false);
        str_append_text(out, ", ");
    }
    str_append_text(out, "{\"type\": \"array\", \"items\": ");
    put_references(out, row->operation.body, false);
    str_append_text(out, one_too ? "}]}" : "}");
    str_append_format(out, ", \"example\": [%s, %s]}, ", first, second);
    str_append_format(out,
                      "\"application/x-ndjson\": {\"schema\": {\"type\": \"string\", "
                      "\"description\": \"One %s object a line; blank lines are skipped.\"}, ",
                      row->operation.body);
    str_append_format(&lines, "%s\n%s\n", first, second);
    put_text(out, "example", str_text(&lines));
    put_end(out);
    str_done(&lines);
}

static void put_body(struct str *out, const struct row *row)
{
    if (!has_body(row))
        return;
    str_append_text(out, "\"requestBody\": {\"required\": true, \"content\": {");
    if (row->kind == KIND_UPLOAD) {
        put_list_body(out, row);
    } else if (row->kind == KIND_FILE) {
        str_append_text(out, "\"application/vnd.sqlite3\": {\"schema\": {}}");
    } else {
        str_append_text(out, "\"application/json\": {\"schema\": ");
        put_references(out, row->operation.body, false);
        str_append_char(out, '}');
    }
    str_append_text(out, "}}, ");
}

static void put_list_schema(struct str *out, const struct answer *answer)
{
    const struct member list = {answer->list, MEMBER_LIST, "All of them, or as many as `limit`.",
                                .of = answer->of};
    const struct member next = {"next", MEMBER_TEXT,
                                "Pass it as `after` to continue; null at the end.", .is = NULLABLE};

    str_append_format(out,
                      "{\"type\": \"object\", \"required\": [\"%s\", \"next\"], \"properties\": "
                      "{\"%s\": ",
                      answer->list, answer->list);
    put_member_schema(out, &list);
    str_append_text(out, ", \"next\": ");
    put_member_schema(out, &next);
    str_append_text(out, "}}");
}

static void put_content(struct str *out, const struct answer *answer)
{
    if (answer->of == NULL && answer->type == NULL && answer->lines == NULL)
        return;
    str_append_text(out, "\"content\": {");
    if (answer->of != NULL) {
        str_append_text(out, "\"application/json\": {\"schema\": ");
        if (answer->list != NULL)
            put_list_schema(out, answer);
        else
            put_references(out, answer->of, false);
        str_append_text(out, "}, ");
    }
    if (answer->type != NULL)
        str_append_format(out, "\"%s\": {\"schema\": {\"type\": \"%s\"}}, ", answer->type,
                          strcmp(answer->type, "application/json") == 0 ? "object" : "string");
    if (answer->lines != NULL) {
        str_append_text(out, "\"application/x-ndjson\": {\"schema\": {\"type\": \"string\", ");
        put_text(out, "description", answer->lines);
        put_end(out);
        str_append_text(out, "}, ");
    }
    put_end(out);
    str_append_text(out, ", ");
}

static void put_header(struct str *out, const char *name, const char *component)
{
    size_t i = 0;

    while (i < HEADERS && strcmp(headers[i].name, component) != 0)
        i++;
    if (i == HEADERS)
        fail("there is no such header", component);
    str_append_format(out, "\"%s\": {\"$ref\": \"#/components/headers/%s\"}, ", name, component);
}

static void put_answer(struct str *out, const struct row *row, const struct answer *answer)
{
    str_append_char(out, '{');
    put_text(out, "description", answer->note);
    put_content(out, answer);
    size_t before = out->len;
    str_append_text(out, "\"headers\": {");
    size_t empty = out->len;
    if (answer->tag != NULL)
        put_header(out, "ETag", answer->tag);
    if (answer->has_revision)
        put_header(out, "X-Catalogue-Revision", "Revision");
    if (is_written(row))
        put_header(out, "Idempotency-Replayed", "Idempotency-Replayed");
    if (answer->status == 201)
        put_header(out, "Location", "Location");
    if (answer->status == 503)
        put_header(out, "Retry-After", "Retry-After");
    if (out->len == empty) {
        put_back(out, before);
    } else {
        put_end(out);
        str_append_text(out, ", ");
    }
    put_end(out);
    str_append_text(out, ", ");
}

static bool has_standard(const struct row *row, const struct standard *s)
{
    for (const unsigned *also = row->operation.also; also != NULL && *also != 0; also++)
        if (*also == s->status)
            return true;
    return s->when(row);
}

static void put_responses(struct str *out, const struct row *row)
{
    const struct answer *answer = row->operation.answers;

    str_append_text(out, "\"responses\": {");
    for (size_t i = 0; i <= STANDARD; i++) {
        for (; answer->status != 0 && (i == STANDARD || answer->status <= standard[i].status);
             answer++) {
            str_append_format(out, "\"%u\": ", answer->status);
            put_answer(out, row, answer);
        }
        if (i < STANDARD && has_standard(row, &standard[i]))
            str_append_format(out, "\"%u\": {\"$ref\": \"#/components/responses/%s\"}, ",
                              standard[i].status, standard[i].name);
    }
    put_end(out);
}

static void put_call(struct str *out, const struct row *row, const struct row *tag)
{
    char method[8] = "";

    for (size_t i = 0; row->method[i] != '\0'; i++)
        method[i] = (char)(row->method[i] | 0x20);
    str_append_format(out, "\"%s\": {", method);
    put_text(out, "operationId", row->id);
    put_text(out, "summary", row->summary);
    put_text(out, "description", row->note);
    str_append_format(out, "\"tags\": [\"%s\"], ", tag->tag);
    str_append_text(out, row->kind == KIND_OPEN ? "\"security\": [], " : "");
    put_parameters(out, row, tag);
    put_body(out, row);
    put_responses(out, row);
    str_append_text(out, "},\n");
}

/* A path, with all its calls, is written where its first call is. */
static bool is_first_of_path(size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (rows[i].path != NULL && strcmp(rows[i].path, rows[at].path) == 0)
            return false;
    return true;
}

static void put_paths(struct str *out)
{
    const struct row *tag = NULL;

    str_append_text(out, "\"paths\": {\n");
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].kind == KIND_TAG)
            tag = &rows[i];
        if (rows[i].kind == KIND_TAG || !is_first_of_path(i))
            continue;
        str_append_format(out, "\"%s\": {\n", rows[i].path);
        for (size_t j = i; j < ROWS; j++)
            if (rows[j].kind != KIND_TAG && strcmp(rows[j].path, rows[i].path) == 0)
                put_call(out, &rows[j], tag);
        put_end(out);
        str_append_text(out, ",\n");
    }
    put_end(out);
    str_append_text(out, ",\n");
}

/* Writes the tags in the order of their names, as linters want them. */
static void put_tags(struct str *out)
{
    const char *last = "";

    str_append_text(out, "\"tags\": [");
    for (;;) {
        const struct row *next = NULL;

        for (size_t i = 0; i < ROWS; i++)
            if (rows[i].kind == KIND_TAG && rows[i].note != NULL && strcmp(rows[i].tag, last) > 0 &&
                (next == NULL || strcmp(rows[i].tag, next->tag) < 0))
                next = &rows[i];
        if (next == NULL)
            break;
        str_append_text(out, "{");
        put_text(out, "name", next->tag);
        put_text(out, "description", next->note);
        put_end(out);
        str_append_text(out, ",\n");
        last = next->tag;
    }
    put_end(out);
    out->data[out->len - 1] = ']';
    str_append_text(out, ",\n");
}

static void put_components(struct str *out)
{
    str_append_text(out, "\"components\": {\n\"parameters\": {\"IdempotencyKey\": {");
    put_text(out, "name", "Idempotency-Key");
    put_text(out, "in", "header");
    put_text(out, "description", about_keys);
    str_append_text(out, "\"schema\": " JSON({
                        "type" : "string",
                        "minLength" : 1,
                        "maxLength" : 255,
                        "pattern" : "^[!-~]+$"
                    }) "}},\n");
    str_append_text(out, "\"securitySchemes\": {\"token\": {\"type\": \"http\", ");
    put_text(out, "scheme", "bearer");
    put_text(out, "description", about_tokens);
    put_end(out);
    str_append_text(out, "},\n\"headers\": {\n");
    for (size_t i = 0; i < HEADERS; i++) {
        str_append_format(out, "\"%s\": {", headers[i].name);
        put_text(out, "description", headers[i].note);
        str_append_text(out, headers[i].required ? "\"required\": true, " : "");
        str_append_format(out, "\"schema\": %s},\n", headers[i].schema);
    }
    put_end(out);
    str_append_text(out, ",\n\"responses\": {\n");
    for (size_t i = 0; i < STANDARD; i++) {
        const struct standard *s = &standard[i];

        str_append_format(out, "\"%s\": {", s->name);
        put_text(out, "description", s->note);
        if (s->status >= 400)
            str_append_format(out,
                              "\"content\": {\"application/problem+json\": {\"schema\": {\"$ref\": "
                              "\"#/components/schemas/Problem\"}%s%s}}, ",
                              s->example != NULL ? ", \"example\": " : "",
                              s->example != NULL ? s->example : "");
        if (s->header != NULL) {
            str_append_text(out, "\"headers\": {");
            put_header(out, s->header, s->header);
            put_end(out);
        }
        put_end(out);
        str_append_text(out, ",\n");
    }
    put_end(out);
    str_append_text(out, ",\n\"schemas\": {\n");
    for (size_t i = 0; api_objects[i] != NULL; i++)
        put_object(out, api_objects[i]);
    put_end(out);
    put_end(out);
    put_end(out);
    str_append_char(out, '\n');
}

static void put_beginning(struct str *out)
{
    str_append_text(out, "{\"openapi\": \"3.1.0\",\n\"info\": {");
    put_text(out, "title", "sitemapd");
    put_text(out, "version", "{version}");
    put_text(out, "description", about);
    str_append_text(
        out, JSON("contact"
                  : {"name" : "The operator of this server"}, "license"
                  : {"name" : "None declared",
                     "identifier" : "NOASSERTION"}) "},\n" JSON("servers"
                                                                : [ {"url" : "/"} ], "security"
                                                                : [ {"token" : []} ]) ",\n");
}

int main(int argc, char **argv)
{
    struct str out = STR_INIT;
    FILE *file = argc == 2 ? fopen(argv[1], "w") : NULL;

    if (file == NULL) {
        fputs("usage: openapi FILE\n", stderr);
        return 1;
    }
    put_beginning(&out);
    put_tags(&out);
    put_paths(&out);
    put_components(&out);
    if (out.failed || fwrite(out.data, 1, out.len, file) != out.len || fclose(file) != 0)
        return 1;
    str_done(&out);
    return 0;
}
