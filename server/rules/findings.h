/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Findings about single rows of a list: refusals, and remarks on accepted rows. All are counted, a
 * bounded number is kept. Not thread safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/rules/code.h"
#include "server/rules/entry.h"

struct finding {
    uint64_t line;       /* 1-based line, element or row; 0: of the list as a whole */
    char *loc, *detail;  /* owned; may be NULL */
    char *field;         /* owned; NULL: no field is at fault */
    enum rule_code code; /* why it was refused; RULE_OK: it was accepted, with `remarks` */
    rule_set remarks;
};

/* Findings shown for each code if there are too many to show all. */
#define FINDINGS_EXAMPLES 5u

/* Zero it except the first two members. */
struct findings {
    uint32_t max;      /* refusals kept, and as many remarks */
    uint32_t examples; /* refusals of each code that are kept even beyond `max` */
    uint32_t count, capacity;
    struct finding *items;      /* owned; in order of arrival */
    uint32_t kept[2];           /* kept refusals, kept remarks */
    uint64_t refused, remarked; /* all, also those not kept */
    uint64_t refused_by[RULE_CODE_COUNT], remarked_by[RULE_CODE_COUNT];
    uint64_t first_line[RULE_CODE_COUNT]; /* the first line with this remark */
    bool failed;                          /* out of memory: some are missing */
};

void findings_refuse(struct findings *f, const struct rejection *rejection);
/* Adds remarks on a row; does nothing if the set is empty. `loc` may be NULL. */
void findings_remark(struct findings *f, uint64_t line, const char *loc, rule_set remarks);
/* Moves the findings of `from` to `f`, as many as `f` keeps; leaves `from` empty. */
void findings_merge(struct findings *f, struct findings *from);
/* Sorts by line. */
void findings_sort(struct findings *f);
/* Frees what it owns. The counts stay. */
void findings_done(struct findings *f);
