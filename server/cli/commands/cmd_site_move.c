/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* `site move`: moves a site from one server's catalogue to another while crawlers read it.
 *
 *     FROM: normal  -> leaving (frozen) ------------------------> removed
 *     TO:   nothing ------------> arriving (frozen, a copy) ------------------> normal
 *                                            | the map is switched here |
 *
 * While both have the site, they serve the same bytes and neither changes, so proxies may switch to
 * the new map at any time. The only state between two runs is that of the servers (`frozen_by`): if
 * a run was killed, run the command again, and it continues. Until FROM removes the site, --undo
 * reverts the move: it first thaws the site on FROM, so that the map prefers it again, and removes
 * the copy after the map was switched back. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/text.h"
#include "server/cli/backend/api.h"
#include "server/cli/commands/shards.h"
#include "server/cli/output.h"

struct side {
    struct shard shard;
    json_t *site; /* owned; NULL: no site with this origin */
};

struct move {
    struct cli *cli;
    char origin[LOC_MAX_CHARS + 1];
    struct side from, to;
};

static const char *frozen_by(const struct side *side)
{
    return member_text(side->site, "frozen_by");
}

static bool is(const struct side *side, const char *how)
{
    return side->site != NULL && strcmp(frozen_by(side), how) == 0;
}

/* The name as in NAME=URL, else host and port, since two servers may share a host. */
static const char *name_of(const struct side *side)
{
    const struct url *origin = &side->shard.server->origin;
    const char *host = origin->text + origin->host_at, *name = side->shard.name;

    return strlen(name) == origin->host_len && strncmp(name, host, origin->host_len) == 0 ? host
                                                                                          : name;
}

/* ---- asking ---------------------------------------------------------------------------- */

/* Appends "/v1/sites/{id}" and `more`. */
static void name_site(const struct side *side, const char *more, struct str *out)
{
    str_append_text(out, "/v1/sites");
    target_segment(out, member_text(side->site, "id"));
    str_append_text(out, more);
}

static int read_side(struct move *m, struct side *side)
{
    json_t *sites = api_get_all(side->shard.server, "/v1/sites", "sites"), *site;
    size_t i;

    json_decref(side->site);
    side->site = NULL;
    json_array_foreach(sites, i, site)
    {
        if (strcmp(member_text(site, "origin"), m->origin) == 0)
            side->site = json_incref(site);
    }
    json_decref(sites);
    return sites != NULL ? EXIT_DONE : EXIT_COULD_NOT;
}

static int read_sides(struct move *m)
{
    int status = read_side(m, &m->from);

    return status == EXIT_DONE ? read_side(m, &m->to) : status;
}

/* Sends a change with `body` (stolen; may be NULL). */
static int change(struct side *side, const char *method, const char *query, json_t *body)
{
    struct backend *s = side->shard.server;
    struct str target = STR_INIT;
    json_t *answer = NULL;

    name_site(side, query, &target);
    bool good =
        !target.failed && api_call(s, method, str_text(&target), body, &answer) && api_is_good(s);
    str_done(&target);
    json_decref(body);
    if (!good)
        return api_report(s, answer);
    json_decref(answer);
    return EXIT_DONE;
}

static int freeze(struct side *side)
{
    return change(side, "PATCH", "", json_pack("{s:b}", "leaving", 1));
}

static int thaw(struct side *side)
{
    return change(side, "PATCH", "", json_pack("{s:b}", "frozen", 0));
}

/* ---- comparison ------------------------------------------------------------------------ */

static json_t *read_lists(struct move *m, struct side *side, const char *path, const char *member)
{
    struct str target = STR_INIT;

    str_append_text(&target, path);
    target_add(&target, "site", m->origin);
    json_t *lists =
        target.failed ? NULL : api_get_all(side->shard.server, str_text(&target), member);
    str_done(&target);
    return lists;
}

/* A tag that one side does not know yet proves nothing. */
static bool are_equal(const json_t *a, const json_t *b, const char *member)
{
    const json_t *x = json_object_get(a, member), *y = json_object_get(b, member);
    bool is_tag = strncmp(member, "etag", 4) == 0;

    return json_equal(x, y) || (is_tag && (json_is_null(x) || json_is_null(y)));
}

static bool have_equal_pages(const json_t *a, const json_t *b)
{
    static const char *const members[] = {"number",     "url",  "entries", "bytes",
                                          "changed_at", "etag", "etag_gz"};
    const json_t *x = json_object_get(a, "pages"), *y = json_object_get(b, "pages");

    if (json_array_size(x) != json_array_size(y))
        return false;
    for (size_t i = 0; i < json_array_size(x); i++)
        for (size_t k = 0; k < sizeof members / sizeof *members; k++)
            if (!are_equal(json_array_get(x, i), json_array_get(y, i), members[k]))
                return false;
    return true;
}

