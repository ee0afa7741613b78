/* The versions of the schema as SQL, each but the first as the step from the one before it. None is
 * changed once released: a later version is a migration. */
#include "db/file/schema.h"

#ifdef SCHEMA_OF_NEXT
#define SCHEMA_NEXT                                                                                \
    , "ALTER TABLE site ADD COLUMN next INTEGER NOT NULL DEFAULT 7;"                               \
      "CREATE TABLE next(one INTEGER PRIMARY KEY, chance INTEGER NOT NULL) STRICT;"                \
      "INSERT INTO next VALUES (1, random());"
#else
#define SCHEMA_NEXT
#endif

/* Version 1.
 *
 * sitemap.address = index_id << 32 | position: entries of a page are neighbours in the b-tree, and
 * an entry's id needs no index of its own. A free position has no row. */
static const char schema_v1[] =
    "CREATE TABLE catalogue("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " epoch TEXT NOT NULL,"
    " revision INTEGER NOT NULL,"
    " registry_revision INTEGER NOT NULL,"
    " serial INTEGER NOT NULL,"    /* one step per entry made */
    " changed_at INTEGER NOT NULL" /* of the last transaction, as its clock said */
    ") STRICT;"
    "CREATE TABLE site("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " origin TEXT NOT NULL,"
    " managed INTEGER NOT NULL,"
    " max_pages INTEGER NOT NULL,"
    " removed INTEGER NOT NULL DEFAULT 0"
    ") STRICT;"
    "CREATE UNIQUE INDEX site_origin ON site(origin) WHERE removed = 0;"
    "CREATE TABLE site_host("
    " site INTEGER NOT NULL REFERENCES site(id),"
    " host TEXT NOT NULL,"
    " kind TEXT NOT NULL CHECK (kind IN ('cross', 'alias')),"
    " PRIMARY KEY (site, kind, host)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE sitemap_index("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " site INTEGER NOT NULL REFERENCES site(id),"
    " path TEXT NOT NULL,"
    " page_pattern TEXT NOT NULL,"
    " removed INTEGER NOT NULL DEFAULT 0,"
    " purged INTEGER NOT NULL DEFAULT 0" /* removed, and no row of it is left */
    ") STRICT;"
    "CREATE UNIQUE INDEX sitemap_index_path ON sitemap_index(site, path) WHERE removed = 0;"
    "CREATE TABLE page("
    " index_id INTEGER NOT NULL REFERENCES sitemap_index(id),"
    " number INTEGER NOT NULL,"
    " entries INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL,"
    " changed_at INTEGER NOT NULL,"
    " same_second INTEGER NOT NULL,"
    " revision INTEGER NOT NULL,"
    " PRIMARY KEY (index_id, number)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX page_revision ON page(revision);"
    "CREATE TABLE segment("
    " index_id INTEGER NOT NULL REFERENCES sitemap_index(id),"
    " number INTEGER NOT NULL," /* position / 500 within the index */
    " entries INTEGER NOT NULL,"
    " revision INTEGER NOT NULL,"
    " PRIMARY KEY (index_id, number)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE source(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;"
    "CREATE TABLE sitemap("
    " address INTEGER PRIMARY KEY,"
    " site INTEGER NOT NULL,"
    " loc TEXT NOT NULL,"
    " lastmod TEXT,"
    " digest TEXT,"
    " source INTEGER NOT NULL,"
    " serial INTEGER NOT NULL,"
    " registered_at INTEGER NOT NULL,"
    " changed_at INTEGER NOT NULL"
    ") STRICT;"
    "CREATE UNIQUE INDEX sitemap_loc ON sitemap(site, loc);"
    "CREATE TABLE index_peak("
    " index_id INTEGER NOT NULL REFERENCES sitemap_index(id),"
    " day INTEGER NOT NULL," /* Unix days */
    " entries INTEGER NOT NULL,"
    " PRIMARY KEY (index_id, day)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE token("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " name TEXT NOT NULL UNIQUE,"
    " sha256 BLOB NOT NULL,"
    " site INTEGER REFERENCES site(id)," /* NULL: every site */
    " created_at INTEGER NOT NULL"
    ") STRICT;";

