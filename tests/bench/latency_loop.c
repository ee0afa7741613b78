/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/clock.h"
#include "tests/bench/file.h"

/* latency_loop PORT SECONDS RATE REQUEST_FILE REPLY_BYTES: asks 127.0.0.1 RATE times a second over
 * a few kept connections, at times fixed beforehand, and prints the quantiles of the time from when
 * a request was due to when its reply was whole. A server that stands still is so charged with
 * every request that it kept waiting, not only with the one that it had. SECONDS 0: until standard
 * input ends. Every reply must have the same length. */

#define CLIENTS     8
#define MAX_SAMPLES 10000000u
#define SLACK_MS    60000.0 /* a reply later than this does not count */

struct client {
    int fd;
    bool busy;
    double due;
    size_t got;
};

static unsigned char *request;
static size_t request_len, reply_len;
static float *samples;
static size_t sample_count;

static void fail(const char *what)
{
    fprintf(stderr, "latency_loop: %s\n", what);
    exit(1);
}

static int connect_to(const char *port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        fail("cannot connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void ask(struct client *c, double due)
{
    if (send(c->fd, request, request_len, MSG_NOSIGNAL) != (ssize_t)request_len)
        fail("cannot send");
    c->busy = true;
    c->due = due;
    c->got = 0;
}

static void take(struct client *c)
{
    static unsigned char buffer[65536];
    ssize_t n = recv(c->fd, buffer, sizeof buffer, MSG_DONTWAIT);

    if (n <= 0)
        fail("the connection was closed");
    c->got += (size_t)n;
    if (c->got > reply_len)
        fail("a reply of another length");
    if (c->got < reply_len)
        return;
    c->busy = false;
    if (sample_count < MAX_SAMPLES)
        samples[sample_count++] = (float)(clock_ms(CLOCK_MONOTONIC) - c->due);
}

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double quantile(double q)
{
    return (double)samples[(size_t)(q * (double)(sample_count - 1))] * 1000;
}

static void print(void)
{
    if (sample_count == 0)
        fail("no reply");
    qsort(samples, sample_count, sizeof *samples, by_size);
    printf("{\"requests\": %zu, \"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, "
           "\"max_us\": %.1f}\n",
           sample_count, quantile(0.5), quantile(0.99), quantile(0.999), quantile(1));
}

/* Sends what is due on a free connection; returns when the next is due. */
static double ask_due(struct client *clients, double *next, double step, double end)
{
    double now = clock_ms(CLOCK_MONOTONIC);

    for (int i = 0; i < CLIENTS && *next <= now && *next < end; i++) {
        if (!clients[i].busy) {
            ask(&clients[i], *next);
            *next += step;
        }
    }
    return *next;
}

static int busy(const struct client *clients)
{
    int count = 0;

    for (int i = 0; i < CLIENTS; i++)
        count += clients[i].busy;
    return count;
}

int main(int argc, char **argv)
{
    struct client clients[CLIENTS] = {0};
    struct pollfd fds[CLIENTS + 1];

    if (argc != 6 || (request = read_whole(argv[4], &request_len)) == NULL) {
        fprintf(stderr, "usage: latency_loop PORT SECONDS RATE REQUEST_FILE REPLY_BYTES\n");
        return 2;
    }
    reply_len = strtoul(argv[5], NULL, 10);
    samples = malloc(MAX_SAMPLES * sizeof *samples);
    if (samples == NULL)
        fail("out of memory");
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].fd = connect_to(argv[1]);
        fds[i] = (struct pollfd){.fd = clients[i].fd, .events = POLLIN};
    }
    fds[CLIENTS] = (struct pollfd){.fd = atoi(argv[2]) == 0 ? STDIN_FILENO : -1, .events = POLLIN};

    double step = 1000.0 / atof(argv[3]);
    double next = clock_ms(CLOCK_MONOTONIC);
    double end = atoi(argv[2]) == 0 ? 1e18 : next + atof(argv[2]) * 1000;
    while (next < end || busy(clients) > 0) {
        double wait = ask_due(clients, &next, step, end) - clock_ms(CLOCK_MONOTONIC);
        if (next >= end || busy(clients) == CLIENTS)
            wait = SLACK_MS; /* a reply is what comes next */
        else if (wait < 0)
            wait = 0;
        struct timespec pause = {.tv_sec = (time_t)(wait / 1000),
                                 .tv_nsec =
                                     (long)((wait - 1000 * (double)(time_t)(wait / 1000)) * 1e6)};
        int ready = ppoll(fds, CLIENTS + 1, &pause, NULL);
        if (ready == 0 && wait >= SLACK_MS)
            fail("no reply for a minute");
        for (int i = 0; ready > 0 && i < CLIENTS; i++)
            if (fds[i].revents != 0)
                take(&clients[i]);
        if (ready > 0 && fds[CLIENTS].revents != 0)
            end = next;
    }
    print();
    return 0;
}
