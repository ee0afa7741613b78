/* Version 3 of the schema, as the step from version 2: what tells two states of a page apart for
 * certain. Never changed once released: a later version is a migration.
 *
 * page.stamp is drawn at random whenever the row is written. A file that was copied back from a
 * backup repeats revisions, and a clock that stands still or was set repeats times; stamps do not
 * repeat. 0: none was drawn. */
#ifndef SITEMAPD_DB_SCHEMA_V3_H
#define SITEMAPD_DB_SCHEMA_V3_H

static const char schema_v3[] = "ALTER TABLE page ADD COLUMN stamp INTEGER NOT NULL DEFAULT 0;"
                                "UPDATE page SET stamp = random();";

#endif
