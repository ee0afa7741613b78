/* A server through its API, in the words of db/. A change becomes one call, and what the call
 * answers becomes the change's result, refusals by the rules' own words included, so that commands
 * tell the same of both backends. Lists go as NDJSON by way of a file, since their length is told
 * first; the server knows their lines by the order in which they are sent, the user by where they
 * stood. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/cli/backend.h"
#include "server/cli/server_call.h"
#include "server/cli/server_history.h"

#define PAGE_OF_LIST "1000" /* what the API gives at once */

struct server_backend {
    struct backend base; /* first */
    struct server server;
    json_t *indexes; /* as told last: an array; NULL: not asked yet */
    struct str url;  /* of the index that an entry was put into */
    struct str name; /* the token's; empty: not asked yet */
};

static struct server_backend *of(struct backend *b)
{
    return (struct server_backend *)b;
}

/* ---- what an answer says --------------------------------------------------------------- */

static bool good(const struct server_backend *s)
{
    return s->server.status / 100 == 2;
}

/* Tells why a read came to nothing; `answer` is dropped. */
static int tell(struct server_backend *s, json_t *answer)
{
    const char *name = s->base.name;

    if (s->server.status == 0 || answer == NULL)
        cli_fail(name, "%s", s->server.why[0] != '\0' ? s->server.why : "gives no answer");
    else if (s->server.status == 404 && strcmp(member_text(answer, "code"), "not-found") == 0)
        cli_fail(name, "%s; the server may be of an earlier version",
                 member_text(answer, "detail"));
    else
        cli_fail(name, "%s (%s)", member_text(answer, "detail"), member_text(answer, "code"));
    json_decref(answer);
    return EXIT_COULD_NOT;
}

static enum rule_code code_of(const char *word)
{
    for (int code = RULE_OK + 1; code < RULE_CODE_COUNT; code++)
        if (strcmp(rule_code_word((enum rule_code)code), word) == 0)
            return (enum rule_code)code;
    return RULE_OK;
}

static rule_set codes_of(const json_t *words)
{
    rule_set codes = 0;
    json_t *word;
    size_t i;

    json_array_foreach(words, i, word) if (json_is_string(word) &&
                                           code_of(json_string_value(word)) != RULE_OK) codes |=
        RULE_BIT(code_of(json_string_value(word)));
    return codes;
}

/* The status of a refusal that no rule made; OK where it is none of the catalogue's own. */
static enum catalogue_status status_of(const char *word)
{
    if (strcmp(word, "site-exists") == 0 || strcmp(word, "index-exists") == 0)
        return CATALOGUE_CONFLICT;
    for (int s = CATALOGUE_NOT_FOUND; s <= CATALOGUE_CANCELLED; s++)
        if (strcmp(catalogue_status_word((enum catalogue_status)s), word) == 0)
            return (enum catalogue_status)s;
    return CATALOGUE_OK;
}

/* Why an undo is none, as the catalogue has it: static; NULL: for another reason. */
static const char *conflict_of(const char *word)
{
    static const char *const words[] = {"source-decides", "not-undoable", "taken-since"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], word) == 0)
            return words[i];
    return NULL;
}

/* Fills the result of a change that was not applied. */
static void refuse(struct server_backend *s, const json_t *answer, struct change_result *result)
{
    const char *word = member_text(answer, "code"), *detail = member_text(answer, "detail");

    if (s->server.status == 0 || answer == NULL) {
        result->status = CATALOGUE_UNAVAILABLE;
        snprintf(result->detail, sizeof result->detail, "%.200s",
                 s->server.why[0] != '\0' ? s->server.why : "the server gives no answer");
        return;
    }
    result->code = code_of(word);
    result->managed = strcmp(word, "managed-by-config") == 0;
    result->conflict = conflict_of(word);
    result->would_remove = member_number(answer, "would_remove");
    if (result->code != RULE_OK)
        result->status = CATALOGUE_REFUSED;
    else
        result->status =
            result->managed || result->conflict != NULL ? CATALOGUE_CONFLICT : status_of(word);
    if (result->status != CATALOGUE_OK) {
        snprintf(result->detail, sizeof result->detail, "%.250s", detail);
        return;
    }
    result->status = CATALOGUE_UNAVAILABLE;
    snprintf(result->detail, sizeof result->detail, "%.180s (%.60s)", detail, word);
}

static void take_counts(const json_t *answer, struct change_result *result)
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

/* ---- changes of one thing -------------------------------------------------------------- */

static json_t *texts(const char *const *list)
{
    json_t *array = json_array();

    for (; array != NULL && *list != NULL; list++)
        json_array_append_new(array, json_string(*list));
    return array;
}

/* One call; true where it was applied: `*answer` (may be NULL) is the caller's. */
static bool call(struct server_backend *s, const char *method, const struct str *target,
                 json_t *body, struct change_result *result, json_t **answer)
{
    *answer = NULL;
    if (target->failed) {
        result->status = CATALOGUE_NO_MEMORY;
        return false;
    }
    if (server_ask(&s->server, method, str_text(target), body, answer) && good(s))
        return true;
    refuse(s, *answer, result);
    json_decref(*answer);
    *answer = NULL;
    return false;
}

static char *copy(const char *text)
{
    return text != NULL ? strdup(text) : NULL;
}

static void take_entry(struct server_backend *s, const json_t *sitemap,
                       struct change_result *result)
{
    struct entry_record *entry = &result->entry;

