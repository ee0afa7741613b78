/* A change is one call of the API, and what the call answers becomes the change's result, refusals
 * by the rules' own words included. Lists go as NDJSON by way of a file, since their length is sent
 * first first; the server knows their lines by the order in which they are sent, the user by where
 * they stood. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/cli/backend/server_parts.h"
#include "server/rules/page/fragment.h"

/* ---- what an answer says --------------------------------------------------------------- */

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

/* The status of a refusal that no rule made; OK where it is not one of the catalogue's. */
static enum catalogue_status status_of(const char *word)
{
    if (strcmp(word, "site-exists") == 0 || strcmp(word, "index-exists") == 0 ||
        strcmp(word, "urlset-exists") == 0 || strcmp(word, "source-exists") == 0)
        return CATALOGUE_CONFLICT;
    for (int s = CATALOGUE_NOT_FOUND; s <= CATALOGUE_CANCELLED; s++)
        if (strcmp(catalogue_status_word((enum catalogue_status)s), word) == 0)
            return (enum catalogue_status)s;
    return CATALOGUE_OK;
}

/* Why an undo or a list is refused, as the catalogue says it: static; NULL: for another reason. */
static const char *conflict_of(const char *word)
{
    static const char *const words[] = {"source-decides", "not-undoable", "taken-since",
                                        "precondition-on-list"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], word) == 0)
            return words[i];
    return NULL;
}

/* Fills the result of a change that was not applied. */
static void refuse(struct server *s, const json_t *answer, struct change_result *result)
{
    const char *word = member_text(answer, "code"), *detail = member_text(answer, "detail");

    if (s->status == 0 || answer == NULL) {
        result->status = CATALOGUE_UNAVAILABLE;
        snprintf(result->detail, sizeof result->detail, "%.100s: %.150s", s->origin.text,
                 s->why[0] != '\0' ? s->why : "the server did not respond");
        return;
    }
    result->code = code_of(word);
    result->managed = strcmp(word, "managed-by-config") == 0;
    result->conflict = conflict_of(word);
    result->precondition_failed = s->status == 412;
    result->would_remove = member_number(answer, "would_remove");
    if (result->code != RULE_OK)
        result->status = CATALOGUE_REFUSED;
    else
        result->status = result->managed || result->conflict != NULL || result->precondition_failed
                             ? CATALOGUE_CONFLICT
                             : status_of(word);
    if (result->status != CATALOGUE_OK) {
        snprintf(result->detail, sizeof result->detail, "%.250s", detail);
        return;
    }
    result->status = CATALOGUE_UNAVAILABLE;
    snprintf(result->detail, sizeof result->detail, "%.180s (%.60s)", detail, word);
}

void server_counts(const json_t *answer, struct change_result *result)
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

/* One call; true where it was applied: `*answer` (NULL: not wanted) is the caller's. Target and
 * body (may be NULL) are done with. */
static bool call(struct server *s, const char *method, struct str *target, json_t *body,
                 struct change_result *result, json_t **answer)
{
    json_t *told = NULL;
    bool applied = false;

    if (target->failed)
        result->status = CATALOGUE_NO_MEMORY;
    else if (!server_ask(s, method, str_text(target), body, &told) || !server_is_good(s))
        refuse(s, told, result);
    else
        applied = true;
    str_done(target);
    json_decref(body);
    if (answer != NULL)
        *answer = applied ? json_incref(told) : NULL;
    json_decref(told);
    return applied;
}

static char *copy(const char *text)
{
    return text != NULL ? strdup(text) : NULL;
}

static void take_entry(const json_t *sitemap, bool pages, struct str *index_url,
                       struct change_result *result)
{
    struct entry_record *entry = &result->entry;
    struct shown_entry kept;
    struct entry_shown shown;