/* Version 2: what directory sources know of their files.
 *
 * source_file.site is the site that its entry is (or was last) in, NULL where it never had one:
 * with it (site, loc) finds the entry of a file and the file of an entry. The counts in
 * source_state are kept by those who write files, so that nobody has to count a hundred thousand.
 *  */

static const char schema_v2[] =
    "CREATE TABLE source_file("
    " source INTEGER NOT NULL REFERENCES source(id),"
    " path TEXT NOT NULL,"
    " site INTEGER,"
    " loc TEXT,"
    " state INTEGER NOT NULL,"   /* enum source_file_state */
    " refused INTEGER NOT NULL," /* QUARANTINED for its place, not for what it holds */
    " device INTEGER NOT NULL,"
    " inode INTEGER NOT NULL,"
    " size INTEGER NOT NULL,"
    " mtime_ns INTEGER NOT NULL,"
    " hash BLOB," /* 16 bytes, the high ones first; NULL: never read well */
    " lastmod TEXT,"
    " urls INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL,"
    " newest_lastmod TEXT,"
    " one_lastmod INTEGER NOT NULL,"
    " future INTEGER NOT NULL,"
    " problem TEXT,"
    " detail TEXT,"
    " line INTEGER NOT NULL,"
    " \"column\" INTEGER NOT NULL,"
    " problem_since INTEGER NOT NULL,"
    " PRIMARY KEY (source, path)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX source_file_loc ON source_file(site, loc) WHERE site IS NOT NULL;"
    "CREATE TABLE source_state("
    " source INTEGER PRIMARY KEY REFERENCES source(id),"
    " scanned_at INTEGER NOT NULL,"
    " good_at INTEGER NOT NULL,"
    " held INTEGER NOT NULL,"
    " files INTEGER NOT NULL,"
    " listed INTEGER NOT NULL,"
    " quarantined INTEGER NOT NULL"
    ") STRICT;";

/* Version 3: what tells two states of a page apart for certain.
 *
 * page.stamp is drawn at random whenever the row is written. A file that was copied back from a
 * backup repeats revisions, and a clock that stands still or was set repeats times; stamps do not
 * repeat. 0: none was drawn. */

static const char schema_v3[] = "ALTER TABLE page ADD COLUMN stamp INTEGER NOT NULL DEFAULT 0;"
                                "UPDATE page SET stamp = random();";

/* Version 4: segments of 250 positions in place of 500.
 *
 * Each old segment becomes its two halves, with its revision: what a reader remembers as older than
 * that stays older. A half without entries has its row too, as everywhere. */

static const char schema_v4[] =
    "ALTER TABLE segment RENAME TO segment_of_500;"
    "CREATE TABLE segment("
    " index_id INTEGER NOT NULL REFERENCES sitemap_index(id),"
    " number INTEGER NOT NULL," /* position / 250 within the index */
    " entries INTEGER NOT NULL,"
    " revision INTEGER NOT NULL,"
    " PRIMARY KEY (index_id, number)"
    ") STRICT, WITHOUT ROWID;"
    "INSERT INTO segment(index_id, number, entries, revision)"
    " SELECT old.index_id, old.number * 2 + half.column1,"
    "  (SELECT count(*) FROM sitemap WHERE address"
    "   BETWEEN (old.index_id << 32) + (old.number * 2 + half.column1) * 250"
    "   AND (old.index_id << 32) + (old.number * 2 + half.column1) * 250 + 249),"
    "  old.revision FROM segment_of_500 AS old, (VALUES (0), (1)) AS half;"
    "DROP TABLE segment_of_500;";

/* Version 5: a site's own robots.txt.
 *
 * robots is the text, NULL: none. robots_off: /robots.txt is left to others. robots_revision and
 * robots_changed_at are of the last change of either, 0: there was none. */

static const char schema_v5[] = "ALTER TABLE site ADD COLUMN robots TEXT;"
                                "ALTER TABLE site ADD COLUMN robots_off INTEGER NOT NULL DEFAULT 0;"
                                "ALTER TABLE site ADD COLUMN robots_revision INTEGER NOT NULL"
                                " DEFAULT 0;"
                                "ALTER TABLE site ADD COLUMN robots_changed_at INTEGER NOT NULL"
                                " DEFAULT 0;";

