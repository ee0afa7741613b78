/* A scan of a directory source on its way into the catalogue. Internal to db/; the writer's thread.
 *
 * The stream of files is read up to four times: to count what would go (scan_guard.c), to count
 * what would come, to take out what goes, and to write the rest. What goes makes room for what
 * comes, and the shrink guard judges the end of both before the first write. */
#ifndef SITEMAPD_DB_SCAN_H
#define SITEMAPD_DB_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "db/apply.h"
#include "db/source.h"

#define SCAN_PROBLEM_SIZE 64

/* The row that is kept of a file, as far as a scan decides by it. */
struct scan_kept {
    bool found;
    enum source_file_state state;
    int64_t site; /* 0: none */
    bool has_loc;
    char loc[LOC_MAX_CHARS + 1];
    char problem[SCAN_PROBLEM_SIZE]; /* "" where there is none */
    int64_t problem_since;
};

/* What a scan would do to one index. */
struct scan_index {
    const struct registry_index *index;
    uint64_t removed; /* entries that go */
    int64_t change;   /* of their number, all in all */
    uint64_t before, peak;
};

struct scan {
    struct tx *tx;
    const struct change *change;
    struct change_result *result;
    int64_t owner;                      /* the source */
    const struct registry *registry;    /* borrowed: a scan changes none of it */
    const struct registry_index *index; /* NULL: by scope */

    /* Of the guard. */
    struct scan_index *indexes; /* owned */
    size_t index_count, index_capacity;
    uint64_t removals;
    bool hold; /* what would go stays */

    /* The file at hand. */
    const struct source_file *file;
    struct scan_kept kept;
    struct put put;
    struct entry entry;

    int64_t files, listed, quarantined; /* how many more there are than before */
};

/* ---- rows (scan_row.c) */

/* Reads what is kept of s->file into s->kept. */
enum catalogue_status scan_row_read(struct scan *s);
/* Writes all of `file`; it is in `site` (0: nowhere). `refused`: a rule did it. */
enum catalogue_status scan_row_write(struct scan *s, const struct source_file *file, int64_t site,
                                     bool refused);
/* Writes how s->file stands and what is wrong with it; what the row says of its last good content
 * and of its entry stays. */
enum catalogue_status scan_row_quarantine(struct scan *s);
enum catalogue_status scan_row_delete(struct scan *s);
/* Stamps how the source stands after this scan. */
enum catalogue_status scan_state_write(struct scan *s);
/* Whether anything is kept of the source's files. */
enum catalogue_status scan_state_has_files(struct scan *s, bool *has);

/* ---- the file at hand (apply_scan.c) */

/* Finds the entry that s->file takes away by being as it is now: gone, empty, no sitemap, or at
 * another URL. `*row` is not found where there is none. */
enum catalogue_status scan_find_loss(struct scan *s, struct put_row *row);
/* Places s->file as the entry that it would be. s->put.code tells; `*foreign` where the loc is
 * another's. */
enum catalogue_status scan_place(struct scan *s, bool *foreign);

typedef enum catalogue_status scan_pass(struct scan *s);
/* Calls `each` for every file of the stream. A stream that cannot be read refuses the scan:
 * result->status tells. `last` is the pass that reports progress. */
enum catalogue_status scan_read(struct scan *s, scan_pass *each, bool last);

/* ---- the shrink guard (scan_guard.c) */

/* Counts, judges and sets s->hold; writes nothing. */
enum catalogue_status scan_guard_ask(struct scan *s);
/* At the end, where the removals were let through: holds the guard to what came of it. */
enum catalogue_status scan_guard_settle(struct scan *s);

#endif
