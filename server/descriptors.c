#include "server/descriptors.h"

#include <sys/resource.h>

/* Log, listeners, the catalogue's connections (each with its file and log), the engine's temporary
 * files, and what libraries open. */
#define RESERVED 96u
/* Of a thread that answers: its epoll set and its wake-up. */
#define OF_THREAD 4u
/* Of an admin connection: itself, and the file that its list is spooled to. */
#define OF_ADMIN_CONNECTION 2u
/* Of what a low limit leaves, the admin listener gets a part: it has few clients. */
#define ADMIN_PART 4u
#define LEAST      4u

static uint64_t reserved(unsigned threads)
{
    return RESERVED + (uint64_t)OF_THREAD * threads;
}

uint64_t descriptors_wanted(uint32_t max_connections, unsigned threads)
{
    return reserved(threads) + (uint64_t)max_connections * (1 + OF_ADMIN_CONNECTION);
}

uint64_t descriptors_raise(uint64_t wanted)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return wanted; /* nothing is known to be in the way */
    if (limit.rlim_cur >= wanted)
        return limit.rlim_cur;
    struct rlimit raised = limit;
    raised.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    return setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

static uint32_t clamp(uint64_t value, uint32_t most)
{
    if (value < LEAST)
        value = LEAST;
    return value < most ? (uint32_t)value : most;
}

struct descriptor_share descriptors_share(uint64_t limit, uint32_t max_connections,
                                          unsigned threads)
{
    uint64_t room = limit > reserved(threads) ? limit - reserved(threads) : 0;
    struct descriptor_share share;

    if (limit >= descriptors_wanted(max_connections, threads))
        return (struct descriptor_share){max_connections, max_connections};
    share.admin_connections = clamp(room / ADMIN_PART / OF_ADMIN_CONNECTION, max_connections);
    uint64_t of_admin = (uint64_t)share.admin_connections * OF_ADMIN_CONNECTION;
    share.public_connections = clamp(room > of_admin ? room - of_admin : 0, max_connections);
    return share;
}
