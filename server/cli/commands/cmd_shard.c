/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* `shard map`: prints which shard has each host, in a format for a proxy, and compares it with the
 * deployed map.
 *
 * A site's host and its host aliases belong to the shard that has the site. While a site moves
 * (cmd_site_move.c) two shards have it: the one where it is arriving has priority over the one that
 * it is leaving, and a shard where it is neither has priority over both.
 *
 * A site's own token may add any alias that its own shard does not know as another site's. So the
 * rules of a catalogue (db/write/apply/site.c) are applied between shards, too. A site's own host
 * has priority over an alias that a site on another shard has, moving or not. An alias in or above
 * the domain of a site on another shard is ignored, unless the configuration set it. An alias that
 * sites on two shards have stays where the deployed map has it, or is left out. All these are
 * reported. A host that sites on two shards have as their own is an error, and no map is printed.
 *
 * An alias loses to all hosts of the same name, whatever their ports: proxies look a host up first
 * with its port and then without, or only without. Two sites may have one name with different
 * ports, each on its own shard, except in an HTTPRoute, which has no ports.
 *
 * What servers return is validated as the catalogue validates it (rules/url.h), so that no name can
 * end a line, a string or a block of the map. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/text.h"
#include "server/cli/commands/shards.h"
#include "server/cli/output.h"
#include "server/rules/domain.h"

#define HOSTS_MAX       5000000u
#define HOST_SIZE       (HOST_MAX_CHARS + 7)
#define ROUTE_HOSTS_MAX 16u /* the limit of an HTTPRoute */
#define LINE_BYTES_MAX  4096u

enum format { FORMAT_HAPROXY, FORMAT_NGINX, FORMAT_ENVOY, FORMAT_HTTPROUTE, FORMAT_COUNT };
static const char *const format_words[FORMAT_COUNT] = {"haproxy", "nginx", "envoy", "httproute"};

/* From strongest to weakest: by what set the host, and by the site's move. */
enum claim_kind { CLAIM_OWN, CLAIM_CONFIGURED, CLAIM_ALIAS };
enum claim_rank { CLAIM_HAS, CLAIM_ARRIVES, CLAIM_LEAVES };

struct claim {
    char host[HOST_SIZE];
    const char *origin; /* of the site; borrowed */
    unsigned shard;
    enum claim_kind kind;
    enum claim_rank rank;
    bool deployed; /* an alias that the deployed map has on a shard of its site */
    bool ignored;
};

struct map {
    struct shard *shards;
    size_t shard_count;
    struct claim *claims; /* owned */
    size_t count, capacity;
    bool without_ports; /* as an HTTPRoute names hosts */
};

/* ---- reading --------------------------------------------------------------------------- */

static bool add_claim(struct map *m, const char *host, const struct claim *like)
{
    if (m->count == m->capacity) {
        size_t capacity = m->capacity > 0 ? 2 * m->capacity : 1024;
        struct claim *grown =
            m->count < HOSTS_MAX ? reallocarray(m->claims, capacity, sizeof *grown) : NULL;

        if (grown == NULL)
            return false;
        m->claims = grown;
        m->capacity = capacity;
    }
    struct claim *claim = &m->claims[m->count++];

    *claim = *like;
    snprintf(claim->host, sizeof claim->host, "%.*s",
             (int)(m->without_ports ? domain_name(host).len : strlen(host)), host);
    return true;
}

