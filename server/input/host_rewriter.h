/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Applies a host map to everything that is read from an upstream, before it is parsed: dates,
 * remarks, copies and pages are then those of the served site.
 *
 * It replaces origins in XML in the text of `loc`, of elements whose name ends in `_loc` and of a
 * feed's `link`, and in the `href` of a `link`; in a list of URLs at the beginning of each line. It
 * ignores the prefixes of names. Everything else stays byte for byte, also origins written with
 * character references or in UTF-16. Memory is bounded; one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/rules/host_map.h"

/* Takes rewritten bytes. False: stop, the callee knows the reason. */
typedef bool host_rewriter_take(void *context, const char *bytes, size_t len);

struct host_rewriter;
/* `m` is borrowed. NULL when out of memory. */
struct host_rewriter *host_rewriter_new(const struct host_map *m, host_rewriter_take *take,
                                        void *context);
/* The result does not depend on how the bytes are cut into calls. */
bool host_rewriter_feed(struct host_rewriter *w, const char *bytes, size_t len);
/* The input is complete: passes on the bytes that were held back. */
bool host_rewriter_finish(struct host_rewriter *w);
void host_rewriter_free(struct host_rewriter *w); /* accepts NULL */
