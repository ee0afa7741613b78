/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The difference of an index between two revisions: for each entry that the changes in between
 * touched, its first state before and its last state after.
 *
 * Rows are merged in memory, by loc. Too many rows are partitioned by four bits of the loc's hash
 * into 16 piles, each a file without a name. Each pile is merged alone, and partitioned again if it
 * is still too large. All rows of an entry get into the same pile, in the order in which they were
 * written. So memory is bounded, however much was changed. */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/history/read.h"
#include "db/read/row.h"
#include "db/read/view_pool.h"
#include "server/base/file.h"

/* In memory: about 50 MB. */
#define MERGE_ROWS 50000u
#define MERGE_TEXT (16u << 20)

#define PILE_BITS  4u
#define PILES      (1u << PILE_BITS)
#define DEPTH_LAST (64u / PILE_BITS - 1) /* this depth uses the last bits of the hash */

struct pile {
    struct history_part part; /* rows that are not in the file yet */
    FILE *file;               /* NULL: none yet; packed parts, each after its length */
};

struct merge {
    struct catalogue_view *v;
    const struct history_difference *wanted;
    unsigned depth;
    struct history_part whole;
    struct pile *piles; /* NULL: all rows are in `whole` */
    struct str packed;
};

static void close_piles(struct merge *m)
{
    for (unsigned i = 0; m->piles != NULL && i < PILES; i++) {
        history_part_done(&m->piles[i].part);
        if (m->piles[i].file != NULL)
            fclose(m->piles[i].file);
    }
    free(m->piles);
    m->piles = NULL;
}

static void merge_done(struct merge *m)
{
    history_part_done(&m->whole);
    close_piles(m);
    str_done(&m->packed);
}

/* ---- merging rows */

/* An entry in another index counts as missing. */
static void keep_image(struct history_part *whole, const struct history_part *part, bool has,
                       const struct history_image *image, int64_t index, bool *has_out,
                       struct history_image *out)
{
    const char *lastmod = history_text_of(part, image->lastmod);
    const char *digest = history_text_of(part, image->digest);
    const char *extensions = history_text_of(part, image->extensions);
    *has_out = has && id_address_index(image->address) == index;
    if (!*has_out)
        return;
    *out = *image;
    out->lastmod = history_part_keep(whole, lastmod, image->lastmod.len);
    out->digest = history_part_keep(whole, digest, image->digest.len);
    out->extensions = history_part_keep(whole, extensions, image->extensions.len);
}

static bool merge_row(struct history_part *whole, const struct history_part *part,
                      const struct history_row *row, int64_t index)
{
    bool fresh;
    struct history_row *sum =
        history_part_row(whole, row->site, history_text_of(part, row->loc), row->loc.len, &fresh);
    if (sum == NULL)
        return false;
    if (fresh)
        keep_image(whole, part, row->has_before, &row->before, index, &sum->has_before,
                   &sum->before);
    keep_image(whole, part, row->has_after, &row->after, index, &sum->has_after, &sum->after);
    return !whole->failed;
}

static bool is_large(const struct history_part *whole)
{
    return whole->count > MERGE_ROWS || whole->text.len > MERGE_TEXT;
}

/* Drops texts that were replaced, and rows whose last state is the first one again. */
static bool tidy(struct merge *m)
{
    struct history_part kept = {.rows = NULL};
    bool good = true;
    for (uint32_t i = 0; good && i < m->whole.count; i++)
        if (!history_row_is_idle(&m->whole, &m->whole.rows[i]))
            good = merge_row(&kept, &m->whole, &m->whole.rows[i], m->wanted->index_id);
    history_part_done(&m->whole);
    m->whole = kept;
    return good;
}

/* ---- piles */

/* Called periodically, before `bytes` are written. */
static bool may_continue(const struct merge *m, size_t bytes)
{
    return m->wanted->goes_on == NULL || m->wanted->goes_on(m->wanted->context, bytes);
}

/* Opens a file beside the database. */
static FILE *open_file(const struct merge *m)
{
    char *path = strdup(sqlite3_db_filename(m->v->db, "main"));
    int fd = path != NULL ? file_open_nameless(dirname(path)) : -1;
    FILE *file = fd >= 0 ? fdopen(fd, "w+") : NULL;
    if (file == NULL && fd >= 0)
        close(fd);
    free(path);
    return file;
}

