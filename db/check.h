/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What the catalogue keeps of sitemaps that are polled: a row for each watched URL, with the result
 * of its last poll and the time of the next one, and one for each list of a remote source. Part of
 * db/catalogue.h: read through a view, written by CHANGE_CHECK. Rows make no revision; the dates of
 * entries that a poll moves do. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/status.h"

/* The result of the last poll that had one. The numbers are stored: append only. */
enum check_state {
    CHECK_NEW,           /* not polled yet */
    CHECK_GOOD,          /* read and verified, or not modified since */
    CHECK_EMPTY,         /* a sitemap without URLs */
    CHECK_GONE,          /* 404 or 410 */
    CHECK_NOT_A_SITEMAP, /* HTML, an index, another file */
    CHECK_BROKEN,        /* a sitemap that no crawler accepts */
    CHECK_REFUSED,       /* 401, 403, 451, 429, a bot check: crawlers may get another answer */
    CHECK_UNREACHABLE,   /* no connection, no whole answer, a 5xx */
    CHECK_STATES
};
/* "new", "good", "empty", "gone", "not-a-sitemap", "broken", "refused", "unreachable". Static. */
const char *check_state_word(enum check_state state);
/* Whether a crawler cannot use what was found, or may not be able to: a problem for people. */
static inline bool check_is_bad(enum check_state state)
{
    return state != CHECK_NEW && state != CHECK_GOOD;
}
/* How many of these are bad. */
static inline uint64_t check_count_bad(const uint64_t counts[CHECK_STATES])
{
    uint64_t bad = 0;

    for (unsigned i = 0; i < CHECK_STATES; i++)
        bad += check_is_bad((enum check_state)i) ? counts[i] : 0;
    return bad;
}
/* False for any other word. */
bool check_state_read(const char *word, enum check_state *out);

#define CHECK_ETAG_MAX_BYTES     256u /* longer validators are not kept */
#define CHECK_MODIFIED_MAX_BYTES 64u

/* Remarks on a sitemap that is good enough. A set of bits, stored as a number; 16 is written out in
 * the schema (fetch_dropped) and in its query. */
enum check_remark {
    CHECK_REDIRECTED = 1,        /* its URL redirects, which crawlers may not follow */
    CHECK_CLAIMS_ARE_NOW = 2,    /* the list's date for it is always the time of the answer */
    CHECK_VALIDATORS_LIE = 4,    /* it got a 304 although its content had changed */
    CHECK_LASTMOD_UNFOUNDED = 8, /* its registered date moved and its content did not */
    CHECK_DROPPED = 16, /* three polls agree that it is not a sitemap: its entry left the index */
    CHECK_DATE_STALE = 32,   /* its content changed, and its date in the index could not be moved */
    CHECK_SPLIT = 64,        /* it is past the limits: its page URLs are a urlset */
    CHECK_REMARKS_END = 128, /* above the remarks; the next one is a fact: */
    CHECK_FEED = 128,        /* its last good content is RSS or Atom */
};
/* "redirected", "claims-are-now", "validators-lie", "lastmod-unfounded", "dropped",
 * "date-stale", "split". Static. */
const char *check_remark_word(enum check_remark remark);

/* One row. Strings of a view are valid until its next call, those of a write for the call; NULL
 * where absent. Times are Unix seconds, 0: never. */
struct check_record {
    const char *loc;            /* normalised */
    const char *source;         /* the remote source that it is of; "": an entry of the API */
    const char *etag;           /* of the last answer, byte for byte */
    const char *last_modified;  /* the same */
    const char *newest_lastmod; /* of its pages */
    const char *remarks;        /* of its pages, as sitemap_remarks_write writes them */
    const char *problem;        /* a stable word; what it is where it is not good */
    const char *detail;         /* a sentence for people */
    int64_t id;                 /* 0 in a write: a new row */
    int64_t site_id;            /* 0: a list */
    bool list;                  /* the list of a source, not a child */
    enum check_state state;
    unsigned status;     /* of the last answer; 0: there was none */
    unsigned marks;      /* set of check_remark */
    int64_t next_at;     /* when it is due */
    uint32_t interval_s; /* between polls while it is good */
    uint32_t failures;   /* polls in a row in its present trouble */
    int64_t checked_at, good_at;
    int64_t changed_at; /* of a list: the Date of the answer that was read last */
    int64_t full_at;    /* last read without being asked for what is new only; an undo changes it */
    int64_t since;      /* in this state */
    uint64_t hash[2], dateless[2]; /* of the content, and of it without page dates; 0, 0: none */
    uint64_t urls, bytes;
    uint64_t line;
    bool one_lastmod; /* all its pages bear one date */
};

/* ---- reading (through a view) ------------------------------------------------------------- */

struct catalogue_view;

/* NOT_FOUND where there is none. */
enum catalogue_status catalogue_view_check(struct catalogue_view *v, int64_t id,
                                           struct check_record *out);