    snprintf(entry->id, sizeof entry->id, "%s", member_text(sitemap, "id"));
    entry->loc = copy(member_text(sitemap, "loc"));
    entry->lastmod = copy(member_text_or_null(sitemap, "lastmod"));
    entry->digest = copy(member_text_or_null(sitemap, "digest"));
    entry->source = copy(member_text(sitemap, "source"));
    entry->page = (uint32_t)member_number(sitemap, "page");
    entry->registered_at = member_time(sitemap, "registered_at");
    entry->changed_at = member_time(sitemap, "changed_at");
    str_clear(index_url);
    str_append_text(index_url, member_text(sitemap, pages ? "urlset" : "index"));
    if (pages && member_entry(sitemap, &shown, &kept))
        entry->extensions = copy(shown.extensions);
    if (pages)
        shown_entry_done(&kept);
    result->remarks = codes_of(json_object_get(sitemap, "warnings"));
    if (entry->loc == NULL || entry->source == NULL)
        result->status = CATALOGUE_NO_MEMORY;
}

/* The members of a fragment; NULL: there are none from now on. */
static void add_extensions(json_t *body, const char *fragment)
{
    struct str text = STR_INIT;
    json_t *members;

    str_append_text(&text, "{\"images\":null");
    fragment_append_json(&text, fragment);
    str_append_char(&text, '}');
    members = json_loads(str_text(&text), 0, NULL); /* the last of a name counts */
    json_object_update(body, members);
    json_decref(members);
    str_done(&text);
}

static void put_entry(struct server *s, const struct change *change, struct str *index_url,
                      struct change_result *result)
{
    const struct entry *entry = &change->entry;
    struct str target = STR_INIT;
    bool pages = change->list == LIST_URLSET;
    json_t *body = json_pack("{s:s, s:s*}", "loc", entry->loc, pages ? "urlset" : "index",
                             entry->index),
           *answer;

    if (entry->extensions_state != FIELD_ABSENT)
        add_extensions(body, entry->extensions);
    if (entry->lastmod_state != FIELD_ABSENT)
        json_object_set_new(body, "lastmod",
                            entry->lastmod != NULL ? json_string(entry->lastmod) : json_null());
    if (entry->digest_state != FIELD_ABSENT)
        json_object_set_new(body, "digest",
                            entry->digest != NULL ? json_string(entry->digest) : json_null());
    str_append_text(&target, pages ? "/v1/urls" : "/v1/sitemaps");
    target_add(&target, "source", change->source);
    if (call(s, "POST", &target, body, result, &answer)) {
        server_counts(answer, result);
        take_entry(json_object_get(answer, pages ? "url" : "sitemap"), pages, index_url, result);
    }
    json_decref(answer);
}

static void remove_entry(struct server *s, const struct change *change,
                         struct change_result *result)
{
    struct str target = STR_INIT;

    str_append_text(&target, change->list == LIST_URLSET ? "/v1/urls" : "/v1/sitemaps");
    target_add(&target, "loc", change->loc);
    target_add(&target, "urlset", change->list == LIST_URLSET ? change->index_name : NULL);
    if (call(s, "DELETE", &target, NULL, result, NULL))
        result->removed = 1;
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
    if ((site->set & SITE_SET_CHECK) != 0)
        json_object_set_new(body, "check", json_boolean(site->check));
    if ((site->set & SITE_SET_FROZEN) != 0)
        json_object_set_new(body, "frozen", json_boolean(site->frozen));
    if ((site->set & SITE_SET_ROBOTS) != 0)
        json_object_set_new(body, "robots",
                            site->robots_off       ? json_false()
                            : site->robots == NULL ? json_null()
                                                   : json_string(site->robots));
    return body;
}

static void add_site(struct server *s, const struct change *change, struct change_result *result)
{
    struct str target = STR_INIT;
    const char *origin = change->site.origin;
    json_t *body = site_body(&change->site);

    json_object_set_new(body, "origin", json_string(origin));
    json_object_set_new(body, "index",
                        change->index_url != NULL ? json_string(change->index_url + strlen(origin))
                                                  : json_false());
    str_append_text(&target, "/v1/sites");
    result->changed = call(s, "POST", &target, body, result, NULL);
}

