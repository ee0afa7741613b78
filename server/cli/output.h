/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Output of commands. Colours are used only on a terminal that supports them (TERM is set and not
 * "dumb"), and without NO_COLOR (https://no-color.org). Internal to server/cli/. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "db/catalogue.h"
#include "server/base/str.h"
#include "server/cli/backend/api.h"

enum ink { INK_HEADING, INK_CODE, INK_GOOD, INK_WARNING, INK_WRONG, INK_FAINT };

/* The escape sequence that begins a colour on `to`; "": no colours. Static. */
const char *ink_on(FILE *to, enum ink ink);
/* The sequence that ends it. Static. */
const char *ink_off(FILE *to);
/* Characters in a line of `to`: the terminal's, 60 to 100; 80 elsewhere. */
int ink_width(FILE *to);

/* A progress bar on stderr if that is a terminal; otherwise nothing. Internal to server/cli/. One
 * thread at a time. */

struct progress {
    bool shown;        /* stderr is a terminal that can move its cursor */
    const char *label; /* borrowed */
    const char *unit;  /* "bytes", "entries"; borrowed */
    uint64_t total;    /* 0: not known */
    int64_t drawn_at;  /* monotonic milliseconds; 0: not yet */
};

void progress_start(struct progress *p, const char *label, const char *unit, uint64_t total);
/* Draws at most ten times a second. */
void progress_update(struct progress *p, uint64_t done);
/* Removes the bar. */
void progress_end(struct progress *p);

/* Prints a JSON object as a line. */
void output_json(const json_t *object);

/* Appends the table row, or rows, of an object of the API. */
typedef void output_row(struct str *out, const json_t *object, void *context);

/* Prints each object of an array (NULL: the read failed, which was reported): with --json a line of
 * JSON for each, otherwise as a table, completely or not at all. `heading` (may be NULL) is above
 * the table; `none` is printed on stderr if there are no rows. Returns an exit status. */
int output_table(struct cli *cli, const json_t *objects, const char *heading, const char *none,
                 output_row *append, void *context);
/* A count as JSON, null if it is unknown, for the caller to free. */
json_t *output_json_count(uint64_t count, bool is_unknown);
/* The member's count for a table, "-" if it is unknown. */
void output_count(char out[24], const json_t *object, const char *name);

/* Prints what a change does to an entry: "+ loc", "- loc", or "~ loc" with the differences. NULL:
 * it did not exist before, or does not after. */
void output_print_change(const struct entry_shown *before, const struct entry_shown *after);

/* Prints the first `most` rows of a dry run (change.wants_preview), a line each. Returns how many.
 */
#define ROWS_SHOWN 20
uint64_t output_print_rows(const struct change_result *result, uint64_t most);
/* The same of the rows that the API returns for a dry run. */
uint64_t output_print_answer_rows(const json_t *rows, uint64_t most);
/* Prints "... and N more" if there are more. */
void output_print_more(uint64_t all, uint64_t shown);

/* Prints each remark on stderr: `sitemapd: LOC: warning: sentence (word)`. */
void text_warn(const char *what, rule_set remarks);
