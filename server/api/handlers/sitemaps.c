/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* /v1/sitemaps and /v1/urls: the entries of indexes, the page URLs of urlsets; the call's noun has
 * their names. upload.c has read a body before it is submitted here. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/api/auth.h"
#include "server/api/call.h"
#include "server/api/copy.h"
#include "server/api/errors.h"
#include "server/api/handlers/handlers.h"
#include "server/api/json.h"
#include "server/api/upload.h"
#include "server/crawlers/crawlers.h"
#include "server/rules/url.h"

/* Adds the ETag of an index's state alone, for If-Match. */
static void reply_state(struct reply *reply, const char *state)
{
    char etag[INDEX_STATE_SIZE + 2];

    snprintf(etag, sizeof etag, "\"%s\"", state);
    reply_header(reply, "ETag", etag);
}

/* ---- GET: a list --------------------------------------------------------------------------- */

struct listing {
    struct call *call;
    const struct registry *registry;
    struct entry_list list;
    struct entry_filter filter;
    const struct registry_site *site; /* of the index that is named; NULL: none is */
    uint64_t limit, count, looked_at;
    struct catalogue_view *checks; /* each row is shown with its check; NULL: without */
    enum catalogue_status check_status;
    struct url prefix, loc; /* as given, normalised; text "" where absent */
    bool more, empty;       /* empty: the token may see nothing of the requested list */
    char cursor[ENTRY_CURSOR_SIZE];
};

/* Reads the filters `contains` and `warned`. */
static bool read_filter(struct listing *listing)
{
    struct call *call = listing->call;
    const char *contains = query_value(&call->query, "contains");
    size_t len = contains != NULL ? strlen(contains) : 0;

    listing->filter = (struct entry_filter){.contains = contains,
                                            .warned = call_number(call, "warned") == 1,
                                            .page_urls = call_noun(call)->kind == LIST_URLSET};
    if (contains == NULL || (len >= FILTER_MIN_CONTAINS && len <= FILTER_MAX_CONTAINS))
        return true;
    reply_problem(&call->request->reply, 400, "malformed-parameter", "contains",
                  "must be 3 to 200 bytes long");
    return false;
}

/* False, with the reply filled, where a parameter is invalid. */
static bool read_parameters(struct listing *listing)
{
    struct call *call = listing->call;
    const char *prefix = call_parameter(call, "prefix"), *loc = call_parameter(call, "loc");

    listing->limit = call_number(call, "limit");
    if (!read_filter(listing) ||
        (prefix != NULL && !call_url(call, "prefix", prefix, &listing->prefix)) ||
        (loc != NULL && !call_url(call, "loc", loc, &listing->loc)))
        return false;
    listing->list = (struct entry_list){
        .site_id = call->request->grant.site_id,
        .source = call_parameter(call, "source"),
        .after = call_parameter(call, "after"),
        .limit =
            (size_t)listing->limit + 1, /* one more than the limit, to see whether there are more */
    };
    listing->empty = !grant_narrow(
        &call->request->grant, prefix != NULL ? listing->prefix.text : NULL, &listing->list.prefix);
    return true;
}

/* A client may get a version of a file that was read a second earlier (SERVED_FILES_FRESH_MS). */
#define SERVED_AGE 1

/* Appends the crawlers that fetched the sitemap from this server; nothing if none did. Only for a
 * good sitemap it is known whether it has changed since: a broken one has the date of its last good
 * version. */
static bool append_crawlers(struct call *call, const struct registry *registry,
                            const struct entry_record *record, const struct check_record *check)
{
    struct str *out = &call->request->reply.body;
    struct crawlers *crawlers = call->app->crawlers;
    const struct registry_site *site = registry_site_by_id(registry, record->site_id);
    size_t origin = site != NULL ? strlen(site->origin) : 0, count = 0;
    struct crawler_child rows[CRAWLERS_MAX];
    int64_t changed_at = record->changed_at;
    bool good = check == NULL || check->state == CHECK_GOOD;

    if (check != NULL && check->changed_at > changed_at)
        changed_at = check->changed_at;

    if (crawlers != NULL && origin > 0 && strncmp(record->loc, site->origin, origin) == 0 &&
        record->loc[origin] == '/')
        count =
            crawlers_child(crawlers, site->id, crawlers_child_of(record->loc + origin, NULL), rows);
    for (size_t i = 0; i < count; i++) {
        str_append_text(out, i == 0 ? ",\"crawlers\":[{\"name\":" : ",{\"name\":");
        str_append_json_text(out, crawlers_name(crawlers, rows[i].crawler));
        json_append_time_member(out, "fetched_at", rows[i].fetched_at);
        str_append_format(out, ",\"status\":%u,\"current\":%s}", rows[i].status,
                          !good                                       ? "null"
                          : rows[i].good_at > changed_at + SERVED_AGE ? "true"
                                                                      : "false");
    }
    str_append_text(out, count > 0 ? "]" : "");
    return count > 0;
}

