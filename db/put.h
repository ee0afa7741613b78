/* One entry on its way into the catalogue: where it goes, what is there, room for it, the write.
 * A single registration, a bulk and a replace all go this way. Internal to db/; the writer's
 * thread. */
#ifndef SITEMAPD_DB_PUT_H
#define SITEMAPD_DB_PUT_H

#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "db/fill.h"
#include "db/tx.h"

/* A row of `sitemap`, copied out of the statement. */
struct put_row {
    bool found;
    int64_t address;
    int64_t source, serial, registered_at, changed_at;
    bool has_lastmod, has_digest;
    char lastmod[LASTMOD_MAX_CHARS + 1];
    char digest[DIGEST_MAX_BYTES + 1];
};

enum put_outcome {
    PUT_UNCHANGED,
    PUT_CREATED,
    PUT_UPDATED,
    PUT_MOVED,
    PUT_KNOWN, /* expect_new was wrong; nothing was written: begin again without it */
};

struct put {
    /* Given. */
    const struct entry *entry;
    const char *index_name; /* NULL: by scope, or where it is registered */
    const char *source;     /* owner of a new entry that names none */
    int64_t token_site_id;  /* 0: any site */
    bool normalised;        /* the loc is url_parse's own text (a stream's): only taken apart */
    bool expect_new;        /* do not look it up: the insert will tell (bulk, for speed) */

    /* Found by put_place: RULE_OK or why not. */
    enum rule_code code;
    bool forbidden;
    const char *field;
    struct url url;
    const struct registry_site *site;
    const struct registry_index *index; /* where it goes, or stays */
    const struct registry_index *from;  /* the live index that holds it now; NULL: none */
    struct put_row row;                 /* found: registered, maybe in a removed index */

    /* Found by put_room, for an entry that is new in `index`. */
    struct fill_index *fill;
    uint32_t weight;
    uint32_t position;

    /* Done by put_write: `row` is then the entry as stored. */
    enum put_outcome outcome;
};

/* Judges and looks up; reads only. OK also where a rule refuses: see `code`. */
enum catalogue_status put_place(struct tx *tx, struct put *put);
/* Finds a position where one is needed; reads only. RULE_SITE_FULL or RULE_POSITION otherwise. */
enum catalogue_status put_room(struct tx *tx, struct put *put);
/* Writes. Only after both of the above said RULE_OK. */
enum catalogue_status put_write(struct tx *tx, struct put *put);

/* Reads the row of the statement ST_ENTRY_BY_LOC or _BY_ADDRESS that stands on one. */
void put_row_read(sqlite3_stmt *statement, struct put_row *row);
/* Looks up (site, loc). */
enum catalogue_status put_find(struct tx *tx, int64_t site_id, const char *loc,
                               struct put_row *row);
/* Takes an entry out of a live index; as one of a set, or (put_take_out) as a single removal, for
 * which the shrink guard's peak is lowered. */
enum catalogue_status put_release(struct tx *tx, const struct registry_index *index,
                                  int64_t address, const char *loc, size_t loc_len);
enum catalogue_status put_take_out(struct tx *tx, const struct registry_index *index,
                                   int64_t address, const char *loc, size_t loc_len);

#endif
