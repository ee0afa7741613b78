/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The log as a node hands it to a follower over HTTP (GET /peer/log), in a file, both ways. Bodies
 * are packed as they are in the log, so that the chain of the one is the chain of the other:
 *
 *     sitemapd-log 1 EPOCH
 *     record SEQ ID SCHEMA REVISION SERIAL AT CHAIN NODE   (any number)
 *     part SIZE                                            (any number, each before its bytes)
 *     end                                                  (of each record)
 *     done HEAD AWAY_MS HOPS
 *
 * Internal to db/shared. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/shared/log.h"
#include "db/shared/record.h"

/* Longest chain of followers: a longer one counts as a loop. */
#define RELAY_HOPS_MOST 8u

struct relay_head {
    char epoch[SHARED_EPOCH_SIZE];
    uint64_t head;
    int64_t away_ms;    /* how long the node that sends the log has been cut off; 0: it is not */
    int64_t refused_ms; /* how long it has not been able to write, although it is not cut off; 0: it
                           can */
    unsigned hops;      /* nodes between it and PostgreSQL */
};

struct relay_writer {
    int fd;
    uint64_t bytes, whole; /* written; up to the end of the last complete record */
    uint64_t records;
    bool failed; /* errno says why */
};
/* The file is written from its start on. */
void relay_begin(struct relay_writer *w, int fd, const char *epoch);
/* Callbacks for `tail` that write the records. */
struct shared_take relay_take(struct relay_writer *w);
/* Drops an incomplete record and writes the end. False: a write failed. */
bool relay_end(struct relay_writer *w, const struct relay_head *head);

/* Checks the file without the bodies. `*last`: the position of the last record, or `from` without
 * one. False: malformed; `why` says where. */
bool relay_scan(int fd, uint64_t bytes, const struct shared_position *from, struct relay_head *head,
                struct shared_position *last, char *why, size_t why_size);
/* Passes on the records, which must continue `at`. DIVERGED: one does not, or is damaged. */
enum shared_outcome relay_read(int fd, uint64_t bytes, const struct shared_position *at,
                               struct shared_unpacker *unpacker, const struct shared_take *take,
                               char *why, size_t why_size);