    snprintf(entry->id, sizeof entry->id, "%s", member_text(sitemap, "id"));
    entry->loc = copy(member_text(sitemap, "loc"));
    entry->lastmod = copy(member_text_or_null(sitemap, "lastmod"));
    entry->digest = copy(member_text_or_null(sitemap, "digest"));
    entry->source = copy(member_text(sitemap, "source"));
    entry->page = (uint32_t)member_number(sitemap, "page");
    entry->registered_at = member_time(sitemap, "registered_at");
    entry->changed_at = member_time(sitemap, "changed_at");
    str_clear(&s->url);
    str_append_text(&s->url, member_text(sitemap, "index"));
    result->remarks = codes_of(json_object_get(sitemap, "warnings"));
    if (entry->loc == NULL || entry->source == NULL)
        result->status = CATALOGUE_NO_MEMORY;
}

static void put_entry(struct server_backend *s, const struct change *change,
                      struct change_result *result)
{
    const struct entry *entry = &change->entry;
    struct str target = STR_INIT;
    json_t *body = json_pack("{s:s, s:s*}", "loc", entry->loc, "index", entry->index), *answer;

    if (entry->lastmod_state != FIELD_ABSENT)
        json_object_set_new(body, "lastmod",
                            entry->lastmod != NULL ? json_string(entry->lastmod) : json_null());
    if (entry->digest_state != FIELD_ABSENT)
        json_object_set_new(body, "digest",
                            entry->digest != NULL ? json_string(entry->digest) : json_null());
    str_append_text(&target, "/v1/sitemaps");
    target_add(&target, "source", change->source);
    if (call(s, "POST", &target, body, result, &answer)) {
        take_counts(answer, result);
        take_entry(s, json_object_get(answer, "sitemap"), result);
    }
    json_decref(answer);
    json_decref(body);
    str_done(&target);
}

static void remove_entry(struct server_backend *s, const struct change *change,
                         struct change_result *result)
{
    struct str target = STR_INIT;
    json_t *answer;

    str_append_text(&target, "/v1/sitemaps");
    target_add(&target, "loc", change->loc);
    if (call(s, "DELETE", &target, NULL, result, &answer))
        result->removed = 1;
    json_decref(answer);
    str_done(&target);
}

/* The fields that are set, by the API's names. */
static json_t *site_body(const struct site_fields *site)
{
    const struct {
        const char *name;
        const char *const *list;
    } edits[] = {
        {"add_cross_hosts", site->cross_added},
        {"remove_cross_hosts", site->cross_removed},
        {"add_host_aliases", site->alias_added},
        {"remove_host_aliases", site->alias_removed},
    };
    json_t *body = json_object();

    if ((site->set & SITE_SET_CROSS_HOSTS) != 0)
        json_object_set_new(body, "cross_hosts", texts(site->cross_hosts));
    if ((site->set & SITE_SET_ALIAS_HOSTS) != 0)
        json_object_set_new(body, "host_aliases", texts(site->alias_hosts));
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++)
        if (edits[i].list != NULL && edits[i].list[0] != NULL)
            json_object_set_new(body, edits[i].name, texts(edits[i].list));
    if ((site->set & SITE_SET_MAX_PAGES) != 0)
        json_object_set_new(body, "max_indexes", json_integer(site->max_pages));
    if ((site->set & SITE_SET_FROZEN) != 0)
        json_object_set_new(body, "frozen", json_boolean(site->frozen));
    if ((site->set & SITE_SET_ROBOTS) != 0)
        json_object_set_new(body, "robots",
                            site->robots_off       ? json_false()
                            : site->robots == NULL ? json_null()
                                                   : json_string(site->robots));
    return body;
}

static void add_site(struct server_backend *s, const struct change *change,
                     struct change_result *result)
{
    struct str target = STR_INIT;
    const char *origin = change->site.origin;
    json_t *body = site_body(&change->site), *answer;

    json_object_set_new(body, "origin", json_string(origin));
    json_object_set_new(body, "index",
                        change->index_url != NULL ? json_string(change->index_url + strlen(origin))
                                                  : json_false());
    str_append_text(&target, "/v1/sites");
    result->changed = call(s, "POST", &target, body, result, &answer);
    json_decref(answer);
    json_decref(body);
    str_done(&target);
}

/* Whether anything changed shows in the site itself, before and after. */
static void update_site(struct server_backend *s, const struct change *change,
                        struct change_result *result)
{
    struct str target = STR_INIT;
    json_t *body = site_body(&change->site), *before = NULL, *after = NULL;

    str_append_format(&target, "/v1/sites/%" PRId64, change->site_id);
    if (call(s, "GET", &target, NULL, result, &before) &&
        call(s, "PATCH", &target, body, result, &after))
        result->changed = json_equal(before, after) == 0;
    json_decref(before);
    json_decref(after);
    json_decref(body);
    str_done(&target);
}

static void freeze_index(struct server_backend *s, const struct change *change,
                         struct change_result *result)
{
    struct str target = STR_INIT;
    json_t *body = json_pack("{s:b}", "frozen", change->frozen), *answer = NULL;

    str_append_format(&target, "/v1/indexes/%" PRId64, change->index_id);
    result->changed = call(s, "PATCH", &target, body, result, &answer);
    json_decref(answer);
    json_decref(body);
    str_done(&target);
}

/* A site or an index: `what` is "sites" or "indexes". */
static void remove_whole(struct server_backend *s, const char *what, int64_t id,
                         const struct change *change, struct change_result *result)
{
    struct str target = STR_INIT;
    char number[24];
    json_t *answer;

    str_append_format(&target, "/v1/%s/%" PRId64, what, id);
    snprintf(number, sizeof number, "%" PRId64, change->max_removed);
    target_add(&target, "max_removed", change->max_removed >= 0 ? number : NULL);
    if (call(s, "DELETE", &target, NULL, result, &answer))
        take_counts(answer, result);
    json_decref(answer);
    str_done(&target);
}

