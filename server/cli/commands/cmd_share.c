/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* `share`: one catalogue on several machines. */
#include <inttypes.h>
#include <unistd.h>

#include "server/base/text.h"
#include "server/cli/backend/api.h"
#include "server/cli/commands/commands.h"
#include "server/cli/output.h"

/* The PostgreSQL of the configuration; EXIT_DONE, or an error if none exists. */
static int read_shared(struct cli *cli)
{
    int status = session_needs_machine(cli);

    if (status == EXIT_DONE)
        status = session_read_config(cli, NULL, NULL);
    if (status == EXIT_DONE && cli->config->shared_database == NULL)
        return cli_misuse(cli->arguments.command->name,
                          "the URL of PostgreSQL is missing: set --shared URL, SITEMAPD_SHARED or "
                          "database in [shared]");
    return status;
}

static struct catalogue_shared shared_of(const struct cli *cli)
{
    return (struct catalogue_shared){.database = cli->config->shared_database,
                                     .schema = cli->config->shared_schema};
}

static int is_there(struct cli *cli, const struct share_status *found)
{
    const char *role = arguments_value(&cli->arguments, "--grant-to");
    const struct catalogue_shared shared = shared_of(cli);
    char why[512] = "";

    if (!arguments_has(&cli->arguments, "--if-absent"))
        return cli_fail(
            "share init",
            "conflict: schema %s of this database already has a shared catalogue; to join "
            "it, start the server, which copies it to %s; to create another one, set "
            "--schema",
            shared.schema, cli->config->database);

    if (role != NULL && catalogue_share_grant(&shared, role, why, sizeof why) != CATALOGUE_OK)
        return cli_fail("share init", "%s", why);
    printf("this database already has the shared catalogue %s%s%s\n", found->epoch,
           role != NULL ? "; it is granted to " : "", role != NULL ? role : "");
    return EXIT_DONE;
}

int command_share_init(struct cli *cli)
{
    int status = read_shared(cli);
    char why[512] = "";
    struct share_status found = {0};
    enum catalogue_status made;
    bool absent; /* an empty file would keep this machine from joining */

    if (status != EXIT_DONE)
        return status;
    const struct catalogue_shared shared = shared_of(cli);
    absent = access(cli->config->database, F_OK) != 0;
    if ((arguments_has(&cli->arguments, "--if-absent") || absent) &&
        catalogue_share_status(&shared, &found, NULL, NULL, why, sizeof why) == CATALOGUE_OK &&
        found.has_snapshot)
        return is_there(cli, &found);
    made = catalogue_share_init(cli->config->database, &shared,
                                arguments_value(&cli->arguments, "--grant-to"), why, sizeof why);
    if (made != CATALOGUE_OK)
        return cli_fail_file(cli->config->database,
                             *why != '\0' ? why : catalogue_status_row(made)->sentence);
    printf("%s: shared; start this server first, then start the other nodes without a catalogue "
           "file\n",
           cli->config->database);
    return EXIT_DONE;
}

struct node_list {
    bool json;
    size_t count, refused;
};

/* What the node says of PostgreSQL, if that rejects its writes and the node runs; freed by
 * json_decref of `*state`, or NULL. */
static const char *refusal_of(const struct shared_member *member, json_t **state)
{
    *state = json_loads(member->state, 0, NULL);
    return member->silent_ms > SHARED_SILENT_MS
               ? NULL
               : json_string_value(json_object_get(*state, "refused"));
}

static void print_member(void *context, const struct shared_member *member)
{
    struct node_list *l = context;
    struct str out = STR_INIT;
    json_t *state;
    const char *refused = refusal_of(member, &state);

    if (l->json) {
        str_append_text(&out, "{\"node\":");
        str_append_json_text(&out, member->name);
        str_append_json_member(&out, "release", member->release);
        str_append_format(&out, ",\"applied\":%" PRIu64 ",\"silent_seconds\":%" PRId64,
                          member->applied, member->silent_ms / 1000);
        if (refused != NULL)
            str_append_json_member(&out, "refused", refused);
        str_append_text(&out, "}\n");
        fputs(str_text(&out), stdout);
    } else {
        str_append_format(&out,
                          "  %-28s  sitemapd %s, at record %" PRIu64 ", seen %" PRId64 " s ago",
                          member->name, member->release, member->applied, member->silent_ms / 1000);
        cli_print_escaped(stdout, str_text(&out));
        if (member->silent_ms > SHARED_SILENT_MS)
            printf(": %ssilent%s, it is down or disconnected", ink_on(stdout, INK_WARNING),
                   ink_off(stdout));
        if (refused != NULL) {
            printf(": %sshared-refused%s, PostgreSQL rejects its writes: ",
                   ink_on(stdout, INK_WARNING), ink_off(stdout));
            cli_print_escaped(stdout, refused);
        }
        putchar('\n');
    }
    l->count++;
    l->refused += refused != NULL;
    json_decref(state);
    str_done(&out);
}

