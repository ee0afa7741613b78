/* Whether an index may have its page names: none may be a registered loc of the site, or a page
 * name of another index of it. Internal to db/; the writer's thread. */
#ifndef SITEMAPD_DB_WRITE_APPLY_ADMIN_H
#define SITEMAPD_DB_WRITE_APPLY_ADMIN_H

#include "db/catalogue.h"
#include "db/write/tx.h"
#include "server/rules/scope.h"

/* What one check may look up: some 0.2 s. Beyond that, which takes tens of thousands of locs that
 * begin as page names do and are none, the index is refused. */
#define INDEX_NAMES_MAX_LOOKUPS 50000u

/* Judges the names of `indexes` (of which path and page_pattern count) for the pages `first` to
 * `last`; refuses with INDEX_COVERS_LOC or INDEX_COVERS_INDEX. The lookups follow from the locs
 * that begin as the names do, not from how many names or hosts there are. */
enum catalogue_status index_names_check(struct tx *tx, const struct registry *r,
                                        const struct registry_site *site,
                                        const struct registry_index *indexes, size_t count,
                                        uint32_t first, uint32_t last,
                                        struct change_result *result);

/* Judges the index that a new site of this origin is made with: what else is in the way of one (a
 * loc, another index) a new site does not have. Fills `path`, or refuses `index`. */
enum catalogue_status index_judge_first(struct tx *tx, const struct url *origin, const char *url,
                                        char path[INDEX_PATH_MAX_CHARS + 1],
                                        struct change_result *result);
/* Judges the list, of the given kind (of a urlset with its max_pages), that a change makes anew.
 * Fills `path` (INDEX_PATH_MAX_CHARS + 1 bytes), where list->path is then, and the pattern. */
enum catalogue_status index_judge_new(struct tx *tx, const struct change *change,
                                      struct registry_index *list, char *path,
                                      const struct registry_site **site,
                                      struct change_result *result);
/* The list of this kind that a change names by its id. NULL, with the result filled, where there is
 * none, or none for who asks. */
enum catalogue_status index_find_asked(struct tx *tx, const struct change *change,
                                       enum list_kind kind, struct change_result *result,
                                       const struct registry **r,
                                       const struct registry_index **out);
/* Makes an index that was judged; result->id is its id. */
enum catalogue_status index_insert(struct tx *tx, int64_t site_id, const char *path,
                                   const char *pattern, struct change_result *result);

/* Runs the statement that makes a row of the registry; result->id is the row's. */
enum catalogue_status admin_insert(struct tx *tx, sqlite3_stmt *row, struct change_result *result);

/* Refuses an origin whose host is that of another site. True: it did. */
bool site_refuse_second_scheme(const struct registry *r, const struct url *origin,
                               struct change_result *result);
/* All sites' texts together: each registry and each routing table holds them. */
#define SITE_ROBOTS_TOTAL_BYTES (16u * 1024 * 1024)

/* The lists of hosts that a site is made or changed with: cross hosts, host aliases. Internal to
 * db/; the writer's thread. */

#define SITE_HOST_SIZE (HOST_MAX_CHARS + 7)

struct site_hosts {
    char (*name)[SITE_HOST_SIZE]; /* owned; normalised, by bytes, each once */
    size_t count;
};

/* Of each list: every host is in the registry, which is read anew with each change of it. A token
 * for one site gets by with less. */
#define SITE_HOSTS_MAX          1000u
#define SITE_HOSTS_MAX_ONE_SITE 100u

/* Normalises a NULL-terminated list (NULL: empty). Refuses with `field` (static) what is no host,
 * and lists that are too long; one that is no longer than what the site `has` is taken. The caller
 * ends `out` with site_hosts_done, whatever came of it. */
enum catalogue_status site_hosts_read(const struct change *change, const char *const *given,
                                      const char *field, size_t has, struct site_hosts *out,
                                      struct change_result *result);
bool site_hosts_equal(const struct site_hosts *a, const char *const *b, size_t b_count);
void site_hosts_done(struct site_hosts *hosts);

#endif
