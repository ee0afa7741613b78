/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a token may do: its scope, and one function for each check. All code (the API before it
 * reads, the writer in its transaction, lists) uses these functions, so that each rule exists once.
 *
 * - A role includes those before it: `read` reads, `write` also registers and removes
 *   entries, `admin` also makes, changes and removes sites, indexes and tokens of its scope.
 * - `site_id`: only that site.
 * - `prefix`: only locs that begin with it. It is normalised as a loc is (rules/url.h), so that
 *   upper case in the host, a default port, dot segments or percent-encoding cannot get around it,
 *   and it ends at the end of a name (grant_read_prefix).
 * - `own`: it changes only entries whose source is the token's own name.
 *
 * A zeroed grant allows everything: that of the command line, sources and the configuration. Pure,
 * thread safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GRANT_PREFIX_MAX_CHARS 500u

/* Kept as numbers in the catalogue. */
enum grant_role { GRANT_ALL = 0, GRANT_READ = 1, GRANT_WRITE = 2, GRANT_ADMIN = 3 };

struct grant {
    enum grant_role role;
    bool own;
    int64_t site_id;    /* 0: every site */
    int64_t expires_at; /* Unix seconds; the token is rejected from then on; 0: never */
    const char *name;   /* of the token; NULL: none */
    const char *prefix; /* normalised; NULL: every loc */
};

bool grant_may(const struct grant *grant, enum grant_role needed);
bool grant_is_expired(const struct grant *grant, int64_t now);
/* Whether the token may see this site. */
bool grant_has_site(const struct grant *grant, int64_t site_id);
/* Whether a normalised loc begins with the token's prefix. */
bool grant_has_loc(const struct grant *grant, const char *loc);
/* Whether the token may write as this source, and change the entries of the source. */
bool grant_has_source(const struct grant *grant, const char *source);
/* Whether the token may see the counts of whole indexes; not with a prefix. */
bool grant_has_whole(const struct grant *grant);
/* Writes the longer of the token's prefix and `asked` (both normalised; NULL: any loc) to `*out`.
 * False: no loc can begin with both. */
bool grant_narrow(const struct grant *grant, const char *asked, const char **out);
bool grant_equal(const struct grant *a, const struct grant *b);

/* "read", "write", "admin"; "all" for GRANT_ALL. Static. */
const char *grant_role_word(enum grant_role role);
/* False for any other word. */
bool grant_role_read(const char *word, enum grant_role *out);

/* Parses and normalises a prefix. Returns NULL, or a sentence about the fault. It must end with a
 * slash (a folder) or with - _ or . (the beginning of a name): "/blog" would include "/blogger/".
 */
const char *grant_read_prefix(const char *text, char out[GRANT_PREFIX_MAX_CHARS + 1]);
/* Reads a span in seconds: 6w, 90d, 12h, 30m. False for anything else. */
bool grant_read_span(const char *text, int64_t *out);
/* Writes a span in the largest unit without a fraction, such as "2d". It is rounded up to whole
 * minutes. */
void grant_write_span(int64_t seconds, char out[24]);
/* Reads an expiry date: a span from `now` (90d, 12h, 6w) or a W3C date or time. False: it is
 * neither, or in the past. */
bool grant_read_expiry(const char *text, int64_t now, int64_t *out);
/* Why members of the grant contradict each other, a sentence; NULL: they do not. */
const char *grant_fault(const struct grant *grant);

/* Who froze a site or list. A token for one site can neither thaw nor undo the freeze of a token
 * for all sites. Stored as numbers. */
enum freeze {
    FREEZE_NONE = 0,
    FREEZE_SITE = 1,
    FREEZE_ALL_SITES = 2,
    /* The site moves between two catalogues, which both have it now: from this one or to this one.
     * Only a token for all sites can thaw it. */
    FREEZE_LEAVING = 3,
    FREEZE_ARRIVING = 4,
};
/* The kind of a freeze by a token with this grant. */
enum freeze freeze_of(const struct grant *grant);
/* Whether a token with this grant may thaw it. */
bool freeze_yields(enum freeze frozen, const struct grant *grant);
/* Whether the site is moving and is in two catalogues. */
static inline bool freeze_moves(enum freeze frozen)
{
    return frozen >= FREEZE_LEAVING;
}
/* "site", "all-sites", "leaving", "arriving"; NULL: not frozen. Static. */
const char *freeze_word(enum freeze frozen);
/* Converts the number that the catalogue stores. */
enum freeze freeze_read(int64_t number);
