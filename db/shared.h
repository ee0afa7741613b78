/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A catalogue that several machines share: the interface. Part of db/catalogue.h; the
 * implementation is in db/shared/. Each node keeps the whole catalogue in a file of its own;
 * PostgreSQL gives the lock, the order and durability. For a catalogue of one machine all functions
 * here return false, empty and OK. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/status.h"

struct catalogue;

#define SHARED_NODE_NAME_SIZE 129

/* How a node that joins copies the catalogue from another node instead of PostgreSQL's snapshot.
 * The catalogue checks what it gets. One thread of the catalogue calls these functions, which may
 * wait; borrowed until the catalogue is closed. */
struct shared_member;
struct shared_peers {
    void *context;
    /* Whether a node, this one or another, gives its file to others. Any thread, never waits. */
    bool (*offers)(void *context, const struct shared_member *member);
    /* Writes the file of `from`, a node of the shared catalogue `epoch`, to `fd` from its start.
     * False: it is not whole; `why` says why, and it was logged. Ends soon once `stops` is true. */
    bool (*fetch)(void *context, const struct shared_member *from, const char *epoch, int fd,
                  bool (*stops)(void *stops_context), void *stops_context, char *why,
                  size_t why_size);
    /* Logs that what was fetched last is not used; the same file is not fetched again. */
    void (*reject)(void *context, const struct shared_member *from, const char *why);
};

/* The node that a follower follows, over HTTP; what it answers is checked by the catalogue. */
struct shared_followed_request {
    const char *target;  /* "/peer/log?…" */
    int fd;              /* where the body of a 200 is written, from its start */
    uint32_t timeout_ms; /* until the answer begins; then it has to go on at some speed */
    bool (*stops)(void *context);
    void *stops_context;
};
struct shared_followed_reply {
    unsigned status; /* 0: no whole answer; `detail` says why */
    uint64_t bytes;  /* of a 200 */
    char code[48], detail[160];
};
struct shared_followed {
    void *context;
    const char *origin; /* https://node:8081 */
    /* A connection, one thread's; NULL: no memory. `close` does not wait. */
    void *(*open)(void *context);
    void (*close)(void *link);
    void (*get)(void *link, const struct shared_followed_request *request,
                struct shared_followed_reply *reply);
};

/* How a catalogue is shared; in struct catalogue_options. */
struct catalogue_shared {
    const char *database; /* postgresql://…; NULL: it is not */
    bool follows;         /* instead of `database`: the log is another node's; read-only */
    const struct shared_followed *followed; /* if `follows`; NULL: a command, which only reads */
    const char *schema;   /* of PostgreSQL, a-z 0-9 _: one catalogue; NULL: sitemapd */
    const char *node;     /* NULL: the host's name and 8 random hex digits, kept in the file */
    const char *release;  /* of this program, for people */
    bool upgrade_by_hand; /* no migration but by catalogue_share_upgrade */
    const struct shared_peers *peers; /* NULL: only PostgreSQL has snapshots */
    /* SHARED_KEY_BYTES that the nodes have in common and nobody else; copied. With it a node sends
     * a small change to the others with its notification, so that they need not ask for it. NULL:
     * they ask. */
    const uint8_t *key;
};
#define SHARED_KEY_BYTES 32

/* A failure of what this node does beside reading and writing. */
struct shared_failing {
    int64_t ms;        /* since when; 0: it does not fail */
    char trouble[256]; /* as that of struct shared_state */
    char said[256];
};
/* For so long it may: it is tried again meanwhile. */
#define SHARED_FAILING_MS 12000

enum shared_phase {
    SHARED_ALONE,   /* not shared */
    SHARED_JOINING, /* the file is empty yet: nothing can be served, no write is taken */
    SHARED_JOINED,  /* it follows, and writes where PostgreSQL can be reached */
    SHARED_LEFT,    /* its past is not the log's, or only a snapshot helps: it serves what it has,
                       takes no write, and is replacing itself */
    SHARED_TOO_OLD, /* the others have a form of the catalogue that this release does not know: as
                       SHARED_LEFT, until it is upgraded */
};

