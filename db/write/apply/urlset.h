/* Urlsets: making and changing one, and the entries that its pages are in its index. Internal to
 * db/; the writer's thread.
 *
 * Each page that has rows is an entry of the urlset's index, in the same transaction, so that no
 * view shows one without the other. It is made with the first row of the page: where the index has
 * no room for it, the row has none either, and that is known before anything is written. Its
 * lastmod is set, and an entry whose page is empty goes, at the end of the change (urlset_settle):
 * once for each page, however many of its rows the change touched, and what a replace empties and
 * fills again keeps its entry. An undo puts no such entry back: what it did to the rows decides. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "db/write/apply/entry.h"
#include "db/write/occupancy.h"
#include "db/write/tx.h"

/* occupancy_find for a list of either kind; `*code` is OK, RULE_SITE_FULL or RULE_URLSET_FULL.
 * Of a urlset a page that has no row yet is taken only where its entry has a place. */
enum catalogue_status urlset_find(struct tx *tx, const struct registry_index *list,
                                  struct occupancy_index *occupancy,
                                  const struct occupancy_room *room, uint32_t *position,
                                  enum rule_code *code);
/* occupancy_take, behind urlset_find; makes the entry of a page that had no row. */
enum catalogue_status urlset_take(struct tx *tx, const struct registry_index *list,
                                  struct occupancy_index *occupancy, uint32_t position,
                                  uint32_t weight);
/* The end of a change that is kept: the entries of the pages that it touched are as these are. */
enum catalogue_status urlset_settle(struct tx *tx);
/* The urlset is removed: the entries of its pages go, or the result is refused, as with a list that
 * takes too long. */
enum catalogue_status urlset_leave(struct tx *tx, const struct registry_index *urlset,
                                   const struct change *change, struct change_result *result);
/* Its removal is undone: they come back, or the result is refused. */
enum catalogue_status urlset_return(struct tx *tx, const struct registry_index *urlset,
                                    const struct change *change, struct change_result *result);

/* Age, of urlsets with expires_s: it counts from the date of a row's news, else from its lastmod,
 * else from when it was registered. */
bool urlset_is_expired(const struct tx *tx, const struct put *put);
/* A batch of those that are older than their urlset keeps goes; and whether there is one, a read
 * outside of a transaction. What is frozen waits. */
enum catalogue_status apply_expire(struct tx *tx, const struct change *change,
                                   struct change_result *result);
bool urlset_expiry_is_due(struct tx *tx);
/* The row was written at its address. */
enum catalogue_status urlset_record_age(struct tx *tx, const struct registry_index *list,
                                        const struct put_row *row);
