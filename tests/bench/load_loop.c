/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/clock.h"
#include "tests/bench/file.h"

/* load_loop PORT CONNECTIONS SECONDS REQUEST_FILE REPLY_BYTES STATUS: asks 127.0.0.1 again and
 * again on kept connections, as wrk does, where wrk cannot: it waits for the body of a 304 that
 * has a Content-Length (RFC 9110 8.6 allows it). Every reply must have the same length, and begin
 * with the status. Prints requests and time as JSON. */

#define MAX_CONNECTIONS 1024
#define STATUS_BYTES    12 /* "HTTP/1.1 304" */

struct client {
    int fd;
    size_t got; /* bytes of the reply at hand */
};

static unsigned char *request;
static size_t request_len, reply_len;
static char status[STATUS_BYTES + 1];

static void fail(const char *what)
{
    fprintf(stderr, "load_loop: %s\n", what);
    exit(1);
}

static void ask(const struct client *c)
{
    if (send(c->fd, request, request_len, MSG_NOSIGNAL) != (ssize_t)request_len)
        fail("a request was not taken");
}

static void join(struct client *c, int epoll, uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    int yes = 1;

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) != 0)
        fail("cannot connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    ask(c);
}

/* True where a reply is whole; the next request is then on its way. */
static bool take(struct client *c)
{
    char buffer[65536];
    ssize_t got = recv(c->fd, buffer, sizeof buffer, 0);

    if (got <= 0)
        fail("a connection was closed");
    if (c->got == 0 && (got < STATUS_BYTES || memcmp(buffer, status, STATUS_BYTES) != 0))
        fail("another status");
    c->got += (size_t)got;
    if (c->got < reply_len)
        return false;
    if (c->got > reply_len)
        fail("a reply of another length");
    c->got = 0;
    ask(c);
    return true;
}

int main(int argc, char **argv)
{
    static struct client clients[MAX_CONNECTIONS];
    struct epoll_event events[MAX_CONNECTIONS];

    request = argc == 7 ? read_whole(argv[4], &request_len) : NULL;
    int connections = request != NULL ? atoi(argv[2]) : 0;
    if (connections < 1 || connections > MAX_CONNECTIONS) {
        fprintf(stderr,
                "usage: load_loop PORT CONNECTIONS SECONDS REQUEST_FILE REPLY_BYTES STATUS\n");
        return 2;
    }
    reply_len = strtoul(argv[5], NULL, 10);
    snprintf(status, sizeof status, "HTTP/1.1 %.3s", argv[6]);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    uint64_t done = 0;
    double began = clock_ms(CLOCK_MONOTONIC);
    double end = began + 1000 * atof(argv[3]);

    for (int i = 0; i < connections; i++)
        join(&clients[i], epoll, (uint16_t)atoi(argv[1]));
    while (clock_ms(CLOCK_MONOTONIC) < end) {
        int count = epoll_wait(epoll, events, MAX_CONNECTIONS, 1000);
        for (int i = 0; i < count; i++)
            done += take(events[i].data.ptr);
    }
    printf("{\"requests\": %llu, \"ms\": %.3f}\n", (unsigned long long)done,
           clock_ms(CLOCK_MONOTONIC) - began);
    return 0;
}
