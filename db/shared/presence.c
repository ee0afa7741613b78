/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Two threads of a node: one renews its lease and the names that it leads, one takes snapshots and
 * trims the log. */
#include "db/shared/presence.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/file/handle.h"
#include "db/file/schema.h"
#include "db/shared/join.h"
#include "db/shared/log.h"
#include "db/shared/member.h"
#include "server/base/clock.h"
#include "server/base/text.h"
#include "server/base/thread.h"

/* Two threads, since a snapshot may take minutes: one holds names and reports, one takes snapshots
 * and trims the log. Locks of names belong to the first one's connection: a node that is cut off
 * loses them, and notices that at its next query. */

#define TURN_MS          1000
#define REPORT_EACH_MS   10000
#define MAINTAIN_EACH_MS 30000
#define CALL_MS          5000
#define PART_MS          30000
#define SAID_MOST        65536u
#define FAILED_MS        5000 /* until the next try */
#define LEAD_MS          20000 /* a lead is valid for this long: a node that stood still leads nothing */

struct lead {
    struct lead *next;
    bool wanted, held, left;
    char name[];
};

struct known {
    char *name, *release, *state;
    int schema;
    uint64_t applied;
    int64_t silent_ms;
};

struct presence {
    struct catalogue *catalogue;
    char *database, *schema, *release; /* owned; schema: or NULL */
    struct thread reporter, maintainer;

    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t exchanged;
    uint64_t exchanges_asked, exchanges_done;
    struct shared_log *report_log, *maintenance_log;
    struct lead *leads;
    char *said;
    bool has_news; /* `said` is to be reported at once */
    struct known *known;
    size_t known_count;
    int64_t known_at;
    bool asked_there, synchronous;
    int64_t waiting_ms, namesake_since_ms, held_at;
    uint64_t snapshots;
    struct failing {
        int64_t since_ms; /* 0: it does not */
        struct shared_failing is;
    } reporting, snapshotting;
};

/* ---- both threads -------------------------------------------------------------------------- */

/* Opens a handle once epoch and node are known; NULL: not yet. */
static struct shared_log *open_log(struct presence *p, const struct shared_state *state,
                                   struct shared_log **at)
{
    char why[256];
    const struct shared_log_options options = {
        .database = p->database, .schema = p->schema, .epoch = state->epoch, .node = state->node};
    struct shared_log *log = *at;

    if (log != NULL || state->epoch[0] == '\0' || state->node[0] == '\0')
        return log;
    log = member_open_log(&options, why, sizeof why);
    pthread_mutex_lock(&p->lock);
    *at = log;
    pthread_mutex_unlock(&p->lock);
    return log;
}

static void record_success(struct presence *p, struct failing *f)
{
    pthread_mutex_lock(&p->lock);
    f->since_ms = 0;
    pthread_mutex_unlock(&p->lock);
}

/* Records the failure of the last call of `log`, or, without a log, `why`. */
static void record_failure(struct presence *p, struct failing *f, const struct shared_log *log,
                           const char *why)
{
    pthread_mutex_lock(&p->lock);
    if (f->since_ms == 0)
        f->since_ms = clock_now_ms();
    snprintf(f->is.trouble, sizeof f->is.trouble, "%s", log != NULL ? log->calls->gist(log) : why);
    snprintf(f->is.said, sizeof f->is.said, "%s", log != NULL ? log->calls->why(log) : why);
    pthread_mutex_unlock(&p->lock);
}

/* `lock` is held. */
static void fill_failing(const struct failing *f, struct shared_failing *out)
{
    *out = f->is;
    out->ms = f->since_ms != 0 ? clock_now_ms() - f->since_ms + 1 : 0;
}

/* ---- holding ------------------------------------------------------------------------------- */

/* The next name after `after` (NULL: the first) that is wanted or to be given up. Names are freed
 * only with the presence. */
