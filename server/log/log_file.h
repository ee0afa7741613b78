/* A file that lines are appended to: a regular file, a pipe, a terminal, the journal's socket. */
#ifndef SITEMAPD_LOG_LOG_FILE_H
#define SITEMAPD_LOG_LOG_FILE_H

#include <stdbool.h>
#include <stddef.h>

enum log_file_kind {
    LOG_FILE_DISK, /* takes any piece whole */
    LOG_FILE_PIPE, /* also a terminal: pieces of PIPE_BUF bytes are whole among others' */
    LOG_FILE_SOCKET
};

struct log_file {
    int fd;
    enum log_file_kind kind;
};

/* Opens a path to append to, made where it is missing: 0640 whatever the umask is, so that a log
 * shipper in the group may read it. Does not wait for a pipe's reader. False with errno. */
bool log_file_open(const char *path, struct log_file *out);
/* An open descriptor; borrowed. */
struct log_file log_file_of(int fd);
/* Writes as much as is taken without waiting: whole lines of `bytes`, which are lines of at most
 * 4096 bytes each; a regular file that fills up may take a part of one. The bytes taken; 0 with
 * errno, EAGAIN where a reader is slow. */
size_t log_file_write(const struct log_file *f, const char *bytes, size_t len);

#endif
