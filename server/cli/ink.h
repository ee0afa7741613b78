/* Colours, only where a person looks: on a terminal that can (TERM is set and not "dumb") and
 * without NO_COLOR (https://no-color.org). Internal to server/cli/. */
#ifndef SITEMAPD_CLI_INK_H
#define SITEMAPD_CLI_INK_H

#include <stdio.h>

enum ink { INK_HEADING, INK_CODE, INK_GOOD, INK_WARNING, INK_WRONG, INK_FAINT };

/* The escape sequence that begins it on `to`, "" where `to` shows no colours. Static. */
const char *ink_on(FILE *to, enum ink ink);
/* What ends it. Static. */
const char *ink_off(FILE *to);
/* Characters in a line of `to`: the terminal's, 60 to 100; 80 elsewhere. */
int ink_width(FILE *to);

#endif