static void print_reported(const struct share_status *found, bool json)
{
    if (json) {
        printf("{\"epoch\":\"%s\",\"server\":\"%s\",\"synchronous\":%s,\"durable\":%s,"
               "\"waiting\":%" PRIu64 ",\"first\":%" PRIu64 ",\"head\":%" PRIu64
               ",\"log_bytes\":%" PRIu64 ",\"snapshot\":%" PRIu64 "}\n",
               found->epoch, found->server, found->synchronous ? "true" : "false",
               found->durable ? "true" : "false", found->waiting, found->first, found->head,
               found->log_bytes, found->has_snapshot ? found->snapshot_at : 0);
        return;
    }
    printf("catalogue %s on %s, at record %" PRIu64 "; the log has %" PRIu64
           " bytes from record %" PRIu64 "\n",
           found->epoch, found->server, found->head, found->log_bytes, found->first);
    if (found->has_snapshot)
        printf("last snapshot: record %" PRIu64 ", %" PRIu64 " bytes, %" PRId64 " s ago\n",
               found->snapshot_at, found->snapshot_bytes, found->snapshot_age_ms / 1000);
    else
        printf("no snapshot yet: a node without a catalogue cannot join\n");
    if (found->waiting > 0)
        printf("%swarning:%s %" PRIu64
               " commits wait for a synchronous standby: if this persists, writes wait until one "
               "answers, or synchronous_standby_names is changed\n",
               ink_on(stdout, INK_WARNING), ink_off(stdout), found->waiting);
    if (!found->durable)
        printf("%swarning:%s fsync or full_page_writes is off there: a crash may lose acknowledged "
               "writes\n",
               ink_on(stdout, INK_WARNING), ink_off(stdout));
    else if (!found->synchronous)
        printf("%swarning:%s no standby is synchronous: if that machine is lost, the last "
               "acknowledged writes may be lost too\n",
               ink_on(stdout, INK_WARNING), ink_off(stdout));
}

int command_share_status(struct cli *cli)
{
    struct node_list nodes = {.json = arguments_has(&cli->arguments, "--json")};
    struct share_status found = {0};
    char why[512] = "";
    int status = read_shared(cli);
    enum catalogue_status asked;

    if (status != EXIT_DONE)
        return status;
    const struct catalogue_shared shared = shared_of(cli);
    asked = catalogue_share_status(&shared, &found, NULL, NULL, why, sizeof why);
    if (asked == CATALOGUE_OK) {
        print_reported(&found, nodes.json);
        asked = catalogue_share_status(&shared, &found, print_member, &nodes, why, sizeof why);
    }
    if (asked != CATALOGUE_OK)
        return cli_fail("share status", "%s",
                        *why != '\0' ? why : catalogue_status_row(asked)->sentence);
    if (nodes.count == 0 && !nodes.json)
        printf("  no node has served it yet\n");
    if (found.lacks[0] != '\0')
        return cli_fail("share status",
                        "permission denied: the role of this command lacks permissions for writes: "
                        "%s; run `sitemapd share init --if-absent --grant-to ROLE` as the role "
                        "that owns the tables",
                        found.lacks);
    if (nodes.refused > 0)
        return cli_fail("share status", "PostgreSQL rejects the writes of %zu %s (shared-refused)",
                        nodes.refused, plural(nodes.refused, "node", "nodes"));
    return EXIT_DONE;
}

int command_share_upgrade(struct cli *cli)
{
    char why[512] = "";
    int status = read_shared(cli);
    enum catalogue_status upgraded;

    if (status != EXIT_DONE)
        return status;
    const struct catalogue_shared shared = shared_of(cli);
    upgraded = catalogue_share_upgrade(cli->config->database, &shared, why, sizeof why);
    if (upgraded != CATALOGUE_OK)
        return cli_fail("share upgrade", "%s",
                        *why != '\0' ? why : catalogue_status_row(upgraded)->sentence);
    printf("the catalogue has this release's schema on all nodes\n");
    return EXIT_DONE;
}
