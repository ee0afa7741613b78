/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The state of the nodes of a shared catalogue for /readyz. */
#include "server/api/handlers/handlers.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/base/text.h"

/* A smaller lag is normal. A node that starts far behind has no duration to show yet. */
#define BEHIND_MS      5000
#define BEHIND_RECORDS 1000
#define SAID_MOST      60000u

/* ---- the reports of nodes
 * ------------------------------------------------------------------------ */

void nodes_say_names(struct str *out, const char *kind, const char *const *names, size_t count)
{
    size_t before = out->len;

    str_append_format(out, "%s\"%s\":[", out->len > 1 ? "," : "", kind);
    for (size_t i = 0; i < count && out->len < SAID_MOST; i++) {
        str_append_text(out, i > 0 ? "," : "");
        str_append_json_text(out, names[i]);
    }
    str_append_char(out, ']');
    if (out->len < SAID_MOST || out->failed)
        return;
    out->len = before; /* too many names: report none, which means any */
    str_append_format(out, "%s\"%s\":null", out->len > 1 ? "," : "", kind);
}

bool nodes_read_names(const char *said, const char *kind,
                      void (*each)(void *context, const char *name, size_t len), void *context)
{
    char key[32];
    const char *at;

    snprintf(key, sizeof key, "\"%s\":", kind);
    at = strstr(said, key);
    if (at == NULL || at[strlen(key)] != '[')
        return false;
    for (at += strlen(key); (*at == '[' || *at == ',') && at[1] == '"';) {
        const char *name = at + 2, *end = strchr(name, '"');

        if (end == NULL)
            return false;
        each(context, name, (size_t)(end - name));
        at = end + 1;
    }
    return true;
}

void nodes_read_text(const char *said, const char *kind, char *out, size_t size)
{
    char key[32];
    const char *at;

    int skip = snprintf(key, sizeof key, "\"%s\":\"", kind);
    at = strstr(said, key);
    snprintf(out, size, "%.*s", at != NULL ? (int)strcspn(at + skip, "\"") : 0,
             at != NULL ? at + skip : "");
}

/* ---- /readyz ------------------------------------------------------------------------------- */

struct reason_list {
    void (*add)(void *context, const char *code, const char *detail);
    void *context;
    const struct shared_state *state;
    char configuration[96]; /* in this node's own report; "": not yet reported */
    struct str differ, without;
    size_t differing;
};

