/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Google Search Console, as https://developers.google.com/webmaster-tools/v1/sitemaps describes it:
 * a service account gets a token by a JWT (RFC 7523 2.1), and with it the sitemaps. */
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/engines/engine.h"

/* The JWT of a service account: RFC 7519, signed with RSASSA-PKCS1-v1_5 and SHA-256 (RFC 7518 3.3).
 */

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

#define SCOPE         "https://www.googleapis.com/auth/webmasters"
#define TOKEN_EARLY_S 60   /* a token is not used in its last minute */
#define TOKEN_MAX_S   3600 /* the lifetime by Google's documentation */

/* ---- the token ---- */

struct account {
    json_t *file; /* owned */
    const char *email, *key, *key_id, *token_uri;
    struct url token_url;
};

/* Reads the key for each token, so that it can be replaced at any time. */
static enum engine_state read_account(struct engine *e, struct account *a)
{
    char why[256];
    char *text = config_engine_secret(e->config, why);
    if (text == NULL)
        return engine_fail(e, ENGINE_REFUSED, "%s", why);
    a->file = json_loads(text, 0, NULL);
    explicit_bzero(text, strlen(text));
    free(text);
    a->email = engine_text(a->file, "client_email");
    a->key = engine_text(a->file, "private_key");
    a->key_id = engine_text(a->file, "private_key_id");
    a->token_uri = engine_text(a->file, "token_uri");
    if (*a->email == '\0' || *a->key == '\0' ||
        url_parse(a->token_uri, strlen(a->token_uri), &a->token_url, NULL) != RULE_OK)
        return engine_fail(e, ENGINE_REFUSED,
                           "credentials_file is not the JSON key of a service account: it needs "
                           "client_email, private_key and token_uri");
    return ENGINE_OK;
}

/* Parses the response to the token request: the token, or the reason why none exists. */
static enum engine_state parse_token(struct engine *e, enum engine_state state)
{
    char word[65];
    json_t *answer = state == ENGINE_OK || e->reply.status == 400 || e->reply.status == 401
                         ? engine_answer(e)
                         : NULL;
    const char *token = engine_text(answer, "access_token");
    if (e->reply.status == 400 || e->reply.status == 401)
        state = engine_fail(e, ENGINE_REFUSED, "Google rejects the service account: %s",
                            engine_word(json_object_get(answer, "error"), word));
    else if (state == ENGINE_OK && (*token == '\0' || strpbrk(token, "\r\n") != NULL))
        state = engine_fail(e, ENGINE_FAILED, "the answer has no access_token");
    if (state == ENGINE_OK) {
        str_clear(&e->token);
        str_append_format(&e->token, "Authorization: Bearer %s\r\n", token);
        int64_t valid = (int64_t)engine_number(json_object_get(answer, "expires_in"));
        e->token_until =
            clock_unix_ms() / 1000 + (valid < TOKEN_MAX_S ? valid : TOKEN_MAX_S) - TOKEN_EARLY_S;
    }
    json_decref(answer);
    /* The token endpoint knows no sites. */
    return state == ENGINE_FORBIDDEN ? ENGINE_FAILED : state;
}

static enum engine_state request_token(struct engine *e, const struct account *a)
{
    struct str body = STR_INIT;
    int64_t now = clock_unix_ms() / 1000;
    str_append_text(&body, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
                           "&assertion=");
    struct str jwt = STR_INIT;
    const char *fault = engine_jwt(&jwt, a->key, a->key_id, a->email, a->token_uri, SCOPE, now);
    str_append_text(&body, str_text(&jwt));
    enum engine_state state;
    if (fault != NULL) {
        state = engine_fail(e, ENGINE_REFUSED, "credentials_file: %s", fault);
    } else {
        const struct engine_request request = {.url = &a->token_url,
                                               .method = "POST",
                                               .type = "application/x-www-form-urlencoded",
                                               .body = str_text(&body)};
        state = parse_token(e, engine_send(e, &request));
    }
    str_done(&jwt);
    str_done(&body);
    return state;
}

