/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Honest dates: a sitemap's content says whether it changed, and who publishes it says when. Pure
 * functions, thread safe; times are Unix seconds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/rules/limits.h"

/* What is known of a sitemap's content. */
struct claim_content {
    uint64_t hash[2], dateless[2]; /* 0, 0: never read well */
    bool one_lastmod;              /* all pages bear one date */
    bool stamp;                    /* and that is a build's: it dates nothing. Of the content now */
};

/* What dates it. Each may be NULL or 0 where there is none. */
struct claim_dates {
    const char *claim;   /* of the list */
    const char *newest;  /* of its pages */
    int64_t modified_at; /* by its Last-Modified, where that is to be believed */
    const char *served;  /* what its entry bears now */
};

struct claim_verdict {
    bool changed; /* the content is another */
    bool first;   /* it was never read well before */
    /* What its entry is to bear; "": as it does. */
    char lastmod[LASTMOD_MAX_CHARS + 1];
};

/* The hash as it was: nothing moves. Only page dates, all alike before and after: a build stamp,
 * and nothing moves. Another hash: the first of claim, newest page date (unless it is a stamp),
 * modification that is later than what is served and not ahead of the clock; else `now`. A first
 * read is not a change: the same dates in the same order, where nothing is served yet or they are
 * later, and never `now`. */
void claim_check(const struct claim_content *before, const struct claim_content *now_content,
                 const struct claim_dates *dates, int64_t now, struct claim_verdict *out);

/* Whether a list dates its members with the moment of each answer: two claims, of this answer and
 * the one before, that differ and are within a minute of their answers. */
bool claim_is_now(const char *before, int64_t answered_before, const char *claim, int64_t answered);