static void add_index(struct server_backend *s, const struct change *change,
                      struct change_result *result)
{
    struct str target = STR_INIT;
    json_t *body = json_pack("{s:s, s:s*}", "url", change->index_url, "page_pattern",
                             change->page_pattern),
           *answer;

    str_append_text(&target, "/v1/indexes");
    result->changed = call(s, "POST", &target, body, result, &answer);
    json_decref(answer);
    json_decref(body);
    str_done(&target);
}

static void revoke_token(struct server_backend *s, const struct change *change,
                         struct change_result *result)
{
    struct str target = STR_INIT;
    json_t *answer;

    str_append_text(&target, "/v1/tokens");
    target_segment(&target, change->token.name);
    result->changed = call(s, "DELETE", &target, NULL, result, &answer);
    json_decref(answer);
    str_done(&target);
}

/* ---- lists ----------------------------------------------------------------------------- */

/* What was sent: the lines that the entries stood on, by their order. */
struct sent {
    FILE *file;
    uint64_t *lines; /* owned */
    uint64_t count;
};

static bool write_line(struct sent *sent, struct str *line, const struct entry *entry)
{
    str_clear(line);
    str_append_text(line, "{\"loc\":");
    str_append_json_text(line, entry->loc);
    if (entry->lastmod_state != FIELD_ABSENT)
        str_append_json_member(line, "lastmod", entry->lastmod);
    if (entry->digest_state != FIELD_ABSENT)
        str_append_json_member(line, "digest", entry->digest);
    if (entry->index != NULL)
        str_append_json_member(line, "index", entry->index);
    if (entry->source != NULL)
        str_append_json_member(line, "source", entry->source);
    if (entry->position != POSITION_NONE)
        str_append_format(line, ",\"position\":%" PRIu32, entry->position);
    str_append_text(line, "}\n");
    return !line->failed && fwrite(line->data, 1, line->len, sent->file) == line->len;
}

/* Writes the list into a file that is gone with the process. */
static bool write_list(struct sent *sent, struct spool *rows)
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
        sent->lines[sent->count++] = entry.line;
        written = write_line(sent, &line, &entry);
    }
    str_done(&line);
    return written && more == 0 && fflush(sent->file) == 0;
}

static struct spool *make_spool(struct backend *b, uint64_t max_bytes)
{
    const char *folder = getenv("TMPDIR");

    (void)b;
    return spool_new(folder != NULL && *folder != '\0' ? folder : "/tmp", max_bytes);
}

static uint64_t line_of(const struct sent *sent, const json_t *finding)
{
    uint64_t line = member_number(finding, "line");

    return line >= 1 && line <= sent->count ? sent->lines[line - 1] : 0;
}

static void take_rejections(struct change_result *result, const struct sent *sent,
                            const json_t *list)
{
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        struct rejection rejection = {
            .line = line_of(sent, item),
            .loc = member_text_or_null(item, "loc"),
            .code = code_of(member_text(item, "code")),
            .field = NULL,
        };
        const char *detail = member_text(item, "detail");

        if (strcmp(detail, rule_code_sentence(rejection.code)) != 0)
            snprintf(rejection.detail, sizeof rejection.detail, "%.250s", detail);
        findings_refuse(&result->findings, &rejection);
    }
}

/* Those of what was stored. What a loc or a date bears by itself was remarked when the list was
 * read, as the API would. */
static void take_remarks(struct change_result *result, const struct sent *sent, const json_t *list)
{
    const rule_set read = RULE_BIT(RULE_LASTMOD_INVALID) | RULE_BIT(RULE_LASTMOD_NO_ZONE) |
                          RULE_BIT(RULE_LASTMOD_FUTURE) | RULE_BIT(RULE_LOC_NO_SITEMAP) |
                          RULE_BIT(RULE_LOC_AMP);
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
    str_append_text(target, "/v1/sitemaps");
    target_add(target, "index", change->index_name);
    target_add(target, "source", replace && change->replace_source == NULL ? "*" : change->source);
    target_add(target, "on_error", change->skip ? "skip" : NULL);
    target_add(target, "dry_run", change->dry_run ? "1" : NULL);
    target_add(target, "max_removed", change->max_removed >= 0 ? number : NULL);
}

static void send_list(struct server_backend *s, const struct change *change,
                      struct change_result *result)
{
    struct sent sent = {0};
    struct str target = STR_INIT;
    json_t *answer = NULL;

    result->rows = change->rows;
    result->findings.max = change->max_told;
    result->findings.examples = FINDINGS_EXAMPLES;
    list_target(&target, change);
    if (!write_list(&sent, change->rows) || target.failed) {
        result->status = CATALOGUE_NO_SPACE;
        snprintf(result->detail, sizeof result->detail,
                 "no room for the list in the folder for temporary files (TMPDIR)");
    } else if (server_send(&s->server, change->kind == CHANGE_REPLACE ? "PUT" : "POST",
                           str_text(&target), sent.file, &answer) &&
               good(s)) {
        take_counts(answer, result);
        take_rejections(result, &sent, json_object_get(answer, "rejected"));
        take_remarks(result, &sent, json_object_get(answer, "warnings"));
    } else {
        refuse(s, answer, result);
        if (strcmp(member_text(answer, "code"), "entries-refused") == 0)
            result->status = CATALOGUE_REFUSED;
        take_rejections(result, &sent, json_object_get(answer, "rejected"));
    }
    json_decref(answer);
    str_done(&target);
    free(sent.lines);
    if (sent.file != NULL)
        fclose(sent.file);
}