/* As of the last look, a second or so old. */
struct shared_state {
    enum shared_phase phase;
    const char *followed; /* the node whose log it is; NULL: it is PostgreSQL's */
    char node[SHARED_NODE_NAME_SIZE];
    char epoch[33];
    uint64_t applied, head; /* records: here, and known of in the log */
    int64_t behind_ms;      /* since when it has not been at the head; 0: it is */
    int64_t away_ms;        /* since when PostgreSQL, or the followed node, has not answered; 0: it
                               does */
    uint64_t fetched;       /* while a fetched copy is brought to the head: its record; 0 */
    int schema;             /* of the file; 0: nothing is here yet */
    int schema_before;      /* that it had since this node follows; 0: no other */
    bool upgrade_pending;   /* a newer form waits for older releases, or for `share upgrade` */
    bool asked;             /* PostgreSQL has been, for the next one: */
    bool synchronous;       /* what is acknowledged lies on another machine of PostgreSQL's, too */
    int64_t refused_ms;     /* since when the log has refused what is written; 0: it does not */
    int64_t waiting_ms;     /* how long a commit there has waited for a synchronous standby */
    int64_t trip_us;        /* median of the last round trips to PostgreSQL, of which a write needs
                               at least two, the first for the lock; 0: not known yet */
    int64_t namesake_ms;    /* since when a node of the same name has been connected; 0: none is */
    /* Sentences of what is wrong; "": nothing to say. */
    char trouble[256]; /* for anybody: no name or address of PostgreSQL's */
    char said[512];    /* the same in its words, for the log */
    char refused_trouble[256], refused_said[256]; /* the same of refused_ms */
    struct shared_failing report;   /* to the others; it then leads nothing, such as polls */
    struct shared_failing snapshot; /* sending one, or having the log drop what it replaces */
    char diverged[256]; /* why it diverged last, though it may have joined again since */
    /* Counters since the start. */
    uint64_t notified; /* records applied that came with their notification */
    uint64_t appended, applied_records, refused, unknown, settled, replaced, snapshots;
    uint64_t digest_mismatches;
};
/* Thread safe, never waits. False where it is not shared (phase is SHARED_ALONE then). */
bool catalogue_shared_state(struct catalogue *c, struct shared_state *out);

/* So long no commit waits for a standby that is there. */
#define SHARED_WAITING_MS 5000
/* So long PostgreSQL may keep a connection whose machine is gone (pg_statements.def). */
#define SHARED_NAMESAKE_MS 30000

/* A node that has been silent for this long says nothing about the present: they report every ten
 * seconds. */
#define SHARED_SILENT_MS 60000
/* A node as the others know it; for people. */
struct shared_member {
    const char *name, *release;
    int schema;
    uint64_t applied;
    int64_t silent_ms;
    const char *state; /* what it said of itself: JSON, or "" */
};
typedef void shared_member_each(void *context, const struct shared_member *member);
/* Calls `each` for every node, this one included, by name; from memory, never waits. Borrowed. */
void catalogue_shared_members(struct catalogue *c, shared_member_each *each, void *context);
/* What this node says of itself to the others from now on; JSON, copied, at most 64 KiB. Thread
 * safe, never waits. */
void catalogue_shared_say(struct catalogue *c, const char *state);
/* Sends what this node says of itself, then reads what the others say: all that a node sent before
 * this began is in catalogue_shared_members afterwards. Waits for it. False: not within the time.
 * Thread safe; true at once where the catalogue is not shared. */
bool catalogue_shared_exchange(struct catalogue *c, int64_t timeout_ms);

