/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Logs the state of a node, and declares the configuration once the node has joined. */
#include "server/shared_node.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/api/forward.h"
#include "server/api/handlers/handlers.h"
#include "server/base/clock.h"
#include "server/base/str.h"
#include "server/base/text.h"
#include "server/base/thread.h"
#include "server/configured.h"
#include "server/crypto/token.h"
#include "server/log/log.h"
#include "server/sources/remote/remote.h"

#define LOOK_MS       1000
#define SAY_EACH_MS   10000 /* folders may appear and disappear */
#define RETRY_MOST_MS 60000
#define DIGEST_CHARS  16
#define SILENT_MS     30000 /* nodes report every ten seconds */
#define REPEAT_MS     2000  /* doubled each time */
#define EXCHANGE_MS   5000
#define WRITER_LEAD   "writer"

struct shared_node {
    struct catalogue *catalogue;
    struct forward *forward; /* NULL: this file does not set its target */
    struct thread thread;
    pthread_mutex_t lock; /* guards the members below */
    struct config *config;
    bool declared;
    /* Only for the thread. */
    int64_t declare_at, say_at;
    uint32_t retry_ms;
    struct shared_state logged; /* the state that was logged last */
    bool logged_any, logged_synchronous, was_synchronous;
    int64_t repeat_at, repeat_ms; /* while PostgreSQL is away: the error may have changed by then */
    char away_said[512];
    bool is_far, leads_writes;
    int64_t leader_silent_ms;
    struct forward_target target;
};

/* ---- the report of this node --------------------------------------------------------------- */

static void add_text(struct token_digest *digest, const char *text)
{
    if (text != NULL)
        token_digest_add(digest, text, strlen(text));
    token_digest_add(digest, "", 1);
}

static void add_list(struct token_digest *digest, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        add_text(digest, texts[i]);
    add_text(digest, NULL);
}

/* Appends a digest of the settings that all nodes should agree on: sites, tokens, sources. */
static void append_digest(struct str *out, const struct config *config)
{
    struct token_digest *digest = token_digest_new();
    uint8_t sha256[32] = {0};
    char hex[DIGEST_CHARS + 1];
    char more[64];

    if (digest == NULL)
        return;
    for (size_t i = 0; i < config->site_count; i++) {
        const struct config_site *site = &config->sites[i];
        snprintf(more, sizeof more, "%d %d %" PRIu32, site->robots, site->check, site->max_indexes);
        add_text(digest, site->origin);
        add_text(digest, more);
        add_text(digest, site->page_pattern);
        add_list(digest, site->indexes, site->index_count);
        add_list(digest, site->cross_hosts, site->cross_host_count);
        add_list(digest, site->host_aliases, site->host_alias_count);
        add_text(digest, site->indexnow_key);
        add_text(digest, site->indexnow_endpoint);
        for (size_t k = 0; k < site->alias_count; k++) {
            add_text(digest, site->aliases[k].from);
            add_text(digest, site->aliases[k].to);
        }
    }
    for (size_t i = 0; i < config->token_count; i++)
        add_text(digest, config->tokens[i].named.name);
    for (size_t i = 0; i < config->source_count; i++) {
        const struct config_source *source = &config->sources[i];
        add_text(digest, source->named.name);
        add_text(digest, source->is.url != NULL ? source->is.url : source->is.upstream);
        add_text(digest, source->is.index);
        add_text(digest, source->is.serve ? "serve" : "");
        add_text(digest, config_source_splits(source) ? "split" : "");
        for (size_t k = 0; source->is.upstream != NULL && k < source->split_count; k++)
            add_text(digest, source->is.split[k]);
    }
    token_digest_end(digest, sha256);
    str_append_format(out, "%s\"configuration\":\"", out->len > 1 ? "," : "");
    hex_write(hex, sha256, DIGEST_CHARS / 2);
    str_append_format(out, "%s\"", hex);
}

/* The node that leads the polls must know the upstreams: a node leaves the polls to one that has
 * more of them. */
static const char upstreams_key[] = "\"upstreams\":";

static size_t count_upstreams(const struct config *config)
{
    size_t count = 0;

    for (size_t i = 0; i < config->source_count; i++)
        count += config->sources[i].is.upstream != NULL;
    return count;
}

struct wanting {
    struct shared_state own;
    const char *source;
    bool has_reported, wanted;
};

