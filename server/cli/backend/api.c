/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Calls the API by either way, and parses the responses. */
#include "server/cli/backend/api.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/base/text.h"
#include "server/input/reader.h"
#include "server/rules/lastmod.h"

#define PAGE_OF_LIST   "1000"       /* the API's limit */
#define LIST_PAGES_MAX 1000u        /* no catalogue has longer lists */
#define LIST_BYTES_MAX (256u << 20) /* or larger ones */
#define LINE_MAX_BYTES (32u << 20)  /* longer than any line of the API */

static bool fail(struct backend *b, const char *why)
{
    snprintf(b->why, sizeof b->why, "%s", why);
    return false;
}

/* ---- targets --------------------------------------------------------------------------- */

static void append_encoded(struct str *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (ascii_is_alnum(*text) || strchr("-._~", *text) != NULL)
            str_append_char(out, *text);
        else
            str_append_format(out, "%%%02X", (unsigned char)*text);
    }
}

void target_add(struct str *target, const char *name, const char *value)
{
    if (value == NULL)
        return;
    str_append_format(target, "%c%s=", strchr(str_text(target), '?') == NULL ? '?' : '&', name);
    append_encoded(target, value);
}

void target_add_number(struct str *target, const char *name, int64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, value);
    target_add(target, name, text);
}

void target_segment(struct str *target, const char *value)
{
    str_append_char(target, '/');
    append_encoded(target, value);
}

/* ---- asking ---------------------------------------------------------------------------- */

static void forget_lists(struct backend *b)
{
    json_decref(b->sites);
    json_decref(b->lists[0]);
    json_decref(b->lists[1]);
    b->sites = b->lists[0] = b->lists[1] = NULL;
}

static bool is_ascii_text(const char *text)
{
    while (*text >= ' ' && *text < 0x7f)
        text++;
    return *text == '\0';
}

static bool escape_string(json_t *value)
{
    char *text = NULL;
    size_t len;
    FILE *to = is_ascii_text(json_string_value(value)) ? NULL : open_memstream(&text, &len);

    if (to == NULL)
        return is_ascii_text(json_string_value(value));
    cli_print_escaped(to, json_string_value(value));
    bool good = fclose(to) == 0 && json_string_set(value, text) == 0;
    free(text);
    return good;
}

/* Escapes texts of a server or tenant, so that they neither control the terminal nor look like
 * further lines. A site's robots.txt stays, since only its length is shown. */
static bool escape_texts(json_t *value)
{
    const char *name;
    json_t *part;
    size_t i;
    bool good = !json_is_string(value) || escape_string(value);

    json_array_foreach(value, i, part) good = good && escape_texts(part);
    json_object_foreach(value, name, part) good =
        good && (strcmp(name, "robots") == 0 || escape_texts(part));
    return good;
}

bool api_send(struct backend *b, const struct api_request *request, json_t **out)
{
    struct str body = STR_INIT;
    bool good;

    *out = NULL;
    b->why[0] = '\0';
    b->status = 0;
    if (strcmp(request->method, "GET") != 0)
        forget_lists(b);
    good = (b->inside != NULL ? in_process : over_http)(b, request, &body);
    b->received += body.len;
    if (good && body.len > 0)
        *out = json_loadb(body.data, body.len, JSON_REJECT_DUPLICATES, NULL);
    if (good && body.len > 0 && *out == NULL) {
        snprintf(b->why, sizeof b->why, "unexpected response (%u): not from the API of sitemapd%s",
                 b->status,
                 b->inside != NULL ? "" : "; --server needs the URL of the admin listener");
        good = false;
    }
    if (good && !arguments_has(&b->cli->arguments, "--json") && !escape_texts(*out)) {
        json_decref(*out);
        *out = NULL;
        good = fail(b, "out of memory");
    }
    str_done(&body);
    return good;
}

