/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Puts what is read of an upstream through a host map, before anything else sees it: so dates,
 * remarks, copies and pages are of what is served here.
 *
 * In XML the text of `loc`, of elements whose name ends in `_loc` and of a feed's `link`, and the
 * `href` of a `link`; in a list of URLs the beginning of each line. Prefixes of names are not
 * looked at. All else stays byte for byte, and so does an origin that is written with character
 * references, or in UTF-16. Memory is bounded; one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/rules/host_map.h"

/* Takes rewritten bytes. False stops, for a reason that the taker knows. */
typedef bool host_rewriter_take(void *context, const char *bytes, size_t len);

struct host_rewriter;
/* `m` is borrowed. NULL when out of memory. */
struct host_rewriter *host_rewriter_new(const struct host_map *m, host_rewriter_take *take,
                                        void *context);
/* How the bytes are cut into calls changes nothing. */
bool host_rewriter_feed(struct host_rewriter *w, const char *bytes, size_t len);
/* The input is over: hands on what was held back. */
bool host_rewriter_finish(struct host_rewriter *w);
void host_rewriter_free(struct host_rewriter *w); /* takes NULL */
