/* Carries out one change inside the writer's transaction. Internal to db/; the writer's thread.
 *
 * Every apply_ function first decides by reads, then writes: where it sets result->status to
 * anything but OK it has written nothing, so that its neighbours in the transaction stand. (A bulk,
 * replace or scan is alone in its transaction; it says by `*keep` whether its transaction is to
 * stand.) It returns CATALOGUE_OK, or a failure after which the transaction is rolled back, see
 * tx.h. */
#ifndef SITEMAPD_DB_WRITE_APPLY_APPLY_H
#define SITEMAPD_DB_WRITE_APPLY_APPLY_H

#include <stdbool.h>

#include "db/catalogue.h"
#include "db/write/apply/entry.h"
#include "db/write/tx.h"

/* Rows of removed indexes that one CHANGE_PURGE drops: some milliseconds. */
#define PURGE_ROWS 2000
/* rows_done steps by so many, and the end of a list is asked for after so many. */
#define APPLY_PROGRESS 1000

/* True for what is alone in its transaction: because it may be rolled back whole, or because it may
 * take long (a new index some 0.2 s), and others then have their turn before the next one. */
bool apply_alone(enum change_kind kind);

/* Dispatches by kind. Sets `*keep` to false where what is alone is to be rolled back whole. */
enum catalogue_status apply_change(struct tx *tx, const struct change *change,
                                   struct change_result *result, bool *keep);

/* What a kind of change does. One whose transaction may be rolled back whole says it by `*keep`. */
typedef enum catalogue_status apply_kind(struct tx *tx, const struct change *change,
                                         struct change_result *result);
typedef enum catalogue_status apply_whole(struct tx *tx, const struct change *change,
                                          struct change_result *result, bool *keep);
apply_kind apply_entry_put, apply_entry_remove, apply_check, apply_indexnow;
apply_whole apply_bulk, apply_replace, apply_scan, apply_split, apply_undo, apply_configure;
apply_kind apply_site_add, apply_site_update, apply_site_remove;
apply_kind apply_index_add, apply_index_freeze, apply_index_remove, apply_urlset_add;
apply_whole apply_urlset_update;
apply_kind apply_source_put, apply_source_remove;
/* Of the removal of an index or, `of_site`, a site: change->revision is its revision. */
enum catalogue_status apply_unremove(struct tx *tx, const struct change *change,
                                     struct change_result *result, bool of_site);
/* Writes tables of the node's own alone: no revision. */
enum catalogue_status apply_crawlers(struct tx *tx, const struct change *change);
/* Drops a batch of rows; result->removed tells how many, `*more` whether there may be more. Makes
 * no revision: nothing that anyone can see differs. */
/* The index whose rows are to go next, 0: none. A read. */
enum catalogue_status apply_purge_find(struct tx *tx, int64_t *index_id);
enum catalogue_status apply_purge(struct tx *tx, struct change_result *result, bool *more);

/* ---- results (apply.c) */

/* REFUSED with a rule's code; `field` is static or NULL. */
void result_refuse(struct change_result *result, enum rule_code code, const char *field);
/* REFUSED because the token is for another site. */
void result_forbid(struct change_result *result);
/* There is nothing of that id: NOT_FOUND, with a sentence; but to a token of one site the same as
 * of what is another's, so that it does not learn what there is. */
void result_missing(struct change_result *result, const struct grant *grant, const char *sentence);
/* REFUSED because it is outside of what the token may, in its own site. */
void result_outside(struct change_result *result, const char *field, const char *sentence);
/* REFUSED because what it would change is frozen, so that the change does not pass it. True where
 * that is so. */
bool result_frozen(struct change_result *result, const struct change *change, enum freeze frozen);
/* REFUSED because who asks may not thaw what a token for all sites froze. True where that is so. */
bool result_freeze_holds(struct change_result *result, const struct change *change,
                         enum freeze frozen);
/* NOT_FOUND or CONFLICT, with a sentence. */
void result_decline(struct change_result *result, enum catalogue_status status,
                    const char *sentence);
/* CONFLICT because the configuration manages the site. True where that is so. */
bool result_managed(struct change_result *result, const struct change *change,
                    const struct registry_site *site);
/* The same of a list of it. Urlsets are nobody's but the API's: a configuration names none. */
bool result_list_managed(struct change_result *result, const struct change *change,
                         const struct registry_site *site, enum list_kind kind);

/* ---- indexes and sites together */

/* The most index files a site may have: positions have 32 bits. */
#define SITE_PAGES_MAX (UINT32_MAX / LIMIT_PAGE_ENTRIES)

/* Indexes of a site, empty ones too: a registration may go from one to the next. The configuration
 * may name more. */
#define SITE_INDEXES_MAX 500u

/* Marks an index as removed; its pages become tombstones with this transaction's revision. */
enum catalogue_status index_bury(struct tx *tx, const struct registry_index *index);

/* ---- for bulk, replace and scan */

/* Counts what put_write did, and tells what it remarked. */
void count_put(const struct change *change, struct change_result *result, const struct put *put);
/* Counts a refusal, tells it, and makes the first one the change's own code. */
void reject_entry(const struct change *change, struct change_result *result,
                  const struct entry *entry, enum rule_code code, const char *field);
/* The same for what entry_locate or put_room refused. */
void reject_put(const struct change *change, struct change_result *result, const struct put *put);
/* A bulk that stops for its stream's sake: UNAVAILABLE with errno's sentence. */
void reject_stream(struct change_result *result);
/* At the end: whether the transaction is kept, and what its sites are to be warned of; what was
 * refused counts nothing but refusals. */
void finish_set(struct tx *tx, const struct change *change, struct change_result *result,
                bool *keep);
/* Notes rows_done now and then. */
void tell_progress(const struct change *change, uint64_t done);
/* True where a bulk or replace that a site's token sent is to end, for the sake of other sites'
 * writes: it is refused as a whole then. Asked between entries, every APPLY_PROGRESS or oftener. */
bool list_ends(struct tx *tx, const struct change *change, struct change_result *result);

#endif