static int read_site(struct map *m, unsigned shard, const json_t *site)
{
    const struct shard *of = &m->shards[shard];
    const char *origin = member_text(site, "origin"), *moves = member_text(site, "frozen_by");
    struct claim claim = {.origin = origin,
                          .shard = shard,
                          .rank = strcmp(moves, "arriving") == 0  ? CLAIM_ARRIVES
                                  : strcmp(moves, "leaving") == 0 ? CLAIM_LEAVES
                                                                  : CLAIM_HAS};
    char own[HOST_SIZE], host[HOST_SIZE];
    struct url url;
    json_t *alias;
    size_t i;

    if (url_parse_origin(origin, strlen(origin), &url) != RULE_OK || strcmp(url.text, origin) != 0)
        return cli_fail(of->name, "the server sent a malformed origin: \"%.200s\"", origin);
    snprintf(own, sizeof own, "%s", url.text + url.host_at);
    bool added = add_claim(m, own, &claim);
    json_array_foreach(json_object_get(site, "host_aliases"), i, alias)
    {
        const char *text = json_string_value(alias);

        if (text == NULL || url_parse_host(text, strlen(text), host) != RULE_OK)
            return cli_fail(of->name, "the server sent a malformed host alias: \"%.200s\"",
                            text != NULL ? text : "");
        claim.kind =
            json_is_true(json_object_get(site, "managed")) ? CLAIM_CONFIGURED : CLAIM_ALIAS;
        added = added && add_claim(m, host, &claim);
    }
    return added ? EXIT_DONE
                 : cli_fail(of->name, "out of memory, or more than %u hosts", HOSTS_MAX);
}

static int read_sites(struct map *m, unsigned shard)
{
    const json_t *sites = api_sites(m->shards[shard].server), *site;
    int status = sites != NULL ? EXIT_DONE : EXIT_COULD_NOT;
    size_t i;

    json_array_foreach(sites, i, site)
    {
        if (status == EXIT_DONE)
            status = read_site(m, shard, site);
    }
    return status;
}

static int compare_names(const char *a, const char *b)
{
    const struct domain_name x = domain_name(a), y = domain_name(b);
    int order = memcmp(x.text, y.text, x.len < y.len ? x.len : y.len);

    return order != 0 ? order : (x.len > y.len) - (x.len < y.len);
}

static int compare_hosts(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    int by_name = compare_names(x->host, y->host);

    return by_name != 0 ? by_name : strcmp(x->host, y->host);
}

static int compare_claims(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    int by_name = compare_names(x->host, y->host);
    int by_port = x->kind == CLAIM_OWN && y->kind == CLAIM_OWN ? strcmp(x->host, y->host) : 0;

    return by_name != 0                 ? by_name
           : x->kind != y->kind         ? (x->kind > y->kind) - (x->kind < y->kind)
           : by_port != 0               ? by_port
           : x->deployed != y->deployed ? y->deployed - x->deployed
           : x->rank != y->rank         ? (x->rank > y->rank) - (x->rank < y->rank)
                                        : (x->shard > y->shard) - (x->shard < y->shard);
}

/* Compares a claim with a stronger one of another shard. Reports a conflict, and an alias that is
 * ignored. */
static int settle_claim(const struct map *m, const struct claim *best, struct claim *claim)
{
    bool same_site = strcmp(best->origin, claim->origin) == 0;
    const char *shard = m->shards[claim->shard].name, *other = m->shards[best->shard].name;

    claim->ignored = true;
    if (same_site && best->rank != claim->rank)
        return EXIT_DONE;
    if (claim->kind == CLAIM_OWN)
        return cli_fail(claim->host, "conflict: shards %s and %s both have it", other, shard);
    if (best->kind == claim->kind && best->deployed == claim->deployed)
        cli_warn(claim->host,
                 "not in the map: it is a host alias of %s on shard %s and of %s on shard %s",
                 best->origin, other, claim->origin, shard);
    else
        cli_warn(claim->host,
                 "the host alias of %s on shard %s is ignored: it belongs to %s on shard %s",
                 claim->origin, shard, best->origin, other);
    return EXIT_DONE;
}

/* The claim of another shard, among those for one name, that is stronger than number `i`: for a
 * site's own host only the same host, for an alias any site's own host, or the strongest alias. */
static const struct claim *find_rival(const struct claim *claims, size_t i)
{
    const struct claim *claim = &claims[i];

    for (size_t k = 0; k < i && (k == 0 || claims[k].kind == CLAIM_OWN); k++)
        if (!claims[k].ignored && claims[k].shard != claim->shard &&
            (claim->kind != CLAIM_OWN || strcmp(claims[k].host, claim->host) == 0))
            return &claims[k];
    return NULL;
}

