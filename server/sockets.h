/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Divides the file descriptors: how many connections each listener may have, so that clients of one
 * listener starve neither the other one nor the catalogue's files. Thread safe except
 * descriptors_raise. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "server/http/listener.h"

struct descriptor_share {
    uint32_t public_connections, admin_connections;
};

/* The descriptors that `max_connections` on both listeners need, with `threads` listener threads in
 * all. */
uint64_t descriptors_wanted(uint32_t max_connections, unsigned threads);
/* Raises the soft limit of the process towards `wanted`, as far as the hard limit allows; never
 * lowers it. Returns the new limit. */
uint64_t descriptors_raise(uint64_t wanted);
/* Divides `limit` descriptors: no listener gets more than `max_connections` connections, and each
 * gets at least a few, however low the limit. */
struct descriptor_share descriptors_share(uint64_t limit, uint32_t max_connections,
                                          unsigned threads);

/* The sockets to listen on: those that a service manager passes (sd_listen_fds(3)), and others,
 * which are opened here while the process may still bind low ports. */

struct sockets {
    struct listener_socket public, admin; /* fd -1: a listener took it, or it was never opened */
};

/* The name of a passed socket (FileDescriptorName=public or admin) says which one it is; sockets
 * with other names are, in order, the public and the admin one. Missing ones are opened and bound
 * to their configured addresses, and do not listen yet. False if it fails, reported as a failed
 * start. */
bool sockets_open(const struct config *config, struct sockets *out);
/* Closes those that no listener took. */
void sockets_close(struct sockets *s);
