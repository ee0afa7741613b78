/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sends a list of entries to a server. The list is first written to a file as NDJSON, since the
 * request needs its length. The server numbers lines in the order sent; messages for the user need
 * their line in the input. Also builds a registry from the lists of a server, by which an import
 * finds the index of each entry. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/cli/backend/api.h"
#include "server/rules/page/fragment.h"

static rule_set codes_of(const json_t *words)
{
    rule_set codes = 0;
    json_t *word;
    size_t i;

    json_array_foreach(words, i, word) if (json_is_string(word) &&
                                           api_rule(json_string_value(word)) != RULE_OK) codes |=
        RULE_BIT(api_rule(json_string_value(word)));
    return codes;
}

/* The input line of each entry, in the order sent; 0: it was rejected before. */
struct sent {
    FILE *file;
    uint64_t *lines; /* owned */
    uint64_t count;
};

static bool write_line(struct sent *sent, struct str *line, bool pages, const struct entry *entry)
{
    str_clear(line);
    str_append_text(line, "{\"loc\":");
    str_append_json_text(line, entry->loc);
    if (entry->lastmod_state != FIELD_ABSENT)
        str_append_json_member(line, "lastmod", entry->lastmod);
    if (entry->digest_state != FIELD_ABSENT)
        str_append_json_member(line, "digest", entry->digest);
    if (entry->extensions_state == FIELD_NULL)
        str_append_text(line, ",\"images\":null");
    fragment_append_json(line, entry->extensions);
    if (entry->index != NULL)
        str_append_json_member(line, pages ? "urlset" : "index", entry->index);
    if (entry->source != NULL)
        str_append_json_member(line, "source", entry->source);
    if (entry->position != POSITION_NONE)
        str_append_format(line, ",\"position\":%" PRIu32, entry->position);
    if (entry->rejected) /* the server, which does not know this field, rejects the line, too */
        str_append_text(line, ",\"rejected\":true");
    str_append_text(line, "}\n");
    return !line->failed && fwrite(line->data, 1, line->len, sent->file) == line->len;
}

/* Writes the list to a nameless file. */
static bool write_list(struct sent *sent, bool pages, struct spool *rows)
{
    struct str line = STR_INIT;
    struct entry entry;
    int more = 0;
    bool written;

    sent->file = tmpfile();
    sent->lines = calloc(spool_count(rows) + 1, sizeof *sent->lines);
    written = sent->file != NULL && sent->lines != NULL;
    spool_rewind(rows);
    while (written && (more = spool_next(rows, &entry)) == 1) {
        sent->lines[sent->count++] = entry.rejected ? 0 : entry.line;
        written = write_line(sent, &line, pages, &entry);
    }
    str_done(&line);
    return written && more == 0 && fflush(sent->file) == 0;
}

static uint64_t line_of(const struct sent *sent, const json_t *finding)
{
    uint64_t line = member_number(finding, "line");

    return line >= 1 && line <= sent->count ? sent->lines[line - 1] : 0;
}

static void parse_rejections(struct change_result *result, const struct sent *sent,
                             const json_t *list)
{
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        struct rejection rejection = {
            .line = line_of(sent, item),
            .loc = member_text_or_null(item, "loc"),
            .code = api_rule(member_text(item, "code")),
            .field = NULL,
        };
        const char *detail = member_text(item, "detail");

        if (rejection.line == 0)
            continue;
        if (strcmp(detail, rule_code_sentence(rejection.code)) != 0)
            snprintf(rejection.detail, sizeof rejection.detail, "%.250s", detail);
        findings_refuse(&result->findings, &rejection);
    }
}

/* Parses remarks on stored entries. Remarks on a loc or date alone were added when the list was
 * read, by the same rules as in the API. */
static void parse_remarks(struct change_result *result, const struct sent *sent, const json_t *list)
{
    const rule_set read = RULE_LASTMOD_DROPS | RULE_BIT(RULE_LOC_NO_SITEMAP) |
                          RULE_BIT(RULE_LOC_AMP) | RULE_BIT(RULE_DUPLICATE) |
                          RULE_BIT(RULE_EXTENSION_DROPPED) | RULE_BIT(RULE_HINT_DROPPED);
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        rule_set remarks = codes_of(json_object_get(item, "codes")) & ~read;

        if (member_number(item, "line") == 0)
            result->remarks |= remarks;
        else
            findings_remark(&result->findings, line_of(sent, item), NULL, remarks);
    }
}

