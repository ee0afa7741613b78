/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Who shares a turn, or a share of places, where sites have them: the sites whose ids differ by a
 * multiple of SITE_GROUPS. So what holds them has a bound, and one site's tokens meet few others.
 */
#pragma once

#include <stdint.h>

#define SITE_GROUPS   256
#define NO_SITE_GROUP (-1) /* nobody's turn */

/* Group 0 is also who works for all sites (id 0). */
static inline int site_group_of(int64_t site_id)
{
    return (int)((uint64_t)site_id % SITE_GROUPS);
}
