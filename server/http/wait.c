/* How a request waits. The hook hands its work over and only then answers HANDLE_LATER, so the
 * resume may come before, while or after the connection is suspended:
 *
 *   connection's thread             resuming thread
 *   hook answers HANDLE_LATER
 *   (wait is RESUMED? go on)        wait := RESUMED; was it SUSPENDED?
 *   MHD_suspend_connection            yes: MHD_resume_connection
 *   NONE -> SUSPENDED                 no: nothing, the connection's thread will see it
 *     failed: MHD_resume_connection
 *
 * libmicrohttpd thus sees a suspend, then one resume, always in this order. */
#include <poll.h>

#include "server/base/clock.h"
#include "server/http/internal.h"
#include "server/http/request.h"

bool wait_reserve(struct exchange *e)
{
    struct listener *l = e->connection->listener;

    if (e->reserved)
        return true;
    /* The exchange counts as active already; so either this sees the stop, or the stop sees it. */
    if (atomic_load(&l->quiescing))
        return false;
    if (atomic_fetch_add(&l->waiting, 1) >= l->options.max_suspended) {
        atomic_fetch_sub(&l->waiting, 1);
        return false;
    }
    e->reserved = true;
    return true;
}

void wait_release(struct exchange *e)
{
    if (!e->reserved)
        return;
    e->reserved = false;
    atomic_fetch_sub(&e->connection->listener->waiting, 1);
}

bool request_may_wait(struct request *request)
{
    return request->exchange == NULL || wait_reserve(request->exchange);
}

bool wait_begin(struct exchange *e)
{
    e->later = true;
    if (!e->reserved) { /* a hook that did not ask: counted all the same */
        atomic_fetch_add(&e->connection->listener->waiting, 1);
        e->reserved = true;
    }
    if (atomic_load(&e->wait) == WAIT_RESUMED)
        return false;
    deadline_clear(e->connection);
    e->wait_start_ms = clock_coarse_ms();
    MHD_suspend_connection(e->mhd);
    int expected = WAIT_NONE;
    if (!atomic_compare_exchange_strong(&e->wait, &expected, WAIT_SUSPENDED))
        MHD_resume_connection(e->mhd);
    return true;
}

bool wait_ended(struct exchange *e)
{
    if (!e->later || atomic_load(&e->wait) != WAIT_RESUMED)
        return false;
    atomic_store(&e->wait, WAIT_NONE);
    e->later = false;
    if (e->wait_start_ms != 0)
        e->body_start_ms += clock_coarse_ms() - e->wait_start_ms;
    e->wait_start_ms = 0;
    wait_release(e);
    return true;
}

bool request_is_gone(const struct request *request)
{
    if (request->exchange == NULL)
        return false;
    /* Nobody closes it while the request waits. */
    struct pollfd fd = {.fd = request->exchange->connection->fd, .events = POLLRDHUP};
    return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void request_resume(struct request *request)
{
    struct exchange *e = request->exchange;

    if (e == NULL) {
        if (request->answer != NULL)
            request->answer(request);
        if (request->resume != NULL)
            request->resume(request);
        return;
    }
    struct listener *l = e->connection->listener;
    struct MHD_Connection *mhd = e->mhd;
    /* From the exchange on, the connection's thread may complete the request; a stop waits for
     * this thread to be out of libmicrohttpd before it ends the daemon. */
    atomic_fetch_add(&l->resuming, 1);
    if (atomic_exchange(&e->wait, WAIT_RESUMED) == WAIT_SUSPENDED)
        MHD_resume_connection(mhd);
    atomic_fetch_sub(&l->resuming, 1);
}
