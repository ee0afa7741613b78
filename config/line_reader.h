/* A reader of lines in front of inih, which cuts lines and section names that are too long, takes
 * an indented line for more of the key above, cuts a value at ` ;`, ignores what stands behind `]`,
 * and reports only the first bad line. All of these would change a setting in silence, so the
 * reader refuses such lines and hands inih an empty one. Internal to config/. */
#ifndef SITEMAPD_CONFIG_LINE_READER_H
#define SITEMAPD_CONFIG_LINE_READER_H

#include <stdio.h>

#include "config/config_settings.h"

#define SECTION_MAX 49u /* inih's MAX_SECTION, without the NUL */
#define BLANKS      " \t\r"

struct line_reader {
    FILE *stream;
    size_t bytes;              /* read so far */
    struct mistakes *mistakes; /* its line is kept: the one that was read last */
    /* Told what stands between the brackets of each header, at most SECTION_MAX bytes; NULL: of one
     * that is a mistake and was told as one. False: inih is not to have it. */
    bool (*section)(void *context, const char *name);
    void *context;
};

/* inih's reader: fills `out` with the next line, or with nothing where it must not see it. NULL at
 * the end, and where the file is too large. `reader` is a struct line_reader. */
char *line_reader_next(char *out, int num, void *reader);

#endif