static void list_target(struct str *target, const struct change *change)
{
    bool replace = change->kind == CHANGE_REPLACE;
    char number[24];

    snprintf(number, sizeof number, "%" PRId64, change->max_removed);
    bool pages = change->list == LIST_URLSET;
    str_append_text(target, pages ? "/v1/urls" : "/v1/sitemaps");
    target_add(target, pages ? "urlset" : "index", change->index_name);
    target_add(target, "source", replace && change->replace.source == NULL ? "*" : change->source);
    target_add(target, "on_error", change->skip ? "skip" : NULL);
    target_add(target, "dry_run", change->dry_run ? "1" : NULL);
    target_add(target, "max_removed", change->max_removed >= 0 ? number : NULL);
}

static char *copy_of(const json_t *entry, const char *name)
{
    const char *text = member_text_or_null(entry, name);

    return text != NULL ? strdup(text) : NULL;
}

/* Parses the rows of a dry run. If memory runs out, the rest is left out. */
static void parse_rows(const struct change *change, struct change_result *result,
                       const json_t *rows)
{
    static const char *const members[] = {"before", "after"};
    size_t count = change->wants_preview ? json_array_size(rows) : 0;

    result->preview = count > 0 ? calloc(count, sizeof *result->preview) : NULL;
    for (size_t i = 0; result->preview != NULL && i < count; i++) {
        struct entry_record *both[] = {&result->preview[i].before, &result->preview[i].after};

        for (size_t k = 0; k < 2; k++) {
            const json_t *entry = json_object_get(json_array_get(rows, i), members[k]);

            both[k]->loc = copy_of(entry, "loc");
            both[k]->lastmod = copy_of(entry, "lastmod");
            both[k]->digest = copy_of(entry, "digest");
            both[k]->source = copy_of(entry, "source");
        }
        result->preview_count++;
    }
}

static bool send_lines(struct backend *b, const struct change *change, const char *target,
                       FILE *lines, json_t **answer)
{
    const struct api_request request = {.method = change->kind == CHANGE_REPLACE ? "PUT" : "POST",
                                        .target = target,
                                        .if_match = change->if_match,
                                        .lines = lines};

    return api_send(b, &request, answer) && api_is_good(b);
}

static void parse_counts(const json_t *answer, struct change_result *result)
{
    result->created = member_number(answer, "created");
    result->updated = member_number(answer, "updated");
    result->unchanged = member_number(answer, "unchanged");
    result->removed = member_number(answer, "removed");
    result->moved = member_number(answer, "moved");
    result->spared = member_number(answer, "spared");
    result->revision = member_number(answer, "revision");
    result->changed = result->created + result->updated + result->removed > 0;
}

void server_apply_list(struct backend *b, const struct change *change, struct change_result *result)
{
    struct sent sent = {0};
    struct str target = STR_INIT;
    json_t *answer = NULL;

    result->rows = change->rows;
    result->findings.max = change->max_findings;
    result->findings.examples = FINDINGS_EXAMPLES;
    list_target(&target, change);
    if (!write_list(&sent, change->list == LIST_URLSET, change->rows) || target.failed) {
        result->status = CATALOGUE_NO_SPACE;
        snprintf(result->detail, sizeof result->detail,
                 "no space left for the list in the temporary folder; set TMPDIR to a larger one");
    } else if (send_lines(b, change, str_text(&target), sent.file, &answer)) {
        parse_counts(answer, result);
        parse_rejections(result, &sent, json_object_get(answer, "rejected"));
        parse_remarks(result, &sent, json_object_get(answer, "warnings"));
        parse_rows(change, result, json_object_get(answer, "rows"));
    } else {
        api_refuse(b, answer, result);
        if (json_array_size(json_object_get(answer, "rejected")) > 0)
            result->status = CATALOGUE_REFUSED;
        parse_rejections(result, &sent, json_object_get(answer, "rejected"));
    }
    json_decref(answer);
    str_done(&target);
    free(sent.lines);
    if (sent.file != NULL)
        fclose(sent.file);
}

