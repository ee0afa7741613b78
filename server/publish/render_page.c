#include "server/publish/publisher.h"
#include "server/rules/render.h"
#include "server/rules/str.h"

static bool append_entry(void *context, uint32_t position, const char *loc, size_t loc_len,
                         const char *lastmod)
{
    struct str *out = context;
    (void)position;
    render_entry(out, loc, loc_len, lastmod);
    return !out->failed;
}

enum catalogue_status publish_render_page(struct catalogue_view *v, int64_t index_id,
                                          uint32_t number, struct str *out)
{
    struct page_record page;
    enum catalogue_status status = catalogue_view_page(v, index_id, number, &page);
    if (status == CATALOGUE_OK && page.removed)
        status = CATALOGUE_NOT_FOUND;
    if (status != CATALOGUE_OK)
        return status;
    str_append_text(out, render_head);
    status = catalogue_view_positions(v, index_id, (number - 1) * LIMIT_PAGE_ENTRIES,
                                      LIMIT_PAGE_ENTRIES, append_entry, out);
    str_append_text(out, render_tail);
    return status == CATALOGUE_OK && out->failed ? CATALOGUE_NO_MEMORY : status;
}