static struct lead *next_lead(struct presence *p, struct lead *after, bool *wanted)
{
    pthread_mutex_lock(&p->lock);
    struct lead *lead = after != NULL ? after->next : p->leads;
    if (lead != NULL)
        *wanted = lead->wanted;
    pthread_mutex_unlock(&p->lock);
    return lead;
}

/* A node that cannot write gives up all names. */
static void hold_names(struct presence *p, struct shared_log *log, bool can_write)
{
    bool wanted = false, away = false;

    for (struct lead *l = NULL; (l = next_lead(p, l, &wanted)) != NULL;) {
        bool held = !away && log->calls->is_held(log, l->name);

        wanted = wanted && can_write;
        if (!wanted && held)
            log->calls->let_go(log, l->name, clock_now_ms() + CALL_MS);
        else if (wanted && !held && !away) {
            enum shared_outcome outcome = log->calls->hold(log, l->name, clock_now_ms() + CALL_MS);
            held = outcome == SHARED_YES;
            away = outcome == SHARED_AWAY;
        }
        pthread_mutex_lock(&p->lock);
        l->held = wanted && held && l->wanted;
        p->held_at = clock_now_ms();
        pthread_mutex_unlock(&p->lock);
    }
}

/* ---- reporting ------------------------------------------------------------------------------- */

static void drop_known(struct known *known, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(known[i].name);
        free(known[i].release);
        free(known[i].state);
    }
    free(known);
}

struct taking {
    struct standing *standing;
    const char *own;
    struct known *known;
    size_t count;
    int same, other;   /* number of nodes whose digest is the same as here, or differs */
    char differs[256]; /* the names of the latter, as many as fit */
};

static bool take_node(void *context, const struct shared_node *node)
{
    struct taking *t = context;
    struct known *grown = reallocarray(t->known, t->count + 1, sizeof *grown);

    if (grown == NULL)
        return false;
    if (strcmp(node->name, t->own) != 0 && node->silent_ms < SHARED_SILENT_MS) {
        int compared = standing_compare_digest(t->standing, node->digest_seq, node->digest);
        t->same += compared > 0;
        if (compared < 0) {
            size_t len = strlen(t->differs);
            snprintf(t->differs + len, sizeof t->differs - len, "%s%s", t->other > 0 ? ", " : "",
                     node->name);
            t->other++;
        }
    }
    t->known = grown;
    grown[t->count] = (struct known){.name = strdup(node->name),
                                     .release = strdup(node->release),
                                     .state = strdup(node->state),
                                     .schema = node->schema,
                                     .applied = node->applied,
                                     .silent_ms = node->silent_ms};
    t->count++;
    return grown[t->count - 1].name != NULL && grown[t->count - 1].release != NULL &&
           grown[t->count - 1].state != NULL;
}

/* False: try again. */
static bool report_and_list(struct presence *p, struct shared_log *log,
                            const struct shared_state *state)
{
    struct shared_overview overview;
    struct taking t = {.standing = member_standing(p->catalogue->member), .own = state->node};
    char *said;

    pthread_mutex_lock(&p->lock);
    said = strdup(p->said != NULL ? p->said : "");
    pthread_mutex_unlock(&p->lock);
    struct shared_node node = {.name = state->node,
                               .release = p->release,
                               .schema = SCHEMA_VERSION,
                               .applied = state->applied,
                               .state = said != NULL ? said : ""};
    standing_digest(t.standing, &node.digest_seq, node.digest);
    enum shared_outcome outcome = log->calls->report(log, &node, clock_now_ms() + CALL_MS);
    if (outcome == SHARED_YES)
        outcome = log->calls->list(log, take_node, &t, clock_now_ms() + CALL_MS);
    bool exchanged = outcome == SHARED_YES;
    if (exchanged) {
        pthread_mutex_lock(&p->lock);
        struct taking old = {.known = p->known, .count = p->known_count};
        p->known = t.known;
        p->known_count = t.count;
        p->known_at = clock_now_ms();
        pthread_mutex_unlock(&p->lock);
        standing_set_differs(t.standing, t.differs);
        if (t.other > 1 && t.same == 0)
            standing_differs(t.standing);
        t = old;
    }
    drop_known(t.known, t.count);
    free(said);
    if (outcome == SHARED_YES)
        outcome = log->calls->overview(log, &overview, clock_now_ms() + CALL_MS);
    if (outcome == SHARED_YES) {
        record_success(p, &p->reporting);
        standing_set_lacks(member_standing(p->catalogue->member), overview.lacks);
    } else if (outcome != SHARED_STOPPED)
        record_failure(p, &p->reporting, log, NULL);
    pthread_mutex_lock(&p->lock);
    if (outcome == SHARED_YES) {
        p->asked_there = true;
        p->synchronous = overview.synchronous;
    }
    p->waiting_ms = outcome == SHARED_YES ? overview.waiting_ms : 0;
    pthread_mutex_unlock(&p->lock);
    return exchanged;
}