static bool have_equal_lists(const json_t *a, const json_t *b, uint64_t *entries)
{
    static const char *const members[] = {"url", "page_pattern", "entries", "bytes", "changed_at"};

    if (json_array_size(a) != json_array_size(b))
        return false;
    for (size_t i = 0; i < json_array_size(a); i++) {
        const json_t *x = json_array_get(a, i), *y = json_array_get(b, i);

        for (size_t k = 0; k < sizeof members / sizeof *members; k++)
            if (!are_equal(x, y, members[k]))
                return false;
        if (!have_equal_pages(x, y))
            return false;
        *entries += member_number(x, "entries");
    }
    return true;
}

/* Compares the lists of both sides, and counts the entries. */
static int compare(struct move *m, uint64_t *entries)
{
    static const char *const lists[][2] = {{"/v1/indexes", "indexes"}, {"/v1/urlsets", "urlsets"}};
    int status = EXIT_DONE;

    *entries = 0;
    for (size_t i = 0; i < 2 && status == EXIT_DONE; i++) {
        json_t *from = read_lists(m, &m->from, lists[i][0], lists[i][1]);
        json_t *to = from != NULL ? read_lists(m, &m->to, lists[i][0], lists[i][1]) : NULL;

        if (to == NULL)
            status = EXIT_COULD_NOT;
        else if (!have_equal_lists(from, to, entries))
            status = cli_fail(m->origin,
                              "the copy on %s differs from the site on %s: run site move with "
                              "--undo, then again",
                              name_of(&m->to), name_of(&m->from));
        json_decref(from);
        json_decref(to);
    }
    return status;
}

static int remove_site(struct side *side, uint64_t entries)
{
    char query[64];

    snprintf(query, sizeof query, "?max_removed=%" PRIu64, entries);
    return change(side, "DELETE", query, NULL);
}

/* ---- copying --------------------------------------------------------------------------- */

#define LOOK_BYTES (1u << 20) /* how often to check the free space */

/* The copy of the site, in a temporary file. */
struct kept_copy {
    const char *folder;
    FILE *file;
    size_t unlooked;
    bool full; /* the disk is full, except for its reserve */
};

static int fail_to_keep(const struct kept_copy *kept)
{
    return cli_fail("site move",
                    "the copy cannot be stored in %s: %s; set TMPDIR to another folder",
                    kept->folder, kept->full ? "too little free disk space" : strerror(errno));
}

/* Opens a nameless file, so that nothing is left however the command ends. */
static int open_copy(struct kept_copy *kept)
{
    const char *folder = getenv("TMPDIR");

    kept->folder = folder != NULL && *folder != '\0' ? folder : "/var/tmp";
    int fd = file_open_nameless(kept->folder);
    kept->full = fd >= 0 && !file_has_reserve(fd);
    kept->file = fd >= 0 ? fdopen(fd, "w+") : NULL;
    if (fd >= 0 && kept->file == NULL)
        close(fd);
    return kept->file != NULL && !kept->full ? EXIT_DONE : fail_to_keep(kept);
}

static bool write_copy(void *context, const char *bytes, size_t len)
{
    struct kept_copy *kept = context;

    kept->unlooked += len;
    if (kept->unlooked >= LOOK_BYTES) {
        kept->unlooked = 0;
        kept->full = !file_has_reserve(fileno(kept->file));
    }
    return !kept->full && fwrite(bytes, 1, len, kept->file) == len;
}

static int fetch_copy(struct move *m, struct kept_copy *kept)
{
    struct backend *s = m->from.shard.server;
    struct str target = STR_INIT;
    json_t *answer = NULL;

    name_site(&m->from, "/copy", &target);
    errno = 0;
    bool good =
        !target.failed &&
        api_stream(s, str_text(&target), "application/vnd.sqlite3", write_copy, kept, &answer) &&
        api_is_good(s);
    str_done(&target);
    if (good && !kept->full && fflush(kept->file) == 0)
        return EXIT_DONE;
    if (kept->full || ferror(kept->file)) {
        json_decref(answer);
        return fail_to_keep(kept);
    }
    return api_report(s, answer);
}

