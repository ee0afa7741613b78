/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Groups of sites that share a turn, or a part of some room: those whose ids differ by a multiple
 * of SITE_GROUPS. So tables of groups are bounded, and few sites share a group. */
#pragma once

#include <stdint.h>

#define SITE_GROUPS   256
#define NO_SITE_GROUP (-1) /* nobody's turn */

/* Group 0 is also that of tokens for all sites (id 0). */
static inline int site_group_of(int64_t site_id)
{
    return (int)((uint64_t)site_id % SITE_GROUPS);
}
