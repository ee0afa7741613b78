/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Copies all that a change points to into one block after it, so that nothing is borrowed from the
 * submitter; and frees its result. The change is walked twice: to count the bytes, and to copy. The
 * pointers of a kind follow from its members (db/change.h). Each type of member has a row in KEEP;
 * the compiler reports a missing one. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "db/write/writer.h"

struct block {
    char *at; /* NULL: bytes are only counted */
    size_t used;
};

/* Room for `size` bytes, aligned for a pointer. NULL while bytes are counted. */
static void *allocate(struct block *block, size_t size)
{
    void *room = block->at ? block->at + block->used : NULL;
    block->used += (size + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
    return room;
}

static void keep_bytes(struct block *block, const void **bytes, size_t size)
{
    void *copy = *bytes != NULL ? allocate(block, size) : NULL;
    if (copy != NULL)
        *bytes = memcpy(copy, *bytes, size);
}

static void keep_text(struct block *block, const char **text)
{
    const void *bytes = *text;
    keep_bytes(block, &bytes, *text != NULL ? strlen(*text) + 1 : 0);
    *text = bytes;
}

static void keep_hash(struct block *block, const uint8_t **sha256)
{
    const void *bytes = *sha256;
    keep_bytes(block, &bytes, 32);
    *sha256 = bytes;
}

/* A list that ends with NULL. */
static void keep_list(struct block *block, const char *const **list)
{
    size_t count = 0;
    while (*list != NULL && (*list)[count] != NULL)
        count++;
    const char **copy = *list != NULL ? allocate(block, (count + 1) * sizeof *copy) : NULL;
    for (size_t i = 0; i < count; i++) {
        const char *text = (*list)[i];
        keep_text(block, &text);
        if (copy != NULL)
            copy[i] = text;
    }
    if (copy != NULL) {
        copy[count] = NULL;
        *list = copy;
    }
}

/* For members without pointers. */
static void keep_plain(struct block *block, const void *member)
{
    (void)block;
    (void)member;
}

static void keep_grant(struct block *block, struct grant *grant)
{
    keep_text(block, &grant->name);
    keep_text(block, &grant->prefix);
}

static void keep_entry(struct block *block, struct entry *entry)
{
    const char **const texts[] = {&entry->loc,   &entry->lastmod, &entry->digest,
                                  &entry->index, &entry->source,  &entry->extensions};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        keep_text(block, texts[i]);
}

static void keep_engine_site(struct block *block, struct engine_site *site)
{
    keep_text(block, &site->why);
}

/* ---- rows that point to something */

static void keep_site_declaration(struct block *block, void *row)
{
    struct site_declaration *site = row;
    keep_text(block, &site->origin);
    keep_list(block, &site->index_paths);
    keep_text(block, &site->page_pattern);
    keep_list(block, &site->cross_hosts);
    keep_list(block, &site->alias_hosts);
}

static void keep_token_declaration(struct block *block, void *row)
{
    struct token_declaration *token = row;
    keep_text(block, &token->site);
    keep_grant(block, &token->grant);
}

static void keep_check_write(struct block *block, void *row)
{
    struct check_write *check = row;
    const char **const texts[] = {
        &check->record.loc,     &check->record.source,        &check->record.etag,
        &check->record.remarks, &check->record.last_modified, &check->record.newest_lastmod,
        &check->record.problem, &check->record.detail,        &check->lastmod_to,
        &check->lastmod_from,
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        keep_text(block, texts[i]);
}

static void keep_engine_sitemap(struct block *block, void *row)
{
    struct engine_sitemap *sitemap = row;
    keep_text(block, &sitemap->loc);
    keep_text(block, &sitemap->parent);
}

#define ROW_MAX_BYTES 512

/* `each` copies what a row points to; NULL: rows have no pointers. */
static const void *keep_rows(struct block *block, const void *rows, size_t count, size_t size,
                             void (*each)(struct block *block, void *row))
{
    _Alignas(max_align_t) char counted[ROW_MAX_BYTES];
    char *copy = rows != NULL ? allocate(block, count * size) : NULL;
    if (copy != NULL)
        memcpy(copy, rows, count * size);
    for (size_t i = 0; rows != NULL && each != NULL && i < count; i++)
        each(block,
             copy != NULL ? copy + i * size : memcpy(counted, (const char *)rows + i * size, size));
    return copy != NULL ? copy : rows;
}

/* ---- the kinds */

static void keep_site_fields(struct block *block, struct site_fields *to);
static void keep_urlset_fields(struct block *block, struct urlset_fields *to);
static void keep_source(struct block *block, struct source_settings *to);

/* clang-format off */

/* The function that copies a member of this type; needs `block` in scope. */
#define KEEP(at) _Generic((at), \
    const char **: keep_text, const char *const **: keep_list, const uint8_t **: keep_hash, \
    struct grant *: keep_grant, struct source_settings *: keep_source, \
    struct site_fields *: keep_site_fields, struct urlset_fields *: keep_urlset_fields, \
    struct engine_site *: keep_engine_site, struct engine_day *: keep_plain, \
    struct indexnow_position *: keep_plain, bool *: keep_plain, unsigned *: keep_plain, \
    int32_t *: keep_plain, int64_t *: keep_plain, uint64_t *: keep_plain)(block, at)

/* The function that copies what a row of this type points to; NULL: rows have no pointers. */
#define ROW_KEEPER(type) _Generic((type *)NULL, \
    struct site_declaration *: keep_site_declaration, \
    struct token_declaration *: keep_token_declaration, \
    struct check_write *: keep_check_write, struct engine_sitemap *: keep_engine_sitemap, \
    struct site_day *: NULL, struct crawler_page_kept *: NULL, struct crawler_day_kept *: NULL, \
    struct crawler_child_kept *: NULL, struct crawler_visits *: NULL, struct crawler_log *: NULL)