/* Adds to the last object the result of the last poll or scan of the sitemap, and the crawlers that
 * fetched it, as far as known. `*more`: anything was added. */
static enum catalogue_status append_check(struct call *call, const struct registry *registry,
                                          struct catalogue_view *view,
                                          const struct entry_record *record, bool *more)
{
    struct str *out = &call->request->reply.body;
    struct check_record check;
    enum catalogue_status status =
        catalogue_view_check_of_entry(view, record->site_id, record->source, record->loc, &check);

    bool checked = status == CATALOGUE_OK;
    *more = checked;
    if (status != CATALOGUE_OK && status != CATALOGUE_NOT_FOUND)
        return status;
    if (out->failed || out->len == 0)
        return CATALOGUE_OK;
    out->data[--out->len] = '\0'; /* the object is open again */
    if (checked) {
        str_append_text(out, ",\"check\":");
        check_json_append(out, &check);
    }
    *more |= append_crawlers(call, registry, record, checked ? &check : NULL);
    str_append_char(out, '}');
    return CATALOGUE_OK;
}

/* Appends a row. False if no more rows fit, or out of memory. */
static bool append_row(struct listing *listing, const struct entry_record *record)
{
    struct str *out = &listing->call->request->reply.body;
    bool more;

    if (listing->count++ > 0)
        str_append_char(out, ',');
    entry_json_append(out, record, listing->registry, 0);
    if (listing->checks != NULL)
        listing->check_status =
            append_check(listing->call, listing->registry, listing->checks, record, &more);
    return !out->failed && listing->check_status == CATALOGUE_OK;
}

/* Page URLs may be large: a page of the list then has fewer. */
#define LIST_BYTES (8u << 20)

static bool is_full(const struct listing *listing)
{
    return listing->count == listing->limit ||
           (listing->count > 0 && listing->call->request->reply.body.len >= LIST_BYTES);
}

static bool append_record(void *context, const struct entry_record *record)
{
    struct listing *listing = context;
    bool going;

    if (is_full(listing)) {
        listing->more = true;
        return false;
    }
    going = append_row(listing, record);
    if (is_full(listing))
        catalogue_entry_cursor(&listing->list, record, listing->cursor);
    return going;
}

/* Appends a record that was found by its loc, if it fits the filters, and frees it. */
static enum catalogue_status append_found_by_loc(struct listing *listing,
                                                 enum catalogue_status status,
                                                 struct entry_record *record)
{
    if (status == CATALOGUE_NOT_FOUND)
        return CATALOGUE_OK;
    if (status != CATALOGUE_OK)
        return status;
    if (grant_has_loc(&listing->call->request->grant, record->loc) &&
        (listing->list.index_id == 0 || record->index_id == listing->list.index_id) &&
        (listing->list.source == NULL || strcmp(record->source, listing->list.source) == 0))
        append_record(listing, record);
    entry_record_done(record);
    return CATALOGUE_OK;
}

/* At most one entry of each site has this loc, and one page URL of the urlset. */
static enum catalogue_status append_by_loc(struct listing *listing, struct catalogue_view *view)
{
    const struct registry *registry = listing->registry;
    struct entry_record row;

    if (call_noun(listing->call)->kind == LIST_URLSET)
        return append_found_by_loc(
            listing,
            catalogue_view_row_by_loc(view, listing->list.index_id, listing->loc.text, &row), &row);

