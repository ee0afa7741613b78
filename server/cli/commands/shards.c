/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Opens the servers that a command for several shards names, and prints their status. There is no
 * state between two commands: each server knows its own shard. */
#include "server/cli/commands/shards.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/text.h"
#include "server/cli/output.h"
#include "server/rules/entry.h"

static int name_shard(const char *named, struct shard *out, const char **url)
{
    const char *equals = strchr(named, '=');
    const char *name = named;
    size_t len = equals != NULL ? (size_t)(equals - named) : 0;
    struct url origin;

    *url = named;
    if (equals != NULL && strchr(named, ':') > equals) {
        *url = equals + 1;
    } else if (url_parse_origin(named, strlen(named), &origin) == RULE_OK) {
        name = origin.text + origin.host_at;
        len = origin.host_len;
    } else {
        return cli_misuse("--server",
                          "\"%.200s\" must be NAME=URL or a URL, such as "
                          "shard-a=http://10.0.0.1:8081",
                          named);
    }
    if (len == 0 || len >= SHARD_NAME_SIZE || entry_check_name(name, len) != RULE_OK)
        return cli_misuse("--server",
                          "\"%.200s\" has no usable name: write NAME=URL, with a name of at most "
                          "%d characters (A-Z a-z 0-9 . _ -)",
                          named, SHARD_NAME_SIZE - 1);
    memcpy(out->name, name, len);
    out->name[len] = '\0';
    return EXIT_DONE;
}

int shard_open(struct cli *cli, const char *named, const char *token_file, struct shard *out)
{
    const char *url;
    int status;

    *out = (struct shard){.name = ""};
    status = name_shard(named, out, &url);
    return status == EXIT_DONE ? backend_open_server(cli, url, token_file, &out->server) : status;
}

void shard_close(struct shard *shard)
{
    backend_close(shard->server);
    shard->server = NULL;
}

static int open_all(struct cli *cli, const char *const *urls, const char *const *files,
                    struct shard *out, size_t *count)
{
    size_t url_count = 0, file_count = 0;

    while (urls[url_count] != NULL)
        url_count++;
    while (files[file_count] != NULL)
        file_count++;
    if (url_count == 0)
        return cli_misuse(cli->arguments.command->name,
                          "the servers are missing: set --server NAME=URL for each shard");
    if (url_count > SHARDS_MAX)
        return cli_misuse("--server", "at most %u servers can be named", SHARDS_MAX);
    if (file_count > 1 && file_count != url_count)
        return cli_misuse("--token-file", "must be given once, or once for each --server");
    for (size_t i = 0; i < url_count; i++) {
        const char *file = file_count == 0 ? NULL : files[file_count == 1 ? 0 : i];
        int status = shard_open(cli, urls[i], file, &out[i]);

        if (status != EXIT_DONE)
            return status;
        *count = i + 1;
        for (size_t other = 0; other < i; other++)
            if (strcmp(out[other].name, out[i].name) == 0)
                return cli_misuse("--server", "two servers are named %s: write NAME=URL",
                                  out[i].name);
    }
    return EXIT_DONE;
}

int shards_open(struct cli *cli, struct shard **out, size_t *count)
{
    const char **urls = arguments_values(&cli->arguments, "--server");
    const char **files = arguments_values(&cli->arguments, "--token-file");
    int status;

    *count = 0;
    *out = calloc(SHARDS_MAX, sizeof **out);
    status = urls != NULL && files != NULL && *out != NULL
                 ? open_all(cli, urls, files, *out, count)
                 : cli_fail(cli->arguments.command->name, "out of memory");
    free(urls);
    free(files);
    return status;
}

void shards_close(struct shard *shards, size_t count)
{
    for (size_t i = 0; i < count; i++)
        shard_close(&shards[i]);
    free(shards);
}

/* ---- status ---------------------------------------------------------------------------- */

struct shard_sum {
    size_t sites, indexes, urlsets;
    uint64_t pages, entries, urls, bytes;
    const char *state;
    bool is_unknown; /* entries, urls and bytes, to this token */
};

static void add_lists(const json_t *lists, uint64_t *entries, struct shard_sum *sum)
{
    size_t i;
    json_t *list;

    json_array_foreach(lists, i, list)
    {
        sum->is_unknown |= json_is_null(json_object_get(list, "entries"));
        *entries += member_number(list, "entries");
        sum->bytes += member_number(list, "bytes");
        sum->pages += json_array_size(json_object_get(list, "pages"));
    }
}

