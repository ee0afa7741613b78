/* The sockets to listen on: those that a service manager hands over (sd_listen_fds(3)), the others
 * opened here, while the process may still bind low ports. */
#ifndef SITEMAPD_SOCKETS_H
#define SITEMAPD_SOCKETS_H

#include <stdbool.h>

#include "config/config.h"
#include "server/http/listener.h"

struct sockets {
    struct listener_socket public, admin; /* fd -1: taken over, or never opened */
};

/* A given socket is known by its name (FileDescriptorName=public or admin); others are, in order,
 * the public and the admin one. The rest are bound to their configured addresses, and do not listen
 * yet. False, told as a failed start. */
bool sockets_open(const struct config *config, struct sockets *out);
/* Closes those that no listener took. */
void sockets_close(struct sockets *s);

#endif