/* Whether anything changed shows in the site itself, before and after. */
static void update_site(struct server *s, const struct change *change, struct change_result *result)
{
    struct str target = STR_INIT, again = STR_INIT;
    json_t *before = NULL, *after = NULL;

    str_append_format(&target, "/v1/sites/%" PRId64, change->site_id);
    str_append_format(&again, "/v1/sites/%" PRId64, change->site_id);
    if (call(s, "GET", &target, NULL, result, &before) &&
        call(s, "PATCH", &again, site_body(&change->site), result, &after))
        result->changed = json_equal(before, after) == 0;
    str_done(&again);
    json_decref(before);
    json_decref(after);
}

static const char *lists_of(const struct change *change)
{
    return change->list == LIST_URLSET ? "urlsets" : "indexes";
}

static void freeze_index(struct server *s, const struct change *change,
                         struct change_result *result)
{
    struct str target = STR_INIT;
    json_t *body = json_pack("{s:b}", "frozen", change->frozen);

    str_append_format(&target, "/v1/%s/%" PRId64, lists_of(change), change->index_id);
    result->changed = call(s, "PATCH", &target, body, result, NULL);
}

/* A site or a list: `what` is "sites", "indexes" or "urlsets". */
static void remove_whole(struct server *s, const char *what, int64_t id,
                         const struct change *change, struct change_result *result)
{
    struct str target = STR_INIT;
    char number[24];
    json_t *answer;

    str_append_format(&target, "/v1/%s/%" PRId64, what, id);
    snprintf(number, sizeof number, "%" PRId64, change->max_removed);
    target_add(&target, "max_removed", change->max_removed >= 0 ? number : NULL);
    if (call(s, "DELETE", &target, NULL, result, &answer))
        server_counts(answer, result);
    json_decref(answer);
}

static void add_index(struct server *s, const struct change *change, struct change_result *result)
{
    struct str target = STR_INIT;
    json_t *body =
        json_pack("{s:s, s:s*}", "url", change->index_url, "page_pattern", change->page_pattern);

    str_append_text(&target, "/v1/indexes");
    result->changed = call(s, "POST", &target, body, result, NULL);
}

/* What is set. */
static json_t *urlset_body(const struct urlset_fields *urlset)
{
    json_t *body = json_object();
    char span[24];

    grant_write_span(urlset->expires_s, span);
    if ((urlset->set & URLSET_SET_INDEX) != 0)
        json_object_set_new(body, "index", json_string(urlset->index));
    if ((urlset->set & URLSET_SET_MAX_PAGES) != 0)
        json_object_set_new(body, "max_pages", json_integer(urlset->max_pages));
    if ((urlset->set & URLSET_SET_PAGE_URLS) != 0)
        json_object_set_new(body, "max_page_urls", json_integer(urlset->max_page_urls));
    if ((urlset->set & URLSET_SET_PAGE_BYTES) != 0)
        json_object_set_new(body, "max_page_bytes", json_integer(urlset->max_page_bytes));
    if ((urlset->set & URLSET_SET_EXPIRES) != 0)
        json_object_set_new(body, "expires",
                            urlset->expires_s > 0 ? json_string(span) : json_null());
    return body;
}

static void add_urlset(struct server *s, const struct change *change, struct change_result *result)
{
    struct str target = STR_INIT;
    json_t *body = urlset_body(&change->urlset), *with = json_array();

    json_object_set_new(body, "url", json_string(change->index_url));
    if (change->page_pattern != NULL)
        json_object_set_new(body, "page_pattern", json_string(change->page_pattern));
    for (size_t i = 0; i < EXTENSION_COUNT; i++)
        if ((change->urlset.with & extensions[i].bit) != 0)
            json_array_append_new(with, json_string(extensions[i].word));
    json_object_set_new(body, "with", with);
    str_append_text(&target, "/v1/urlsets");
    result->changed = call(s, "POST", &target, body, result, NULL);
}

