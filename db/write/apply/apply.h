/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Carries out one change inside the writer's transaction. Internal to db/; the writer's thread.
 *
 * Every apply_ function first decides by reads, then writes: where it sets result->status to
 * anything but OK it has written nothing, so that the other changes of the transaction remain. (A
 * bulk, replace or scan is alone in its transaction; `*keep` says whether its transaction is to be
 * committed.) It returns CATALOGUE_OK, or a failure after which the transaction is rolled back, see
 * tx.h. */
#pragma once

#include <stdbool.h>

#include "db/catalogue.h"
#include "db/tx/tx.h"
#include "server/rules/scope.h"

struct put; /* entry.h */

/* Rows of removed indexes that one CHANGE_PURGE drops: a few milliseconds. */
#define PURGE_ROWS 2000
/* Step of rows_done. */
#define APPLY_PROGRESS 1000
/* A list checks after this many rows whether others wait: a page URL with 1,000 images takes about
 * 10 ms. */
#define APPLY_LOOK 16

/* SPLIT_STEP_ROWS; tests put less here. */
extern uint64_t apply_split_rows;
/* How long a step of a change in steps may keep the writer while other writes wait; tests put less
 * here. */
#define APPLY_STEP_MS 200
extern int64_t apply_step_ms;

/* True for a kind that is alone in its transaction: because it may be rolled back whole, or because
 * it may take long (a new index about 0.2 s), so that others have a turn before the next one. */
bool apply_alone(enum change_kind kind);
/* True for a kind that writes only the node's own tables, and so needs no log in a shared
 * catalogue. */
bool apply_is_own(enum change_kind kind);

/* True, and NO_SPACE, if the disk is nearly full and a change of a token for one site may add to
 * it: nothing more of the change may be written. */
bool apply_lacks_room(const struct tx *tx, const struct change *change,
                      struct change_result *result);

/* Applies a change by its kind (dispatch.c has the table). Sets `*keep` to false if a change that
 * is alone in its transaction is to be rolled back. */
enum catalogue_status apply_change(struct tx *tx, const struct change *change,
                                   struct change_result *result, bool *keep);

/* The functions for the kinds of changes, called by dispatch.c. A kind whose transaction may be
 * rolled back has `*keep`. */
#define APPLY(kind, type, ...)                                                                     \
    enum catalogue_status apply_##kind(struct tx *tx, const struct change *change,                 \
                                       const struct type *own, struct change_result *result,       \
                                       ##__VA_ARGS__)
APPLY(entry_put, entry);
APPLY(entry_remove, change_entry_remove);
enum catalogue_status apply_bulk(struct tx *tx, const struct change *change,
                                 struct change_result *result, bool *keep);
APPLY(replace, change_replace, bool *keep);
APPLY(site_add, change_site_add);
APPLY(site_update, change_site_update);
APPLY(site_remove, change_site_remove);
APPLY(site_import, change_site_import, bool *keep);
APPLY(index_add, change_index_add);
APPLY(index_remove, change_index_remove, bool *keep);
APPLY(index_freeze, change_index_freeze);
APPLY(urlset_add, change_urlset_add);
APPLY(urlset_update, change_urlset_update, bool *keep);
APPLY(token_add, change_token_add);
APPLY(token_revoke, change_token_revoke);
enum catalogue_status apply_token_used(struct tx *tx, const struct change_token_used *used);
APPLY(source_put, change_source_put);
/* Whether a source with these settings could be created; `why` gets a sentence. Pure. */
bool source_settings_are_sound(const struct source_settings *made, char *why, size_t why_size);
APPLY(source_remove, change_source_remove);
/* Something else than a scan changed entries of this source, or of any source of the site: a folder
 * is scanned soon, and the next poll of a list is unconditional, so that the source finds the
 * difference. Not a source that API or command line created for another site, whose name a token
 * of this site used. */
enum catalogue_status source_touch(struct tx *tx, int64_t site_id, int64_t source);
enum catalogue_status sources_touch(struct tx *tx, int64_t site_id);
enum catalogue_status apply_crawlers(struct tx *tx, const struct change_crawlers *kept);
enum catalogue_status apply_crawlers_report(struct tx *tx, const struct change_crawlers *kept);
enum catalogue_status apply_indexnow(struct tx *tx, const struct change_indexnow *w,
                                     struct change_result *result);
enum catalogue_status apply_site_days(struct tx *tx, const struct change_site_days *w);
enum catalogue_status apply_engine(struct tx *tx, const struct change_engine *w);
enum catalogue_status apply_configure(struct tx *tx, const struct change_configure *declared,
                                      struct change_result *result, bool *keep);