    for (size_t i = 0; i < registry->site_count; i++) {
        struct entry_record record;
        enum catalogue_status status;

        if (listing->list.site_id != 0 && registry->sites[i].id != listing->list.site_id)
            continue;
        status =
            catalogue_view_entry_by_loc(view, registry->sites[i].id, listing->loc.text, &record);
        status = append_found_by_loc(listing, status, &record);
        if (status != CATALOGUE_OK)
            return status;
    }
    return CATALOGUE_OK;
}

/* Finds the list that the query names; for page URLs it is required. False, with the reply filled,
 * if it does not exist or the token may not see it. */
static bool find_index(struct listing *listing)
{
    const struct noun *noun = call_noun(listing->call);
    const char *name = call_parameter(listing->call, noun->list);
    const struct registry_site *site = NULL;
    const struct registry_index *index;

    if (name == NULL)
        return true;
    index = registry_list_by_name(listing->registry, name, noun->kind, &site);
    if (index == NULL || !grant_has_site(&listing->call->request->grant, index->site_id)) {
        reply_problem(&listing->call->request->reply, 404, rule_code_word(noun->list_unknown),
                      noun->list, rule_code_sentence(noun->list_unknown));
        return false;
    }
    listing->list.index_id = index->id;
    listing->site = site;
    return true;
}

static void refuse_cursor(struct listing *listing)
{
    reply_problem(&listing->call->request->reply, 400, "malformed-cursor", "after",
                  "is not the `next` of an earlier list with these parameters");
}

/* Entries that one call looks through: a worker needs 20 to 100 ms for them, and is then free for
 * others. */
#define SEARCH_EFFORT 200000u

/* False, with the reply filled, if the query cannot be searched for. */
static bool check_search(struct listing *listing)
{
    struct call *call = listing->call;

    if (listing->list.index_id == 0)
        reply_problem(&call->request->reply, 400, "missing-parameter", "index",
                      "contains and warned search one index: name it with ?index=");
    else if (listing->loc.len > 0)
        reply_problem(
            &call->request->reply, 400, "malformed-parameter", "loc",
            "cannot be combined with contains or warned, which search for several entries");
    else
        return true;
    return false;
}

static bool append_found(void *context, const struct entry_record *record)
{
    const struct listing *listing = context;

    return append_row(context, record) && listing->call->request->reply.body.len < LIST_BYTES;
}

/* Searches a part of the index, and replies with its end as cursor. */
static enum catalogue_status reply_search(struct listing *listing, struct catalogue_view *view)
{
    struct entry_search search = {
        .list = listing->list, .filter = listing->filter, .effort = SEARCH_EFFORT};
    struct str *out = &listing->call->request->reply.body;
    struct entry_searched searched = {0};
    enum catalogue_status status = CATALOGUE_OK;

    if (!check_search(listing))
        return CATALOGUE_OK;
    search.origin = listing->site->origin;
    search.list.site_id = listing->site->id;
    search.list.limit = (size_t)listing->limit;
    str_append_format(out, "{\"%s\":[", call_noun(listing->call)->many);
    if (!listing->empty)
        status = catalogue_view_search(view, &search, append_found, listing, &searched);
    if (status == CATALOGUE_OK)
        status = listing->check_status;
    if (status == CATALOGUE_CONFLICT) {
        refuse_cursor(listing);
        return CATALOGUE_OK;
    }
    str_append_text(out, "],\"next\":");
    str_append_json_text(out, searched.more ? searched.next : NULL);
    str_append_format(out, ",\"looked_at\":%" PRIu64 "}\n", searched.looked_at);
    if (status == CATALOGUE_OK)
        call_reply_tagged(listing->call, NULL);
    return status;
}

static enum catalogue_status search_work(struct call *call, struct catalogue_view *view,
                                         const struct registry *registry)
{
    struct listing listing = {.call = call, .registry = registry};

    listing.checks = call_number(call, "checks") == 1 ? view : NULL;
    if (!read_parameters(&listing) || !find_index(&listing))
        return CATALOGUE_OK;
    return reply_search(&listing, view);
}

/* Whether foreign rows lie between those of the list: those of other sources or, in order of loc,
 * of other or removed indexes. */
static bool is_sparse(const struct listing *listing)
{
    const struct entry_list *list = &listing->list;

    return listing->loc.len == 0 && (list->source != NULL || list->prefix != NULL);
}

