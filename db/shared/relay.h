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

/* A follower of a follower, and so on: more are taken for nodes that follow each other. */
#define RELAY_HOPS_MOST 8u

struct relay_head {
    char epoch[SHARED_EPOCH_SIZE];
    uint64_t head;
    int64_t away_ms; /* since when who hands it on has been cut off itself; 0: it is not */
    unsigned hops;   /* between it and PostgreSQL */
};

struct relay_writer {
    int fd;
    uint64_t bytes, whole; /* written; up to the end of the last record that is whole */
    uint64_t records;
    bool failed; /* errno says why */
};
/* The file is written from its start on. */
void relay_begin(struct relay_writer *w, int fd, const char *epoch);
/* For a `tail`: writes what comes. */
struct shared_take relay_take(struct relay_writer *w);
/* Drops what is not whole, and ends it. False: it could not be written. */
bool relay_end(struct relay_writer *w, const struct relay_head *head);

/* Reads all but the bodies. `*last`: the position of the last record, of `from` where there is
 * none, as the file has it. False: it does not have this form; `why` says where. */
bool relay_scan(int fd, uint64_t bytes, const struct shared_position *from, struct relay_head *head,
                struct shared_position *last, char *why, size_t why_size);
/* Hands on the records, which are to go on from `at`. DIVERGED: one does not, or is damaged. */
enum shared_outcome relay_read(int fd, uint64_t bytes, const struct shared_position *at,
                               struct shared_unpacker *unpacker, const struct shared_take *take,
                               char *why, size_t why_size);