static void add_reason(struct reason_list *t, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add_reason(struct reason_list *t, const char *code, const char *format, ...)
{
    char detail[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    t->add(t->context, code, detail);
}

static void record_own(void *context, const struct shared_member *member)
{
    struct reason_list *t = context;

    if (strcmp(member->name, t->state->node) == 0)
        nodes_read_text(member->state, "configuration", t->configuration, sizeof t->configuration);
}

struct lacking {
    struct str *out;
    const char *node;
};

static void record_lacking(void *context, const char *name, size_t len)
{
    struct lacking *l = context;

    str_append_format(l->out, "%s%s has no folder of %.*s", l->out->len > 0 ? ", " : "", l->node,
                      (int)len, name);
}

static void record_member(void *context, const struct shared_member *member)
{
    struct reason_list *t = context;
    struct lacking lacking = {&t->without, member->name};
    char theirs[96];

    if (member->silent_ms > SHARED_SILENT_MS)
        return;
    nodes_read_names(member->state, "without", record_lacking, &lacking);
    nodes_read_text(member->state, "configuration", theirs, sizeof theirs);
    if (*theirs == '\0' || *t->configuration == '\0' || strcmp(theirs, t->configuration) == 0)
        return;
    str_append_format(&t->differ, "%s%s", t->differing++ > 0 ? ", " : "", member->name);
}

/* Reports how PostgreSQL treats writes, though it can be reached. */
static void report_writes(struct reason_list *t)
{
    const struct shared_state *s = t->state;

    if (s->refused_ms > 0 && s->followed != NULL)
        add_reason(t, "shared-refused",
                   "the followed node has not been able to write for %" PRId64
                   " s: its /readyz has the reason; pages are served, writes get 503",
                   s->refused_ms / 1000);
    else if (s->refused_ms > 0)
        add_reason(t, "shared-refused",
                   "PostgreSQL has rejected the writes of this node for %" PRId64
                   " s%s%s; pages are served, writes get 503",
                   s->refused_ms / 1000, s->refused_trouble[0] != '\0' ? ": " : "",
                   s->refused_trouble);
    if (s->waiting_ms > SHARED_WAITING_MS)
        add_reason(t, "shared-standby-missing",
                   "a commit of PostgreSQL has waited for a synchronous standby for %" PRId64
                   " s: pages are served, writes wait and get 503 or 504 until one answers, or "
                   "synchronous_standby_names is changed",
                   s->waiting_ms / 1000);
}

/* Reports tasks for other nodes that fail, though PostgreSQL can be reached. */
static void report_failing(struct reason_list *t)
{
    const struct shared_failing *report = &t->state->report, *snapshot = &t->state->snapshot;

    if (report->ms > SHARED_FAILING_MS)
        add_reason(t, "shared-report-failed",
                   "this node has not been able to report to the other nodes for %" PRId64
                   " s%s%s; they consider it down, and it does not poll or send notifications",
                   report->ms / 1000, report->trouble[0] != '\0' ? ": " : "", report->trouble);
    if (snapshot->ms > SHARED_FAILING_MS)
        add_reason(
            t, "shared-snapshot-failed",
            "this node has not been able to store a snapshot or trim the log for %" PRId64
            " s%s%s; the log in PostgreSQL grows, and a node that joins may find no snapshot",
            snapshot->ms / 1000, snapshot->trouble[0] != '\0' ? ": " : "", snapshot->trouble);
}

static void report_away(struct reason_list *t, const char *code, const char *effect,
                        const char *copied)
{
    const struct shared_state *s = t->state;

    add_reason(t, code, "%s failed for %" PRId64 " s%s%s; %s%s",
               strcmp(s->trouble, SHARED_IS_LOCKED) == 0 ? "requests to PostgreSQL have"
               : s->followed != NULL                     ? "connection to the followed node has"
                                                         : "connection to PostgreSQL has",
               s->away_ms / 1000, s->trouble[0] != '\0' ? ": " : "", s->trouble, effect, copied);
}

/* Reports why this node does not have what the other nodes have. */
static void report_phase(struct reason_list *t)
{
    const struct shared_state *s = t->state;
    const char *trouble = s->trouble[0] != '\0' ? s->trouble : NULL;
    char copied[80] = "";

    if (s->fetched > 0)
        snprintf(copied, sizeof copied, "; the copy is at record %" PRIu64 " of %" PRIu64,
                 s->fetched, s->head);
    if (s->phase == SHARED_JOINING && s->away_ms > 0)
        report_away(t, "joining", "this node serves nothing yet", copied);
    else if (s->phase == SHARED_JOINING)
        add_reason(t, "joining", "%s%s",
                   trouble != NULL
                       ? trouble
                       : "this node is still fetching the catalogue; nothing is served yet",
                   copied);
    else if (s->phase == SHARED_LEFT) {
        bool copy_fails = trouble != NULL && strcmp(trouble, s->diverged) != 0;
        add_reason(t, "diverged",
                   "%s; this node is copying the shared catalogue again%s%s; until it has, it "
                   "serves the pages that it has and %s%s",
                   s->diverged[0] != '\0' ? s->diverged : "this node has diverged",
                   copy_fails ? ": " : "", copy_fails ? trouble : "", nodes_writes_word(s), copied);
    } else if (s->phase == SHARED_TOO_OLD)
        add_reason(
            t, "upgrade-needed",
            "the other nodes run a newer release, whose catalogue this one cannot apply: upgrade "
            "this node; until then it serves its old pages and %s",
            nodes_writes_word(s));
    else if (s->away_ms > 0)
        report_away(t, "shared-unavailable",
                    s->followed != NULL ? "pages are served as they were then, writes get 503"
                                        : "pages are served, writes get 503",
                    "");
    else if (s->behind_ms > BEHIND_MS || s->head > s->applied + BEHIND_RECORDS)
        add_reason(t, "shared-behind",
                   "%" PRIu64
                   " %s of other nodes have not been applied here, the first for %" PRId64 " s%s%s",
                   s->head - s->applied, plural(s->head - s->applied, "change", "changes"),
                   s->behind_ms / 1000, trouble != NULL ? ": " : "",
                   trouble != NULL ? trouble : "");
}

static void report_state(struct reason_list *t)
{
    const struct shared_state *s = t->state;

    if (s->followed != NULL && *s->followed == '\0')
        return; /* a command on a follower's file */
    report_phase(t);
    if (s->away_ms == 0) {
        report_writes(t);
        report_failing(t);
    }
    if (s->differs[0] != '\0')
        add_reason(
            t, "shared-rows-differ",
            "rows of this node's catalogue differ from those of %s, so they may serve "
            "different pages: find out which one is wrong, stop it, delete its catalogue and "
            "start it; it copies the shared catalogue",
            s->differs);
    if (s->namesake_ms > SHARED_NAMESAKE_MS)
        add_reason(
            t, "shared-name-taken",
            "conflict: another node has the same name, %s; set a different one (node in [shared])",
            s->node);
    if (s->upgrade_pending)
        add_reason(t, "upgrade-pending",
                   "upgrade pending: the shared catalogue has not been upgraded to this release: "
                   "upgrade all nodes, or run `sitemapd share upgrade` where upgrade = manual; "
                   "until then this node rejects writes");
}

const char *nodes_writes_word(const struct shared_state *s)
{
    return s->followed != NULL ? "forwards writes" : "rejects writes";
}

/* A node that has just joined serves nothing until the publisher has read its new file. */
static bool is_joining(const struct app_context *app, const struct shared_state *s)
{
    return s->joined_ns == 0 || !publisher_serves_since(app->publisher, s->joined_ns);
}

bool nodes_report_reasons(const struct app_context *app,
                          void (*add)(void *context, const char *code, const char *detail),
                          void *context)
{
    struct catalogue *c = app->catalogue;
    struct shared_state state;
    struct reason_list t = {.add = add, .context = context, .state = &state};

    if (!catalogue_shared_state(c, &state))
        return true;
    bool joining = is_joining(app, &state);
    if (joining)
        state.phase = SHARED_JOINING;
    report_state(&t);
    catalogue_shared_members(c, record_own, &t);
    catalogue_shared_members(c, record_member, &t);
    if (t.differing > 0)
        add_reason(
            &t, "configuration-differs",
            "%s: sites, tokens or sources in the configuration differ from those of this node "
            "(%s); "
            "a remote source that is missing on the node that polls is not polled",
            str_text(&t.differ), state.node);
    if (t.without.len > 0)
        add_reason(
            &t, "folder-missing",
            "%s: the folder is missing on these nodes; it is served and scanned only by nodes "
            "that have it",
            str_text(&t.without));
    str_done(&t.differ);
    str_done(&t.without);
    return !joining;
}

/* ---- for people ---------------------------------------------------------------------------- */

struct listing {
    struct str *out;
    size_t count;
};

static void append_member(void *context, const struct shared_member *member)
{
    struct listing *l = context;

    str_append_text(l->out, l->count++ > 0 ? ",{\"name\":" : "{\"name\":");
    str_append_json_text(l->out, member->name);
    str_append_json_member(l->out, "release", member->release);
    str_append_format(l->out, ",\"applied\":%" PRIu64 ",\"silent_seconds\":%" PRId64 "}",
                      member->applied, member->silent_ms / 1000);
}

void nodes_append(struct str *out, struct catalogue *c)
{
    static const char *const phases[] = {[SHARED_ALONE] = "alone",
                                         [SHARED_JOINING] = "joining",
                                         [SHARED_JOINED] = "joined",
                                         [SHARED_LEFT] = "diverged",
                                         [SHARED_TOO_OLD] = "upgrade-needed"};
    struct shared_state state;
    struct listing l = {.out = out};

    if (!catalogue_shared_state(c, &state))
        return;
    str_append_text(out, ",\"shared\":{\"node\":");
    str_append_json_text(out, state.node);
    str_append_json_member(out, "phase", phases[state.phase]);
    if (state.followed != NULL)
        str_append_json_member(out, "follows", state.followed);
    str_append_format(out,
                      ",\"applied\":%" PRIu64 ",\"head\":%" PRIu64 ",\"behind_seconds\":%" PRId64
                      ",\"reachable\":%s,\"nodes\":[",
                      state.applied, state.head, state.behind_ms / 1000,
                      state.away_ms == 0 ? "true" : "false");
    catalogue_shared_members(c, append_member, &l);
    str_append_text(out, "]}");
}
