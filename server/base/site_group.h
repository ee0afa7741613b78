/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Groups of sites that share one turn, or one part of a limit: sites whose ids differ by a multiple
 * of SITE_GROUPS. This bounds the tables of groups, and few sites share a group. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SITE_GROUPS   256
#define NO_SITE_GROUP (-1) /* no group has the turn */

/* A share of `most` places, of which `taken` are taken, `own` by the site: true if the site, with
 * one more, has no more than are free before it. One site gets half, two a third each. For what
 * belongs to no single site, `own` is 0. */
static inline bool site_has_room(uint64_t own, uint64_t taken, uint64_t most)
{
    return own + taken < most;
}

/* Tokens for all sites (site id 0) belong to group 0. */
static inline int site_group_of(int64_t site_id)
{
    return (int)((uint64_t)site_id % SITE_GROUPS);
}