static int copy(struct move *m, struct kept_copy *kept)
{
    struct backend *s = m->to.shard.server;
    const struct api_request bring = {.method = "POST",
                                      .target = "/v1/sites/import",
                                      .type = "application/vnd.sqlite3",
                                      .lines = kept->file};
    json_t *answer = NULL;
    int status = fetch_copy(m, kept);

    if (status == EXIT_DONE && (!api_send(s, &bring, &answer) || !api_is_good(s))) {
        status = api_report(s, answer);
        answer = NULL;
    }
    if (status == EXIT_DONE) {
        uint64_t entries = member_number(answer, "entries");

        printf("%s: %" PRIu64 " %s copied to %s\n", m->origin, entries,
               plural(entries, "entry", "entries"), name_of(&m->to));
        fflush(stdout);
    }
    json_decref(answer);
    return status == EXIT_DONE ? read_side(m, &m->to) : status;
}

/* ---- the other nodes of the target ------------------------------------------------------- */

#define NODES_MS 120000 /* longest wait for them: each reports every ten seconds */
#define LOOK_MS  200
#define SILENT_S 60 /* such a node is lost: a proxy does not use it */

/* The first node that has not reported that it applied record `head`; NULL: all have. */
static const char *lagging_node(const json_t *shared, uint64_t head)
{
    json_t *node;
    size_t i;

    json_array_foreach(json_object_get(shared, "nodes"), i, node)
    {
        if (strcmp(member_text(node, "name"), member_text(shared, "node")) != 0 &&
            member_number(node, "silent_seconds") < SILENT_S &&
            member_number(node, "applied") < head)
            return member_text(node, "name");
    }
    return NULL;
}

/* If several nodes share the target's catalogue, the map leads to all of them: waits until they
 * have the copy. */
static int await_nodes(struct side *to)
{
    struct backend *s = to->shard.server;
    int64_t until_ms = clock_now_ms() + NODES_MS;
    uint64_t head = 0;

    for (;;) {
        json_t *answer = NULL;

        if (!api_call(s, "GET", "/readyz", NULL, &answer) || !api_is_good(s))
            return api_report(s, answer);
        const json_t *shared = json_object_get(answer, "shared");
        if (head == 0)
            head = member_number(shared, "head");
        const char *lagging = lagging_node(shared, head);
        int status = EXIT_DONE;
        bool waits = lagging != NULL && clock_now_ms() < until_ms;

        if (lagging != NULL && !waits)
            status = cli_fail(name_of(to),
                              "node %s does not have the copy yet: nothing is lost; repeat site "
                              "move, or stop that node",
                              lagging);
        json_decref(answer);
        if (!waits)
            return status;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * CLOCK_MS_NS}, NULL);
    }
}

/* ---- the map --------------------------------------------------------------------------- */

/* EXIT_DONE if the map is switched, before this run (--finish) or by --switch. `*goes_on`: continue
 * with the next step. */
static int switch_map(struct move *m, const char *again, bool *goes_on)
{
    const char *command = arguments_value(&m->cli->arguments, "--switch");

    *goes_on = true;
    if (command != NULL) {
        fflush(stdout);
        int ended = system(command);

        if (ended == 0)
            return EXIT_DONE;
        return cli_fail("--switch",
                        "the command failed (%d): both servers have the site, and nothing is lost; "
                        "repeat site move, or add --undo",
                        WIFEXITED(ended) ? WEXITSTATUS(ended) : -1);
    }
    if (arguments_has(&m->cli->arguments, "--finish"))
        return EXIT_DONE;
    *goes_on = false;
    printf("%s: both servers have it. Deploy the map that `sitemapd shard map` prints now, then "
           "repeat the command with %s\n",
           m->origin, again);
    return EXIT_DONE;
}

/* ---- both directions ------------------------------------------------------------------- */

static int finish(struct move *m)
{
    bool goes_on;
    uint64_t entries;
    int status = compare(m, &entries);

    if (status == EXIT_DONE)
        status = await_nodes(&m->to);
    if (status == EXIT_DONE)
        status = switch_map(m, "--finish", &goes_on);
    if (status != EXIT_DONE || !goes_on)
        return status;
    status = remove_site(&m->from, entries);
    if (status == EXIT_DONE)
        status = thaw(&m->to);
    if (status == EXIT_DONE)
        printf("%s: moved to %s\n", m->origin, name_of(&m->to));
    return status;
}

/* Rejects states from which the command cannot continue. */
static int check_move(const struct move *m)
{
    const struct side *from = &m->from, *to = &m->to;

    if (from->site == NULL && to->site == NULL)
        return cli_fail(m->origin, "neither server has this site");
    if (from->site == NULL)
        return EXIT_DONE;
    if (json_is_true(json_object_get(from->site, "managed")))
        return cli_fail(
            m->origin,
            "the configuration of %s declares it: remove its section there first, and reload",
            name_of(from));
    if (*frozen_by(from) != '\0' && !is(from, "leaving"))
        return cli_fail(m->origin, "is frozen on %s (%s): thaw it first", name_of(from),
                        frozen_by(from));
    if (to->site != NULL && !is(to, "arriving"))
        return cli_fail(m->origin, "conflict: %s also has a site with this origin", name_of(to));
    if (to->site != NULL && !is(from, "leaving"))
        return cli_fail(
            m->origin,
            "an --undo did not finish: %s still has the copy; repeat the --undo, then move again",
            name_of(to));
    return EXIT_DONE;
}

