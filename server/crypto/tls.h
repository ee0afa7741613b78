/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* TLS of the two listeners: each one's certificate and its key, which a reload may replace while
 * connections go on, and what is sent past the HTTP library. The only TLS use of GnuTLS. */
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

/* Those of one configuration, owned; NULL: that listener has none. */
struct tls_pairs {
    struct tls_pair *of[TLS_SIDES];
};

/* What is odd and no mistake: a key that everybody may read, a certificate that has expired. */
typedef void tls_remark(const char *file, const char *text);

/* Reads PEM files. `now`: Unix seconds. False where they cannot be read, are none, or do not belong
 * to each other: `why` gets a sentence that begins with the file's name. The caller owns `*out`. */
bool tls_pair_load(const char *cert_file, const char *key_file, int64_t now, struct tls_pair **out,
                   tls_remark *remark, char *why, size_t why_size);
/* Of the certificate itself, Unix seconds. */
int64_t tls_pair_expires(const struct tls_pair *pair);
/* Takes NULL. */
void tls_pair_free(struct tls_pair *pair);

/* From now on handshakes of this side are made with `pair`, which it takes over. Pairs before it
 * are kept, since connections may still use them, until tls_done; one with the same bytes changes
 * nothing and is freed. One caller at a time; handshakes go on meanwhile. */
void tls_use(enum tls_side side, struct tls_pair *pair);
/* No connection is left. */
void tls_done(void);

/* What libmicrohttpd is to call in a handshake (MHD_OPTION_HTTPS_CERT_CALLBACK). */
typedef void tls_function(void);
tls_function *tls_certificate_callback(enum tls_side side);

/* Sends the last bytes of a session (of libmicrohttpd's connection, on its thread) and the end of
 * our side. As much as finds room, without waiting; false where nothing could be sent. */
bool tls_send_last(void *session, const void *bytes, size_t len);
