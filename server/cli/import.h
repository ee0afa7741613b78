/* An import: what was read of a list, spooled for the change or changes that apply it. Internal
 * to server/cli/. */
#ifndef SITEMAPD_CLI_IMPORT_H
#define SITEMAPD_CLI_IMPORT_H

#include "server/cli/import_report.h"
#include "server/cli/progress.h"
#include "server/cli/session.h"
#include "server/ingest/reader.h"
#include "server/ingest/spool.h"

/* What one change applies: all of the list, or with --replace the part of one index. */
struct import_group {
    char *index_url; /* owned; NULL: as --index says */
    int64_t index_id;
    struct spool *spool;
};

struct import {
    struct cli *cli;
    const char *file;   /* as named in messages */
    char *folder;       /* owned: where spools go */
    const char *index;  /* --index or NULL */
    const char *source; /* --source: who owns all that is made; NULL: what a line says */
    bool replace, skip, dry_run, drop_lastmod;
    int64_t max_removed;
    struct registry *registry; /* replace without --index: tells which index a loc belongs to */
    size_t group_count;
    struct import_group *groups;
    struct import_report findings;
    struct progress progress;
    uint64_t applied; /* entries of the groups before this one, for the bar */
    uint64_t created, updated, unchanged, removed, revision;
};

/* Reads all of `fd` into groups. Returns EXIT_DONE, or has told why the list is of no use. */
int import_read(struct import *import, int fd);
/* The entries that were read and not refused by the reader. */
uint64_t import_count(const struct import *import);
/* Applies the groups one after the other, or checks them only. What single entries are refused for
 * is in the findings. Returns EXIT_DONE, or has told what refuses a group as a whole. */
int import_apply(struct import *import, bool dry_run);

#endif
