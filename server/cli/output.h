/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Colours, only where a person looks: on a terminal that can (TERM is set and not "dumb") and
 * without NO_COLOR (https://no-color.org). Internal to server/cli/. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "db/catalogue.h"
#include "server/base/str.h"
#include "server/cli/backend/api.h"

enum ink { INK_HEADING, INK_CODE, INK_GOOD, INK_WARNING, INK_WRONG, INK_FAINT };

/* The escape sequence that begins it on `to`, "" where `to` shows no colours. Static. */
const char *ink_on(FILE *to, enum ink ink);
/* What ends it. Static. */
const char *ink_off(FILE *to);
/* Characters in a line of `to`: the terminal's, 60 to 100; 80 elsewhere. */
int ink_width(FILE *to);

/* A progress bar on stderr, where that is a terminal; else nothing. Internal to server/cli/. One
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
/* Takes the bar away. */
void progress_end(struct progress *p);

/* Prints what the API reported, a line of JSON. */
void output_json(const json_t *object);

/* Appends the line, or lines, of a table that an object of the API is. */
typedef void output_row(struct str *out, const json_t *object, void *context);

/* Prints each object of an array (NULL: what could not be read was reported): with --json as it is,
 * a line for each, else as a table, whole or not at all. `heading` stands above it, NULL for none;
 * `none` is reported on stderr where it has no row. Returns an exit status. */
int output_table(struct cli *cli, const json_t *objects, const char *heading, const char *none,
                 output_row *append, void *context);
/* A count as JSON, null if it is unknown. The caller's. */
json_t *output_json_count(uint64_t count, bool is_unknown);
/* The member's count for a table, "-" if it is unknown. */
void output_count(char out[24], const json_t *object, const char *name);

/* A line of what a change does to an entry: "+ loc", "- loc", or "~ loc" with what differs. NULL:
 * it was, or is, not there. */
void output_print_change(const struct entry_shown *before, const struct entry_shown *after);

/* Of a dry run that was to return rows (change.wants_preview): the first `most`, a line each.
 * Returns how many. */
#define ROWS_SHOWN 20
uint64_t output_print_rows(const struct change_result *result, uint64_t most);
/* The same of the rows that the API returns for a dry run. */
uint64_t output_print_answer_rows(const json_t *rows, uint64_t most);
/* "... and N more" behind them, where there are. */
void output_print_more(uint64_t all, uint64_t shown);

/* Small things as text for people. Internal to server/cli/. */

/* Prints each remark on stderr: `sitemapd: LOC: warning: sentence (word)`. */
void text_warn(const char *what, rule_set remarks);
