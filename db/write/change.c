/* A change's own copy of what it points to, and the end of its result. The copy is one block behind
 * it, so that nothing is borrowed from who submitted it. It is walked twice, first to count and
 * then to copy, and each pointer of struct change has its row here. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "db/write/writer.h"

struct block {
    char *at; /* NULL: it is only counted */
    size_t used;
};

/* Room for `size` bytes, aligned for a pointer. NULL while they are counted. */
static void *take(struct block *block, size_t size)
{
    void *room = block->at != NULL ? block->at + block->used : NULL;
    block->used += (size + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
    return room;
}

static const void *keep(struct block *block, const void *bytes, size_t size)
{
    void *copy = bytes != NULL ? take(block, size) : NULL;
    return copy != NULL ? memcpy(copy, bytes, size) : bytes;
}

static const char *keep_text(struct block *block, const char *text)
{
    return keep(block, text, text != NULL ? strlen(text) + 1 : 0);
}

/* A list that ends with NULL. */
static const char *const *keep_list(struct block *block, const char *const *list)
{
    size_t count = 0;
    while (list != NULL && list[count] != NULL)
        count++;
    const char **copy = list != NULL ? take(block, (count + 1) * sizeof *copy) : NULL;
    for (size_t i = 0; i < count; i++) {
        const char *text = keep_text(block, list[i]);
        if (copy != NULL)
            copy[i] = text;
    }
    if (copy != NULL)
        copy[count] = NULL;
    return copy != NULL ? copy : list;
}

static const struct site_declaration *
keep_declared(struct block *block, const struct site_declaration *declared, size_t count)
{
    struct site_declaration *copy = take(block, count * sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        struct site_declaration site = declared[i];
        site.origin = keep_text(block, site.origin);
        site.index_paths = keep_list(block, site.index_paths);
        site.page_pattern = keep_text(block, site.page_pattern);
        site.cross_hosts = keep_list(block, site.cross_hosts);
        site.alias_hosts = keep_list(block, site.alias_hosts);
        if (copy != NULL)
            copy[i] = site;
    }
    return copy != NULL ? copy : declared;
}

static void keep_grant(struct block *block, struct grant *grant)
{
    grant->name = keep_text(block, grant->name);
    grant->prefix = keep_text(block, grant->prefix);
}

static const struct token_declaration *
keep_tokens(struct block *block, const struct token_declaration *declared, size_t count)
{
    struct token_declaration *copy = take(block, count * sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        struct token_declaration token = declared[i];
        token.site = keep_text(block, token.site);
        keep_grant(block, &token.grant);
        if (copy != NULL)
            copy[i] = token;
    }
    return copy != NULL ? copy : declared;
}

static const struct check_write *keep_checks(struct block *block, const struct check_write *checks,
                                             size_t count)
{
    struct check_write *copy = checks != NULL ? take(block, count * sizeof *copy) : NULL;
    for (size_t i = 0; i < count; i++) {
        struct check_write check = checks[i];
        const char **const texts[] = {
            &check.record.loc,     &check.record.source,        &check.record.etag,
            &check.record.remarks, &check.record.last_modified, &check.record.newest_lastmod,
            &check.record.problem, &check.record.detail,        &check.lastmod_to,
            &check.lastmod_from,
        };
        for (size_t text = 0; text < sizeof texts / sizeof *texts; text++)
            *texts[text] = keep_text(block, *texts[text]);
        if (copy != NULL)
            copy[i] = check;
    }
    return copy != NULL ? copy : checks;
}

static void keep_engine(struct block *block, struct engine_write *w)
{
    struct engine_sitemap *copy = w->sitemaps != NULL ? take(block, w->count * sizeof *copy) : NULL;
    w->engine = keep_text(block, w->engine);
    w->site.why = keep_text(block, w->site.why);
    for (size_t i = 0; w->sitemaps != NULL && i < w->count; i++) {
        struct engine_sitemap sitemap = w->sitemaps[i];
        sitemap.loc = keep_text(block, sitemap.loc);
        sitemap.parent = keep_text(block, sitemap.parent);
        if (copy != NULL)
            copy[i] = sitemap;
    }
    w->sitemaps = copy != NULL ? copy : w->sitemaps;
}

#define text_of(field)   &c->made.field,
#define option_of(field) text_of(field)
#define lines_of(field)  text_of(field)
#define yes_no_of(field)
#define span_of(field)
#define SETTING_TEXT(bit, kind, field, ...) kind##_of(field)

static void keep_all(struct block *block, struct change *c)
{
    const char **const texts[] = {&c->source,
                                  &c->entry.loc,
                                  &c->entry.lastmod,
                                  &c->entry.digest,
                                  &c->entry.index,
                                  &c->entry.source,
                                  &c->entry.extensions,
                                  &c->entry_id,
                                  &c->loc,
                                  &c->if_match,
                                  &c->index_name,
                                  &c->replace_source,
                                  &c->replace_prefix,
                                  &c->site.origin,
                                  &c->site.robots,
                                  &c->index_url,
                                  &c->page_pattern,
                                  &c->urlset.index,
                                  &c->by,
                                  &c->request_id,
                                  &c->key,
                                  &c->note,
                                  &c->made.name,
                                  SOURCE_SETTINGS(SETTING_TEXT)};
    const char *const **const lists[] = {
        &c->site.cross_hosts,   &c->site.alias_hosts, &c->site.cross_added,
        &c->site.cross_removed, &c->site.alias_added, &c->site.alias_removed,
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = keep_text(block, *texts[i]);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        *lists[i] = keep_list(block, *lists[i]);
    keep_grant(block, &c->grant);
    keep_grant(block, &c->token);
    c->bearer_sha256 = keep(block, c->bearer_sha256, 32);
    c->token_sha256 = keep(block, c->token_sha256, 32);
    c->key_sha256 = keep(block, c->key_sha256, 32);
    c->crawlers.epoch = keep_text(block, c->crawlers.epoch);
    c->crawlers.node = keep_text(block, c->crawlers.node);
    c->crawlers.pages =
        keep(block, c->crawlers.pages, c->crawlers.page_count * sizeof *c->crawlers.pages);
    c->crawlers.children =
        keep(block, c->crawlers.children, c->crawlers.child_count * sizeof *c->crawlers.children);
    c->crawlers.days =
        keep(block, c->crawlers.days, c->crawlers.day_count * sizeof *c->crawlers.days);
    keep_engine(block, &c->engine);
    c->site_days.rows =
        keep(block, c->site_days.rows, c->site_days.count * sizeof *c->site_days.rows);
    c->checks = keep_checks(block, c->checks, c->check_count);
    c->declared = keep_declared(block, c->declared, c->declared_count);
    c->declared_tokens = keep_tokens(block, c->declared_tokens, c->declared_token_count);
}

size_t change_block_bytes(const struct change *change)
{
    struct block block = {.at = NULL};
    struct change seen = *change;
    keep_all(&block, &seen);
    return block.used;
}

void change_keep(struct change *change, void *room)
{
    struct block block = {.at = room};
    keep_all(&block, change);
}

void change_row_done(struct change_row *row)
{
    entry_record_done(&row->before);
    entry_record_done(&row->after);
    memset(row, 0, sizeof *row);
}

void change_result_done(struct change_result *result)
{
    for (size_t i = 0; i < result->told_count; i++)
        change_row_done(&result->told[i]);
    free(result->told);
    result->told = NULL;
    result->told_count = 0;
    entry_record_done(&result->entry);
    memset(&result->entry, 0, sizeof result->entry);
    findings_done(&result->findings);
    str_done(&result->outcome);
    spool_free(result->rows);
    result->rows = NULL;
    if (result->steps_free != NULL)
        result->steps_free(result->steps);
    result->steps = NULL;
    result->steps_free = NULL;
}