/* Version 6: what is remarked of the files of sources.
 *
 * All files are read once more, since more is asked of them than when they were read: a file whose
 * inode is 0 is known again by nothing. What they hold is compared as ever, so that nothing moves
 * that did not change. */

static const char schema_v6[] =
    "ALTER TABLE source_file ADD COLUMN remarks TEXT;" /* as its source writes them; NULL: none */
    "CREATE INDEX source_file_remarked ON source_file(source)"
    " WHERE remarks IS NOT NULL AND state = 0;"
    "UPDATE source_file SET inode = 0;";

/* Version 7: what is the node's own.
 *
 * Tables named local_ hold what this node knows or tries, and nothing that anyone is served: a
 * transaction that writes only them makes no revision, steps no serial and leaves changed_at alone.
 * local_probe.steps differs after each try whether the disk takes a write. */

static const char schema_v7[] = "CREATE TABLE local_probe("
                                " one INTEGER PRIMARY KEY CHECK (one = 1),"
                                " steps INTEGER NOT NULL"
                                ") STRICT;";

/* Version 8.
 *
 * catalogue.lineage are the random stamps of the file's last transactions that made a revision, the
 * newest first, of 16 hexadecimal digits each: who remembers one knows a later state of the file
 * from a copy that went its own way (file/server_lock.h).
 *
 * source_file_refused finds the refused files of a source among all of them. source_state.hosts is
 * a digest of the hosts that the last scan judged pages by; 0: unknown, all files are read once
 * more.
 *
 * What a token may: role is an enum grant_role (server/rules/grant.h), so that those of before are
 * admin of their scope; expires_at 0: never. managed: the configuration's own.
 * local_token_use.used_at is an hour: when somebody asked this node with the token last.
 * frozen: nothing of the site or index changes.
 *
 * sitemap_index.touched is the revision of the last change of its entries that no page shows, of a
 * digest alone (the others are page.revision); 0: there was none.
 *
 * idempotency: what was answered under a key of a token (write/repeat.h). token 0: no token of the
 * catalogue. n counts the rows of a token; id is in the order in which they came.
 *
 * local_crawler_page and local_crawler_day are what the server's ledger of crawlers
 * (server/crawlers) keeps between two runs, good in the epoch of local_crawler, which has one row.
 *
 * history_rows.rows and history.few are packed by db/history/rows.c. history_index tells which
 * sites and indexes a change touched; index_id 0: the site itself. Changes before
 * catalogue.history_from are not there, or not whole. */

