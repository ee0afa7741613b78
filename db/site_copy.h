/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A site on its way from one catalogue to another: a file with all of it, pages and positions
 * included, so that the other one serves the same bytes and validators. Part of db/catalogue.h. It
 * comes in by CHANGE_SITE_IMPORT.
 *
 * Copied with it: settings, robots.txt, lists, entries, tokens of this site alone, sources of
 * the registry with what they know of files, what polls know. What stays behind: the history, what
 * crawlers were served, what a configuration declares. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "db/status.h"

struct catalogue;

/* Writes the site as of one revision into a new file at `path`, for the owner alone. NOT_FOUND:
 * there is no such site. `why` gets a sentence. Any thread. */
enum catalogue_status catalogue_site_copy(struct catalogue *c, int64_t site_id, const char *path,
                                          char *why, size_t why_size);
/* Checks a file that may be anybody's: CORRUPT where it is not the whole and sound copy of one
 * site, NEWER where it is a newer release's. `why` gets a sentence that does not name the path.
 * Reads all of it. Any thread. */
enum catalogue_status catalogue_site_copy_check(const char *path, char *why, size_t why_size);
