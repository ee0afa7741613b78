-- The tables of a catalogue file, schema version 1. The build strips the comments and embeds the
-- statements (embed_sql.cmake). Until 0.1.0 is tagged, this file is changed in place; from then on a
-- change is a migration step in schema.c, and the text of a released version is never changed: the
-- check of a file compares it letter by letter.
--
-- Conventions
-- * Times are Unix seconds, 0: never. Flags are 0 or 1.
-- * Enumerations are stored as numbers; their header says so ("append only").
-- * Ids are never reused (AUTOINCREMENT).
-- * Tables named local_ are the node's own. A transaction that writes only them makes no revision, and
--   they are never sent to other machines.
-- * Every other table is part of a shared catalogue: no trigger and no cascade (db/shared/effects.h).

-- ---- the catalogue as a whole ------------------------------------------------------------------

CREATE TABLE catalogue(
  one INTEGER PRIMARY KEY CHECK (one = 1),
  epoch TEXT NOT NULL,                 -- random, 32 hexadecimal digits; replaced if revisions start again
  revision INTEGER NOT NULL,           -- of the last change
  registry_revision INTEGER NOT NULL,  -- of the last change of sites, lists, tokens or sources
  serial INTEGER NOT NULL,             -- number of entries ever made; part of an entry's id
  changed_at INTEGER NOT NULL,         -- time of the last transaction
  lineage TEXT NOT NULL DEFAULT '',    -- random stamps of the last transactions, newest first (server_lock.h)
  history_from INTEGER NOT NULL DEFAULT 0,  -- changes before this revision are missing or incomplete
  history_bytes INTEGER NOT NULL DEFAULT 0  -- size of the history
) STRICT;

-- ---- sites and their lists ---------------------------------------------------------------------

CREATE TABLE site(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  origin TEXT NOT NULL,                -- 'https://www.example.com', normalised
  managed INTEGER NOT NULL,            -- declared by the configuration
  max_pages INTEGER NOT NULL,          -- limit of index files of all its indexes together
  removed INTEGER NOT NULL DEFAULT 0,
  robots_off INTEGER NOT NULL DEFAULT 0,        -- /robots.txt is left to another server
  robots_revision INTEGER NOT NULL DEFAULT 0,   -- of the last change of robots or robots_off, 0: none
  robots_changed_at INTEGER NOT NULL DEFAULT 0,
  frozen INTEGER NOT NULL DEFAULT 0,   -- enum freeze: all its lists
  checked INTEGER NOT NULL DEFAULT 0,  -- registered sitemaps are polled
  robots TEXT                          -- robots.txt, NULL: none; the last column, so that others are read without it
) STRICT;
CREATE UNIQUE INDEX site_origin ON site(origin) WHERE removed = 0;

CREATE TABLE site_host(
  site INTEGER NOT NULL REFERENCES site(id),
  host TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('cross', 'alias')),
  PRIMARY KEY (site, kind, host)
) STRICT, WITHOUT ROWID;

-- Indexes and urlsets. A removed one keeps its rows until they are purged, so that an undo can restore it.
CREATE TABLE sitemap_index(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  site INTEGER NOT NULL REFERENCES site(id),
  path TEXT NOT NULL,                  -- '/sitemap_index.xml'
  page_pattern TEXT NOT NULL,          -- '{stem}-{n}{suffix}'
  removed INTEGER NOT NULL DEFAULT 0,
  purged INTEGER NOT NULL DEFAULT 0,   -- 1: removed, and only the rows of its pages are left; 2: not even these
  frozen INTEGER NOT NULL DEFAULT 0,   -- enum freeze
  touched INTEGER NOT NULL DEFAULT 0,  -- revision of the last change of a digest alone, which no page shows, 0: none
  touched_stamp INTEGER NOT NULL DEFAULT 0,  -- stamp of touched, as page.stamp
  removed_at INTEGER NOT NULL DEFAULT 0,
  removed_by INTEGER NOT NULL DEFAULT 0,  -- revision of the removal
  kind INTEGER NOT NULL DEFAULT 0,     -- enum list_kind
  of_index INTEGER NOT NULL DEFAULT 0, -- urlset: the index that lists its pages
  extensions INTEGER NOT NULL DEFAULT 0,  -- urlset: the extensions its rows may have, a set of bits
  max_pages INTEGER NOT NULL DEFAULT 0,   -- urlset: limit of pages
  expires_s INTEGER NOT NULL DEFAULT 0,   -- urlset: rows older than this are removed, 0: none
  max_page_urls INTEGER NOT NULL DEFAULT 0,   -- urlset: limit of rows of a page, 0: the protocol's
  max_page_bytes INTEGER NOT NULL DEFAULT 0   -- urlset: limit of bytes of a page, 0: the protocol's
) STRICT;
CREATE UNIQUE INDEX sitemap_index_path ON sitemap_index(site, path) WHERE removed = 0;
CREATE INDEX sitemap_index_expires ON sitemap_index(id) WHERE expires_s > 0;
-- There may be many removed lists: these indexes let a query read only the ones that it needs.
CREATE INDEX sitemap_index_to_purge ON sitemap_index(removed_at) WHERE removed = 1 AND purged = 0;
CREATE INDEX sitemap_index_purged ON sitemap_index(site, purged, removed_at) WHERE removed = 1;
CREATE INDEX sitemap_index_removed_by ON sitemap_index(removed_by, id) WHERE removed_by <> 0;