static const char schema_v8[] =
    "ALTER TABLE catalogue ADD COLUMN lineage TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE token ADD COLUMN role INTEGER NOT NULL DEFAULT 3;"
    "ALTER TABLE token ADD COLUMN own INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE token ADD COLUMN prefix TEXT;"
    "ALTER TABLE token ADD COLUMN expires_at INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE token ADD COLUMN managed INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE local_token_use("
    " token INTEGER PRIMARY KEY,"
    " used_at INTEGER NOT NULL"
    ") STRICT;"
    "ALTER TABLE site ADD COLUMN frozen INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sitemap_index ADD COLUMN frozen INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sitemap_index ADD COLUMN touched INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX source_file_refused ON source_file(source) WHERE state = 3;"
    "ALTER TABLE source_state ADD COLUMN hosts INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE history("
    " revision INTEGER PRIMARY KEY,"
    " at INTEGER NOT NULL,"
    " who TEXT NOT NULL,"
    " kind TEXT NOT NULL,"
    " via TEXT NOT NULL,"
    " request_id TEXT,"
    " created INTEGER NOT NULL,"
    " updated INTEGER NOT NULL,"
    " unchanged INTEGER NOT NULL,"
    " removed INTEGER NOT NULL,"
    " undoes INTEGER," /* the revision that it undid, or restored */
    " note TEXT,"
    " rows INTEGER NOT NULL,"
    " parts INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL," /* that it takes here, roughly */
    " few BLOB"                /* its rows, where they have no parts */
    ") STRICT;"
    "CREATE TABLE history_index("
    " site INTEGER NOT NULL,"
    " revision INTEGER NOT NULL,"
    " index_id INTEGER NOT NULL,"
    " created INTEGER NOT NULL,"
    " updated INTEGER NOT NULL,"
    " removed INTEGER NOT NULL,"
    " PRIMARY KEY (site, revision, index_id)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE history_rows("
    " revision INTEGER NOT NULL,"
    " part INTEGER NOT NULL,"
    " filter BLOB NOT NULL,"
    " rows BLOB NOT NULL,"
    " PRIMARY KEY (revision, part)"
    ") STRICT;"
    "ALTER TABLE catalogue ADD COLUMN history_from INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE catalogue ADD COLUMN history_bytes INTEGER NOT NULL DEFAULT 0;"
    "UPDATE catalogue SET history_from = revision + 1;"
    "CREATE TABLE idempotency("
    " id INTEGER PRIMARY KEY,"
    " token INTEGER NOT NULL,"
    " n INTEGER NOT NULL,"
    " key TEXT NOT NULL,"
    " hash BLOB NOT NULL," /* of method, target and body */
    " at INTEGER NOT NULL,"
    " outcome BLOB NOT NULL"
    ") STRICT;"
    "CREATE UNIQUE INDEX idempotency_key ON idempotency(token, key);"
    "CREATE UNIQUE INDEX idempotency_n ON idempotency(token, n);"
    /* Until its rows are purged a removal can be undone. */
    "ALTER TABLE sitemap_index ADD COLUMN removed_at INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sitemap_index ADD COLUMN removed_by INTEGER NOT NULL DEFAULT 0;" /* revision */
    /* What of a removed index was registered elsewhere before its purge. */
    "CREATE TABLE removed_loc(address INTEGER PRIMARY KEY, loc TEXT NOT NULL) STRICT;"
    /* The text stands last: it need not be read for what would stand behind it. */
    "ALTER TABLE site ADD COLUMN robots_last TEXT;"
    "UPDATE site SET robots_last = robots WHERE robots IS NOT NULL;"
    "ALTER TABLE site DROP COLUMN robots;"
    "ALTER TABLE site RENAME COLUMN robots_last TO robots;"
    "CREATE TABLE local_crawler("
    " node TEXT PRIMARY KEY,"
    " epoch TEXT NOT NULL,"
    " since INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE local_crawler_page("
    " node TEXT NOT NULL,"
    " crawler TEXT NOT NULL,"
    " index_id INTEGER NOT NULL,"
    " page INTEGER NOT NULL,"
    " held INTEGER NOT NULL,"
    " held_stamp INTEGER NOT NULL,"
    " held_changed_at INTEGER NOT NULL,"
    " stale_since INTEGER NOT NULL,"
    " fetched_at INTEGER NOT NULL,"
    " status INTEGER NOT NULL,"
    " ok INTEGER NOT NULL,"
    " not_modified INTEGER NOT NULL,"
    " other INTEGER NOT NULL,"
    " PRIMARY KEY (node, crawler, index_id, page)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE local_crawler_day("
    " node TEXT NOT NULL,"
    " crawler TEXT NOT NULL,"
    " site INTEGER NOT NULL,"
    " day INTEGER NOT NULL,"
    " ok INTEGER NOT NULL,"
    " not_modified INTEGER NOT NULL,"
    " other INTEGER NOT NULL,"
    " impostors INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL,"
    " last_fetch_at INTEGER NOT NULL,"
    " lag_max INTEGER NOT NULL,"
    " lags BLOB NOT NULL," /* 32 bits each, little-endian */
    " PRIMARY KEY (node, crawler, site, day)"
    ") STRICT, WITHOUT ROWID;";

/* Version 9. Only what is small is written: no table of entries is gone through, however large the
 * catalogue.
 *
 * sitemap_index.kind is what a list lists, so that a program takes none for an index that is not:
 * an enum list_kind (db/entry.h).
 *
 * idempotency.upto are the bytes of a token's outcomes up to the row, so that a share of them is
 * found without a sum.
 *
 * history.site is the one site that a change touched, 0: several, or none, or the change is older
 * than this version. history_site.bytes is what these changes take, for the largest taker to lose
 * first where there is no room; of a site nothing before `since` is there, or not whole.
 * history_file is what was known of the file of an entry that a change of a source touched. */