/* Lists a part of a sparse list: foreign rows are read, too, so it may end early with a cursor,
 * like a search. */
static enum catalogue_status append_sparse(struct listing *listing, struct catalogue_view *view)
{
    struct entry_search search = {.list = listing->list, .effort = SEARCH_EFFORT};
    struct entry_searched searched;

    if (listing->site != NULL)
        search.list.site_id = listing->site->id;
    search.list.limit = (size_t)listing->limit;
    enum catalogue_status status =
        catalogue_view_search(view, &search, append_found, listing, &searched);
    listing->more = status == CATALOGUE_OK && searched.more;
    listing->looked_at = searched.looked_at;
    if (listing->more)
        memcpy(listing->cursor, searched.next, sizeof listing->cursor);
    return status;
}

static enum catalogue_status list_work(struct call *call, struct catalogue_view *view,
                                       const struct registry *registry)
{
    struct reply *reply = &call->request->reply;
    struct listing listing = {.call = call, .registry = registry};
    char index_state[INDEX_STATE_SIZE];
    enum catalogue_status status;

    listing.checks = call_number(call, "checks") == 1 ? view : NULL;
    if (!read_parameters(&listing) || !find_index(&listing))
        return CATALOGUE_OK;
    str_append_format(&reply->body, "{\"%s\":[", call_noun(call)->many);
    if (listing.empty)
        status = CATALOGUE_OK;
    else if (listing.loc.len > 0)
        status = append_by_loc(&listing, view);
    else if (is_sparse(&listing))
        status = append_sparse(&listing, view);
    else
        status = catalogue_view_list(view, &listing.list, append_record, &listing);
    if (status == CATALOGUE_OK)
        status = listing.check_status;
    if (status == CATALOGUE_CONFLICT) {
        refuse_cursor(&listing);
        return CATALOGUE_OK;
    }
    str_append_text(&reply->body, "],\"next\":");
    str_append_json_text(&reply->body, listing.more ? listing.cursor : NULL);
    if (is_sparse(&listing))
        str_append_format(&reply->body, ",\"looked_at\":%" PRIu64, listing.looked_at);
    str_append_text(&reply->body, "}\n");
    if (status == CATALOGUE_OK && listing.list.index_id != 0)
        status = catalogue_view_index_state(view, listing.list.index_id, index_state);
    if (status == CATALOGUE_OK)
        call_reply_tagged(call, listing.list.index_id != 0 ? index_state : NULL);
    return status;
}

/* ---- GET: all of it, as NDJSON -------------------------------------------------------------- */

/* Lines being written into the answer's file. */
struct export
{
    struct listing listing; /* first */
    struct str line;
    bool failed;
};

static bool write_record(void *context, const struct entry_record *record)
{
    struct export *export = context;
    const struct listing *listing = &export->listing;

    if (!entry_filter_holds(&listing->filter, record->loc, record->lastmod,
                            registry_site_by_id(listing->registry, record->site_id)->origin))
        return true;
    str_clear(&export->line);
    entry_json_append_placed(&export->line, record, listing->registry);
    str_append_char(&export->line, '\n');
    export->failed = export->line.failed || !copy_write((struct copy *)listing->call,
                                                        str_text(&export->line), export->line.len);
    return !export->failed;
}

/* The ETag of a whole list is the state of the index, without a hash of the reply. */
static enum catalogue_status reply_index_state(struct call *call, struct catalogue_view *view,
                                               int64_t index_id)
{
    char state[INDEX_STATE_SIZE];
    enum catalogue_status status = catalogue_view_index_state(view, index_id, state);

    if (status == CATALOGUE_OK)
        reply_state(&call->request->reply, state);
    return status;
}

/* Writes the whole list, of one revision, which a header names. */
static enum catalogue_status export_work(struct call *call, struct catalogue_view *view,
                                         const struct registry *registry)
{
    struct export export = {.listing = {.call = call, .registry = registry}, .line = STR_INIT};
    struct listing *listing = &export.listing;
    struct catalogue_revisions revisions;
    enum catalogue_status status = catalogue_view_revisions(view, &revisions);
    char revision[24];

    if (status != CATALOGUE_OK || !read_parameters(listing) || !find_index(listing))
        return status;
    listing->list.limit = 0;
    if (!listing->empty)
        status = catalogue_view_list(view, &listing->list, write_record, &export);
    str_done(&export.line);
    if (status == CATALOGUE_OK && export.failed)
        return CATALOGUE_UNAVAILABLE;
    if (status == CATALOGUE_OK && listing->list.index_id != 0)
        status = reply_index_state(call, view, listing->list.index_id);
    snprintf(revision, sizeof revision, "%" PRIu64, revisions.revision);
    reply_header(&call->request->reply, "X-Catalogue-Revision", revision);
    return status;
}

