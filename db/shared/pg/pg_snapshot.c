/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Snapshots: a catalogue's file, packed, in parts that are committed one by one, so that no
 * transaction lasts as long as a slow upload. The row in `snapshot` comes last and makes it valid;
 * parts without one are left by interrupted uploads. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "db/shared/pg/pg_log.h"
#include "server/base/clock.h"

#define READ_BYTES  ((size_t)64 * 1024)
#define CLEAN_PARTS 64  /* parts that one statement drops */
#define TRIM_ROWS   200 /* rows of the log that one statement drops */
/* Most bytes of the last day's log: otherwise constant writes would fill the disk that all writes
 * need. */
#define LOG_BYTES (INT64_C(1) << 30)

enum { SEQ, CHAIN, SCHEMA, BYTES, PARTS, SHA };

struct upload {
    struct pg_log *l;
    uint64_t seq;
    int64_t parts;
    int64_t part_timeout_ms;
};

/* One statement, a transaction of its own. */
static enum shared_outcome ask(struct pg_log *l, enum pg_statement statement,
                               const struct sql_value *values, struct pg_results *out,
                               int64_t timeout_ms)
{
    enum shared_outcome outcome = pg_session_connect(&l->session, clock_now_ms() + timeout_ms);

    if (outcome != SHARED_YES) {
        if (out != NULL)
            *out = (struct pg_results){{NULL}};
        return outcome;
    }
    pg_send_values(&l->session, statement, values);
    outcome = pg_log_run(l, out, clock_now_ms() + timeout_ms);
    return outcome == SHARED_NO ? SHARED_AWAY : outcome;
}

/* A bounded number at a time, so that no statement takes long. */
static enum shared_outcome clean_parts(struct pg_log *l, int64_t timeout_ms)
{
    enum shared_outcome outcome;
    long dropped;

    do {
        struct pg_results r;

        outcome = ask(l, PG_SNAPSHOT_CLEAN, SQL_VALUES(CLEAN_PARTS), &r, timeout_ms);
        dropped = outcome == SHARED_YES ? strtol(PQcmdTuples(r.at[0]), NULL, 10) : 0;
        pg_results_clear(&r);
    } while (dropped == CLEAN_PARTS);
    return outcome;
}

static enum shared_outcome put_part(void *context, const void *part, size_t size)
{
    struct upload *u = context;
    int64_t no = u->parts++;

    return ask(u->l, PG_SNAPSHOT_PART_ADD, SQL_VALUES(u->seq, no, sql_bytes(part, size)), NULL,
               u->part_timeout_ms);
}

static enum shared_outcome upload_file(struct upload *u, struct shared_packer *packer, int fd)
{
    uint8_t buffer[READ_BYTES];
    enum shared_outcome outcome = SHARED_YES;
    const void *rest;
    size_t size;
    off_t at = 0;
    ssize_t n;

    while (outcome == SHARED_YES && (n = pread(fd, buffer, sizeof buffer, at)) != 0) {
        if (n < 0)
            return pg_log_said(u->l, SHARED_STOPPED, strerror(errno));
        outcome = shared_packer_add(packer, buffer, (size_t)n, put_part, u);
        at += n;
    }
    if (outcome == SHARED_YES)
        outcome = shared_packer_end(packer, put_part, u, &rest, &size);
    return outcome == SHARED_YES ? put_part(u, rest, size) : outcome;
}

static enum shared_outcome finish_upload(struct upload *u, struct shared_packer *packer,
                                         const struct shared_snapshot *snapshot)
{
    uint8_t hash[SHARED_CHAIN_BYTES];
    struct pg_results r;

    shared_packer_hash(packer, hash);
    const struct sql_value *values =
        SQL_VALUES(u->seq, sql_bytes(snapshot->position.chain, SHARED_CHAIN_BYTES),
                   snapshot->schema, snapshot->bytes, u->parts, sql_bytes(hash, sizeof hash));
    enum shared_outcome outcome = ask(u->l, PG_SNAPSHOT_ADD, values, &r, u->part_timeout_ms);

    if (outcome == SHARED_YES && strcmp(PQcmdTuples(r.at[0]), "1") != 0)
        outcome = pg_log_said(u->l, SHARED_DIVERGED, "the log does not have this record");
    pg_results_clear(&r);
    return outcome;
}

/* Whether the newest snapshot has this record. */
static enum shared_outcome is_there(struct pg_log *l, uint64_t seq, bool *out, int64_t timeout_ms)
{
    struct pg_results r;
    enum shared_outcome outcome = ask(l, PG_SNAPSHOT_LAST, SQL_VALUES(), &r, timeout_ms);

    *out = outcome == SHARED_YES && PQntuples(r.at[0]) == 1 &&
           (uint64_t)pg_get_integer(r.at[0], 0, SEQ) >= seq;
    pg_results_clear(&r);
    return outcome;
}

enum shared_outcome pg_log_snapshot_put(struct shared_log *log,
                                        const struct shared_snapshot *snapshot, int kept, int fd,
                                        int64_t part_timeout_ms)
{
    struct pg_log *l = pg_log_of(log);
    struct upload upload = {
        .l = l, .seq = snapshot->position.seq, .part_timeout_ms = part_timeout_ms};
    struct shared_packer *packer = shared_packer_new();
    bool there = false;

    if (packer == NULL)
        return SHARED_NO_MEMORY;
    enum shared_outcome outcome = is_there(l, upload.seq, &there, part_timeout_ms);

    if (outcome == SHARED_YES && !there) {
        outcome = ask(l, PG_SNAPSHOT_BROKEN, SQL_VALUES(), NULL, part_timeout_ms);
        if (outcome == SHARED_YES)
            outcome = clean_parts(l, part_timeout_ms);
        if (outcome == SHARED_YES)
            outcome = upload_file(&upload, packer, fd);
        if (outcome == SHARED_YES)
            outcome = finish_upload(&upload, packer, snapshot);
        if (outcome == SHARED_YES)
            outcome = ask(l, PG_SNAPSHOT_OLD, SQL_VALUES(kept - 1), NULL, part_timeout_ms);
        if (outcome == SHARED_YES)
            outcome = clean_parts(l, part_timeout_ms);
    }
    shared_packer_free(packer);
    return outcome;
}

