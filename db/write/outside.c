/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Finds revisions of other processes, and reports them with the indexes that they changed. */
#include "db/write/outside.h"

#include <stdio.h>
#include <string.h>

/* ---- changed indexes */

static void add_name(struct outside *o, const char *url)
{
    for (unsigned i = 0; i < o->named; i++) {
        if (strcmp(o->names[i], url) == 0)
            return;
    }
    size_t len = strlen(url);
    if (o->named == OUTSIDE_NAMES || len >= sizeof o->names[0])
        o->more = true;
    else
        memcpy(o->names[o->named++], url, len + 1);
}

/* The indexes with pages of these revisions. */
static enum catalogue_status find_names(struct outside *o, struct tx *tx, uint64_t after,
                                        uint64_t last)
{
    sqlite3_stmt *row = tx_bind(tx, ST_CHANGED_INDEXES, after, last);
    if (row == NULL)
        return tx_failure(tx);
    int rc;
    while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
        const char *url = (const char *)sqlite3_column_text(row, 0);
        if (url != NULL)
            add_name(o, url);
    }
    sqlite3_reset(row);
    return rc == SQLITE_DONE ? CATALOGUE_OK : tx_failure(tx);
}

/* ---- detection */

static enum catalogue_status compare(struct outside *o, struct tx *tx, const char *epoch,
                                     uint64_t revision)
{
    /* A replaced file, or an older state of this one, is not reported here: the watch reports it.
     */
    enum catalogue_status status = CATALOGUE_OK;
    bool same_file = strcmp(o->epoch, epoch) == 0 && revision >= o->known;
    if (same_file && revision > o->known) {
        o->count += revision - o->known;
        o->last = revision;
        status = find_names(o, tx, o->known, revision);
    }
    if (!same_file)
        snprintf(o->epoch, sizeof o->epoch, "%s", epoch);
    o->known = revision;
    return status;
}

enum catalogue_status outside_check(struct outside *o, struct tx *tx)
{
    return tx->options->event != NULL ? compare(o, tx, tx->epoch, tx->revision) : CATALOGUE_OK;
}

void outside_committed(struct outside *o, const struct tx *tx)
{
    o->known = tx->revision;
}

/* ---- report */

static void append(char *out, size_t size, size_t *used, const char *text)
{
    int len = snprintf(out + *used, size - *used, "%s", text);
    *used += len < 0 ? 0 : (size_t)len;
}

void outside_report(struct outside *o, const struct catalogue_options *options, int64_t now_ms)
{
    if (o->count == 0 || (o->reported_ms != 0 && now_ms - o->reported_ms < OUTSIDE_REPORT_MS))
        return;
    char detail[160 + OUTSIDE_NAMES * (OUTSIDE_NAME_SIZE + 2)];
    int len =
        o->count == 1
            ? snprintf(detail, sizeof detail,
                       "another process wrote revision %llu: ", (unsigned long long)o->last)
            : snprintf(detail, sizeof detail, "another process wrote %llu revisions up to %llu: ",
                       (unsigned long long)o->count, (unsigned long long)o->last);
    size_t used = len < 0 ? 0 : (size_t)len;
    append(detail, sizeof detail, &used,
           o->named > 0 || o->more ? "pages of "
                                   : "no page changed, only a site, an index or a token");
    for (unsigned i = 0; i < o->named; i++) {
        append(detail, sizeof detail, &used, i > 0 ? ", " : "");
        append(detail, sizeof detail, &used, o->names[i]);
    }
    if (o->more)
        append(detail, sizeof detail, &used, o->named > 0 ? " and others" : "an index");
    options->event(options->event_context, "catalogue-changed", detail);
    o->count = 0;
    o->named = 0;
    o->more = false;
    o->reported_ms = now_ms;
}
