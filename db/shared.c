#include "db/catalogue.h"

#include <string.h>

bool catalogue_shared_state(struct catalogue *c, struct shared_state *out)
{
    (void)c;
    memset(out, 0, sizeof *out);
    return false;
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
