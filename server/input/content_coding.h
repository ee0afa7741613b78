/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses the Content-Encoding header field (RFC 9110 8.4). Pure, thread safe. */
#pragma once

#include <stdbool.h>

struct content_coding {
    unsigned gzip; /* how many times to remove gzip */
    /* there is a coding that was not requested and that this program cannot decode */
    bool unreadable;
    bool odd;      /* there is a word that is not a content coding; clients ignore it */
    char word[32]; /* the first such word, for people; "": none */
};

/* Parses a field value; join several fields with commas; NULL: there is no such field. An empty
 * value, empty elements and `identity` mean no coding. */
void content_coding_read(const char *value, struct content_coding *out);