enum handled sitemaps_list(void *context, struct request *request)
{
    struct listing asked = {.call = request->state};

    (void)context;
    if (!read_filter(&asked))
        return HANDLED;
    if (!copy_wants_lines(request)) {
        bool searches = asked.filter.contains != NULL || asked.filter.warned;

        if (searches)
            return call_search(request->state, search_work);
        /* A source may own few of many entries, and all of them are read. */
        bool looks_long = call_parameter(asked.call, "source") != NULL;
        return looks_long ? call_search(request->state, list_work)
                          : call_read(request->state, list_work);
    }
    return copy_lines(request->state, export_work);
}

/* ---- GET: one ------------------------------------------------------------------------------ */

/* Whether the id is of the call's noun: /v1/sitemaps does not find page URLs, nor /v1/urls entries
 * of indexes. */
static bool is_of_noun(const struct call *call, const struct registry *registry,
                       const struct entry_record *record)
{
    const struct registry_index *list = registry_list_by_id(registry, record->index_id);

    return list != NULL && list->kind == call_noun(call)->kind;
}

static enum catalogue_status get_work(struct call *call, struct catalogue_view *view,
                                      const struct registry *registry)
{
    struct request *request = call->request;
    struct entry_record record;
    enum catalogue_status status = catalogue_view_entry_by_id(view, request->path_tail, &record);
    char etag[40];
    bool more = false;

    if (status == CATALOGUE_OK &&
        !(is_of_noun(call, registry, &record) && grant_has_site(&request->grant, record.site_id) &&
          grant_has_loc(&request->grant, record.loc))) {
        entry_record_done(&record);
        status = CATALOGUE_NOT_FOUND;
    }
    if (status == CATALOGUE_NOT_FOUND) {
        errors_reply_not_found(&request->reply, call_noun(call)->one);
        return CATALOGUE_OK;
    }
    if (status != CATALOGUE_OK)
        return status;
    entry_json_append(&request->reply.body, &record, registry, 0);
    status = append_check(call, registry, view, &record, &more);
    str_append_char(&request->reply.body, '\n');
    if (status == CATALOGUE_OK) {
        catalogue_entry_etag(&record, etag);
        if (more) {
            /* The tag is that of the entry, which a poll or a fetch does not change: so never 304.
             */
            reply_json(&request->reply, 200);
            reply_header(&request->reply, "ETag", etag);
        } else {
            call_reply_with_tag(call, etag);
        }
    }
    entry_record_done(&record);
    return status;
}

enum handled sitemap_get(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, get_work);
}

/* ---- POST, PUT: the result ------------------------------------------------------------ */

static void append_counts(struct str *out, const struct change_result *result)
{
    str_append_format(out,
                      "{\"created\":%" PRIu64 ",\"updated\":%" PRIu64 ",\"unchanged\":%" PRIu64
                      ",\"removed\":%" PRIu64 ",\"moved\":%" PRIu64 ",\"spared\":%" PRIu64
                      ",\"revision\":%" PRIu64 ",\"rejected\":",
                      result->created, result->updated, result->unchanged, result->removed,
                      result->moved, result->spared, result->revision);
}

static void append_entry(struct call *call)
{
    struct str *out = &call->request->reply.body;

    str_append_format(out, ",\"%s\":", call_noun(call)->one);
    entry_json_append(out, &call->result.entry, call_registry(call),
                      call->result.remarks | call->change.entry.remarks);
}

#define SINGLE_BYTES 1000u

