#include "server/publish/routing.h"
#include "server/rules/scope.h"
#include "server/rules/str.h"

void robots_render(const struct registry_site *site, const char *prefix, struct str *out)
{
    if (prefix != NULL && prefix[0] != '\0') {
        str_append_text(out, prefix);
        if (!out->failed && out->data[out->len - 1] != '\n')
            str_append_char(out, '\n');
    }
    for (size_t i = 0; i < site->index_count; i++) {
        const struct registry_index *index = &site->indexes[i];
        for (size_t n = 0; n < index->page_count; n++) {
            char path[PAGE_PATH_SIZE];
            scope_page_path(index->path, index->page_pattern, index->pages[n], false, path);
            str_append_text(out, "Sitemap: ");
            str_append_text(out, site->origin);
            str_append_text(out, path);
            str_append_char(out, '\n');
        }
    }
}