/* Whether this node leads what has this name: a source, a purge. It is one node at a time, by a
 * lock that lives as long as its connection; a late leader is harmless, since writes have a lock of
 * their own. The first call asks for it: it is tried for each second until catalogue_lead_end.
 * Never waits. Always true where the catalogue is not shared. Thread safe. */
bool catalogue_leads(struct catalogue *c, const char *name);
void catalogue_lead_end(struct catalogue *c, const char *name);
/* Whether this node leaves the name to others from now on, who are better at it; it does not ask
 * for it meanwhile. Thread safe, never waits. */
void catalogue_lead_leave(struct catalogue *c, const char *name, bool leaves);

/* ---- the log, handed to followers: by one thread, which may wait. It is read from where this node
 * has it, PostgreSQL or the node that it follows; nothing is kept here. */

#define SHARED_CHAIN_CHARS 64

/* Where a node is. */
struct shared_place {
    uint64_t record;
    char chain[SHARED_CHAIN_CHARS + 1];
};
/* Calls `moved` whenever the node has moved in the log; NULL: no longer, once this has returned. It
 * must not wait, nor call the catalogue. */
void catalogue_shared_on_move(struct catalogue *c, void (*moved)(void *context), void *context);
/* False: nowhere yet. Thread safe, never waits. */
bool catalogue_shared_place(struct catalogue *c, struct shared_place *out);

enum shared_handout {
    SHARED_HANDED,       /* written; without a record where there is nothing newer */
    SHARED_HAND_AWAY,    /* the log cannot be reached, or there was no memory or disk */
    SHARED_HAND_TRIMMED, /* it begins behind `from` */
    SHARED_HAND_ALIEN,   /* `from` is not in it */
};
struct shared_reader;
/* Connects to nobody yet. NULL: no memory. */
struct shared_reader *catalogue_log_reader(struct catalogue *c);
void catalogue_log_reader_free(struct shared_reader *r); /* takes NULL */
/* Any thread: a call under way ends soon, each later one at once. */
void catalogue_log_interrupt(struct shared_reader *r);
/* Writes what is newer than `from` (NULL: nothing, only where the log is) to `fd`, from its start:
 * one record where there is one, then as long as no more than `max_bytes` have come. */
enum shared_handout catalogue_log_hand(struct shared_reader *r, const struct shared_place *from,
                                       uint64_t max_bytes, int fd, uint64_t *bytes,
                                       uint64_t *records);

/* ---- commands: of no open catalogue; of `shared` they need `database` and `schema`
 * ------------------------------------------------------- */

/* Makes a shared catalogue of the file at `path`, which nobody works on: the log in `database`,
 * whose user may make tables there; the first snapshot. `grant_to`: the role that nodes come as;
 * NULL: that user itself. CONFLICT where there is a shared catalogue already, there or here. */
enum catalogue_status catalogue_share_init(const char *path, const struct catalogue_shared *shared,
                                           const char *grant_to, char *why, size_t why_size);
/* Gives `role` what a node needs of the one that is there: for the user who made its tables. */
enum catalogue_status catalogue_share_grant(const struct catalogue_shared *shared, const char *role,
                                            char *why, size_t why_size);
/* As the node whose file is at `path`: appends the migration to this release's form. BUSY where an
 * older release works on it, as long as a write waits. */
enum catalogue_status catalogue_share_upgrade(const char *path,
                                              const struct catalogue_shared *shared, char *why,
                                              size_t why_size);

/* What PostgreSQL says of it, for `share status`; asked for now. */
struct share_status {
    char epoch[33], server[64];
    bool synchronous, durable;
    uint64_t waiting; /* sessions whose commit waits for a synchronous standby */
    uint64_t first, head, log_bytes;
    bool has_snapshot;
    uint64_t snapshot_at, snapshot_bytes;
    int64_t snapshot_age_ms;
};
enum catalogue_status catalogue_share_status(const struct catalogue_shared *shared,
                                             struct share_status *out, shared_member_each *each,
                                             void *context, char *why, size_t why_size);