static enum engine_state have_token(struct engine *e)
{
    struct account a = {.file = NULL, .key = ""};
    if (e->token.len > 0 && clock_unix_ms() / 1000 < e->token_until)
        return ENGINE_OK;
    enum engine_state state = read_account(e, &a);
    if (state == ENGINE_OK)
        state = request_token(e, &a);
    if (*a.key != '\0')
        explicit_bzero((char *)(uintptr_t)a.key, strlen(a.key));
    json_decref(a.file);
    return state;
}

/* ---- sitemaps ---- */

/* "…/sites/PROPERTY/sitemaps" */
static void begin_target(struct str *out, const char *property)
{
    str_append_text(out, "/webmasters/v3/sites/");
    engine_append_escaped(out, property);
    str_append_text(out, "/sitemaps");
}

/* Distinguishes a 403 for too many requests from one for missing permission. */
static enum engine_state classify_error(struct engine *e, enum engine_state state)
{
    char word[65];
    if (state == ENGINE_REFUSED)
        str_clear(&e->token); /* the token was revoked: the next request gets another */
    if (state != ENGINE_FORBIDDEN)
        return state;
    json_t *answer = engine_answer(e);
    const json_t *error = json_object_get(answer, "error");
    const json_t *first = json_array_get(json_object_get(error, "errors"), 0);
    engine_word(json_object_get(first, "reason"), word);
    bool busy = strcmp(word, "rateLimitExceeded") == 0 ||
                strcmp(word, "userRateLimitExceeded") == 0 || strcmp(word, "quotaExceeded") == 0;
    json_decref(answer);
    if (busy)
        return engine_fail(e, ENGINE_BUSY, "the rate limit of Google is exceeded: %s", word);
    return engine_fail(e, ENGINE_FORBIDDEN,
                       "the service account may not use the property; add it as a full user in "
                       "Search Console, Settings, Users and permissions");
}

static enum engine_state call_api(struct engine *e, const char *method, const char *target)
{
    enum engine_state state = have_token(e);
    if (state != ENGINE_OK)
        return state;
    const struct engine_request request = {
        .method = method, .target = target, .headers = str_text(&e->token)};
    return classify_error(e, engine_send(e, &request));
}

static void add_sitemap(struct engine_list *out, const char *parent, const json_t *row)
{
    uint64_t urls = 0;
    size_t i;
    const json_t *content, *contents = json_object_get(row, "contents");
    json_array_foreach(contents, i, content) urls +=
        engine_number(json_object_get(content, "submitted"));
    const struct engine_sitemap sitemap = {
        .loc = engine_text(row, "path"),
        .parent = parent != NULL ? parent : "",
        .listed = true,
        .pending = json_is_true(json_object_get(row, "isPending")),
        .submitted_at = engine_time(json_object_get(row, "lastSubmitted")),
        .read_at = engine_time(json_object_get(row, "lastDownloaded")),
        .errors = engine_number(json_object_get(row, "errors")),
        .warnings = engine_number(json_object_get(row, "warnings")),
        .urls = urls,
    };
    engine_list_add(out, &sitemap);
}

static enum engine_state list_sitemaps(struct engine *e, const char *property, const char *parent,
                                       struct engine_list *out)
{
    struct str target = STR_INIT;
    size_t i;
    const json_t *row;
    begin_target(&target, property);
    str_append_text(&target, parent != NULL ? "?sitemapIndex=" : "");
    engine_append_escaped(&target, parent != NULL ? parent : "");
    enum engine_state state = call_api(e, "GET", str_text(&target));
    str_done(&target);
    json_t *answer = state == ENGINE_OK ? engine_answer(e) : NULL;
    if (state == ENGINE_OK && answer == NULL)
        return ENGINE_FAILED;
    json_array_foreach(json_object_get(answer, "sitemap"), i, row) add_sitemap(out, parent, row);
    json_decref(answer);
    return state;
}

static enum engine_state submit_sitemap(struct engine *e, const char *property, const char *loc)
{
    struct str target = STR_INIT;
    begin_target(&target, property);
    str_append_char(&target, '/');
    engine_append_escaped(&target, loc);
    enum engine_state state = call_api(e, "PUT", str_text(&target));
    str_done(&target);
    return state;
}

const struct engine_kind engine_google = {
    .base = "https://www.googleapis.com/", .list = list_sitemaps, .submit = submit_sitemap};