static enum catalogue_status write_status(void)
{
    if (errno == ENOMEM)
        return CATALOGUE_NO_MEMORY;
    return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? CATALOGUE_NO_SPACE
                                                                : CATALOGUE_UNAVAILABLE;
}

static enum catalogue_status pile_write(struct merge *m, struct pile *pile)
{
    str_clear(&m->packed);
    if (!history_part_pack(&pile->part, &m->packed))
        return CATALOGUE_NO_MEMORY;
    history_part_clear(&pile->part);
    if (!may_continue(m, m->packed.len))
        return CATALOGUE_CANCELLED;
    if (pile->file == NULL)
        pile->file = open_file(m);
    uint32_t len = (uint32_t)m->packed.len;
    if (pile->file == NULL || fwrite(&len, sizeof len, 1, pile->file) != 1 ||
        fwrite(m->packed.data, 1, len, pile->file) != len)
        return write_status();
    return CATALOGUE_OK;
}

static enum catalogue_status deal(struct merge *m, const struct history_part *part,
                                  const struct history_row *row)
{
    uint64_t hash = history_loc_hash(history_text_of(part, row->loc), row->loc.len);
    struct pile *pile = &m->piles[hash >> (64 - PILE_BITS * (m->depth + 1)) & (PILES - 1)];
    if (!merge_row(&pile->part, part, row, m->wanted->index_id))
        return CATALOGUE_NO_MEMORY;
    if (pile->part.count < HISTORY_PART_ROWS && pile->part.text.len < HISTORY_PART_TEXT)
        return CATALOGUE_OK;
    return pile_write(m, pile);
}

static enum catalogue_status deal_all(struct merge *m)
{
    enum catalogue_status status = CATALOGUE_OK;
    m->piles = calloc(PILES, sizeof *m->piles);
    if (m->piles == NULL)
        return CATALOGUE_NO_MEMORY;
    for (uint32_t i = 0; status == CATALOGUE_OK && i < m->whole.count; i++)
        status = deal(m, &m->whole, &m->whole.rows[i]);
    history_part_done(&m->whole);
    return status;
}

static enum catalogue_status add_row(struct merge *m, const struct history_part *part,
                                     const struct history_row *row)
{
    if (m->piles != NULL)
        return deal(m, part, row);
    if (!merge_row(&m->whole, part, row, m->wanted->index_id))
        return CATALOGUE_NO_MEMORY;
    if (!is_large(&m->whole))
        return CATALOGUE_OK;
    if (!tidy(m))
        return CATALOGUE_NO_MEMORY;
    /* Partitions the rows unless this freed a quarter: otherwise they would be too many again at
     * once. */
    if (m->whole.count < MERGE_ROWS / 4 * 3 && m->whole.text.len < MERGE_TEXT / 4 * 3)
        return CATALOGUE_OK;
    return m->depth == DEPTH_LAST ? CATALOGUE_FULL : deal_all(m);
}

/* ---- reporting */

static enum catalogue_status report_whole(struct merge *m)
{
    struct history_namer namer = {.v = m->v};
    enum catalogue_status status = CATALOGUE_OK;
    for (uint32_t i = 0; status == CATALOGUE_OK && i < m->whole.count; i++) {
        if (i % HISTORY_PART_ROWS == 0 && !may_continue(m, 0))
            status = CATALOGUE_CANCELLED;
        else if (!history_row_is_idle(&m->whole, &m->whole.rows[i]))
            status = history_report_row(&namer, &m->whole, &m->whole.rows[i], m->wanted->each,
                                        m->wanted->context);
    }
    return status;
}

/* Reads the next part of the file into `part`, which is empty; false: none exists. */
static bool read_pile(FILE *file, struct str *packed, struct history_part *part,
                      enum catalogue_status *status)
{
    uint32_t len;
    if (fread(&len, sizeof len, 1, file) != 1) {
        *status = ferror(file) ? CATALOGUE_UNAVAILABLE : CATALOGUE_OK;
        return false;
    }
    str_clear(packed);
    if (!str_reserve(packed, len))
        *status = CATALOGUE_NO_MEMORY;
    else if (fread(packed->data, 1, len, file) != len)
        *status = CATALOGUE_UNAVAILABLE;
    else if (!history_part_unpack(part, packed->data, len))
        *status = part->failed ? CATALOGUE_NO_MEMORY : CATALOGUE_UNAVAILABLE;
    return *status == CATALOGUE_OK;
}

