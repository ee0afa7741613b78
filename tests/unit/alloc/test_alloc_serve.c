/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The server: where memory runs out while it starts, serves or stops, it ends with a sentence and
 * status 1, or serves; SIGTERM ends it with status 0, and the next start serves what is in the
 * catalogue. */
#include "tests/unit/alloc/alloc.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "server/cli/cli.h"
#include "server/serve.h"
#include "tests/unit/lib/scratch.h"

#define ORIGIN "https://www.example.com"

static char folder[SCRATCH_MAX_BYTES];

/* A thread that was made while there was memory reads what the servers print, and is their client.
 */
static struct {
    int printed[2];
    pthread_t thread;
    atomic_int status; /* of the reply to the last one that was ready; 0: none, or it was cut */
} client;

static int connect_to(const char *address)
{
    const char *colon = strchr(address, ':');
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(colon + 1)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = 20};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The status of a reply to a GET; 0: the connection was ended without one. */
static int get(const char *address, const char *target, char *reply, size_t size)
{
    char request[256];
    size_t len = 0;
    ssize_t n;
    int status = 0, fd = connect_to(address);
    if (fd < 0)
        return 0;
    snprintf(request, sizeof request,
             "GET %s HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n", target);
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) > 0)
        while (len < size - 1 && (n = recv(fd, reply + len, size - 1 - len, 0)) > 0)
            len += (size_t)n;
    reply[len] = '\0';
    close(fd);
    return sscanf(reply, "HTTP/1.1 %d", &status) == 1 ? status : 0;
}

/* For each server that is ready: asks for the page, and ends the server. */
static void *watch(void *context)
{
    char line[256], reply[8192];
    (void)context;
    for (;;) {
        size_t len = 0;
        while (len < sizeof line - 1 && read(client.printed[0], line + len, 1) == 1 &&
               line[len] != '\n')
            len++;
        line[len] = '\0';
        char *address = strstr(line, "public=http://");
        if (address == NULL)
            return NULL;
        address += strlen("public=http://");
        address[strcspn(address, " ")] = '\0';
        int status = get(address, "/sitemap_index.xml", reply, sizeof reply);
        if (status == 200 && strstr(reply, "HTTP/1.1 200 OK") == NULL)
            status = -1;
        atomic_store(&client.status, status);
        kill(getpid(), SIGTERM);
    }
}

/* Runs a command with what it writes going elsewhere; `*reported`: whether stderr got a sentence.
 */
static int run_program(char *const *words, bool *reported)
{
    char heard[96];
    char *argv[16] = {(char *)"sitemapd"};
    struct stat said;
    int argc = 1;
    for (; words[argc - 1] != NULL; argc++)
        argv[argc] = words[argc - 1];
    snprintf(heard, sizeof heard, "%s/stderr", folder);
    fflush(stdout);
    int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    int sentences = open(heard, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    dup2(client.printed[1], STDOUT_FILENO);
    dup2(sentences, STDERR_FILENO);
    int status = cli_main(argc, argv, app_serve);
    *reported = fstat(sentences, &said) == 0 && said.st_size > 0;
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(out);
    close(err);
    close(sentences);
    return status;
}

static bool serve(void *context)
{
    bool reported;
    atomic_store(&client.status, 0);
    int status = run_program(context, &reported);
    alloc_disarm();
    int replied = atomic_load(&client.status);
    if (status != EXIT_DONE) {
        assert_in_range(status, EXIT_COULD_NOT, EXIT_USAGE);
        if (!reported)
            fail_msg("failed without a word");
    }
    if (replied != 0 && replied != 200 && replied != 503)
        fail_msg("answered %d", replied);
    return status == EXIT_DONE && replied == 200;
}

static void test_serve(void **state)
{
    char database[96], source[128], access_log[96];
    bool reported;
    snprintf(database, sizeof database, "%s/catalogue.db", folder);
    snprintf(access_log, sizeof access_log, "%s/access.log", folder);
    snprintf(source, sizeof source, "%s/files=" ORIGIN "/files/", folder);
    setenv("SITEMAPD_DATABASE", database, 1);
    setenv("SITEMAPD_TOKEN", "0123456789012345678901234567890123456789", 1);
    setenv("SITEMAPD_LOG_ACCESS_LOG", access_log, 1);
    char path[128];
    snprintf(path, sizeof path, "%s/files", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    alloc_write_file(folder, "files/list.txt", ORIGIN "/files/1\n" ORIGIN "/files/2\n");
    char *const add[] = {(char *)"add", (char *)ORIGIN "/a.xml", NULL};
    char *const site[] = {(char *)"site", (char *)"add", (char *)ORIGIN, NULL};
    char *words[] = {(char *)"serve",
                     (char *)"--listen",
                     (char *)"127.0.0.1:0",
                     (char *)"--admin-listen",
                     (char *)"127.0.0.1:0",
                     (char *)"--source",
                     source,
                     NULL};
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ended, NULL);
    /* The commands print too; their words are no server's. */
    assert_int_equal(pipe(client.printed), 0);
    int real = client.printed[1];
    client.printed[1] = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_int_equal(run_program(site, &reported), EXIT_DONE);
    assert_int_equal(run_program(add, &reported), EXIT_DONE);
    close(client.printed[1]);
    client.printed[1] = real;
    assert_int_equal(pthread_create(&client.thread, NULL, watch, NULL), 0);
    alloc_sweep("serve", serve, words);
    close(client.printed[1]);
    pthread_join(client.thread, NULL);
    close(client.printed[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_serve)};
    scratch_make(folder, "sitemapd-alloc-serve");
    unsetenv("SITEMAPD_CONFIG");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    signal(SIGCHLD, SIG_DFL); /* the server leaves children to the kernel; system() wants its own */
    scratch_remove(folder);
    return failed;
}
