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