static void answer_single(struct call *call)
{
    struct reply *reply = &call->request->reply;
    const struct entry_record *entry = &call->result.entry;
    bool created = call->result.created > 0;
    char etag[40], location[16 + ENTRY_ID_SIZE];

    str_reserve(&reply->body,
                SINGLE_BYTES); /* long enough for most answers, to avoid reallocation */
    append_counts(&reply->body, &call->result);
    str_append_text(&reply->body, "[]");
    if (entry->loc != NULL)
        append_entry(call);
    str_append_text(&reply->body, "}\n");
    reply_json(reply, created ? 201 : 200);
    if (entry->loc != NULL) {
        catalogue_entry_etag(entry, etag);
        reply_header(reply, "ETag", etag);
    }
    if (created) {
        strcpy(location, call_noun(call)->path);
        strncat(location, entry->id, ENTRY_ID_SIZE);
        reply_header(reply, "Location", location);
    }
    call_audit(call, call_noun(call)->audit_put, entry->loc != NULL ? entry->loc : "an entry");
}

/* Appends the rejections or the remarks as a JSON array, by line; `brief`: an empty one. */
static void append_findings(struct str *out, const struct findings *f, bool refused, bool brief)
{
    const char *before = "[";

    for (uint32_t i = 0; i < (brief ? 0 : f->count); i++) {
        const struct finding *item = &f->items[i];

        if ((item->code != RULE_OK) != refused)
            continue;
        str_append_format(out, "%s{\"line\":%" PRIu64 ",\"loc\":", before, item->line);
        str_append_json_text(out, item->loc);
        if (refused) {
            str_append_text(out, ",\"code\":");
            str_append_json_text(out, rule_code_word(item->code));
            if (item->field != NULL) {
                str_append_text(out, ",\"field\":");
                str_append_json_text(out, item->field);
            }
            str_append_text(out, ",\"detail\":");
            str_append_json_text(out, item->detail != NULL ? item->detail
                                                           : rule_code_sentence(item->code));
        } else {
            str_append_text(out, ",\"codes\":");
            rule_set_append_json(out, item->remarks);
        }
        str_append_char(out, '}');
        before = ",";
    }
    str_append_text(out, *before == '[' ? "[]" : "]");
    out->failed = out->failed || f->failed;
}

/* Adds the rejected lines, as many as are listed, to the problem in the reply. */
static void add_rejected(struct upload *upload)
{
    struct reply *reply = &upload->call.request->reply;
    struct str list = STR_INIT;

    append_findings(&list, &upload->findings, true, false);
    if (list.failed)
        reply->body.failed = true;
    errors_add_member(reply, "rejected", str_text(&list));
    errors_add_number(reply, "rejected_total", upload->findings.refused);
    str_done(&list);
}

static void reply_lines_refused(struct upload *upload)
{
    reply_problem(&upload->call.request->reply, 422, "entries-refused", NULL,
                  "lines of the list were rejected, so nothing was applied; on_error=skip applies "
                  "the valid ones");
    add_rejected(upload);
}

/* Adds the catalogue's findings to those of the reader. */
static void merge_findings(struct upload *upload)
{
    struct change_result *result = &upload->call.result;

    findings_merge(&upload->findings, &result->findings);
    findings_remark(&upload->findings, 0, NULL, result->remarks);
    result->remarks = 0; /* moved, once */
    findings_sort(&upload->findings);
}

static void answer_list(struct call *call)
{
    struct upload *upload = (struct upload *)call;
    struct str *out = &call->request->reply.body;

    merge_findings(upload);
    if (!upload->skip && upload->findings.refused > 0) {
        reply_lines_refused(upload);
        return;
    }
    append_counts(out, &call->result);
    append_findings(out, &upload->findings, true, call->repeat.brief);
    str_append_format(out,
                      ",\"rejected_total\":%" PRIu64 ",\"warnings\":", upload->findings.refused);
    append_findings(out, &upload->findings, false, call->repeat.brief);
    str_append_format(out, ",\"warnings_total\":%" PRIu64, upload->findings.remarked);
    call_append_rows(call);
    str_append_text(out, "}\n");
    reply_json(&call->request->reply, 200);
    if (call->result.index_state[0] != '\0')
        reply_state(&call->request->reply, call->result.index_state);
    const struct noun *noun = call_noun(call);
    call_audit(call, call->change.kind == CHANGE_REPLACE ? noun->audit_replace : noun->audit_puts,
               call->change.index_name != NULL ? call->change.index_name : "a list");
}

