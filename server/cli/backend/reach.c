/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Requests a URL as a poll would, follows redirects, and classifies the response. */
#include "server/cli/backend/reach.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "server/rules/http/query.h"
#include "server/rules/loc.h"
#include "server/sources/remote/child.h"

#define DEFAULT_TIMEOUT_S 120u
#define MAX_TIMEOUT_S     600u
#define STALL_S           30u
#define STALL_BYTES       100u
#define MAX_BODY          (SITEMAP_FILE_MAX_BYTES + 1048576u) /* gzip may add a little */

/* ---- what is asked --------------------------------------------------------------------- */

static int read_map(struct reach *r)
{
    char why[128] = "out of memory", *text = NULL;
    struct source_settings settings;
    bool failed =
        r->source != NULL && !config_source_settings(r->cli->config, r->source, &settings, &text);

    host_map_free(r->map);
    r->map = text != NULL ? host_map_new(text, why, sizeof why) : NULL;
    failed = failed || (text != NULL && r->map == NULL);
    free(text);
    return failed ? cli_fail(r->source->named.name, "map %s", why) : EXIT_DONE;
}

/* Finds the source that polls this URL: by the origin of its upstream, or of a URL that its map
 * leads there. Only the catalogue knows which source lists a sitemap. */
static int find_source(struct reach *r)
{
    const struct config *config = r->cli->config;
    struct url upstream, asked;

    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < config->source_count; i++) {
            const char *text = config->sources[i].is.upstream;

            if (text == NULL || url_parse(text, strlen(text), &upstream, NULL) != RULE_OK)
                continue;
            r->source = &config->sources[i];
            r->source_by = ", whose upstream has this origin";
            if (pass == 0 && url_same_origin(&upstream, &r->url))
                return read_map(r);
            if (pass > 0 && read_map(r) != EXIT_DONE)
                return EXIT_COULD_NOT;
            r->source_by = ", whose map has this origin";
            if (pass > 0 && host_map_reverse(r->map, &upstream, &r->url, &asked)) {
                r->url = asked;
                return EXIT_DONE;
            }
        }
    r->source = NULL;
    return read_map(r);
}

static int read_url(struct cli *cli, const char *text, bool polls, struct reach *r)
{
    enum rule_code code;

    for (size_t i = 0; i < cli->config->source_count; i++)
        if (cli->config->sources[i].is.upstream != NULL &&
            (strcmp(cli->config->sources[i].named.name, text) == 0 ||
             strcmp(cli->config->sources[i].is.upstream, text) == 0))
            r->source = &cli->config->sources[i];
    if (r->source != NULL)
        text = r->source->is.upstream;
    code = url_parse(text, strlen(text), &r->url, NULL);
    if ((code == RULE_LOC_RELATIVE || code == RULE_LOC_MALFORMED) && explain_may_lack_scheme(text))
        return cli_misuse(text, "%s; did you mean https://%s?", rule_code_sentence(code), text);
    if (code != RULE_OK)
        return cli_misuse(text, "%s (%s)", rule_code_sentence(code), rule_code_word(code));
    r->source_by = "";
    return r->source == NULL && polls ? find_source(r) : read_map(r);
}

static void connect_to_site(struct reach *r)
{
    const struct config *config = r->cli->config;
    struct url origin;

    for (size_t i = 0; r->site == NULL && i < config->site_count; i++) {
        const struct config_site *site = &config->sites[i];

        if (site->origin != NULL && site->connect != NULL &&
            url_parse_origin(site->origin, strlen(site->origin), &origin) == RULE_OK &&
            url_same_origin(&origin, &r->url))
            r->site = site;
    }
    if (r->site != NULL)
        r->connect = r->site->connect;
}

static int read_connect(const struct cli *cli, bool polls, struct reach *r)
{
    const char *connect = arguments_value(&cli->arguments, "--connect");
    const char *port = connect != NULL ? strrchr(connect, ':') : NULL;

    if (connect != NULL && (port == NULL || port == connect || strlen(port) < 2 ||
                            strspn(port + 1, "0123456789") != strlen(port + 1)))
        return cli_misuse("--connect", "\"%s\" must be host:port, such as 192.0.2.1:443", connect);
    r->connect = connect;
    if (connect == NULL && r->source != NULL)
        r->connect = r->source->is.connect;
    if (polls && r->connect == NULL)
        connect_to_site(r);
    return EXIT_DONE;
}