/* Decides between the claims for one name, sorted by their strength. Of equally strong aliases none
 * is kept: otherwise one tenant could get another's, or prevent a new map. */
static int settle_name(const struct map *m, struct claim *claims, size_t count)
{
    int status = EXIT_DONE;
    bool undecided = false;

    for (size_t i = 1; i < count; i++) {
        const struct claim *rival = find_rival(claims, i);

        if (rival == NULL)
            continue;
        if (settle_claim(m, rival, &claims[i]) != EXIT_DONE)
            status = EXIT_COULD_NOT;
        undecided |= claims[i].kind != CLAIM_OWN && claims[i].kind == rival->kind &&
                     claims[i].deployed == rival->deployed &&
                     strcmp(claims[i].origin, rival->origin) != 0;
    }
    for (size_t i = 0; undecided && i < count; i++)
        claims[i].ignored = true;
    return status;
}

/* ---- aliases in or above the domain of a site on another shard ---- */

/* Compares from the end, so that all names below a name are together. */
static int compare_ends(struct domain_name a, struct domain_name b)
{
    while (a.len > 0 && b.len > 0 && a.text[a.len - 1] == b.text[b.len - 1]) {
        a.len--;
        b.len--;
    }
    return a.len == 0 || b.len == 0
               ? (a.len > 0) - (b.len > 0)
               : (unsigned char)a.text[a.len - 1] - (unsigned char)b.text[b.len - 1];
}

static int compare_domains(const void *a, const void *b)
{
    const struct claim *const *x = a, *const *y = b;

    return compare_ends(domain_of(domain_name((*x)->host)), domain_of(domain_name((*y)->host)));
}

/* The claims that have a domain (all but aliases of the API), by their domains. */
struct domains {
    const struct claim **at; /* owned */
    size_t count;
};

static struct domain_name domain_at(const struct domains *d, size_t i)
{
    return domain_of(domain_name(d->at[i]->host));
}

