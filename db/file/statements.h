/* Every SQL text that the writer runs per change, and its prepared statement, kept for as long as
 * the connection. Internal to db/. */
#ifndef SITEMAPD_DB_FILE_STATEMENTS_H
#define SITEMAPD_DB_FILE_STATEMENTS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "db/read/row.h"

#define ENTRY_COLUMNS                                                                              \
    "address, site, loc, lastmod, digest, source, serial, registered_at, changed_at, extensions"

/* Of a change `h`: whose room it takes has lost nothing as new as it. */
#define HISTORY_IS_KEPT                                                                            \
    "h.revision >= coalesce((SELECT since FROM history_site WHERE site = h.site), 0)"

/* What is known of files, for the revision ?1. */
#define HISTORY_FILE_KEEP                                                                          \
    "INSERT OR IGNORE INTO history_file(revision, site, loc, source, path, hash, lastmod, urls,"   \
    " bytes, newest_lastmod, one_lastmod, future, claim) SELECT ?1, site, loc, source, path, "     \
    "hash,"                                                                                        \
    " lastmod, urls, bytes, newest_lastmod, one_lastmod, future, claim FROM source_file"

/* Of source_made, behind its name and site. */
#define SOURCE_COLUMN(bit, kind, field, member, option, column, usual) ", " column
#define SOURCE_VALUE(...)                                              ", ?"

