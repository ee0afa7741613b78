#include <stdio.h>
#include <string.h>

#include "server/cli/commands.h"
#include "server/cli/output.h"
#include "server/cli/session.h"
#include "server/rules/lastmod.h"
#include "server/token.h"

/* The site that --site names; 0 without it. */
static int read_scope(struct cli *cli, int64_t *out)
{
    const char *origin = arguments_value(&cli->arguments, "--site");
    const struct registry_site *site;
    struct registry *registry;
    int status;

    *out = 0;
    if (origin == NULL)
        return EXIT_DONE;
    registry = session_registry(cli);
    if (registry == NULL)
        return EXIT_COULD_NOT;
    status = names_site(registry, origin, &site);
    if (status == EXIT_DONE)
        *out = site->id;
    registry_unref(registry);
    return status;
}

int command_token_add(struct cli *cli)
{
    const char *name = cli->arguments.words[0];
    struct change change = {.kind = CHANGE_TOKEN_ADD, .token_name = name};
    struct change_result result;
    char token[TOKEN_TEXT_SIZE];
    uint8_t sha256[32];
    int status;

    if (entry_check_name(name, strlen(name)) != RULE_OK)
        return cli_misuse(name, "a token's name %s", rule_code_sentence(RULE_NAME));
    status = session_open(cli, true);
    if (status == EXIT_DONE)
        status = read_scope(cli, &change.site_id);
    if (status != EXIT_DONE)
        return status;
    if (!token_make(token) || !token_sha256(token, strlen(token), sha256))
        return cli_fail(name, "no random numbers to make a token of");
    change.token_sha256 = sha256;
    status = session_apply(cli, &change, name, &result);
    if (status == EXIT_DONE) {
        printf("%s\n", token);
        /* Who takes the token from a pipe uses it when this command ends. */
        fflush(stdout);
        catalogue_await_server(cli->catalogue);
    }
    change_result_done(&result);
    explicit_bzero(token, sizeof token);
    return status;
}

/* Told where there is no token of this name. */
static int check_known(struct cli *cli, const char *name)
{
    struct registry *registry = session_registry(cli);
    int status = EXIT_COULD_NOT;

    if (registry == NULL)
        return status;
    for (size_t i = 0; i < registry->token_count; i++)
        if (strcmp(registry->tokens[i].name, name) == 0)
            status = EXIT_DONE;
    if (status != EXIT_DONE)
        status = names_no_token(registry, name);
    registry_unref(registry);
    return status;
}

int command_token_revoke(struct cli *cli)
{
    const char *name = cli->arguments.words[0];
    struct change change = {.kind = CHANGE_TOKEN_REVOKE, .token_name = name};
    struct change_result result;
    int status = session_open(cli, false);

    if (status == EXIT_DONE)
        status = check_known(cli, name);
    if (status != EXIT_DONE)
        return status;
    status = session_apply(cli, &change, name, &result);
    if (status == EXIT_DONE)
        printf("%s: revoked\n", name);
    change_result_done(&result);
    return status;
}

static void append_token(struct str *out, const struct registry *registry,
                         const struct registry_token *token, bool json)
{
    const struct registry_site *site = registry_site_by_id(registry, token->site_id);
    char created[21];

    lastmod_format_utc(token->created_at, created);
    if (json) {
        str_append_text(out, "{\"name\":");
        str_append_json_text(out, token->name);
        str_append_json_member(out, "site", site != NULL ? site->origin : NULL);
        str_append_json_member(out, "created_at", created);
        str_append_text(out, "}\n");
    } else {
        str_append_format(out, "%-20s  %-24s  %s\n", created, token->name,
                          token->site_id == 0 ? "all sites"
                          : site != NULL      ? site->origin
                                              : "a site that was removed");
    }
}

static enum catalogue_status append_tokens(struct listing *l)
{
    for (size_t i = 0; i < l->registry->token_count; i++)
        append_token(&l->out, l->registry, &l->registry->tokens[i], l->json);
    return CATALOGUE_OK;
}

int command_token_list(struct cli *cli)
{
    char heading[64];

    snprintf(heading, sizeof heading, "%-20s  %-24s  %s", "CREATED", "NAME", "GOOD FOR");
    return listing_print(cli, heading, "no tokens yet; make one with `sitemapd token add NAME`",
                         append_tokens);
}