/* An undo, and a restore of an index. */
static void put_back(struct server_backend *s, const struct change *change,
                     struct change_result *result)
{
    bool restores = change->kind == CHANGE_RESTORE;
    struct sent nothing = {0};
    struct str target = STR_INIT;
    char revision[24], number[24];
    json_t *answer;

    snprintf(revision, sizeof revision, "%" PRIu64, change->revision);
    snprintf(number, sizeof number, "%" PRId64, change->max_removed);
    if (restores)
        str_append_text(&target, "/v1/restore");
    else
        str_append_format(&target, "/v1/history/%s/undo", revision);
    target_add(&target, "index", restores ? change->index_name : NULL);
    target_add(&target, "to", restores ? revision : NULL);
    target_add(&target, "on_conflict", change->overwrite ? "overwrite" : NULL);
    target_add(&target, "dry_run", change->dry_run ? "1" : NULL);
    target_add(&target, "max_removed", change->max_removed >= 0 ? number : NULL);
    result->findings.max = change->max_told;
    if (call(s, "POST", &target, NULL, result, &answer)) {
        take_counts(answer, result);
        take_rejections(result, &nothing, json_object_get(answer, "conflicts"));
        result->findings.refused = member_number(answer, "conflicts_total");
    }
    json_decref(answer);
    str_done(&target);
}

static enum catalogue_status apply(struct backend *b, const struct change *change,
                                   backend_progress *progress, void *context,
                                   struct change_result *result)
{
    struct server_backend *s = of(b);

    (void)progress, (void)context;
    *result = (struct change_result){.status = CATALOGUE_OK};
    switch (change->kind) {
    case CHANGE_ENTRY_PUT:
        put_entry(s, change, result);
        break;
    case CHANGE_ENTRY_REMOVE:
        remove_entry(s, change, result);
        break;
    case CHANGE_BULK:
    case CHANGE_REPLACE:
        send_list(s, change, result);
        break;
    case CHANGE_SITE_ADD:
        add_site(s, change, result);
        break;
    case CHANGE_SITE_UPDATE:
        update_site(s, change, result);
        break;
    case CHANGE_SITE_REMOVE:
        remove_whole(s, "sites", change->site_id, change, result);
        break;
    case CHANGE_INDEX_ADD:
        add_index(s, change, result);
        break;
    case CHANGE_INDEX_FREEZE:
        freeze_index(s, change, result);
        break;
    case CHANGE_INDEX_REMOVE:
        remove_whole(s, "indexes", change->index_id, change, result);
        break;
    case CHANGE_TOKEN_REVOKE:
        revoke_token(s, change, result);
        break;
    case CHANGE_UNDO:
    case CHANGE_RESTORE:
        put_back(s, change, result);
        break;
    default: /* what the API has no call for, and no command asks of it */
        result->status = CATALOGUE_UNAVAILABLE;
        break;
    }
    return result->status;
}

/* ---- the registry ---------------------------------------------------------------------- */

/* All pages of a list, joined into one array. NULL, and told, where that fails. */
static json_t *read_all(struct server_backend *s, const char *path, const char *member)
{
    json_t *all = json_array();
    struct str after = STR_INIT;

    do {
        struct str target = STR_INIT;
        json_t *answer = NULL;

        str_append_text(&target, path);
        target_add(&target, "limit", PAGE_OF_LIST);
        target_add(&target, "after", after.len > 0 ? str_text(&after) : NULL);
        if (!server_ask(&s->server, "GET", str_text(&target), NULL, &answer) || !good(s)) {
            tell(s, answer);
            json_decref(all);
            all = NULL;
        } else {
            json_array_extend(all, json_object_get(answer, member));
            str_clear(&after);
            str_append_text(&after, member_text(answer, "next"));
            json_decref(answer);
        }
        str_done(&target);
    } while (all != NULL && after.len > 0);
    str_done(&after);
    return all;
}

/* Makes each site what its own address tells: with its robots.txt. */
static bool read_robots(struct server_backend *s, json_t *sites)
{
    for (size_t i = 0; i < json_array_size(sites); i++) {
        struct str target = STR_INIT;
        json_t *whole = NULL;
        bool read;

        str_append_text(&target, "/v1/sites");
        target_segment(&target, member_text(json_array_get(sites, i), "id"));
        read = server_ask(&s->server, "GET", str_text(&target), NULL, &whole) && good(s);
        str_done(&target);
        if (!read) {
            tell(s, whole);
            return false;
        }
        json_array_set_new(sites, i, whole);
    }
    return true;
}

/* A registry while it is put together: what registry_copy takes, and what owns its arrays. */
struct plain {
    struct registry registry;
    struct registry_site *sites;
    struct registry_index *indexes;
    uint32_t *pages;
    const char **hosts;
    size_t index_count, page_count, host_count;
};

static const char *const *take_hosts(struct plain *p, const json_t *list, size_t *count)
{
    const char **first = &p->hosts[p->host_count];
    json_t *host;
    size_t i;

    *count = 0;
    json_array_foreach(list, i, host) if (json_is_string(host))
    {
        p->hosts[p->host_count++] = json_string_value(host);
        ++*count;
    }
    return first;
}

