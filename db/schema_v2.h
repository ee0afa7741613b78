/* Version 2 of the schema, as the step from version 1: what directory sources know of their files.
 * Never changed once released: a later version is a migration.
 *
 * source_file.site is the site that its entry is (or was last) in, NULL where it never had one:
 * with it (site, loc) finds the entry of a file and the file of an entry. The counts in
 * source_state are kept by those who write files, so that nobody has to count a hundred thousand.
 */
#ifndef SITEMAPD_DB_SCHEMA_V2_H
#define SITEMAPD_DB_SCHEMA_V2_H

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

#endif
