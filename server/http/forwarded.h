/* What a listed proxy tells of the client that it speaks for. Pure, thread safe; no microhttpd
 * here. */
#ifndef SITEMAPD_HTTP_FORWARDED_H
#define SITEMAPD_HTTP_FORWARDED_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/http/address.h"

/* The client's address out of an X-Forwarded-For list, "client, proxy, proxy": the last that is not
 * of a trusted range, since what stands before it anyone may have written; where all are, the
 * first. An address may have a port, "192.0.2.1:80" or "[2001:db8::1]:80". An element that is no
 * address ends the reading: the one behind it counts. False, and `out` is untouched, where there is
 * none. */
bool forwarded_client(const char *list, const struct address_range *trusted, size_t count,
                      char out[INET6_ADDRSTRLEN]);

#endif