static void refuse_list(struct call *call)
{
    struct upload *upload = (struct upload *)call;
    const struct change_result *result = &call->result;
    const struct noun *noun = call_noun(call);
    bool refused =
        result->status == CATALOGUE_REFUSED && !result->forbidden && result->code != RULE_FROZEN;

    merge_findings(upload);
    if (refused && !upload->skip && upload->findings.refused > 0 &&
        result->code != RULE_LIST_TOO_LONG)
        reply_lines_refused(upload);
    else if (refused && (result->code == noun->list_unknown || result->code == RULE_SITE_UNKNOWN))
        reply_problem(&call->request->reply, 404, rule_code_word(result->code), noun->list,
                      result->detail[0] != '\0' ? result->detail
                                                : rule_code_sentence(result->code));
    else if (result->conflict != NULL)
        reply_problem(&call->request->reply, 400, result->conflict, NULL, result->detail);
    else
        errors_reply_result(&call->request->reply, result);
    if (result->forbidden && !result->revoked && !upload->skip && upload->findings.refused > 0)
        add_rejected(upload);
}

/* ---- submitting -------------------------------------------------------------------------- */

static void submit_list(struct upload *upload, enum change_kind kind)
{
    struct call *call = &upload->call;
    bool strict_refused = !upload->skip && upload->findings.refused > 0;

    if (strict_refused && spool_count(upload->spool) == 0) {
        reply_lines_refused(upload);
        request_resume(call->request);
        return;
    }
    call->change.kind = kind;
    call->change.rows = upload->spool;
    call->change.if_match = request_header(call->request, HEADER_IF_MATCH);
    upload->spool = NULL;
    call->change.skip = upload->skip;
    call->change.max_findings = upload->findings.max;
    /* It will not be applied. But the catalogue checks it too, so that the reply lists all invalid
     * lines at once: those that the reader rejects, and those that the catalogue rejects. */
    call->change.dry_run = call->change.dry_run || strict_refused;
    call->refuse = refuse_list;
    call_write(call, answer_list);
}

/* An unknown member is not the `field` of the rejection, but its sentence begins with the name, in
 * quotes. */
static void reply_refused(struct reply *reply, const struct findings *findings)
{
    const struct finding *first = findings->items;
    const char *field = first != NULL ? first->field : NULL;
    char name[64];

    if (first != NULL && first->code == RULE_FIELD_UNKNOWN && first->detail != NULL &&
        first->detail[0] == '"') {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(first->detail + 1, "\""),
                 first->detail + 1);
        field = name;
    }
    if (first == NULL || findings->failed)
        errors_reply_status(reply, CATALOGUE_NO_MEMORY);
    else
        errors_reply_rule(reply, first->code, field, first->detail);
}

static void submit_single(struct upload *upload)
{
    struct call *call = &upload->call;
    struct reply *reply = &call->request->reply;
    struct change *change = &call->change;

    if (upload->findings.refused > 0) {
        reply_refused(reply, &upload->findings);
        request_resume(call->request);
        return;
    }
    if (upload->single.storage != NULL) {
        change->entry = upload->single.entry;
    } else { /* the reader accepted a body that read_single rejected, such as one with a byte order
                mark */
        spool_rewind(upload->spool);
        if (spool_next(upload->spool, &change->entry) != 1) {
            errors_reply_status(reply, CATALOGUE_UNAVAILABLE);
            request_resume(call->request);
            return;
        }
    }
    if (change->entry.index == NULL)
        change->entry.index = call_parameter(call, call_noun(call)->list);
    change->kind = CHANGE_ENTRY_PUT;
    change->if_match = request_header(call->request, HEADER_IF_MATCH);
    call_write(call, answer_single);
}

static void submit_post(struct upload *upload)
{
    struct call *call = &upload->call;

    if (upload_is_single(upload) && !call->change.dry_run) {
        submit_single(upload);
        return;
    }
    call->change.index_name = call_parameter(call, call_noun(call)->list);
    if (request_header(call->request, HEADER_IF_MATCH) != NULL &&
        (call->change.index_name == NULL || upload_is_single(upload))) {
        reply_problem(
            &call->request->reply, 400, "precondition-on-list", NULL,
            call->change.list == LIST_URLSET
                ? "If-Match can be used with a single page URL without dry_run, or with a "
                  "list for one urlset, which ?urlset= names"
                : "If-Match can be used with a single entry without dry_run, or with a list "
                  "for one index, which ?index= names");
        request_resume(call->request);
        return;
    }
    submit_list(upload, CHANGE_BULK);
}

