/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The shared log in memory, with faults on demand. One cluster for all handles of the process; its
 * lock is held from `begin` to `commit` or `rollback`, as PostgreSQL's is. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db/shared/log.h"
#include "server/base/clock.h"
#include "server/base/str.h"

#define MEMORY_RECORDS 20000

enum memory_fault {
    MEMORY_GOOD,
    MEMORY_NO,          /* the commit is rejected */
    MEMORY_LOST,        /* the commit's outcome is unknown; it was not applied */
    MEMORY_UNKNOWN,     /* the commit's outcome is unknown; it was applied */
    MEMORY_NEVER_KNOWN, /* the same, and it cannot be found out in time */
    MEMORY_BROKEN,      /* the connection breaks during a write, which loses the lock */
    MEMORY_AWAY,        /* nothing can be reached */
    MEMORY_NO_TAIL,     /* newer records cannot be read, snapshots can */
    MEMORY_NO_BEGIN,    /* no write begins, by a fault of this node alone */
};

struct memory_record {
    struct shared_record record;
    struct str body;
};

struct memory_cluster {
    pthread_mutex_t lock; /* guards all */
    pthread_cond_t told;
    struct memory_record *records;
    uint64_t first, count; /* record `first` is the oldest that is kept */
    struct memory_handle *writer;
    atomic_bool older_are_there;
    char *snapshot;
    size_t snapshot_len;
    struct shared_snapshot snapshot_is;
    /* By node, see memory_fault_of. */
    struct {
        char node[SHARED_NODE_SIZE];
        enum memory_fault fault;
    } faults[8];
    struct {
        char name[64];
        struct memory_handle *by; /* NULL: nobody holds it */
    } names[16];
    /* Called with the record there and not here yet. */
    void (*between)(void *context, const char *node);
    void (*before)(void *context, const char *node, bool is_list); /* the lock is asked for */
    void *context;
    _Atomic unsigned passed;
    _Atomic int64_t unix_ms; /* what its clock says; 0: it has none */
};

static struct memory_cluster memory = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                       .told = PTHREAD_COND_INITIALIZER};

struct memory_handle {
    struct shared_log log; /* first */
    char node[SHARED_NODE_SIZE];
    struct str body;
    bool stops;
};

static inline struct memory_handle *memory_of(struct shared_log *log)
{
    return (struct memory_handle *)log;
}

/* ---- for tests */

static inline void memory_clear(void)
{
    for (uint64_t i = 0; i < memory.count; i++)
        str_done(&memory.records[i].body);
    free(memory.records);
    free(memory.snapshot);
    memory.snapshot = NULL;
    memory.first = 0;
    memory.count = 1;
    memory.older_are_there = false;
    memory.between = NULL;
    memory.unix_ms = 0;
    memory.before = NULL;
    memset(memory.names, 0, sizeof memory.names);
    memset(memory.faults, 0, sizeof memory.faults);
    memory.records = calloc(MEMORY_RECORDS, sizeof *memory.records);
}

static inline void memory_fault(const char *node, enum memory_fault fault)
{
    pthread_mutex_lock(&memory.lock);
    int i = 0;
    while (memory.faults[i].node[0] != '\0' && strcmp(memory.faults[i].node, node) != 0)
        i++;
    snprintf(memory.faults[i].node, SHARED_NODE_SIZE, "%s", node);
    memory.faults[i].fault = fault;
    pthread_mutex_unlock(&memory.lock);
}

static inline void memory_before(void (*before)(void *context, const char *node, bool is_list),
                                 void *context)
{
    pthread_mutex_lock(&memory.lock);
    memory.before = before;
    memory.context = context;
    pthread_mutex_unlock(&memory.lock);
}

/* The lock is held. Faults of a commit happen once. */
static inline enum memory_fault memory_take_fault(const struct memory_handle *h, bool commits)
{
    for (int i = 0; i < 8; i++) {
        if (strcmp(memory.faults[i].node, h->node) != 0)
            continue;
        enum memory_fault fault = memory.faults[i].fault;
        if (fault == MEMORY_AWAY || fault == MEMORY_NO_TAIL || fault == MEMORY_NO_BEGIN)
            return fault;
        if (!commits)
            return MEMORY_GOOD;
        memory.faults[i].fault = fault == MEMORY_NEVER_KNOWN ? fault : MEMORY_GOOD;
        return fault;
    }
    return MEMORY_GOOD;
}

