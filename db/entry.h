/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One entry as the catalogue stores it; reads and writes return it. Part of db/catalogue.h. */
#pragma once

#include <stdint.h>

#define ENTRY_ID_SIZE 40 /* an id with its NUL */

/* The kind of a list: an index has sitemaps; a urlset has page URLs, and its pages with rows are
 * entries of an index. Stored in sitemap_index.kind. */
enum list_kind { LIST_INDEX, LIST_URLSET };

/* An entry, or a page URL of a urlset. The owner of the struct (see each function) owns its
 * strings. */
struct entry_record {
    char id[ENTRY_ID_SIZE];                /* opaque, never reused */
    char *loc, *lastmod, *digest, *source; /* lastmod, digest: NULL if absent */
    char *extensions;                      /* of a page URL, see struct entry; NULL: none */
    int64_t site_id, index_id;             /* index_id: of a page URL the urlset's */
    uint32_t position;
    uint32_t page; /* number, from 1 */
    int64_t registered_at, changed_at;
};

/* The state of an index's entries, a text: the catalogue's epoch, the revision of the last change
 * of any entry, even of a digest alone (0: none), and the random stamp of its transaction,
 * separated by hyphens. Two states never have the same text, even if PostgreSQL has lost records
 * and revisions are used again. (All changes of a transaction have its last revision here.) */
#define INDEX_STATE_SIZE 80

/* Frees the strings, not the struct. Accepts NULL. */
void entry_record_done(struct entry_record *record);
/* Writes the entry's strong etag, with its quotes, to `out`. The etag changes whenever a field of
 * the entry does. */
void catalogue_entry_etag(const struct entry_record *record, char out[40]);
