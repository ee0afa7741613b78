/* What the parts of one scan share. */
#ifndef SITEMAPD_SOURCES_SCAN_PASS_H
#define SITEMAPD_SOURCES_SCAN_PASS_H

#include <sys/stat.h>

#include "server/rules/url.h"
#include "server/sources/scan.h"
#include "server/sources/walk.h"

struct scan_pass {
    const struct scan_options *options;
    struct scan_outcome *out;
    int top;
    int64_t now;                  /* Unix seconds, when it began */
    bool resubmit;                /* the entries are in another index than they are to be */
    bool out_of_memory;           /* it ends at once */
    struct record_list kept;      /* sorted */
    struct record_list found;     /* what differs */
    struct record_list changing;  /* paths to be read once more */
    struct record_list unsettled; /* paths left for the next scan */
    struct record_list rejected;  /* by the catalogue; `size` is the place in `found` */
    size_t reject_at;             /* on_reject: how far it has got in `found` */
    struct url loc;               /* of the file that the stream is at */
    size_t next;                  /* of the stream */
};

/* ---- scan_file.c: one file ----------------------------------------------------------------- */

/* Decides about a file that is there. False: the pass ends. */
bool scan_file(struct scan_pass *pass, const char *path, const struct stat *st);
/* Reads once more those that were changing. False: the pass ends. */
bool scan_changing(struct scan_pass *pass);
/* A file or folder that cannot be had. False: out of memory. */
bool scan_problem(struct scan_pass *pass, const char *path, const char *code, const char *detail,
                  bool folder);

/* ---- scan_apply.c: the change -------------------------------------------------------------- */

/* Adds what is kept and not seen. False: out of memory. */
bool scan_add_gone(struct scan_pass *pass);
/* Hands `found` over and tells it. */
void scan_apply(struct scan_pass *pass);

#endif
