/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Errors as HTTP: the one place where the codes of the catalogue, the rules and the readers get a
 * status. Each function fills a reply with an RFC 9457 problem. Internal to server/api/. */
#pragma once

#include "db/catalogue.h"
#include "server/http/request.h"
#include "server/input/reader.h"
#include "server/rules/code.h"

/* The catalogue failed. */
void errors_reply_status(struct reply *reply, enum catalogue_status status);
/* A write was not applied: it failed, or a rule rejected it. */
void errors_reply_result(struct reply *reply, const struct change_result *result);
/* A rule rejected a value; `detail` NULL or "": the rule's own sentence. */
void errors_reply_rule(struct reply *reply, enum rule_code code, const char *field,
                       const char *detail);
/* A body could not be read. */
void errors_reply_reader(struct reply *reply, const struct reader_error *error);
void errors_reply_spool(struct reply *reply, enum spool_status status);
/* The token's role does not allow the call. */
void errors_reply_role(struct reply *reply, const struct grant *grant, enum grant_role needed);
/* The token's scope does not allow the read or write. */
void errors_reply_scope(struct reply *reply);
/* 401 with its challenge. */
void errors_reply_unauthorised(struct reply *reply, const char *detail);
/* 401: the token was valid when the request began, and is no longer. */
void errors_reply_revoked(struct reply *reply);
void errors_reply_not_found(struct reply *reply, const char *what);

/* Adds a member to the problem (or any JSON object) that `reply->body` holds; `json` is its value
 * as JSON text. */
void errors_add_member(struct reply *reply, const char *name, const char *json);
void errors_add_number(struct reply *reply, const char *name, uint64_t value);