bool api_call(struct backend *b, const char *method, const char *target, const json_t *body,
              json_t **out)
{
    char *json = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    bool good;

    *out = NULL;
    if (body != NULL && json == NULL) {
        b->status = 0;
        return fail(b, "out of memory");
    }
    good =
        api_send(b, &(struct api_request){.method = method, .target = target, .body = json}, out);
    free(json);
    return good;
}

int api_report(const struct backend *b, json_t *answer)
{
    if (b->status == 0 || answer == NULL)
        cli_fail(b->name, "%s", b->why[0] != '\0' ? b->why : "the server did not respond");
    else if (b->catalogue == NULL && b->status == 404 &&
             strcmp(member_text(answer, "code"), "not-found") == 0)
        cli_fail(b->name, "%s; the server may be of an earlier version",
                 member_text(answer, "detail"));
    else
        cli_fail(b->name, "%s (%s)", member_text(answer, "detail"), member_text(answer, "code"));
    json_decref(answer);
    return EXIT_COULD_NOT;
}

json_t *api_get(struct backend *b, struct str *target)
{
    json_t *answer = NULL;
    bool good = target->failed ? fail(b, "out of memory")
                               : api_call(b, "GET", str_text(target), NULL, &answer);

    str_done(target);
    if (good && answer != NULL && api_is_good(b))
        return answer;
    api_report(b, answer);
    return NULL;
}

/* The array in a response; NULL, with the error reported: none exists. Frees the response. */
static json_t *parse_array(struct backend *b, json_t *answer, const char *member)
{
    json_t *array = json_incref(json_object_get(answer, member));

    json_decref(answer);
    if (json_is_array(array))
        return array;
    json_decref(array);
    cli_fail(b->name, "unexpected response: not from the API of sitemapd");
    return NULL;
}

json_t *api_get_array(struct backend *b, const char *path, const char *member)
{
    struct str target = STR_INIT;
    json_t *answer;

    str_append_text(&target, path);
    answer = api_get(b, &target);
    return answer != NULL ? parse_array(b, answer, member) : NULL;
}

/* Gets the page after the cursor, which is advanced. An empty page before the last is an error, so
 * that no server can keep a client paging forever. */
static bool get_page(struct backend *b, const char *path, const char *member, struct str *after,
                     json_t *all)
{
    struct str target = STR_INIT;
    json_t *answer, *some;
    bool good;

    str_append_text(&target, path);
    target_add(&target, "limit", PAGE_OF_LIST);
    target_add(&target, "after", after->len > 0 ? str_text(after) : NULL);
    answer = api_get(b, &target);
    some = answer != NULL ? parse_array(b, json_incref(answer), member) : NULL;
    good = some != NULL;
    if (good) {
        const char *next = member_text(answer, "next");

        good = *next == '\0' || (json_array_size(some) > 0 && strcmp(next, str_text(after)) != 0);
        if (!good)
            cli_fail(b->name, "the server sent a malformed list: a page is empty or repeated, or "
                              "there are too many");
        json_array_extend(all, some);
        str_clear(after);
        str_append_text(after, next);
    }
    json_decref(some);
    json_decref(answer);
    return good;
}

json_t *api_get_all(struct backend *b, const char *path, const char *member)
{
    json_t *all = json_array();
    struct str after = STR_INIT;
    size_t pages = 0;
    uint64_t before = b->received;
    bool good = all != NULL;

    do {
        good = good && get_page(b, path, member, &after, all);
        if (good && after.len > 0 &&
            (++pages == LIST_PAGES_MAX || b->received - before > LIST_BYTES_MAX)) {
            cli_fail(b->name, "the server sent a malformed list: a page is empty or repeated, or "
                              "there are too many");
            good = false;
        }
    } while (good && after.len > 0);
    str_done(&after);
    if (good)
        return all;
    json_decref(all);
    return NULL;
}

bool api_stream(struct backend *b, const char *target, const char *accept, api_take *take,
                void *context, json_t **out)
{
    return api_send(
        b,
        &(struct api_request){
            .method = "GET", .target = target, .accept = accept, .take = take, .context = context},
        out);
}

