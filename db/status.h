/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The results of calls of the catalogue, in one table: stable word, HTTP status, Retry-After in
 * seconds (0: none), and a sentence for people. Part of db/catalogue.h. After 503 nothing was
 * applied: repeat the request. After 504 the request may have been applied. */
#pragma once

#define CATALOGUE_STATUSES(X)                                                                      \
    /* 500: catalogue_status_row returns this row for an unknown status. */                        \
    X(CATALOGUE_OK, "ok", 500, 0, "internal server error")                                         \
    /* A rule rejected it: see result.code; nothing was written. */                                \
    X(CATALOGUE_REFUSED, "refused", 422, 0, "a validation rule rejected it")                       \
    X(CATALOGUE_NOT_FOUND, "not-found", 404, 0, "not found")                                       \
    /* The object exists already or is managed by the configuration, or If-Match failed. */        \
    X(CATALOGUE_CONFLICT, "conflict", 409, 0, "conflict: it already exists in the catalogue")      \
    X(CATALOGUE_FULL, "full", 409, 0, "limit exceeded: a limit of the catalogue is reached")       \
    /* Another process held the lock, or the queue was full, until the deadline. */                \
    X(CATALOGUE_BUSY, "busy", 503, 1,                                                              \
      "busy: too many writes are waiting, or another process or node has the lock; nothing was "   \
      "applied, retry")                                                                            \
    /* The file is gone, was replaced, is not a catalogue; an I/O error. */                        \
    X(CATALOGUE_UNAVAILABLE, "unavailable", 503, 5,                                                \
      "the catalogue cannot be read or written now; nothing was applied")                          \
    X(CATALOGUE_NEWER, "newer", 503, 60, "the catalogue was made by a newer version of sitemapd")  \
    X(CATALOGUE_NO_SPACE, "no-space", 503, 60,                                                     \
      "no space left on the disk of the catalogue; nothing was applied")                           \
    X(CATALOGUE_CORRUPT, "corrupt", 503, 60,                                                       \
      "the catalogue is corrupt; nothing was applied; `sitemapd check` shows more")                \
    X(CATALOGUE_NO_MEMORY, "no-memory", 503, 5, "out of memory; nothing was applied")              \
    /* Shared: the log of all nodes cannot be reached. */                                          \
    X(CATALOGUE_SHARED_AWAY, "shared-unavailable", 503, 2,                                         \
      "the shared catalogue's PostgreSQL cannot be reached or rejects the write; nothing was "     \
      "applied, retry")                                                                            \
    /* Shared: this node follows another, and writes nothing itself. */                            \
    X(CATALOGUE_FOLLOWS, "follower", 503, 60,                                                      \
      "read-only: this node follows another; send writes to the node that it follows; nothing "    \
      "was applied")                                                                               \
    /* Shared: a node with an older release is connected; reads continue. */                       \
    X(CATALOGUE_UPGRADE_PENDING, "upgrade-pending", 503, 30,                                       \
      "upgrade pending: another node runs an older release, which cannot read this; nothing was "  \
      "applied")                                                                                   \
    /* Shared: this node's history differs from the log's; it replaces its file. */                \
    X(CATALOGUE_DIVERGED, "diverged", 503, 5,                                                      \
      "this node has diverged and is copying the shared catalogue again; nothing was applied")     \
    /* Shared: unknown whether the change was applied; `detail` of the result names its record.    \
     * After all other failures nothing was applied. */                                            \
    X(CATALOGUE_OUTCOME_UNKNOWN, "outcome-unknown", 504, 5,                                        \
      "timeout: PostgreSQL did not confirm the change, which may have been applied; retry with "   \
      "the same Idempotency-Key, or check first")                                                  \
    /* Closed before it was applied. */                                                            \
    X(CATALOGUE_CANCELLED, "cancelled", 503, 5, "the server is stopping; nothing was applied")

enum catalogue_status {
#define X(name, word, http, retry_s, sentence) name,
    CATALOGUE_STATUSES(X)
#undef X
};

struct catalogue_status_row {
    const char *word, *sentence; /* static */
    unsigned http, retry_s;
};
/* The row of a status; that of CATALOGUE_OK for an unknown one. Static. Thread safe. */
const struct catalogue_status_row *catalogue_status_row(enum catalogue_status status);
/* The word of a status. Static. Thread safe. */
const char *catalogue_status_word(enum catalogue_status status);