-- The most entries that an index had on a day: the shrink guard compares with them.
CREATE TABLE index_peak(
  index_id INTEGER NOT NULL REFERENCES sitemap_index(id),
  day INTEGER NOT NULL,                -- days since 1970-01-01
  entries INTEGER NOT NULL,
  PRIMARY KEY (index_id, day)
) STRICT, WITHOUT ROWID;

-- ---- entries and the pages that show them ------------------------------------------------------

CREATE TABLE source(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

-- Entries of indexes and rows of urlsets. The address is list id << 32 | position: the entries of a page are
-- neighbours in the b-tree, and an entry's id needs no index of its own. A free position has no row.
CREATE TABLE sitemap(
  address INTEGER PRIMARY KEY,
  site INTEGER NOT NULL,               -- site id; for a row of a urlset: minus the urlset's id
  loc TEXT NOT NULL,
  lastmod TEXT,
  digest TEXT,
  source INTEGER NOT NULL,             -- its owner; for an entry that is a page of a urlset: minus the urlset's id
  serial INTEGER NOT NULL,
  registered_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  extensions TEXT                      -- for a row of a urlset: images, videos, alternates, news as canonical XML
) STRICT;
CREATE UNIQUE INDEX sitemap_loc ON sitemap(site, loc);

CREATE TABLE page(
  index_id INTEGER NOT NULL REFERENCES sitemap_index(id),
  number INTEGER NOT NULL,             -- from 1
  entries INTEGER NOT NULL,
  bytes INTEGER NOT NULL,              -- uncompressed
  changed_at INTEGER NOT NULL,         -- its Last-Modified
  same_second INTEGER NOT NULL,        -- another version may have been served with this date
  revision INTEGER NOT NULL,           -- of its last change
  stamp INTEGER NOT NULL DEFAULT 0,    -- random number of its transaction: distinguishes versions with the same revision
  PRIMARY KEY (index_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX page_revision ON page(revision);

CREATE TABLE segment(
  index_id INTEGER NOT NULL REFERENCES sitemap_index(id),
  number INTEGER NOT NULL,             -- position / 250
  entries INTEGER NOT NULL,
  revision INTEGER NOT NULL,           -- of its last change
  PRIMARY KEY (index_id, number)
) STRICT, WITHOUT ROWID;

-- Locs of a removed index that were registered in another list since: an undo must not list them twice.
CREATE TABLE removed_loc(
  address INTEGER PRIMARY KEY,
  loc TEXT NOT NULL
) STRICT;

-- The rows of urlsets with expires_s, by the time from which their age counts (write/apply/urlset.c). The
-- age of a removed row may still be here.
CREATE TABLE urlset_age(
  address INTEGER PRIMARY KEY,
  list INTEGER NOT NULL,
  at INTEGER NOT NULL
) STRICT;
CREATE INDEX urlset_age_at ON urlset_age(list, at);

-- Urlsets with an unfinished split.
CREATE TABLE split(
  list INTEGER PRIMARY KEY,
  part_of INTEGER NOT NULL             -- revision of the first step
) STRICT;

-- The position up to which IndexNow was notified of page URLs (db/indexnow.h).
CREATE TABLE indexnow(
  site INTEGER PRIMARY KEY,
  revision INTEGER NOT NULL,
  parts INTEGER NOT NULL
) STRICT;

-- ---- tokens and repeated requests --------------------------------------------------------------

CREATE TABLE token(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  sha256 BLOB NOT NULL,
  site INTEGER REFERENCES site(id),    -- NULL: every site
  created_at INTEGER NOT NULL,
  role INTEGER NOT NULL DEFAULT 3,     -- enum grant_role (server/rules/grant.h)
  own INTEGER NOT NULL DEFAULT 0,      -- changes only what it owns
  prefix TEXT,                         -- the locs it may change, NULL: all
  expires_at INTEGER NOT NULL DEFAULT 0,
  managed INTEGER NOT NULL DEFAULT 0   -- declared by the configuration
) STRICT;

CREATE TABLE local_token_use(
  token INTEGER PRIMARY KEY,
  used_at INTEGER NOT NULL             -- last use on this node, rounded to the hour
) STRICT;

-- Outcomes of requests with an Idempotency-Key (write/repeat.h).
CREATE TABLE idempotency(
  id INTEGER PRIMARY KEY,              -- in order of arrival
  token INTEGER NOT NULL,              -- 0: a token that is not in the catalogue
  n INTEGER NOT NULL,                  -- counts the rows of a token
  key TEXT NOT NULL,
  hash BLOB NOT NULL,                  -- of method, target and body
  at INTEGER NOT NULL,
  outcome BLOB NOT NULL,
  upto INTEGER NOT NULL DEFAULT 0      -- bytes of all the token's outcomes up to and including this one
) STRICT;
CREATE UNIQUE INDEX idempotency_key ON idempotency(token, key);
CREATE UNIQUE INDEX idempotency_n ON idempotency(token, n);

-- ---- sources and what is polled ----------------------------------------------------------------

-- Sources made by API or command line; those of a configuration are not here (db/source.h).
CREATE TABLE source_made(
  name TEXT PRIMARY KEY,
  site INTEGER NOT NULL,
  upstream TEXT,                       -- a remote source; NULL: a folder, with directory and url
  directory TEXT,
  url TEXT,
  index_url TEXT,                      -- NULL: the deepest index that fits
  patterns TEXT,                       -- one a line, NULL: the default
  excludes TEXT,
  host_map TEXT,                       -- of a remote source: pairs of origins, one a line; NULL: none
  watch INTEGER NOT NULL,
  serve INTEGER NOT NULL,
  checked INTEGER NOT NULL,            -- its sitemaps are polled
  rescan_ms INTEGER NOT NULL,
  settle_ms INTEGER NOT NULL,
  poll_ms INTEGER NOT NULL,
  drop_after_ms INTEGER NOT NULL,
  by_site INTEGER NOT NULL DEFAULT 0,  -- a token for one site created it, or was the last to change it
  removed INTEGER NOT NULL DEFAULT 0   -- the name still owns files of this site
) STRICT, WITHOUT ROWID;
CREATE INDEX source_made_removed ON source_made(site) WHERE removed = 1;

-- State of the last scan. Every change of a file updates the counts.
CREATE TABLE source_state(
  source INTEGER PRIMARY KEY REFERENCES source(id),
  scanned_at INTEGER NOT NULL,
  good_at INTEGER NOT NULL,            -- the last scan that held nothing back
  held INTEGER NOT NULL,               -- removals held back by the shrink guard
  files INTEGER NOT NULL,
  listed INTEGER NOT NULL,
  quarantined INTEGER NOT NULL,
  hosts INTEGER NOT NULL DEFAULT 0,    -- digest of the hosts allowed for page URLs, 0: read all files again
  touched INTEGER NOT NULL DEFAULT 0   -- revision of the last change, other than a scan, that may have changed its entries
) STRICT;

-- Files of sources, except listed sitemaps that are polled: those are rows of fetch. The view source_file
-- has both.
CREATE TABLE source_file_row(
  source INTEGER NOT NULL REFERENCES source(id),
  path TEXT NOT NULL,                  -- below the folder; of a remote sitemap its URL
  site INTEGER,                        -- site of its entry, or of its last one; NULL: it never had an entry
  loc TEXT,
  state INTEGER NOT NULL,              -- enum source_file_state
  refused INTEGER NOT NULL,            -- quarantined because of its place, not of its content
  device INTEGER NOT NULL,             -- device to ctime_ns: when it was last read; inode 0: read it again
  inode INTEGER NOT NULL,
  size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,
  ctime_ns INTEGER NOT NULL,
  hash BLOB,                           -- of the content, 16 bytes, big-endian; NULL: never valid yet
  lastmod TEXT,
  urls INTEGER NOT NULL,
  bytes INTEGER NOT NULL,              -- uncompressed
  newest_lastmod TEXT,                 -- of its page URLs
  one_lastmod INTEGER NOT NULL,        -- all page URLs have the same date
  future INTEGER NOT NULL,             -- its date is in the future
  problem TEXT,                        -- a code, NULL: none
  detail TEXT,
  line INTEGER NOT NULL,               -- of the problem, 0: unknown
  "column" INTEGER NOT NULL,
  problem_since INTEGER NOT NULL,
  remarks TEXT,                        -- sitemap_remarks_write, NULL: none
  claim TEXT,                          -- its date in the upstream's list; '': the same as lastmod
  PRIMARY KEY (source, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX source_file_remarked ON source_file_row(source) WHERE remarks IS NOT NULL AND state = 0;
CREATE INDEX source_file_refused ON source_file_row(source) WHERE state = 3;
CREATE INDEX source_file_loc ON source_file_row(site, loc) WHERE site IS NOT NULL AND loc <> path;

-- Polls: a row for each watched sitemap, and one for the list of each remote source (db/check.h). There may be
-- hundreds of thousands, so values that can be derived are not stored (read/row.h has the expressions).
CREATE TABLE fetch(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  site INTEGER NOT NULL,               -- 0: a list
  source INTEGER NOT NULL,             -- 0: registered by the API
  list INTEGER NOT NULL,               -- 1: the list of its source
  loc TEXT NOT NULL,                   -- without the origin of its site, if it begins with it
  state INTEGER NOT NULL,              -- enum check_state
  status INTEGER NOT NULL,             -- HTTP status of the last answer, 0: none
  marks INTEGER NOT NULL,              -- enum check_remark, a set of bits; 16: dropped from its index
  next_at INTEGER NOT NULL,            -- when the next poll is due
  interval_s INTEGER NOT NULL,         -- between polls while it is good
  failures INTEGER NOT NULL,           -- polls in a row with the current problem
  checked_at INTEGER NOT NULL,
  good_ago INTEGER NOT NULL,           -- good_ago, full_ago, since_ago: seconds before checked_at
  changed_at INTEGER NOT NULL,
  full_ago INTEGER NOT NULL,           -- the last unconditional request
  since_ago INTEGER NOT NULL,          -- since when it has been in this state
  etag TEXT,
  last_modified TEXT,
  hash BLOB,                           -- of the content
  dateless BLOB,                       -- of the content without page dates, NULL: equal to hash
  urls INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  newest_lastmod TEXT,
  one_lastmod INTEGER NOT NULL,
  remarks TEXT,
  problem TEXT,
  detail TEXT,
  line INTEGER NOT NULL,
  listed INTEGER NOT NULL DEFAULT 0,   -- it also describes a listed file of its source
  claim ANY,                           -- claim, lastmod: UTC dates as seconds, negative if written
  lastmod ANY                          --   with +00:00, others as text; lastmod '': the same as claim
) STRICT;
CREATE UNIQUE INDEX fetch_loc ON fetch(source, loc, site) WHERE list = 0;
CREATE UNIQUE INDEX fetch_list ON fetch(source) WHERE list = 1;
CREATE INDEX fetch_state ON fetch(state) WHERE state > 1;
CREATE INDEX fetch_site ON fetch(site) WHERE list = 0;
CREATE INDEX fetch_dropped ON fetch(source) WHERE marks >= 16;
CREATE INDEX fetch_remarked ON fetch(source) WHERE list = 0 AND listed = 1 AND remarks IS NOT NULL;

CREATE VIEW source_file AS
  SELECT source, path, site, loc, state, refused, device, inode, size, mtime_ns, ctime_ns, hash, lastmod,
    urls, bytes, newest_lastmod, one_lastmod, future, problem, detail, line, "column", problem_since, remarks,
    iif(claim = '', lastmod, claim) AS claim
  FROM source_file_row
  UNION ALL
  SELECT k.source,
    (iif(substr(k.loc, 1, 1) = '/', (SELECT origin FROM site WHERE id = k.site), '') || k.loc),
    k.site,
    (iif(substr(k.loc, 1, 1) = '/', (SELECT origin FROM site WHERE id = k.site), '') || k.loc),
    0, 0, 0, 0, 0, 0, 0, k.hash,
    iif(k.lastmod = '',
      iif(typeof(k.claim) <> 'integer', k.claim,
        strftime(iif(k.claim > 0, '%Y-%m-%dT%H:%M:%SZ', '%Y-%m-%dT%H:%M:%S+00:00'), abs(k.claim), 'unixepoch')),
      iif(typeof(k.lastmod) <> 'integer', k.lastmod,
        strftime(iif(k.lastmod > 0, '%Y-%m-%dT%H:%M:%SZ', '%Y-%m-%dT%H:%M:%S+00:00'), abs(k.lastmod), 'unixepoch'))),
    k.urls, k.bytes, k.newest_lastmod, k.one_lastmod, 0, NULL, NULL, 0, 0, 0, k.remarks,
    iif(typeof(k.claim) <> 'integer', k.claim,
      strftime(iif(k.claim > 0, '%Y-%m-%dT%H:%M:%SZ', '%Y-%m-%dT%H:%M:%S+00:00'), abs(k.claim), 'unixepoch'))
  FROM fetch AS k WHERE k.list = 0 AND k.listed = 1;

-- ---- history -----------------------------------------------------------------------------------

-- One row for each change.
CREATE TABLE history(
  revision INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  who TEXT NOT NULL,                   -- name of the token, user or source
  kind TEXT NOT NULL,
  via TEXT NOT NULL,                   -- 'api', 'cli', …
  request_id TEXT,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  unchanged INTEGER NOT NULL,
  removed INTEGER NOT NULL,
  undoes INTEGER,                      -- the revision that it undid, or whose state it restored
  note TEXT,
  rows INTEGER NOT NULL,
  parts INTEGER NOT NULL,              -- number of rows in history_rows
  bytes INTEGER NOT NULL,              -- approximate size in this file
  few BLOB,                            -- its rows, if they are few; then there are no parts
  site INTEGER NOT NULL DEFAULT 0,     -- the only site that it touched, 0: several or none
  part_of INTEGER NOT NULL DEFAULT 0,  -- step of a change: revision of the first step; 0: no steps
  list INTEGER NOT NULL DEFAULT 0      -- the index or urlset that was created, removed, frozen or changed itself, 0: none
) STRICT;
CREATE INDEX history_shared ON history(revision) WHERE site = 0;
CREATE INDEX history_undoes ON history(undoes) WHERE undoes IS NOT NULL;

-- The sites and indexes that a change touched; index_id 0: the site itself.
CREATE TABLE history_index(
  site INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  index_id INTEGER NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  removed INTEGER NOT NULL,
  PRIMARY KEY (site, revision, index_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE history_rows(
  revision INTEGER NOT NULL,
  part INTEGER NOT NULL,
  filter BLOB NOT NULL,                -- a Bloom filter of the locs
  rows BLOB NOT NULL,                  -- history/rows.h
  PRIMARY KEY (revision, part)
) STRICT;

-- The old state of files whose entries a change of a source touched.
CREATE TABLE history_file(
  revision INTEGER NOT NULL,
  site INTEGER NOT NULL,
  loc TEXT NOT NULL,
  source INTEGER NOT NULL,
  path TEXT NOT NULL,
  hash BLOB,
  lastmod TEXT,
  urls INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  newest_lastmod TEXT,
  one_lastmod INTEGER NOT NULL,
  future INTEGER NOT NULL,
  claim TEXT,
  PRIMARY KEY (revision, site, loc, source, path)
) STRICT, WITHOUT ROWID;

-- The size of each site's history: the largest one loses changes first; site 0: several sites or none.
CREATE TABLE history_site(
  site INTEGER PRIMARY KEY,
  bytes INTEGER NOT NULL,
  since INTEGER NOT NULL               -- changes before this revision are missing or incomplete
) STRICT;

-- The steps of a change; some may no longer be in the history.
CREATE TABLE history_step(
  part_of INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  PRIMARY KEY (part_of, revision)
) STRICT, WITHOUT ROWID;

-- ---- crawlers ----------------------------------------------------------------------------------

-- The state of this node's ledger (server/crawlers) between two runs: one row, valid in its epoch.
CREATE TABLE local_crawler(
  node TEXT PRIMARY KEY,               -- '': the catalogue is not shared
  epoch TEXT NOT NULL,
  since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE local_crawler_page(
  node TEXT NOT NULL,
  crawler TEXT NOT NULL,
  index_id INTEGER NOT NULL,
  page INTEGER NOT NULL,
  held INTEGER NOT NULL,               -- the crawler has fetched the whole page
  held_stamp INTEGER NOT NULL,         -- stamp of the crawler's version
  held_changed_at INTEGER NOT NULL,
  stale_since INTEGER NOT NULL,        -- the first change since, 0: its version is the current one
  fetched_at INTEGER NOT NULL,
  status INTEGER NOT NULL,
  ok INTEGER NOT NULL,
  not_modified INTEGER NOT NULL,
  other INTEGER NOT NULL,
  sent INTEGER NOT NULL DEFAULT 0,     -- the row was sent to the other nodes
  PRIMARY KEY (node, crawler, index_id, page)
) STRICT, WITHOUT ROWID;

CREATE TABLE local_crawler_day(
  node TEXT NOT NULL,
  crawler TEXT NOT NULL,
  site INTEGER NOT NULL,
  day INTEGER NOT NULL,                -- days since 1970-01-01
  ok INTEGER NOT NULL,
  not_modified INTEGER NOT NULL,
  other INTEGER NOT NULL,
  impostors INTEGER NOT NULL,          -- requests with its name from a foreign address
  bytes INTEGER NOT NULL,
  last_fetch_at INTEGER NOT NULL,
  lag_max INTEGER NOT NULL,            -- seconds
  lags BLOB NOT NULL,                  -- a histogram with 32-bit cells, little-endian (db/crawler.h)
  sent INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (node, crawler, site, day)
) STRICT, WITHOUT ROWID;

-- When crawlers last fetched sitemaps that are served beside the pages (struct crawler_child).
CREATE TABLE local_crawler_child(
  place INTEGER PRIMARY KEY,           -- in the table of server/crawlers, whose size is fixed
  crawler TEXT NOT NULL,
  site INTEGER NOT NULL,
  child INTEGER NOT NULL,              -- a hash of its path and query
  fetched_at INTEGER NOT NULL,
  good_at INTEGER NOT NULL,            -- last complete fetch or 304, 0: none
  status INTEGER NOT NULL,             -- of the last fetch
  ok INTEGER NOT NULL,
  not_modified INTEGER NOT NULL,
  other INTEGER NOT NULL
) STRICT;

-- Visits imported from logs, for the ledger to add, and the logs that were imported.
CREATE TABLE local_crawler_visits(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  epoch TEXT NOT NULL,
  crawler TEXT NOT NULL,
  site INTEGER NOT NULL,
  day INTEGER NOT NULL,
  index_id INTEGER NOT NULL,           -- 0: visits to the site or to a child
  page INTEGER NOT NULL,
  child INTEGER NOT NULL,              -- as in local_crawler_child, 0: none
  revision INTEGER NOT NULL,           -- revision to changed_at: the page as it was when the log was read
  stamp INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  held_at INTEGER NOT NULL,            -- the first fetch of that version, 0: none; for a child see db/crawler.h
  fetched_at INTEGER NOT NULL,
  status INTEGER NOT NULL,
  ok INTEGER NOT NULL,
  not_modified INTEGER NOT NULL,
  other INTEGER NOT NULL,
  impostors INTEGER NOT NULL,
  bytes INTEGER NOT NULL
) STRICT;

CREATE TABLE local_crawler_log(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  bytes INTEGER NOT NULL,              -- number of bytes that were read
  hash BLOB NOT NULL,                  -- of these bytes
  at INTEGER NOT NULL
) STRICT;

-- Counts that the nodes of a shared catalogue report to each other, valid in crawler_shared.epoch.
CREATE TABLE crawler_shared(
  one INTEGER PRIMARY KEY CHECK (one = 1),
  epoch TEXT NOT NULL,
  times INTEGER NOT NULL,              -- number of reports
  since INTEGER NOT NULL
) STRICT;

-- The newest version of a page that a crawler has, by the reports of all nodes.
CREATE TABLE crawler_page(
  crawler TEXT NOT NULL,
  index_id INTEGER NOT NULL,
  page INTEGER NOT NULL,
  held_stamp INTEGER NOT NULL,
  held_changed_at INTEGER NOT NULL,    -- 0: it has no version
  stale_since INTEGER NOT NULL,
  fetched_at INTEGER NOT NULL,
  status INTEGER NOT NULL,
  PRIMARY KEY (crawler, index_id, page)
) STRICT, WITHOUT ROWID;

-- Each node's own sums of a day.
CREATE TABLE crawler_day(
  node TEXT NOT NULL,
  crawler TEXT NOT NULL,
  site INTEGER NOT NULL,
  day INTEGER NOT NULL,
  ok INTEGER NOT NULL,
  not_modified INTEGER NOT NULL,
  other INTEGER NOT NULL,
  impostors INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  last_fetch_at INTEGER NOT NULL,
  lag_max INTEGER NOT NULL,
  lags BLOB NOT NULL,
  PRIMARY KEY (node, crawler, site, day)
) STRICT, WITHOUT ROWID;

-- ---- this node ---------------------------------------------------------------------------------

-- Written to test whether the disk accepts writes; each attempt changes steps.
CREATE TABLE local_probe(
  one INTEGER PRIMARY KEY CHECK (one = 1),
  steps INTEGER NOT NULL
) STRICT;

-- The last reports of search engines on a site's sitemaps (db/engine.h).
CREATE TABLE local_engine_site(
  engine TEXT NOT NULL,
  site INTEGER NOT NULL,
  state INTEGER NOT NULL,              -- enum engine_state
  why TEXT NOT NULL,
  asked_at INTEGER NOT NULL,
  next_at INTEGER NOT NULL,
  good_at INTEGER NOT NULL,
  failures INTEGER NOT NULL,           -- since good_at
  PRIMARY KEY (engine, site)
) STRICT, WITHOUT ROWID;
CREATE TABLE local_engine_sitemap(
  engine TEXT NOT NULL,
  site INTEGER NOT NULL,
  loc TEXT NOT NULL,
  parent TEXT NOT NULL,                -- loc of the index that lists it; '': it was submitted directly
  listed INTEGER NOT NULL,             -- the engine lists it
  pending INTEGER NOT NULL,
  sent_at INTEGER NOT NULL,            -- when this server submitted it
  submitted_at INTEGER NOT NULL,       -- from here on: by the engine's report
  read_at INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  warnings INTEGER NOT NULL,
  urls INTEGER NOT NULL,
  PRIMARY KEY (engine, site, loc)
) STRICT, WITHOUT ROWID;
-- The last answer of each day, of the last 90.
CREATE TABLE local_engine_day(
  engine TEXT NOT NULL,
  site INTEGER NOT NULL,               -- 0: all sites together
  day INTEGER NOT NULL,
  sitemaps INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  warnings INTEGER NOT NULL,
  urls INTEGER NOT NULL,
  read_at INTEGER NOT NULL,            -- the oldest read_at of the sitemaps
  PRIMARY KEY (engine, site, day)
) STRICT, WITHOUT ROWID;

-- The size of each site (0: all together) on each of the last 90 days (db/day.h).
CREATE TABLE local_site_day(
  site INTEGER NOT NULL,
  day INTEGER NOT NULL,                -- days since 1970-01-01
  entries INTEGER NOT NULL,
  urls INTEGER NOT NULL,
  PRIMARY KEY (site, day)
) STRICT, WITHOUT ROWID;

-- This node's position in the log of a shared catalogue (shared/member.h). No row: not shared, or the file is
-- still empty.
CREATE TABLE local_shared(
  one INTEGER PRIMARY KEY CHECK (one = 1),
  epoch TEXT NOT NULL,
  node TEXT NOT NULL,
  seq INTEGER NOT NULL,
  chain BLOB NOT NULL
) STRICT;