static int read_sum(struct shard *shard, struct shard_sum *sum, struct str *reasons)
{
    struct backend *b = shard->server;
    const json_t *indexes, *urlsets, *reason;
    json_t *reasons_printed;
    size_t i;

    *sum = (struct shard_sum){0};
    reasons_printed = status_reasons(b, &sum->state);
    if (reasons_printed == NULL)
        return EXIT_COULD_NOT;
    json_array_foreach(reasons_printed, i, reason) str_append_format(
        reasons, "  %s: %s\n", member_text(reason, "code"), member_text(reason, "detail"));
    json_decref(reasons_printed);
    indexes = api_sites(b) != NULL ? api_lists(b, LIST_INDEX) : NULL;
    urlsets = indexes != NULL ? api_lists(b, LIST_URLSET) : NULL;
    sum->sites = json_array_size(api_sites(b));
    sum->indexes = json_array_size(indexes);
    sum->urlsets = json_array_size(urlsets);
    add_lists(indexes, &sum->entries, sum);
    add_lists(urlsets, &sum->urls, sum);
    return urlsets != NULL ? EXIT_DONE : EXIT_COULD_NOT;
}

static void print_sum(const char *member, const char *name, const struct shard_sum *sum, bool json)
{
    if (json) {
        json_t *object = json_pack(
            "{s:s, s:b, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", member, name, "healthy",
            status_is_ok(sum->state), "sites", (json_int_t)sum->sites, "indexes",
            (json_int_t)sum->indexes, "urlsets", (json_int_t)sum->urlsets, "pages",
            (json_int_t)sum->pages, "entries", output_json_count(sum->entries, sum->is_unknown),
            "urls", output_json_count(sum->urls, sum->is_unknown), "bytes",
            output_json_count(sum->bytes, sum->is_unknown));

        output_json(object);
        json_decref(object);
    } else {
        printf("%s%s%s: %s%s%s; %zu %s, %zu %s, %zu %s, %" PRIu64 " %s",
               ink_on(stdout, INK_HEADING), name, ink_off(stdout),
               ink_on(stdout, status_is_ok(sum->state) ? INK_GOOD : INK_WARNING), sum->state,
               ink_off(stdout), sum->sites, plural(sum->sites, "site", "sites"), sum->indexes,
               plural(sum->indexes, "index", "indexes"), sum->urlsets,
               plural(sum->urlsets, "urlset", "urlsets"), sum->pages,
               plural(sum->pages, "page", "pages"));
        if (!sum->is_unknown)
            printf(", %" PRIu64 " %s, %" PRIu64 " page %s, %" PRIu64 " bytes", sum->entries,
                   plural(sum->entries, "entry", "entries"), sum->urls,
                   plural(sum->urls, "URL", "URLs"), sum->bytes);
        putchar('\n');
    }
}

static void print_reasons(const struct str *reasons)
{
    const char *text = str_text(reasons);
    char line[1024];

    for (size_t len; *text != '\0'; text += len + (text[len] == '\n')) {
        len = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(len < sizeof line ? len : sizeof line - 1), text);
        cli_print_escaped(stdout, line);
        putchar('\n');
    }
}

int shards_status(struct cli *cli)
{
    bool json = arguments_has(&cli->arguments, "--json");
    struct shard *shards;
    size_t count;
    struct shard_sum all = {.state = "ok"}, one;
    int status = shards_open(cli, &shards, &count);

    if (status != EXIT_DONE) {
        shards_close(shards, count);
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        struct str reasons = STR_INIT;

        if (read_sum(&shards[i], &one, &reasons) == EXIT_DONE) {
            print_sum("shard", shards[i].name, &one, json);
            if (!json)
                print_reasons(&reasons);
        } else {
            one.state = "unavailable"; /* reported; the sum covers the others */
        }
        if (!status_is_ok(one.state))
            all.state = "degraded";
        all.is_unknown |= one.is_unknown;
        all.sites += one.sites;
        all.indexes += one.indexes;
        all.urlsets += one.urlsets;
        all.pages += one.pages;
        all.entries += one.entries;
        all.urls += one.urls;
        all.bytes += one.bytes;
        str_done(&reasons);
    }
    print_sum("all", "all shards", &all, json);
    shards_close(shards, count);
    return status_is_ok(all.state) ? EXIT_DONE : EXIT_COULD_NOT;
}