static inline bool memory_is_away(struct memory_handle *h)
{
    pthread_mutex_lock(&memory.lock);
    bool away = memory_take_fault(h, false) == MEMORY_AWAY;
    pthread_mutex_unlock(&memory.lock);
    return away;
}

static inline bool memory_breaks(struct memory_handle *h)
{
    bool breaks = false;
    pthread_mutex_lock(&memory.lock);
    for (int i = 0; i < 8 && !breaks; i++) {
        breaks =
            memory.faults[i].fault == MEMORY_BROKEN && strcmp(memory.faults[i].node, h->node) == 0;
        if (breaks)
            memory.faults[i].fault = MEMORY_GOOD;
    }
    pthread_mutex_unlock(&memory.lock);
    return breaks;
}

static inline void memory_chain(uint8_t out[SHARED_CHAIN_BYTES], const uint8_t *before,
                                const char *id, const struct str *body)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < SHARED_CHAIN_BYTES; i++)
        h = (h ^ before[i]) * 1099511628211u;
    for (size_t i = 0; id[i] != '\0'; i++)
        h = (h ^ (uint8_t)id[i]) * 1099511628211u;
    for (size_t i = 0; i < body->len; i++)
        h = (h ^ (uint8_t)body->data[i]) * 1099511628211u;
    memset(out, 0, SHARED_CHAIN_BYTES);
    memcpy(out, &h, sizeof h);
}

/* As after a failover that lost the newest records. */
static inline void memory_lose(uint64_t records)
{
    pthread_mutex_lock(&memory.lock);
    for (; records > 0; records--)
        str_done(&memory.records[--memory.count].body);
    pthread_mutex_unlock(&memory.lock);
}

/* ---- the calls */

static inline void memory_rollback(struct shared_log *log)
{
    struct memory_handle *h = memory_of(log);
    pthread_mutex_lock(&memory.lock);
    if (memory.writer == h)
        memory.writer = NULL;
    pthread_cond_broadcast(&memory.told);
    pthread_mutex_unlock(&memory.lock);
    str_clear(&h->body);
}

static inline void memory_free(struct shared_log *log)
{
    if (!log)
        return;
    memory_rollback(log);
    pthread_mutex_lock(&memory.lock);
    for (int i = 0; i < 16; i++)
        if (memory.names[i].by == memory_of(log))
            memory.names[i].by = NULL;
    pthread_mutex_unlock(&memory.lock);
    str_done(&memory_of(log)->body);
    free(log);
}

static inline const char *memory_why(const struct shared_log *log)
{
    (void)log;
    return "as the test wants";
}

static inline void memory_interrupt(struct shared_log *log)
{
    pthread_mutex_lock(&memory.lock);
    memory_of(log)->stops = true;
    pthread_cond_broadcast(&memory.told);
    pthread_mutex_unlock(&memory.lock);
}

/* Bodies come in pieces of odd sizes. */
static inline bool memory_report(const struct shared_take *take, const struct memory_record *r)
{
    if (!take->begin(take->context, &r->record))
        return false;
    for (size_t at = 0, piece = 1; at < r->body.len; at += piece, piece = piece * 3 % 50000 + 7) {
        size_t left = r->body.len - at;
        if (!take->bytes(take->context, r->body.data + at, left < piece ? left : piece))
            return false;
    }
    return take->end(take->context, &r->record);
}

static inline enum shared_outcome memory_check(const struct shared_position *at)
{
    if (at->seq < memory.first)
        return SHARED_TRIMMED;
    if (at->seq >= memory.count ||
        memcmp(memory.records[at->seq].record.position.chain, at->chain, SHARED_CHAIN_BYTES) != 0)
        return SHARED_DIVERGED;
    return SHARED_YES;
}

/* Records are never changed once they are there: those before `count` are read without the lock,
 * since memory_lose comes between two steps of a test. */
static inline enum shared_outcome memory_send(const struct shared_position *at, uint64_t count,
                                              uint64_t max_bytes, const struct shared_take *take)
{
    uint64_t sent = 0;
    for (uint64_t seq = at->seq + 1; seq < count; seq++) {
        if (sent > max_bytes)
            return SHARED_YES;
        sent += memory.records[seq].body.len;
        if (!memory_report(take, &memory.records[seq]))
            return SHARED_STOPPED;
    }
    return SHARED_YES;
}