static const char schema_v9[] =
    "ALTER TABLE sitemap_index ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE source_file ADD COLUMN claim TEXT;"
    "CREATE TABLE fetch("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " site INTEGER NOT NULL,"   /* 0: a list */
    " source INTEGER NOT NULL," /* 0: what the API registered */
    " list INTEGER NOT NULL,"
    " loc TEXT NOT NULL,"
    " state INTEGER NOT NULL," /* enum check_state */
    " status INTEGER NOT NULL,"
    " marks INTEGER NOT NULL,"
    " next_at INTEGER NOT NULL,"
    " interval_s INTEGER NOT NULL,"
    " failures INTEGER NOT NULL,"
    " checked_at INTEGER NOT NULL,"
    " good_at INTEGER NOT NULL,"
    " changed_at INTEGER NOT NULL,"
    " full_at INTEGER NOT NULL,"
    " since INTEGER NOT NULL,"
    " etag TEXT,"
    " last_modified TEXT,"
    " hash BLOB,"
    " dateless BLOB,"
    " urls INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL,"
    " newest_lastmod TEXT,"
    " one_lastmod INTEGER NOT NULL,"
    " remarks TEXT,"
    " problem TEXT,"
    " detail TEXT,"
    " line INTEGER NOT NULL"
    ") STRICT;"
    "CREATE UNIQUE INDEX fetch_loc ON fetch(site, loc) WHERE list = 0;"
    "CREATE UNIQUE INDEX fetch_list ON fetch(source) WHERE list = 1;"
    "CREATE INDEX fetch_state ON fetch(state, site);"
    "CREATE INDEX fetch_dropped ON fetch(source) WHERE marks >= 16;"
    "ALTER TABLE idempotency ADD COLUMN upto INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE history ADD COLUMN site INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX history_shared ON history(revision) WHERE site = 0;"
    "CREATE TABLE history_site("
    " site INTEGER PRIMARY KEY,"
    " bytes INTEGER NOT NULL,"
    " since INTEGER NOT NULL"
    ") STRICT;"
    "INSERT INTO history_site(site, bytes, since) SELECT 0, history_bytes, 0 FROM catalogue;"
    "CREATE TABLE history_file("
    " revision INTEGER NOT NULL,"
    " site INTEGER NOT NULL,"
    " loc TEXT NOT NULL,"
    " source INTEGER NOT NULL,"
    " path TEXT NOT NULL,"
    " hash BLOB,"
    " lastmod TEXT,"
    " urls INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL,"
    " newest_lastmod TEXT,"
    " one_lastmod INTEGER NOT NULL,"
    " future INTEGER NOT NULL,"
    " claim TEXT,"
    " PRIMARY KEY (revision, site, loc, source, path)"
    ") STRICT, WITHOUT ROWID;"
    /* Whether what is registered is read where it is. The text of robots.txt stands last, as ever.
     */
    "ALTER TABLE site ADD COLUMN checked INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE site ADD COLUMN robots_last TEXT;"
    "UPDATE site SET robots_last = robots WHERE robots IS NOT NULL;"
    "ALTER TABLE site DROP COLUMN robots;"
    "ALTER TABLE site RENAME COLUMN robots_last TO robots;"
    /* Sources that API or command line made; those of a configuration are not here. */
    "CREATE TABLE source_made("
    " name TEXT PRIMARY KEY,"
    " site INTEGER NOT NULL,"
    " upstream TEXT," /* of a remote one; else directory and url */
    " directory TEXT,"
    " url TEXT,"
    " index_url TEXT," /* NULL: the deepest that fits */
    " patterns TEXT,"  /* one a line; NULL: the usual ones */
    " excludes TEXT,"
    " watch INTEGER NOT NULL,"
    " serve INTEGER NOT NULL,"
    " checked INTEGER NOT NULL,"
    " rescan_ms INTEGER NOT NULL,"
    " settle_ms INTEGER NOT NULL,"
    " poll_ms INTEGER NOT NULL,"
    " drop_after_ms INTEGER NOT NULL,"
    " removed INTEGER NOT NULL DEFAULT 0" /* its name still has files, which are of this site */
    ") STRICT, WITHOUT ROWID;"
    /* Visits that logs told, for the ledger to take in, and which logs these were. */
    "CREATE TABLE local_crawler_visits("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " epoch TEXT NOT NULL,"
    " crawler TEXT NOT NULL,"
    " site INTEGER NOT NULL,"
    " day INTEGER NOT NULL,"
    " index_id INTEGER NOT NULL," /* 0: of the site, no page of it */
    " page INTEGER NOT NULL,"
    " revision INTEGER NOT NULL,"
    " stamp INTEGER NOT NULL,"
    " changed_at INTEGER NOT NULL,"
    " held_at INTEGER NOT NULL,"
    " fetched_at INTEGER NOT NULL,"
    " status INTEGER NOT NULL,"
    " ok INTEGER NOT NULL,"
    " not_modified INTEGER NOT NULL,"
    " other INTEGER NOT NULL,"
    " impostors INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE local_crawler_log("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " bytes INTEGER NOT NULL,"
    " hash BLOB NOT NULL,"
    " at INTEGER NOT NULL"
    ") STRICT;";

