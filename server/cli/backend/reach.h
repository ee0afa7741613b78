/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What commands ask of hosts elsewhere, as the polls of a remote source do: by the same client and
 * guard of addresses, redirects followed by hand. `probe`, `import URL`, `migrate`. Internal to
 * server/cli/. */
#pragma once

#include "db/check.h"
#include "server/cli/backend/session.h"
#include "server/client/client.h"
#include "server/input/sitemap_file.h"

struct reach {
    const struct cli *cli;
    struct url url;                     /* that is asked first */
    const struct config_source *source; /* whose upstream that is; NULL: of none */
    char secret[CONFIG_CREDENTIALS_SIZE];
    char agent[512];
    struct host_map *map; /* that source's; NULL: none */
    struct address_guard guard;
    const char *connect;
    uint32_t timeout_ms;
};

/* Makes ready to ask `text`: a URL, or the name of a [source] with an upstream. Reads the
 * configuration unless that was done, and --connect, --timeout. An exit status, with the error
 * reported; reach_done is due all the same. */
int reach_init(struct cli *cli, const char *text, struct reach *out);
void reach_done(struct reach *r);

/* What was asked and answered last. */
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
/* False when out of memory. */
bool reach_check(const struct reach_answer *a, struct reach_verdict *out);
