/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Derives the state of a watched sitemap, the reason and the host's outcome from a response.
 * server/input/sitemap_file.h has verified the body before. For server/sources/remote/ and
 * commands; pure functions, thread safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/check.h"
#include "server/client/client.h"
#include "server/input/sitemap_file.h"
#include "server/rules/limits.h"
#include "server/sources/remote/host.h"
#include "server/sources/remote/remote.h"

/* Honest dates: the content shows whether a sitemap changed, and the publisher's dates show when.
 * Pure functions, thread safe; times are Unix seconds. */

/* The content of a sitemap. */
struct claim_content {
    uint64_t hash[2], dateless[2]; /* 0, 0: never good */
    bool one_lastmod;              /* all pages have the same date */
    /* and it is the date of a build, which is useless; only of the new content */
    bool stamp;
};

/* Dates that it may get. Each may be missing: NULL or 0. */
struct claim_dates {
    const char *claim;   /* of the list */
    const char *newest;  /* of its pages */
    int64_t modified_at; /* by Last-Modified, if that is plausible */
    const char *served;  /* the current date of its entry */
};

struct claim_verdict {
    bool changed; /* the content has changed */
    bool first;   /* it was never good before */
    /* The new date of its entry; "": unchanged. */
    char lastmod[LASTMOD_MAX_CHARS + 1];
};

/* Decides the date. Same hash: unchanged. Only the page dates differ, and all pages had and have
 * the same date: a build stamp, so unchanged. Different hash: the first of claim, newest page date
 * (unless it is a stamp) and modification time that is later than the served date and not in the
 * future; else `now`. The first good read is not a change: the same dates in the same order, if
 * none is served yet or they are later, but never `now`. */
void claim_check(const struct claim_content *before, const struct claim_content *now_content,
                 const struct claim_dates *dates, int64_t now, struct claim_verdict *out);

/* Whether a list dates its members with the time of each response: the claims of this response and
 * the one before differ, and each is within a minute of its response. */
bool claim_is_now(const char *before, int64_t answered_before, const char *claim, int64_t answered);

struct child_answer {
    enum fetch_status fetch;
    const struct fetch_reply *reply;
    bool conditional;     /* the request was conditional */
    enum hop_verdict hop; /* HOP_END, or why a redirect was not followed */
    /* the verdict on the body of a 200; NULL: no body was read */
    const struct sitemap_file *file;
    const struct check_record *before; /* its record before; NULL: none, or it is a list */
    /* the body was not read to its end because the verdict was final; `fetch` does not count then
     */
    bool decided;
    int64_t now;
};

struct child_verdict {
    enum check_state state;
    const char *problem; /* a stable word, static; NULL if it is good */
    char detail[256];    /* a sentence; "" */
    uint64_t line;
    bool same; /* 304 */
    enum host_outcome host;
    int64_t retry_after_s; /* negative: none */
};

/* Derives the verdict. An error of the connection outranks the body: a truncated body may contain a
 * complete sitemap. For a list, `file` is NULL, and a 200 is good. */
void child_check(const struct child_answer *answer, struct child_verdict *out);

/* The counter for a verdict. `changed`: the content has changed. */
enum remote_result child_result(const struct child_verdict *verdict, bool changed);
