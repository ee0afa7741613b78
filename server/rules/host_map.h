/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The host map of a mirror: pairs of origins, of which the second takes the place of the first in
 * what is read of an upstream (a CMS lists its own host; the site has another). Never changed once
 * it is made; pure functions, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/rules/url.h"

#define HOST_MAP_MAX 32u /* pairs of a map */

struct host_map_pair {
    char *from, *to; /* owned; normalised origins, without a slash */
    size_t from_len, to_len;
};

struct host_map {
    size_t count;
    struct host_map_pair pairs[HOST_MAP_MAX];
};

/* Reads pairs of origins with white space between all: "https://cms.example.com
 * https://www.example.com". NULL with a sentence in `why`, also when out of memory. */
struct host_map *host_map_new(const char *text, char *why, size_t why_size);
void host_map_free(struct host_map *m); /* takes NULL */

/* A URL as it is served here. False, and `*out` is `*url`, where no first origin is its own, or
 * where the result would be longer than a loc may be. `m` may be NULL. */
bool host_map_url(const struct host_map *m, const struct url *url, struct url *out);
/* Where what is served here at `url` is asked for: at the upstream's own origin, where a second
 * origin is that of `url`. False, and `*out` is `*url`, where none is. `m` may be NULL. */
bool host_map_reverse(const struct host_map *m, const struct url *upstream, const struct url *url,
                      struct url *out);
