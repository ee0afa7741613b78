/* What a reader's formats share: the options, the sink, the counts and what went wrong. Internal
 * to ingest.
 *
 * Invariant: once error.status is not READER_OK nothing more goes to the sink. */
#ifndef SITEMAPD_INGEST_CORE_H
#define SITEMAPD_INGEST_CORE_H

#include "server/ingest/judge.h"

#define READER_MAX_DEPTH 64u /* of XML elements; the JSON of an entry has its own bound */

struct core {
    struct reader_options options;
    struct reader_sink sink;
    struct reader_error error;
    uint64_t count; /* entries and rejections */
    uint64_t bytes; /* decoded */
    struct judged judged;
};

/* True while nothing has gone wrong. */
bool core_ok(const struct core *c);
/* Records the first failure; later ones change nothing. Returns false, for tail calls. */
bool core_fail(struct core *c, enum reader_status status, const char *code, uint64_t line,
               uint64_t column, const char *format, ...) __attribute__((format(printf, 6, 7)));
bool core_no_memory(struct core *c);
/* Judges and hands on. False: stop, the reason is recorded. */
bool core_take(struct core *c, const struct raw_entry *raw);
/* The same for what the format itself refuses. */
bool core_reject(struct core *c, const struct rejection *rejection);
void core_remark(struct core *c, enum rule_code code, uint64_t line);

#endif
