/* One request and its answer as libcurl sees them: an easy handle made ready, and what came of it
 * in our words. client.c performs one at a time; who drives several at once puts `easy` into a
 * multi handle between transfer_begin and transfer_end. Internal to server/client/. */
#ifndef SITEMAPD_CLIENT_TRANSFER_H
#define SITEMAPD_CLIENT_TRANSFER_H

#include <curl/curl.h>

#include "server/client/client.h"

struct transfer {
    const struct fetch_request *request;
    struct fetch_reply *reply;
    CURL *easy; /* borrowed */
    struct curl_slist *headers, *connect;
    bool headed;               /* the answer's own head is whole: what follows are trailers */
    enum fetch_status stopped; /* what a callback of ours ended it for; FETCH_OK: none did */
    char error[CURL_ERROR_SIZE];
};

/* Sets libcurl up, once for the process. Thread safe. False where it cannot be. */
bool transfer_library(void);

/* Makes `easy`, new or reset, ready for the request. `*t`, the request and the reply stay where
 * they are until transfer_end. False, and the reply says so, when out of memory; transfer_end is
 * due all the same. */
bool transfer_begin(struct transfer *t, CURL *easy, const struct fetch_request *request,
                    struct fetch_reply *reply);
/* What came of it, `code` being libcurl's own word; the reply is whole then. Frees what
 * transfer_begin made, and resets `easy`. */
enum fetch_status transfer_end(struct transfer *t, CURLcode code);

#endif