/* X(name, sql) */
#define STATEMENTS(X)                                                                              \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    X(COMMIT, "COMMIT")                                                                            \
    X(ROLLBACK, "ROLLBACK")                                                                        \
    X(CATALOGUE_READ, "SELECT epoch, revision, registry_revision, serial, changed_at,"             \
                      " substr(lineage, 1, 16), history_from, history_bytes"                       \
                      " FROM catalogue WHERE one = 1")                                             \
    X(CATALOGUE_LINEAGE, "SELECT lineage FROM catalogue WHERE one = 1")                            \
    /* As many stamps as leave the row on its page of 4 KiB. */                                    \
    X(CATALOGUE_WRITE, "UPDATE catalogue SET revision = ?1, registry_revision = ?2,"               \
                       " serial = ?3, changed_at = ?4,"                                            \
                       " lineage = substr(printf('%016llx', ?5) || lineage, 1, ?8),"               \
                       " history_from = ?6, history_bytes = ?7"                                    \
                       " WHERE one = 1")                                                           \
    X(CHANGED_INDEXES,                                                                             \
      "SELECT DISTINCT s.origin || i.path FROM (SELECT index_id FROM page"                         \
      " WHERE revision > ?1 AND revision <= ?2 ORDER BY revision LIMIT 1000) AS p"                 \
      " CROSS JOIN sitemap_index AS i ON i.id = p.index_id"                                        \
      " CROSS JOIN site AS s ON s.id = i.site LIMIT 4")                                            \
    X(CATALOGUE_RENEW, "UPDATE catalogue SET epoch = lower(hex(randomblob(16))) WHERE one = 1")    \
    X(PAGES_DISTRUST, "UPDATE page SET same_second = 1 WHERE same_second = 0")                     \
    X(LOCAL_PROBE, "INSERT INTO local_probe(one, steps) VALUES (1, 1)"                             \
                   " ON CONFLICT DO UPDATE SET steps = steps + 1")                                 \
    X(ENTRY_BY_LOC, "SELECT " ENTRY_COLUMNS " FROM sitemap WHERE site = ?1 AND loc = ?2")          \
    X(LOC_FROM, "SELECT loc, address FROM sitemap WHERE site = ?1 AND loc >= ?2 AND loc < ?3"      \
                " ORDER BY loc LIMIT 1")                                                           \
    X(ENTRY_BY_ADDRESS, "SELECT " ENTRY_COLUMNS " FROM sitemap WHERE address = ?1")                \
    X(ENTRY_INSERT, "INSERT INTO sitemap(" ENTRY_COLUMNS ")"                                       \
                    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"                            \
                    " ON CONFLICT (site, loc) DO NOTHING")                                         \
    X(ENTRY_UPDATE, "UPDATE sitemap SET lastmod = ?2, digest = ?3, changed_at = ?4,"               \
                    " extensions = ?5 WHERE address = ?1")                                         \
    X(ENTRY_PUT_BACK, "UPDATE sitemap SET lastmod = ?2, digest = ?3, source = ?4, serial = ?5,"    \
                      " registered_at = ?6, changed_at = ?7, extensions = ?8 WHERE address = ?1")  \
    X(ENTRY_BRING_BACK, "INSERT INTO sitemap(address, lastmod, digest, source, serial,"            \
                        " registered_at, changed_at, extensions, site, loc)"                       \
                        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")                       \
    X(ENTRY_READDRESS, "UPDATE sitemap SET address = ?2 WHERE address = ?1")                       \
    X(ENTRY_DELETE, "DELETE FROM sitemap WHERE address = ?1")                                      \
    X(SOURCE_FIND, "SELECT id FROM source WHERE name = ?1")                                        \
    X(SOURCE_ADD, "INSERT INTO source(name) VALUES (?1)")                                          \
    X(SOURCE_NAME, "SELECT " OWNER_NAME("?1"))                                                     \
    X(PAGES_READ, "SELECT number, entries, bytes, changed_at, same_second FROM page"               \
                  " WHERE index_id = ?1 ORDER BY number")                                          \
    /* Whether one of the pages changed last was so in a second, or later. */                      \
    X(PAGES_OF_SECOND, "SELECT EXISTS (SELECT 1 FROM (SELECT changed_at FROM page"                 \
                       " ORDER BY revision DESC LIMIT ?2) WHERE changed_at >= ?1)")                \
    X(PAGE_WRITE, "INSERT INTO page(index_id, number, entries, bytes, changed_at, same_second,"    \
                  " revision, stamp) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, random())"                \
                  " ON CONFLICT DO UPDATE SET entries = excluded.entries,"                         \
                  " bytes = excluded.bytes, changed_at = excluded.changed_at,"                     \
                  " same_second = excluded.same_second, revision = excluded.revision,"             \
                  " stamp = excluded.stamp")                                                       \
    X(SITE_PAGES_USED, "SELECT count(*) FROM sitemap_index AS i JOIN page AS p"                    \
                       " ON p.index_id = i.id"                                                     \
                       " WHERE i.site = ?1 AND i.kind = 0 AND i.removed = 0 AND p.entries > 0")    \
    X(SEGMENTS_READ, "SELECT number, entries FROM segment"                                         \
                     " WHERE index_id = ?1 AND number BETWEEN ?2 AND ?3")                          \
    X(SEGMENT_WRITE, "INSERT INTO segment(index_id, number, entries, revision)"                    \
                     " VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET"                          \
                     " entries = excluded.entries, revision = excluded.revision")                  \
    X(POSITIONS_READ, "SELECT address FROM sitemap WHERE address BETWEEN ?1 AND ?2")               \
    X(PEAK_READ, "SELECT max(entries) FROM index_peak WHERE index_id = ?1 AND day > ?2")           \
    X(PEAK_RAISE, "INSERT INTO index_peak(index_id, day, entries) VALUES (?1, ?2, ?3)"             \
                  " ON CONFLICT DO UPDATE SET entries = excluded.entries"                          \
                  " WHERE excluded.entries > entries")                                             \
    X(PEAK_LOWER, "UPDATE index_peak SET entries = max(entries - ?2, ?3)"                          \
                  " WHERE index_id = ?1 AND entries > ?3")                                         \
    X(PEAK_FUTURE_DROP, "DELETE FROM index_peak WHERE index_id = ?1 AND day > ?2")                 \
    X(PEAK_FORGET, "DELETE FROM index_peak WHERE index_id = ?1 AND day <= ?2")                     \
    X(KEEP_CLEAR, "DELETE FROM temp.keep")                                                         \
    X(KEEP_ADD, "INSERT OR IGNORE INTO temp.keep(address, ordinal, wanted) VALUES (?1, ?2, ?3)")   \
    X(KEEP_FIND, "SELECT ordinal FROM temp.keep WHERE address = ?1")                               \
    X(KEEP_WANTED, "SELECT address FROM temp.keep WHERE wanted = 1 AND address > ?1"               \
                   " ORDER BY address LIMIT 1")                                                    \
    X(UNDONE_CLEAR, "DELETE FROM temp.undone")                                                     \
    X(UNDONE_ADD, "INSERT OR IGNORE INTO temp.undone(loc, was) VALUES (?1, ?2)")                   \
    X(UNDONE_FIND, "SELECT was FROM temp.undone WHERE loc = ?1")                                   \
    X(FRESH_CLEAR, "DELETE FROM temp.fresh")                                                       \
    X(FRESH_ADD, "INSERT OR IGNORE INTO temp.fresh(loc) VALUES (?1)")                              \
    X(SEGMENT_PRUNE, "DELETE FROM sitemap WHERE address BETWEEN ?1 AND ?2"                         \
                     " AND (?3 IS NULL OR source = ?3)"                                            \
                     " AND (?4 IS NULL OR substr(loc, 1, length(?4)) = ?4)"                        \
                     " AND address NOT IN (SELECT address FROM temp.keep) AND source >= 0"         \
                     " RETURNING address, loc, length(CAST(extensions AS BLOB))")                  \
    X(FILE_READ, "SELECT state, site, loc, problem, problem_since FROM source_file"                \
                 " WHERE source = ?1 AND path = ?2")                                               \
    X(FILE_WRITE, "REPLACE INTO source_file(source, path, site, loc, state, refused, device,"      \
                  " inode, size, mtime_ns, hash, lastmod, urls, bytes, newest_lastmod,"            \
                  " one_lastmod, future, problem, detail, line, \"column\", problem_since,"        \
                  " remarks, claim)"                                                               \
                  " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,"     \
                  " ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)")                                 \
    X(FILE_QUARANTINE,                                                                             \
      "UPDATE source_file SET state = ?12, refused = 0,"                                           \
      " loc = iif(site IS NULL, ?13, loc), device = ?3, inode = ?4,"                               \
      " size = ?5, mtime_ns = ?6, problem = ?7, detail = ?8, line = ?9,"                           \
      " \"column\" = ?10, problem_since = ?11, remarks = NULL WHERE source = ?1 AND path = ?2")    \
    X(FILE_CHECKED, "UPDATE source_file SET lastmod = ?3, hash = ?4, urls = ?5, bytes = ?6,"       \
                    " newest_lastmod = ?7, one_lastmod = ?8, remarks = ?9"                         \
                    " WHERE source = ?1 AND path = ?2 AND state <> 3 AND (lastmod IS NOT ?3 OR"    \
                    " hash IS NOT ?4 OR urls <> ?5 OR bytes <> ?6 OR newest_lastmod IS NOT ?7 OR"  \
                    " one_lastmod <> ?8 OR remarks IS NOT ?9)")                                    \
    X(CHECK_ADD, "INSERT INTO fetch(site, source, list, loc, state, status, marks, next_at,"       \
                 " interval_s, failures, checked_at, good_at, changed_at, full_at, since, urls,"   \
                 " bytes, one_lastmod, line)"                                                      \
                 " SELECT ?1, ?2, ?3, ?4, 0, 0, 0, ?5, ?6, 0, 0, 0, 0, 0, ?7, 0, 0, 0, 0"          \
                 " WHERE ?3 = 0 OR NOT EXISTS"                                                     \
                 " (SELECT 1 FROM fetch WHERE source = ?2 AND list = 1)"                           \
                 " ON CONFLICT (site, loc) WHERE list = 0 DO UPDATE SET source = ?2")              \
    X(CHECK_READ, "SELECT site, source, list, loc, state, marks FROM fetch WHERE id = ?1")         \
    X(CHECK_PLACE, "UPDATE fetch SET loc = ?2, state = ?3, marks = ?4 WHERE id = ?1")              \
    X(CHECK_WRITE, "UPDATE fetch SET status = ?2, next_at = ?3, interval_s = ?4, failures = ?5,"   \
                   " checked_at = ?6, good_at = ?7, changed_at = ?8, full_at = ?9, since = ?10,"   \
                   " urls = ?11, bytes = ?12, one_lastmod = ?13, line = ?14, etag = ?15,"          \
                   " last_modified = ?16, hash = ?17, dateless = ?18, newest_lastmod = ?19,"       \
                   " remarks = ?20, problem = ?21, detail = ?22 WHERE id = ?1")                    \
    X(CHECK_DROP, "DELETE FROM fetch WHERE id = ?1")                                               \
    X(FILE_DELETE, "DELETE FROM source_file WHERE source = ?1 AND path = ?2")                      \
    X(FILES_ANY, "SELECT EXISTS (SELECT 1 FROM source_file WHERE source = ?1)")                    \
    X(STATE_WRITE, "INSERT INTO source_state(source, scanned_at, good_at, held, files, listed,"    \
                   " quarantined, hosts) VALUES (?1, ?2, iif(?3 = 0, ?2, 0), ?3, ?4, ?5, ?6, ?7)"  \
                   " ON CONFLICT DO UPDATE SET scanned_at = ?2,"                                   \
                   " good_at = iif(?3 = 0, ?2, good_at), held = ?3, files = files + ?4,"           \
                   " listed = listed + ?5, quarantined = quarantined + ?6, hosts = ?7")            \
    X(SITE_ADD, "INSERT INTO site(origin, managed, max_pages, checked)"                            \
                " VALUES (?1, ?2, ?3, ?4)")                                                        \
    X(SOURCE_MADE_WRITE, "REPLACE INTO source_made(name, site" SOURCE_SETTINGS(                    \
                             SOURCE_COLUMN) ") VALUES (?, ?" SOURCE_SETTINGS(SOURCE_VALUE) ")")    \
    X(SOURCE_MADE_REMOVE, "UPDATE source_made SET removed = 1 WHERE name = ?1")                    \
    X(SOURCE_MADE_DROP, "DELETE FROM source_made WHERE removed = 1 AND name = ?1 AND NOT EXISTS"   \
                        " (SELECT 1 FROM source AS s WHERE name = ?1 AND"                          \
                        "  (EXISTS (SELECT 1 FROM source_file WHERE source = s.id) OR"             \
                        "  EXISTS (SELECT 1 FROM source_state WHERE source = s.id)))")             \
    /* The site whose the files under a name are: 0 where it was no made source. */                \
    X(SOURCE_OF_SITE, "SELECT coalesce(m.site, 0) FROM source AS s"                                \
                      " LEFT JOIN source_made AS m ON m.name = s.name WHERE s.name = ?1 AND"       \
                      " (EXISTS (SELECT 1 FROM source_file WHERE source = s.id) OR"                \
                      " EXISTS (SELECT 1 FROM source_state WHERE source = s.id))")                 \
    X(SITE_WRITE, "UPDATE site SET managed = ?2, max_pages = ?3, checked = ?4 WHERE id = ?1")      \
    X(SITE_ROBOTS, "UPDATE site SET robots = ?2, robots_off = ?3, robots_revision = ?4,"           \
                   " robots_changed_at = ?5 WHERE id = ?1")                                        \
    X(SITE_REMOVE, "UPDATE site SET removed = 1, robots = iif(?2, robots, NULL) WHERE id = ?1")    \
    X(SITE_UNREMOVE, "UPDATE site SET removed = 0 WHERE id = ?1")                                  \
    X(SITE_ORIGIN, "SELECT origin FROM site WHERE id = ?1")                                        \
    X(SITE_TOKENS_DROP, "DELETE FROM token WHERE site = ?1")                                       \
    X(HOSTS_CLEAR, "DELETE FROM site_host WHERE site = ?1 AND kind = ?2")                          \
    X(HOST_ADD, "INSERT OR IGNORE INTO site_host(site, host, kind) VALUES (?1, ?2, ?3)")           \
    X(INDEX_ADD, "INSERT INTO sitemap_index(site, path, page_pattern) VALUES (?1, ?2, ?3)")        \
    X(INDEX_LAST, "SELECT coalesce(max(id), 0) FROM sitemap_index")                                \
    X(INDEX_REMOVE, "UPDATE sitemap_index SET removed = 1, removed_at = ?2, removed_by = ?3"       \
                    " WHERE id = ?1")                                                              \
    X(INDEX_UNREMOVE, "UPDATE sitemap_index SET removed = 0, removed_at = 0, removed_by = 0"       \
                      " WHERE id = ?1")                                                            \
    X(INDEX_REMOVED_BY, "SELECT id FROM sitemap_index WHERE removed_by = ?1 AND id > ?2"           \
                        " ORDER BY id LIMIT 1")                                                    \
    X(INDEX_PATH, "SELECT path FROM sitemap_index WHERE id = ?1")                                  \
    X(INDEX_KIND, "SELECT kind FROM sitemap_index WHERE id = ?1")                                  \
    X(REMOVED_LOC_ADD, "INSERT OR REPLACE INTO removed_loc(address, loc) SELECT ?1, ?2"            \
                       " FROM sitemap_index WHERE id = ?1 >> 32 AND removed_by <> 0")              \
    X(REMOVED_LOC_NEXT, "SELECT address, loc FROM removed_loc WHERE address BETWEEN ?1 AND ?2"     \
                        " ORDER BY address LIMIT 1")                                               \
    X(REMOVED_LOC_DROP, "DELETE FROM removed_loc WHERE address = ?1")                              \
    X(PURGE_FIND, "SELECT id FROM sitemap_index WHERE removed = 1 AND purged = 0"                  \
                  " AND removed_at <= ?1 ORDER BY id LIMIT 1")                                     \
    X(PURGE_BEGIN, "UPDATE sitemap_index SET removed_by = 0 WHERE removed_by ="                    \
                   " (SELECT removed_by FROM sitemap_index WHERE id = ?1 AND removed_by <> 0)")    \
    X(PURGE_LOCS, "DELETE FROM removed_loc WHERE address IN (SELECT address FROM removed_loc"      \
                  " WHERE address BETWEEN ?1 AND ?2 LIMIT ?3)")                                    \
    X(PURGE_ROBOTS, "UPDATE site SET robots = NULL WHERE removed = 1 AND robots IS NOT NULL"       \
                    " AND id = (SELECT site FROM sitemap_index WHERE id = ?1)")                    \
    X(PURGE_LAST, "SELECT max(address) FROM (SELECT address FROM sitemap"                          \
                  " WHERE address BETWEEN ?1 AND ?2 ORDER BY address LIMIT ?3)")                   \
    X(PURGE_ENTRIES, "DELETE FROM sitemap WHERE address BETWEEN ?1 AND ?2")                        \
    X(PURGE_SEGMENTS, "DELETE FROM segment WHERE index_id = ?1")                                   \
    X(PURGE_PEAKS, "DELETE FROM index_peak WHERE index_id = ?1")                                   \
    X(PURGE_DONE, "UPDATE sitemap_index SET purged = 1 WHERE id = ?1")                             \
    X(INDEX_SITE, "SELECT site FROM sitemap_index WHERE id = ?1")                                  \
    X(HISTORY_ADD, "INSERT INTO history(revision, at, who, kind, via, request_id, created,"        \
                   " updated, unchanged, removed, undoes, note, rows, parts, bytes, few, site,"    \
                   " part_of) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,"     \
                   " ?14, ?15, ?16, ?17, ?18)")                                                    \
    X(HISTORY_SITE_ADD, "INSERT INTO history_site(site, bytes, since) VALUES (?1, ?2, 0)"          \
                        " ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes")               \
    X(HISTORY_FILE_ADD, HISTORY_FILE_KEEP " WHERE source = ?2 AND path = ?3 AND site IS NOT NULL"  \
                                          " AND loc IS NOT NULL AND hash IS NOT ?4")               \
    X(HISTORY_FILE_ADD_OF, HISTORY_FILE_KEEP " WHERE site = ?2 AND loc = ?3")                      \
    X(HISTORY_FILES_DROP, "DELETE FROM history_file WHERE (revision, site, loc, source, path) IN"  \
                          " (SELECT revision, site, loc, source, path FROM history_file"           \
                          " WHERE revision = ?1 LIMIT ?2)")                                        \
    X(HISTORY_FILES_ANY, "SELECT EXISTS (SELECT 1 FROM history_file WHERE revision = ?1)")         \
    /* The file of an entry comes back, to be read anew: its inode is none. */                     \
    X(FILE_COUNT_BACK,                                                                             \
      "UPDATE source_state SET files = files + d.come, listed = listed + d.list,"                  \
      " quarantined = quarantined - d.bad FROM (SELECT h.source AS of, sum(f.path IS NULL) AS"     \
      " come, sum(f.state IS NOT 0) AS list, sum(coalesce(f.state = 3, 0)) AS bad"                 \
      " FROM history_file AS h LEFT JOIN source_file AS f ON f.source = h.source"                  \
      " AND f.path = h.path WHERE h.revision = ?1 AND h.site = ?2 AND h.loc = ?3"                  \
      " GROUP BY h.source) AS d WHERE source_state.source = d.of")                                 \
    X(FILE_BRING_BACK, "REPLACE INTO source_file(source, path, site, loc, state, refused, device," \
                       " inode, size, mtime_ns, hash, lastmod, urls, bytes, newest_lastmod,"       \
                       " one_lastmod, future, line, \"column\", problem_since, claim)"             \
                       " SELECT source, path, site, loc, 0, 0, 0, 0, 0, 0, hash, lastmod, urls,"   \
                       " bytes, newest_lastmod, one_lastmod, future, 0, 0, 0, claim"               \
                       " FROM history_file WHERE revision = ?1 AND site = ?2 AND loc = ?3")        \
    X(FILE_COUNT_OUT, "UPDATE source_state SET files = files - 1, listed = listed - 1"             \
                      " WHERE source = ?3 AND EXISTS (SELECT 1 FROM source_file"                   \
                      " WHERE site = ?1 AND loc = ?2 AND source = ?3 AND state = 0)")              \
    X(FILE_TAKE_OUT, "DELETE FROM source_file"                                                     \
                     " WHERE site = ?1 AND loc = ?2 AND source = ?3 AND state = 0")                \
    X(FETCH_AGAIN, "UPDATE fetch SET etag = NULL, last_modified = NULL, next_at = 0"               \
                   " WHERE (list = 0 AND site = ?1 AND loc = ?2) OR (list = 1 AND source = ?3)")   \
    X(HISTORY_SINCE, "UPDATE history_site SET since = max(since, ?2) WHERE site = ?1")             \
    X(HISTORY_SINCE_READ, "SELECT since FROM history_site WHERE site = ?1")                        \
    /* Of all sites that a change of several touched. */                                           \
    X(HISTORY_SINCE_TOUCHED,                                                                       \
      "INSERT INTO history_site(site, bytes, since) SELECT id, 0, ?1 + 1 FROM site"                \
      " WHERE EXISTS (SELECT 1 FROM history_index WHERE site = site.id AND revision = ?1)"         \
      " ON CONFLICT DO UPDATE SET since = max(since, excluded.since)")                             \
    X(HISTORY_LARGEST,                                                                             \
      "SELECT site FROM history_site WHERE bytes > ?1 ORDER BY bytes DESC LIMIT 1")                \
    X(HISTORY_SITE_EMPTY, "UPDATE history_site SET bytes = 0 WHERE site = ?1")                     \
    X(HISTORY_SITES_TIDY, "DELETE FROM history_site WHERE bytes <= 0 AND since <= ?1")             \
    X(HISTORY_INDEX_ADD, "INSERT INTO history_index(site, revision, index_id, created, updated,"   \
                         " removed) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")                              \
    X(HISTORY_PART_ADD, "INSERT INTO history_rows(revision, part, filter, rows)"                   \
                        " VALUES (?1, ?2, ?3, ?4)")                                                \
    X(HISTORY_FIND, "SELECT kind, parts, rows FROM history AS h WHERE revision = ?1"               \
                    " AND " HISTORY_IS_KEPT)                                                       \
    X(HISTORY_FEW, "SELECT few FROM history WHERE revision = ?1")                                  \
    X(HISTORY_PART, "SELECT rows FROM history_rows WHERE revision = ?1 AND part = ?2")             \
    X(HISTORY_IN_SITE, "SELECT 1 FROM history_index WHERE site = ?1 AND revision = ?2 LIMIT 1")    \
    X(HISTORY_LAST_OF, "SELECT revision FROM history_index WHERE site = ?1 AND revision > ?2"      \
                       " AND revision < ?3 AND index_id = ?4 ORDER BY revision DESC LIMIT 1")      \
    X(HISTORY_OLDEST, "SELECT revision, at, parts, bytes, site FROM history"                       \
                      " ORDER BY revision LIMIT 1")                                                \
    X(HISTORY_OLDEST_SHARED, "SELECT revision, at, parts, bytes, site FROM history"                \
                             " WHERE site = 0 ORDER BY revision LIMIT 1")                          \
    X(HISTORY_OLDEST_OF, "SELECT h.revision, h.at, h.parts, h.bytes, h.site"                       \
                         " FROM history_index AS i CROSS JOIN history AS h"                        \
                         " ON h.revision = i.revision WHERE i.site = ?1"                           \
                         " ORDER BY i.revision LIMIT 1")                                           \
    X(HISTORY_PARTS_DROP, "DELETE FROM history_rows WHERE revision = ?1 AND part > ?2")            \
    X(HISTORY_PARTS_LEFT, "UPDATE history SET parts = ?2 WHERE revision = ?1")                     \
    X(HISTORY_INDEX_DROP, "DELETE FROM history_index WHERE revision < ?1 AND site IN"              \
                          " (SELECT id FROM site)")                                                \
    X(HISTORY_INDEX_DROP_OF, "DELETE FROM history_index WHERE site = ?1 AND revision < ?2")        \
    X(HISTORY_INDEX_DROP_ONE, "DELETE FROM history_index WHERE revision = ?1 AND site IN"          \
                              " (SELECT id FROM site)")                                            \
    X(HISTORY_SITES, "SELECT count(*) FROM site WHERE id > ?1")                                    \
    X(HISTORY_DROP, "DELETE FROM history WHERE revision = ?1")                                     \
    X(HISTORY_KEPT, "UPDATE catalogue SET history_from = ?1, history_bytes = ?2 WHERE one = 1")    \
    X(REPEAT_FIND, "SELECT hash, outcome FROM idempotency"                                         \
                   " WHERE token = ?1 AND key = ?2 AND at > ?3")                                   \
    X(REPEAT_DROP, "DELETE FROM idempotency WHERE token = ?1 AND key = ?2")                        \
    /* What max() finds is the last row, and with it the other column. */                          \
    X(REPEAT_ADD, "INSERT INTO idempotency(token, n, key, hash, at, outcome, upto)"                \
                  " SELECT ?1, coalesce(max(n), 0) + 1, ?2, ?3, ?4, ?5,"                           \
                  " coalesce(upto, 0) + length(?5) FROM idempotency WHERE token = ?1")             \
    X(REPEAT_SHARE, "DELETE FROM idempotency WHERE token = ?1 AND n IN"                            \
                    " (SELECT n FROM idempotency WHERE token = ?1 ORDER BY n LIMIT 500)"           \
                    " AND upto - length(outcome) < (SELECT upto FROM idempotency WHERE token = ?1" \
                    " ORDER BY n DESC LIMIT 1) - ?2")                                              \
    X(REPEAT_BOUND, "DELETE FROM idempotency WHERE token = ?1 AND n <="                            \
                    " (SELECT max(n) FROM idempotency WHERE token = ?1) - ?2")                     \
    X(REPEAT_OLDEST, "SELECT at FROM idempotency ORDER BY id LIMIT 1")                             \
    X(REPEAT_PURGE, "DELETE FROM idempotency WHERE at <= ?1 AND id IN"                             \
                    " (SELECT id FROM idempotency ORDER BY id LIMIT ?2)")                          \
    X(TOKEN_ADD, "INSERT INTO token(name, sha256, site, created_at, role, own, prefix,"            \
                 " expires_at, managed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")              \
    X(TOKEN_HOLDS, "SELECT 1 FROM token"                                                           \
                   " WHERE id = ?1 AND sha256 = ?2 AND coalesce(site, 0) = ?3 AND role = ?4"       \
                   " AND own = ?5 AND coalesce(prefix, '') = ?6 AND expires_at = ?7")              \
    X(TOKEN_USED, "INSERT INTO local_token_use(token, used_at) SELECT id, ?2 FROM token"           \
                  " WHERE id = ?1 ON CONFLICT DO UPDATE SET used_at = excluded.used_at")           \
    X(SITE_FREEZE, "UPDATE site SET frozen = ?2 WHERE id = ?1")                                    \
    X(ENTRIES_OF_INDEX, "SELECT " ENTRY_COLUMNS " FROM sitemap WHERE address BETWEEN ?1 AND ?2"    \
                        " ORDER BY address")                                                       \
    X(INDEX_STATE, INDEX_STATE_SQL)                                                                \
    X(LIST_READ, "SELECT kind, extensions FROM sitemap_index WHERE id = ?1")                       \
    X(URLSET_ADD, "INSERT INTO sitemap_index(site, path, page_pattern, kind, of_index,"            \
                  " extensions, max_pages, expires_s) VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7)")     \
    X(URLSET_UPDATE, "UPDATE sitemap_index SET of_index = ?2, max_pages = ?3, expires_s = ?4"      \
                     " WHERE id = ?1")                                                             \
    X(URLSET_OF_INDEX, "SELECT id FROM sitemap_index WHERE of_index = ?1 AND removed = 0 LIMIT 1") \
    X(PURGE_AGES, "DELETE FROM urlset_age WHERE address IN (SELECT address FROM urlset_age"        \
                  " WHERE address BETWEEN ?1 AND ?2 LIMIT ?3)")                                    \
    X(AGE_DUE, "SELECT EXISTS (SELECT 1 FROM sitemap_index AS i JOIN site AS s ON s.id = i.site"   \
               " JOIN sitemap_index AS o ON o.id = i.of_index WHERE i.kind = 1"                    \
               " AND i.expires_s > 0 AND i.removed = 0 AND s.removed = 0"                          \
               " AND i.frozen = 0 AND s.frozen = 0 AND o.frozen = 0 AND EXISTS"                    \
               " (SELECT 1 FROM urlset_age WHERE list = i.id AND at <= ?1 - i.expires_s))")        \
    X(AGE_NEXT, "SELECT address FROM urlset_age WHERE list = ?1 AND at <= ?2"                      \
                " ORDER BY at LIMIT 1")                                                            \
    X(AGE_DROP, "DELETE FROM urlset_age WHERE address = ?1")                                       \
    X(AGE_PUT, "INSERT INTO urlset_age(address, list, at) VALUES (?1, ?2, ?3)"                     \
               " ON CONFLICT DO UPDATE SET at = excluded.at")                                      \
    X(INDEX_TOUCH, "UPDATE sitemap_index SET touched = ?2 WHERE id = ?1")                          \
    X(INDEX_FREEZE, "UPDATE sitemap_index SET frozen = ?2 WHERE id = ?1")                          \
    X(TOKEN_USES_FORGET, "DELETE FROM local_token_use WHERE token NOT IN (SELECT id FROM token)")  \
    X(TOKEN_DROP, "DELETE FROM token WHERE id = ?1")                                               \
    X(CRAWLERS_EPOCH, "SELECT epoch FROM local_crawler WHERE node = ''")                           \
    X(CRAWLERS_BEGIN, "INSERT OR REPLACE INTO local_crawler(node, epoch, since)"                   \
                      " VALUES ('', ?1, ?2)")                                                      \
    X(CRAWLER_PAGES_DROP, "DELETE FROM local_crawler_page WHERE node = ''")                        \
    X(CRAWLER_DAYS_DROP, "DELETE FROM local_crawler_day WHERE node = ''")                          \
    X(CRAWLER_PAGES_TIDY, "DELETE FROM local_crawler_page WHERE node = '' AND NOT EXISTS"          \
                          " (SELECT 1 FROM page AS p JOIN sitemap_index AS i ON i.id = p.index_id" \
                          " WHERE p.index_id = local_crawler_page.index_id"                        \
                          " AND p.number = local_crawler_page.page AND p.entries > 0"              \
                          " AND i.removed = 0)")                                                   \
    X(CRAWLER_DAYS_TIDY, "DELETE FROM local_crawler_day WHERE node = '' AND day < ?1")             \
    X(CRAWLER_PAGE_PUT, "INSERT OR REPLACE INTO local_crawler_page(node, crawler, index_id, page," \
                        " held, held_stamp, held_changed_at, stale_since, fetched_at, status, ok," \
                        " not_modified, other)"                                                    \
                        " VALUES ('', ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)")         \
    X(CRAWLER_DAY_PUT, "INSERT OR REPLACE INTO local_crawler_day(node, crawler, site, day, ok,"    \
                       " not_modified, other, impostors, bytes, last_fetch_at, lag_max, lags)"     \
                       " VALUES ('', ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")               \
    X(CRAWLER_VISITS_PUT,                                                                          \
      "INSERT INTO local_crawler_visits(epoch, crawler, site, day, index_id, page, revision,"      \
      " stamp, changed_at, held_at, fetched_at, status, ok, not_modified, other, impostors,"       \
      " bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,"     \
      " ?17)")                                                                                     \
    X(CRAWLER_VISITS_TAKEN, "DELETE FROM local_crawler_visits WHERE id <= ?1")                     \
    X(CRAWLER_LOG_PUT, "INSERT INTO local_crawler_log(bytes, hash, at) VALUES (?1, ?2, ?3)")       \
    X(CRAWLER_LOGS_TIDY, "DELETE FROM local_crawler_log"                                           \
                         " WHERE id <= (SELECT max(id) FROM local_crawler_log) - ?1")              \
    X(SPLIT_OPEN, "SELECT part_of FROM split WHERE list = ?1")                                     \
    X(SPLIT_BEGIN, "INSERT OR REPLACE INTO split(list, part_of) VALUES (?1, ?2)")                  \
    X(SPLIT_END, "DELETE FROM split WHERE list = ?1")                                              \
    X(HISTORY_STEP_ADD, "INSERT INTO history_step(part_of, revision) VALUES (?1, ?2)")             \
    X(HISTORY_STEPS_TIDY, "DELETE FROM history_step WHERE revision < ?1")                          \
    X(HISTORY_PART_OF, "SELECT part_of FROM history WHERE revision = ?1")                          \
    X(HISTORY_STEP_BEFORE, "SELECT max(revision) FROM history_step"                                \
                           " WHERE part_of = ?1 AND revision < ?2")                                \
    X(HISTORY_STEPS_SUM, "SELECT sum(h.created) - sum(h.removed) FROM history_step AS s"           \
                         " CROSS JOIN history AS h ON h.revision = s.revision"                     \
                         " WHERE s.part_of = ?1")                                                  \
    X(FILES_READ_AGAIN, "UPDATE source_file SET inode = 0, mtime_ns = 0 WHERE source = ?1"         \
                        " AND state = 2 AND urls > 0")                                             \
    /* Nothing is written where it is another by now. */                                           \
    X(INDEXNOW_PUT, "INSERT INTO indexnow(site, revision, parts) SELECT id, ?2, ?3 FROM site"      \
                    " WHERE id = ?1 AND (?4 = 0 OR id IN (SELECT site FROM indexnow))"             \
                    " ON CONFLICT DO UPDATE SET revision = excluded.revision,"                     \
                    " parts = excluded.parts WHERE revision = ?4 AND parts = ?5")