/* Version 10. As before, only what is small is written.
 *
 * Urlsets: lists of kind 1. Their rows stand in `sitemap` too, with a site of -list id, so that a
 * loc is unique within its urlset; extensions is their canonical XML. of_index, extensions,
 * max_pages and expires_s are those of struct registry_index. An entry that a page of a urlset is
 * in its index has the source -list id. urlset_age are the rows of urlsets with expires_s by what
 * their age counts from (db/write/apply/urlset.c); a row that went may have left its own there.
 *
 * history.part_of: of a change in steps the revision of its first one; 0: it had one. history_step
 * has them by that, maybe also some that the history lost. split are the urlsets that a split is
 * not done with.
 *
 * indexnow: see db/indexnow.h. */

static const char schema_v10[] =
    "ALTER TABLE sitemap ADD COLUMN extensions TEXT;"
    "ALTER TABLE sitemap_index ADD COLUMN of_index INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sitemap_index ADD COLUMN extensions INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sitemap_index ADD COLUMN max_pages INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sitemap_index ADD COLUMN expires_s INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE urlset_age("
    " address INTEGER PRIMARY KEY,"
    " list INTEGER NOT NULL,"
    " at INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX urlset_age_at ON urlset_age(list, at);"
    "ALTER TABLE history ADD COLUMN part_of INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE history_step("
    " part_of INTEGER NOT NULL,"
    " revision INTEGER NOT NULL,"
    " PRIMARY KEY (part_of, revision)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE split("
    " list INTEGER PRIMARY KEY,"
    " part_of INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX sitemap_index_expires ON sitemap_index(id) WHERE expires_s > 0;"
    "CREATE TABLE indexnow("
    " site INTEGER PRIMARY KEY,"
    " revision INTEGER NOT NULL,"
    " parts INTEGER NOT NULL"
    ") STRICT;"
    /* Where this node is in the log of a shared catalogue (shared/member.h). No row: it is shared
     * and this file has nothing of it yet, or it is not shared. */
    "CREATE TABLE local_shared("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " epoch TEXT NOT NULL,"
    " node TEXT NOT NULL,"
    " seq INTEGER NOT NULL,"
    " chain BLOB NOT NULL"
    ") STRICT;";

/* Version 11. No table of entries is gone through; what polls know is written once, some seconds
 * for 300,000 sitemaps.
 *
 * fetch.listed: the row tells what its source knows of the sitemap too, with claim and lastmod (''
 * where it is the claim), and source_file_row, the former table source_file, has none of it.
 * fetch.loc is without the origin of its site where it begins with that, and dateless is NULL where
 * it is as hash. See FILE_AT in db/read/row.h.
 *
 * What the nodes of a shared catalogue tell each other of crawlers, good in crawler_told.epoch:
 * crawler_page is the newest that any of them knows, crawler_day each one's sums.
 * crawler_told.times steps with each telling. local_crawler….told: the row was told as it is; node
 * is '' where the catalogue is not shared. */