static void take_index(struct plain *p, struct registry_site *site, const json_t *index)
{
    struct registry_index *out = &p->indexes[p->index_count++];
    const json_t *pages = json_object_get(index, "pages");
    size_t origin_len = strlen(site->origin), i;
    const char *url = member_text(index, "url");
    json_t *page;

    *out = (struct registry_index){
        .id = strtoll(member_text(index, "id"), NULL, 10),
        .site_id = site->id,
        .path = strlen(url) > origin_len ? url + origin_len : "",
        .page_pattern = member_text(index, "page_pattern"),
        .frozen = json_is_true(json_object_get(index, "frozen")),
        .pages = &p->pages[p->page_count],
    };
    json_array_foreach(pages, i, page)
    {
        if (json_is_integer(json_object_get(page, "entries")) &&
            member_number(page, "entries") == 0)
            continue;
        p->pages[p->page_count++] = (uint32_t)member_number(page, "number");
        out->page_count++;
    }
    site->index_count++;
}

/* `*at`: the first index that no site before had. Both lists go by origin. */
static void take_site(struct plain *p, const json_t *site, const json_t *indexes, size_t *at)
{
    struct registry_site *out = &p->sites[p->registry.site_count++];
    const json_t *robots = json_object_get(site, "robots"), *index;

    *out = (struct registry_site){
        .id = strtoll(member_text(site, "id"), NULL, 10),
        .origin = member_text(site, "origin"),
        .managed = json_is_true(json_object_get(site, "managed")),
        .frozen = json_is_true(json_object_get(site, "frozen")),
        .max_pages = (uint32_t)member_number(site, "max_indexes"),
        .robots = json_string_value(robots),
        .robots_off = json_is_false(robots),
        .indexes = &p->indexes[p->index_count],
    };
    out->cross_hosts = take_hosts(p, json_object_get(site, "cross_hosts"), &out->cross_host_count);
    out->alias_hosts = take_hosts(p, json_object_get(site, "host_aliases"), &out->alias_host_count);
    while ((index = json_array_get(indexes, *at)) != NULL &&
           strcmp(member_text(index, "site"), out->origin) == 0) {
        take_index(p, out, index);
        ++*at;
    }
}

static struct registry *build(const json_t *sites, const json_t *indexes)
{
    struct plain p = {0};
    struct registry *made = NULL;
    size_t hosts = 0, pages = 0, at = 0, i;
    json_t *item;

    json_array_foreach(sites, i, item) hosts +=
        json_array_size(json_object_get(item, "cross_hosts")) +
        json_array_size(json_object_get(item, "host_aliases"));
    json_array_foreach(indexes, i, item) pages += json_array_size(json_object_get(item, "pages"));
    p.sites = calloc(json_array_size(sites) + 1, sizeof *p.sites);
    p.indexes = calloc(json_array_size(indexes) + 1, sizeof *p.indexes);
    p.pages = calloc(pages + 1, sizeof *p.pages);
    p.hosts = calloc(hosts + 1, sizeof *p.hosts);
    if (p.sites != NULL && p.indexes != NULL && p.pages != NULL && p.hosts != NULL) {
        json_array_foreach(sites, i, item) take_site(&p, item, indexes, &at);
        p.registry.sites = p.sites;
        made = registry_copy(&p.registry);
    }
    free(p.sites);
    free(p.indexes);
    free(p.pages);
    free((void *)p.hosts);
    return made;
}

static struct registry *read_registry(struct backend *b, unsigned want)
{
    struct server_backend *s = of(b);
    json_t *sites = read_all(s, "/v1/sites", "sites");
    struct registry *registry = NULL;

    json_decref(s->indexes);
    s->indexes = sites != NULL ? read_all(s, "/v1/indexes", "indexes") : NULL;
    if (s->indexes != NULL && ((want & REGISTRY_ROBOTS) == 0 || read_robots(s, sites))) {
        registry = build(sites, s->indexes);
        if (registry == NULL)
            cli_fail(b->name, "its sites and indexes cannot be read");
    }
    json_decref(sites);
    return registry;
}

static int read_page(struct backend *b, const struct registry_index *index, uint32_t number,
                     struct backend_page *out)
{
    const struct server_backend *s = of(b);
    json_t *each, *page;
    size_t i, k;

    *out = (struct backend_page){0};
    json_array_foreach(s->indexes, i, each)
    {
        if (strtoll(member_text(each, "id"), NULL, 10) != index->id)
            continue;
        json_array_foreach(json_object_get(each, "pages"), k,
                           page) if (member_number(page, "number") == number) *out =
            (struct backend_page){member_number(page, "entries"), member_number(page, "bytes"),
                                  member_time(page, "changed_at"),
                                  json_is_null(json_object_get(page, "entries"))};
    }
    return EXIT_DONE;
}

/* ---- streams --------------------------------------------------------------------------- */

/* As the server told it with the registry. */
static const char *url_of(const struct server_backend *s, const struct registry_index *index)
{
    json_t *each;
    size_t i;

    json_array_foreach(s->indexes, i, each)
    {
        if (strtoll(member_text(each, "id"), NULL, 10) == index->id)
            return member_text(each, "url");
    }
    return "";
}

static bool take_text(void *context, const struct fetch_reply *reply, const char *bytes, size_t len)
{
    struct str *out = context;

    (void)reply;
    str_append(out, bytes, len);
    return !out->failed;
}

static int render(struct backend *b, const struct registry_index *index, uint32_t number,
                  bool *found, struct str *out)
{
    struct server_backend *s = of(b);
    struct str target = STR_INIT;
    char page[16];
    json_t *answer = NULL;

    snprintf(page, sizeof page, "%" PRIu32, number);
    str_append_text(&target, "/v1/render");
    target_add(&target, "index", url_of(s, index));
    target_add(&target, "page", page);
    *found =
        server_stream(&s->server, str_text(&target), "application/xml", take_text, out, &answer) &&
        good(s);
    str_done(&target);
    if (!*found && strcmp(member_text(answer, "code"), "page-empty") != 0)
        return tell(s, answer);
    json_decref(answer);
    return EXIT_DONE;
}

