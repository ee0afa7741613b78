/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* TLS of the two listeners: their certificates and keys, which a reload may replace while
 * connections stay open, and the last bytes of a connection that are sent without the HTTP library.
 * No other code uses GnuTLS for TLS. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* TLS 1.2 and 1.3; the server chooses. */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"

/* Each listener has a pair of its own. */
enum tls_side { TLS_PUBLIC, TLS_ADMIN, TLS_SIDES };

/* A certificate with its chain, and its key; immutable. */
struct tls_pair;

/* The pairs of one configuration, owned; NULL: the listener has no TLS. */
struct tls_pairs {
    struct tls_pair *of[TLS_SIDES];
};

/* Receives a warning: every user can read the key, the certificate has expired. */
typedef void tls_remark(const char *file, const char *text);

/* Reads PEM files. `now`: Unix seconds. False, with a sentence in `why` that begins with the file's
 * name: they cannot be read, are not PEM, or do not match. The caller owns `*out`. */
bool tls_pair_load(const char *cert_file, const char *key_file, int64_t now, struct tls_pair **out,
                   tls_remark *remark, char *why, size_t why_size);
/* When the certificate itself (not its chain) expires, Unix seconds. */
int64_t tls_pair_expires(const struct tls_pair *pair);
/* Accepts NULL. */
void tls_pair_free(struct tls_pair *pair);

/* Makes handshakes of this side use `pair` from now on, and takes it over. Earlier pairs are kept
 * until tls_done, since connections may still use them. A pair with the bytes of the current one is
 * freed, and nothing changes. One caller at a time; handshakes may run meanwhile. */
void tls_use(enum tls_side side, struct tls_pair *pair);
/* Frees all pairs. No connection may be left. */
void tls_done(void);

/* The callback of libmicrohttpd for handshakes (MHD_OPTION_HTTPS_CERT_CALLBACK). */
typedef void tls_function(void);
tls_function *tls_certificate_callback(enum tls_side side);

/* Sends the last bytes of a session (of libmicrohttpd's connection, on its thread), as many as the
 * socket takes without waiting, and, if these are all, the alert that closes our side. False if
 * nothing could be sent. */
bool tls_send_last(void *session, const void *bytes, size_t len);
