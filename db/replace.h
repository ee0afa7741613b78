/* A replace at work: what it acts on, and its steps. Internal to db/; the writer's thread.
 *
 * The set acted on is what the index holds of `replace_source` (NULL: of anyone) with locs that
 * begin with `replace_prefix` (NULL: all). Two passes over the list, in between the removals, so
 * that what goes makes room for what comes:
 *   1. judge every line; remember in temp.keep which entries of the index the list names
 *   2. prune: remove those of the set that it does not name
 *   3. park: entries that an export wants at another position leave theirs, under the address
 *      -address, which no entry has
 *   4. write: update, bring back what is parked, add what is new. */
#ifndef SITEMAPD_DB_REPLACE_H
#define SITEMAPD_DB_REPLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "db/apply.h"

struct replace {
    struct tx *tx;
    const struct change *change;
    struct change_result *result;
    const struct registry_index *index;
    struct fill_index *fill;
    int64_t owner;    /* the source acted on; 0: anyone's; -1: one that owns nothing yet */
    uint64_t ordinal; /* of the line at hand, from 1 */
    struct put put;   /* the line at hand */
};

enum catalogue_status replace_prune(struct replace *r);
enum catalogue_status replace_park(struct replace *r);
/* Brings the parked entry of the line at hand back, at the wanted position where it can. `*back` is
 * false where it found no room: then it is gone. */
enum catalogue_status replace_unpark(struct replace *r, bool *back);

#endif
