/* Entries and other small things as text for people and as JSON. Internal to server/cli/. */
#ifndef SITEMAPD_CLI_ENTRY_TEXT_H
#define SITEMAPD_CLI_ENTRY_TEXT_H

#include "db/catalogue.h"
#include "server/rules/str.h"

/* Appends `text` JSON-quoted; NULL is null. */
void text_append_json(struct str *out, const char *text);
/* Appends `,"name":` and the text JSON-quoted. */
void text_append_member(struct str *out, const char *name, const char *text);
/* Appends the URL of an index, not quoted. */
void text_append_index_url(struct str *out, const struct registry_site *site,
                           const struct registry_index *index);
/* All that the API says of an entry; `remarks` beside those that its text always bears. */
void text_append_entry(struct str *out, const struct entry_record *record,
                       const struct registry *registry, rule_set remarks);
/* One line of an export. */
void text_append_export(struct str *out, const struct entry_record *record,
                        const struct registry *registry);
/* Prints each remark on stderr: `sitemapd: LOC: warning: sentence (word)`. */
void text_warn(const char *what, rule_set remarks);

#endif
