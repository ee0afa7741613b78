#include "server/fetch/stream.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct stream {
    int fd;
    int64_t deadline_ms;
    bool https;
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
};

int64_t stream_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static enum fetch_status fail(enum fetch_status status, char *why, size_t size, const char *text)
{
    snprintf(why, size, "%s", text);
    return status;
}

static enum fetch_status fail_errno(int error, char *why, size_t size)
{
    if (error == ETIMEDOUT)
        return fail(FETCH_TIMEOUT, why, size, "no answer in time");
    return fail(FETCH_CONNECT, why, size, strerror(error));
}

/* Waits until `fd` is ready: 0, or an errno. */
static int wait_for(int fd, short events, int64_t deadline_ms)
{
    struct pollfd p = {.fd = fd, .events = events};

    for (;;) {
        int64_t left = deadline_ms - stream_now_ms();
        int n = left > 0 ? poll(&p, 1, (int)left) : 0;

        if (n > 0)
            return 0;
        if (n == 0)
            return ETIMEDOUT;
        if (errno != EINTR)
            return errno;
    }
}

/* ---- connecting ------------------------------------------------------------------------ */

static int connect_one(const struct addrinfo *address, int64_t deadline_ms, int *out)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error = 0;
    socklen_t len = sizeof error;

    if (fd < 0)
        return errno;
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0) {
        error = errno;
        if (error == EINPROGRESS) {
            error = wait_for(fd, POLLOUT, deadline_ms);
            if (error == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
                error = errno;
        }
    }
    if (error != 0) {
        close(fd);
        return error;
    }
    *out = fd;
    return 0;
}

static enum fetch_status connect_any(const struct stream_target *t, int *out, char *why,
                                     size_t size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *found = NULL;
    int error = getaddrinfo(t->connect_host, t->connect_port, &hints, &found);

    if (error != 0)
        return fail(FETCH_RESOLVE, why, size, gai_strerror(error));
    for (struct addrinfo *a = found; a != NULL; a = a->ai_next) {
        error = connect_one(a, t->deadline_ms, out);
        if (error == 0)
            break;
    }
    freeaddrinfo(found);
    return error == 0 ? FETCH_OK : fail_errno(error, why, size);
}

/* ---- TLS ------------------------------------------------------------------------------- */

/* What a call of GnuTLS that would block waits for: 0 to try again, or an errno. */
static int wait_for_tls(struct stream *s)
{
    return wait_for(s->fd, gnutls_record_get_direction(s->session) == 1 ? POLLOUT : POLLIN,
                    s->deadline_ms);
}

static enum fetch_status fail_handshake(struct stream *s, int error, char *why, size_t size)
{
    gnutls_datum_t text = {0};

    if (error == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR &&
        gnutls_certificate_verification_status_print(
            gnutls_session_get_verify_cert_status(s->session), GNUTLS_CRT_X509, &text, 0) == 0) {
        snprintf(why, size, "%s", (const char *)text.data);
        gnutls_free(text.data);
        for (char *end = why + strlen(why); end > why && strchr(" .", end[-1]) != NULL; end--)
            end[-1] = '\0';
        return FETCH_TLS;
    }
    if (error == GNUTLS_E_FATAL_ALERT_RECEIVED) {
        snprintf(why, size, "the server refuses the TLS handshake: %s",
                 gnutls_alert_get_name(gnutls_alert_get(s->session)));
        return FETCH_TLS;
    }
    if (error == GNUTLS_E_UNEXPECTED_PACKET || error == GNUTLS_E_UNEXPECTED_PACKET_LENGTH ||
        error == GNUTLS_E_UNSUPPORTED_VERSION_PACKET)
        return fail(FETCH_TLS, why, size, "what answers there speaks no TLS");
    return fail(FETCH_TLS, why, size, gnutls_strerror(error));
}