static enum catalogue_status report_merge(struct merge *m);

static enum catalogue_status report_pile(const struct merge *above, struct pile *pile)
{
    struct merge m = {.v = above->v, .wanted = above->wanted, .depth = above->depth + 1};
    struct history_part part = {.rows = NULL};
    enum catalogue_status status = CATALOGUE_OK;
    if (fflush(pile->file) != 0)
        status = write_status();
    else
        rewind(pile->file);
    while (status == CATALOGUE_OK && read_pile(pile->file, &m.packed, &part, &status)) {
        if (!may_continue(&m, 0))
            status = CATALOGUE_CANCELLED;
        for (uint32_t i = 0; status == CATALOGUE_OK && i < part.count; i++)
            status = add_row(&m, &part, &part.rows[i]);
        history_part_clear(&part);
    }
    history_part_done(&part);
    fclose(pile->file);
    pile->file = NULL;
    if (status == CATALOGUE_OK)
        status = report_merge(&m);
    merge_done(&m);
    return status;
}

static enum catalogue_status report_merge(struct merge *m)
{
    enum catalogue_status status = CATALOGUE_OK;
    if (m->piles == NULL)
        return report_whole(m);
    for (unsigned i = 0; status == CATALOGUE_OK && i < PILES; i++) {
        if (m->piles[i].part.count > 0)
            status = pile_write(m, &m->piles[i]);
        history_part_done(&m->piles[i].part);
    }
    for (unsigned i = 0; status == CATALOGUE_OK && i < PILES; i++)
        if (m->piles[i].file != NULL)
            status = report_pile(m, &m->piles[i]);
    return status;
}

/* ---- the changes in between */

static enum catalogue_status add_change(struct merge *m, uint64_t revision, uint64_t parts)
{
    struct history_part part = {.rows = NULL};
    enum catalogue_status status = CATALOGUE_OK;
    bool found;
    for (uint64_t number = parts > 0 ? 1 : 0; status == CATALOGUE_OK && number <= parts; number++) {
        history_part_clear(&part);
        if (!may_continue(m, 0))
            status = CATALOGUE_CANCELLED;
        else
            status = history_read_part(m->v, revision, number, &part, &found);
        for (uint32_t i = 0; status == CATALOGUE_OK && i < part.count; i++)
            if ((part.rows[i].site == m->wanted->site_id ||
                 part.rows[i].site == -m->wanted->index_id) &&
                history_row_touches(&part.rows[i], m->wanted->index_id))
                status = add_row(m, &part, &part.rows[i]);
    }
    history_part_done(&part);
    return status;
}

enum catalogue_status catalogue_view_history_diff(struct catalogue_view *v,
                                                  const struct history_difference *wanted)
{
    struct merge m = {.v = v, .wanted = wanted};
    uint64_t first;
    enum catalogue_status status = catalogue_view_history_from(v, wanted->site_id, &first);
    if (status != CATALOGUE_OK)
        return status;
    if (wanted->from + 1 < first)
        return CATALOGUE_NOT_FOUND;
    sqlite3_stmt *row = view_statement(
        v, "SELECT h.revision, h.parts FROM history_index AS i CROSS JOIN history AS h"
           " ON h.revision = i.revision WHERE i.site = ?1 AND i.revision > ?3 AND i.revision <= ?4"
           " AND i.index_id = ?2 ORDER BY i.revision");
    int rc = sql_bind(row, wanted->site_id, wanted->index_id, wanted->from, wanted->to);
    while (status == CATALOGUE_OK && sql_next(row, &rc))
        status = add_change(&m, row_number(row, 0), row_number(row, 1));
    sqlite3_reset(row);
    if (status == CATALOGUE_OK)
        status = view_status(v, rc);
    if (status == CATALOGUE_OK)
        status = report_merge(&m);
    merge_done(&m);
    return status;
}
