/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Groups of sites that share one turn, or one part of a limit: sites whose ids differ by a multiple
 * of SITE_GROUPS. This bounds the tables of groups, and few sites share a group. */
#pragma once

#include <stdint.h>

#define SITE_GROUPS   256
#define NO_SITE_GROUP (-1) /* no group has the turn */

/* Tokens for all sites (site id 0) belong to group 0. */
static inline int site_group_of(int64_t site_id)
{
    return (int)((uint64_t)site_id % SITE_GROUPS);
}
