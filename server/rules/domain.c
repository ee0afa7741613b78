/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Compares host names by their labels. */
#include "server/rules/domain.h"

#include <string.h>

struct domain_name domain_name(const char *host)
{
    return (struct domain_name){host, *host == '[' ? strlen(host) : strcspn(host, ":")};
}

struct domain_name domain_of(struct domain_name host)
{
    bool www = host.len > 4 && memcmp(host.text, "www.", 4) == 0 &&
               memchr(host.text + 4, '.', host.len - 4) != NULL;
    return www ? (struct domain_name){host.text + 4, host.len - 4} : host;
}

bool domain_equals(struct domain_name a, struct domain_name b)
{
    return a.len == b.len && memcmp(a.text, b.text, b.len) == 0;
}

bool domain_lies_below(struct domain_name a, struct domain_name b)
{
    return a.len > b.len && a.text[a.len - b.len - 1] == '.' &&
           memcmp(a.text + a.len - b.len, b.text, b.len) == 0;
}

bool domain_lies_within(struct domain_name a, struct domain_name b)
{
    return domain_lies_below(a, b) || domain_equals(a, b);
}

bool domain_is_above(struct domain_name host, struct domain_name other, struct domain_name own)
{
    return domain_lies_below(other, host) && !domain_lies_within(domain_of(own), host);
}

bool domain_is_nearer(struct domain_name host, struct domain_name other, struct domain_name own)
{
    struct domain_name theirs = domain_of(other), ours = domain_of(own);
    bool in_ours = domain_lies_within(host, ours) &&
                   (ours.len > theirs.len || (ours.len == theirs.len && own.len == ours.len));
    bool in_theirs = domain_lies_within(host, theirs) && !domain_equals(host, other);

    return (in_theirs && !in_ours) || domain_is_above(host, theirs, own);
}
