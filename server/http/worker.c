#include <string.h>

#include "server/http/internal.h"
#include "server/tls/tls.h"

/* The pool of a connection also holds the parsed fields (some sixty bytes each) and the reply's
 * header. The library clears all of it for each request, half of it twice: a larger one is slower
 * for everybody. */
#define POOL_BESIDE_HEADER 8192u

/* The library forgets a connection a little after it told us of its end: until then it must not
 * turn away whom the acceptor gives the place to. */
#define LIMIT_SLACK 16u

static void ignore_log(void *cls, const char *format, va_list arguments)
{
    (void)cls;
    (void)format;
    (void)arguments;
}

/* Path and query stay as they came. */
static size_t unescape_nothing(void *cls, struct MHD_Connection *mhd, char *text)
{
    (void)cls;
    (void)mhd;
    return strlen(text);
}

bool worker_start(struct worker *w)
{
    struct listener *l = w->listener;
    /* One daemon for each thread: the library's own pool needs a listening socket. */
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME |
                     MHD_USE_NO_LISTEN_SOCKET;
    size_t memory = (size_t)l->options.max_header_bytes + POOL_BESIDE_HEADER;

    struct MHD_OptionItem more[4];
    unsigned count = 0;

    if (l->options.tls) {
        flags |= MHD_USE_TLS;
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_CERT_CALLBACK, 0,
                                                (void *)(intptr_t)tls_certificate_callback()};
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0,
                                                (void *)(intptr_t)TLS_PRIORITIES};
    }
    /* Not MHD_OPTION_STRICT_FOR_CLIENT in 0.9.75: all it adds there is a check of Host and of
     * spaces in the target, answered with a header sent twice or not at all. checks.c does both. */
#if MHD_VERSION >= 0x00097701
    more[count++] = (struct MHD_OptionItem){MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1, NULL};
#endif
    more[count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    w->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, exchange_handle, l, MHD_OPTION_EXTERNAL_LOGGER, ignore_log, NULL,
        MHD_OPTION_URI_LOG_CALLBACK, exchange_target, l, MHD_OPTION_UNESCAPE_CALLBACK,
        unescape_nothing, NULL, MHD_OPTION_NOTIFY_COMPLETED, exchange_completed, l,
        MHD_OPTION_NOTIFY_CONNECTION, connection_notify, w, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)w->limit + LIMIT_SLACK, MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory,
        MHD_OPTION_ARRAY, more, MHD_OPTION_END);
    return w->daemon != NULL;
}

void worker_stop(struct worker *w)
{
    if (w->daemon != NULL)
        MHD_stop_daemon(w->daemon);
    w->daemon = NULL;
}