/* What a list is told to. */
struct listed {
    backend_entry *each;
    void *context;
    bool ended;  /* the caller wants no more */
    bool broken; /* a line that is no entry */
};

static bool tell_line(void *context, const json_t *line)
{
    struct listed *l = context;
    char origin[LOC_MAX_CHARS + 1];
    struct entry_shown entry;

    l->broken = !member_entry(line, &entry, origin);
    if (!l->broken)
        l->ended = !l->each(l->context, &entry);
    return !l->broken && !l->ended;
}

static int list(struct backend *b, const struct backend_list *wanted, backend_entry *each,
                void *context)
{
    struct server_backend *s = of(b);
    struct listed listed = {.each = each, .context = context};
    struct str target = STR_INIT;
    json_t *answer = NULL;
    int status = EXIT_DONE;

    str_append_text(&target, "/v1/sitemaps");
    target_add(&target, "index", wanted->index != NULL ? url_of(s, wanted->index) : NULL);
    target_add(&target, "prefix", wanted->prefix);
    if ((!server_lines(&s->server, str_text(&target), tell_line, &listed, &answer) || !good(s)) &&
        !listed.ended)
        status = listed.broken ? cli_fail(b->name, "what it lists is no entry") : tell(s, answer);
    else
        json_decref(answer);
    str_done(&target);
    return status;
}

static const char *owner(struct backend *b)
{
    struct server_backend *s = of(b);
    json_t *answer = NULL;

    if (s->name.len > 0)
        return str_text(&s->name);
    if (!server_ask(&s->server, "GET", "/v1/token", NULL, &answer) || !good(s)) {
        tell(s, answer);
        return NULL;
    }
    str_append_text(&s->name, member_text(answer, "name"));
    json_decref(answer);
    return str_text(&s->name);
}

/* ---- the history ----------------------------------------------------------------------- */

/* What the history does not have is told as of a file. */
static int tell_of(struct server_backend *s, const char *what, json_t *answer)
{
    const char *word = member_text(answer, "code"), *detail = member_text(answer, "detail");

    if (!(strcmp(word, "not-found") == 0 && strncmp(detail, "the history ", 12) == 0) &&
        strcmp(word, "diff-too-large") != 0)
        return tell(s, answer);
    cli_fail(what, "%s", detail);
    json_decref(answer);
    return EXIT_COULD_NOT;
}

static int history(struct backend *b, const struct history_query *query, backend_change *each,
                   void *context, struct backend_reach *reach)
{
    struct server_backend *s = of(b);
    json_t *answer = NULL;

    if (server_history(&s->server, query, each, context, reach, &answer))
        return EXIT_DONE;
    return tell_of(s, b->name, answer);
}

static int change_of(struct backend *b, uint64_t revision, backend_change *each,
                     backend_row *each_row, void *context)
{
    struct server_backend *s = of(b);
    json_t *answer = NULL;
    char what[40];

    snprintf(what, sizeof what, "revision %" PRIu64, revision);
    if (server_change(&s->server, revision, each, each_row, context, &answer))
        return EXIT_DONE;
    return tell_of(s, what, answer);
}

static int diff(struct backend *b, const struct backend_diff *wanted, backend_row *each,
                void *context)
{
    struct server_backend *s = of(b);
    json_t *answer = NULL;
    char what[40];

    snprintf(what, sizeof what, "revision %" PRIu64, wanted->from);
    if (server_diff(&s->server, wanted, each, context, &answer))
        return EXIT_DONE;
    return tell_of(s, what, answer);
}

static struct backend_crawler read_crawler(const json_t *crawler)
{
    const json_t *lag = json_object_get(crawler, "lag"), *day;
    struct backend_crawler told = {
        .name = member_text(crawler, "name"),
        .verified = json_is_true(json_object_get(crawler, "verified")),
        .last_fetch_at = member_time(crawler, "last_fetch_at"),
        .seen_up_to = member_time(crawler, "seen_up_to"),
        .stale_since = member_time(crawler, "stale_since"),
        .pages = member_number(crawler, "pages"),
        .current = member_number(crawler, "current"),
        .stale = member_number(crawler, "stale"),
        .never = member_number(crawler, "never"),
        .lagged = member_number(lag, "changes"),
        .lag_p50 = member_number(lag, "p50_s"),
        .lag_p90 = member_number(lag, "p90_s"),
        .lag_max = member_number(lag, "max_s"),
    };
    size_t i;

    json_array_foreach(json_object_get(crawler, "days"), i, day)
    {
        told.ok += member_number(day, "ok");
        told.not_modified += member_number(day, "not_modified");
        told.other += member_number(day, "other");
        told.impostors += member_number(day, "impostors");
    }
    return told;
}

static int crawlers(struct backend *b, const struct registry_site *site, backend_crawler_each *each,
                    void *context)
{
    struct server_backend *s = of(b);
    struct str target = STR_INIT;
    json_t *answer = NULL, *crawler;
    size_t i;

    str_append_text(&target, "/v1/crawlers");
    target_add(&target, "site", site != NULL ? site->origin : NULL);
    bool asked = server_ask(&s->server, "GET", str_text(&target), NULL, &answer) && good(s);
    str_done(&target);
    if (!asked)
        return tell(s, answer);
    json_array_foreach(json_object_get(answer, "crawlers"), i, crawler)
    {
        const struct backend_crawler told = read_crawler(crawler);

        each(context, &told);
    }
    json_decref(answer);
    return EXIT_DONE;
}