/* The watched sitemap at a site's normalised loc. */
enum catalogue_status catalogue_view_check_by_loc(struct catalogue_view *v, int64_t site_id,
                                                  const char *loc, struct check_record *out);
/* What is known of the file of an entry: its row where it is watched, else what the folder `source`
 * that owns it found, as far as that is known. NOT_FOUND where nothing reads it. */
enum catalogue_status catalogue_view_check_of_entry(struct catalogue_view *v, int64_t site_id,
                                                    const char *source, const char *loc,
                                                    struct check_record *out);
/* The watched sitemap of a remote source at a normalised loc. */
enum catalogue_status catalogue_view_check_of(struct catalogue_view *v, const char *source,
                                              const char *loc, struct check_record *out);
/* The list of a remote source. */
enum catalogue_status catalogue_view_check_list(struct catalogue_view *v, const char *source,
                                                struct check_record *out);

/* Children by id; the cursor is the last id seen. A false from `each` ends it (OK). */
#define CHECK_ANY_BAD (-2)
struct check_filter {
    int state;          /* an enum check_state; -1: any; CHECK_ANY_BAD: neither new nor good */
    int64_t site_id;    /* 0: any */
    const char *source; /* NULL: any; "": what the API registered */
    int64_t after;      /* 0: from the first */
    size_t limit;       /* 0: all */
    bool dropped;       /* only those with CHECK_DROPPED, of `source`, which is needed then */
};
enum catalogue_status
catalogue_view_checks(struct catalogue_view *v, const struct check_filter *filter,
                      bool (*each)(void *context, const struct check_record *record),
                      void *context);
/* How many children of the source (NULL: any; "": what the API registered) are in each state. It
 * reads all rows. */
enum catalogue_status catalogue_view_check_counts(struct catalogue_view *v, const char *source,
                                                  uint64_t counts[CHECK_STATES]);
/* The same of the bad ones alone; the others' counts stay as they are. It reads only those. */
enum catalogue_status catalogue_view_check_bad_counts(struct catalogue_view *v, const char *source,
                                                      uint64_t counts[CHECK_STATES]);

/* What there is to watch and what is watched, for who polls. */

/* The bare rows by id, after `after`, at most `limit`. */
struct check_due {
    int64_t id, site_id, next_at;
    uint32_t interval_s;
    enum check_state state;
    const char *loc, *source; /* valid for the call */
};
enum catalogue_status
catalogue_view_checks_due(struct catalogue_view *v, int64_t after, size_t limit,
                          bool (*each)(void *context, const struct check_due *row), void *context);
typedef bool unwatched_each(void *context, int64_t site_id, const char *loc);
/* Calls `each` for what a source's list names and has no row: files of `source` from behind the
 * path `after` (NULL: the first), `looked` of them at most; `*last` gets the last path looked at
 * (LOC_MAX_CHARS + 1 bytes), "" once there is no more. */
enum catalogue_status catalogue_view_unwatched_files(struct catalogue_view *v, const char *source,
                                                     const char *after, size_t looked, char *last,
                                                     unwatched_each *each, void *context);
/* The same for a site's entries by loc that no source owns which reads for itself. */
enum catalogue_status catalogue_view_unwatched_entries(struct catalogue_view *v, int64_t site_id,
                                                       const char *after, size_t looked, char *last,
                                                       unwatched_each *each, void *context);
/* Rows by id, lists too, from behind the id `after`, `looked` of them at most, and whether anything
 * names them: a file of their source, an entry; a list is its own. `*last` gets the last id looked
 * at, 0 once there is no more. */
struct check_named {
    int64_t id, site_id;
    const char *source; /* valid for the call */
    bool list, named;
};
enum catalogue_status
catalogue_view_checks_named(struct catalogue_view *v, int64_t after, size_t looked, int64_t *last,
                            bool (*each)(void *context, const struct check_named *row),
                            void *context);

/* ---- writing (CHANGE_CHECK) --------------------------------------------------------------- */

/* The result of a poll, or what is to be watched from now on, or no more. */
enum check_write_kind { CHECK_ADD, CHECK_RESULT, CHECK_REMOVE };
struct check_write {
    struct check_record record; /* ADD: loc, source, site_id, list, next_at, interval_s; RESULT:
                                   all, by its id; REMOVE: its id */
    /* RESULT: the date that its entry is to bear, where it still bears `lastmod_from` (NULL: none)
     * and has no digest; of a child with a source, where that source still owns it. NULL: it stays.
     * Where that source's list took `lastmod_from` back meanwhile, so that there is no date, the
     * content is to be found again as if it were new, which dates it. */
    const char *lastmod_to, *lastmod_from;
    /* RESULT: full_at when the poll began. Where it is another now, what the poll found may have
     * been undone since: it dates nothing, and is to be found again as if it were new. */
    int64_t full_from;
    enum check_write_kind kind;
};
#define CHECK_WRITES_MAX 256u /* in one change: some milliseconds */