static inline enum shared_outcome memory_tail(struct shared_log *log,
                                              const struct shared_position *at, uint64_t max_bytes,
                                              const struct shared_take *take, uint64_t *head,
                                              int64_t deadline_ms)
{
    (void)deadline_ms;
    pthread_mutex_lock(&memory.lock);
    bool away = memory_take_fault(memory_of(log), false) != MEMORY_GOOD;
    enum shared_outcome outcome = away ? SHARED_AWAY : memory_check(at);
    uint64_t count = memory.count;
    pthread_mutex_unlock(&memory.lock);
    *head = count - 1;
    return outcome == SHARED_YES ? memory_send(at, count, max_bytes, take) : outcome;
}

static inline enum shared_outcome memory_begin(struct shared_log *log,
                                               const struct shared_position *at, uint64_t max_bytes,
                                               int site_group, const struct shared_take *take,
                                               int64_t deadline_ms)
{
    struct memory_handle *h = memory_of(log);
    struct timespec until = clock_after_ms(deadline_ms - clock_now_ms());
    int rc = 0;
    pthread_mutex_lock(&memory.lock);
    void (*before)(void *, const char *, bool) = memory.before;
    void *context = memory.context;
    pthread_mutex_unlock(&memory.lock);
    if (before)
        before(context, h->node, site_group != NO_SITE_GROUP);
    pthread_mutex_lock(&memory.lock);
    enum memory_fault fault = memory_take_fault(h, false);
    if (fault == MEMORY_AWAY || fault == MEMORY_NO_BEGIN) {
        pthread_mutex_unlock(&memory.lock);
        return fault == MEMORY_AWAY ? SHARED_AWAY : SHARED_NO_MEMORY;
    }
    while (memory.writer && rc == 0 && site_group == NO_SITE_GROUP)
        rc = pthread_cond_clockwait(&memory.told, &memory.lock, CLOCK_MONOTONIC, &until);
    enum shared_outcome outcome = memory.writer ? SHARED_BUSY : memory_check(at);
    if (outcome == SHARED_YES)
        memory.writer = h;
    uint64_t count = memory.count, newer = 0;
    for (uint64_t seq = at->seq + 1; outcome == SHARED_YES && seq < count; seq++)
        newer += memory.records[seq].body.len;
    pthread_mutex_unlock(&memory.lock);
    str_clear(&h->body);
    if (outcome == SHARED_YES && newer > max_bytes)
        outcome = SHARED_BEHIND;
    if (outcome == SHARED_YES)
        outcome = memory_send(at, count, max_bytes, take);
    if (outcome != SHARED_YES)
        memory_rollback(log);
    return outcome;
}

static inline bool memory_pass(struct shared_log *log, bool waits, int64_t deadline_ms)
{
    (void)log;
    (void)waits;
    (void)deadline_ms;
    memory.passed++;
    return false;
}

static inline enum shared_outcome memory_add(struct shared_log *log, const void *bytes, size_t size,
                                             int64_t deadline_ms)
{
    struct memory_handle *h = memory_of(log);
    (void)deadline_ms;
    if (memory_is_away(h) || memory_breaks(h))
        return SHARED_AWAY;
    str_append(&h->body, bytes, size);
    return h->body.failed ? SHARED_NO_MEMORY : SHARED_YES;
}

static inline enum shared_outcome memory_keep(struct shared_log *log, int64_t deadline_ms)
{
    (void)log;
    (void)deadline_ms;
    return SHARED_YES;
}

static inline int64_t memory_awaited_ms(const struct shared_log *log)
{
    (void)log;
    return 0;
}

static inline int64_t memory_unix_ms(const struct shared_log *log)
{
    (void)log;
    return memory.unix_ms;
}

static inline enum shared_outcome memory_older(struct shared_log *log, int schema,
                                               int64_t deadline_ms)
{
    (void)log;
    (void)schema;
    (void)deadline_ms;
    return memory.older_are_there ? SHARED_NO : SHARED_YES;
}

/* The lock is held. */
static inline void memory_append(struct memory_handle *h, struct shared_record *record)
{
    struct memory_record *r = &memory.records[memory.count];
    if (memory.count == MEMORY_RECORDS)
        abort();
    record->position.seq = memory.count;
    memory_chain(record->position.chain, memory.records[memory.count - 1].record.position.chain,
                 record->id, &h->body);
    r->record = *record;
    str_append(&r->body, h->body.data, h->body.len);
    memory.count++;
}

