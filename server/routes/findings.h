/* What a list's reply says of single lines: those refused, and those taken without their bad date.
 * Bounded in number; the rest is only counted. Internal to server/routes/. Not thread safe; the
 * threads that handle one request come one after the other. */
#ifndef SITEMAPD_ROUTES_FINDINGS_H
#define SITEMAPD_ROUTES_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/rules/entry.h"
#include "server/rules/str.h"

struct finding {
    uint64_t line;
    char *json; /* owned: the object */
};

struct findings {
    uint32_t max; /* kept */
    uint64_t total;
    uint32_t count, capacity;
    struct finding *items;
    bool failed; /* out of memory: some are missing */
};

void findings_init(struct findings *f, uint32_t max);
/* {"line", "loc", "code", "detail"} */
void findings_add_rejection(struct findings *f, const struct rejection *rejection);
/* {"line", "loc", "codes"} */
void findings_add_remarks(struct findings *f, const struct entry *entry, rule_set remarks);
/* Appends them as a JSON array, by line. */
void findings_append(struct findings *f, struct str *out);
void findings_done(struct findings *f);

#endif
