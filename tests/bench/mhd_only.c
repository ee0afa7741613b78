/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <microhttpd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/bench/file.h"

/* mhd_only HEADERS BODY MEMORY memory|descriptor|once: libmicrohttpd with one reply that is made
 * before, BODY with the lines of HEADERS (Name: value), for whatever is asked; 304 with those of
 * them that a 304 has to clients that send If-None-Match. What a server on this library cannot do
 * without: nothing is looked up or checked. One thread, MEMORY bytes for a connection. The body is
 * sent from memory, or by the library's sendfile from a descriptor of memory; `once`: from memory,
 * set up for a connection for each request. Prints its port, and ends on SIGTERM. */

#define MAX_HEADERS 4096 /* bytes */

struct replies {
    struct MHD_Response *whole, *not_modified;
};

static enum MHD_Result answer(void *cls, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
    static int begun;
    const struct replies *replies = cls;
    bool conditional;

    (void)url, (void)method, (void)version, (void)upload, (void)upload_size;
    if (*state == NULL) { /* the header alone: a reply now would end the connection */
        *state = &begun;
        return MHD_YES;
    }
    conditional = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "If-None-Match") != NULL;
    return conditional ? MHD_queue_response(connection, 304, replies->not_modified)
                       : MHD_queue_response(connection, 200, replies->whole);
}

/* RFC 9110 15.4.5 */
static bool is_of_304(const char *name)
{
    return strcmp(name, "ETag") == 0 || strcmp(name, "Last-Modified") == 0 ||
           strcmp(name, "Vary") == 0 || strcmp(name, "Cache-Control") == 0;
}

static struct MHD_Response *from_descriptor(const unsigned char *body, size_t len)
{
    int fd = memfd_create("body", MFD_CLOEXEC);

    if (fd < 0 || write(fd, body, len) != (ssize_t)len)
        return NULL;
    return MHD_create_response_from_fd64(len, fd);
}

static bool make_replies(struct replies *out, const char *headers_path, const char *body_path,
                         bool descriptor)
{
    static char headers[MAX_HEADERS + 1];
    size_t headers_len = 0, body_len = 0;
    unsigned char *text = read_whole(headers_path, &headers_len);
    unsigned char *body = read_whole(body_path, &body_len);

    if (text == NULL || body == NULL || headers_len > MAX_HEADERS)
        return false;
    memcpy(headers, text, headers_len);
    out->whole = descriptor
                     ? from_descriptor(body, body_len)
                     : MHD_create_response_from_buffer(body_len, body, MHD_RESPMEM_PERSISTENT);
    out->not_modified = MHD_create_response_from_buffer(body_len, body, MHD_RESPMEM_PERSISTENT);
    if (out->whole == NULL || out->not_modified == NULL)
        return false;
    for (char *line = strtok(headers, "\r\n"); line != NULL; line = strtok(NULL, "\r\n")) {
        char *colon = strstr(line, ": ");
        if (colon == NULL)
            return false;
        *colon = '\0';
        if (MHD_add_response_header(out->whole, line, colon + 2) != MHD_YES)
            return false;
        if (is_of_304(line) &&
            MHD_add_response_header(out->not_modified, line, colon + 2) != MHD_YES)
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct replies replies;
    bool descriptor = argc == 5 && strcmp(argv[4], "descriptor") == 0;
    bool once = argc == 5 && strcmp(argv[4], "once") == 0;
    bool made = argc == 5 && make_replies(&replies, argv[1], argv[2], descriptor);
    size_t memory = argc == 5 ? (size_t)strtoul(argv[3], NULL, 10) : 0;
    sigset_t stop;
    int received;

    if (!made || memory == 0) {
        fprintf(stderr, "usage: mhd_only HEADERS BODY MEMORY memory|descriptor|once\n");
        return 2;
    }
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | (once ? MHD_USE_TURBO : 0), 0, NULL, NULL, answer, &replies,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory, MHD_OPTION_END);
    if (daemon == NULL) {
        perror("mhd_only: MHD_start_daemon");
        return 1;
    }
    printf("%u\n", MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);
    sigwait(&stop, &received);
    MHD_stop_daemon(daemon);
    MHD_destroy_response(replies.whole);
    MHD_destroy_response(replies.not_modified);
    return 0;
}
