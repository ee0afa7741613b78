/* A restore in progress: what its two halves share. Internal to db/. One thread. */
#ifndef SITEMAPD_DB_RESTORE_H
#define SITEMAPD_DB_RESTORE_H

#include "db/connection.h"

struct restore {
    const char *backup, *path;
    char *temporary; /* owned: beside `path` */
    sqlite3 *old; /* held alone while it is replaced; NULL where there is none, or no catalogue */
    int64_t serial, revision, site, index, token; /* of the old file */
    bool old_known;
    const struct catalogue_restore_options *options;
    uint64_t problems;
    char *why;
    size_t why_size;
};

/* The sentence `path: why` and a status for errno, or for a sentence. */
enum catalogue_status restore_fail_errno(struct restore *r, const char *path);
enum catalogue_status restore_fail(struct restore *r, enum catalogue_status status,
                                   const char *path, const char *sentence);

/* Refuses what is no backup, by its surroundings. */
enum catalogue_status restore_check_backup(struct restore *r);
/* Copies the backup beside the catalogue, for its owner alone. */
enum catalogue_status restore_copy(struct restore *r);
/* Brings the copy to this version's schema and checks all of it. */
enum catalogue_status restore_prove(struct restore *r);
/* Gives the copy another epoch, and serials, ids and revisions above the old file's. */
enum catalogue_status restore_renew(struct restore *r);

#endif
