/* What an import found on the way: refused entries, of which a bounded number is kept, remarks,
 * and locs that stand more than once. Internal to server/cli/. One thread at a time. */
#ifndef SITEMAPD_CLI_IMPORT_REPORT_H
#define SITEMAPD_CLI_IMPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "server/cli/loc_set.h"
#include "server/rules/entry.h"

struct finding {
    uint64_t line;
    char *loc; /* owned; NULL: there was none */
    enum rule_code code;
    char *detail; /* owned */
};

struct import_report {
    uint32_t max;
    uint64_t refused; /* all, also those not kept */
    uint64_t refused_by[RULE_CODE_COUNT];
    uint32_t kept;
    struct finding *items; /* owned: the first `max`, and of each code the first few */
    uint64_t remarks[RULE_CODE_COUNT];
    uint64_t remark_lines[RULE_CODE_COUNT]; /* where each stood first */
    struct loc_set locs;
};

/* False when out of memory. */
bool import_report_init(struct import_report *f, uint32_t max);
void import_report_refuse(struct import_report *f, const struct rejection *rejection);
void import_report_remark(struct import_report *f, enum rule_code code, uint64_t line);
/* Notes an entry's remarks. False, and refused, where its loc stood in the list before: were the
 * last to count, the same list imported again would change the entry there and back. */
bool import_report_take(struct import_report *f, const struct entry *entry);
/* Tells on stderr what was refused (each `sitemapd: FILE:LINE: LOC: why (code)`) and remarked.
 * Where more than `max` was, the first few of each code, and how many more there are. */
void import_report_tell(const struct import_report *f, const char *file);
void import_report_done(struct import_report *f);

#endif
