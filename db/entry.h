/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One entry as the catalogue holds it: what reads and writes answer with. Part of
 * db/catalogue.h. */
#pragma once

#include <stdint.h>

#define ENTRY_ID_SIZE 40 /* an id with its NUL */

/* What a list lists: an index has sitemaps; a urlset has page URLs, and its pages with rows are
 * entries of an index. As in sitemap_index.kind. */
enum list_kind { LIST_INDEX, LIST_URLSET };

/* One entry, or one page URL of a urlset, as the catalogue holds it. Strings are owned by the one
 * that owns the struct (see each function). */
struct entry_record {
    char id[ENTRY_ID_SIZE];                /* opaque, never reused */
    char *loc, *lastmod, *digest, *source; /* lastmod, digest: NULL where absent */
    char *extensions;                      /* of a page URL, see struct entry; NULL where absent */
    int64_t site_id, index_id;             /* index_id: of a page URL the urlset's */
    uint32_t position;
    uint32_t page; /* number, from 1 */
    int64_t registered_at, changed_at;
};

/* The state of an index's entries: the catalogue's epoch, the revision of the last change of any
 * entry, even of a digest alone (0: none), and the random stamp of its transaction, separated by
 * hyphens. Two states never have the same text, even if PostgreSQL has lost records and revisions
 * are used again. (Changes of one transaction have its last revision here.) */
#define INDEX_STATE_SIZE 80

/* Frees the strings, not the struct. Takes NULL. */
void entry_record_done(struct entry_record *record);
/* Writes the entry's strong etag (quotes included) to `out`, 40 bytes: it changes whenever any
 * field of the entry does. */
void catalogue_entry_etag(const struct entry_record *record, char out[40]);