static int move_on(struct move *m)
{
    struct kept_copy kept = {.file = NULL};
    int status = check_move(m);

    if (status != EXIT_DONE)
        return status;
    if (m->from.site == NULL) { /* an earlier run removed it */
        if (is(&m->to, "arriving"))
            status = thaw(&m->to);
        if (status == EXIT_DONE)
            printf("%s: is on %s\n", m->origin, name_of(&m->to));
        return status;
    }
    if (m->to.site == NULL)
        status = open_copy(&kept);
    if (status == EXIT_DONE && !is(&m->from, "leaving"))
        status = freeze(&m->from);
    if (status == EXIT_DONE && m->to.site == NULL)
        status = copy(m, &kept);
    if (kept.file != NULL)
        fclose(kept.file);
    return status == EXIT_DONE ? finish(m) : status;
}

static int undo(struct move *m)
{
    bool goes_on;
    uint64_t entries = 0;
    int status = EXIT_DONE;

    if (m->from.site == NULL)
        return cli_fail(m->origin,
                        "the move is finished: to move it back, exchange --server and --to");
    if (m->to.site != NULL && !is(&m->to, "arriving"))
        return cli_fail(m->origin,
                        "%s has a site with this origin that is not a copy made by `site move`",
                        name_of(&m->to));
    if (is(&m->from, "leaving"))
        status = thaw(&m->from);
    if (status == EXIT_DONE && m->to.site != NULL) {
        json_t *lists[] = {read_lists(m, &m->to, "/v1/indexes", "indexes"),
                           read_lists(m, &m->to, "/v1/urlsets", "urlsets")};
        size_t i;
        json_t *list;

        for (size_t k = 0; k < 2; k++) {
            json_array_foreach(lists[k], i, list) entries += member_number(list, "entries");
            if (lists[k] == NULL)
                status = EXIT_COULD_NOT;
            json_decref(lists[k]);
        }
        if (status == EXIT_DONE)
            status = switch_map(m, "--undo --finish", &goes_on);
        if (status != EXIT_DONE || !goes_on)
            return status;
        status = remove_site(&m->to, entries);
    }
    if (status == EXIT_DONE)
        printf("%s: stays on %s\n", m->origin, name_of(&m->from));
    return status;
}

static int open_sides(struct move *m)
{
    const struct arguments *a = &m->cli->arguments;
    const char *from = arguments_value(a, "--server"), *to = arguments_value(a, "--to");
    const char **files = arguments_values(a, "--token-file");
    int status = EXIT_DONE;
    size_t count = 0;

    while (files != NULL && files[count] != NULL)
        count++;
    if (from == NULL || to == NULL)
        status = cli_misuse("site move", "both servers are needed: --server FROM --to TO");
    else if (count > 2)
        status = cli_misuse("--token-file", "must be given once, or once for each server");
    else if (files == NULL)
        status = cli_fail("site move", "out of memory");
    if (status == EXIT_DONE)
        status = shard_open(m->cli, from, files[0], &m->from.shard);
    if (status == EXIT_DONE)
        status = shard_open(m->cli, to, files[count > 1], &m->to.shard);
    if (status == EXIT_DONE &&
        strcmp(m->from.shard.server->origin.text, m->to.shard.server->origin.text) == 0)
        status = cli_misuse("--to", "is the same server as --server");
    free(files);
    return status;
}

int command_site_move(struct cli *cli)
{
    struct move m = {.cli = cli};
    const char *word = cli->arguments.words[0];
    struct url origin;
    int status;

    if (url_parse_origin(word, strlen(word), &origin) != RULE_OK)
        return cli_misuse("site move",
                          "\"%.200s\" is not an origin, such as https://www.example.com", word);
    snprintf(m.origin, sizeof m.origin, "%s", origin.text);
    status = open_sides(&m);
    if (status == EXIT_DONE)
        status = read_sides(&m);
    if (status == EXIT_DONE)
        status = arguments_has(&cli->arguments, "--undo") ? undo(&m) : move_on(&m);
    json_decref(m.from.site);
    json_decref(m.to.site);
    shard_close(&m.from.shard);
    shard_close(&m.to.shard);
    return status;
}
