/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The commands token add, list and revoke. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/suggest.h"
#include "server/cli/commands/commands.h"
#include "server/cli/names.h"
#include "server/cli/output.h"
#include "server/crypto/token.h"
#include "server/rules/url.h"

/* Reads the options for a grant, which then points to `prefix`. */
static int read_grant(struct cli *cli, struct grant *grant, char prefix[GRANT_PREFIX_MAX_CHARS + 1])
{
    const char *role = arguments_value(&cli->arguments, "--role");
    const char *under = arguments_value(&cli->arguments, "--prefix");
    const char *expires = arguments_value(&cli->arguments, "--expires");
    const char *fault = under != NULL ? grant_read_prefix(under, prefix) : NULL;

    if (role != NULL && !grant_role_read(role, &grant->role))
        return cli_fail("--role", "\"%s\" must be read, write or admin", role);
    if (fault != NULL)
        return cli_misuse("--prefix", "%s", fault);
    if (expires != NULL && !grant_read_expiry(expires, (int64_t)time(NULL), &grant->expires_at))
        return cli_misuse("--expires", "must be a duration (90d, 12h) or a date in the future");
    grant->prefix = under != NULL ? prefix : NULL;
    grant->own = arguments_has(&cli->arguments, "--own");
    return EXIT_DONE;
}

/* The site that --site names, or without it that of the prefix's origin; 0 without both. */
static int read_scope(struct cli *cli, const char *prefix, int64_t *out)
{
    const char *origin = arguments_value(&cli->arguments, "--site");
    struct url url;
    char of_prefix[LOC_MAX_CHARS + 1];

    *out = 0;
    if (origin == NULL && prefix != NULL &&
        url_parse(prefix, strlen(prefix), &url, NULL) == RULE_OK) {
        snprintf(of_prefix, sizeof of_prefix, "%.*s", (int)url.origin_len, url.text);
        origin = of_prefix;
    }
    if (origin == NULL)
        return EXIT_DONE;

    const json_t *site;
    int status = names_site(cli, origin, &site);

    if (status == EXIT_DONE)
        *out = strtoll(member_text(site, "id"), NULL, 10);
    return status;
}

int command_token_add(struct cli *cli)
{
    const char *name = cli->arguments.words[0];
    struct change change = {.kind = CHANGE_TOKEN_ADD,
                            .token_add = {.grant = {.name = name, .role = GRANT_WRITE}}};
    char prefix[GRANT_PREFIX_MAX_CHARS + 1];
    const char *fault;
    struct change_result result;
    char token[TOKEN_TEXT_SIZE];
    uint8_t sha256[32];
    int status;

    if (entry_check_name(name, strlen(name)) != RULE_OK)
        return cli_misuse(name, "a token's name %s", rule_code_sentence(RULE_NAME));
    status = session_needs_machine(cli);
    if (status == EXIT_DONE)
        status = read_grant(cli, &change.token_add.grant, prefix);
    if (status == EXIT_DONE)
        status = session_open(cli, true);
    if (status == EXIT_DONE)
        status = read_scope(cli, change.token_add.grant.prefix, &change.token_add.grant.site_id);
    if (status != EXIT_DONE)
        return status;
    fault = grant_fault(&change.token_add.grant);
    if (fault != NULL)
        return cli_misuse(name, "%s", fault);
    if (!token_make(token) || !token_sha256(token, strlen(token), sha256))
        return cli_fail(name, "cannot create a token: no random numbers available");
    change.token_add.sha256 = sha256;
    if (api_apply(cli->backend, &change, NULL, NULL, &result) != CATALOGUE_OK) {
        status = session_report(cli, NULL, name, &result);
    } else {
        printf("%s\n", token);
        /* The reader of a pipe needs the token before this command ends. */
        fflush(stdout);
        catalogue_await_server(cli->backend->catalogue);
    }
    change_result_done(&result);
    explicit_bzero(token, sizeof token);
    return status;
}

/* Reports an error if no token has this name. */
static int check_known(struct cli *cli, const char *name)
{
    json_t *tokens = api_get_all(cli->backend, "/v1/tokens", "tokens"), *token;
    struct suggestion near = {0};
    bool found = false;
    size_t i;
    int status = tokens != NULL ? EXIT_DONE : EXIT_COULD_NOT;

    json_array_foreach(tokens, i, token)
    {
        found = found || strcmp(member_text(token, "name"), name) == 0;
        suggest_consider(&near, name, member_text(token, "name"));
    }
    if (status == EXIT_DONE && !found)
        status = names_unknown(name, "token not found in this catalogue", near.word, "token list");
    json_decref(tokens);
    return status;
}

int command_token_revoke(struct cli *cli)
{
    const char *name = cli->arguments.words[0];
    struct str target = STR_INIT;
    int status = session_open(cli, false);

    if (status == EXIT_DONE)
        status = check_known(cli, name);
    if (status != EXIT_DONE)
        return status;
    str_append_text(&target, "/v1/tokens");
    target_segment(&target, name);
    return session_do(cli, "DELETE", &target, NULL, name, "revoked");
}

static void append_token(struct str *out, const json_t *token, void *context)
{
    const char *used = member_text_or_null(token, "last_used_at");
    const char *expires = member_text_or_null(token, "expires_at");
    const char *site = member_text_or_null(token, "site");
    const char *prefix = member_text_or_null(token, "prefix");

    (void)context;
    str_append_format(out, "%-20s  %-20s  %-5s  %-24s  %s", member_text(token, "created_at"),
                      used != NULL ? used : "-", member_text(token, "role"),
                      member_text(token, "name"),
                      prefix != NULL ? prefix
                      : site != NULL ? site
                                     : "all sites");
    if (member_is(token, "own"))
        str_append_text(out, ", its own entries");
    if (expires != NULL)
        str_append_format(out, ", until %s", expires);
    str_append_text(out,
                    member_is(token, "managed") ? ", managed by the configuration file\n" : "\n");
}

int command_token_list(struct cli *cli)
{
    int status = session_open(cli, false);
    json_t *tokens = status == EXIT_DONE ? api_get_all(cli->backend, "/v1/tokens", "tokens") : NULL;
    char heading[128];

    snprintf(heading, sizeof heading, "%-20s  %-20s  %-5s  %-24s  %s", "CREATED", "LAST USED",
             "ROLE", "NAME", "VALID FOR");
    if (status == EXIT_DONE)
        status = output_table(cli, tokens, heading,
                              "no tokens yet; create one with `sitemapd token add NAME`",
                              append_token, NULL);
    json_decref(tokens);
    return status;
}
