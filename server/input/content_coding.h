/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a Content-Encoding header field says of a body (RFC 9110 8.4). Pure, thread safe. */
#pragma once

#include <stdbool.h>

struct content_coding {
    unsigned gzip;   /* how many times gzip is to be removed */
    bool unreadable; /* it names a coding that nobody asked for and this program does not decode */
    bool odd;        /* it names something that is not a content coding; clients ignore it */
    char word[32];   /* the first such coding, for people; "" where there is none */
};

/* Reads a field value, of several fields joined with commas; NULL: there is no such field. An empty
 * value, empty elements and `identity` are no coding. */
void content_coding_read(const char *value, struct content_coding *out);