static int read_timeout(const struct cli *cli, struct reach *r)
{
    const char *text = arguments_value(&cli->arguments, "--timeout");
    uint64_t seconds = DEFAULT_TIMEOUT_S;

    if (text != NULL && (!query_number(text, MAX_TIMEOUT_S, &seconds) || seconds < 1))
        return cli_misuse("--timeout", "\"%s\" must be a number from 1 to %u", text, MAX_TIMEOUT_S);
    r->timeout_ms = (uint32_t)seconds * 1000;
    return EXIT_DONE;
}

static int read_guard(const struct config *config, struct reach *r)
{
    return address_guard_init(&r->guard, config->allow_addresses)
               ? EXIT_DONE
               : cli_fail(r->url.text, "out of memory");
}

static int read_secret(struct reach *r)
{
    char why[256];

    if (r->source == NULL || r->source->credentials_file == NULL ||
        config_source_credentials(r->source, r->secret, why) == NULL)
        return EXIT_DONE;
    return cli_fail(r->source->named.name, "%s", why);
}

int reach_init(struct cli *cli, const char *text, bool polls, struct reach *out)
{
    int status;

    memset(out, 0, sizeof *out);
    out->cli = cli;
    status = cli->config == NULL ? session_read_config(cli, NULL, NULL) : EXIT_DONE;
    if (status == EXIT_DONE)
        status = read_url(cli, text, polls, out);
    if (status == EXIT_DONE)
        status = read_connect(cli, polls, out);
    if (status == EXIT_DONE)
        status = read_timeout(cli, out);
    if (status == EXIT_DONE)
        status = read_guard(cli->config, out);
    if (status == EXIT_DONE)
        status = read_secret(out);
    if (status == EXIT_DONE && cli->config->contact != NULL)
        snprintf(out->agent, sizeof out->agent, "sitemapd/%s (+%s)", SITEMAPD_VERSION,
                 cli->config->contact);
    else
        snprintf(out->agent, sizeof out->agent, "sitemapd/%s", SITEMAPD_VERSION);
    return status;
}

void reach_done(struct reach *r)
{
    address_guard_done(&r->guard);
    host_map_free(r->map);
    explicit_bzero(r->secret, sizeof r->secret);
}

/* ---- asking ---------------------------------------------------------------------------- */

static bool is_named(const char *host, const struct url *url)
{
    char own[HOST_MAX_CHARS + 7];
    size_t len = url->origin_len - url->host_at;

    if (len >= sizeof own)
        return false;
    memcpy(own, url->text + url->host_at, len);
    own[len] = '\0';
    return strcmp(host, own) == 0;
}

struct asking {
    const struct reach *reach;
    const struct url *first;
    reach_each *each;
};

static bool is_host_of(const struct config_site *site, const struct url *url)
{
    struct url origin;

    if (site->origin == NULL)
        return false;
    if (url_parse(site->origin, strlen(site->origin), &origin, NULL) == RULE_OK &&
        url_same_server(&origin, url))
        return true;
    for (size_t k = 0; k < site->cross_host_count; k++)
        if (is_named(site->cross_hosts[k], url))
            return true;
    for (size_t k = 0; k < site->host_alias_count; k++)
        if (is_named(site->host_aliases[k], url))
            return true;
    return false;
}

/* Whether polls of the source may follow redirects to hosts of the site. */
static bool is_for(const struct config_source *source, const struct config_site *site,
                   const struct url *upstream)
{
    const char *index = source->is.index;

    if (index == NULL || index[0] == '/')
        return is_host_of(site, upstream);
    return site->origin != NULL && strncmp(index, site->origin, strlen(site->origin)) == 0 &&
           index[strlen(site->origin)] == '/';
}

/* Allows redirects to the first host, by http or https, and to hosts of the configured sites. */
static bool is_allowed(void *context, const struct url *to)
{
    const struct asking *a = context;
    const struct config *config = a->reach->cli->config;
    const struct config_source *source = a->reach->source;

    if (url_same_server(a->first, to))
        return true;
    for (size_t i = 0; i < config->site_count; i++)
        if (is_host_of(&config->sites[i], to) && (source == NULL || config->site_count == 1 ||
                                                  is_for(source, &config->sites[i], a->first)))
            return true;
    return false;
}

