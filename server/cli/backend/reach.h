/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Requests of commands (`probe`, `import URL`, `migrate`) to other hosts, made like the polls of a
 * remote source: with the same client and address guard, following redirects one by one. Internal
 * to server/cli/. */
#pragma once

#include "db/check.h"
#include "server/cli/backend/session.h"
#include "server/client/client.h"
#include "server/input/sitemap_file.h"

struct reach {
    const struct cli *cli;
    struct url url;                     /* of the first request */
    const struct config_source *source; /* as whose poll it is requested; may be NULL */
    const char *source_by;              /* how it was found: ", whose …"; "": it was named */
    const struct config_site *site;     /* whose `connect` is used; NULL: no site's */
    char secret[CONFIG_CREDENTIALS_SIZE];
    char agent[512];
    struct host_map *map; /* of that source; may be NULL */
    struct address_guard guard;
    const char *connect;
    uint32_t timeout_ms;
};

/* Prepares requests to `text`: a URL, or the name of a [source] with an upstream. `polls`: any URL
 * is requested as the server polls it, by the first source with its origin, else by [site]
 * `connect`. Reads --connect, --timeout and, if not yet done, the configuration. Returns an exit
 * status, with any error reported. Call reach_done in any case. */
int reach_init(struct cli *cli, const char *text, bool polls, struct reach *out);
void reach_done(struct reach *r);

/* The last request of a chain of redirects, and its response. */
struct reach_answer {
    enum fetch_status status;
    struct fetch_reply reply;
    struct follow way;
};
/* Called for each response; as in struct follow. */
typedef void reach_each(void *context, const struct url *url, enum fetch_status status,
                        const struct fetch_reply *reply, enum hop_verdict verdict);
/* Requests `url` (NULL: r->url). `headers` as in struct fetch_request; keeps the body, up to the
 * size limit of sitemaps. Call reach_answer_done afterwards. */
void reach_fetch(struct reach *r, const struct url *url, const char *headers, reach_each *each,
                 struct reach_answer *out);
void reach_answer_done(struct reach_answer *a);

/* The verdict that a poll of the server would reach (server/sources/remote/child.h). */
struct reach_verdict {
    enum check_state state;
    bool list;                /* a sitemap index, which is good as the upstream of a source */
    const char *code;         /* a stable word; static */
    char detail[320];         /* a sentence; "" if it is good */
    uint64_t line;            /* 0: none */
    struct sitemap_file file; /* of a 200 */
};
/* `hosts` as in struct sitemap_expect. `map` may be NULL. False when out of memory. */
bool reach_check(const struct reach_answer *a, const char *const *hosts, size_t host_count,
                 const struct host_map *map, struct reach_verdict *out);