/* `*has_news`: the node's state differs from its last report. */
static uint64_t exchanges_asked(struct presence *p, bool *has_news)
{
    pthread_mutex_lock(&p->lock);
    uint64_t asked = p->exchanges_asked;
    *has_news = p->has_news;
    p->has_news = false;
    pthread_mutex_unlock(&p->lock);
    return asked;
}

/* Wakes all callers that asked before this turn began. */
static void record_exchanged(struct presence *p, uint64_t asked)
{
    pthread_mutex_lock(&p->lock);
    p->exchanges_done = asked;
    pthread_cond_broadcast(&p->exchanged);
    pthread_mutex_unlock(&p->lock);
}

/* Detects another node of the same name: a copied file or a copied configuration. */
static void hold_own_name(struct presence *p, struct shared_log *log, const char *node)
{
    char name[SHARED_NODE_SIZE + 8];

    snprintf(name, sizeof name, "node %s", node);
    enum shared_outcome outcome = log->calls->hold(log, name, clock_now_ms() + CALL_MS);
    pthread_mutex_lock(&p->lock);
    if (outcome != SHARED_NO)
        p->namesake_since_ms = 0;
    else if (p->namesake_since_ms == 0)
        p->namesake_since_ms = clock_now_ms();
    pthread_mutex_unlock(&p->lock);
}

static void hold_and_report(void *context)
{
    struct presence *p = context;
    int64_t report_at = 0;
    uint64_t exchanged = 0; /* how many of those that asked */

    do {
        bool has_news;
        uint64_t asked = exchanges_asked(p, &has_news);
        struct shared_state state;
        struct shared_log *log;

        standing_state(member_standing(p->catalogue->member), &state);
        log = open_log(p, &state, &p->report_log);
        if (log == NULL)
            continue;
        if (state.away_ms > 0) /* already reported */
            record_success(p, &p->reporting);
        log->calls->lease(log, SCHEMA_VERSION, clock_now_ms() + CALL_MS);
        /* First, since it shows whether the connection was lost. */
        if (clock_now_ms() >= report_at || asked > exchanged || has_news) {
            bool good = report_and_list(p, log, &state);
            if (good)
                record_exchanged(p, exchanged = asked);
            good = good && state.refused_ms == 0;
            report_at = clock_now_ms() + (good ? REPORT_EACH_MS : FAILED_MS);
        }
        hold_own_name(p, log, state.node);
        hold_names(p, log, state.phase == SHARED_JOINED && !state.upgrade_pending);
    } while (thread_wait(&p->reporter, TURN_MS));
}

/* ---- snapshots ----------------------------------------------------------------------------- */

#define KEPT            2
#define KEPT_WITH_PEERS 1

