#include "server/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* The protocol is one datagram; libsystemd would bring a dozen libraries for it. */
static void send_text(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = path == NULL ? 0 : strlen(path);

    if (len < 2 || len >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(to.sun_path, path, len);
    if (path[0] == '@') /* abstract: its length counts, and there is no NUL at its end */
        to.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    ssize_t sent = sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&to, size);
    (void)sent; /* a manager that does not listen loses nothing but this */
    close(fd);
}

void notify_ready(const char *status)
{
    char text[512];
    snprintf(text, sizeof text, "READY=1\nSTATUS=%s\n", status);
    send_text(text);
}

void notify_reloading(void)
{
    struct timespec now;
    char text[96];
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%llu\n",
             (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000);
    send_text(text);
}

void notify_stopping(const char *status)
{
    char text[512];
    snprintf(text, sizeof text, "STOPPING=1\nSTATUS=%s\n", status);
    send_text(text);
}

void notify_alive(void)
{
    send_text("WATCHDOG=1\n");
}

uint32_t notify_watchdog_ms(void)
{
    const char *period = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (period == NULL || (pid != NULL && strtol(pid, NULL, 10) != getpid()))
        return 0;
    unsigned long long ms = strtoull(period, NULL, 10) / 1000;
    return ms > UINT32_MAX ? UINT32_MAX : (uint32_t)ms;
}
