/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Drives a multi handle of libcurl, which keeps connections, resolved names and trusted
 * certificates. Transfers are in a list, so that freeing the loop finds those that are under way. A
 * few easy handles are reset and kept, since creating one costs more than a small request; a handle
 * that had credentials is not used again. */
#include "server/client/loop.h"

#include <signal.h>
#include <stdlib.h>

#include "server/client/transfer.h"

#define SPARES   4u
#define KEPT     64u
#define PAUSE_MS 5

struct fetch_transfer {
    struct fetch_transfer *next, **self; /* the pointer in the list to this one */
    struct fetch_request request;
    struct fetch_reply reply;
    struct transfer transfer;
    fetch_done *done;
    CURLcode failed; /* a failure that libcurl does not report; CURLE_OK: none */
};

struct fetch_loop {
    CURLM *multi;
    struct fetch_transfer *running;
    size_t count, failed;
    CURL *spare[SPARES];
    size_t spares;
    bool pipes; /* the process does not ignore SIGPIPE: block it in this thread */
};

void fetch_loop_keep(struct fetch_loop *loop, unsigned connections)
{
    curl_multi_setopt(loop->multi, CURLMOPT_MAXCONNECTS, (long)connections);
}

struct fetch_loop *fetch_loop_new(void)
{
    struct fetch_loop *loop = calloc(1, sizeof *loop);

    if (loop != NULL)
        loop->multi = transfer_library() ? curl_multi_init() : NULL;
    if (loop == NULL || loop->multi == NULL) {
        free(loop);
        return NULL;
    }
    fetch_loop_keep(loop, KEPT);
    curl_multi_setopt(loop->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    struct sigaction broken_pipe;
    loop->pipes = sigaction(SIGPIPE, NULL, &broken_pipe) != 0 || broken_pipe.sa_handler != SIG_IGN;
    return loop;
}

static void unlink_transfer(struct fetch_loop *loop, struct fetch_transfer *f)
{
    *f->self = f->next;
    if (f->next != NULL)
        f->next->self = f->self;
    loop->count--;
    loop->failed -= f->failed != CURLE_OK;
}

/* Remove it from the multi handle first: the removal reads options (QUICK_EXIT) that transfer_end
 * resets. */
static enum fetch_status end_transfer(struct fetch_loop *loop, struct fetch_transfer *f,
                                      CURLcode code)
{
    CURL *easy = f->transfer.easy;
    enum fetch_status status;

    unlink_transfer(loop, f);
    curl_multi_remove_handle(loop->multi, easy);
    status = transfer_end(&f->transfer, code);
    if (f->request.credentials == NULL && loop->spares < SPARES)
        loop->spare[loop->spares++] = easy;
    else
        curl_easy_cleanup(easy);
    return status;
}

static void free_transfer(struct fetch_transfer *f)
{
    fetch_reply_done(&f->reply);
    free(f);
}

static void fail_transfer(struct fetch_loop *loop, struct fetch_transfer *f, CURLcode code)
{
    loop->failed += f->failed == CURLE_OK;
    f->failed = code;
}

struct fetch_transfer *fetch_loop_add(struct fetch_loop *loop, const struct fetch_request *request,
                                      fetch_done *done)
{
    struct fetch_transfer *f = calloc(1, sizeof *f);
    CURL *easy = NULL;

    if (f != NULL)
        easy = loop->spares > 0 ? loop->spare[--loop->spares] : curl_easy_init();

    if (easy == NULL) {
        free(f);
        return NULL;
    }
    f->request = *request;
    f->request.looped = true;
    f->done = done;
    f->next = loop->running;
    f->self = &loop->running;
    if (f->next != NULL)
        f->next->self = &f->next;
    loop->running = f;
    loop->count++;
    if (transfer_begin(&f->transfer, easy, &f->request, &f->reply) &&
        curl_easy_setopt(easy, CURLOPT_PRIVATE, f) == CURLE_OK &&
        curl_multi_add_handle(loop->multi, easy) == CURLM_OK)
        return f;
    fail_transfer(loop, f, CURLE_OUT_OF_MEMORY);
    return f;
}

void fetch_loop_remove(struct fetch_loop *loop, struct fetch_transfer *f)
{
    end_transfer(loop, f, CURLE_ABORTED_BY_CALLBACK);
    free_transfer(f);
}

void fetch_loop_free(struct fetch_loop *loop)
{
    if (loop == NULL)
        return;
    while (loop->running != NULL)
        fetch_loop_remove(loop, loop->running);
    while (loop->spares > 0)
        curl_easy_cleanup(loop->spare[--loop->spares]);
    curl_multi_cleanup(loop->multi);
    free(loop);
}

static void end_reported(struct fetch_loop *loop, struct fetch_transfer *f, CURLcode code)
{
    enum fetch_status status = end_transfer(loop, f, code);

    f->done(f->request.context, status, &f->reply);
    free_transfer(f);
}

/* Asks libcurl again after each one: `done` may have removed others. */
static void report_done(struct fetch_loop *loop)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(loop->multi, &left)) != NULL) {
        char *private = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
        end_reported(loop, (struct fetch_transfer *)(void *)private, message->data.result);
    }
    while (loop->failed > 0) {
        struct fetch_transfer *f = loop->running;

        while (f->failed == CURLE_OK)
            f = f->next;
        end_reported(loop, f, f->failed);
    }
}

static bool has_paused(const struct fetch_loop *loop)
{
    const struct fetch_transfer *f = loop->running;

    while (f != NULL && !f->transfer.paused)
        f = f->next;
    return f != NULL;
}

/* Passes on what libcurl held back for each paused transfer, unless its `take` must wait again. */
static void resume_paused(struct fetch_loop *loop)
{
    for (struct fetch_transfer *f = loop->running; f != NULL; f = f->next) {
        f->transfer.pieces = 0;
        if (!f->transfer.paused)
            continue;
        f->transfer.paused = false;
        CURLcode code = curl_easy_pause(f->transfer.easy, CURLPAUSE_CONT);
        if (code != CURLE_OK)
            fail_transfer(loop, f, code);
    }
}

static bool perform_transfers(struct fetch_loop *loop)
{
    struct transfer_quiet quiet;
    CURLMcode code;
    int running;

    if (loop->count == 0)
        return true;
    if (loop->pipes)
        transfer_quiet_begin(&quiet);
    code = curl_multi_perform(loop->multi, &running);
    if (loop->pipes)
        transfer_quiet_end(&quiet);
    return code == CURLM_OK;
}

bool fetch_loop_poll(struct fetch_loop *loop, int timeout_ms)
{
    size_t before = loop->count;

    resume_paused(loop);
    report_done(loop);
    bool good = perform_transfers(loop);

    report_done(loop);
    if (timeout_ms > PAUSE_MS && has_paused(loop))
        timeout_ms = PAUSE_MS;
    if (timeout_ms > 0 && good && loop->count >= before)
        good = curl_multi_poll(loop->multi, NULL, 0, timeout_ms, NULL) == CURLM_OK &&
               perform_transfers(loop);
    report_done(loop);
    return good;
}

void fetch_loop_wake(struct fetch_loop *loop)
{
    curl_multi_wakeup(loop->multi);
}