bool presence_snapshot_is_due(const struct shared_overview *o, bool peers)
{
    uint64_t grown = peers ? o->snapshot.bytes : o->snapshot.bytes / 4;

    return !o->has_snapshot ||
           o->bytes_since_snapshot >=
               (grown > PRESENCE_SNAPSHOT_BYTES ? grown : PRESENCE_SNAPSHOT_BYTES) ||
           (o->snapshot_age_ms >= PRESENCE_SNAPSHOT_AGE_MS &&
            o->head.seq > o->snapshot.position.seq);
}

/* Reads the copy's position in the log from the copy. Not read-only: SQLite would leave its WAL
 * beside the copy. */
static bool read_position(const char *path, struct shared_snapshot *out)
{
    sqlite3 *db = NULL;
    bool shared, found = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE,
                                         NULL) == SQLITE_OK &&
                         schema_version(db, &out->schema, &shared) &&
                         join_position(db, &out->position) == CATALOGUE_OK;

    sqlite3_close(db);
    return found;
}

enum shared_outcome presence_put_snapshot(struct shared_log *log, const char *path, int kept)
{
    struct shared_snapshot snapshot = {0};
    enum shared_outcome outcome = SHARED_NO;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;

    if (size > 0 && read_position(path, &snapshot) && lseek(fd, 0, SEEK_SET) == 0) {
        snapshot.bytes = (uint64_t)size;
        outcome = log->calls->snapshot_put(log, &snapshot, kept, fd, PART_MS);
    }
    if (fd >= 0)
        close(fd);
    return outcome;
}

struct copying {
    struct shared_log *log;
    const struct thread *maintainer;
    int64_t asked_at;
};

/* Keeps the name while a large file is copied. */
static bool record_copied(void *context, uint64_t done, uint64_t total)
{
    struct copying *c = context;
    struct shared_overview ignored;

    (void)done;
    (void)total;
    if (clock_now_ms() - c->asked_at >= REPORT_EACH_MS) {
        c->log->calls->overview(c->log, &ignored, clock_now_ms() + CALL_MS);
        c->asked_at = clock_now_ms();
    }
    return !thread_stops(c->maintainer);
}

/* The copy is beside the file while it is sent. */
static enum shared_outcome take_snapshot(struct presence *p, struct shared_log *log, int kept)
{
    char *copy, why[256] = "";
    struct copying copying = {log, &p->maintainer, clock_now_ms()};

    if (asprintf(&copy, "%s.snapshot", p->catalogue->path) < 0)
        return SHARED_NO_MEMORY;
    unlink(copy); /* left by a process that was killed */
    enum shared_outcome outcome = SHARED_STOPPED;
    if (catalogue_backup(p->catalogue, copy, record_copied, &copying, why, sizeof why) ==
        CATALOGUE_OK) {
        struct shared_overview ignored;

        /* Nothing was asked while the copy was synced, which takes long on a slow disk: the name
         * may be lost. */
        log->calls->overview(log, &ignored, clock_now_ms() + CALL_MS);
        outcome = log->calls->hold(log, SHARED_SNAPSHOT_NAME, clock_now_ms() + CALL_MS);
        if (outcome == SHARED_YES)
            outcome = presence_put_snapshot(log, copy, kept);
        if (outcome == SHARED_YES) {
            pthread_mutex_lock(&p->lock);
            p->snapshots++;
            pthread_mutex_unlock(&p->lock);
        }
    } else if (!thread_stops(&p->maintainer)) {
        record_failure(p, &p->snapshotting, NULL, "this node's file could not be copied");
    }
    unlink(copy);
    free(copy);
    return outcome;
}

struct offering {
    const struct shared_peers *peers;
    const char *own;
    bool is_own, is_another;
};

static void record_offering(void *context, const struct shared_member *member)
{
    struct offering *o = context;

    if (member->silent_ms >= SHARED_SILENT_MS || !o->peers->offers(o->peers->context, member))
        return;
    bool own = strcmp(member->name, o->own) == 0;
    o->is_own |= own;
    o->is_another |= !own;
}

