#include "db/shared.h"

#include <string.h>

#include "db/file/handle.h"
#include "db/shared/member.h"

bool catalogue_shared_state(struct catalogue *c, struct shared_state *out)
{
    memset(out, 0, sizeof *out);
    if (c->member)
        member_state(c->member, out);
    return c->member != NULL;
}

void catalogue_shared_members(struct catalogue *c,
                              void (*each)(void *context, const struct shared_member *member),
                              void *context)
{
    (void)c;
    (void)each;
    (void)context;
}

void catalogue_shared_say(struct catalogue *c, const char *state)
{
    (void)c;
    (void)state;
}

bool catalogue_leads(struct catalogue *c, const char *name)
{
    (void)c;
    (void)name;
    return true;
}

void catalogue_lead_end(struct catalogue *c, const char *name)
{
    (void)c;
    (void)name;
}
