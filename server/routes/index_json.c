#include "server/routes/index_json.h"

#include <inttypes.h>

#include "server/routes/entry_json.h"
#include "server/rules/scope.h"

void index_json_append_url(struct str *out, const char *origin, const char *path)
{
    struct str url = STR_INIT;

    str_append_text(&url, origin);
    str_append_text(&url, path);
    if (url.failed)
        out->failed = true;
    else
        str_append_json(out, url.data, url.len);
    str_done(&url);
}

static void append_etag(struct call *call, struct str *out, const char *name,
                        const struct page_record *page, bool gz)
{
    char etag[SNAPSHOT_ETAG_SIZE];
    bool hot = publisher_page_etag(call->app->publisher, page->index_id, page->number, gz, etag);

    str_append_format(out, ",\"%s\":", name);
    entry_json_append_text(out, hot ? etag : NULL);
}

static void append_page(struct call *call, struct str *out, const struct registry_site *site,
                        const struct registry_index *index, const struct page_record *page)
{
    char path[PAGE_PATH_SIZE];

    scope_page_path(index->path, index->page_pattern, page->number, false, path);
    str_append_format(out, "{\"number\":%" PRIu32 ",\"url\":", page->number);
    index_json_append_url(out, site->origin, path);
    str_append_format(out, ",\"entries\":%" PRIu32 ",\"bytes\":%" PRIu64 ",\"changed_at\":",
                      page->entries, page->bytes);
    entry_json_append_time(out, page->changed_at);
    append_etag(call, out, "etag", page, false);
    append_etag(call, out, "etag_gz", page, true);
    str_append_char(out, '}');
}

enum catalogue_status index_json_append(struct call *call, struct catalogue_view *view,
                                        const struct registry_site *site,
                                        const struct registry_index *index)
{
    struct str *out = &call->request->reply.body;
    struct str pages = STR_INIT;
    uint64_t entries = 0, bytes = 0;
    int64_t changed_at = 0;
    enum catalogue_status status = CATALOGUE_OK;

    for (size_t i = 0; view != NULL && i < index->page_count && status == CATALOGUE_OK; i++) {
        struct page_record page;

        status = catalogue_view_page(view, index->id, index->pages[i], &page);
        if (status != CATALOGUE_OK)
            break;
        if (i > 0)
            str_append_char(&pages, ',');
        append_page(call, &pages, site, index, &page);
        entries += page.entries;
        bytes += page.bytes;
        if (page.changed_at > changed_at)
            changed_at = page.changed_at;
    }
    str_append_format(out, "{\"id\":\"%" PRId64 "\",\"url\":", index->id);
    index_json_append_url(out, site->origin, index->path);
    str_append_text(out, ",\"site\":");
    entry_json_append_text(out, site->origin);
    str_append_text(out, ",\"page_pattern\":");
    entry_json_append_text(out, index->page_pattern);
    str_append_format(
        out, ",\"entries\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"changed_at\":", entries, bytes);
    if (changed_at != 0)
        entry_json_append_time(out, changed_at);
    else
        str_append_text(out, "null");
    str_append_text(out, ",\"pages\":[");
    str_append(out, str_text(&pages), pages.len);
    str_append_text(out, "]}");
    if (pages.failed)
        out->failed = true;
    str_done(&pages);
    return status;
}