/* Splits NDJSON into lines as it arrives. */
struct lines {
    struct str line;
    api_line *each;
    void *context;
    enum line_verdict last;
};

static bool receive_lines(void *context, const char *bytes, size_t len)
{
    struct lines *l = context;

    while (len > 0) {
        const char *end = memchr(bytes, '\n', len);
        size_t part = end != NULL ? (size_t)(end - bytes) : len;
        json_t *line;

        str_append(&l->line, bytes, part);
        if (l->line.failed)
            return false;
        if (l->line.len > LINE_MAX_BYTES) {
            l->last = LINE_BROKEN;
            return false;
        }
        if (end == NULL)
            return true;
        line = json_loadb(str_text(&l->line), l->line.len, 0, NULL);
        l->last = line != NULL ? l->each(l->context, line) : LINE_BROKEN;
        json_decref(line);
        if (l->last != LINE_ACCEPTED)
            return false;
        str_clear(&l->line);
        bytes += part + 1;
        len -= part + 1;
    }
    return true;
}

bool api_lines(struct backend *b, const char *target, api_line *each, void *context, json_t **out)
{
    struct lines lines = {.line = STR_INIT, .each = each, .context = context};
    bool good =
        api_stream(b, target, "application/x-ndjson", receive_lines, &lines, out) && api_is_good(b);

    if (lines.last == LINE_BROKEN || (good && lines.line.len > 0))
        good = fail(b, "the server sent a malformed or truncated line");
    str_done(&lines.line);
    return good || lines.last == LINE_ENOUGH;
}

/* ---- members --------------------------------------------------------------------------- */

const char *member_text_or_null(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

const char *member_text(const json_t *object, const char *name)
{
    const char *text = member_text_or_null(object, name);

    return text != NULL ? text : "";
}

uint64_t member_number(const json_t *object, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(object, name));

    return value > 0 ? (uint64_t)value : 0;
}

bool member_is(const json_t *object, const char *name)
{
    return json_is_true(json_object_get(object, name));
}

/* The Unix time of an RFC 3339 member; 0 if it is invalid. */
static int64_t member_time(const json_t *object, const char *name)
{
    const char *text = member_text(object, name);
    struct tm tm = {0};

    return strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm) != NULL ? (int64_t)timegm(&tm) : 0;
}

/* The fragment of a page URL in a response, parsed like a line of an export. */
static const char *read_extensions(const json_t *entry, struct shown_entry *kept)
{
    const struct reader_options options = {
        .pages = true, .lenient = true, .allow_export_fields = true, .now = INT64_MAX / 2};
    struct rejection rejection;
    char *text = NULL;

    if (json_object_get(entry, "images") != NULL || json_object_get(entry, "alternates") != NULL ||
        json_object_get(entry, "news") != NULL || json_object_get(entry, "videos") != NULL)
        text = json_dumps(entry, JSON_COMPACT);
    if (text != NULL)
        json_entry_parse(text, strlen(text), 0, &options, &kept->page, &rejection);
    free(text);
    return kept->page.entry.extensions;
}

void shown_entry_done(struct shown_entry *kept)
{
    json_entry_done(&kept->page);
}

bool member_entry(const json_t *entry, struct entry_shown *out, struct shown_entry *kept)
{
    const char *urlset = member_text(entry, "urlset");
    const char *index = *urlset != '\0' ? urlset : member_text(entry, "index");
    char *origin = kept->origin;
    struct url url = {0};

    kept->page = (struct json_entry){.storage = NULL};

    *out = (struct entry_shown){
        .id = member_text(entry, "id"),
        .loc = member_text(entry, "loc"),
        .lastmod = member_text_or_null(entry, "lastmod"),
        .digest = member_text_or_null(entry, "digest"),
        .source = member_text(entry, "source"),
        .page = (uint32_t)member_number(entry, "page"),
        .position = (uint32_t)member_number(entry, "position"),
        .registered_at = member_time(entry, "registered_at"),
        .changed_at = member_time(entry, "changed_at"),
        .is_page_url = *urlset != '\0',
    };
    if (out->is_page_url)
        out->extensions = read_extensions(entry, kept);
    if (url_split(index, strlen(index), &url)) {
        snprintf(origin, LOC_MAX_CHARS + 1, "%.*s", url.origin_len, url.text);
        out->origin = origin;
        out->path = index + url.origin_len;
    }
    return *out->loc != '\0';
}

