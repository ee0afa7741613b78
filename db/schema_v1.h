/* Version 1 of the schema, as SQL. Never changed once released: a later version is a migration.
 *
 * sitemap.address = index_id << 32 | position: entries of a page are neighbours in the b-tree, and
 * an entry's id needs no index of its own. A free position has no row. */
#ifndef SITEMAPD_DB_SCHEMA_V1_H
#define SITEMAPD_DB_SCHEMA_V1_H

static const char schema_v1[] =
    "CREATE TABLE catalogue("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " epoch TEXT NOT NULL,"
    " revision INTEGER NOT NULL,"
    " registry_revision INTEGER NOT NULL,"
    " serial INTEGER NOT NULL,"    /* one step per entry made */
    " changed_at INTEGER NOT NULL" /* of the last transaction: time never runs backwards */
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

#endif