static inline enum shared_outcome memory_commit(struct shared_log *log,
                                                struct shared_record *record, int64_t deadline_ms)
{
    struct memory_handle *h = memory_of(log);
    (void)deadline_ms;
    pthread_mutex_lock(&memory.lock);
    enum memory_fault fault = memory_take_fault(h, true);
    bool there = fault == MEMORY_GOOD || fault == MEMORY_UNKNOWN || fault == MEMORY_NEVER_KNOWN;
    if (there && memory.writer != h)
        abort(); /* committed without the lock */
    if (there)
        memory_append(h, record);
    void (*between)(void *, const char *) = memory.between;
    void *context = memory.context;
    pthread_mutex_unlock(&memory.lock);
    if (fault == MEMORY_GOOD && between)
        between(context, h->node);
    memory_rollback(log);
    return fault == MEMORY_GOOD ? SHARED_YES : fault == MEMORY_NO ? SHARED_NO : SHARED_UNKNOWN;
}

static inline enum shared_outcome memory_confirm(struct shared_log *log, int64_t deadline_ms)
{
    (void)deadline_ms;
    pthread_mutex_lock(&memory.lock);
    enum memory_fault fault = memory_take_fault(memory_of(log), true);
    pthread_mutex_unlock(&memory.lock);
    memory_rollback(log);
    return fault == MEMORY_GOOD ? SHARED_YES : fault == MEMORY_NO ? SHARED_NO : SHARED_UNKNOWN;
}

static inline enum shared_outcome memory_settle(struct shared_log *log, const char *id,
                                                int64_t deadline_ms)
{
    enum shared_outcome outcome = SHARED_NO;
    (void)deadline_ms;
    pthread_mutex_lock(&memory.lock);
    enum memory_fault fault = memory_take_fault(memory_of(log), true);
    for (uint64_t i = 0; i < memory.count; i++)
        if (strcmp(memory.records[i].record.id, id) == 0)
            outcome = SHARED_YES;
    if (fault == MEMORY_NEVER_KNOWN || fault == MEMORY_AWAY)
        outcome = SHARED_UNKNOWN;
    pthread_mutex_unlock(&memory.lock);
    return outcome;
}

static inline enum shared_outcome memory_wait(struct shared_log *log, int64_t deadline_ms)
{
    struct memory_handle *h = memory_of(log);
    struct timespec until = clock_after_ms(deadline_ms - clock_now_ms());
    pthread_mutex_lock(&memory.lock);
    if (!h->stops)
        pthread_cond_clockwait(&memory.told, &memory.lock, CLOCK_MONOTONIC, &until);
    bool stops = h->stops, away = memory_take_fault(h, false) == MEMORY_AWAY;
    pthread_mutex_unlock(&memory.lock);
    return stops ? SHARED_STOPPED : away ? SHARED_AWAY : SHARED_YES;
}

static inline enum shared_outcome memory_snapshot_put(struct shared_log *log,
                                                      const struct shared_snapshot *snapshot,
                                                      int kept, int fd, int64_t part_timeout_ms)
{
    struct stat st;
    (void)log;
    (void)kept;
    (void)part_timeout_ms;
    if (fstat(fd, &st) != 0)
        return SHARED_NO;
    char *bytes = malloc((size_t)st.st_size);
    if (!bytes || pread(fd, bytes, (size_t)st.st_size, 0) != st.st_size)
        abort();
    pthread_mutex_lock(&memory.lock);
    free(memory.snapshot);
    memory.snapshot = bytes;
    memory.snapshot_len = (size_t)st.st_size;
    memory.snapshot_is = *snapshot;
    pthread_mutex_unlock(&memory.lock);
    return SHARED_YES;
}

static inline enum shared_outcome memory_snapshot_get(struct shared_log *log, int fd,
                                                      struct shared_snapshot *snapshot,
                                                      int64_t part_timeout_ms)
{
    (void)part_timeout_ms;
    if (memory_is_away(memory_of(log)))
        return SHARED_AWAY;
    pthread_mutex_lock(&memory.lock);
    enum shared_outcome outcome = memory.snapshot ? SHARED_YES : SHARED_NO;
    *snapshot = memory.snapshot_is;
    if (outcome == SHARED_YES &&
        write(fd, memory.snapshot, memory.snapshot_len) != (ssize_t)memory.snapshot_len)
        abort();
    pthread_mutex_unlock(&memory.lock);
    return outcome;
}