enum statement {
#define X(name, sql) ST_##name,
    STATEMENTS(X)
#undef X
        ST_COUNT
};

/* Made once on the writer's connection: what a replace remembers of its list. Temporary tables, not
 * memory: a list may be as long as the largest bulk. */
#define STATEMENTS_TEMP_TABLES                                                                     \
    "CREATE TEMP TABLE keep(address INTEGER PRIMARY KEY, ordinal INTEGER NOT NULL,"                \
    " wanted INTEGER NOT NULL);"                                                                   \
    "CREATE INDEX temp.keep_wanted ON keep(address) WHERE wanted = 1;"                             \
    "CREATE TEMP TABLE fresh(loc TEXT PRIMARY KEY) WITHOUT ROWID;"                                 \
    "CREATE TEMP TABLE undone(loc TEXT PRIMARY KEY, was INTEGER NOT NULL) WITHOUT ROWID;"

struct statements {
    sqlite3 *db;
    sqlite3_stmt *prepared[ST_COUNT];
};

void statements_init(struct statements *s, sqlite3 *db);
void statements_done(struct statements *s);
/* The statement, reset, all parameters NULL. NULL on failure: sqlite3_errcode tells. */
sqlite3_stmt *statements_get(struct statements *s, enum statement which);

/* Binds text or, where `text` is NULL, NULL. Borrowed until the statement is reset. */
int statement_bind_text(sqlite3_stmt *statement, int parameter, const char *text);
/* A hash as it is kept: 16 bytes, the high ones first, whatever the machine. False: there is none,
 * which is kept as NULL and read as zero. */
bool statement_hash_bytes(const uint64_t hash[2], unsigned char bytes[16]);
void statement_bind_hash(sqlite3_stmt *statement, int parameter, const uint64_t hash[2]);
void statement_hash(sqlite3_stmt *row, int column, uint64_t hash[2]);
/* Steps once to the end and resets. */
enum catalogue_status statement_run(sqlite3_stmt *statement);
/* Steps to the first row: `*found` tells whether there is one. The caller resets. */
enum catalogue_status statement_first(sqlite3_stmt *statement, bool *found);
/* The first column of the only row, or `missing`. Resets. */
enum catalogue_status statement_number(sqlite3_stmt *statement, int64_t missing, int64_t *out);

#endif