static void record_wanted(void *context, const char *name, size_t len)
{
    struct wanting *w = context;

    w->wanted |= strlen(w->source) == len && memcmp(name, w->source, len) == 0;
}

static void record_wanting(void *context, const struct shared_member *member)
{
    struct wanting *w = context;

    w->has_reported = true;
    if (strcmp(member->name, w->own.node) != 0)
        w->wanted |= !nodes_read_names(member->state, "remotes", record_wanted, w);
}

bool shared_node_others_want(struct catalogue *c, const char *source)
{
    struct wanting w = {.source = source};

    if (!catalogue_shared_state(c, &w.own))
        return false;
    catalogue_shared_members(c, record_wanting, &w);
    return w.wanted || !w.has_reported;
}

static void record_upstreams(void *context, const struct shared_member *member)
{
    const char *at = strstr(member->state, upstreams_key);
    size_t *most = context;
    size_t theirs = at != NULL ? strtoul(at + strlen(upstreams_key), NULL, 10) : 0;

    if (member->silent_ms < SILENT_MS && theirs > *most)
        *most = theirs;
}

/* Before the sites are declared, the results of a poll would belong to no site. */
static void update_poll_lead(struct shared_node *n)
{
    size_t most = 0;

    catalogue_shared_members(n->catalogue, record_upstreams, &most);
    catalogue_lead_leave(n->catalogue, REMOTE_LEAD,
                         !n->declared || most > count_upstreams(n->config));
}

/* ---- which node applies the writes
 *
 * One of the nodes that are near PostgreSQL and advertise an address leads the writes (by a lease),
 * and reports that. A node that is far forwards its writes to the leader as soon as it knows it. If
 * the leader dies, forwarding fails until another node reports that it leads. The shortest of the
 * last round trips decides what is near and what is far. */

#define FAR_US  5000
#define NEAR_US 4000 /* a far node is near again below this */

static void record_leader(void *context, const struct shared_member *member)
{
    struct shared_node *n = context;
    struct forward_target *to = &n->target;
    char says[16], origin[FORWARD_ORIGIN_SIZE];

    nodes_read_text(member->state, WRITER_LEAD, says, sizeof says);
    nodes_read_text(member->state, "advertise", origin, sizeof origin);
    if (says[0] == '\0' || origin[0] == '\0' || member->silent_ms >= SHARED_SILENT_MS ||
        /* our own report, which may be some seconds old */
        strcmp(member->name, n->logged.node) == 0 ||
        (to->why != FORWARD_NOT && member->silent_ms >= n->leader_silent_ms))
        return;
    n->leader_silent_ms = member->silent_ms;
    to->why = FORWARD_FAR;
    snprintf(to->origin, sizeof to->origin, "%s", origin);
    snprintf(to->node, sizeof to->node, "%s", member->name);
}

static void report_target(const struct forward_target *was, const struct forward_target *now,
                          int64_t trip_us)
{
    if (now->why != FORWARD_NOT)
        log_event(LOG_LEVEL_INFO, "forwarding",
                  "PostgreSQL is %.1f ms away: writes are forwarded to node %s at %s",
                  (double)trip_us / 1000, now->node, now->origin);
    else if (was->why != FORWARD_NOT)
        log_event(LOG_LEVEL_INFO, "forwarding",
                  "writes are applied by this node: PostgreSQL is %.1f ms away%s",
                  (double)trip_us / 1000,
                  trip_us > NEAR_US ? ", but no node near it accepts forwarded writes" : "");
}

static void aim_writes(struct shared_node *n, const struct shared_state *state)
{
    const struct forward_target was = n->target;
    bool led = n->leads_writes, may_lead = n->config->shared_advertise != NULL;

    n->is_far = state->trip_us > (n->is_far ? NEAR_US : FAR_US);
    catalogue_lead_leave(n->catalogue, WRITER_LEAD, n->is_far || !may_lead);
    n->leads_writes =
        may_lead && !n->is_far && state->trip_us > 0 && catalogue_leads(n->catalogue, WRITER_LEAD);
    if (n->leads_writes != led)
        n->say_at = 0;
    if (n->forward == NULL)
        return;
    n->target = (struct forward_target){FORWARD_NOT, "", ""};
    if (n->is_far && state->phase == SHARED_JOINED)
        catalogue_shared_members(n->catalogue, record_leader, n);
    if (n->target.why == was.why && strcmp(n->target.origin, was.origin) == 0)
        return;
    report_target(&was, &n->target, state->trip_us);
    forward_aim(n->forward, &n->target);
}

