/* Version 4 of the schema, as the step from version 3: segments of 250 positions in place of 500.
 * Never changed once released: a later version is a migration.
 *
 * Each old segment becomes its two halves, with its revision: what a reader remembers as older than
 * that stays older. A half without entries has its row too, as everywhere. */
#ifndef SITEMAPD_DB_SCHEMA_V4_H
#define SITEMAPD_DB_SCHEMA_V4_H

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

#endif
