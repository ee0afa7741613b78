#include "server/routes/site_json.h"

#include <inttypes.h>

#include "server/routes/entry_json.h"

static void append_texts(struct str *out, const char *name, size_t count, const char *const *texts)
{
    str_append_format(out, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            str_append_char(out, ',');
        entry_json_append_text(out, texts[i]);
    }
    str_append_char(out, ']');
}

void site_json_append(struct str *out, const struct registry_site *site)
{
    str_append_format(out, "{\"id\":\"%" PRId64 "\",\"origin\":", site->id);
    entry_json_append_text(out, site->origin);
    append_texts(out, "cross_hosts", site->cross_host_count, site->cross_hosts);
    append_texts(out, "host_aliases", site->alias_host_count, site->alias_hosts);
    str_append_format(out, ",\"max_indexes\":%" PRIu32 ",\"managed\":%s,\"indexes\":%zu}",
                      site->max_pages, site->managed ? "true" : "false", site->index_count);
}
