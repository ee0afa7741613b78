/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* JSON of answers: objects as their rows say, and entries as server/rules/entry.h writes them.
 * Internal to server/api/. */
#pragma once

#include "db/catalogue.h"
#include "server/base/str.h"

/* Appends the object. The index's URL is looked up in `registry`; `remarks` is added to the
 * warnings of the stored entry. */
void entry_json_append(struct str *out, const struct entry_record *record,
                       const struct registry *registry, rule_set remarks);

/* The same with its position: a line of an export. */
void entry_json_append_placed(struct str *out, const struct entry_record *record,
                              const struct registry *registry);

/* Appends {"loc", "before", "after"}: an entry before and after a change; NULL: it did not exist.
 */
void entry_json_append_change(struct str *out, const struct entry_record *before,
                              const struct entry_record *after, const struct registry *registry);

struct object;
/* Appends a struct json_… as the rows of its object say (objects.h); json_open_object without the
 * brace at its end. */
void json_append_object(struct str *out, const struct object *object, const void *shown);
void json_open_object(struct str *out, const struct object *object, const void *shown);

/* Appends the JSON string of a URL of two parts. */
void json_append_url(struct str *out, const char *origin, const char *path);
/* Appends ,"name": and the time; 0 is not a time: null. */
void json_append_time_member(struct str *out, const char *name, int64_t unix_seconds);
