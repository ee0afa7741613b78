/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reports what other processes, mostly commands, commit while a server has the catalogue open.
 * Each transaction of the writer begins with a look at the revision, and the watch wakes an idle
 * writer for one; revisions that it did not make itself are reported (catalogue_options.event) with
 * the indexes that they changed. Internal to the writer: its thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/tx/tx.h"

/* Shortest time between two reports: later commits are collected for the next one. */
#define OUTSIDE_REPORT_MS 1000
/* Most indexes in a report (then: "more"), and the size of a name. */
#define OUTSIDE_NAMES     3
#define OUTSIDE_NAME_SIZE 256

struct outside {
    char epoch[33];       /* "": nothing is known yet */
    uint64_t known;       /* the last revision that this writer made or saw */
    uint64_t count, last; /* number of revisions to report, and the last of them */
    int64_t reported_ms;
    unsigned named;
    bool more; /* more indexes changed than are named */
    char names[OUTSIDE_NAMES][OUTSIDE_NAME_SIZE];
};

/* After tx_begin or tx_refresh. After a failure of SQLite the transaction may be gone. */
enum catalogue_status outside_check(struct outside *o, struct tx *tx);
/* After a commit of this writer. */
void outside_committed(struct outside *o, const struct tx *tx);
/* Reports the revisions found, unless the last report is newer than OUTSIDE_REPORT_MS. */
void outside_report(struct outside *o, const struct catalogue_options *options, int64_t now_ms);
