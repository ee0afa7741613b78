#include "server/ingest/sitemap_list.h"

#include <stdlib.h>

#include "server/ingest/detect.h"
#include "server/ingest/lines.h"

_Static_assert(SITEMAP_FILE_MAX_TEXT == READER_MAX_ITEM_BYTES, "lines holds the longest line");

struct sitemap_list {
    struct sitemap_work *work;
    uint64_t strange; /* lines that do not even begin as a URL does */
    struct lines lines;
};

struct sitemap_list *sitemap_list_new(struct sitemap_work *work, uint64_t line)
{
    struct sitemap_list *l = malloc(sizeof *l);
    if (!l)
        return NULL;
    l->work = work;
    l->strange = 0;
    lines_init(&l->lines, line);
    sitemap_hash_field(work->hash, HASH_LIST, "", 0);
    return l;
}

/* A text that merely begins with a URL (a note, a CSV export) is no list. */
static bool is_prose(const struct sitemap_list *l)
{
    return 2 * l->strange > l->work->pages.urls;
}

/* What a list is refused for, unless it is none. */
static bool refuse_long(struct sitemap_list *l, uint64_t line)
{
    if (is_prose(l))
        return sitemap_work_other(l->work, SITEMAP_FILE_OTHER);
    return core_fail(&l->work->core, READER_TOO_LARGE, "text-too-long", line, 1,
                     "a line is longer than %u bytes", SITEMAP_FILE_MAX_TEXT);
}

static bool take_line(void *context, const struct line *line)
{
    struct sitemap_list *l = context;
    struct sitemap_pages *pages = &l->work->pages;
    size_t skip = detect_space(line->text, line->len);
    const char *text = line->text + skip;
    size_t len = line->len - skip;
    while (len > 0 && detect_space(text + len - 1, 1) == 1)
        len--;
    if (line->cut)
        return refuse_long(l, line->number);
    if (len == 0)
        return true;
    if (pages->urls == SITEMAP_FILE_MAX_URLS && is_prose(l))
        return sitemap_work_other(l->work, SITEMAP_FILE_OTHER);
    if (!sitemap_work_add_page(l->work, line->number, 1))
        return false;
    sitemap_hash_field(l->work->hash, HASH_LINE, text, len);
    sitemap_pages_loc(pages, text, len);
    if (!sitemap_pages_is_url(text, len))
        l->strange++;
    return true;
}

bool sitemap_list_feed(struct sitemap_list *l, const char *bytes, size_t len)
{
    return lines_feed(&l->lines, bytes, len, take_line, l);
}

bool sitemap_list_finish(struct sitemap_list *l)
{
    if (!lines_finish(&l->lines, take_line, l))
        return false;
    return !is_prose(l) || sitemap_work_other(l->work, SITEMAP_FILE_OTHER);
}

void sitemap_list_free(struct sitemap_list *l)
{
    free(l);
}
