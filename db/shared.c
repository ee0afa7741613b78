#include "db/shared.h"

#include <string.h>

#include "db/file/handle.h"
#include "db/shared/member.h"
#include "db/shared/presence.h"

bool catalogue_shared_state(struct catalogue *c, struct shared_state *out)
{
    memset(out, 0, sizeof *out);
    if (c->member)
        member_state(c->member, out);
    if (c->presence)
        presence_fill(c->presence, out);
    return c->member != NULL;
}

void catalogue_shared_members(struct catalogue *c,
                              void (*each)(void *context, const struct shared_member *member),
                              void *context)
{
    if (c->presence)
        presence_members(c->presence, each, context);
}

void catalogue_shared_say(struct catalogue *c, const char *state)
{
    if (c->presence)
        presence_say(c->presence, state);
}

bool catalogue_leads(struct catalogue *c, const char *name)
{
    struct presence *presence = c->member ? c->presence : NULL;

    return c->member == NULL || (presence && presence_leads(presence, name));
}

void catalogue_lead_end(struct catalogue *c, const char *name)
{
    if (c->presence)
        presence_lead_end(c->presence, name);
}

void catalogue_lead_leave(struct catalogue *c, const char *name, bool leaves)
{
    if (c->presence)
        presence_lead_leave(c->presence, name, leaves);
}
