/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The way over HTTP, to the server that --server names, with the token of the environment or of a
 * file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/cli/backend/api.h"
#include "server/client/client.h"

#define AGENT     "sitemapd/" SITEMAPD_VERSION
#define MAX_BODY  (64u << 20) /* of a response that is kept: a page of a list, or a robots.txt */
#define STALL_S   600u        /* a long list is applied without any output meanwhile */
#define TOKEN_MAX 512

/* ---- asking ---------------------------------------------------------------------------- */

/* The source of the request body, and the receiver of a streamed response. */
struct carried {
    const struct api_request *request;
    const char *text;
    size_t left;
};

static ssize_t give(void *context, char *bytes, size_t size)
{
    struct carried *c = context;
    FILE *file = c->request->lines;
    size_t n = c->left < size ? c->left : size;

    if (file != NULL) {
        n = fread(bytes, 1, size, file);
        return n == 0 && ferror(file) ? -1 : (ssize_t)n;
    }
    memcpy(bytes, c->text, n);
    c->text += n;
    c->left -= n;
    return (ssize_t)n;
}

static bool receive(void *context, const struct fetch_reply *reply, const char *bytes, size_t len)
{
    const struct api_request *request = ((struct carried *)context)->request;

    (void)reply;
    return request->take(request->context, bytes, len);
}

/* Sets why there was no response, with a remedy if one is known. */
static bool fail_to_reach(struct backend *b, const struct fetch_reply *reply)
{
    bool helps = reply->untrusted && session_ca_file(b->cli) == NULL;

    snprintf(b->why, sizeof b->why, "%.400s%s", reply->why,
             helps ? "; --ca-file FILE trusts a private CA or a self-signed certificate" : "");
    return false;
}

static void append_headers(struct str *out, const struct backend *b,
                           const struct api_request *request)
{
    str_append_text(out, b->headers);
    if (request->accept != NULL)
        str_append_format(out, "Accept: %s\r\n", request->accept);
    if (request->if_match != NULL)
        str_append_format(out, "If-Match: %s\r\n", request->if_match);
    if (request->lines != NULL || request->body != NULL)
        str_append_format(out, "Content-Type: %s\r\n",
                          request->type != NULL    ? request->type
                          : request->lines != NULL ? "application/x-ndjson"
                                                   : "application/json");
}

/* The number of bytes to send; -1: unknown. */
static off_t measure(const struct api_request *request)
{
    off_t bytes = request->body != NULL ? (off_t)strlen(request->body) : 0;

    if (request->lines != NULL) {
        bytes = fseeko(request->lines, 0, SEEK_END) == 0 ? ftello(request->lines) : -1;
        rewind(request->lines);
    }
    return bytes;
}

bool over_http(struct backend *b, const struct api_request *request, struct str *body)
{
    struct str headers = STR_INIT;
    off_t bytes = measure(request);
    struct carried carried = {request, request->body, (size_t)bytes};
    struct fetch_request asked = {
        .url = &b->origin,
        .target = request->target,
        .method = request->method,
        .agent = AGENT,
        .stall_s = STALL_S,
        .max_bytes = MAX_BODY,
        .ca_file = session_ca_file(b->cli),
        .session = b->session,
        .give = request->lines != NULL || request->body != NULL ? give : NULL,
        .give_bytes = (uint64_t)bytes,
        .take = request->take != NULL ? receive : NULL,
        .context = &carried,
    };
    struct fetch_reply reply;
    bool good;

    append_headers(&headers, b, request);
    if (headers.failed || bytes < 0) {
        snprintf(b->why, sizeof b->why, "%s",
                 bytes < 0 ? "the list cannot be read from its temporary file" : "out of memory");
        str_done(&headers);
        return false;
    }
    asked.headers = str_text(&headers);
    good = fetch(&asked, &reply) == FETCH_OK || fail_to_reach(b, &reply);
    b->status = reply.status;
    if (good && reply.cut) {
        snprintf(b->why, sizeof b->why, "the response is too large");
        good = false;
    }
    *body = reply.body;
    reply.body = (struct str)STR_INIT;
    fetch_reply_done(&reply);
    explicit_bzero(headers.data, headers.len);
    str_done(&headers);
    return good;
}

/* ---- opening --------------------------------------------------------------------------- */

/* Reads the first line of the file. */
static int read_token_file(const char *name, char out[TOKEN_MAX])
{
    FILE *file = fopen(name, "re");

    if (file == NULL)
        return cli_fail(name, "cannot be read: %s", strerror(errno));
    if (fgets(out, TOKEN_MAX, file) == NULL)
        out[0] = '\0';
    int error = ferror(file) ? errno : 0;
    fclose(file);
    if (error != 0)
        return cli_fail(name, "cannot be read: %s", strerror(error));
    out[strcspn(out, "\r\n")] = '\0';
    return out[0] != '\0'
               ? EXIT_DONE
               : cli_fail(name,
                          "the token is missing: the first line of the file must be the token");
}

static int read_token(const char *file, const char *url, char out[TOKEN_MAX])
{
    const char *token = getenv("SITEMAPD_TOKEN");

    if (file != NULL)
        return read_token_file(file, out);
    if (token == NULL || *token == '\0')
        return cli_fail(url, "the token is missing: set SITEMAPD_TOKEN or --token-file FILE");
    if (strlen(token) >= TOKEN_MAX)
        return cli_fail("SITEMAPD_TOKEN", "is invalid: too long for a token");
    strcpy(out, token);
    return EXIT_DONE;
}

static int set_headers(struct backend *b, const char *token)
{
    struct str headers = STR_INIT;

    /* It becomes part of a header unchanged. */
    if (token[strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                            "0123456789-._~+/=")] != '\0')
        return cli_fail(b->name,
                        "the token is invalid: it has characters that are not allowed in a token");
    str_append_format(&headers, "Authorization: Bearer %s\r\n", token);
    str_append_format(&headers, "Sitemapd-Via: cli; user=%s\r\n", b->user);
    b->headers = headers.failed ? NULL : headers.data;
    b->session = fetch_session_new();
    return b->headers != NULL && b->session != NULL ? EXIT_DONE
                                                    : cli_fail(b->name, "out of memory");
}

int backend_open_server(struct cli *cli, const char *url, const char *token_file,
                        struct backend **out)
{
    char token[TOKEN_MAX];
    struct backend *b;
    int status = read_token(token_file, url, token);

    if (status != EXIT_DONE)
        return status;
    b = calloc(1, sizeof *b);
    if (b == NULL)
        return cli_fail(url, "out of memory");
    b->cli = cli;
    b->name = url;
    session_user(b->user, sizeof b->user);
    if (url_parse_origin(url, strlen(url), &b->origin) != RULE_OK) {
        status = cli_fail(url, "must be the URL of the API, such as http://127.0.0.1:8081");
    } else {
        b->name = b->origin.text;
        status = set_headers(b, token);
    }
    explicit_bzero(token, sizeof token);
    if (status == EXIT_DONE)
        *out = b;
    else
        backend_close(b);
    return status;
}

void over_http_close(struct backend *b)
{
    if (b->headers != NULL)
        explicit_bzero(b->headers, strlen(b->headers));
    free(b->headers);
    fetch_session_free(b->session);
}