static int crawler_pages(struct backend *b, const char *name, bool stale,
                         backend_crawler_page_each *each, void *context)
{
    struct str target = STR_INIT;
    json_t *all, *page;
    size_t i;

    str_append_text(&target, "/v1/crawlers");
    target_segment(&target, name);
    str_append_text(&target, "/pages");
    target_add(&target, "stale", stale ? "1" : NULL);
    all = read_all(of(b), str_text(&target), "pages");
    str_done(&target);
    if (all == NULL)
        return EXIT_COULD_NOT;
    json_array_foreach(all, i, page)
    {
        const struct backend_crawler_page told = {
            .url = member_text(page, "url"),
            .status = (unsigned)member_number(page, "status"),
            .fetched_at = member_time(page, "fetched_at"),
            .held_changed_at = member_time(page, "held_changed_at"),
            .changed_at = member_time(page, "changed_at"),
            .stale_since = member_time(page, "stale_since"),
        };

        each(context, &told);
    }
    json_decref(all);
    return EXIT_DONE;
}

static const char *index_url(struct backend *b, const struct change_result *result)
{
    (void)result;
    return str_text(&of(b)->url);
}

static bool take_copy(void *context, const struct fetch_reply *reply, const char *bytes, size_t len)
{
    (void)reply;
    return fwrite(bytes, 1, len, context) == len;
}

