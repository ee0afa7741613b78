/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sends the writes that go to another node (server/api/forward.h) over HTTP, and brings back what
 * it answers. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

struct forward;
struct forwarder;

/* Starts its thread, and is what `forward` sends by; that, `ca_file` (PEM, trusted beside the
 * system's authorities; NULL: those alone) and `stopping` outlive it. Once
 * `stopping` is true, what is under way has a few seconds. NULL: no memory, no thread. */
struct forwarder *forwarder_new(struct forward *forward, const char *ca_file,
                                const atomic_bool *stopping);
/* What is under way has failed, and whatever is sent from now on. Before forward_free; takes NULL.
 */
void forwarder_free(struct forwarder *f);
