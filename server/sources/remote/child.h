/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What an answer says of a watched sitemap: its state, why, and how the host did. What its bytes
 * are, server/input/sitemap_file.h has checked. For server/sources/remote/ and commands that show
 * it; pure functions, thread safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/check.h"
#include "server/client/client.h"
#include "server/client/hop.h"
#include "server/input/sitemap_file.h"
#include "server/sources/remote/host.h"
#include "server/sources/remote/remote.h"

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
