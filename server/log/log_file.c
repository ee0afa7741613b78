#include "server/log/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_FILE_MODE 0640

bool log_file_open(const char *path, struct log_file *out)
{
    int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int fd = open(path, flags);

    if (fd < 0 && errno == ENOENT) {
        fd = open(path, flags | O_CREAT | O_EXCL, LOG_FILE_MODE);
        if (fd >= 0)
            fchmod(fd, LOG_FILE_MODE);
        else if (errno == EEXIST)
            fd = open(path, flags);
    }
    if (fd < 0)
        return false;
    *out = log_file_of(fd);
    return true;
}

struct log_file log_file_of(int fd)
{
    struct log_file f = {.fd = fd, .kind = LOG_FILE_PIPE};
    struct stat about;

    if (fstat(fd, &about) != 0)
        return f;
    if (S_ISREG(about.st_mode))
        f.kind = LOG_FILE_DISK;
    else if (S_ISSOCK(about.st_mode))
        f.kind = LOG_FILE_SOCKET;
    return f;
}

/* The whole lines among the first PIPE_BUF bytes. */
static size_t piece_of(const char *bytes, size_t len)
{
    if (len <= PIPE_BUF)
        return len;
    const char *end = memrchr(bytes, '\n', PIPE_BUF);
    return end == NULL ? PIPE_BUF : (size_t)(end - bytes) + 1;
}

/* stderr is shared with others, so it cannot be made O_NONBLOCK; but a pipe or terminal that polls
 * as writable takes PIPE_BUF bytes without waiting (pipe(7)). */
static bool is_ready(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    if (poll(&p, 1, 0) == 1)
        return true;
    errno = EAGAIN;
    return false;
}

size_t log_file_write(const struct log_file *f, const char *bytes, size_t len)
{
    size_t written = 0;

    while (written < len) {
        ssize_t n = -1;
        size_t piece = len - written;

        if (f->kind != LOG_FILE_DISK)
            piece = piece_of(bytes + written, piece);
        if (f->kind == LOG_FILE_SOCKET)
            n = send(f->fd, bytes + written, piece, MSG_NOSIGNAL | MSG_DONTWAIT);
        else if (f->kind == LOG_FILE_DISK || is_ready(f->fd))
            n = write(f->fd, bytes + written, piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        written += (size_t)n;
    }
    return written;
}
