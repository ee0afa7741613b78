/* The entry object of the API, written in one place. Internal to server/routes/. */
#ifndef SITEMAPD_ROUTES_ENTRY_JSON_H
#define SITEMAPD_ROUTES_ENTRY_JSON_H

#include "db/catalogue.h"
#include "server/rules/str.h"

/* Appends the object. The index's URL is looked up in `registry`; `remarks` joins the warnings that
 * the stored entry always bears. */
void entry_json_append(struct str *out, const struct entry_record *record,
                       const struct registry *registry, rule_set remarks);

/* Appends the words of a set as a JSON array. */
void entry_json_append_codes(struct str *out, rule_set codes);
/* Appends a quoted RFC 3339 time. */
void entry_json_append_time(struct str *out, int64_t unix_seconds);
/* Appends a JSON string; NULL: null. */
void entry_json_append_text(struct str *out, const char *text);

#endif
