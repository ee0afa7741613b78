/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One request and its answer as libcurl sees them: an easy handle made ready, and the result
 * in our words. fetch.c performs one at a time; loop.c, which drives several, puts `easy` into a
 * multi handle between transfer_begin and transfer_end. Internal to server/client/. */
#pragma once

#include <curl/curl.h>
#include <netinet/in.h>
#include <signal.h>

#include "server/client/client.h"

/* Of a chunked body each chunk is a piece. A peer that sends very many of one byte keeps the loop's
 * other transfers waiting no longer than it takes to read so many. */
#define TRANSFER_PIECES 256u

struct transfer {
    const struct fetch_request *request;
    struct fetch_reply *reply;
    CURL *easy; /* borrowed */
    struct curl_slist *headers, *connect;
    bool paused;     /* others go first: it is to be resumed */
    unsigned pieces; /* for request->take since the loop came round */
    uint64_t trailer_bytes;
    bool headed;                    /* the answer's own head is whole: what follows are trailers */
    enum fetch_status stopped;      /* what a callback of ours ended it for; FETCH_OK: none did */
    uint64_t taken;                 /* bytes that request->take was given */
    char refused[INET6_ADDRSTRLEN]; /* the last address that the guard refused; "": none */
    char error[CURL_ERROR_SIZE];
};

/* Sets libcurl up, once for the process. Thread safe. False where it cannot be. */
bool transfer_library(void);

/* Makes `easy`, new or reset, ready for the request. `*t`, the request and the reply stay where
 * they are until transfer_end. False, and the reply says so, when out of memory; transfer_end is
 * due all the same. */
bool transfer_begin(struct transfer *t, CURL *easy, const struct fetch_request *request,
                    struct fetch_reply *reply);
/* The result, `code` being libcurl's own word; the reply is whole then. Frees what
 * transfer_begin made, and resets `easy`. */
enum fetch_status transfer_end(struct transfer *t, CURLcode code);

/* Around whatever makes libcurl write. A peer that is gone is an error to be reported, not a signal
 * that ends the process: OpenSSL writes without MSG_NOSIGNAL. What is raised meanwhile is taken
 * from this thread before it can act. */
struct transfer_quiet {
    sigset_t before;
};
void transfer_quiet_begin(struct transfer_quiet *quiet);
void transfer_quiet_end(const struct transfer_quiet *quiet);
