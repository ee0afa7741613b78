/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/file.h"

/* bare_loop FILE: answers whatever ends with an empty line with the bytes of FILE: no parsing, no
 * allocation, no date. What a server on this socket interface cannot do without: one epoll_wait,
 * one recv and one send. Prints its port. Sends block, so a client must read what it asked for. */

#define MAX_EVENTS 256
#define MAX_FDS    65536

static unsigned char matched[MAX_FDS]; /* bytes of CR LF CR LF seen, by descriptor */

static int listen_anywhere(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 1024) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        perror("bare_loop: listen");
        exit(1);
    }
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static bool send_all(int fd, const unsigned char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        len -= (size_t)sent;
    }
    return true;
}

/* One reply for each request that ends in what has arrived. False: close. */
static bool serve(int fd, const unsigned char *reply, size_t reply_len)
{
    static const char end[4] = "\r\n\r\n";
    char buffer[16384];
    ssize_t got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);

    if (got <= 0)
        return false;
    for (ssize_t i = 0; i < got; i++) {
        unsigned char at = matched[fd];
        at = buffer[i] == end[at] ? at + 1 : buffer[i] == '\r';
        if (at == sizeof end) {
            at = 0;
            if (!send_all(fd, reply, reply_len))
                return false;
        }
        matched[fd] = at;
    }
    return true;
}

static void welcome(int epoll, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    int yes = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (fd >= MAX_FDS || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        close(fd);
        return;
    }
    matched[fd] = 0;
}

int main(int argc, char **argv)
{
    size_t len = 0;
    unsigned char *reply = argc == 2 ? read_whole(argv[1], &len) : NULL;

    if (reply == NULL) {
        fprintf(stderr, "usage: bare_loop FILE\n");
        return 2;
    }
    int listener = listen_anywhere();
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event events[MAX_EVENTS] = {{.events = EPOLLIN, .data.fd = listener}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &events[0]);
    for (;;) {
        int count = epoll_wait(epoll, events, MAX_EVENTS, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                welcome(epoll, listener);
            else if (!serve(fd, reply, len))
                close(fd);
        }
    }
}