struct download {
    int fd;
    off_t at;
    int error;
};

static bool write_bytes(void *context, const void *bytes, size_t size)
{
    struct download *d = context;

    while (size > 0) {
        ssize_t n = pwrite(d->fd, bytes, size, d->at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            d->error = n < 0 ? errno : ENOSPC;
            return false;
        }
        bytes = (const char *)bytes + n;
        d->at += n;
        size -= (size_t)n;
    }
    return true;
}

static enum shared_outcome download_part(struct pg_log *l, struct download *d, uint64_t seq,
                                         int64_t no, int64_t timeout_ms)
{
    struct pg_results r;
    size_t size;
    enum shared_outcome outcome = ask(l, PG_SNAPSHOT_PART, SQL_VALUES(seq, no), &r, timeout_ms);

    if (outcome == SHARED_YES && PQntuples(r.at[0]) != 1)
        outcome = pg_log_said(l, SHARED_AWAY, "a newer snapshot replaced it");
    if (outcome == SHARED_YES) {
        const void *body = pg_get_bytes(r.at[0], 0, 0, &size);

        outcome = shared_unpacker_add(l->unpacker, body, size, write_bytes, d);
        if (outcome == SHARED_STOPPED)
            pg_log_said(l, outcome, strerror(d->error));
    }
    pg_results_clear(&r);
    return outcome;
}

static enum shared_outcome download_file(struct pg_log *l, const PGresult *last, int fd,
                                         struct shared_snapshot *snapshot, int64_t timeout_ms)
{
    struct download download = {.fd = fd};
    uint8_t hash[SHARED_CHAIN_BYTES];
    size_t chain_size, sha_size;
    const void *chain = pg_get_bytes(last, 0, CHAIN, &chain_size);
    const void *sha = pg_get_bytes(last, 0, SHA, &sha_size);
    struct shared_snapshot found = {
        .position.seq = (uint64_t)pg_get_integer(last, 0, SEQ),
        .schema = (int)pg_get_integer(last, 0, SCHEMA),
        .bytes = (uint64_t)pg_get_integer(last, 0, BYTES),
    };
    int64_t parts = pg_get_integer(last, 0, PARTS);
    enum shared_outcome outcome = SHARED_YES;

    if (l->unpacker == NULL && (l->unpacker = shared_unpacker_new()) == NULL)
        return SHARED_NO_MEMORY;
    shared_unpacker_begin(l->unpacker);
    for (int64_t no = 0; no < parts && outcome == SHARED_YES; no++)
        outcome = download_part(l, &download, found.position.seq, no, timeout_ms);
    if (outcome == SHARED_YES)
        outcome = shared_unpacker_end(l->unpacker, hash);
    if (outcome == SHARED_YES &&
        (chain_size != SHARED_CHAIN_BYTES || sha_size != sizeof hash ||
         memcmp(sha, hash, sizeof hash) != 0 || (uint64_t)download.at != found.bytes))
        outcome = SHARED_DIVERGED;
    if (outcome == SHARED_DIVERGED)
        pg_log_said(l, outcome, "the snapshot is corrupt");
    if (outcome != SHARED_YES)
        return outcome;
    memcpy(found.position.chain, chain, chain_size);
    *snapshot = found;
    return ftruncate(fd, download.at) == 0 ? SHARED_YES
                                           : pg_log_said(l, SHARED_STOPPED, strerror(errno));
}

enum shared_outcome pg_log_snapshot_get(struct shared_log *log, int fd,
                                        struct shared_snapshot *snapshot, int64_t part_timeout_ms)
{
    struct pg_log *l = pg_log_of(log);
    struct pg_results r;

    enum shared_outcome outcome = ask(l, PG_SNAPSHOT_LAST, SQL_VALUES(), &r, part_timeout_ms);

    if (outcome == SHARED_YES)
        outcome = PQntuples(r.at[0]) == 1 ? download_file(l, r.at[0], fd, snapshot, part_timeout_ms)
                                          : pg_log_said(l, SHARED_NO, "there is no snapshot yet");
    pg_results_clear(&r);
    return outcome;
}

enum shared_outcome pg_log_trim(struct shared_log *log, int kept, bool *more, int64_t deadline_ms)
{
    struct pg_log *l = pg_log_of(log);
    struct pg_results r;

    enum shared_outcome outcome = ask(l, PG_TRIM, SQL_VALUES(TRIM_ROWS, LOG_BYTES, kept - 1), &r,
                                      deadline_ms - clock_now_ms());

    if (outcome == SHARED_YES)
        *more = strtol(PQcmdTuples(r.at[0]), NULL, 10) >= TRIM_ROWS;
    pg_results_clear(&r);
    if (outcome == SHARED_YES && !*more)
        outcome = ask(l, PG_NODES_FORGET, SQL_VALUES(), NULL, deadline_ms - clock_now_ms());
    return outcome;
}
