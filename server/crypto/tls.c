/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Loads certificates and keys, checks that they match, and reads when they expire. */
#include "server/crypto/tls.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "server/base/file.h"

#define MAX_CHAIN      16
#define MAX_FILE_BYTES (1024 * 1024)

struct tls_pair {
    struct tls_pair *previous; /* used before; sessions may still point into it */
    gnutls_pcert_st chain[MAX_CHAIN];
    unsigned chain_len;
    gnutls_privkey_t key;
    gnutls_datum_t cert_pem, key_pem; /* as read; the key's is wiped when freed */
    int64_t expires;
};

static _Atomic(struct tls_pair *) current[TLS_SIDES];

/* ---- reading ------------------------------------------------------------------------------ */

static bool read_file(const char *path, gnutls_datum_t *out, mode_t *mode, char *why,
                      size_t why_size)
{
    size_t len;
    char *bytes = file_read(path, FILE_NO_PIPE, MAX_FILE_BYTES + 1, &len, mode);

    if (bytes == NULL) {
        snprintf(why, why_size, "%s: cannot be read: %s", path,
                 errno == ESPIPE ? "it is a pipe" : strerror(errno));
        return false;
    }
    if (len > MAX_FILE_BYTES) {
        snprintf(why, why_size, "%s: is larger than 1 MiB", path);
        free(bytes);
        return false;
    }
    *out = (gnutls_datum_t){(unsigned char *)bytes, (unsigned)len};
    return true;
}

static bool read_chain(struct tls_pair *pair, const char *file, char *why, size_t why_size)
{
    pair->chain_len = MAX_CHAIN;
    int error = gnutls_pcert_list_import_x509_raw(pair->chain, &pair->chain_len, &pair->cert_pem,
                                                  GNUTLS_X509_FMT_PEM, GNUTLS_X509_CRT_LIST_SORT);
    if (error >= 0)
        return true;
    pair->chain_len = 0;
    snprintf(why, why_size, "%s: is not a certificate chain in PEM: %s", file,
             gnutls_strerror(error));
    return false;
}

