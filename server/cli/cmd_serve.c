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
    bool good = true;

    if (values == NULL)
        return cli_fail("serve", "out of memory");
    for (size_t i = 0; good && values[i] != NULL; i++)
        good = config_set(&cli->config, setting, values[i], tell_flag, (void *)flag);
    free(values);
    return good ? EXIT_DONE : EXIT_USAGE;
}

static int apply_flags(struct cli *cli)
{
    static const struct {
        const char *flag, *setting;
    } flags[] = {
        {"--listen", "server.listen"}, {"--admin-listen", "admin.listen"},
        {"--site", "server.site"},     {"--source", "server.source"},
        {"--user", "server.user"},
    };
    int status = EXIT_DONE;

    for (size_t i = 0; status == EXIT_DONE && i < sizeof flags / sizeof flags[0]; i++)
        status = apply_flag(cli, flags[i].flag, flags[i].setting);
    return status;
}

/* For a reload: the flags are those of the start, and were good then. */
static bool read_again(void *context, struct config *out, config_report *report,
                       void *report_context)
{
    const struct cli *cli = context;
    struct cli fresh = {.arguments = cli->arguments};
    bool good = session_read_config(&fresh, report, report_context) == EXIT_DONE;

    if (fresh.config.database != NULL) /* else memory is out */
        good = apply_flags(&fresh) == EXIT_DONE &&
               config_validate(&fresh.config, report, report_context) && good;
    *out = fresh.config;
    return good;
}

int command_serve(struct cli *cli)
{
    int status = session_read_config(cli, NULL, NULL);
    struct config_reader again = {read_again, cli};
    const char **sites;

    if (status == EXIT_DONE)
        status = apply_flags(cli);
    else if (cli->config.database != NULL) /* else memory is out; all mistakes are told at once */
        config_validate(&cli->config, tell_mistake, NULL);
    if (status != EXIT_DONE)
        return status;
    if (!config_validate(&cli->config, tell_mistake, NULL))
        return EXIT_COULD_NOT;
    sites = calloc(cli->config.origin_count + 1, sizeof *sites);
    if (sites == NULL)
        return cli_fail("serve", "out of memory");
    for (size_t i = 0; i < cli->config.origin_count; i++)
        sites[i] = cli->config.origins[i];
    status = cli->serve(&cli->config, sites, &again);
    free(sites);
    return status;
}
