/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The query of a request target: `name=value&…`, percent-decoded, `+` is a space
 * (application/x-www-form-urlencoded). Pure, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUERY_MAX_PAIRS 16

struct query {
    char *storage; /* owned */
    size_t count;
    struct {
        const char *name, *value;
    } pair[QUERY_MAX_PAIRS]; /* borrowed from storage */
    char repeated[64];       /* QUERY_REPEATED: the name, cut if it is longer */
};

enum query_status { QUERY_OK, QUERY_MALFORMED, QUERY_TOO_MANY, QUERY_REPEATED, QUERY_NO_MEMORY };

/* Parses the text after the `?` (may be NULL). NULs, invalid percent-encoding and invalid UTF-8 are
 * malformed; a repeated name is rejected. On failure `*out` needs no query_done. */
enum query_status query_parse(const char *text, struct query *out);
/* The value of a name; NULL: absent. Borrowed until query_done. */
const char *query_value(const struct query *q, const char *name);
/* Reads a decimal from 0 to `max`. False for anything else. */
bool query_number(const char *text, uint64_t max, uint64_t *out);
void query_done(struct query *q);
