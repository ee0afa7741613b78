/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* How many connections each listener may have, so that there are always descriptors for the
 * catalogue: clients of one listener must starve neither the other nor the files. Thread safe but
 * for descriptors_raise. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "server/http/listener.h"

struct descriptor_share {
    uint32_t public_connections, admin_connections;
};

/* What `max_connections` on both listeners would take, with `threads` that answer in all. */
uint64_t descriptors_wanted(uint32_t max_connections, unsigned threads);
/* Raises the soft limit of the process towards `wanted`, as far as the hard one allows. Returns
 * what the limit is then; it is never lowered. */
uint64_t descriptors_raise(uint64_t wanted);
/* Shares `limit` descriptors out: no listener gets more than `max_connections`, and none less than
 * a few, however low the limit. */
struct descriptor_share descriptors_share(uint64_t limit, uint32_t max_connections,
                                          unsigned threads);

/* The sockets to listen on: those that a service manager hands over (sd_listen_fds(3)), the others
 * opened here, while the process may still bind low ports. */

struct sockets {
    struct listener_socket public, admin; /* fd -1: taken over, or never opened */
};

/* A given socket is known by its name (FileDescriptorName=public or admin); others are, in order,
 * the public and the admin one. The rest are bound to their configured addresses, and do not listen
 * yet. False if it fails, reported as a failed start. */
bool sockets_open(const struct config *config, struct sockets *out);
/* Closes those that no listener took. */
void sockets_close(struct sockets *s);
