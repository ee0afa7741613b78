/* Asks a running server's /readyz, with an HTTP client that is just enough for that: the image
 * needs no curl. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "server/cli/commands.h"

#define TIMEOUT_MS   5000
#define ANSWER_SIZE  8192
#define DEFAULT_PATH "/readyz"

struct target {
    char url[300]; /* to be shown */
    char host[256];
    char port[6];
    char path[256];
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Splits `host[:port]` (IPv6 in brackets). False where malformed. */
static bool read_authority(const char *text, size_t len, struct target *t)
{
    const char *end = text + len, *colon, *host_end;

    if (len > 0 && text[0] == '[') {
        host_end = memchr(text, ']', len);
        if (host_end == NULL)
            return false;
        text++;
        colon = host_end + 1;
    } else {
        colon = memchr(text, ':', len);
        host_end = colon = colon != NULL ? colon : end;
    }
    if (host_end == text || (size_t)(host_end - text) >= sizeof t->host ||
        (colon != end && *colon != ':'))
        return false;
    snprintf(t->host, sizeof t->host, "%.*s", (int)(host_end - text), text);
    if (colon == end) {
        strcpy(t->port, "80");
        return true;
    }
    if (end - colon < 2 || (size_t)(end - colon) > sizeof t->port)
        return false;
    snprintf(t->port, sizeof t->port, "%.*s", (int)(end - colon - 1), colon + 1);
    return strspn(t->port, "0123456789") == strlen(t->port);
}

/* A server that listens everywhere is asked on this machine. */
static void replace_wildcard(struct target *t)
{
    if (strcmp(t->host, "0.0.0.0") == 0)
        strcpy(t->host, "127.0.0.1");
    else if (strcmp(t->host, "::") == 0)
        strcpy(t->host, "::1");
}

/* Reads `http://host[:port][/path]`, or the bare `host:port` of a listener. */
static int read_target(const char *text, struct target *t)
{
    const char *rest = strncasecmp(text, "http://", 7) == 0 ? text + 7 : text;
    size_t len = strcspn(rest, "/");
    bool v6;

    if (strncasecmp(text, "https://", 8) == 0)
        return cli_misuse(text, "the admin listener speaks http; see the reverse proxy for https");
    if (!read_authority(rest, len, t) || strlen(rest + len) >= sizeof t->path)
        return cli_misuse(text, "must be a URL, as http://127.0.0.1:8081");
    for (const char *p = rest + len; *p != '\0'; p++)
        if (*p <= ' ' || *p > '~')
            return cli_misuse(text, "must be a URL, as http://127.0.0.1:8081");
    replace_wildcard(t);
    if (strcmp(t->port, "0") == 0)
        return cli_misuse(text, "port 0 is another at each start; give the URL that is served");
    strcpy(t->path, rest[len] == '\0' || rest[len + 1] == '\0' ? DEFAULT_PATH : rest + len);
    v6 = strchr(t->host, ':') != NULL;
    snprintf(t->url, sizeof t->url, "http://%s%s%s:%s", v6 ? "[" : "", t->host, v6 ? "]" : "",
             t->port);
    return EXIT_DONE;
}

/* Waits until `fd` is ready, 0; or an errno. */
static int wait_for(int fd, short events, int64_t deadline)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        int64_t left = deadline - now_ms();
        int n = left > 0 ? poll(&p, 1, (int)left) : 0;

        if (n > 0)
            return 0;
        if (n == 0)
            return ETIMEDOUT;
        if (errno != EINTR)
            return errno;
    }
}

static int connect_one(const struct addrinfo *address, int64_t deadline, int *out)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error = 0;
    socklen_t len = sizeof error;

    if (fd < 0)
        return errno;
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0) {
        error = errno;
        if (error == EINPROGRESS) {
            error = wait_for(fd, POLLOUT, deadline);
            if (error == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
                error = errno;
        }
    }
    if (error != 0) {
        close(fd);
        return error;
    }
    *out = fd;
    return 0;
}