static int set_up_tls(struct stream *s, const struct stream_target *t)
{
    bool is_address = strspn(t->host, "0123456789.") == strlen(t->host) || t->host[0] == '[';
    int error = gnutls_certificate_allocate_credentials(&s->credentials);

    if (error < 0)
        return error;
    error = t->ca_file != NULL ? gnutls_certificate_set_x509_trust_file(s->credentials, t->ca_file,
                                                                        GNUTLS_X509_FMT_PEM)
                               : gnutls_certificate_set_x509_system_trust(s->credentials);
    if (error >= 0)
        error = gnutls_init(&s->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
    if (error >= 0)
        error = gnutls_set_default_priority(s->session);
    if (error >= 0)
        error = gnutls_credentials_set(s->session, GNUTLS_CRD_CERTIFICATE, s->credentials);
    if (error >= 0 && !is_address)
        error = gnutls_server_name_set(s->session, GNUTLS_NAME_DNS, t->host, strlen(t->host));
    if (error < 0)
        return error;
    gnutls_session_set_verify_cert(s->session, t->host, 0);
    gnutls_transport_set_int(s->session, s->fd);
    return 0;
}

static enum fetch_status shake_hands(struct stream *s, const struct stream_target *t, char *why,
                                     size_t size)
{
    int error = set_up_tls(s, t);

    if (error < 0)
        return fail(FETCH_TLS, why, size,
                    t->ca_file != NULL ? "the file of trusted certificates cannot be read"
                                       : gnutls_strerror(error));
    do {
        error = gnutls_handshake(s->session);
        if (error == GNUTLS_E_AGAIN || error == GNUTLS_E_INTERRUPTED) {
            int waited = wait_for_tls(s);

            if (waited != 0)
                return fail_errno(waited, why, size);
        }
    } while (error < 0 && gnutls_error_is_fatal(error) == 0);
    return error == 0 ? FETCH_OK : fail_handshake(s, error, why, size);
}

enum fetch_status stream_open(const struct stream_target *target, struct stream **out, char *why,
                              size_t size)
{
    struct stream *s = calloc(1, sizeof *s);
    enum fetch_status status;

    if (s == NULL)
        return fail(FETCH_NO_MEMORY, why, size, "out of memory");
    s->fd = -1;
    s->deadline_ms = target->deadline_ms;
    s->https = target->https;
    status = connect_any(target, &s->fd, why, size);
    if (status == FETCH_OK && s->https)
        status = shake_hands(s, target, why, size);
    if (status != FETCH_OK) {
        stream_close(s);
        return status;
    }
    *out = s;
    return FETCH_OK;
}

/* ---- reading and writing --------------------------------------------------------------- */

/* One call that does not block: bytes, or -1 with errno (EAGAIN: wait), for both kinds. */
static ssize_t write_some(struct stream *s, const void *bytes, size_t len)
{
    ssize_t n;

    if (!s->https)
        return send(s->fd, bytes, len, MSG_NOSIGNAL);
    n = gnutls_record_send(s->session, bytes, len);
    if (n < 0)
        errno = n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED ? EAGAIN : EPIPE;
    return n < 0 ? -1 : n;
}

static ssize_t read_some(struct stream *s, void *bytes, size_t len)
{
    ssize_t n;

    if (!s->https)
        return recv(s->fd, bytes, len, 0);
    n = gnutls_record_recv(s->session, bytes, len);
    if (n == GNUTLS_E_PREMATURE_TERMINATION) /* many servers end so; lengths tell what is missing */
        return 0;
    if (n < 0)
        errno =
            n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED || gnutls_error_is_fatal((int)n) == 0
                ? EAGAIN
                : EIO;
    return n < 0 ? -1 : n;
}

enum fetch_status stream_write(struct stream *s, const void *bytes, size_t len, char *why,
                               size_t size)
{
    size_t sent = 0;

    while (sent < len) {
        ssize_t n = write_some(s, (const char *)bytes + sent, len - sent);
        int error = n < 0 ? errno : 0;

        if (n > 0)
            sent += (size_t)n;
        else if (error == EAGAIN)
            error = s->https ? wait_for_tls(s) : wait_for(s->fd, POLLOUT, s->deadline_ms);
        if (error != 0 && error != EINTR)
            return fail_errno(error, why, size);
    }
    return FETCH_OK;
}

enum fetch_status stream_read(struct stream *s, void *bytes, size_t len, size_t *got, char *why,
                              size_t size)
{
    for (;;) {
        ssize_t n = read_some(s, bytes, len);
        int error = n < 0 ? errno : 0;

        if (n >= 0) {
            *got = (size_t)n;
            return stream_now_ms() < s->deadline_ms ? FETCH_OK : fail_errno(ETIMEDOUT, why, size);
        }
        if (error == EAGAIN)
            error = s->https ? wait_for_tls(s) : wait_for(s->fd, POLLIN, s->deadline_ms);
        if (error != 0 && error != EINTR)
            return fail_errno(error, why, size);
    }
}

const char *stream_protocol(const struct stream *s)
{
    const char *name;

    if (!s->https)
        return "";
    name = gnutls_protocol_get_name(gnutls_protocol_get_version(s->session));
    return name != NULL ? name : "TLS";
}

int64_t stream_certificate_ends(const struct stream *s)
{
    unsigned count = 0;
    const gnutls_datum_t *chain =
        s->https ? gnutls_certificate_get_peers(s->session, &count) : NULL;
    gnutls_x509_crt_t certificate;
    int64_t ends = 0;

    if (chain == NULL || count == 0 || gnutls_x509_crt_init(&certificate) < 0)
        return 0;
    if (gnutls_x509_crt_import(certificate, &chain[0], GNUTLS_X509_FMT_DER) == 0)
        ends = (int64_t)gnutls_x509_crt_get_expiration_time(certificate);
    gnutls_x509_crt_deinit(certificate);
    return ends;
}

void stream_close(struct stream *s)
{
    if (s == NULL)
        return;
    if (s->session != NULL)
        gnutls_deinit(s->session);
    if (s->credentials != NULL)
        gnutls_certificate_free_credentials(s->credentials);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}