/* ---- presence */

static inline int memory_name(const char *name)
{
    int i = 0;
    while (memory.names[i].name[0] != '\0' && strcmp(memory.names[i].name, name) != 0)
        i++;
    snprintf(memory.names[i].name, sizeof memory.names[i].name, "%s", name);
    return i;
}

static inline enum shared_outcome memory_hold(struct shared_log *log, const char *name,
                                              int64_t deadline_ms)
{
    (void)deadline_ms;
    pthread_mutex_lock(&memory.lock);
    int i = memory_name(name);
    if (!memory.names[i].by)
        memory.names[i].by = memory_of(log);
    bool held = memory.names[i].by == memory_of(log);
    pthread_mutex_unlock(&memory.lock);
    return held ? SHARED_YES : SHARED_NO;
}

static inline bool memory_is_held(const struct shared_log *log, const char *name)
{
    pthread_mutex_lock(&memory.lock);
    const struct memory_handle *by = memory.names[memory_name(name)].by;
    bool held = by && &by->log == log;
    pthread_mutex_unlock(&memory.lock);
    return held;
}

static inline void memory_let_go(struct shared_log *log, const char *name, int64_t deadline_ms)
{
    (void)deadline_ms;
    pthread_mutex_lock(&memory.lock);
    int i = memory_name(name);
    if (memory.names[i].by == memory_of(log))
        memory.names[i].by = NULL;
    pthread_mutex_unlock(&memory.lock);
}

static inline enum shared_outcome memory_lease(struct shared_log *log, int schema,
                                               int64_t deadline_ms)
{
    (void)log;
    (void)schema;
    (void)deadline_ms;
    return SHARED_YES;
}

static inline enum shared_outcome memory_say(struct shared_log *log, const struct shared_node *node,
                                             int64_t deadline_ms)
{
    (void)log;
    (void)node;
    (void)deadline_ms;
    return SHARED_YES;
}

static inline enum shared_outcome
memory_list(struct shared_log *log, bool (*take)(void *context, const struct shared_node *node),
            void *context, int64_t deadline_ms)
{
    (void)log;
    (void)take;
    (void)context;
    (void)deadline_ms;
    return SHARED_YES;
}

/* Snapshots are the test's to make. */
static inline enum shared_outcome memory_overview(struct shared_log *log,
                                                  struct shared_overview *out, int64_t deadline_ms)
{
    (void)log;
    (void)deadline_ms;
    *out = (struct shared_overview){.has_snapshot = true};
    return SHARED_YES;
}

static inline enum shared_outcome memory_trim(struct shared_log *log, int kept, bool *more,
                                              int64_t deadline_ms)
{
    (void)log;
    (void)kept;
    (void)deadline_ms;
    *more = false;
    return SHARED_YES;
}

static const struct shared_log_calls memory_calls = {
    .free = memory_free,
    .why = memory_why,
    .gist = memory_why,
    .interrupt = memory_interrupt,
    .begin = memory_begin,
    .pass = memory_pass,
    .add = memory_add,
    .keep = memory_keep,
    .awaited_ms = memory_awaited_ms,
    .unix_ms = memory_unix_ms,
    .older_are_gone = memory_older,
    .commit = memory_commit,
    .confirm = memory_confirm,
    .rollback = memory_rollback,
    .settle = memory_settle,
    .tail = memory_tail,
    .wait = memory_wait,
    .snapshot_put = memory_snapshot_put,
    .snapshot_get = memory_snapshot_get,
    .trim = memory_trim,
    .hold = memory_hold,
    .is_held = memory_is_held,
    .let_go = memory_let_go,
    .lease = memory_lease,
    .report = memory_say,
    .list = memory_list,
    .overview = memory_overview,
};

static inline struct shared_log *memory_open(const struct shared_log_options *options, char *why,
                                             size_t why_size)
{
    struct memory_handle *h = calloc(1, sizeof *h);
    (void)why;
    (void)why_size;
    if (!h)
        return NULL;
    h->log.calls = &memory_calls;
    snprintf(h->node, sizeof h->node, "%s", options->node);
    return &h->log;
}