/* Whether this node and another one give their files. */
static bool has_peers(struct presence *p, const char *node)
{
    struct offering o = {p->catalogue->options.shared.peers, node, false, false};

    if (o.peers != NULL)
        presence_members(p, record_offering, &o);
    return o.is_own && o.is_another;
}

/* NO: another node does it. */
static enum shared_outcome maintain(struct presence *p, struct shared_log *log, bool peers)
{
    struct shared_overview overview;
    int kept = peers ? KEPT_WITH_PEERS : KEPT;
    bool more = true;

    enum shared_outcome outcome =
        log->calls->hold(log, SHARED_SNAPSHOT_NAME, clock_now_ms() + CALL_MS);
    if (outcome == SHARED_YES)
        outcome = log->calls->overview(log, &overview, clock_now_ms() + CALL_MS);
    if (outcome == SHARED_YES && presence_snapshot_is_due(&overview, peers))
        outcome = take_snapshot(p, log, kept);
    while (outcome == SHARED_YES && more && thread_wait(&p->maintainer, 0))
        outcome = log->calls->trim(log, kept, &more, clock_now_ms() + CALL_MS);
    return outcome;
}

static void maintain_each(void *context)
{
    struct presence *p = context;

    while (thread_wait(&p->maintainer, MAINTAIN_EACH_MS)) {
        struct shared_state state;
        struct shared_log *log = NULL;
        enum shared_outcome outcome = SHARED_NO;

        standing_state(member_standing(p->catalogue->member), &state);
        if (state.phase == SHARED_JOINED && state.away_ms == 0)
            log = open_log(p, &state, &p->maintenance_log);
        if (log != NULL)
            outcome = maintain(p, log, has_peers(p, state.node));
        if (outcome == SHARED_YES || outcome == SHARED_NO)
            record_success(p, &p->snapshotting);
        else if (outcome != SHARED_STOPPED)
            record_failure(p, &p->snapshotting, log, NULL);
        if (log != NULL)
            log->calls->let_go(log, SHARED_SNAPSHOT_NAME, clock_now_ms() + CALL_MS);
    }
}

/* ---- any thread ---------------------------------------------------------------------------- */

static struct lead *find_lead(struct presence *p, const char *name)
{
    struct lead *lead = p->leads;

    while (lead != NULL && strcmp(lead->name, name) != 0)
        lead = lead->next;
    return lead;
}

/* NULL: no memory. */
static struct lead *know_lead(struct presence *p, const char *name)
{
    struct lead *lead = find_lead(p, name);
    size_t size = strlen(name) + 1;

    if (lead == NULL && (lead = calloc(1, sizeof *lead + size)) != NULL) {
        memcpy(lead->name, name, size);
        lead->next = p->leads;
        p->leads = lead;
    }
    return lead;
}

void presence_lead_leave(struct presence *p, const char *name, bool leaves)
{
    pthread_mutex_lock(&p->lock);
    struct lead *lead = know_lead(p, name);
    if (lead != NULL) {
        lead->left = leaves;
        if (leaves)
            lead->wanted = lead->held = false;
    }
    pthread_mutex_unlock(&p->lock);
}

bool presence_leads(struct presence *p, const char *name)
{
    pthread_mutex_lock(&p->lock);
    struct lead *lead = know_lead(p, name);
    if (lead != NULL && !lead->wanted && !lead->left) {
        lead->wanted = true;
        thread_wake(&p->reporter);
    }
    bool leads = lead != NULL && lead->held && clock_now_ms() - p->held_at < LEAD_MS;
    pthread_mutex_unlock(&p->lock);
    return leads;
}

void presence_lead_end(struct presence *p, const char *name)
{
    pthread_mutex_lock(&p->lock);
    struct lead *lead = find_lead(p, name);
    if (lead != NULL)
        lead->wanted = lead->held = false;
    pthread_mutex_unlock(&p->lock);
}

