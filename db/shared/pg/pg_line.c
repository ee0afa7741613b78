/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The line in which site groups (log.h) wait for the turn of a list, over all nodes. Who waits has
 * an advisory lock, always a shared one, whose key has group and number: so all see who is
 * before them, and a node that is lost is in nobody's way. A group has one place, whichever node
 * took it, and gets the next one, behind all others, only when that list is over. */
#include "db/shared/pg/pg_log.h"

#define GROUP_SHIFT 24
#define NUMBER_MOST 0xffffff
/* The place of who has none, since another node has the group's. */
#define NOWHERE NUMBER_MOST

int64_t pg_line_key(const struct pg_log *l)
{
    return (int64_t)((uint64_t)pg_lock_key(l, "line", "") & ~(uint64_t)UINT32_MAX);
}

static struct pg_value key_of(const struct pg_log *l, const struct pg_place *place)
{
    return pg_integer(pg_line_key(l) | (int64_t)place->site_group << GROUP_SHIFT | place->number);
}

void pg_line_leave(struct pg_log *l)
{
    struct pg_value key = key_of(l, &l->place);

    pg_send(&l->session, PG_UNLOCK_SHARED, &key, 1);
    l->place.site_group = NO_SITE_GROUP;
    l->had_turn = false;
}

static void send_stand(struct pg_log *l, struct pg_place place)
{
    struct pg_value key = key_of(l, &place), ms = pg_text(PG_IDLE_MS);

    if (l->place.site_group == place.site_group && l->place.number == place.number)
        return;
    if (l->place.site_group != NO_SITE_GROUP)
        pg_line_leave(l);
    pg_send(&l->session, PG_SHARE, &key, 1);
    pg_send(&l->session, PG_IDLE_TIMEOUT, &ms, 1);
    l->place = place;
}

struct line {
    bool is_taken; /* the group's place is another's */
    int64_t first, last;
};

static struct line look(const PGresult *others, int site_group, const struct pg_place *own)
{
    struct line line = {.first = NOWHERE};

    for (int row = 0; row < PQntuples(others); row++) {
        int64_t number = pg_get_integer(others, row, 1);

        if (number == NOWHERE)
            continue;
        /* Two that looked at once may both have taken one: the first is the group's. */
        if (pg_get_integer(others, row, 0) == site_group &&
            !(own->site_group == site_group && own->number < number))
            line.is_taken = true;
        if (number < line.first)
            line.first = number;
        if (number > line.last)
            line.last = number;
    }
    return line;
}

enum shared_outcome pg_line_wait(struct pg_log *l, int site_group, int64_t deadline_ms)
{
    struct pg_value key = pg_integer(pg_line_key(l));
    struct pg_place place = {.site_group = site_group, .number = NOWHERE};
    struct pg_results r;

    pg_send(&l->session, PG_LINE, &key, 1);
    enum shared_outcome outcome = pg_log_run(l, &r, deadline_ms);

    if (outcome != SHARED_YES) {
        pg_results_clear(&r);
        return outcome == SHARED_NO ? SHARED_AWAY : outcome;
    }
    bool has_one = l->place.site_group != NO_SITE_GROUP && l->place.number != NOWHERE;
    const struct line line = look(r.at[0], site_group, &l->place);

    pg_results_clear(&r);
    if (!line.is_taken && has_one)
        place.number = l->place.number; /* the node's own sites have turns of their own */
    else if (!line.is_taken)
        place.number = line.last + 1 < NOWHERE ? line.last + 1 : NOWHERE - 1;
    else if (has_one && l->place.site_group != site_group)
        return SHARED_ELSEWHERE; /* it stays for the other */
    send_stand(l, place);
    if (l->session.queued > 0)
        outcome = pg_log_run(l, NULL, deadline_ms);
    if (outcome != SHARED_YES)
        return outcome == SHARED_NO ? SHARED_AWAY : outcome;
    if (line.is_taken)
        return SHARED_ELSEWHERE;
    return place.number <= line.first ? SHARED_YES : SHARED_BUSY;
}