APPLY(check, change_check);
APPLY(scan, change_scan, bool *keep);
APPLY(split, change_split, bool *keep);
APPLY(undo, change_undo, bool *keep);
/* Removes a batch of expired page URLs, except in frozen lists; and whether there are any, a read
 * outside of a transaction. */
enum catalogue_status apply_expire(struct tx *tx, struct change_result *result);
bool urlset_expiry_is_due(struct tx *tx);
/* Moves the state of a file from a poll's row, if it is there, into a row of source_file_row of its
 * own: for this source and path, and for the files that the history has at `revision` (0: none) in
 * `site`. */
enum catalogue_status check_file_expand(struct tx *tx, int64_t source, const char *path,
                                        int64_t revision, int64_t site);
/* The same if the file's row is about to be overwritten or dropped. */
enum catalogue_status check_file_drop(struct tx *tx, int64_t source, const char *path);
/* Undoes the removal of an index or, with `of_site`, a site at this revision. */
enum catalogue_status apply_unremove(struct tx *tx, const struct change *change, int64_t revision,
                                     struct change_result *result, bool of_site);
/* The removal date of a list whose rows are to be purged in this many seconds. */
int64_t apply_purge_date(const struct tx *tx, int64_t seconds);
/* Finds the index whose rows are to be purged next; 0: none. A read. */
enum catalogue_status apply_purge_find(struct tx *tx, int64_t *index_id);
/* Drops a batch of such rows; result->removed is their number, `*more` whether there may be more.
 * Makes no revision, since nothing visible changes. */
enum catalogue_status apply_purge(struct tx *tx, struct change_result *result, bool *more);

/* ---- results (dispatch.c) */

/* REFUSED with a rule's code; `field` is static or NULL. */
void result_refuse(struct change_result *result, enum rule_code code, const char *field);
/* Reports an entry that the change cannot restore. */
void result_conflict(struct change_result *result, uint64_t line, const char *loc,
                     enum rule_code code);
/* REFUSED because the token is for another site. */
void result_forbid(struct change_result *result);
/* NOT_FOUND, with a sentence: the id is unknown. A token of one site gets the same answer as for an
 * object of another site, so that it does not learn which exist. */
void result_missing(struct change_result *result, const struct grant *grant, const char *sentence);
/* REFUSED because the token's rights in its own site do not cover it. */
void result_outside(struct change_result *result, const char *field, const char *sentence);
/* True, and REFUSED, if the object is frozen and the change does not pass a freeze. */
bool result_frozen(struct change_result *result, const struct change *change, enum freeze frozen);
/* True, and REFUSED, if a token for all sites froze the object, so that the caller may not thaw it.
 */
bool result_freeze_holds(struct change_result *result, const struct change *change,
                         enum freeze frozen);
/* NOT_FOUND or CONFLICT, with a sentence. */
void result_decline(struct change_result *result, enum catalogue_status status,
                    const char *sentence);
/* True, and CONFLICT, if the configuration manages the site. */
bool result_managed(struct change_result *result, const struct change *change,
                    const struct registry_site *site);
/* The same for a list of the site. Only the API manages urlsets: a configuration has none. */
bool result_list_managed(struct change_result *result, const struct change *change,
                         const struct registry_site *site, enum list_kind kind);

/* ---- indexes and sites together */

/* The most index files a site may have: positions have 32 bits. */
#define SITE_PAGES_MAX (UINT32_MAX / LIMIT_PAGE_ENTRIES)

/* Most indexes of a site, empty ones too, since a registration may look at each. The configuration
 * may have more. */
#define SITE_INDEXES_MAX 500u

/* Marks an index as removed; its pages become tombstones with this transaction's revision. */
enum catalogue_status index_bury(struct tx *tx, const struct registry_index *index);

/* Page names of an index: none may be a registered loc of the site, or a page name of another index
 * of it. */

/* Most lookups of one check: about 0.2 s. Beyond that, with tens of thousands of locs that begin
 * like page names, the index is rejected. */
#define INDEX_NAMES_MAX_LOOKUPS 50000u

/* Checks the names of `indexes` (of which path and page_pattern count) for the pages `first` to
 * `last`; refuses with INDEX_COVERS_LOC or INDEX_COVERS_INDEX. The number of lookups depends on the
 * locs that begin as the names do, not on the number of names or hosts. */
enum catalogue_status index_names_check(struct tx *tx, const struct registry *r,
                                        const struct registry_site *site,
                                        const struct registry_index *indexes, size_t count,
                                        uint32_t first, uint32_t last,
                                        struct change_result *result);

/* Checks the index that a new site of this origin is made with: a new site cannot have other
 * conflicts (a loc, another index). Fills `path`, or refuses `index`. */
