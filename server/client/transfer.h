/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One request on libcurl: prepares an easy handle, and translates the result. fetch.c performs one
 * at a time; loop.c drives several, and adds `easy` to a multi handle between transfer_begin and
 * transfer_end. Internal to server/client/. */
#pragma once

#include <curl/curl.h>
#include <netinet/in.h>
#include <signal.h>

#include "server/client/client.h"

/* Pieces of one transfer in a round of the loop. Each chunk of a chunked body is a piece: a peer
 * that sends very many chunks of one byte must not delay the other transfers for long. */
#define TRANSFER_PIECES 256u

struct transfer {
    const struct fetch_request *request;
    struct fetch_reply *reply;
    CURL *easy; /* borrowed */
    struct curl_slist *headers, *connect;
    bool paused;     /* waits for other transfers; the loop resumes it */
    unsigned pieces; /* pieces since the loop came round */
    uint64_t trailer_bytes;
    bool headed;                    /* the head is complete: further header lines are trailers */
    enum fetch_status stopped;      /* why a callback ended it; FETCH_OK: none did */
    uint64_t taken;                 /* bytes passed to request->take */
    char refused[INET6_ADDRSTRLEN]; /* the last address that the guard refused; "": none */
    char error[CURL_ERROR_SIZE];
};

/* Initialises libcurl once for the process. Thread safe. False: that failed. */
bool transfer_library(void);

/* Prepares `easy`, new or reset, for the request. `*t`, the request and the reply must not move
 * until transfer_end. False, with the reason in the reply: out of memory; call transfer_end in any
 * case. */
bool transfer_begin(struct transfer *t, CURL *easy, const struct fetch_request *request,
                    struct fetch_reply *reply);
/* Translates the result `code` of libcurl and completes the reply. Frees what transfer_begin
 * allocated, and resets `easy`. */
enum fetch_status transfer_end(struct transfer *t, CURLcode code);

/* Blocks SIGPIPE around calls in which libcurl may write: OpenSSL writes without MSG_NOSIGNAL, and
 * a closed connection must be an error, not a signal that ends the process. A SIGPIPE that arrives
 * meanwhile is discarded. */
struct transfer_quiet {
    sigset_t before;
};
void transfer_quiet_begin(struct transfer_quiet *quiet);
void transfer_quiet_end(const struct transfer_quiet *quiet);