static void submit_put(struct upload *upload)
{
    if (!upload->ndjson && upload_is_single(upload)) {
        reply_problem(&upload->call.request->reply, 400, "list-needed", NULL,
                      "a replace needs a list: a JSON array or NDJSON");
        request_resume(upload->call.request);
        return;
    }
    submit_list(upload, CHANGE_REPLACE);
}

/* ---- POST, PUT --------------------------------------------------------------------------- */

/* Reads the owner's name into change.source; false, with the reply filled, if it is invalid or may
 * not be used. */
static bool read_source(struct call *call, const char *source)
{
    if (source == NULL)
        return true;
    call->change.source = source;
    if (entry_check_name(source, strlen(source)) == RULE_OK)
        return auth_may_own(call->app, call->request, "source", source);
    errors_reply_rule(&call->request->reply, RULE_NAME, "source", NULL);
    return false;
}

enum handled sitemaps_post_begin(void *context, struct request *request)
{
    struct upload *upload;

    if (upload_begin(context, request, submit_post) == HANDLED)
        return HANDLED;
    upload = request->state;
    call_set_options(&upload->call);
    return read_source(&upload->call, call_parameter(&upload->call, "source")) ? HANDLE_CONTINUE
                                                                               : HANDLED;
}

/* A replace removes only what its source owns, by default the token's own entries: a pipeline that
 * lists its files must not drop those of another. `source=*`: of any owner. */
static bool read_owner(struct call *call)
{
    const char *source = call_parameter(call, "source");

    if (source != NULL && strcmp(source, "*") == 0)
        return true;
    if (!read_source(call, source))
        return false;
    call->change.replace.source = source != NULL ? source : call->request->token_name;
    return true;
}

enum handled sitemaps_put_begin(void *context, struct request *request)
{
    struct upload *upload;
    const char *prefix;

    if (upload_begin(context, request, submit_put) == HANDLED)
        return HANDLED;
    upload = request->state;
    upload->replaces = true;
    upload->call.change.index_name = call_parameter(&upload->call, call_noun(&upload->call)->list);
    call_set_options(&upload->call);
    if (!read_owner(&upload->call))
        return HANDLED;
    prefix = call_parameter(&upload->call, "prefix");
    if (prefix != NULL) {
        if (!call_url(&upload->call, "prefix", prefix, &upload->prefix))
            return HANDLED;
        upload->call.change.replace.prefix = upload->prefix.text;
    }
    return HANDLE_CONTINUE;
}

/* ---- DELETE ------------------------------------------------------------------------------ */

struct removal {
    struct call call; /* first */
    struct url loc;
};
const size_t removal_size = sizeof(struct removal);

static void answer_removed(struct call *call)
{
    call->request->reply.status = 204;
    reply_header(&call->request->reply, "Cache-Control", "no-store");
    call_audit(call, call_noun(call)->audit_remove,
               call->result.entry.loc != NULL ? call->result.entry.loc : "an entry");
}

enum handled sitemap_delete(void *context, struct request *request)
{
    struct call *call = request->state;

    (void)context;
    call->change.kind = CHANGE_ENTRY_REMOVE;
    call->change.entry_remove.id = request->path_tail;
    call->change.if_match = request_header(request, HEADER_IF_MATCH);
    return call_write(call, answer_removed);
}

enum handled sitemaps_delete(void *context, struct request *request)
{
    struct removal *removal = request->state;
    const char *loc = call_parameter(&removal->call, "loc");

    (void)context;
    removal->call.change.index_name =
        call_parameter(&removal->call, call_noun(&removal->call)->list);
    if (!call_url(&removal->call, "loc", loc, &removal->loc))
        return HANDLED;
    removal->call.change.kind = CHANGE_ENTRY_REMOVE;
    removal->call.change.entry_remove.loc = removal->loc.text;
    removal->call.change.if_match = request_header(request, HEADER_IF_MATCH);
    return call_write(&removal->call, answer_removed);
}
