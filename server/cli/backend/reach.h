/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Requests of commands (`probe`, `import URL`, `migrate`) to other hosts, made as the polls of a
 * remote source are: by the same client and guard of addresses, following redirects one by one.
 * Internal to server/cli/. */
#pragma once

#include "db/check.h"
#include "server/cli/backend/session.h"
#include "server/client/client.h"
#include "server/input/sitemap_file.h"

struct reach {
    const struct cli *cli;
    struct url url;                     /* of the first request */
    const struct config_source *source; /* whose upstream it is; NULL: none */
    char secret[CONFIG_CREDENTIALS_SIZE];
    char agent[512];
    struct host_map *map; /* that source's; NULL: none */
    struct address_guard guard;
    const char *connect;
    uint32_t timeout_ms;
};

/* Prepares requests to `text`: a URL, or the name of a [source] with an upstream. Reads --connect,
 * --timeout and, unless that was done, the configuration. Returns an exit status, with the error
 * reported. Call reach_done in any case. */
int reach_init(struct cli *cli, const char *text, struct reach *out);
void reach_done(struct reach *r);

/* The last request of a chain of redirects and its answer. */
struct reach_answer {
    enum fetch_status status;
    struct fetch_reply reply;
    struct follow way;
};
/* Called for each answer on the way; as in struct follow. */
typedef void reach_each(void *context, const struct url *url, enum fetch_status status,
                        const struct fetch_reply *reply, enum hop_verdict verdict);
/* Asks `url` (NULL: r->url). `headers` as in struct fetch_request; the whole body is kept, up to
 * what a sitemap may have. reach_answer_done is due. */
void reach_fetch(struct reach *r, const struct url *url, const char *headers, reach_each *each,
                 struct reach_answer *out);
void reach_answer_done(struct reach_answer *a);

/* What an answer is: what a poll of the server's would make of it (server/sources/remote/child.h).
 */
struct reach_verdict {
    enum check_state state;
    bool list;                /* good as the upstream of a source: a sitemap index */
    const char *code;         /* a stable word; static */
    char detail[320];         /* a sentence; "" where it is good */
    uint64_t line;            /* 0: none */
    struct sitemap_file file; /* of a 200 */
};
/* `hosts` as in struct sitemap_expect. False when out of memory. */
bool reach_check(const struct reach_answer *a, const char *const *hosts, size_t host_count,
                 struct reach_verdict *out);