static void change_urlset(struct server *s, const struct change *change,
                          struct change_result *result)
{
    struct str target = STR_INIT;
    char number[24];
    json_t *answer;

    str_append_format(&target, "/v1/urlsets/%" PRId64, change->index_id);
    snprintf(number, sizeof number, "%" PRId64, change->max_removed);
    target_add(&target, "max_removed", change->max_removed >= 0 ? number : NULL);
    if (call(s, "PATCH", &target, urlset_body(&change->urlset), result, &answer))
        server_counts(answer, result);
    json_decref(answer);
}

static void revoke_token(struct server *s, const struct change *change,
                         struct change_result *result)
{
    struct str target = STR_INIT;

    str_append_text(&target, "/v1/tokens");
    target_segment(&target, change->token.name);
    result->changed = call(s, "DELETE", &target, NULL, result, NULL);
}

/* ---- sources --------------------------------------------------------------------------- */

/* The names, one a line, as an array. */
static json_t *json_lines(const char *text)
{
    json_t *array = json_array();

    while (text != NULL && *text != '\0') {
        size_t len = strcspn(text, "\n");
        json_array_append_new(array, json_stringn(text, len));
        text += len + (text[len] == '\n');
    }
    return array;
}

static json_t *json_text(const char *text)
{
    return text != NULL ? json_string(text) : json_null();
}

#define json_option   json_text
#define json_yes_no   json_boolean
#define json_span(ms) json_integer((ms) / 1000)

static json_t *source_body(const struct change *change)
{
    const struct source_made *made = &change->made;
    json_t *body = json_object();

#define X(bit, kind, field, member, ...)                                                           \
    if (change->made_set & SOURCE_SET_##bit)                                                       \
        json_object_set_new(body, member, json_##kind(made->field));
    SOURCE_SETTINGS(X)
#undef X
    return body;
}

static void add_source(struct server *s, const struct change *change, struct change_result *result)
{
    struct str target = STR_INIT;
    json_t *body = source_body(change);

    json_object_set_new(body, "name", json_string(change->made.name));
    if (change->site.origin != NULL)
        json_object_set_new(body, "site", json_string(change->site.origin));
    str_append_text(&target, "/v1/sources");
    result->changed = call(s, "POST", &target, body, result, NULL);
}

/* Whether anything changed shows in what it was: what is reported of a run is left out. */
static void change_source(struct server *s, const struct change *change,
                          struct change_result *result)
{
    struct str target = STR_INIT, again = STR_INIT;
    json_t *before = NULL, *after = NULL, *value;
    const char *name;

    str_append_text(&target, "/v1/sources");
    target_segment(&target, change->made.name);
    str_append_text(&again, "/v1/sources");
    target_segment(&again, change->made.name);
    if (change->kind == CHANGE_SOURCE_REMOVE) {
        result->changed = call(s, "DELETE", &again, NULL, result, NULL);
        str_done(&target);
        return;
    }
    if (call(s, "GET", &target, NULL, result, &before) &&
        call(s, "PATCH", &again, source_body(change), result, &after))
        json_object_foreach(after, name, value) result->changed |=
            json_equal(json_object_get(before, name), value) == 0;
    else
        str_done(&again);
    json_decref(before);
    json_decref(after);
}

/* ---- lists ----------------------------------------------------------------------------- */

/* What was sent: the lines that the entries stood on, by their order. */
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
    str_append_text(line, "}\n");
    return !line->failed && fwrite(line->data, 1, line->len, sent->file) == line->len;
}

/* Writes the list into a file that is gone with the process. */
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
        sent->lines[sent->count++] = entry.line;
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
    target_add(target, "source", replace && change->replace_source == NULL ? "*" : change->source);
    target_add(target, "on_error", change->skip ? "skip" : NULL);
    target_add(target, "dry_run", change->dry_run ? "1" : NULL);
    target_add(target, "max_removed", change->max_removed >= 0 ? number : NULL);
}