/* The first of the domains that is not before `name`. */
static size_t find_domain(const struct domains *d, struct domain_name name)
{
    size_t low = 0, high = d->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_ends(domain_at(d, middle), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct domain_name own_name(const struct claim *claim)
{
    return domain_name(strstr(claim->origin, "://") + 3);
}

/* Whether a claim on another shard is nearer to the alias. A site with the same name is not, since
 * it may be the same site, which moves. */
static bool is_nearer(const struct claim *other, const struct claim *alias)
{
    return other->shard != alias->shard && !domain_equals(own_name(other), own_name(alias)) &&
           domain_is_nearer(domain_name(alias->host), domain_name(other->host), own_name(alias));
}

/* In the domains that are equal to or above the alias, then in those below it. */
static const struct claim *find_nearer(const struct domains *d, const struct claim *alias)
{
    const struct domain_name name = domain_name(alias->host);
    const char *end = name.text + name.len;
    char below[HOST_SIZE];

    for (const char *label = name.text, *dot; label != NULL; label = dot != NULL ? dot + 1 : NULL) {
        const struct domain_name part = {label, (size_t)(end - label)};

        for (size_t i = find_domain(d, part); i < d->count; i++) {
            if (!domain_equals(domain_at(d, i), part))
                break;
            if (is_nearer(d->at[i], alias))
                return d->at[i];
        }
        dot = memchr(label, '.', part.len);
    }
    if (domain_lies_within(domain_of(own_name(alias)), name))
        return NULL;
    snprintf(below, sizeof below, ".%.*s", (int)name.len, name.text);
    for (size_t i = find_domain(d, domain_name(below)); i < d->count; i++) {
        if (!domain_lies_below(domain_at(d, i), name))
            break;
        if (is_nearer(d->at[i], alias))
            return d->at[i];
    }
    return NULL;
}

static int ignore_nearer_aliases(struct map *m)
{
    struct domains d = {.at = calloc(m->count + 1, sizeof *d.at)};

    if (d.at == NULL)
        return cli_fail("shard map", "out of memory");
    for (size_t i = 0; i < m->count; i++)
        if (m->claims[i].kind != CLAIM_ALIAS)
            d.at[d.count++] = &m->claims[i];
    qsort(d.at, d.count, sizeof *d.at, compare_domains);
    for (size_t i = 0; i < m->count; i++) {
        struct claim *alias = &m->claims[i];
        const struct claim *other = alias->kind == CLAIM_ALIAS ? find_nearer(&d, alias) : NULL;

        alias->ignored = other != NULL;
        if (alias->ignored)
            cli_warn(alias->host,
                     "the host alias of %s on shard %s is ignored: it is in or above the domain of "
                     "%s on shard %s",
                     alias->origin, m->shards[alias->shard].name, other->origin,
                     m->shards[other->shard].name);
    }
    free(d.at);
    return EXIT_DONE;
}

/* ---- the deployed map ---- */

/* The aliases for the name of `host`, of `count` sorted claims; *end is behind them. */
static size_t find_name(const struct map *m, const char *host, size_t *end)
{
    size_t low = 0, high = m->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_names(m->claims[middle].host, host) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (*end = low; *end < m->count; (*end)++)
        if (compare_names(m->claims[*end].host, host) != 0)
            break;
    return low;
}

/* All of the alias's site on other shards, too: a site that moves is one site. */
static void mark_deployed(struct map *m, const char *host, const char *shard)
{
    size_t end, begin = find_name(m, host, &end);
    const char *origin = NULL;

    for (size_t i = begin; i < end && origin == NULL; i++)
        if (m->claims[i].kind != CLAIM_OWN && strcmp(m->claims[i].host, host) == 0 &&
            strcmp(m->shards[m->claims[i].shard].name, shard) == 0)
            origin = m->claims[i].origin;
    for (size_t i = begin; i < end && origin != NULL; i++)
        m->claims[i].deployed |=
            m->claims[i].kind != CLAIM_OWN && strcmp(m->claims[i].origin, origin) == 0;
}

/* Reads a host of a map in any of the formats. `section` keeps the name above a list of hosts. */
static bool read_deployed_host(const char *line, char section[SHARD_NAME_SIZE],
                               char host[HOST_SIZE], char shard[SHARD_NAME_SIZE])
{
    static_assert(HOST_SIZE == 260 && SHARD_NAME_SIZE == 65, "the widths below");

    if (sscanf(line, " - name: \"%64[^\"]", section) == 1)
        return false;
    if (sscanf(line, " - \"%259[^\"]", host) == 1) {
        memcpy(shard, section, SHARD_NAME_SIZE);
        return true;
    }
    return sscanf(line, " \"%259[^\"]\" %64[^; \n]", host, shard) == 2 ||
           sscanf(line, " %259s %64s", host, shard) == 2;
}

static int read_deployed(struct map *m, const char *name)
{
    FILE *file = fopen(name, "re");
    char line[LINE_BYTES_MAX], host[HOST_SIZE];
    char section[SHARD_NAME_SIZE] = "", shard[SHARD_NAME_SIZE];

    if (file == NULL)
        return cli_fail(name, "%s", strerror(errno));
    qsort(m->claims, m->count, sizeof *m->claims, compare_hosts);
    while (fgets(line, sizeof line, file) != NULL)
        if (read_deployed_host(line, section, host, shard))
            mark_deployed(m, host, shard);
    bool whole = ferror(file) == 0;

    fclose(file);
    return whole ? EXIT_DONE : cli_fail(name, "cannot be read completely");
}

/* ---- all claims ---- */

static void drop_ignored(struct map *m)
{
    size_t kept = 0;

    for (size_t i = 0; i < m->count; i++)
        if (!m->claims[i].ignored)
            m->claims[kept++] = m->claims[i];
    m->count = kept;
}

/* Keeps one claim for each host; all of a name are on one shard, or are sites' own. */
static int settle(struct map *m, const char *deployed)
{
    size_t kept = 0;
    int status = ignore_nearer_aliases(m);

    if (status != EXIT_DONE)
        return status;
    drop_ignored(m);
    if (deployed != NULL && (status = read_deployed(m, deployed)) != EXIT_DONE)
        return status;
    qsort(m->claims, m->count, sizeof *m->claims, compare_claims);
    for (size_t i = 0, end; i < m->count; i = end) {
        for (end = i + 1; end < m->count; end++)
            if (compare_names(m->claims[i].host, m->claims[end].host) != 0)
                break;
        if (settle_name(m, &m->claims[i], end - i) != EXIT_DONE)
            status = EXIT_COULD_NOT;
    }
    drop_ignored(m);
    qsort(m->claims, m->count, sizeof *m->claims, compare_hosts);
    for (size_t i = 0; i < m->count; i++)
        if (kept == 0 || strcmp(m->claims[kept - 1].host, m->claims[i].host) != 0)
            m->claims[kept++] = m->claims[i];
    m->count = kept;
    return status;
}

/* ---- the forms ------------------------------------------------------------------------- */

static void write_haproxy(const struct map *m, struct str *out)
{
    for (size_t i = 0; i < m->count; i++)
        str_append_format(out, "%s %s\n", m->claims[i].host, m->shards[m->claims[i].shard].name);
}

static bool has_port(const char *host)
{
    const char *colon = strrchr(host, ':');

    return colon != NULL && strchr(colon, ']') == NULL;
}

static void write_nginx_hosts(const struct map *m, bool with_port, struct str *out)
{
    for (size_t i = 0; i < m->count; i++)
        if (has_port(m->claims[i].host) == with_port)
            str_append_format(out, "    \"%s\" %s;\n", m->claims[i].host,
                              m->shards[m->claims[i].shard].name);
    str_append_text(out, "}\n");
}

/* A port in a client's Host counts only if a site has it. */
static void write_nginx(const struct map *m, struct str *out)
{
    str_append_text(out, "map $host $sitemapd_shard_of_host {\n");
    write_nginx_hosts(m, false, out);
    str_append_text(out, "map $http_host $sitemapd_shard {\n"
                         "    default $sitemapd_shard_of_host;\n");
    write_nginx_hosts(m, true, out);
}

/* A domain with "*" at its end applies after all those without one. */
static void write_envoy(const struct map *m, struct str *out)
{
    str_append_text(out, "virtual_hosts:\n");
    for (unsigned shard = 0; shard < m->shard_count; shard++) {
        const char *name = m->shards[shard].name;
        bool any = false;

        for (size_t i = 0; i < m->count; i++) {
            if (m->claims[i].shard != shard)
                continue;
            if (!any)
                str_append_format(out, "- name: \"%s\"\n  domains:\n", name);
            str_append_format(out, "  - \"%s\"\n", m->claims[i].host);
            if (!has_port(m->claims[i].host))
                str_append_format(out, "  - \"%s:*\"\n", m->claims[i].host);
            any = true;
        }
        if (any)
            str_append_format(out,
                              "  routes:\n  - match: {prefix: \"/\"}\n    route: {cluster: "
                              "\"%s\"}\n",
                              name);
    }
}

/* No HTTPRoute may name an address. */
static bool is_address(const char *host)
{
    return *host == '[' || host[strspn(host, "0123456789.")] == '\0';
}

static void begin_route(const struct shard *shard, unsigned number, const char *gateway,
                        struct str *out)
{
    str_append_format(out,
                      "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n"
                      "metadata:\n  name: \"sitemapd-%s-%u\"\nspec:\n  parentRefs:\n"
                      "  - name: \"%s\"\n  rules:\n  - backendRefs:\n    - name: \"%s\"\n"
                      "      port: 8080\n  hostnames:\n",
                      shard->name, number, gateway, shard->name);
}

static void write_httproute(const struct map *m, const char *gateway, struct str *out)
{
    for (unsigned shard = 0; shard < m->shard_count; shard++) {
        unsigned count = 0;

        for (size_t i = 0; i < m->count; i++) {
            if (m->claims[i].shard != shard || is_address(m->claims[i].host))
                continue;
            if (count++ % ROUTE_HOSTS_MAX == 0)
                begin_route(&m->shards[shard], (count - 1) / ROUTE_HOSTS_MAX + 1, gateway, out);
            str_append_format(out, "  - \"%s\"\n", m->claims[i].host);
        }
    }
}

static bool is_kubernetes_name(const char *name)
{
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0' && *name != '-' &&
           *name != '\0' && name[strlen(name) - 1] != '-';
}

static int validate_names(const struct map *m, enum format format, const char *gateway)
{
    if (format != FORMAT_HTTPROUTE)
        return EXIT_DONE;
    if (!is_kubernetes_name(gateway))
        return cli_misuse("--gateway", "\"%.100s\" is not the name of a Kubernetes object",
                          gateway);
    for (size_t i = 0; i < m->shard_count; i++)
        if (!is_kubernetes_name(m->shards[i].name))
            return cli_misuse("--server",
                              "%s is not the name of a Kubernetes service: write NAME=URL",
                              m->shards[i].name);
    return EXIT_DONE;
}

static void write_map(const struct map *m, enum format format, const char *gateway, struct str *out)
{
    if (format == FORMAT_HAPROXY)
        write_haproxy(m, out);
    else if (format == FORMAT_NGINX)
        write_nginx(m, out);
    else if (format == FORMAT_ENVOY)
        write_envoy(m, out);
    else
        write_httproute(m, gateway, out);
}

/* ---- comparing ------------------------------------------------------------------------- */

/* Lines without comments, empty lines and extra white space. NUL-terminated; `at` points into
 * `text`. */
struct lines {
    struct str text;
    const char **at; /* owned */
    size_t count;
    bool failed;
};

static void add_line(struct lines *l, const char *line)
{
    size_t begin = l->text.len;

    line += strspn(line, " \t\r\n");
    if (*line == '\0' || *line == '#')
        return;
    while (*line != '\0') {
        size_t word = strcspn(line, " \t\r\n");

        if (l->text.len > begin)
            str_append_char(&l->text, ' ');
        str_append(&l->text, line, word);
        line += word;
        line += strspn(line, " \t\r\n");
    }
    str_append_char(&l->text, '\0');
    l->count++;
}

static void end_lines(struct lines *l)
{
    const char *text = str_text(&l->text);

    l->at = calloc(l->count + 1, sizeof *l->at);
    l->failed |= l->at == NULL || l->text.failed;
    for (size_t i = 0; !l->failed && i < l->count; text += strlen(text) + 1)
        l->at[i++] = text;
}

static void lines_done(struct lines *l)
{
    str_done(&l->text);
    free(l->at);
}

static bool read_lines(FILE *from, struct lines *out)
{
    char line[LINE_BYTES_MAX];
    size_t most = 4 * (size_t)HOSTS_MAX;

    while (fgets(line, sizeof line, from) != NULL && out->count < most)
        add_line(out, line);
    bool whole = feof(from) != 0 && ferror(from) == 0;

    end_lines(out);
    return whole;
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void print_difference(const char *why, const char *line, size_t *printed)
{
    if ((*printed)++ >= 100) /* nobody reads more */
        return;
    fputs(why, stdout);
    cli_print_escaped(stdout, line);
    putchar('\n');
}

/* Reports the differing lines, or, if the order matters, that only the order differs. Returns the
 * number of differences. */
static size_t differ(struct lines *wanted, struct lines *found, bool ordered)
{
    bool same_order = wanted->count == found->count;
    size_t printed = 0, w = 0, f = 0;

    for (size_t i = 0; same_order && i < wanted->count; i++)
        same_order = strcmp(wanted->at[i], found->at[i]) == 0;
    if (same_order)
        return 0;
    qsort(wanted->at, wanted->count, sizeof *wanted->at, compare_lines);
    qsort(found->at, found->count, sizeof *found->at, compare_lines);
    while (w < wanted->count || f < found->count) {
        int order = w == wanted->count  ? 1
                    : f == found->count ? -1
                                        : strcmp(wanted->at[w], found->at[f]);
        if (order < 0)
            print_difference("missing: ", wanted->at[w], &printed);
        else if (order > 0)
            print_difference("not in the catalogues: ", found->at[f], &printed);
        w += order <= 0;
        f += order >= 0;
    }
    if (printed == 0 && ordered)
        print_difference("lines are in another order", "", &printed);
    return printed;
}

static int check_file(const char *name, const struct str *map, bool ordered)
{
    struct lines wanted = {.text = STR_INIT}, found = {.text = STR_INIT};
    FILE *file = fopen(name, "re");
    FILE *own = map->len > 0 ? fmemopen(map->data, map->len, "r") : NULL;
    int status = EXIT_DONE;

    if (file == NULL)
        status = cli_fail(name, "%s", strerror(errno));
    else if ((own != NULL && !read_lines(own, &wanted)) || wanted.failed)
        status = cli_fail(name, "out of memory");
    else if (!read_lines(file, &found) || found.failed)
        status = cli_fail(name, "cannot be read completely");
    if (status == EXIT_DONE) {
        size_t count = differ(&wanted, &found, ordered);

        if (count > 0)
            status = cli_fail(name, "%zu %s from the servers' sites: deploy a new map", count,
                              plural(count, "line differs", "lines differ"));
    }
    if (file != NULL)
        fclose(file);
    if (own != NULL)
        fclose(own);
    lines_done(&wanted);
    lines_done(&found);
    return status;
}

/* ---- the command ----------------------------------------------------------------------- */

static int read_format(const struct cli *cli, enum format *out)
{
    const char *word = arguments_value(&cli->arguments, "--format");

    *out = FORMAT_HAPROXY;
    for (int i = 0; word != NULL && i < FORMAT_COUNT; i++)
        if (strcmp(word, format_words[i]) == 0) {
            *out = (enum format)i;
            word = NULL;
        }
    return word == NULL ? EXIT_DONE
                        : cli_misuse("--format", "must be haproxy, nginx, envoy or httproute");
}

int command_shard_map(struct cli *cli)
{
    const char *file = cli->arguments.word_count > 0 ? cli->arguments.words[0] : NULL;
    const char *gateway = arguments_value(&cli->arguments, "--gateway");
    bool checks = arguments_has(&cli->arguments, "--check");
    enum format format;
    struct map map = {0};
    struct str text = STR_INIT;
    int status = read_format(cli, &format);

    if (status != EXIT_DONE)
        return status;
    if (checks && file == NULL)
        return cli_misuse("--check", "needs the FILE that is deployed");
    if (gateway == NULL)
        gateway = "sitemapd";
    status = shards_open(cli, &map.shards, &map.shard_count);
    if (status == EXIT_DONE)
        status = validate_names(&map, format, gateway);
    map.without_ports = format == FORMAT_HTTPROUTE;
    for (unsigned i = 0; i < map.shard_count && status == EXIT_DONE; i++)
        status = read_sites(&map, i);
    if (status == EXIT_DONE)
        status = settle(&map, file);
    if (status == EXIT_DONE) {
        write_map(&map, format, gateway, &text);
        if (text.failed)
            status = cli_fail("shard map", "out of memory");
        else if (checks)
            status = check_file(file, &text, format >= FORMAT_ENVOY);
        else
            fputs(str_text(&text), stdout);
    }
    str_done(&text);
    free(map.claims);
    shards_close(map.shards, map.shard_count);
    return status;
}