static bool is_missing(const struct config_source *source)
{
    struct stat found;
    return source->is.directory != NULL &&
           (stat(source->is.directory, &found) != 0 || !S_ISDIR(found.st_mode));
}

static void publish_sections(struct shared_node *n, const struct config *config)
{
    struct str out = STR_INIT;
    size_t most = config->site_count + config->token_count + config->source_count + 1, count = 0;
    const char **names = calloc(most, sizeof *names);
    struct shared_state state;

    if (names == NULL)
        return;
    str_append_char(&out, '{');
    append_digest(&out, config);
    if (config->shared_advertise != NULL) {
        str_append_text(&out, ",\"advertise\":");
        str_append_json_text(&out, config->shared_advertise);
    }
    if (n->leads_writes)
        str_append_text(&out, ",\"" WRITER_LEAD "\":\"leads\"");
    if (catalogue_shared_state(n->catalogue, &state) && state.refused_ms > 0)
        str_append_json_member(&out, "refused", state.refused_trouble);
    str_append_format(&out, ",%s%zu", upstreams_key, count_upstreams(config));
    for (size_t i = 0; i < config->source_count; i++)
        if (is_missing(&config->sources[i]))
            names[count++] = config->sources[i].named.name;
    nodes_say_names(&out, "without", names, count);
    count = 0;
    for (size_t i = 0; i < config->source_count; i++)
        if (config->sources[i].is.upstream != NULL)
            names[count++] = config->sources[i].named.name;
    nodes_say_names(&out, "remotes", names, count);
    for (count = 0; count < config->token_count; count++)
        names[count] = config->tokens[count].named.name;
    nodes_say_names(&out, "tokens", names, count);
    for (count = 0; count < config->site_count; count++)
        names[count] = config->sites[count].origin;
    nodes_say_names(&out, "sites", names, count);
    str_append_char(&out, '}');
    if (!out.failed)
        catalogue_shared_say(n->catalogue, str_text(&out));
    str_done(&out);
    free(names);
}

/* ---- log lines ----------------------------------------------------------------------------- */

static void report_phase(const struct shared_node *n, const struct shared_state *now)
{
    switch (now->phase) {
    case SHARED_JOINING:
        log_event(LOG_LEVEL_INFO, "shared-joining",
                  "node %s has no catalogue yet and is copying the shared catalogue", now->node);
        break;
    case SHARED_JOINED:
        log_event(LOG_LEVEL_INFO, "shared-joined", "node %s of catalogue %s, at record %" PRIu64,
                  now->node, now->epoch, now->applied);
        break;
    case SHARED_LEFT:
        log_event(LOG_LEVEL_ERROR, "shared-diverged",
                  "%s. This node serves its old pages, %s, and is copying the shared catalogue "
                  "again",
                  now->diverged,
                  /* not `trouble`: it may already be about the first copy */
                  nodes_writes_word(now));
        break;
    case SHARED_TOO_OLD:
        log_event(
            LOG_LEVEL_ERROR, "shared-upgrade-needed",
            "the other nodes run a newer release, whose catalogue this one cannot apply: upgrade "
            "this node. Until then it serves its old pages and %s",
            nodes_writes_word(now));
        break;
    case SHARED_ALONE:
        break;
    }
    (void)n;
}

static const char *log_of(const struct shared_state *state)
{
    return state->followed != NULL ? "the followed node" : "PostgreSQL";
}

/* A server that stops first shows up as a lost connection; only the next try reports why it accepts
 * none. */
static void report_away(struct shared_node *n, const struct shared_state *now, bool was_away)
{
    int64_t now_ms = clock_now_ms();

    if (!was_away)
        n->repeat_ms = REPEAT_MS / 2;
    else if (now_ms < n->repeat_at || strcmp(now->said, n->away_said) == 0)
        return;
    log_event(LOG_LEVEL_ERROR, "shared-away", "%s %s failed: %s. %s until a retry succeeds",
              strcmp(now->trouble, SHARED_IS_LOCKED) == 0 ? "requests to" : "connection to",
              log_of(now), now->said[0] != '\0' ? now->said : "it did not answer",
              now->phase == SHARED_JOINING
                  ? "This node has no catalogue yet and serves nothing"
                  : "Pages are served; writes get 503 (shared-unavailable)");
    memcpy(n->away_said, now->said, sizeof n->away_said);
    n->repeat_ms *= 2;
    n->repeat_at = now_ms + n->repeat_ms;
}

