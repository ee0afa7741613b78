#include <inttypes.h>
#include <string.h>

#include "server/cli/backend/backend.h"
#include "server/cli/backend/session.h"
#include "server/cli/commands/commands.h"
#include "server/cli/output.h"
#include "server/rules/lastmod.h"
#include "server/rules/url.h"

int command_index_add(struct cli *cli)
{
    const char *url = cli->arguments.words[0];
    struct change change = {.kind = CHANGE_INDEX_ADD, .index_url = url};
    struct change_result result;
    int status;

    if (url[0] == '/') /* the API takes it while there is one site */
        return cli_fail(url, "%s (%s)", rule_code_sentence(RULE_LOC_RELATIVE),
                        rule_code_word(RULE_LOC_RELATIVE));
    status = session_open(cli, false);
    if (status != EXIT_DONE)
        return status;
    change.page_pattern = arguments_value(&cli->arguments, "--pattern");
    status = session_apply(cli, &change, url, &result);
    if (status == EXIT_DONE)
        printf("%s: added\n", url);
    change_result_done(&result);
    return status;
}

/* The id of the index named; told where there is none. */
static int find_index(struct cli *cli, const char *name, int64_t *out)
{
    struct registry *registry = backend_registry(cli->backend, 0);
    const struct registry_index *index;
    int status;

    if (registry == NULL)
        return EXIT_COULD_NOT;
    status = names_index(registry, name, &index);
    if (status == EXIT_DONE)
        *out = index->id;
    registry_unref(registry);
    return status;
}

int command_index_remove(struct cli *cli)
{
    const char *name = cli->arguments.words[0];
    struct change change = {.kind = CHANGE_INDEX_REMOVE};
    struct change_result result;
    int status = session_max_removed(cli, &change.max_removed);

    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status == EXIT_DONE)
        status = find_index(cli, name, &change.index_id);
    if (status != EXIT_DONE)
        return status;
    status = session_apply(cli, &change, name, &result);
    if (status == EXIT_DONE)
        printf("%s: removed; entries that went with it: %" PRIu64 "\n", name, result.removed);
    change_result_done(&result);
    return status;
}

/* ---- freeze and thaw ------------------------------------------------------------------- */

/* What is meant by `name`: a site by its origin, else an index. */
static int find_either(struct cli *cli, const char *name, struct change *change)
{
    struct url origin;

    if (url_parse_origin(name, strlen(name), &origin) != RULE_OK)
        return find_index(cli, name, &change->index_id);
    change->kind = CHANGE_SITE_UPDATE;
    return names_site_id(cli, name, &change->site_id);
}

static int set_frozen(struct cli *cli, bool frozen)
{
    const char *name = cli->arguments.words[0];
    struct change change = {.kind = CHANGE_INDEX_FREEZE,
                            .frozen = frozen,
                            .site = {.set = SITE_SET_FROZEN, .frozen = frozen}};
    struct change_result result;
    int status = session_open(cli, false);

    if (status == EXIT_DONE)
        status = find_either(cli, name, &change);
    if (status != EXIT_DONE)
        return status;
    status = session_apply(cli, &change, name, &result);
    if (status == EXIT_DONE)
        printf("%s: %s\n", name, frozen ? "frozen; nothing changes there" : "thawed");
    change_result_done(&result);
    return status;
}

int command_freeze(struct cli *cli)
{
    return set_frozen(cli, true);
}

int command_thaw(struct cli *cli)
{
    return set_frozen(cli, false);
}

/* ---- list ------------------------------------------------------------------------------ */

static int add_up(struct backend *b, const struct registry_index *index, struct backend_page *out)
{
    int status = EXIT_DONE;

    *out = (struct backend_page){0};
    for (size_t i = 0; status == EXIT_DONE && i < index->page_count; i++) {
        struct backend_page page;

        status = backend_page(b, index, index->pages[i], &page);
        if (status != EXIT_DONE)
            break;
        out->untold |= page.untold;
        out->entries += page.entries;
        out->bytes += page.bytes;
        if (page.changed_at > out->changed_at)
            out->changed_at = page.changed_at;
    }
    return status;
}

static void append_index(struct str *out, const struct registry_site *site,
                         const struct registry_index *index, const struct backend_page *totals,
                         const char *state, bool json)
{
    char changed[21] = "-";
    struct str url = STR_INIT;
    enum freeze frozen = site->frozen > index->frozen ? site->frozen : index->frozen;

    if (totals->changed_at != 0)
        lastmod_format_utc(totals->changed_at, changed);
    text_append_index_url(&url, site, index);
    if (json) {
        str_append_text(out, "{\"url\":");
        str_append_json_text(out, str_text(&url));
        str_append_json_member(out, "page_pattern", index->page_pattern);
        output_append_json_count(out, "entries", totals->entries, totals->untold);
        str_append_format(out, ",\"pages\":%zu", index->page_count);
        output_append_json_count(out, "bytes", totals->bytes, totals->untold);
        str_append_json_member(out, "changed_at", totals->changed_at != 0 ? changed : NULL);
        str_append_format(out, ",\"frozen\":%s", frozen ? "true" : "false");
        str_append_json_member(out, "frozen_by", freeze_word(frozen));
        str_append_json_member(out, "state", state[0] != '\0' ? state : NULL);
        str_append_text(out, "}\n");
    } else {
        char entries[24], bytes[24];

        output_count(entries, totals->entries, totals->untold);
        output_count(bytes, totals->bytes, totals->untold);
        str_append_format(out, "%10s  %5zu  %12s  %-20s  %s%s\n", entries, index->page_count, bytes,
                          changed, str_text(&url), frozen ? "  (frozen)" : "");
    }
    str_done(&url);
}

static int append_indexes(struct listing *l)
{
    int status = EXIT_DONE;

    for (size_t i = 0; status == EXIT_DONE && i < l->registry->site_count; i++) {
        const struct registry_site *site = &l->registry->sites[i];

        for (size_t j = 0; status == EXIT_DONE && j < site->index_count; j++) {
            struct backend_page totals;
            char state[INDEX_STATE_SIZE] = "";

            status = add_up(l->backend, &site->indexes[j], &totals);
            if (status == EXIT_DONE && l->json)
                status = backend_state(l->backend, &site->indexes[j], state);
            append_index(&l->out, site, &site->indexes[j], &totals, state, l->json);
        }
    }
    return status;
}

int command_index_list(struct cli *cli)
{
    char heading[80];

    snprintf(heading, sizeof heading, "%10s  %5s  %12s  %-20s  %s", "ENTRIES", "PAGES", "BYTES",
             "CHANGED", "URL");
    return listing_print(cli, 0, heading, "no indexes yet; make one with `sitemapd index add URL`",
                         append_indexes);
}
