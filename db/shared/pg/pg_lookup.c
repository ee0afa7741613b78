/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Resolves a host name on a thread of the C library (getaddrinfo_a), with a deadline. */
#include "db/shared/pg/pg_lookup.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "server/base/clock.h"

struct pg_lookup {
    struct gaicb request;
    struct addrinfo hints;
    char name[PG_NAME_SIZE];
};

bool pg_lookup_is_needed(const char *host)
{
    struct in6_addr address;

    return host[0] != '/' && host[0] != '@' && inet_pton(AF_INET, host, &address) != 1 &&
           inet_pton(AF_INET6, host, &address) != 1;
}

void pg_lookup_free(struct pg_lookup *lookup)
{
    if (lookup == NULL)
        return;
    /* A lookup that cannot be cancelled still writes to its memory, which is not freed. */
    if (gai_error(&lookup->request) == EAI_INPROGRESS &&
        gai_cancel(&lookup->request) != EAI_CANCELED &&
        gai_error(&lookup->request) == EAI_INPROGRESS)
        return;
    if (lookup->request.ar_result != NULL)
        freeaddrinfo(lookup->request.ar_result);
    free(lookup);
}

static struct pg_lookup *lookup_start(const char *name)
{
    struct pg_lookup *l = calloc(1, sizeof *l);
    struct gaicb *list[1];

    if (l == NULL)
        return NULL;
    snprintf(l->name, sizeof l->name, "%s", name);
    l->hints = (struct addrinfo){.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    l->request = (struct gaicb){.ar_name = l->name, .ar_request = &l->hints};
    list[0] = &l->request;
    if (getaddrinfo_a(GAI_NOWAIT, list, 1, NULL) == 0)
        return l;
    free(l);
    return NULL;
}

/* Interval of checks of `stop_fd`, which gai_suspend cannot wait for. */
#define LOOK_MS 100

/* Waits for the end of the lookup, the deadline, or `stop_fd`. Returns the result of getaddrinfo.
 */
static int await(struct pg_lookup *l, int64_t deadline_ms, int stop_fd)
{
    const struct gaicb *const list[1] = {&l->request};
    struct pollfd stop = {.fd = stop_fd, .events = POLLIN};
    int64_t left;

    while (gai_error(&l->request) == EAI_INPROGRESS && (left = deadline_ms - clock_now_ms()) > 0 &&
           poll(&stop, 1, 0) <= 0) {
        struct timespec limit = {.tv_nsec = (left < LOOK_MS ? left : LOOK_MS) * CLOCK_MS_NS};

        gai_suspend(list, 1, &limit);
    }
    return gai_error(&l->request);
}

static void take(const struct addrinfo *found, const char *name, char *addresses, char *names)
{
    size_t n = 0, used = 0, named = 0;

    addresses[0] = names[0] = '\0';
    for (; found != NULL && n < PG_LOOKUP_MOST; found = found->ai_next) {
        char text[64];

        if (getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof text, NULL, 0,
                        NI_NUMERICHOST) != 0)
            continue;
        used += (size_t)snprintf(addresses + used, PG_LOOKUP_MOST * 64 - used, "%s%s", n ? "," : "",
                                 text);
        named += (size_t)snprintf(names + named, PG_LOOKUP_MOST * PG_NAME_SIZE - named, "%s%s",
                                  n ? "," : "", name);
        n++;
    }
}

const char *pg_lookup(struct pg_lookup **lookup, const char *name, int64_t deadline_ms, int stop_fd,
                      char addresses[PG_LOOKUP_MOST * 64],
                      char names[PG_LOOKUP_MOST * PG_NAME_SIZE])
{
    struct pg_lookup *l = *lookup;

    if (l != NULL && strcmp(l->name, name) != 0) {
        pg_lookup_free(l);
        l = NULL;
    }
    *lookup = NULL;
    if (l == NULL && (l = lookup_start(name)) == NULL)
        return "out of memory";
    int error = await(l, deadline_ms, stop_fd);

    if (error == EAI_INPROGRESS) {
        *lookup = l;
        return "timeout: DNS did not answer for PostgreSQL's host in time";
    }
    if (error == 0)
        take(l->request.ar_result, l->name, addresses, names);
    pg_lookup_free(l);
    return error == 0 ? NULL : gai_strerror(error);
}
