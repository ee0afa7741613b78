/* What a call of the catalogue came to. Part of db/catalogue.h. */
#ifndef SITEMAPD_DB_STATUS_H
#define SITEMAPD_DB_STATUS_H

enum catalogue_status {
    CATALOGUE_OK,
    CATALOGUE_REFUSED, /* a rule refused it: see result.code; nothing was written */
    CATALOGUE_NOT_FOUND,
    CATALOGUE_CONFLICT, /* exists already, managed by the configuration, or If-Match failed */
    CATALOGUE_FULL,     /* a limit of the catalogue */
    CATALOGUE_BUSY, /* another process held the lock, or the queue was full, until the deadline */
    CATALOGUE_UNAVAILABLE, /* the file is gone, was replaced, is no catalogue of ours, I/O error */
    CATALOGUE_NEWER,       /* made by a newer version */
    CATALOGUE_NO_SPACE,
    CATALOGUE_CORRUPT,
    CATALOGUE_NO_MEMORY,
    CATALOGUE_CANCELLED, /* closed before it was applied */
};

/* A stable word: "ok", "not-found", "conflict", … Static. */
const char *catalogue_status_word(enum catalogue_status status);

#endif