static void report_each(void *context, const struct url *url, enum fetch_status status,
                        const struct fetch_reply *reply, enum hop_verdict verdict)
{
    const struct asking *a = context;

    if (a->each != NULL)
        a->each(NULL, url, status, reply, verdict);
}

void reach_fetch(struct reach *r, const struct url *url, const char *headers, reach_each *each,
                 struct reach_answer *out)
{
    bool own = url == NULL || url_same_origin(url, &r->url);
    struct asking asking = {r, url != NULL ? url : &r->url, each};
    struct fetch_request request = {
        .url = asking.first,
        .method = "GET",
        .agent = r->agent,
        .headers = headers,
        .timeout_ms = r->timeout_ms,
        .stall_s = STALL_S,
        .stall_bytes = STALL_BYTES,
        .max_bytes = MAX_BODY,
        .connect = own ? r->connect : NULL,
        .guard = &r->guard,
        .ca_file = session_ca_file(r->cli),
        .ca_more = own && r->source != NULL ? r->source->is.ca_file : NULL,
        .credentials = own && r->secret[0] != '\0' ? r->secret : NULL,
    };

    if (request.ca_file != NULL)
        request.ca_more = NULL;
    out->way = (struct follow){
        .request = &request, .allowed = is_allowed, .each = report_each, .context = &asking};
    out->status = fetch_follow(&out->way, &out->reply);
    out->way.request = NULL;
}

void reach_answer_done(struct reach_answer *a)
{
    fetch_reply_done(&a->reply);
}

/* ---- validation ------------------------------------------------------------------------ */

static bool report_broken(struct reach_verdict *v, const char *code, const char *detail)
{
    v->state = CHECK_BROKEN;
    v->code = code;
    snprintf(v->detail, sizeof v->detail, "%s", detail);
    return true;
}

static bool verify(const struct reach_answer *a, const char *const *hosts, size_t host_count,
                   const struct host_map *map, struct sitemap_file *out)
{
    const struct url *url = &a->way.last;
    struct url served_at;
    struct sitemap_expect expect = {
        .now = (int64_t)time(NULL),
        .url = &served_at,
        .hosts = hosts,
        .host_count = host_count,
        .packing = sitemap_packing_of(url->text, (size_t)url->origin_len + url->path_len),
        .map = map,
    };
    struct sitemap_verifier *verifier;
    char codings[CODINGS_TEXT];
    bool good;

    host_map_url(map, url, &served_at);
    verifier = sitemap_verifier_new(&expect);
    if (verifier == NULL)
        return false;
    sitemap_verifier_head(
        verifier, fetch_header_joined(&a->reply, "Content-Encoding", codings, sizeof codings),
        fetch_header(&a->reply, "Content-Type"));
    if (a->reply.body.len > 0)
        sitemap_verifier_feed(verifier, a->reply.body.data, a->reply.body.len);
    good = sitemap_verifier_finish(verifier, out);
    sitemap_verifier_free(verifier);
    return good;
}

bool reach_check(const struct reach_answer *a, const char *const *hosts, size_t host_count,
                 const struct host_map *map, struct reach_verdict *out)
{
    bool whole = a->status == FETCH_OK && a->way.verdict == HOP_END && a->reply.status == 200;
    struct child_answer answer = {
        .fetch = a->status,
        .reply = &a->reply,
        .hop = a->way.verdict,
        .file = whole ? &out->file : NULL,
        .now = (int64_t)time(NULL),
    };
    struct child_verdict verdict;

    memset(out, 0, sizeof *out);
    if (a->status == FETCH_NO_MEMORY)
        return false;
    if (whole && a->reply.cut)
        return report_broken(out, "file-too-large", "is larger than 50 MiB");
    if (whole && !verify(a, hosts, host_count, map, &out->file))
        return false;
    child_check(&answer, &verdict);
    out->state = verdict.state;
    out->code = verdict.problem != NULL ? verdict.problem : "good";
    out->line = verdict.line;
    out->list = whole && out->file.kind == SITEMAP_FILE_INDEX;
    snprintf(out->detail, sizeof out->detail, "%s", verdict.detail);
    return true;
}
