#include "server/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* True with errno where it will not do. */
static bool is_unwanted(mode_t mode, enum file_wanted wanted)
{
    bool pipe = S_ISFIFO(mode) || S_ISSOCK(mode);
    errno = wanted == FILE_PLAIN ? EINVAL : ESPIPE;
    return wanted == FILE_PLAIN ? !S_ISREG(mode) : wanted == FILE_NO_PIPE && pipe;
}

static char *read_open(int fd, size_t most, size_t *len)
{
    char *text = malloc(most + 1);
    ssize_t got = 1;

    for (*len = 0; text != NULL && *len < most && got != 0;) {
        got = read(fd, text + *len, most - *len);
        if (got > 0) {
            *len += (size_t)got;
        } else if (got < 0 && errno != EINTR) {
            int why = errno;
            free(text);
            text = NULL;
            errno = why;
        }
    }
    if (text != NULL)
        text[*len] = '\0';
    return text;
}

char *file_read(const char *path, enum file_wanted wanted, size_t most, size_t *len, mode_t *mode)
{
    struct stat found;
    char *text = NULL;
    int wait = wanted == FILE_ANY ? 0 : O_NONBLOCK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | wait);

    if (fd < 0)
        return NULL;
    if (fstat(fd, &found) == 0 && !is_unwanted(found.st_mode, wanted))
        text = read_open(fd, most, len);
    if (text != NULL && mode != NULL)
        *mode = found.st_mode;
    int why = errno;
    close(fd);
    errno = why;
    return text;
}
