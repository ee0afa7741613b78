/* GET of /v1/sitemaps and /v1/sitemaps/{id}. */
#include <string.h>

#include "server/routes/call.h"
#include "server/routes/entry_json.h"
#include "server/routes/errors.h"
#include "server/routes/handlers.h"
#include "server/rules/url.h"

#define LIST_DEFAULT 100u
#define LIST_MAX     1000u

struct listing {
    struct call call; /* first */
    struct entry_list list;
    uint64_t limit;
    struct url prefix, loc; /* as given, normalised; text "" where absent */
    /* while it runs */
    const struct registry *registry;
    uint64_t count;
    bool more;
    char cursor[ENTRY_CURSOR_SIZE];
};

/* ---- a list ------------------------------------------------------------------------------ */

enum handled sitemaps_list_begin(void *context, struct request *request)
{
    static const char *const known[] = {"index", "prefix", "after", "limit", "source", "loc", NULL};
    struct listing *listing = call_new(context, request, sizeof *listing, known);
    struct call *call = (struct call *)listing;
    const char *prefix, *loc;

    if (listing == NULL)
        return HANDLED;
    prefix = call_parameter(call, "prefix");
    loc = call_parameter(call, "loc");
    if (!call_number(call, "limit", 1, LIST_MAX, LIST_DEFAULT, &listing->limit) ||
        (prefix != NULL && !call_url(call, "prefix", prefix, &listing->prefix)) ||
        (loc != NULL && !call_url(call, "loc", loc, &listing->loc)))
        return HANDLED;
    listing->list = (struct entry_list){
        .site_id = request->token_site_id,
        .prefix = prefix != NULL ? listing->prefix.text : NULL,
        .source = call_parameter(call, "source"),
        .after = call_parameter(call, "after"),
        .limit = (size_t)listing->limit + 1, /* one more tells whether there are more */
    };
    return HANDLE_CONTINUE;
}

static bool append_record(void *context, const struct entry_record *record)
{
    struct listing *listing = context;
    struct str *out = &listing->call.request->reply.body;

    if (listing->count == listing->limit) {
        listing->more = true;
        return false;
    }
    if (listing->count++ > 0)
        str_append_char(out, ',');
    entry_json_append(out, record, listing->registry, 0);
    if (listing->count == listing->limit)
        catalogue_entry_cursor(&listing->list, record, listing->cursor);
    return !out->failed;
}

/* At most one entry of each site has this loc. */
static enum catalogue_status append_by_loc(struct listing *listing, struct catalogue_view *view)
{
    const struct registry *registry = listing->registry;

    for (size_t i = 0; i < registry->site_count; i++) {
        struct entry_record record;
        enum catalogue_status status;

        if (listing->list.site_id != 0 && registry->sites[i].id != listing->list.site_id)
            continue;
        status =
            catalogue_view_entry_by_loc(view, registry->sites[i].id, listing->loc.text, &record);
        if (status == CATALOGUE_NOT_FOUND)
            continue;
        if (status != CATALOGUE_OK)
            return status;
        if ((listing->list.index_id == 0 || record.index_id == listing->list.index_id) &&
            (listing->list.source == NULL || strcmp(record.source, listing->list.source) == 0))
            append_record(listing, &record);
        entry_record_done(&record);
    }
    return CATALOGUE_OK;
}

/* Finds the index that the query names. False, with the reply filled, where there is none or it is
 * not the token's to see. */
static bool find_index(struct listing *listing)
{
    const char *name = call_parameter(&listing->call, "index");
    const struct registry_site *site = NULL;
    const struct registry_index *index;

    if (name == NULL)
        return true;
    index = registry_index_by_name(listing->registry, name, &site);
    if (index == NULL || (listing->list.site_id != 0 && index->site_id != listing->list.site_id)) {
        reply_problem(&listing->call.request->reply, 404, rule_code_word(RULE_INDEX_UNKNOWN),
                      "index", rule_code_sentence(RULE_INDEX_UNKNOWN));
        return false;
    }
    listing->list.index_id = index->id;
    return true;
}

static void list_work(struct call *call, struct catalogue_view *view)
{
    struct listing *listing = (struct listing *)call;
    struct reply *reply = &call->request->reply;
    struct registry *registry;
    enum catalogue_status status = catalogue_view_registry(view, &registry);

    if (status != CATALOGUE_OK) {
        errors_reply_status(reply, status);
        return;
    }
    listing->registry = registry;
    if (find_index(listing)) {
        str_append_text(&reply->body, "{\"sitemaps\":[");
        if (listing->loc.len > 0)
            status = append_by_loc(listing, view);
        else
            status = catalogue_view_list(view, &listing->list, append_record, listing);
        str_append_text(&reply->body, "],\"next\":");
        entry_json_append_text(&reply->body, listing->more ? listing->cursor : NULL);
        str_append_text(&reply->body, "}\n");
        if (status == CATALOGUE_CONFLICT)
            reply_problem(reply, 400, "malformed-cursor", "after",
                          "is not the `next` of an earlier list with these parameters");
        else if (status != CATALOGUE_OK)
            errors_reply_status(reply, status);
        else
            call_reply_tagged(call);
    }
    registry_unref(registry);
}

enum handled sitemaps_list(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, list_work);
}

/* ---- one entry --------------------------------------------------------------------------- */

enum handled sitemap_get_begin(void *context, struct request *request)
{
    return call_new(context, request, sizeof(struct call), NULL) == NULL ? HANDLED
                                                                         : HANDLE_CONTINUE;
}

static void get_work(struct call *call, struct catalogue_view *view)
{
    struct request *request = call->request;
    struct entry_record record;
    struct registry *registry;
    enum catalogue_status status = catalogue_view_entry_by_id(view, request->path_tail, &record);
    char etag[40];

    if (status == CATALOGUE_OK && request->token_site_id != 0 &&
        record.site_id != request->token_site_id) {
        entry_record_done(&record);
        status = CATALOGUE_NOT_FOUND;
    }
    if (status == CATALOGUE_NOT_FOUND) {
        errors_reply_not_found(&request->reply, "sitemap");
        return;
    }
    if (status != CATALOGUE_OK) {
        errors_reply_status(&request->reply, status);
        return;
    }
    status = catalogue_view_registry(view, &registry);
    if (status == CATALOGUE_OK) {
        entry_json_append(&request->reply.body, &record, registry, 0);
        str_append_char(&request->reply.body, '\n');
        catalogue_entry_etag(&record, etag);
        call_reply_with_tag(call, etag);
        registry_unref(registry);
    } else {
        errors_reply_status(&request->reply, status);
    }
    entry_record_done(&record);
}

enum handled sitemap_get(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, get_work);
}