/* For the owner alone: it has the hashes of tokens. */
static FILE *open_part(char *name)
{
    int fd = mkostemp(name, O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

    if (fd >= 0 && file == NULL) {
        close(fd);
        unlink(name);
    }
    return file;
}

/* Into a file of another name first, so that none is left that is not whole. */
static int backup(struct backend *b, const char *file)
{
    struct server_backend *s = of(b);
    bool to_stdout = strcmp(file, "-") == 0, whole;
    struct str part = STR_INIT;
    json_t *answer = NULL;
    FILE *out;
    int status = EXIT_DONE;

    str_append_format(&part, "%s.XXXXXX", file);
    out = to_stdout ? stdout : part.failed ? NULL : open_part(part.data);
    if (out == NULL) {
        status = cli_fail(file, "%s", strerror(errno));
        str_done(&part);
        return status;
    }
    whole = server_stream(&s->server, "/v1/backup", "application/octet-stream", take_copy, out,
                          &answer) &&
            good(s);
    if (!whole && s->server.status == 0 && ferror(out))
        status = cli_fail(file, "not all of it could be written");
    else if (!whole)
        status = tell(s, answer);
    if (to_stdout) {
        whole = fflush(out) == 0 && whole;
    } else {
        whole = fflush(out) == 0 && fsync(fileno(out)) == 0 && whole;
        whole = fclose(out) == 0 && whole;
        if (whole)
            whole = rename(str_text(&part), file) == 0;
        else
            unlink(str_text(&part));
    }
    if (!whole && status == EXIT_DONE)
        status = cli_fail(file, "not all of it could be written");
    str_done(&part);
    return status;
}

/* ---- tokens, sources, status ----------------------------------------------------------- */

static int tokens(struct backend *b, backend_token_each *each, void *context)
{
    json_t *all = read_all(of(b), "/v1/tokens", "tokens"), *token;
    size_t i;

    if (all == NULL)
        return EXIT_COULD_NOT;
    json_array_foreach(all, i, token)
    {
        const struct backend_token shown = {
            .name = member_text(token, "name"),
            .site = member_text_or_null(token, "site"),
            .all_sites = member_text_or_null(token, "site") == NULL,
            .prefix = member_text_or_null(token, "prefix"),
            .role = member_text(token, "role"),
            .own = json_is_true(json_object_get(token, "own")),
            .managed = json_is_true(json_object_get(token, "managed")),
            .created_at = member_text(token, "created_at"),
            .expires_at = member_text_or_null(token, "expires_at"),
            .last_used_at = member_text_or_null(token, "last_used_at"),
        };

        each(context, &shown);
    }
    json_decref(all);
    return EXIT_DONE;
}

/* The sources as the server tells them; NULL, and told, where it does not. */
static json_t *read_sources(struct server_backend *s)
{
    json_t *answer = NULL, *sources;

    if (!server_ask(&s->server, "GET", "/v1/sources", NULL, &answer) || !good(s)) {
        tell(s, answer);
        return NULL;
    }
    sources = json_incref(json_object_get(answer, "sources"));
    json_decref(answer);
    return sources;
}

/* What is wrong with single files, as a scan on the machine tells it. */
static void tell_files(const json_t *source, const char *member, const char *what)
{
    json_t *file;
    size_t i;

    json_array_foreach(json_object_get(source, member), i, file)
    {
        printf("%-9s ", what);
        cli_print_escaped(stdout, member_text(file, "path"));
        if (member_number(file, "line") > 0)
            printf(":%" PRIu64 ":%" PRIu64, member_number(file, "line"),
                   member_number(file, "column"));
        printf(": %s", member_text(file, "code"));
        if (*member_text(file, "detail") != '\0') {
            printf(": ");
            cli_print_escaped(stdout, member_text(file, "detail"));
        }
        putchar('\n');
    }
}

static int scan(struct backend *b, const char *name, int64_t max_removed,
                struct change_result *result, uint64_t *problems, uint64_t *remarked)
{
    struct server_backend *s = of(b);
    struct str target = STR_INIT;
    json_t *answer = NULL, *sources, *source;
    char number[24];
    bool scanned;
    size_t i;

    snprintf(number, sizeof number, "%" PRId64, max_removed);
    str_append_text(&target, "/v1/sources");
    target_segment(&target, name);
    str_append_text(&target, "/scan");
    target_add(&target, "max_removed", max_removed >= 0 ? number : NULL);
    scanned = server_ask(&s->server, "POST", str_text(&target), NULL, &answer) && good(s);
    str_done(&target);
    if (!scanned && strcmp(member_text(answer, "code"), "not-found") == 0) {
        json_decref(answer);
        return cli_misuse("scan", "\"%s\" is no [source] of the server's configuration", name);
    }
    if (!scanned)
        return tell(s, answer);
    take_counts(answer, result);
    result->would_remove = member_number(answer, "held_removals");
    json_decref(answer);
    sources = read_sources(s);
    json_array_foreach(sources, i, source)
    {
        if (strcmp(member_text(source, "name"), name) != 0)
            continue;
        *problems = member_number(source, "problems_total");
        *remarked = member_number(source, "remarked");
        tell_files(source, "problems", "problem");
        tell_files(source, "remarks", "remark");
    }
    json_decref(sources);
    return sources != NULL ? EXIT_DONE : EXIT_COULD_NOT;
}

static void take_reasons(const json_t *ready, struct str *out)
{
    json_t *reason;
    size_t i;

    json_array_foreach(json_object_get(ready, "reasons"), i, reason)
    {
        str_append_format(out, "%s (%s)\n", member_text(reason, "detail"),
                          member_text(reason, "code"));
    }
}

static int status(struct backend *b, struct backend_status *out)
{
    struct server_backend *s = of(b);
    json_t *ready = NULL, *api = NULL, *sources, *source;
    size_t i;

    if (!server_ask(&s->server, "GET", "/readyz", NULL, &ready))
        return tell(s, ready);
    out->healthy = s->server.status == 200 && strcmp(member_text(ready, "status"), "ok") == 0;
    take_reasons(ready, &out->reasons);
    json_decref(ready);
    if (!server_ask(&s->server, "GET", "/openapi.json", NULL, &api) || !good(s))
        return tell(s, api);
    snprintf(out->version, sizeof out->version, "%s",
             member_text(json_object_get(api, "info"), "version"));
    json_decref(api);
    sources = read_sources(s);
    json_array_foreach(sources, i, source)
    {
        const struct backend_source told = {
            .name = member_text(source, "name"),
            .good_at = member_time(source, "last_good_scan_at"),
            .files = member_number(source, "files"),
            .listed = member_number(source, "listed"),
            .quarantined = member_number(source, "quarantined"),
            .held = member_number(source, "held_removals"),
            .remarked = member_number(source, "remarked"),
            .failure = member_text_or_null(source, "failure"),
        };

        out->source(out->context, &told);
    }
    json_decref(sources);
    return sources != NULL ? EXIT_DONE : EXIT_COULD_NOT;
}

/* ---- opening --------------------------------------------------------------------------- */

static struct catalogue *catalogue(struct backend *b)
{
    (void)b;
    return NULL;
}

static void close_server(struct backend *b)
{
    struct server_backend *s = of(b);

    json_decref(s->indexes);
    server_done(&s->server);
    str_done(&s->url);
    str_done(&s->name);
    free(s);
}

#define TOKEN_MAX 512

/* The first line of the file. */
static int read_token_file(const char *name, char out[TOKEN_MAX])
{
    FILE *file = fopen(name, "re");

    if (file == NULL)
        return cli_fail(name, "cannot be read");
    if (fgets(out, TOKEN_MAX, file) == NULL)
        out[0] = '\0';
    out[strcspn(out, "\r\n")] = '\0';
    fclose(file);
    return out[0] != '\0' ? EXIT_DONE : cli_fail(name, "has no token in its first line");
}

static int read_token(const struct cli *cli, const char *url, char out[TOKEN_MAX])
{
    const char *name = arguments_value(&cli->arguments, "--token-file");
    const char *token = getenv("SITEMAPD_TOKEN");

    if (name != NULL)
        return read_token_file(name, out);
    if (token == NULL || *token == '\0')
        return cli_fail(url, "needs a token: SITEMAPD_TOKEN, or --token-file FILE");
    if (strlen(token) >= TOKEN_MAX)
        return cli_fail("SITEMAPD_TOKEN", "is longer than any token");
    strcpy(out, token);
    return EXIT_DONE;
}

int backend_open_server(struct cli *cli, const char *url, struct backend **out)
{
    static const struct backend_calls calls = {
        .apply = apply,
        .spool = make_spool,
        .registry = read_registry,
        .page = read_page,
        .list = list,
        .history = history,
        .change_of = change_of,
        .diff = diff,
        .render = render,
        .backup = backup,
        .tokens = tokens,
        .scan = scan,
        .crawlers = crawlers,
        .crawler_pages = crawler_pages,
        .status = status,
        .index_url = index_url,
        .owner = owner,
        .catalogue = catalogue,
        .close = close_server,
    };
    char token[TOKEN_MAX];
    struct server_backend *s;
    int status = read_token(cli, url, token);

    if (status != EXIT_DONE)
        return status;
    s = calloc(1, sizeof *s);
    if (s == NULL)
        return cli_fail(url, "out of memory");
    if (!server_init(&s->server, url, token, session_ca_file(cli))) {
        cli_fail(url, "%s", s->server.why);
        explicit_bzero(token, sizeof token);
        server_done(&s->server);
        free(s);
        return EXIT_COULD_NOT;
    }
    explicit_bzero(token, sizeof token);
    s->base = (struct backend){.calls = &calls, .cli = cli, .name = s->server.origin.text};
    *out = &s->base;
    return EXIT_DONE;
}