static char *copy_of(const json_t *entry, const char *name)
{
    const char *text = member_text_or_null(entry, name);

    return text != NULL ? strdup(text) : NULL;
}

/* What a dry run tells of single entries: their texts. Where memory ends, the rest is not told. */
static void take_rows(const struct change *change, struct change_result *result, const json_t *rows)
{
    static const char *const members[] = {"before", "after"};
    size_t count = change->tells_rows ? json_array_size(rows) : 0;

    result->told = count > 0 ? calloc(count, sizeof *result->told) : NULL;
    for (size_t i = 0; result->told != NULL && i < count; i++) {
        struct entry_record *both[] = {&result->told[i].before, &result->told[i].after};

        for (size_t k = 0; k < 2; k++) {
            const json_t *entry = json_object_get(json_array_get(rows, i), members[k]);

            both[k]->loc = copy_of(entry, "loc");
            both[k]->lastmod = copy_of(entry, "lastmod");
            both[k]->digest = copy_of(entry, "digest");
            both[k]->source = copy_of(entry, "source");
        }
        result->told_count++;
    }
}

static void send_list(struct server *s, const struct change *change, struct change_result *result)
{
    struct sent sent = {0};
    struct str target = STR_INIT;
    json_t *answer = NULL;

    result->rows = change->rows;
    result->findings.max = change->max_told;
    result->findings.examples = FINDINGS_EXAMPLES;
    list_target(&target, change);
    if (!write_list(&sent, change->list == LIST_URLSET, change->rows) || target.failed) {
        result->status = CATALOGUE_NO_SPACE;
        snprintf(result->detail, sizeof result->detail,
                 "no room for the list in the folder for temporary files (TMPDIR)");
    } else if (server_send(s, change->kind == CHANGE_REPLACE ? "PUT" : "POST", str_text(&target),
                           change->if_match, sent.file, &answer) &&
               server_is_good(s)) {
        server_counts(answer, result);
        take_rejections(result, &sent, json_object_get(answer, "rejected"));
        take_remarks(result, &sent, json_object_get(answer, "warnings"));
        take_rows(change, result, json_object_get(answer, "rows"));
    } else {
        refuse(s, answer, result);
        if (json_array_size(json_object_get(answer, "rejected")) > 0)
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
static void put_back(struct server *s, const struct change *change, struct change_result *result)
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
        server_counts(answer, result);
        take_rejections(result, &nothing, json_object_get(answer, "conflicts"));
        take_rows(change, result, json_object_get(answer, "rows"));
        result->findings.refused = member_number(answer, "conflicts_total");
    }
    json_decref(answer);
}

enum catalogue_status server_apply(struct server *s, const struct change *change,
                                   struct str *index_url, struct change_result *result)
{
    *result = (struct change_result){.status = CATALOGUE_OK};
    switch (change->kind) {
    case CHANGE_ENTRY_PUT:
        put_entry(s, change, index_url, result);
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
        remove_whole(s, lists_of(change), change->index_id, change, result);
        break;
    case CHANGE_URLSET_ADD:
        add_urlset(s, change, result);
        break;
    case CHANGE_URLSET_UPDATE:
        change_urlset(s, change, result);
        break;
    case CHANGE_TOKEN_REVOKE:
        revoke_token(s, change, result);
        break;
    case CHANGE_SOURCE_ADD:
        add_source(s, change, result);
        break;
    case CHANGE_SOURCE_UPDATE:
    case CHANGE_SOURCE_REMOVE:
        change_source(s, change, result);
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
