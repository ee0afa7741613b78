/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a token may: its scope, and each question about it as one function. The callers (the API
 * before it reads, the writer in its transaction, a list) asks here, so that a rule stands once.
 *
 * - A role holds those before it: `read` reads, `write` also registers and removes entries, `admin`
 *   also makes, changes and removes sites, indexes and tokens of its scope.
 * - `site_id`: that site and nothing of another.
 * - `prefix`: only locs that begin with it. It is normalised as a loc is (rules/url.h), so that
 *   case of the host, a default port, dot segments and percent-encodings make no way around it, and
 *   it ends where a name does (grant_read_prefix).
 * - `own`: it changes only entries whose source is the token's own name.
 *
 * Zero is the grant of who needs no token (the command line, sources, the configuration): all.
 * Pure, thread safe. */
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
    int64_t expires_at; /* Unix seconds, from then on it is nothing any more; 0: never */
    const char *name;   /* the token's; NULL: nobody's */
    const char *prefix; /* normalised; NULL: every loc */
};

bool grant_may(const struct grant *grant, enum grant_role needed);
bool grant_is_expired(const struct grant *grant, int64_t now);
/* Whether what belongs to this site is its business at all. */
bool grant_has_site(const struct grant *grant, int64_t site_id);
/* Whether a normalised loc is. */
bool grant_has_loc(const struct grant *grant, const char *loc);
/* Whether it may write as this source, and so what that owns. */
bool grant_has_source(const struct grant *grant, const char *source);
/* Whether it sees an index as a whole: its counts are none of a prefix's business. */
bool grant_has_whole(const struct grant *grant);
/* The narrower of its prefix and `asked`, both normalised or NULL: any loc. False where no loc has
 * both. */
bool grant_narrow(const struct grant *grant, const char *asked, const char **out);
bool grant_equal(const struct grant *a, const struct grant *b);

/* "read", "write", "admin"; "all" for GRANT_ALL. Static. */
const char *grant_role_word(enum grant_role role);
/* False for any other word. */
bool grant_role_read(const char *word, enum grant_role *out);

/* Reads a prefix as people write it. Returns NULL, or a sentence of what is wrong with it. It ends
 * with a slash (a folder) or with - _ or . (names that begin so): "/blog" would hold "/blogger/",
 * too. */
const char *grant_read_prefix(const char *text, char out[GRANT_PREFIX_MAX_CHARS + 1]);
/* Reads a span in seconds: 6w, 90d, 12h, 30m. False for anything else. */
bool grant_read_span(const char *text, int64_t *out);
/* Writes one in the largest unit that it is whole in, "2d"; `out` holds 24 bytes. What is not a
 * whole minute is rounded up. */
void grant_write_span(int64_t seconds, char out[24]);
/* Reads when a token ends: a span from `now` on (90d, 12h, 6w) or a W3C date or time. False where
 * it is neither, or is over. */
bool grant_read_expiry(const char *text, int64_t now, int64_t *out);
/* NULL, or what does not go together. */
const char *grant_fault(const struct grant *grant);

/* Who froze a site or index: what a token for all sites froze, those of the site do not thaw, nor
 * does their undo pass it. Kept as numbers in the catalogue. */
enum freeze {
    FREEZE_NONE = 0,
    FREEZE_SITE = 1,
    FREEZE_ALL_SITES = 2,
    /* The site moves between two catalogues, which both have it: this one gives it away, or has
     * taken it in and does not have it alone yet. To be thawed by a token for all sites. */
    FREEZE_LEAVING = 3,
    FREEZE_ARRIVING = 4,
};
/* By who has this grant. */
enum freeze freeze_of(const struct grant *grant);
/* Whether who has it may thaw that. */
bool freeze_yields(enum freeze frozen, const struct grant *grant);
/* Whether the site is at two places. */
static inline bool freeze_moves(enum freeze frozen)
{
    return frozen >= FREEZE_LEAVING;
}
/* "site", "all-sites", "leaving", "arriving"; NULL: nobody. Static. */
const char *freeze_word(enum freeze frozen);
/* From the catalogue. */
enum freeze freeze_read(int64_t number);
