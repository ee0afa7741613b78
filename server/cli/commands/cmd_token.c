#include <stdio.h>
#include <string.h>
#include <time.h>

#include "config/suggest.h"
#include "server/cli/backend/backend.h"
#include "server/cli/backend/session.h"
#include "server/cli/commands/commands.h"
#include "server/cli/names.h"
#include "server/cli/output.h"
#include "server/crypto/token.h"
#include "server/rules/url.h"

/* What the options say of themselves; `prefix` is what the grant then points to. */
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
    return origin != NULL ? names_site_id(cli, origin, out) : EXIT_DONE;
}

int command_token_add(struct cli *cli)
{
    const char *name = cli->arguments.words[0];
    struct change change = {.kind = CHANGE_TOKEN_ADD, .token = {.name = name, .role = GRANT_WRITE}};
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
        status = read_grant(cli, &change.token, prefix);
    if (status == EXIT_DONE)
        status = session_open(cli, true);
    if (status == EXIT_DONE)
        status = read_scope(cli, change.token.prefix, &change.token.site_id);
    if (status != EXIT_DONE)
        return status;
    fault = grant_fault(&change.token);
    if (fault != NULL)
        return cli_misuse(name, "%s", fault);
    if (!token_make(token) || !token_sha256(token, strlen(token), sha256))
        return cli_fail(name, "cannot create a token: no random numbers available");
    change.token_sha256 = sha256;
    status = session_apply(cli, &change, name, &result);
    if (status == EXIT_DONE) {
        printf("%s\n", token);
        /* Who takes the token from a pipe uses it when this command ends. */
        fflush(stdout);
        catalogue_await_server(cli->backend->catalogue);
    }
    change_result_done(&result);
    explicit_bzero(token, sizeof token);
    return status;
}

/* What a name is looked for in. */
struct search {
    const char *name;
    bool found;
    struct suggestion near;
    char nearest[NAME_MAX_BYTES + 1];
};

static void look_at(void *context, const struct backend_token *token)
{
    struct search *search = context;

    search->found = search->found || strcmp(token->name, search->name) == 0;
    search->near.word = search->nearest[0] != '\0' ? search->nearest : NULL;
    suggest_consider(&search->near, search->name, token->name);
    if (search->near.word == token->name)
        snprintf(search->nearest, sizeof search->nearest, "%s", token->name);
}

/* Told where there is no token of this name. */
static int check_known(struct cli *cli, const char *name)
{
    struct search search = {.name = name};
    int status = cli->backend->calls->tokens(cli->backend, look_at, &search);

    if (status == EXIT_DONE && !search.found)
        status =
            names_unknown(name, "token not found in this catalogue", search.nearest, "token list");
    return status;
}

int command_token_revoke(struct cli *cli)
{
    const char *name = cli->arguments.words[0];
    struct change change = {.kind = CHANGE_TOKEN_REVOKE, .token.name = name};
    int status = session_open(cli, false);

    if (status == EXIT_DONE)
        status = check_known(cli, name);
    if (status != EXIT_DONE)
        return status;
    return session_do(cli, &change, name, "revoked");
}

static void append_json(struct str *out, const struct backend_token *token)
{
    str_append_text(out, "{\"name\":");
    str_append_json_text(out, token->name);
    str_append_json_member(out, "site", token->site);
    str_append_json_member(out, "prefix", token->prefix);
    str_append_json_member(out, "role", token->role);
    str_append_format(out, ",\"own\":%s", token->own ? "true" : "false");
    str_append_json_member(out, "expires_at", token->expires_at);
    str_append_json_member(out, "created_at", token->created_at);
    str_append_json_member(out, "last_used_at", token->last_used_at);
    str_append_format(out, ",\"managed\":%s}\n", token->managed ? "true" : "false");
}

static void append_line(struct str *out, const struct backend_token *token)
{
    str_append_format(out, "%-20s  %-20s  %-5s  %-24s  %s", token->created_at,
                      token->last_used_at != NULL ? token->last_used_at : "-", token->role,
                      token->name,
                      token->prefix != NULL ? token->prefix
                      : token->site != NULL ? token->site
                      : token->all_sites    ? "all sites"
                                            : "a site that was removed");
    if (token->own)
        str_append_text(out, ", its own entries");
    if (token->expires_at != NULL)
        str_append_format(out, ", until %s", token->expires_at);
    str_append_text(out, token->managed ? ", of the configuration\n" : "\n");
}

static void append_token(void *context, const struct backend_token *token)
{
    struct listing *l = context;

    (l->json ? append_json : append_line)(&l->out, token);
}

static int append_tokens(struct listing *l)
{
    return l->backend->calls->tokens(l->backend, append_token, l);
}

int command_token_list(struct cli *cli)
{
    char heading[128];

    snprintf(heading, sizeof heading, "%-20s  %-20s  %-5s  %-24s  %s", "CREATED", "LAST USED",
             "ROLE", "NAME", "GOOD FOR");
    return listing_print(cli, 0, heading,
                         "no tokens yet; create one with `sitemapd token add NAME`", append_tokens);
}