/* Connects to the first address that answers; told where none does. */
static int connect_to(const struct target *t, int64_t deadline, int *out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int error = getaddrinfo(t->host, t->port, &hints, &found);

    if (error != 0)
        return cli_fail(t->url, "%s", gai_strerror(error));
    for (struct addrinfo *a = found; a != NULL; a = a->ai_next) {
        error = connect_one(a, deadline, out);
        if (error == 0)
            break;
    }
    freeaddrinfo(found);
    return error == 0 ? EXIT_DONE : cli_fail(t->url, "%s", strerror(error));
}

static int send_request(int fd, const struct target *t, int64_t deadline)
{
    char request[1024];
    size_t sent = 0, len;
    const char *host = strstr(t->url, "//") + 2;

    snprintf(request, sizeof request,
             "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: sitemapd-healthcheck/%s\r\n"
             "Accept: application/json\r\nConnection: close\r\n\r\n",
             t->path, host, SITEMAPD_VERSION);
    len = strlen(request);
    while (sent < len) {
        int error = wait_for(fd, POLLOUT, deadline);
        ssize_t n = error == 0 ? send(fd, request + sent, len - sent, MSG_NOSIGNAL) : -1;

        if (error == 0 && n < 0 && errno != EAGAIN && errno != EINTR)
            error = errno;
        if (error != 0)
            return cli_fail(t->url, "%s", strerror(error));
        if (n > 0)
            sent += (size_t)n;
    }
    return EXIT_DONE;
}

/* Reads to the end, or as much as finds room. */
static int read_answer(int fd, const struct target *t, int64_t deadline, char *out, size_t size)
{
    size_t len = 0;

    while (len + 1 < size) {
        int error = wait_for(fd, POLLIN, deadline);
        ssize_t n = error == 0 ? recv(fd, out + len, size - 1 - len, 0) : -1;

        if (error == 0 && n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (error == 0 && n < 0)
            error = errno;
        if (error != 0)
            return cli_fail(t->url, "%s", strerror(error));
        if (n == 0)
            break;
        len += (size_t)n;
    }
    out[len] = '\0';
    return EXIT_DONE;
}

/* Says on stdout or stderr what was answered, body included: it has the reasons. */
static int judge_answer(const struct target *t, const char *answer)
{
    char line[ANSWER_SIZE];
    unsigned status;
    const char *body = strstr(answer, "\r\n\r\n");

    if (sscanf(answer, "HTTP/1.%*1[01] %3u", &status) != 1)
        return cli_fail(t->url, "answers something other than HTTP");
    body = body != NULL ? body + 4 : "";
    if (status != 200)
        return cli_fail(t->url, "%s answers %u %.*s", t->path, status, (int)strcspn(body, "\n"),
                        body);
    printf("%s: ", t->url);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(body, "\r\n"), body);
    cli_print_escaped(stdout, *line != '\0' ? line : "ok");
    putchar('\n');
    return EXIT_DONE;
}

int command_healthcheck(struct cli *cli)
{
    const struct arguments *a = &cli->arguments;
    int64_t deadline = now_ms() + TIMEOUT_MS;
    char answer[ANSWER_SIZE];
    struct target target;
    int status = EXIT_DONE, fd = -1;

    if (a->word_count == 0)
        status = session_read_config(cli, NULL, NULL);
    if (status == EXIT_DONE)
        status = read_target(a->word_count > 0 ? a->words[0] : cli->config.admin_listen, &target);
    if (status == EXIT_DONE)
        status = connect_to(&target, deadline, &fd);
    if (status != EXIT_DONE)
        return status;
    status = send_request(fd, &target, deadline);
    if (status == EXIT_DONE)
        status = read_answer(fd, &target, deadline, answer, sizeof answer);
    close(fd);
    return status == EXIT_DONE ? judge_answer(&target, answer) : status;
}
