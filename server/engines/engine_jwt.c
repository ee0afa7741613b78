/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The JWT of a service account: RFC 7519, signed with RSASSA-PKCS1-v1_5 and SHA-256 (RFC 7518 3.3).
 */
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <string.h>

#include "server/engines/engine.h"

#define VALID_SECONDS 3600

/* base64url without padding (RFC 7515 2). */
static void append_base64url(struct str *out, const void *bytes, size_t len)
{
    const gnutls_datum_t raw = {.data = (unsigned char *)(uintptr_t)bytes, .size = (unsigned)len};
    gnutls_datum_t text = {NULL, 0};
    if (gnutls_base64_encode2(&raw, &text) < 0) {
        out->failed = true;
        return;
    }
    for (unsigned i = 0; i < text.size && text.data[i] != '='; i++)
        str_append_char(out, text.data[i] == '+'   ? '-'
                             : text.data[i] == '/' ? '_'
                                                   : (char)text.data[i]);
    gnutls_free(text.data);
}

static bool sign(struct str *out, const char *key_pem)
{
    const gnutls_datum_t pem = {(unsigned char *)(uintptr_t)key_pem, (unsigned)strlen(key_pem)};
    const gnutls_datum_t text = {(unsigned char *)out->data, (unsigned)out->len};
    gnutls_datum_t signature = {NULL, 0};
    gnutls_privkey_t key;
    if (gnutls_privkey_init(&key) < 0)
        return false;
    bool good = gnutls_privkey_import_x509_raw(key, &pem, GNUTLS_X509_FMT_PEM, NULL, 0) >= 0 &&
                gnutls_privkey_get_pk_algorithm(key, NULL) == GNUTLS_PK_RSA &&
                gnutls_privkey_sign_data(key, GNUTLS_DIG_SHA256, 0, &text, &signature) >= 0;
    if (good) {
        str_append_char(out, '.');
        append_base64url(out, signature.data, signature.size);
        gnutls_free(signature.data);
    }
    gnutls_privkey_deinit(key);
    return good;
}

const char *engine_jwt(struct str *out, const char *key_pem, const char *key_id, const char *iss,
                       const char *aud, const char *scope, int64_t now)
{
    struct str header = STR_INIT, claims = STR_INIT;
    str_append_text(&header, "{\"alg\":\"RS256\",\"typ\":\"JWT\"");
    if (*key_id != '\0')
        str_append_json_member(&header, "kid", key_id);
    str_append_char(&header, '}');
    str_append_text(&claims, "{\"iss\":");
    str_append_json_text(&claims, iss);
    str_append_json_member(&claims, "scope", scope);
    str_append_json_member(&claims, "aud", aud);
    str_append_format(&claims, ",\"iat\":%" PRId64 ",\"exp\":%" PRId64 "}", now,
                      now + VALID_SECONDS);
    append_base64url(out, header.data, header.len);
    str_append_char(out, '.');
    append_base64url(out, claims.data, claims.len);
    bool whole = !header.failed && !claims.failed && !out->failed;
    str_done(&header);
    str_done(&claims);
    if (!whole)
        return "out of memory";
    return sign(out, key_pem) ? NULL : "its private_key is not an RSA key in PEM";
}