/* ---- what there is ------------------------------------------------------------------------- */

const json_t *api_sites(struct backend *b)
{
    if (b->sites == NULL)
        b->sites = api_get_all(b, "/v1/sites", "sites");
    return b->sites;
}

const json_t *api_lists(struct backend *b, enum list_kind kind)
{
    bool urlsets = kind == LIST_URLSET;

    if (b->lists[urlsets] == NULL)
        b->lists[urlsets] = urlsets ? api_get_all(b, "/v1/urlsets", "urlsets")
                                    : api_get_all(b, "/v1/indexes", "indexes");
    return b->lists[urlsets];
}

const char *api_owner(struct backend *b)
{
    struct str target = STR_INIT;
    json_t *answer;

    if (b->catalogue != NULL)
        return COMMAND_SOURCE;
    if (b->owner.len > 0)
        return str_text(&b->owner);
    str_append_text(&target, "/v1/token");
    answer = api_get(b, &target);
    if (answer == NULL)
        return NULL;
    str_append_text(&b->owner, member_text(answer, "name"));
    json_decref(answer);
    return str_text(&b->owner);
}

/* ---- entries --------------------------------------------------------------------------- */

/* The receiver of the entries, and the registry with the lists of the records. */
struct reporting {
    const struct registry *registry;
    const struct entry_filter *filter;
    api_entry *each;
    void *context;
};

static enum line_verdict pass_line(void *context, const json_t *line)
{
    const struct reporting *t = context;
    struct shown_entry kept;
    struct entry_shown entry;
    enum line_verdict verdict = LINE_BROKEN;

    if (member_entry(line, &entry, &kept))
        verdict = t->each(t->context, &entry) ? LINE_ACCEPTED : LINE_ENOUGH;
    shown_entry_done(&kept);
    return verdict;
}

static bool pass_record(void *context, const struct entry_record *record)
{
    const struct reporting *t = context;
    const struct entry_shown shown = registry_describe_entry(t->registry, record);

    return !entry_filter_holds(t->filter, shown.loc, shown.lastmod, shown.origin) ||
           t->each(t->context, &shown);
}

static int read_records(struct backend *b, const struct entry_wanted *wanted, struct reporting *t)
{
    const struct entry_list list = {.index_id = strtoll(member_text(wanted->list, "id"), NULL, 10),
                                    .prefix = wanted->prefix,
                                    .source = wanted->source};
    struct registry *registry = NULL;
    struct catalogue_view *view = NULL;
    enum catalogue_status status = catalogue_view_begin(b->catalogue, &view);

    if (status == CATALOGUE_OK)
        status = catalogue_view_registry(view, &registry);
    t->registry = registry;
    if (status == CATALOGUE_OK)
        status = catalogue_view_list(view, &list, pass_record, t);
    registry_unref(registry);
    catalogue_view_end(view);
    return status == CATALOGUE_OK ? EXIT_DONE
                                  : cli_fail(b->name, "%s", catalogue_status_row(status)->sentence);
}

