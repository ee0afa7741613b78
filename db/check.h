/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sitemaps that are polled: a row for each watched URL and for the list of each remote source, with
 * the result of the last poll and the time of the next one. Part of db/catalogue.h: read through a
 * view, written by CHANGE_CHECK. Rows make no revision; a poll that moves the date of an entry
 * does. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/status.h"

/* The result of the last poll. The numbers are stored: append only. */
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
/* Whether a crawler cannot use the sitemap, or perhaps cannot. */
static inline bool check_is_bad(enum check_state state)
{
    return state != CHECK_NEW && state != CHECK_GOOD;
}
/* The number of sitemaps in bad states. */
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

/* Remarks on a sitemap: a set of bits, stored as a number. The schema (fetch_dropped) and queries
 * write 16 and 64 as numbers. */
enum check_remark {
    CHECK_REDIRECTED = 1,        /* its URL redirects, which crawlers may not follow */
    CHECK_CLAIMS_ARE_NOW = 2,    /* its date in the list is always the time of the answer */
    CHECK_VALIDATORS_LIE = 4,    /* the origin answered 304 although the content had changed */
    CHECK_LASTMOD_UNFOUNDED = 8, /* its registered date moved and its content did not */
    CHECK_DROPPED = 16,      /* three polls found that it is not a sitemap: its entry was removed */
    CHECK_DATE_STALE = 32,   /* its content changed, and its date in the index could not be moved */
    CHECK_SPLIT = 64,        /* it exceeds the limits: its page URLs are a urlset */
    CHECK_REMARKS_END = 128, /* bits from here on are not remarks: */
    CHECK_FEED = 128,        /* the last good content is RSS or Atom */
};
/* "redirected", "claims-are-now", "validators-lie", "lastmod-unfounded", "dropped",
 * "date-stale", "split". Static. */
const char *check_remark_word(enum check_remark remark);

/* One row. Strings of a view are valid until its next call, those of a write for the call; NULL if
 * absent. Times are Unix seconds, 0: never. */
struct check_record {
    const char *loc;            /* normalised */
    const char *source;         /* its remote source; "": registered by the API */
    const char *etag;           /* of the last answer, byte for byte */
    const char *last_modified;  /* the same */
    const char *newest_lastmod; /* of its page URLs */
    const char *remarks;        /* on its page URLs, as sitemap_remarks_write writes them */
    const char *problem;        /* a stable word: why it is not good */
    const char *detail;         /* a sentence for people */
    int64_t id;                 /* 0 in a write: a new row */
    int64_t site_id;            /* 0: a list */
    bool list;                  /* the list of a source, not a child */
    enum check_state state;
    unsigned status;     /* of the last answer; 0: there was none */
    unsigned marks;      /* set of check_remark */
    int64_t next_at;     /* when the next poll is due */
    uint32_t interval_s; /* between polls while it is good */
    uint32_t failures;   /* polls in a row with the present problem */
    int64_t checked_at, good_at;
    int64_t changed_at; /* for a list: the Date of the answer that was read last */
    int64_t full_at;    /* the last unconditional request; an undo changes it */
    int64_t since;      /* in this state */
    uint64_t hash[2],
        dateless[2]; /* of the content, and of the content without page dates; 0, 0: none */
    uint64_t urls, bytes;
    uint64_t line;
    bool one_lastmod; /* all page URLs have the same date */
};

/* ---- reading (through a view) ------------------------------------------------------------- */

struct catalogue_view;

/* NOT_FOUND if none exists. */
enum catalogue_status catalogue_view_check(struct catalogue_view *v, int64_t id,
                                           struct check_record *out);
/* The watched sitemap at a site's normalised loc. */
enum catalogue_status catalogue_view_check_by_loc(struct catalogue_view *v, int64_t site_id,
                                                  const char *loc, struct check_record *out);
/* The state of an entry's sitemap: its row if it is watched, else what the last scan of the folder
 * `source` that owns it found. NOT_FOUND if nothing reads it. */
enum catalogue_status catalogue_view_check_of_entry(struct catalogue_view *v, int64_t site_id,
                                                    const char *source, const char *loc,
                                                    struct check_record *out);
/* The watched sitemap of a remote source at a normalised loc. */
enum catalogue_status catalogue_view_check_of(struct catalogue_view *v, const char *source,
                                              const char *loc, struct check_record *out);