static const char schema_v11[] =
    "ALTER TABLE source_file RENAME TO source_file_row;"
    "ALTER TABLE fetch ADD COLUMN listed INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE fetch ADD COLUMN claim TEXT;"
    "ALTER TABLE fetch ADD COLUMN lastmod TEXT;"
    "DROP INDEX fetch_loc;"
    "DROP INDEX source_file_loc;"
    "UPDATE fetch SET listed = 1, claim = f.claim, lastmod = iif(f.lastmod IS f.claim, '',"
    " f.lastmod) FROM source_file_row AS f WHERE fetch.list = 0 AND f.source = fetch.source"
    " AND f.path = fetch.loc AND f.site = fetch.site AND f.loc = fetch.loc AND f.state = 0"
    " AND f.hash IS fetch.hash AND f.urls = fetch.urls AND f.bytes = fetch.bytes"
    " AND f.newest_lastmod IS fetch.newest_lastmod AND f.one_lastmod = fetch.one_lastmod"
    " AND f.remarks IS fetch.remarks AND f.future = 0;"
    "DELETE FROM source_file_row WHERE (source, path) IN"
    " (SELECT source, loc FROM fetch WHERE listed = 1);"
    "UPDATE fetch SET dateless = nullif(dateless, hash), loc = coalesce((SELECT substr(fetch.loc,"
    " length(origin) + 1) FROM site WHERE id = fetch.site"
    " AND substr(fetch.loc, 1, length(origin) + 1) = origin || '/'), loc) WHERE list = 0;"
    "CREATE INDEX source_file_loc ON source_file_row(site, loc)"
    " WHERE site IS NOT NULL AND loc <> path;"
    "CREATE UNIQUE INDEX fetch_loc ON fetch(source, loc, site) WHERE list = 0;"
    "CREATE INDEX fetch_remarked ON fetch(source) WHERE list = 0 AND listed = 1"
    " AND remarks IS NOT NULL;"
    "CREATE VIEW source_file AS SELECT source, path, site, loc, state, refused, device, inode,"
    " size, mtime_ns, hash, lastmod, urls, bytes, newest_lastmod, one_lastmod, future, problem,"
    " detail, line, \"column\", problem_since, remarks, claim FROM source_file_row UNION ALL"
    " SELECT k.source, (iif(substr(k.loc, 1, 1) = '/', (SELECT origin FROM site"
    " WHERE id = k.site), '') || k.loc), k.site, (iif(substr(k.loc, 1, 1) = '/',"
    " (SELECT origin FROM site WHERE id = k.site), '') || k.loc), 0, 0, 0, 0, 0, 0, k.hash,"
    " iif(k.lastmod = '', k.claim, k.lastmod), k.urls, k.bytes, k.newest_lastmod, k.one_lastmod,"
    " 0, NULL, NULL, 0, 0, 0, k.remarks, k.claim FROM fetch AS k"
    " WHERE k.list = 0 AND k.listed = 1;"
    "CREATE TABLE crawler_told("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " epoch TEXT NOT NULL,"
    " times INTEGER NOT NULL,"
    " since INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE crawler_page("
    " crawler TEXT NOT NULL,"
    " index_id INTEGER NOT NULL,"
    " page INTEGER NOT NULL,"
    " held_stamp INTEGER NOT NULL,"
    " held_changed_at INTEGER NOT NULL," /* 0: it holds no version */
    " stale_since INTEGER NOT NULL,"
    " fetched_at INTEGER NOT NULL,"
    " status INTEGER NOT NULL,"
    " PRIMARY KEY (crawler, index_id, page)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE crawler_day("
    " node TEXT NOT NULL,"
    " crawler TEXT NOT NULL,"
    " site INTEGER NOT NULL,"
    " day INTEGER NOT NULL,"
    " ok INTEGER NOT NULL,"
    " not_modified INTEGER NOT NULL,"
    " other INTEGER NOT NULL,"
    " impostors INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL,"
    " last_fetch_at INTEGER NOT NULL,"
    " lag_max INTEGER NOT NULL,"
    " lags BLOB NOT NULL,"
    " PRIMARY KEY (node, crawler, site, day)"
    ") STRICT, WITHOUT ROWID;"
    "ALTER TABLE local_crawler_page ADD COLUMN told INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE local_crawler_day ADD COLUMN told INTEGER NOT NULL DEFAULT 0;";

