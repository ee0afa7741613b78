/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Divides the file descriptors between the listeners, and finds sockets that systemd passed. */
#include "server/sockets.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/http/address.h"
#include "server/log/log.h"

/* For the log, the listeners, the catalogue's connections (each with its file and write-ahead log),
 * SQLite's temporary files, and what libraries open. */
#define RESERVED 96u
/* For each listener thread, on two listeners: its epoll set, the library's, and its wake-up
 * (server/http/listening.c). */
#define OF_THREAD 6u
/* For an admin connection: its socket, and the file that its list is spooled to. */
#define OF_ADMIN_CONNECTION 2u
/* If the limit is low, the admin listener gets this fraction: it has few clients. */
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
        return wanted; /* the limit is unknown */
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

#define FIRST_FD 3 /* SD_LISTEN_FDS_START */

/* How many sockets were passed to this process. Clears the environment variables, so that no other
 * process uses them. */
static int given_count(char **names)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    const char *given = getenv("LISTEN_FDNAMES");
    int fds = 0;

    if (pid != NULL && count != NULL && strtol(pid, NULL, 10) == getpid())
        fds = (int)strtol(count, NULL, 10);
    *names = strdup(fds > 0 && given != NULL ? given : "");
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return fds;
}

/* The listener that a socket of this name is for; NULL if none exists, or it has one already. */
static struct listener_socket *place_for(struct sockets *s, const char *name)
{
    bool other = strcmp(name, "public") != 0 && strcmp(name, "admin") != 0;

    if (strcmp(name, "public") == 0 || (other && s->public.fd < 0))
        return s->public.fd < 0 ? &s->public : NULL;
    return s->admin.fd < 0 ? &s->admin : NULL;
}

static bool use_socket(struct sockets *s, int fd, const char *name)
{
    char why[256], what[64];
    struct listener_socket *place = place_for(s, name);

    snprintf(what, sizeof what, "socket %d (%.32s)", fd, *name != '\0' ? name : "no name");
    if (place == NULL) {
        log_failure(what, "too many sockets: systemd can pass one public and one admin socket");
        return false;
    }
    if (!address_check_given(fd, why, sizeof why)) {
        log_failure(what, "%s", why);
        return false;
    }
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    *place = (struct listener_socket){.fd = fd, .given = true};
    return true;
}

static bool use_given_sockets(struct sockets *s)
{
    char *names, *rest;
    int count = given_count(&names);
    bool done = names != NULL;

    if (!done)
        log_failure("sockets", "out of memory");
    rest = names;
    for (int i = 0; done && i < count; i++) {
        char *name = rest == NULL ? "" : strsep(&rest, ":");
        done = use_socket(s, FIRST_FD + i, name);
    }
    free(names);
    return done;
}

static bool open_one(const char *label, const char *address, struct listener_socket *out)
{
    char why[256];

    if (out->fd >= 0)
        return true;
    out->fd = address_bind(address, why, sizeof why);
    if (out->fd < 0)
        log_failure(label, "cannot listen: %s", why);
    return out->fd >= 0;
}

bool sockets_open(const struct config *config, struct sockets *out)
{
    *out = (struct sockets){{.fd = -1}, {.fd = -1}};
    return use_given_sockets(out) && open_one("admin", config->admin_listen, &out->admin) &&
           open_one("public", config->listen, &out->public);
}

void sockets_close(struct sockets *s)
{
    if (s->public.fd >= 0)
        close(s->public.fd);
    if (s->admin.fd >= 0)
        close(s->admin.fd);
    s->public.fd = s->admin.fd = -1;
}