static void report_writes(const struct shared_node *n, const struct shared_state *now)
{
    bool refused = n->logged_any && n->logged.refused_ms > 0;
    bool waited = n->logged_any && n->logged.waiting_ms > SHARED_WAITING_MS;

    if (now->refused_ms > 0 && !refused)
        log_event(LOG_LEVEL_ERROR, "shared-refused", "%s: %s. Pages are served; writes get 503",
                  now->followed != NULL ? "the followed node cannot write"
                                        : "PostgreSQL rejects the writes of this node",
                  now->refused_said);
    if (now->refused_ms == 0 && refused)
        log_event(LOG_LEVEL_INFO, "shared-accepted", "%s again",
                  now->followed != NULL ? "the followed node can write"
                                        : "PostgreSQL accepts the writes of this node");
    if (now->waiting_ms > SHARED_WAITING_MS && !waited)
        log_event(LOG_LEVEL_ERROR, "shared-standby-missing",
                  "timeout: commits of PostgreSQL wait for a synchronous standby that does not "
                  "answer. Pages are served; writes get 503 or 504 until the standby is back or "
                  "synchronous_standby_names is changed");
    if (now->waiting_ms <= SHARED_WAITING_MS && waited && now->away_ms == 0)
        log_event(LOG_LEVEL_INFO, "shared-standby-back",
                  "commits of PostgreSQL no longer wait for a standby");
}