void presence_say(struct presence *p, const char *state)
{
    char *copy = strlen(state) < SAID_MOST ? strdup(state) : NULL;

    if (copy == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    bool is_news = p->said == NULL || strcmp(p->said, copy) != 0;
    free(p->said);
    p->said = copy;
    p->has_news |= is_news;
    if (is_news)
        thread_wake(&p->reporter);
    pthread_mutex_unlock(&p->lock);
}

bool presence_exchange(struct presence *p, int64_t timeout_ms)
{
    struct timespec until = clock_after_ms(timeout_ms);
    int rc = 0;

    pthread_mutex_lock(&p->lock);
    uint64_t turn = ++p->exchanges_asked;
    thread_wake(&p->reporter);
    while (!thread_stops(&p->reporter) && p->exchanges_done < turn && rc != ETIMEDOUT)
        rc = pthread_cond_clockwait(&p->exchanged, &p->lock, CLOCK_MONOTONIC, &until);
    bool done = p->exchanges_done >= turn;
    pthread_mutex_unlock(&p->lock);
    return done;
}

void presence_members(struct presence *p, shared_member_each *each, void *context)
{
    pthread_mutex_lock(&p->lock);
    int64_t since = clock_now_ms() - p->known_at;
    for (size_t i = 0; i < p->known_count; i++) {
        const struct known *k = &p->known[i];
        const struct shared_member member = {k->name,    k->release,           k->schema,
                                             k->applied, k->silent_ms + since, k->state};
        each(context, &member);
    }
    pthread_mutex_unlock(&p->lock);
}

void presence_fill(struct presence *p, struct shared_state *out)
{
    pthread_mutex_lock(&p->lock);
    out->asked = p->asked_there;
    out->synchronous = p->synchronous;
    out->waiting_ms = p->waiting_ms;
    out->namesake_ms = p->namesake_since_ms != 0 ? clock_now_ms() - p->namesake_since_ms + 1 : 0;
    out->snapshots = p->snapshots;
    fill_failing(&p->reporting, &out->report);
    fill_failing(&p->snapshotting, &out->snapshot);
    pthread_mutex_unlock(&p->lock);
}

/* ---- beginning and end --------------------------------------------------------------------- */

struct presence *presence_start(struct catalogue *c)
{
    struct presence *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    const struct catalogue_shared *shared = &c->options.shared;
    p->catalogue = c;
    bool failed = false;
    p->database = text_copy(shared->database, &failed);
    p->schema = text_copy(shared->schema, &failed);
    p->release = text_copy(shared->release != NULL ? shared->release : "", &failed);
    if (failed) {
        free(p->database);
        free(p->schema);
        free(p->release);
        free(p);
        return NULL;
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->exchanged, NULL);
    if (thread_start(&p->reporter, "presence", hold_and_report, p) &&
        thread_start(&p->maintainer, "snapshots", maintain_each, p))
        return p;
    presence_stop(p);
    presence_free(p);
    return NULL;
}

void presence_stop(struct presence *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    thread_end(&p->reporter);
    thread_end(&p->maintainer);
    pthread_cond_broadcast(&p->exchanged);
    if (p->report_log != NULL)
        p->report_log->calls->interrupt(p->report_log);
    if (p->maintenance_log != NULL)
        p->maintenance_log->calls->interrupt(p->maintenance_log);
    pthread_mutex_unlock(&p->lock);
    thread_join(&p->reporter);
    thread_join(&p->maintainer);
}

void presence_free(struct presence *p)
{
    if (p == NULL)
        return;
    if (p->report_log != NULL)
        p->report_log->calls->free(p->report_log);
    if (p->maintenance_log != NULL)
        p->maintenance_log->calls->free(p->maintenance_log);
    while (p->leads != NULL) {
        struct lead *lead = p->leads;
        p->leads = lead->next;
        free(lead);
    }
    drop_known(p->known, p->known_count);
    free(p->said);
    free(p->database);
    free(p->schema);
    free(p->release);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->exchanged);
    free(p);
}
