#include "server/cli/listing.h"

#include "server/cli/ink.h"

static int print(const struct cli *cli, const struct listing *l, enum catalogue_status read,
                 const char *heading, const char *none)
{
    if (read != CATALOGUE_OK)
        return session_unreadable(cli, read);
    if (l->out.failed)
        return cli_fail(cli->arguments.command->name, "out of memory");
    if (l->out.len == 0 && !l->json) {
        cli_note(cli->arguments.command->name, "%s", none);
        return EXIT_DONE;
    }
    if (heading != NULL && !l->json)
        printf("%s%s%s\n", ink_on(stdout, INK_HEADING), heading, ink_off(stdout));
    fputs(str_text(&l->out), stdout);
    return EXIT_DONE;
}

int listing_print(struct cli *cli, const char *heading, const char *none, listing_append *append)
{
    struct listing l = {.json = arguments_has(&cli->arguments, "--json"), .out = STR_INIT};
    struct registry *registry;
    int status = session_open(cli, false);

    if (status != EXIT_DONE)
        return status;
    l.view = session_view(cli, &registry);
    if (l.view == NULL)
        return EXIT_COULD_NOT;
    l.registry = registry;
    status = print(cli, &l, append(&l), heading, none);
    str_done(&l.out);
    registry_unref(registry);
    catalogue_view_end(l.view);
    return status;
}