static void report_failing(const struct shared_node *n, const struct shared_state *now)
{
    const struct {
        const char *event, *what;
        const struct shared_failing *is, *was;
    } all[] = {
        {"shared-report-failed",
         "this node cannot report to the other nodes, which consider it down; it does not poll or "
         "send notifications",
         &now->report, &n->logged.report},
        {"shared-snapshot-failed",
         "this node cannot store a snapshot or trim the log, which grows in PostgreSQL",
         &now->snapshot, &n->logged.snapshot},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (now->away_ms == 0 && all[i].is->ms > SHARED_FAILING_MS &&
            !(n->logged_any && all[i].was->ms > SHARED_FAILING_MS))
            log_event(LOG_LEVEL_ERROR, all[i].event, "%s: %s", all[i].what,
                      all[i].is->said[0] != '\0' ? all[i].is->said : "unknown reason");
}

static void report_changes(struct shared_node *n, const struct shared_state *now)
{
    bool away = now->away_ms > 0, was_away = n->logged_any && n->logged.away_ms > 0;
    bool replaced = now->replaced != n->logged.replaced;

    /* The node may have left and joined again since the last check. */
    if (replaced && n->logged.phase != SHARED_LEFT)
        log_event(LOG_LEVEL_ERROR, "shared-diverged",
                  "%s. This node's file was replaced by a copy of the shared catalogue",
                  now->diverged);
    if (replaced && now->kept[0] != '\0')
        log_event(LOG_LEVEL_ERROR, "shared-diverged", "%s", now->kept);
    if (!n->logged_any || now->phase != n->logged.phase || replaced)
        report_phase(n, now);
    report_writes(n, now);
    report_failing(n, now);
    if (away)
        report_away(n, now, was_away);
    if (!away && was_away)
        log_event(LOG_LEVEL_INFO, "shared-back", "%s answers again; at record %" PRIu64,
                  log_of(now), now->applied);
    if (now->differs[0] != '\0' && !(n->logged_any && n->logged.differs[0] != '\0'))
        log_event(LOG_LEVEL_ERROR, "shared-rows-differ",
                  "rows of this node's catalogue differ from those of %s. Find out which one is "
                  "wrong, stop it, delete its catalogue and start it",
                  now->differs);
    if (now->namesake_ms > SHARED_NAMESAKE_MS &&
        !(n->logged_any && n->logged.namesake_ms > SHARED_NAMESAKE_MS))
        log_event(LOG_LEVEL_ERROR, "shared-name-taken",
                  "conflict: another node has the same name, %s. Set a different one (node in "
                  "[shared]); until then the nodes cannot be distinguished",
                  now->node);
    if (now->upgrade_pending && !(n->logged_any && n->logged.upgrade_pending))
        log_event(LOG_LEVEL_WARNING, "shared-upgrade-pending",
                  "the catalogue has not been upgraded to this release: upgrade all nodes, or run "
                  "`sitemapd share upgrade` where upgrade = manual. Until then this node rejects "
                  "writes");
    if (now->schema_before != 0 && !(n->logged_any && n->logged.schema == now->schema))
        log_event(LOG_LEVEL_INFO, "shared-upgraded",
                  "the catalogue was upgraded from schema %d to schema %d", now->schema_before,
                  now->schema);
    /* Also later: after a failover the new primary often has no standby. */
    if (now->asked) {
        if (!now->synchronous && (!n->logged_synchronous || n->was_synchronous))
            log_event(LOG_LEVEL_WARNING, "shared-not-synchronous",
                      "PostgreSQL has no synchronous standby: if its machine is lost, the last "
                      "acknowledged writes may be lost too. Set synchronous_standby_names");
        n->logged_synchronous = true;
        n->was_synchronous = now->synchronous;
    }
    n->logged = *now;
    n->logged_any = true;
}

/* ---- the thread ---------------------------------------------------------------------------- */

/* Reports to the other nodes what this node is about to declare. A node that finds a site in the
 * registry reads these reports, and must not release a site that another node declares. */
static bool announce(struct shared_node *n, const struct config *config)
{
    publish_sections(n, config);
    if (catalogue_shared_exchange(n->catalogue, EXCHANGE_MS))
        return true;
    log_failure("configuration", "timeout: PostgreSQL did not answer in time");
    return false;
}

/* Runs under `lock`, so that a reload waits for it. */
static void declare(struct shared_node *n, int64_t now)
{
    log_failures_as("configuration-not-applied");
    n->declared = announce(n, n->config) && bootstrap_sites(n->catalogue, n->config, true) &&
                  bootstrap_token(n->catalogue, n->config);
    if (n->declared)
        return;
    n->retry_ms = n->retry_ms == 0 ? LOOK_MS : n->retry_ms * 2;
    if (n->retry_ms > RETRY_MOST_MS)
        n->retry_ms = RETRY_MOST_MS;
    n->declare_at = now + n->retry_ms;
}

static void check_state(struct shared_node *n)
{
    struct shared_state state;
    int64_t now = clock_now_ms();

    if (!catalogue_shared_state(n->catalogue, &state))
        return;
    if ((state.refused_ms > 0) != (n->logged.refused_ms > 0)) /* `share status` shows it */
        n->say_at = 0;
    report_changes(n, &state);
    update_poll_lead(n);
    aim_writes(n, &state);
    if (now >= n->say_at) {
        publish_sections(n, n->config);
        n->say_at = now + SAY_EACH_MS;
    }
    if (!n->declared && state.followed == NULL && state.phase == SHARED_JOINED &&
        state.away_ms == 0 && !state.upgrade_pending && state.asked && now >= n->declare_at)
        declare(n, now);
}

static void node_run(void *context)
{
    struct shared_node *n = context;
    int64_t wait_ms;

    do {
        pthread_mutex_lock(&n->lock);
        check_state(n);
        wait_ms = n->declared ? LOOK_MS : 100;
        pthread_mutex_unlock(&n->lock);
    } while (thread_wait(&n->thread, wait_ms));
}

struct shared_node *shared_node_start(struct catalogue *c, struct config *config,
                                      struct forward *forward)
{
    struct shared_node *n = calloc(1, sizeof *n);

    if (n == NULL)
        return NULL;
    n->catalogue = c;
    /* Without the secret a node waits until it has read the change from PostgreSQL, and its writes
     * would take longer. */
    bool aims = strcmp(config->shared_forward, "auto") == 0 && config->shared_follow == NULL &&
                config->peer_token_file != NULL;
    n->forward = aims ? forward : NULL;
    n->config = config_ref(config);
    update_poll_lead(n);
    pthread_mutex_init(&n->lock, NULL);
    if (thread_start(&n->thread, "node", node_run, n))
        return n;
    config_unref(n->config);
    free(n);
    return NULL;
}

bool shared_node_reconfigure(struct shared_node *n, struct config *config)
{
    pthread_mutex_lock(&n->lock);
    bool good =
        !n->declared || (announce(n, config) && bootstrap_sites(n->catalogue, config, false));
    if (good) {
        config_unref(n->config);
        n->config = config_ref(config);
    }
    n->say_at = 0;
    pthread_mutex_unlock(&n->lock);
    return good;
}

void shared_node_stop(struct shared_node *n)
{
    if (n == NULL)
        return;
    thread_stop(&n->thread);
    config_unref(n->config);
    pthread_mutex_destroy(&n->lock);
    free(n);
}
