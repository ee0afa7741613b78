#include <stdlib.h>
#include <string.h>

#include "server/cli/commands.h"

/* What the whole of the configuration shows. */
static void tell_mistake(void *context, const char *file, unsigned line, const char *message)
{
    char what[512];

    (void)context;
    if (file != NULL && line > 0)
        snprintf(what, sizeof what, "%s:%u", file, line);
    else
        snprintf(what, sizeof what, "%s", file != NULL ? file : "serve");
    cli_fail(what, "%s", message);
}

/* The message names the setting; people wrote the flag. */
static void tell_flag(void *context, const char *file, unsigned line, const char *message)
{
    const char *flag = context, *behind = strstr(message, ": ");

    (void)file;
    (void)line;
    cli_misuse(flag, "%s", behind != NULL ? behind + 2 : message);
}

/* Puts a flag's values into the setting of that name. */
static int apply_flag(struct cli *cli, const char *flag, const char *setting)
{
    const char **values = arguments_values(&cli->arguments, flag);
    bool good = values != NULL;

    for (size_t i = 0; good && values[i] != NULL; i++)
        good = config_set(&cli->config, setting, values[i], tell_flag, (void *)flag);
    free(values);
    return good ? EXIT_DONE : EXIT_USAGE;
}

int command_serve(struct cli *cli)
{
    int status = session_read_config(cli, NULL, NULL);
    const char **sites;

    if (status == EXIT_DONE)
        status = apply_flag(cli, "--listen", "server.listen");
    if (status == EXIT_DONE)
        status = apply_flag(cli, "--admin-listen", "admin.listen");
    if (status == EXIT_DONE)
        status = apply_flag(cli, "--site", "server.site");
    if (status == EXIT_DONE)
        status = apply_flag(cli, "--source", "server.source");
    if (status != EXIT_DONE)
        return status;
    if (!config_validate(&cli->config, tell_mistake, NULL))
        return EXIT_COULD_NOT;
    sites = calloc(cli->config.origin_count + 1, sizeof *sites);
    if (sites == NULL)
        return cli_fail("serve", "out of memory");
    for (size_t i = 0; i < cli->config.origin_count; i++)
        sites[i] = cli->config.origins[i];
    status = cli->serve(&cli->config, sites);
    free(sites);
    return status;
}
