/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The page store, which keeps pages on disk (page_store_, below), and the format of its files
 * (page_file_): a snapshot to bytes and back. A file holds the deflated segments alone; frame,
 * checksum and etags are rebuilt by gzip_page_snapshot, so that none of them can disagree with the
 * segments. A file is in the byte order of the machine, which it states. The format's functions are
 * pure and thread safe. Internal to pages/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/str.h"
#include "server/pages/resource.h"
#include "server/rules/limits.h"

/* Raise it with any change of the layout. */
#define PAGE_FILE_VERSION 1
/* The largest file that is written or read: a page of LIMIT_PAGE_BYTES that does not compress, with
 * room to spare. */
#define PAGE_FILE_MAX_BYTES  (LIMIT_PAGE_BYTES + (8u << 20))
#define PAGE_FILE_EPOCH_SIZE 40

/* Which state of which page. Revisions repeat after an older copy of the catalogue was restored,
 * and times within a second: `stamp` distinguishes two states (page_record). */
struct page_key {
    char epoch[PAGE_FILE_EPOCH_SIZE]; /* of the catalogue; NULs behind the text */
    int64_t index_id;
    uint32_t number;
    uint32_t entries;
    uint64_t revision, stamp; /* of the page's record */
    int64_t changed_at;
    bool same_second;
};

/* The segments of a page, separately. */
struct page_pieces {
    struct snapshot_segment segments[PAGE_SEGMENTS]; /* offsets are within `bytes` */
    uint32_t count;
    const uint8_t *bytes; /* borrowed from what was decoded or encoded */
    size_t len;
};

/* Appends to `head` the part of the file before the pieces, and points `out` to the pieces in `s`.
 * `made_by` is the program's (builder_version). False when out of memory. */
bool page_file_encode(const struct page_key *key, const uint64_t made_by[2],
                      const struct resource *s, struct str *head, struct page_pieces *out);
#define PAGE_FILE_HEAD_BYTES 144
/* True if the bytes are complete and are this state of this page, written by a program that renders
 * the same bytes; `*out` points into them. False leaves `*out` undefined. */
bool page_file_decode(const uint8_t *bytes, size_t len, const struct page_key *key,
                      const uint64_t made_by[2], struct page_pieces *out);

/* The first bytes of a file, enough for page_file_belongs. */
#define PAGE_FILE_PEEK_BYTES 96
/* True if a file with these first bytes may belong to this catalogue and program. */
bool page_file_belongs(const uint8_t *bytes, size_t len, const char *epoch,
                       const uint64_t made_by[2]);

/* Pages kept on disk, so that a restart, or a page that was evicted, does not render and deflate it
 * again. A folder (0700) that only the server uses, with a file for each page. It holds nothing
 * that cannot be rebuilt, so it may be deleted at any time, and no file is used before it was
 * checked (page_file_decode). Files are written under another name and renamed, without fsync: a
 * file damaged by a power cut is recognised by its hash. If the disk fails, the store is off for a
 * while, and pages are served without it.
 *
 * One process writes, the one that holds the lock on the folder; others on the same catalogue only
 * read. Internal to pages/. */

/* How long a store whose disk failed is left alone, unless the options say otherwise. */
#define PAGE_STORE_RETRY_MS 60000
/* Disk space that is left free for the catalogue: a page that would take it is not stored. */
#define PAGE_STORE_SPARE_BYTES (64ull << 20)

struct page_store;

struct page_store_options {
    const char *folder;    /* copied; page_store_ready creates it */
    uint64_t budget_bytes; /* of all files */
    uint64_t made_by[2];   /* builder_version */
    void (*event)(void *context, const char *event,
                  const char *detail); /* any thread; may be NULL */
    void *event_context;
    int64_t retry_ms; /* 0: PAGE_STORE_RETRY_MS */
};

/* Touches no disk. NULL when out of memory. */
struct page_store *page_store_new(const struct page_store_options *options);
/* Accepts NULL. */
void page_store_free(struct page_store *store);

enum page_store_found {
    PAGE_STORE_HIT,
    PAGE_STORE_NONE,   /* no file, or the store is off */
    PAGE_STORE_MISFIT, /* there is a file, but of another state of the page: useless */
};
/* Reads the file of a page into `buffer`; `out` then points into that. Reads the disk: do not call
 * it on HTTP threads. Thread safe. */
enum page_store_found page_store_load(struct page_store *store, const struct page_key *key,
                                      struct str *buffer, struct page_pieces *out);

/* ---- for one thread, the keeper's ---- */

/* True if files can be written now. Opens the folder if necessary; `*fresh`: it was just opened, so
 * page_store_sweep is due. */
bool page_store_ready(struct page_store *store, bool *fresh);
enum page_store_saved {
    PAGE_STORE_SAVED,
    PAGE_STORE_FULL,  /* no space: the page has no file now */
    PAGE_STORE_FAILED /* the store is off for a while */
};
/* Writes the page; `*written` is the size of its file. Call page_store_ready first. */
enum page_store_saved page_store_save(struct page_store *store, const struct page_key *key,
                                      const struct resource *s, uint64_t *written);
/* Removes the page's file, if any. Call page_store_ready first. */
void page_store_remove(struct page_store *store, int64_t index_id, uint32_t number);
/* Removes files of other epochs and programs, of pages that `keep` rejects, and half-written ones;
 * counts the others. Leaves files whose names have another pattern. */
void page_store_sweep(struct page_store *store, const char *epoch,
                      bool (*keep)(void *context, int64_t index_id, uint32_t number),
                      void *context);

/* Bytes of all files as last counted. Any thread. */
uint64_t page_store_bytes(struct page_store *store);
