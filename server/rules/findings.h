/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What is to be reported of single rows of a list: which were refused, and what was remarked on
 * those that were taken. All are counted, a bounded number is kept. Not thread safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/rules/code.h"
#include "server/rules/entry.h"

struct finding {
    uint64_t line;       /* 1-based line, element or row; 0: of the list as a whole */
    char *loc, *detail;  /* owned; NULL: there is none */
    char *field;         /* owned; NULL: none is to blame */
    enum rule_code code; /* why it was refused; RULE_OK: it was taken, with `remarks` */
    rule_set remarks;
};

/* Of each code, where there are too many to report all. */
#define FINDINGS_EXAMPLES 5u

/* Begins zero but for the first two. */
struct findings {
    uint32_t max;      /* refusals kept, and as many remarks */
    uint32_t examples; /* of each code so many refusals are kept though there are `max` */
    uint32_t count, capacity;
    struct finding *items;      /* owned; in the order in which they came */
    uint32_t kept[2];           /* of these the refusals, the remarks */
    uint64_t refused, remarked; /* all, also those not kept */
    uint64_t refused_by[RULE_CODE_COUNT], remarked_by[RULE_CODE_COUNT];
    uint64_t first_line[RULE_CODE_COUNT]; /* that was remarked on so */
    bool failed;                          /* out of memory: some are missing */
};

void findings_refuse(struct findings *f, const struct rejection *rejection);
/* `loc` may be NULL. No remarks: nothing. */
void findings_remark(struct findings *f, uint64_t line, const char *loc, rule_set remarks);
/* Adds what `from` has, as far as `f` keeps it, and leaves `from` empty. */
void findings_merge(struct findings *f, struct findings *from);
/* By line: a reader's come first, the catalogue's after them. */
void findings_sort(struct findings *f);
/* Frees what it owns. What was counted stays. */
void findings_done(struct findings *f);