#define KEEP_MEMBER(type, name) KEEP(&to->name);
#define KEEP_ROWS(type, name, count) \
    _Static_assert(sizeof(type) <= ROW_MAX_BYTES, "a row is copied on the stack"); \
    to->name = keep_rows(block, to->name, to->count, sizeof(type), ROW_KEEPER(type));
#define KEEP_STRUCT(kind, name, ...) \
    static void keep_##name(struct block *block, struct change_##name *to) \
    { \
        members_of_##name(KEEP_MEMBER, KEEP_ROWS) \
    }
#define KEEP_KIND(kind, name, ...) case CHANGE_##kind: keep_##name(block, &c->name); break;
#define KEEP_NOTHING(kind, ...) case CHANGE_##kind: break;

static void keep_site_fields(struct block *block, struct site_fields *to)
{
    members_of_site_fields(KEEP_MEMBER, KEEP_ROWS)
}

static void keep_urlset_fields(struct block *block, struct urlset_fields *to)
{
    members_of_urlset_fields(KEEP_MEMBER, KEEP_ROWS)
}

#define KEEP_SETTING(bit, kind, c, ...) KEEP(&to->c);
static void keep_source(struct block *block, struct source_settings *to)
{
    keep_text(block, &to->name);
    SOURCE_SETTINGS(KEEP_SETTING)
}

CHANGE_KINDS(KEEP_STRUCT, CHANGE_NOTHING, CHANGE_NOTHING)

static void keep_all(struct block *block, struct change *c)
{
    const char **const texts[] = {&c->source, &c->by,         &c->request_id, &c->note,
                                  &c->key,    &c->index_name, &c->if_match};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        keep_text(block, texts[i]);
    keep_grant(block, &c->grant);
    keep_hash(block, &c->bearer_sha256);
    keep_hash(block, &c->key_sha256);
    switch (c->kind) {
        CHANGE_KINDS(KEEP_KIND, KEEP_KIND, KEEP_NOTHING)
    }
}

/* clang-format on */

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

const char *change_subject(const struct change *change)
{
    switch (change->kind) {
    case CHANGE_TOKEN_ADD:
        return change->token_add.grant.name;
    case CHANGE_TOKEN_REVOKE:
        return change->token_revoke.name;
    case CHANGE_SOURCE_ADD:
    case CHANGE_SOURCE_UPDATE:
        return change->source_put.made.name;
    case CHANGE_SOURCE_REMOVE:
        return change->source_remove.name;
    default:
        return NULL;
    }
}

void change_row_done(struct change_row *row)
{
    entry_record_done(&row->before);
    entry_record_done(&row->after);
    memset(row, 0, sizeof *row);
}

void change_result_done(struct change_result *result)
{
    for (size_t i = 0; i < result->preview_count; i++)
        change_row_done(&result->preview[i]);
    free(result->preview);
    result->preview = NULL;
    result->preview_count = 0;
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
