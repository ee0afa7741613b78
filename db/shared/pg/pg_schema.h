/* The tables of a shared catalogue's log in PostgreSQL: schema `sitemapd` of the database that
 * [shared] names. Layout 1; never changed once released.
 *
 * log: a row for each record, without gaps. `total` is the sum of all packed bodies up to this one.
 * A body of more than a MiB lies in `part`, without gaps from 0, and `body` is empty. Bodies are
 * packed already, so nobody packs them again (STORAGE EXTERNAL). */
#ifndef SITEMAPD_DB_SHARED_PG_PG_SCHEMA_H
#define SITEMAPD_DB_SHARED_PG_PG_SCHEMA_H

#define PG_LAYOUT 1

static const char *const pg_schema[] = {
    "CREATE TABLE sitemapd.cluster("
    " one boolean PRIMARY KEY DEFAULT true CHECK (one),"
    " layout bigint NOT NULL,"
    " epoch text NOT NULL,"
    " made_at timestamptz NOT NULL DEFAULT now())",
    "CREATE TABLE sitemapd.log("
    " seq bigint PRIMARY KEY,"
    " id uuid NOT NULL UNIQUE,"
    " node text NOT NULL,"
    " schema bigint NOT NULL,"   /* of the catalogue's file, before the record */
    " revision bigint NOT NULL," /* that the record follows */
    " serial bigint NOT NULL,"
    " at bigint NOT NULL," /* Unix milliseconds, by the node's clock */
    " stored_at timestamptz NOT NULL DEFAULT now(),"
    " chain bytea NOT NULL,"
    " total bigint NOT NULL,"
    " parts bigint NOT NULL,"
    " body bytea NOT NULL)",
    "ALTER TABLE sitemapd.log ALTER body SET STORAGE EXTERNAL",
    "CREATE TABLE sitemapd.part("
    " seq bigint NOT NULL, no bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (seq, no))",
    "ALTER TABLE sitemapd.part ALTER body SET STORAGE EXTERNAL",
    "CREATE TABLE sitemapd.node("
    " name text PRIMARY KEY,"
    " seen timestamptz NOT NULL,"
    " release text NOT NULL,"
    " schema bigint NOT NULL,"
    " applied bigint NOT NULL,"
    " digest_seq bigint NOT NULL,"
    " digest bytea NOT NULL,"
    " state text NOT NULL)",
    /* A snapshot counts once its row is there; its parts come before. */
    "CREATE TABLE sitemapd.snapshot("
    " seq bigint PRIMARY KEY,"
    " chain bytea NOT NULL,"
    " schema bigint NOT NULL,"
    " bytes bigint NOT NULL," /* of the file */
    " parts bigint NOT NULL,"
    " sha bytea NOT NULL,"    /* SHA-256 of all parts */
    " total bigint NOT NULL," /* of the record */
    " taken_at timestamptz NOT NULL DEFAULT now())",
    "CREATE TABLE sitemapd.snapshot_part("
    " seq bigint NOT NULL, no bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (seq, no))",
    "ALTER TABLE sitemapd.snapshot_part ALTER body SET STORAGE EXTERNAL",
};

/* What a node's role needs, which follows. */
static const char *const pg_grants[] = {
    "GRANT USAGE ON SCHEMA sitemapd TO ",
    "GRANT SELECT ON sitemapd.cluster TO ",
    "GRANT SELECT, INSERT, DELETE ON sitemapd.log, sitemapd.part, sitemapd.snapshot,"
    " sitemapd.snapshot_part TO ",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON sitemapd.node TO ",
};

#endif