/* ---- the registry ---------------------------------------------------------------------- */

/* A registry under construction, as far as it is needed to find the index of an entry; owns the
 * arrays that registry_copy reads. */
struct plain {
    struct registry registry;
    struct registry_site *sites;
    struct registry_index *lists;
    const char **hosts;
    size_t list_count, host_count;
};

/* Adds the lists of a site; `*at` is the first one that no earlier site had. Returns how many. */
static size_t add_lists(struct plain *p, const struct registry_site *site, enum list_kind kind,
                        const json_t *lists, size_t *at)
{
    size_t origin_len = strlen(site->origin), first = p->list_count;
    const json_t *list;

    while ((list = json_array_get(lists, *at)) != NULL &&
           strcmp(member_text(list, "site"), site->origin) == 0) {
        const char *url = member_text(list, "url");

        p->lists[p->list_count++] = (struct registry_index){
            .id = strtoll(member_text(list, "id"), NULL, 10),
            .site_id = site->id,
            .path = strlen(url) > origin_len ? url + origin_len : "",
            .page_pattern = member_text(list, "page_pattern"),
            .max_pages = (uint32_t)member_number(list, "max_pages"),
            .kind = kind,
        };
        ++*at;
    }
    return p->list_count - first;
}

/* Adds a site. All three arrays are sorted by origin. */
static void add_site(struct plain *p, const json_t *site, const json_t *indexes,
                     const json_t *urlsets, size_t at[2])
{
    struct registry_site *out = &p->sites[p->registry.site_count++];
    const json_t *host;
    size_t i;

    *out = (struct registry_site){
        .id = strtoll(member_text(site, "id"), NULL, 10),
        .origin = member_text(site, "origin"),
        .max_pages = (uint32_t)member_number(site, "max_indexes"),
        .cross_hosts = &p->hosts[p->host_count],
        .cross_host_count = json_array_size(json_object_get(site, "cross_hosts")),
        .indexes = &p->lists[p->list_count],
    };
    json_array_foreach(json_object_get(site, "cross_hosts"), i, host) p->hosts[p->host_count++] =
        json_string_value(host);
    out->index_count = add_lists(p, out, LIST_INDEX, indexes, &at[0]);
    out->urlsets = &p->lists[p->list_count];
    out->urlset_count = add_lists(p, out, LIST_URLSET, urlsets, &at[1]);
}

static struct registry *build(const json_t *sites, const json_t *indexes, const json_t *urlsets)
{
    size_t lists = json_array_size(indexes) + json_array_size(urlsets), hosts = 0, at[2] = {0}, i;
    struct registry *made = NULL;
    struct plain p = {0};
    const json_t *site;

    json_array_foreach(sites, i, site) hosts +=
        json_array_size(json_object_get(site, "cross_hosts"));
    p.sites = calloc(json_array_size(sites) + 1, sizeof *p.sites);
    p.lists = calloc(lists + 1, sizeof *p.lists);
    p.hosts = calloc(hosts + 1, sizeof *p.hosts);
    if (p.sites != NULL && p.lists != NULL && p.hosts != NULL) {
        json_array_foreach(sites, i, site) add_site(&p, site, indexes, urlsets, at);
        p.registry.sites = p.sites;
        made = registry_copy(&p.registry);
    }
    free(p.sites);
    free(p.lists);
    free((void *)p.hosts);
    return made;
}

struct registry *api_registry(struct backend *b)
{
    const json_t *sites, *indexes, *urlsets;
    struct registry *registry = NULL;
    enum catalogue_status status;

    if (b->catalogue != NULL) {
        status = catalogue_registry(b->catalogue, &registry);
        if (status != CATALOGUE_OK)
            cli_fail(b->name, "%s", catalogue_status_row(status)->sentence);
        return status == CATALOGUE_OK ? registry : NULL;
    }
    sites = api_sites(b);
    indexes = sites != NULL ? api_lists(b, LIST_INDEX) : NULL;
    urlsets = indexes != NULL ? api_lists(b, LIST_URLSET) : NULL;
    if (urlsets == NULL)
        return NULL;
    registry = build(sites, indexes, urlsets);
    if (registry == NULL)
        cli_fail(b->name, "cannot read its sites and indexes");
    return registry;
}