enum catalogue_status index_check_first(struct tx *tx, const struct url *origin, const char *url,
                                        char path[INDEX_PATH_MAX_CHARS + 1],
                                        struct change_result *result);
/* Checks the list, of the given kind (of a urlset with its max_pages), that a change creates at
 * `url`, page_pattern NULL: the default. Fills `path` (INDEX_PATH_MAX_CHARS + 1 bytes), where
 * list->path is then, and the pattern. */
enum catalogue_status index_check_new(struct tx *tx, const struct change *change, const char *url,
                                      const char *page_pattern, struct registry_index *list,
                                      char *path, const struct registry_site **out,
                                      struct change_result *result);
/* The list of this kind and id. NULL, with the result filled, if it does not exist or the caller
 * may not see it. */
enum catalogue_status index_find_requested(struct tx *tx, const struct change *change, int64_t id,
                                           enum list_kind kind, struct change_result *result,
                                           const struct registry **r,
                                           const struct registry_index **out);
/* Creates an index that was checked; result->id is its id. */
enum catalogue_status index_insert(struct tx *tx, int64_t site_id, const char *path,
                                   const char *pattern, struct change_result *result);

/* After the INSERT of a row of the registry, which returned `status`; result->id is the row's. */
enum catalogue_status admin_inserted(struct tx *tx, enum catalogue_status status,
                                     struct change_result *result);

/* Rejects an origin whose host is that of another site. True: rejected. */
bool site_refuse_second_scheme(const struct registry *r, const struct url *origin,
                               struct change_result *result);
/* Most bytes of all sites' texts together: each registry and each routing table has them. */
#define SITE_ROBOTS_TOTAL_BYTES (16u * 1024 * 1024)

/* The lists of hosts that a site is made or changed with: cross hosts, host aliases. */

#define SITE_HOST_SIZE (HOST_MAX_CHARS + 7)

struct site_hosts {
    char (*name)[SITE_HOST_SIZE]; /* owned; normalised, by bytes, each once */
    size_t count;
};

/* Most hosts of each list, with a lower limit for tokens for one site: the registry contains every
 * host, and is read again after each change of it. */
#define SITE_HOSTS_MAX          1000u
#define SITE_HOSTS_MAX_ONE_SITE 100u

/* Normalises a NULL-terminated list (NULL: empty). Rejects invalid hosts and lists that are too
 * long, with `field` (static); a list that is not longer than the site's list (`has`) is accepted.
 * The caller ends `out` with site_hosts_done in any case. */
enum catalogue_status site_hosts_read(const struct change *change, const char *const *given,
                                      const char *field, size_t has, struct site_hosts *out,
                                      struct change_result *result);
bool site_hosts_equal(const struct site_hosts *a, const char *const *b, size_t b_count);
void site_hosts_done(struct site_hosts *hosts);

/* ---- tokens */

/* Whether the token of the change still exists and is valid; else `result` is filled. */
enum catalogue_status token_check(struct tx *tx, const struct change *change,
                                  struct change_result *result, bool *holds);
/* Drops recorded uses of removed tokens. */
enum catalogue_status token_forget_uses(struct tx *tx);

/* For configure.c: whether a token is as declared (or released), and making it so. */
bool token_is_declared(const struct registry *r, const struct token_declaration *d);
enum catalogue_status token_declare(struct tx *tx, const struct token_declaration *d,
                                    struct change_result *result);

/* ---- for bulk, replace and scan (list_change.c) */

/* Counts the outcome of put_write, and reports its remarks. */
void count_put(const struct change *change, struct change_result *result, const struct put *put);
/* Counts and reports a rejection; the first one is the change's own code. */
void reject_entry(const struct change *change, struct change_result *result,
                  const struct entry *entry, enum rule_code code, const char *field);
/* The same for a rejection by entry_locate or put_room. */
enum catalogue_status reject_put(struct tx *tx, const struct change *change,
                                 struct change_result *result, const struct put *put);
/* The rows cannot be read: UNAVAILABLE with errno's sentence. */
void reject_stream(struct change_result *result);
/* Ends a list: decides whether the transaction is kept and anything changed, and adds remarks on
 * its sites. A rejected list counts only rejections. */
void finish_set(struct tx *tx, const struct change *change, struct change_result *result,
                bool *keep);
/* Updates rows_done periodically. */
void report_progress(const struct change *change, uint64_t done);
/* True if the change must end here, since other writes wait: it is rejected as a whole (a site's
 * token sent it, and it took too long), or was stopped to be rehearsed (result->undecided, see
 * rehearsal.c). Called between entries, every APPLY_LOOK or more often. */
bool list_ends(struct tx *tx, const struct change *change, struct change_result *result);
