/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Which host names belong to a site by their name: those in the domain of its host. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A host name without its port; borrowed, not NUL-terminated. */
struct domain_name {
    const char *text;
    size_t len;
};

/* The name of a normalised host, such as "www.example.com:8443". */
struct domain_name domain_name(const char *host);
/* A site's domain, by the name of its host: without "www." if another dot follows. */
struct domain_name domain_of(struct domain_name host);
bool domain_equals(struct domain_name a, struct domain_name b);
/* True for www.example.com below example.com. */
bool domain_lies_below(struct domain_name a, struct domain_name b);
/* The same, or equal. */
bool domain_lies_within(struct domain_name a, struct domain_name b);
/* Whether `host` is above a name of another site, and not above the domain of the site's `own`. */
bool domain_is_above(struct domain_name host, struct domain_name other, struct domain_name own);
/* Whether the domain of another site is closer to `host` than the domain of the site's `own`:
 * `host` is in it, or above it. Of example.com and www.example.com, which have the same domain, the
 * first has it. False for the other's own name: with another port it is another server. */
bool domain_is_nearer(struct domain_name host, struct domain_name other, struct domain_name own);
