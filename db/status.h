/* What a call of the catalogue came to. Part of db/catalogue.h. */
#pragma once

enum catalogue_status {
    CATALOGUE_OK,
    CATALOGUE_REFUSED, /* a rule refused it: see result.code; nothing was written */
    CATALOGUE_NOT_FOUND,
    CATALOGUE_CONFLICT, /* exists already, managed by the configuration, or If-Match failed */
    CATALOGUE_FULL,     /* a limit of the catalogue */
    CATALOGUE_BUSY, /* another process held the lock, or the queue was full, until the deadline */
    CATALOGUE_UNAVAILABLE, /* the file is gone, was replaced, is not a catalogue of ours, I/O error
                            */
    CATALOGUE_NEWER,       /* made by a newer version */
    CATALOGUE_NO_SPACE,
    CATALOGUE_CORRUPT,
    CATALOGUE_NO_MEMORY,
    CATALOGUE_SHARED_AWAY,     /* shared: what orders the writes of all nodes cannot be reached */
    CATALOGUE_UPGRADE_PENDING, /* shared: an older release works on it, too; reads go on */
    CATALOGUE_DIVERGED,        /* shared: this node's past is not the log's; it replaces itself */
    CATALOGUE_OUTCOME_UNKNOWN, /* shared: applied or not, nobody could say in time; the change's
                                  `detail` names it. The only one that does not mean: not applied */
    CATALOGUE_CANCELLED,       /* closed before it was applied */
};

/* A stable word: "ok", "not-found", "conflict", … Static. */
const char *catalogue_status_word(enum catalogue_status status);
