#include "server/client/client.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "server/client/transfer.h"

struct fetch_session {
    CURL *easy; /* its connections outlive a reset */
};

struct fetch_session *fetch_session_new(void)
{
    struct fetch_session *session = calloc(1, sizeof *session);

    if (session != NULL)
        session->easy = transfer_library() ? curl_easy_init() : NULL;
    if (session != NULL && session->easy == NULL) {
        free(session);
        session = NULL;
    }
    return session;
}

void fetch_session_free(struct fetch_session *session)
{
    if (session == NULL)
        return;
    curl_easy_cleanup(session->easy);
    free(session);
}

/* A peer that is gone is an error to be told, not a signal that ends the process: OpenSSL writes
 * without MSG_NOSIGNAL. What is raised meanwhile is taken from this thread before it can act. */
static CURLcode perform(CURL *easy)
{
    static const struct timespec now = {0};
    sigset_t broken_pipe, before, pending;
    CURLcode code;

    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
    code = curl_easy_perform(easy);
    sigpending(&pending);
    if (sigismember(&pending, SIGPIPE) == 1 && sigismember(&before, SIGPIPE) == 0)
        sigtimedwait(&broken_pipe, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

enum fetch_status fetch(const struct fetch_request *request, struct fetch_reply *reply)
{
    struct transfer transfer;
    enum fetch_status status;
    CURL *easy;

    memset(reply, 0, sizeof *reply);
    if (request->session != NULL)
        easy = request->session->easy;
    else
        easy = transfer_library() ? curl_easy_init() : NULL;
    if (easy == NULL) {
        snprintf(reply->why, sizeof reply->why, "out of memory");
        return FETCH_NO_MEMORY;
    }
    status = transfer_end(&transfer, transfer_begin(&transfer, easy, request, reply)
                                         ? perform(easy)
                                         : CURLE_OUT_OF_MEMORY);
    if (request->session == NULL)
        curl_easy_cleanup(easy);
    return status;
}

void fetch_reply_done(struct fetch_reply *reply)
{
    str_done(&reply->head);
    str_done(&reply->body);
}

const char *fetch_header(const struct fetch_reply *reply, const char *name)
{
    for (size_t i = 0; i < reply->header_count; i++)
        if (strcasecmp(reply->headers[i].name, name) == 0)
            return reply->headers[i].value;
    return NULL;
}

bool fetch_header_lists(const struct fetch_reply *reply, const char *name, const char *word)
{
    for (size_t i = 0; i < reply->header_count; i++) {
        const char *s = reply->headers[i].value;

        while (strcasecmp(reply->headers[i].name, name) == 0 && *s != '\0') {
            size_t len;

            s += strspn(s, " \t,");
            len = strcspn(s, " \t,;");
            if (len == strlen(word) && strncasecmp(s, word, len) == 0)
                return true;
            s += len;
            s += strcspn(s, ",");
        }
    }
    return false;
}
