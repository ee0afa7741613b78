/* A connection to a server, plain or TLS, with one deadline for all that is done on it. Internal to
 * server/fetch/. One thread at a time. */
#ifndef SITEMAPD_FETCH_STREAM_H
#define SITEMAPD_FETCH_STREAM_H

#include "server/fetch/fetch.h"

struct stream;

struct stream_target {
    const char *host; /* for TLS: whose certificate it must be */
    const char *connect_host, *connect_port;
    bool https;
    const char *ca_file; /* NULL: the system's trust */
    int64_t deadline_ms; /* as stream_now_ms counts */
};

/* Milliseconds of the monotonic clock. */
int64_t stream_now_ms(void);
/* Connects to the first address that answers, and shakes hands. FETCH_OK and `*out`; otherwise a
 * sentence is in `why`, of `size` bytes. */
enum fetch_status stream_open(const struct stream_target *target, struct stream **out, char *why,
                              size_t size);
enum fetch_status stream_write(struct stream *s, const void *bytes, size_t len, char *why,
                               size_t size);
/* Reads what there is into `bytes`; `*got` is 0 at the end. */
enum fetch_status stream_read(struct stream *s, void *bytes, size_t len, size_t *got, char *why,
                              size_t size);
/* "TLSv1.3", "" where it is plain. Borrowed. */
const char *stream_protocol(const struct stream *s);
/* When the server's certificate ends, Unix seconds; 0 where it is plain. */
int64_t stream_certificate_ends(const struct stream *s);
void stream_close(struct stream *s);

#endif
