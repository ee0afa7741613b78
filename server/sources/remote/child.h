/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What an answer says of a watched sitemap: its state, why, and how the host did. What its bytes
 * are, server/input/sitemap_file.h has checked. For server/sources/remote/ and commands that show
 * it; pure functions, thread safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/check.h"
#include "server/client/client.h"
#include "server/input/sitemap_file.h"
#include "server/rules/limits.h"
#include "server/sources/remote/host.h"
#include "server/sources/remote/remote.h"

/* Honest dates: a sitemap's content says whether it changed, and who publishes it says when. Pure
 * functions, thread safe; times are Unix seconds. */

/* What is known of a sitemap's content. */
struct claim_content {
    uint64_t hash[2], dateless[2]; /* 0, 0: never read well */
    bool one_lastmod;              /* all pages bear one date */
    bool stamp;                    /* and that is a build's: it dates nothing. Of the content now */
};

/* What dates it. Each may be missing: NULL or 0. */
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

struct child_answer {
    enum fetch_status fetch;
    const struct fetch_reply *reply;
    bool conditional;                  /* it was asked for what is new only */
    enum hop_verdict hop;              /* HOP_END, or why a redirect was not followed */
    const struct sitemap_file *file;   /* what a 200's body was found to be; NULL: none was read */
    const struct check_record *before; /* what is kept of it; NULL: nothing, or a list */
    bool decided; /* the body was given up because enough was known; then `fetch` says nothing */
    int64_t now;
};

struct child_verdict {
    enum check_state state;
    const char *problem; /* a stable word, static; NULL where it is good */
    char detail[256];    /* a sentence; "" */
    uint64_t line;
    bool same; /* 304 */
    enum host_outcome host;
    int64_t retry_after_s; /* negative: it does not say */
};

/* An error of the connection outweighs what was read: a body that was cut short may hold a whole
 * sitemap. Also of a list, whose `file` is NULL: a 200 is good then. */
void child_check(const struct child_answer *answer, struct child_verdict *out);

/* What it is counted as. `changed`: the content is another. */
enum remote_result child_result(const struct child_verdict *verdict, bool changed);