/* Version 12. No table of entries is gone through; what polls know is written once more, in its
 * place.
 *
 * fetch.good_ago, full_ago and since_ago were good_at, full_at and since: seconds before
 * checked_at. claim and lastmod are numbers where they are of the forms that DATE_KEPT in
 * db/read/row.h tells. source_file_row.claim is '' where it is as lastmod. fetch_state has none of
 * what is good or new, which is nearly all. */

#define V12_KEPT(text)                                                                             \
    "iif(" text " > '1971', CASE " text " WHEN strftime('%Y-%m-%dT%H:%M:%SZ', " text               \
    ", '+0 seconds')"                                                                              \
    " THEN CAST(strftime('%s', " text ") AS INTEGER)"                                              \
    " WHEN strftime('%Y-%m-%dT%H:%M:%S+00:00', " text ", '+0 seconds')"                            \
    " THEN -CAST(strftime('%s', " text ") AS INTEGER) ELSE " text " END, " text ")"
#define V12_TEXT(kept)                                                                             \
    "iif(typeof(" kept ") <> 'integer', " kept ", strftime(iif(" kept                              \
    " > 0, '%Y-%m-%dT%H:%M:%SZ', '%Y-%m-%dT%H:%M:%S+00:00'), abs(" kept "), 'unixepoch'))"
#define V12_CLAIM_KEPT   V12_KEPT("claim_text")
#define V12_LASTMOD_KEPT V12_KEPT("lastmod_text")
#define V12_CLAIM        V12_TEXT("k.claim")
#define V12_LASTMOD      V12_TEXT("k.lastmod")

static const char schema_v12[] =
    "DROP VIEW source_file;"
    "DROP INDEX fetch_state;"
    "ALTER TABLE fetch RENAME COLUMN good_at TO good_ago;"
    "ALTER TABLE fetch RENAME COLUMN full_at TO full_ago;"
    "ALTER TABLE fetch RENAME COLUMN since TO since_ago;"
    "ALTER TABLE fetch RENAME COLUMN claim TO claim_text;"
    "ALTER TABLE fetch RENAME COLUMN lastmod TO lastmod_text;"
    "ALTER TABLE fetch ADD COLUMN claim ANY;"
    "ALTER TABLE fetch ADD COLUMN lastmod ANY;"
    "UPDATE fetch SET good_ago = checked_at - good_ago, full_ago = checked_at - full_ago,"
    " since_ago = checked_at - since_ago, claim = " V12_CLAIM_KEPT ", lastmod = " V12_LASTMOD_KEPT
    ";"
    "ALTER TABLE fetch DROP COLUMN claim_text;"
    "ALTER TABLE fetch DROP COLUMN lastmod_text;"
    "CREATE INDEX fetch_state ON fetch(state) WHERE state > 1;"
    "CREATE VIEW source_file AS SELECT source, path, site, loc, state, refused, device, inode,"
    " size, mtime_ns, hash, lastmod, urls, bytes, newest_lastmod, one_lastmod, future, problem,"
    " detail, line, \"column\", problem_since, remarks, iif(claim = '', lastmod, claim) AS claim"
    " FROM source_file_row UNION ALL"
    " SELECT k.source, (iif(substr(k.loc, 1, 1) = '/', (SELECT origin FROM site"
    " WHERE id = k.site), '') || k.loc), k.site, (iif(substr(k.loc, 1, 1) = '/',"
    " (SELECT origin FROM site WHERE id = k.site), '') || k.loc), 0, 0, 0, 0, 0, 0, k.hash,"
    " iif(k.lastmod = '', " V12_CLAIM ", " V12_LASTMOD "),"
    " k.urls, k.bytes, k.newest_lastmod, k.one_lastmod,"
    " 0, NULL, NULL, 0, 0, 0, k.remarks, " V12_CLAIM " FROM fetch AS k"
    " WHERE k.list = 0 AND k.listed = 1;";

/* Step N brings a file of version N to N + 1. */
static const char *const migrations[] = {schema_v1, schema_v2,  schema_v3,  schema_v4,
                                         schema_v5, schema_v6,  schema_v7,  schema_v8,
                                         schema_v9, schema_v10, schema_v11, schema_v12 SCHEMA_NEXT};
_Static_assert(sizeof migrations / sizeof *migrations == SCHEMA_VERSION,
               "one migration for each version");

const char *schema_step(int version)
{
    return migrations[version];
}
