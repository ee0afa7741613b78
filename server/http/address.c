/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses and binds listening addresses, with a sentence for each failure. */
#include "server/http/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A client that finds the queue full retries a second later. So the queue is as long as the
 * kernel's default allows (net.core.somaxconn since Linux 5.4), which bounds it in any case. */
#define BACKLOG 4096

/* getaddrinfo accepts 99999, as 34463. */
static bool is_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits <= 5 && text[digits] == '\0' && strtoul(text, NULL, 10) <= 65535;
}

/* Splits "A:P" or "[A]:P". */
static bool split(const char *address, char *host, size_t host_size, const char **port)
{
    const char *colon = strrchr(address, ':');
    if (colon == NULL || !is_port(colon + 1))
        return false;
    const char *start = address;
    size_t len = (size_t)(colon - address);
    if (len >= 2 && start[0] == '[' && start[len - 1] == ']') {
        start++;
        len -= 2;
    } else if (memchr(start, ':', len) != NULL) {
        return false; /* IPv6 without brackets: which colon is the port's? */
    }
    if (len >= host_size)
        return false;
    memcpy(host, start, len);
    host[len] = '\0';
    *port = colon + 1;
    return true;
}

static int open_socket(const struct addrinfo *info)
{
    int on = 1, off = 0;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (info->ai_family == AF_INET6) /* "[::]" accepts IPv4 too, whatever the system's default */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

void address_describe(int fd, char text[ADDRESS_TEXT_SIZE])
{
    struct sockaddr_storage bound;
    socklen_t len = sizeof bound;
    char host[INET6_ADDRSTRLEN] = "";

    memset(&bound, 0, sizeof bound);
    getsockname(fd, (struct sockaddr *)&bound, &len);
    if (bound.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&bound;
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        snprintf(text, ADDRESS_TEXT_SIZE, "[%s]:%u", host, ntohs(in6->sin6_port));
    } else {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&bound;
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        snprintf(text, ADDRESS_TEXT_SIZE, "%s:%u", host, ntohs(in->sin_port));
    }
}

const char *address_advice(int error)
{
    switch (error) {
    case EADDRINUSE:
        return "; another process listens there: stop it, or name another port";
    case EADDRNOTAVAIL:
        return "; no interface of this machine has that address";
    case EACCES:
        return "; ports below 1024 need root, or CAP_NET_BIND_SERVICE (AmbientCapabilities in a "
               "systemd unit)";
    case EMFILE:
    case ENFILE:
        return "; raise the limit of open files (ulimit -n, LimitNOFILE in a systemd unit)";
    default:
        return "";
    }
}

int address_bind(const char *address, char *why, size_t why_size)
{
    char host[256];
    const char *port;
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;

    if (!split(address, host, sizeof host, &port)) {
        snprintf(why, why_size, "%s: not an address with a port, such as 127.0.0.1:8080", address);
        return -1;
    }
    int error = getaddrinfo(host[0] == '\0' ? NULL : host, port, &hints, &found);
    if (error != 0) {
        snprintf(why, why_size, "%s: %s", address, gai_strerror(error));
        return -1;
    }
    int fd = open_socket(found);
    if (fd < 0)
        snprintf(why, why_size, "%s: %s%s", address, strerror(errno), address_advice(errno));
    freeaddrinfo(found);
    return fd;
}

bool address_listen_on(int fd)
{
    return listen(fd, BACKLOG) == 0;
}

int address_listen(const char *address, char text[ADDRESS_TEXT_SIZE], char *why, size_t why_size)
{
    int fd = address_bind(address, why, why_size);
    if (fd < 0)
        return -1;
    if (!address_listen_on(fd)) {
        snprintf(why, why_size, "%s: %s%s", address, strerror(errno), address_advice(errno));
        close(fd);
        return -1;
    }
    address_describe(fd, text);
    return fd;
}

bool address_check_given(int fd, char *why, size_t why_size)
{
    struct sockaddr_storage bound = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof bound, size = sizeof(int);
    int type = 0, listens = 0;

    if (getsockname(fd, (struct sockaddr *)&bound, &len) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
        snprintf(why, why_size, "is not a socket: %s", strerror(errno));
    else if (bound.ss_family != AF_INET && bound.ss_family != AF_INET6)
        snprintf(why, why_size, "is not an IPv4 or IPv6 socket");
    else if (type != SOCK_STREAM ||
             getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0)
        snprintf(why, why_size, "is not a listening TCP socket (Accept=no)");
    else
        return true;
    return false;
}

void address_peer(const struct sockaddr *address, char text[INET6_ADDRSTRLEN])
{
    text[0] = '\0';
    if (address == NULL)
        return;
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
        inet_ntop(AF_INET, &in->sin_addr, text, INET6_ADDRSTRLEN);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;
        if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
            inet_ntop(AF_INET, &in6->sin6_addr.s6_addr[12], text, INET6_ADDRSTRLEN);
        else
            inet_ntop(AF_INET6, &in6->sin6_addr, text, INET6_ADDRSTRLEN);
    }
}

/* Connections of each address, in a search tree. */

#define IPV6_CLIENT_BYTES 8 /* of 16: RFC 6177 gives a site at least a /64 */

struct peer {
    uint8_t address[16]; /* first: IPv4 as ::ffff:a.b.c.d */
    uint32_t count;
};

static int compare(const void *a, const void *b)
{
    return memcmp(((const struct peer *)a)->address, ((const struct peer *)b)->address,
                  sizeof((const struct peer *)a)->address);
}

static void read_address(const struct sockaddr *address, struct peer *out)
{
    memset(out, 0, sizeof *out);
    if (address == NULL)
        return;
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
        out->address[10] = out->address[11] = 0xff;
        memcpy(out->address + 12, &in->sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;
        bool mapped = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
        memcpy(out->address, &in6->sin6_addr, mapped ? 16 : IPV6_CLIENT_BYTES);
    }
}

struct peer *peers_enter(struct peers *p, const struct sockaddr *address, uint32_t most)
{
    struct peer wanted;

    read_address(address, &wanted);
    struct peer *const *found = tfind(&wanted, &p->tree, compare);
    if (found != NULL) {
        if ((*found)->count >= most)
            return NULL;
        (*found)->count++;
        return *found;
    }
    struct peer *made = malloc(sizeof *made);
    if (made == NULL)
        return NULL;
    *made = wanted;
    made->count = 1;
    if (most == 0 || tsearch(made, &p->tree, compare) == NULL) {
        free(made);
        return NULL;
    }
    return made;
}

uint32_t peer_count(const struct peer *peer)
{
    return peer->count;
}

void peers_leave(struct peers *p, struct peer *peer)
{
    if (peer == NULL || --peer->count > 0)
        return;
    tdelete(peer, &p->tree, compare);
    free(peer);
}