int api_entries(struct backend *b, const struct entry_wanted *wanted, api_entry *each,
                void *context)
{
    struct reporting t = {.filter = &wanted->filter, .each = each, .context = context};
    bool pages = wanted->filter.page_urls;
    struct str target = STR_INIT;
    json_t *answer = NULL;
    int status = EXIT_DONE;

    if (b->catalogue != NULL)
        return read_records(b, wanted, &t);
    str_append_text(&target, pages ? "/v1/urls" : "/v1/sitemaps");
    target_add(&target, pages ? "urlset" : "index", member_text_or_null(wanted->list, "url"));
    target_add(&target, "prefix", wanted->prefix);
    target_add(&target, "source", wanted->source);
    target_add(&target, "contains", wanted->filter.contains);
    target_add(&target, "warned", wanted->filter.warned ? "1" : NULL);
    if (!api_lines(b, str_text(&target), pass_line, &t, &answer))
        status = api_report(b, answer);
    else
        json_decref(answer);
    str_done(&target);
    return status;
}

/* ---- writes --------------------------------------------------------------- */

enum rule_code api_rule(const char *word)
{
    for (int code = RULE_OK + 1; code < RULE_CODE_COUNT; code++)
        if (strcmp(rule_code_word((enum rule_code)code), word) == 0)
            return (enum rule_code)code;
    return RULE_OK;
}

/* The catalogue's status for the word of an error; OK: it is not one of the catalogue. */
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

/* The catalogue's reason why an undo or a list is refused, static; NULL: another error. */
static const char *conflict_of(const char *word)
{
    static const char *const words[] = {"source-decides", "not-undoable", "taken-since",
                                        "precondition-on-list"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], word) == 0)
            return words[i];
    return NULL;
}

void api_refuse(struct backend *b, const json_t *answer, struct change_result *result)
{
    const char *word = member_text(answer, "code"), *detail = member_text(answer, "detail");

    if (b->status == 0 || answer == NULL) {
        result->status = CATALOGUE_UNAVAILABLE;
        snprintf(result->detail, sizeof result->detail, "%.100s: %.150s", b->name,
                 b->why[0] != '\0' ? b->why : "the server did not respond");
        return;
    }
    result->code = api_rule(word);
    result->managed = strcmp(word, "managed-by-config") == 0;
    result->conflict = conflict_of(word);
    result->precondition_failed = b->status == 412;
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

int api_refused(struct backend *b, const char *loc, const char *what, json_t *answer)
{
    struct change_result result = {.status = CATALOGUE_OK};

    api_refuse(b, answer, &result);
    json_decref(answer);
    return session_report(b->cli, loc, what, &result);
}

int api_write(struct backend *b, const char *method, struct str *target, json_t *body,
              const char *what, json_t **answer)
{
    json_t *response = NULL;
    bool done = target->failed
                    ? fail(b, "out of memory")
                    : api_call(b, method, str_text(target), body, &response) && api_is_good(b);

    str_done(target);
    json_decref(body);
    if (answer != NULL)
        *answer = NULL;
    if (!done)
        return api_refused(b, NULL, what, response);
    if (answer != NULL)
        *answer = json_incref(response);
    json_decref(response);
    return EXIT_DONE;
}

enum catalogue_status api_apply(struct backend *b, const struct change *change,
                                api_progress *progress, void *context, struct change_result *result)
{
    struct change mine = *change;

    *result = (struct change_result){.status = CATALOGUE_OK};
    forget_lists(b);
    if (b->catalogue == NULL) {
        server_apply_list(b, change, result);
        return result->status;
    }
    mine.by = b->user;
    mine.via = "cli";
    return catalogue_apply_with_progress(b->catalogue, &mine, progress, context, result);
}

struct spool *api_spool(struct backend *b, uint64_t max_bytes)
{
    const char *folder = getenv("TMPDIR");

    if (b->catalogue != NULL)
        return catalogue_spool(b->catalogue, max_bytes);
    return spool_new(folder != NULL && *folder != '\0' ? folder : "/tmp", max_bytes);
}

void backend_close(struct backend *b)
{
    if (b == NULL)
        return;
    forget_lists(b);
    in_process_close(b);
    over_http_close(b);
    str_done(&b->owner);
    free(b);
}
