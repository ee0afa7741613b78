#include "server/cli/ink.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PLAIN_WIDTH 80
#define WIDTH_MIN   60
#define WIDTH_MAX   100

static bool shows_colours(FILE *to)
{
    const char *term = getenv("TERM"), *none = getenv("NO_COLOR");

    return term != NULL && *term != '\0' && strcmp(term, "dumb") != 0 &&
           (none == NULL || *none == '\0') && isatty(fileno(to));
}

const char *ink_on(FILE *to, enum ink ink)
{
    static const char *const codes[] = {
        [INK_HEADING] = "\x1b[1m",  [INK_CODE] = "\x1b[36m",    [INK_GOOD] = "\x1b[32m",
        [INK_WARNING] = "\x1b[33m", [INK_WRONG] = "\x1b[1;31m", [INK_FAINT] = "\x1b[2m",
    };

    return shows_colours(to) ? codes[ink] : "";
}

const char *ink_off(FILE *to)
{
    return shows_colours(to) ? "\x1b[0m" : "";
}

int ink_width(FILE *to)
{
    struct winsize size;

    if (!isatty(fileno(to)) || ioctl(fileno(to), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return PLAIN_WIDTH;
    return size.ws_col < WIDTH_MIN ? WIDTH_MIN : size.ws_col > WIDTH_MAX ? WIDTH_MAX : size.ws_col;
}
