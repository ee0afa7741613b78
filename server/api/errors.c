/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Maps statuses of the catalogue, rules and readers to HTTP problems. */
#include "server/api/errors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void reply_status(struct reply *reply, enum catalogue_status status, const char *field,
                         const char *detail)
{
    const struct catalogue_status_row *row = catalogue_status_row(status);
    char retry_after[16];

    reply_problem(reply, row->http, row->word, field, detail != NULL ? detail : row->sentence);
    if (row->retry_s == 0)
        return;
    snprintf(retry_after, sizeof retry_after, "%u", row->retry_s);
    reply_header(reply, "Retry-After", retry_after);
}

void errors_reply_status(struct reply *reply, enum catalogue_status status)
{
    reply_status(reply, status, NULL, NULL);
}

/* A rule that checks a value answers 422; those that check the state of the catalogue or the form
 * of the body have a status of their own. */
static unsigned status_of_rule(enum rule_code code)
{
    switch (code) {
    case RULE_JSON:
        return 400;
    case RULE_SHRINK_GUARD:
    case RULE_HOST_TAKEN:
    case RULE_FROZEN:
        return 409;
    case RULE_ALL_SITES:
    case RULE_OUTSIDE_TOKEN:
        return 403;
    case RULE_LIST_TOO_LONG:
        return 413;
    default:
        return 422;
    }
}

void errors_reply_rule(struct reply *reply, enum rule_code code, const char *field,
                       const char *detail)
{
    if (detail == NULL || *detail == '\0')
        detail = rule_code_sentence(code);
    reply_problem(reply, status_of_rule(code), rule_code_word(code), field, detail);
}

void errors_reply_scope(struct reply *reply)
{
    reply_problem(reply, 403, "token-of-another-site", NULL,
                  "permission denied: this token is for another site");
}

void errors_reply_role(struct reply *reply, const struct grant *grant, enum grant_role needed)
{
    char detail[128];

    snprintf(detail, sizeof detail,
             "permission denied: this request needs role %s, the token has role %s",
             grant_role_word(needed), grant_role_word(grant->role));
    reply_problem(reply, 403, "token-role", NULL, detail);
}

void errors_reply_unauthorised(struct reply *reply, const char *detail)
{
    reply_problem(reply, 401, "unauthorized", NULL, detail);
    reply_header(reply, "WWW-Authenticate", "Bearer realm=\"sitemapd\"");
}

void errors_reply_revoked(struct reply *reply)
{
    errors_reply_unauthorised(reply, "the token was revoked or expired during the request");
}

void errors_reply_not_found(struct reply *reply, const char *what)
{
    char detail[96];

    snprintf(detail, sizeof detail, "%s not found", what);
    reply_problem(reply, 404, "not-found", NULL, detail);
}

void errors_reply_result(struct reply *reply, const struct change_result *result)
{
    const char *detail = result->detail[0] != '\0' ? result->detail : NULL;

    if (result->revoked) {
        errors_reply_revoked(reply);
    } else if (result->forbidden && result->code != RULE_OUTSIDE_TOKEN) {
        errors_reply_scope(reply);
    } else if (result->status == CATALOGUE_REFUSED) {
        errors_reply_rule(reply, result->code, result->field, detail);
        if (result->code == RULE_SHRINK_GUARD)
            errors_add_number(reply, "would_remove", result->would_remove);
    } else if (result->precondition_failed) {
        reply_problem(reply, 412, "precondition-failed", NULL,
                      detail != NULL
                          ? detail
                          : "conflict: the entry has changed since the state given in If-Match");
    } else if (result->managed) {
        reply_problem(reply, 409, "managed-by-config", NULL,
                      detail != NULL ? detail
                                     : "the configuration file manages this site; change it there");
    } else if (catalogue_status_row(result->status)->http < 500 ||
               result->status == CATALOGUE_OUTCOME_UNKNOWN) { /* what names the change */
        reply_status(reply, result->status, result->field, detail);
    } else {
        errors_reply_status(reply, result->status);
    }
}

void errors_reply_reader(struct reply *reply, const struct reader_error *error)
{
    const char *code = error->code != NULL ? error->code : "malformed-body";
    unsigned status = error->status == READER_TOO_LARGE ? 413 : 400;
    char detail[320];

    if (error->status == READER_NO_MEMORY) {
        errors_reply_status(reply, CATALOGUE_NO_MEMORY);
        return;
    }
    /* JSON that ends too early is as malformed as any; a compressed body has no lines. */
    if (error->line != 0 && strcmp(code, "truncated") == 0)
        code = rule_code_word(RULE_JSON);
    /* Most sentences name the place themselves. */
    if (error->line != 0 && strncmp(error->detail, "line ", 5) != 0)
        snprintf(detail, sizeof detail, "line %" PRIu64 ": %s", error->line, error->detail);
    else
        snprintf(detail, sizeof detail, "%s", error->detail);
    reply_problem(reply, status, code, error->field[0] != '\0' ? error->field : NULL, detail);
}

void errors_reply_spool(struct reply *reply, enum spool_status status)
{
    switch (status) {
    case SPOOL_FULL:
        reply_problem(reply, 413, "body-too-large", NULL,
                      "the list is larger than max_bulk in [limits] allows");
        return;
    case SPOOL_CROWDED:
        reply_problem(reply, 503, "spool-full", NULL,
                      "no space left in the spool: the lists that other clients are sending use "
                      "all of max_spool; nothing was applied, retry");
        reply_header(reply, "Retry-After", "5");
        return;
    case SPOOL_NO_SPACE:
        errors_reply_status(reply, CATALOGUE_NO_SPACE);
        return;
    case SPOOL_NO_MEMORY:
        errors_reply_status(reply, CATALOGUE_NO_MEMORY);
        return;
    case SPOOL_OK:
    case SPOOL_FAILED:
        break;
    }
    errors_reply_status(reply, CATALOGUE_UNAVAILABLE);
}

void errors_add_member(struct reply *reply, const char *name, const char *json)
{
    struct str *body = &reply->body;

    while (body->len > 0 && body->data[body->len - 1] != '}')
        body->len--;
    if (body->len == 0)
        return;
    body->data[--body->len] = '\0';
    str_append_format(body, ",\"%s\":", name);
    str_append_text(body, json);
    str_append_text(body, "}\n");
}

void errors_add_number(struct reply *reply, const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, value);
    errors_add_member(reply, name, text);
}
