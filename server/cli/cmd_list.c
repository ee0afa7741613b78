/* `list` and `export`: entries, streamed from one view. */
#include <string.h>

#include "server/cli/commands.h"
#include "server/cli/entry_text.h"
#include "server/cli/ink.h"
#include "server/cli/names.h"

struct listing {
    const struct registry *registry;
    struct str line;
    int index_width; /* 0: JSON or export */
    bool export;
    bool headed;
};

/* Columns whose widths are known before the first row, so that rows stream: the loc is last. */
#define LASTMOD_WIDTH 25

static void print_row(struct listing *l, const struct entry_record *record)
{
    const struct registry_index *index = registry_index_by_id(l->registry, record->index_id);
    const struct registry_site *site = registry_site_by_id(l->registry, record->site_id);

    if (!l->headed)
        printf("%s%-*s  %4s  %-*s  %s%s\n", ink_on(stdout, INK_HEADING), LASTMOD_WIDTH, "LASTMOD",
               "PAGE", l->index_width, "INDEX", "LOC", ink_off(stdout));
    l->headed = true;
    text_append_index_url(&l->line, site, index);
    printf("%-*s  %4u  %-*s  %s\n", LASTMOD_WIDTH, record->lastmod != NULL ? record->lastmod : "-",
           record->page, l->index_width, str_text(&l->line), record->loc);
}

static bool print_entry(void *context, const struct entry_record *record)
{
    struct listing *l = context;

    str_clear(&l->line);
    if (l->index_width > 0) {
        print_row(l, record);
        return !ferror(stdout);
    }
    if (l->export)
        text_append_export(&l->line, record, l->registry);
    else
        text_append_entry(&l->line, record, l->registry, 0);
    if (!l->line.failed)
        fwrite(l->line.data, 1, l->line.len, stdout);
    return !l->line.failed && !ferror(stdout);
}

static int widest_index(const struct registry *registry)
{
    size_t widest = strlen("INDEX");

    for (size_t i = 0; i < registry->site_count; i++) {
        const struct registry_site *site = &registry->sites[i];

        for (size_t j = 0; j < site->index_count; j++) {
            size_t len = strlen(site->origin) + strlen(site->indexes[j].path);

            if (len > widest)
                widest = len;
        }
    }
    return (int)widest;
}

static int list_entries(struct cli *cli, bool json, bool export)
{
    struct listing l = {.line = STR_INIT, .export = export};
    struct entry_list list = {.prefix = arguments_value(&cli->arguments, "--prefix")};
    const struct registry_index *index;
    enum catalogue_status read;
    struct registry *registry;
    struct catalogue_view *view;
    int status = session_open(cli, false);

    if (status != EXIT_DONE)
        return status;
    view = session_view(cli, &registry);
    if (view == NULL)
        return EXIT_COULD_NOT;
    status = names_index_option(cli, registry, &index);
    if (status == EXIT_DONE) {
        l.registry = registry;
        l.index_width = json || export ? 0 : widest_index(registry);
        list.index_id = index != NULL ? index->id : 0;
        read = catalogue_view_list(view, &list, print_entry, &l);
        if (read != CATALOGUE_OK)
            status = session_unreadable(cli, read);
        else if (l.line.failed)
            status = cli_fail("list", "out of memory");
        else if (l.index_width > 0 && !l.headed)
            cli_note("list", "no entries; register one with `sitemapd add LOC`");
    }
    str_done(&l.line);
    registry_unref(registry);
    catalogue_view_end(view);
    return status;
}

int command_list(struct cli *cli)
{
    return list_entries(cli, arguments_has(&cli->arguments, "--json"), false);
}

int command_export(struct cli *cli)
{
    return list_entries(cli, false, true);
}
