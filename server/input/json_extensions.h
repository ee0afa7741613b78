/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The members of a page URL that no sitemap of an index has. Internal to server/input/. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/input/entry_validate.h"

/* The page URL that is being read. */
struct json_page {
    struct raw_entry *raw;
    struct validated_entry *validated;
    int64_t now;
};

/* Reads a member that only page URLs have. False: it is not one of them. raw->extension_fault gets
 * a fault, which is reported after the loc is checked. */
bool json_extension_read(const struct json_page *f, const char *name, json_t *value);
