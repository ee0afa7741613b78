/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sends writes to another node (server/api/forward.h) over HTTP, and returns its responses. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

struct forward;
struct forwarder;

/* Starts its thread and sets itself as the sender of `forward`. `forward`, `ca_file` (PEM, trusted
 * besides the system's authorities; may be NULL) and `stopping` must outlive it. Once `stopping` is
 * true, requests under way have a few seconds left. NULL: out of memory, or no thread. */
struct forwarder *forwarder_new(struct forward *forward, const char *ca_file,
                                const atomic_bool *stopping);
/* Fails all requests under way and all later ones. Call it before forward_free. Accepts NULL. */
void forwarder_free(struct forwarder *f);
