/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A node's background work while it is connected: the lease of its release, the names that it
 * leads, its reports; and snapshots, which one node takes for all. It has connections and threads
 * of its own, so that no write waits for it. Internal to db/. */
#pragma once

#include <stdbool.h>

#include "db/catalogue.h"
#include "db/shared/log.h"

struct presence;

/* Does not connect yet; `c` is borrowed. NULL: out of memory, or no thread. Calls
 * catalogue_shared_state until presence_stop returns. */
struct presence *presence_start(struct catalogue *c);
/* Ends its threads soon and gives up its names. Then presence_free; both accept NULL. */
void presence_stop(struct presence *p);
void presence_free(struct presence *p);

/* A snapshot costs as much as the file is large, so it is due once the log has grown by a quarter
 * of the file since the last one, and by this much at least. This, and the age, also bound what a
 * node that joins has to apply. The log keeps two snapshots, so that a new one does not end a copy
 * of the old one. If nodes give each other their files (`peers`), PostgreSQL's snapshot is only for
 * the loss of all nodes: it is due once the log has grown by the whole file, and one is kept. */
#define PRESENCE_SNAPSHOT_BYTES  ((uint64_t)64 << 20)
#define PRESENCE_SNAPSHOT_AGE_MS (7 * 24 * 3600 * INT64_C(1000)) /* if anything was written */
/* Pure. */
bool presence_snapshot_is_due(const struct shared_overview *overview, bool peers);

/* Sends a file, which nobody writes to, as the log's newest snapshot, and keeps `kept` of them. The
 * caller holds SHARED_SNAPSHOT_NAME. */
enum shared_outcome presence_put_snapshot(struct shared_log *log, const char *path, int kept);

/* ---- any thread; all but presence_exchange never wait. See db/shared.h. */

bool presence_leads(struct presence *p, const char *name);
void presence_lead_end(struct presence *p, const char *name);
void presence_lead_leave(struct presence *p, const char *name, bool leaves);
void presence_say(struct presence *p, const char *state);
bool presence_exchange(struct presence *p, int64_t timeout_ms); /* waits */
void presence_members(struct presence *p, shared_member_each *each, void *context);
/* Fills in its members of the state: synchronous, snapshots. */
void presence_fill(struct presence *p, struct shared_state *out);