/* The list of a remote source. */
enum catalogue_status catalogue_view_check_list(struct catalogue_view *v, const char *source,
                                                struct check_record *out);

/* Watched sitemaps by id. With a limit, a call also ends when it has looked at CHECK_LOOK_MAX rows,
 * whether they match or not. `*next`: the `after` of the next call, 0: there are no more. */
#define CHECK_ANY_BAD  (-2)
#define CHECK_LOOK_MAX 20000u /* a few hundredths of a second */
struct check_filter {
    int state;          /* an enum check_state; -1: any; CHECK_ANY_BAD: neither new nor good */
    int64_t site_id;    /* 0: any */
    const char *source; /* NULL: any; "": registered by the API */
    const char *prefix; /* of the loc; NULL: any */
    int64_t after;      /* 0: from the first */
    size_t limit;       /* 0: all */
    bool dropped;       /* only those with CHECK_DROPPED; needs `source` */
};
typedef void check_each(void *context, const struct check_record *record);
enum catalogue_status catalogue_view_checks(struct catalogue_view *v,
                                            const struct check_filter *filter, check_each *each,
                                            void *context, int64_t *next);
/* Calls `each` for each source with watched sitemaps ("": those registered by the API), with the
 * number of them in each state. Reads all rows once; `bad`: only those in bad states. */
typedef void check_each_source(void *context, const char *source,
                               const uint64_t counts[CHECK_STATES]);
enum catalogue_status catalogue_view_check_counts(struct catalogue_view *v, bool bad,
                                                  check_each_source *each, void *context);
/* How many sitemaps of the source ("": registered by the API) are in each bad state: the counts of
 * other states stay. Reads only the bad rows. */
enum catalogue_status catalogue_view_check_bad_counts(struct catalogue_view *v, const char *source,
                                                      uint64_t counts[CHECK_STATES]);
/* Calls `each` for each site with registered sitemaps in bad states, with their number. Reads only
 * the bad rows. */
typedef void check_each_site(void *context, int64_t site_id, uint64_t bad);
enum catalogue_status catalogue_view_check_bad_sites(struct catalogue_view *v,
                                                     check_each_site *each, void *context);

/* For the poller: the sitemaps that are watched, and those to be watched. */

/* Rows by id, after `after`, at most `limit`. */
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
/* Calls `each` for sitemaps that a source's list names and that have no row. Looks at the files of
 * `source` after the path `after` (NULL: from the first), `looked` of them at most; `*last` gets
 * the last path looked at (LOC_MAX_CHARS + 1 bytes), "" at the end. */
enum catalogue_status catalogue_view_unwatched_files(struct catalogue_view *v, const char *source,
                                                     const char *after, size_t looked, char *last,
                                                     unwatched_each *each, void *context);
/* The same for a site's entries, by loc, but for those that a file of a source lists. */
enum catalogue_status catalogue_view_unwatched_entries(struct catalogue_view *v, int64_t site_id,
                                                       const char *after, size_t looked, char *last,
                                                       unwatched_each *each, void *context);
/* Rows by id, lists included, after the id `after`, `looked` of them at most; and whether anything
 * still names them: a file of their source or an entry. A list names itself. `*last` gets the last
 * id looked at, 0 at the end. */
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

/* The result of a poll; or a sitemap to watch from now on, or no longer. */
enum check_write_kind { CHECK_ADD, CHECK_RESULT, CHECK_REMOVE };
struct check_write {
    struct check_record record; /* ADD: loc, source, site_id, list, next_at, interval_s; RESULT:
                                   all, by its id; REMOVE: its id */
    /* RESULT: the entry gets the date `lastmod_to` (NULL: its date stays) if its date still is
     * `lastmod_from` (NULL: none), it has no digest and, for a sitemap of a source, that source
     * still owns it. If the source's list has removed the date `lastmod_from` meanwhile, the next
     * poll treats the content as new and so dates it. */
    const char *lastmod_to, *lastmod_from;
    /* RESULT: full_at when the poll began. If it differs now, the change may have been undone
     * since: the result dates nothing, and the next poll treats the content as new. */
    int64_t full_from;
    enum check_write_kind kind;
};
#define CHECK_WRITES_MAX 256u /* in one change: a few milliseconds */
