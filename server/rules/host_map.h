/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The host map of a mirror: pairs of origins; the second replaces the first in everything that is
 * read from an upstream (a CMS lists its own host, the site has another). Immutable; pure
 * functions, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/rules/url.h"

#define HOST_MAP_MAX 32u /* pairs in a map */

struct host_map_pair {
    char *from, *to; /* owned; normalised origins, without a slash */
    size_t from_len, to_len;
};

struct host_map {
    size_t count;
    struct host_map_pair pairs[HOST_MAP_MAX];
};

/* Parses pairs of origins, separated by white space: "https://cms.example.com
 * https://www.example.com". NULL with a sentence in `why`, also when out of memory. */
struct host_map *host_map_new(const char *text, char *why, size_t why_size);
void host_map_free(struct host_map *m); /* accepts NULL */

/* Maps a URL of the upstream to the served URL. False, and `*out` is `*url`: no pair has its origin
 * first, or the result would be too long for a loc. `m` may be NULL. */
bool host_map_url(const struct host_map *m, const struct url *url, struct url *out);
/* Maps a served URL to the URL to request, at the upstream's origin. False, and `*out` is `*url`:
 * no pair has its origin second. `m` may be NULL. */
bool host_map_reverse(const struct host_map *m, const struct url *upstream, const struct url *url,
                      struct url *out);