static bool read_key(struct tls_pair *pair, const char *file, char *why, size_t why_size)
{
    int error = gnutls_privkey_init(&pair->key);
    if (error >= 0)
        error =
            gnutls_privkey_import_x509_raw(pair->key, &pair->key_pem, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (error >= 0)
        return true;
    snprintf(why, why_size, "%s: is not a private key in PEM without a passphrase: %s", file,
             gnutls_strerror(error));
    return false;
}

static bool is_pair(const struct tls_pair *pair)
{
    unsigned char of_cert[64], of_key[64];
    size_t cert_len = sizeof of_cert, key_len = sizeof of_key;
    gnutls_pubkey_t public;
    bool same = false;

    if (gnutls_pubkey_init(&public) < 0)
        return false;
    if (gnutls_pubkey_get_key_id(pair->chain[0].pubkey, GNUTLS_KEYID_USE_SHA256, of_cert,
                                 &cert_len) >= 0 &&
        gnutls_pubkey_import_privkey(public, pair->key, 0, 0) >= 0 &&
        gnutls_pubkey_get_key_id(public, GNUTLS_KEYID_USE_SHA256, of_key, &key_len) >= 0)
        same = cert_len == key_len && memcmp(of_cert, of_key, cert_len) == 0;
    gnutls_pubkey_deinit(public);
    return same;
}

static void write_time(int64_t at, char out[32])
{
    struct tm utc;
    time_t t = (time_t)at;
    if (gmtime_r(&t, &utc) == NULL || strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        strcpy(out, "?");
}

static bool read_times(struct tls_pair *pair, const char *file, int64_t now, tls_remark *remark)
{
    gnutls_x509_crt_t cert;
    char text[96], when[32];
    if (gnutls_x509_crt_init(&cert) < 0)
        return false;
    bool read = gnutls_x509_crt_import(cert, &pair->chain[0].cert, GNUTLS_X509_FMT_DER) >= 0;
    if (read) {
        int64_t begins = gnutls_x509_crt_get_activation_time(cert);
        pair->expires = gnutls_x509_crt_get_expiration_time(cert);
        write_time(pair->expires <= now ? pair->expires : begins, when);
        if (pair->expires <= now)
            snprintf(text, sizeof text, "the certificate expired at %s", when);
        else
            snprintf(text, sizeof text, "the certificate is not valid before %s", when);
        if (pair->expires <= now || begins > now)
            remark(file, text);
    }
    gnutls_x509_crt_deinit(cert);
    return read;
}

bool tls_pair_load(const char *cert_file, const char *key_file, int64_t now, struct tls_pair **out,
                   tls_remark *remark, char *why, size_t why_size)
{
    struct tls_pair *pair = calloc(1, sizeof *pair);
    mode_t mode;

    *out = NULL;
    if (pair == NULL) {
        snprintf(why, why_size, "%s: out of memory", cert_file);
        return false;
    }
    if (!read_file(cert_file, &pair->cert_pem, &mode, why, why_size) ||
        !read_chain(pair, cert_file, why, why_size) ||
        !read_file(key_file, &pair->key_pem, &mode, why, why_size) ||
        !read_key(pair, key_file, why, why_size))
        goto failed;
    if (!is_pair(pair)) {
        snprintf(why, why_size, "%s: is not the key of the certificate in %s", key_file, cert_file);
        goto failed;
    }
    if ((mode & S_IROTH) != 0)
        remark(key_file, "every user of this machine can read the private key");
    if (!read_times(pair, cert_file, now, remark)) {
        snprintf(why, why_size, "%s: its validity period cannot be read", cert_file);
        goto failed;
    }
    *out = pair;
    return true;

failed:
    tls_pair_free(pair);
    return false;
}

int64_t tls_pair_expires(const struct tls_pair *pair)
{
    return pair->expires;
}

void tls_pair_free(struct tls_pair *pair)
{
    if (pair == NULL)
        return;
    for (unsigned i = 0; i < pair->chain_len; i++)
        gnutls_pcert_deinit(&pair->chain[i]);
    if (pair->key != NULL)
        gnutls_privkey_deinit(pair->key);
    if (pair->key_pem.data != NULL)
        explicit_bzero(pair->key_pem.data, pair->key_pem.size);
    free(pair->key_pem.data);
    free(pair->cert_pem.data);
    free(pair);
}

/* ---- serving ------------------------------------------------------------------------------ */

static bool same_bytes(const gnutls_datum_t *a, const gnutls_datum_t *b)
{
    return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

void tls_use(enum tls_side side, struct tls_pair *pair)
{
    struct tls_pair *before = atomic_load(&current[side]);
    if (before != NULL && same_bytes(&before->cert_pem, &pair->cert_pem) &&
        same_bytes(&before->key_pem, &pair->key_pem)) {
        tls_pair_free(pair);
        return;
    }
    pair->previous = before;
    atomic_store(&current[side], pair);
}

void tls_done(void)
{
    for (int side = 0; side < TLS_SIDES; side++) {
        struct tls_pair *pair = atomic_exchange(&current[side], NULL);
        while (pair != NULL) {
            struct tls_pair *previous = pair->previous;
            tls_pair_free(pair);
            pair = previous;
        }
    }
}

static int retrieve(enum tls_side side, gnutls_pcert_st **chain, unsigned *chain_len,
                    gnutls_privkey_t *key)
{
    struct tls_pair *pair = atomic_load(&current[side]);

    if (pair == NULL)
        return -1;
    *chain = pair->chain;
    *chain_len = pair->chain_len;
    *key = pair->key;
    return 0;
}

/* There is one pair, whatever server name the client requests. */
#define RETRIEVE(name, side)                                                                       \
    static int name(gnutls_session_t session, const gnutls_datum_t *authorities,                   \
                    int authority_count, const gnutls_pk_algorithm_t *algorithms,                  \
                    int algorithm_count, gnutls_pcert_st **chain, unsigned *chain_len,             \
                    gnutls_privkey_t *key)                                                         \
    {                                                                                              \
        (void)session;                                                                             \
        (void)authorities;                                                                         \
        (void)authority_count;                                                                     \
        (void)algorithms;                                                                          \
        (void)algorithm_count;                                                                     \
        return retrieve(side, chain, chain_len, key);                                              \
    }

RETRIEVE(retrieve_public, TLS_PUBLIC)
RETRIEVE(retrieve_admin, TLS_ADMIN)

tls_function *tls_certificate_callback(enum tls_side side)
{
    gnutls_certificate_retrieve_function2 *callback =
        side == TLS_ADMIN ? retrieve_admin : retrieve_public;
    return (tls_function *)callback;
}

bool tls_send_last(void *session, const void *bytes, size_t len)
{
    const char *at = bytes;
    size_t sent = 0;

    while (sent < len) {
        ssize_t n = gnutls_record_send(session, at + sent, len - sent);
        if (n == GNUTLS_E_INTERRUPTED)
            continue;
        if (n <= 0)
            break;
        sent += (size_t)n;
    }
    if (sent == len) /* otherwise a truncated reply would look complete */
        gnutls_bye(session, GNUTLS_SHUT_WR);
    return sent > 0;
}
