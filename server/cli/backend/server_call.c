#include "server/cli/backend/server_parts.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/base/text.h"
#include "server/cli/backend/session.h"
#include "server/rules/lastmod.h"

#define AGENT        "sitemapd/" SITEMAPD_VERSION
#define MAX_BODY     (64u << 20) /* of an answer that is kept: a page of a list, or the robots.txt */
#define PAGE_OF_LIST "1000"      /* what the API gives at once */
#define STALL_S      600u        /* a long list is applied in silence */

/* ---- the server ------------------------------------------------------------------------ */

static bool fail(struct server *s, const char *why)
{
    snprintf(s->why, sizeof s->why, "%s", why);
    return false;
}

bool server_init(struct server *s, const char *url, const char *token, const char *ca_file)
{
    struct str headers = STR_INIT;
    size_t len = strlen(url);
    char user[SESSION_USER_SIZE];

    *s = (struct server){.ca_file = ca_file};
    if (url_parse_origin(url, len, &s->origin) != RULE_OK)
        return fail(s, "must be the URL of the API, such as http://127.0.0.1:8081");
    /* It goes into a header as it is. */
    if (token[0] == '\0' ||
        token[strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                            "0123456789-._~+/=")] != '\0')
        return fail(s, "the token is invalid: it has characters that are not allowed in a token");
    str_append_format(&headers, "Authorization: Bearer %s\r\n", token);
    session_user(user, sizeof user);
    str_append_format(&headers, "Sitemapd-Via: cli; user=%s\r\n", user);
    s->headers = headers.failed ? NULL : headers.data;
    s->session = fetch_session_new();
    return (s->headers != NULL && s->session != NULL) || fail(s, "out of memory");
}

void server_done(struct server *s)
{
    if (s->headers != NULL)
        explicit_bzero(s->headers, strlen(s->headers));
    free(s->headers);
    fetch_session_free(s->session);
}

/* ---- targets --------------------------------------------------------------------------- */

static void append_encoded(struct str *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (ascii_is_alnum(*text) || strchr("-._~", *text) != NULL)
            str_append_char(out, *text);
        else
            str_append_format(out, "%%%02X", (unsigned char)*text);
    }
}

void target_add(struct str *target, const char *name, const char *value)
{
    if (value == NULL)
        return;
    str_append_format(target, "%c%s=", strchr(str_text(target), '?') == NULL ? '?' : '&', name);
    append_encoded(target, value);
}

void target_segment(struct str *target, const char *value)
{
    str_append_char(target, '/');
    append_encoded(target, value);
}

/* ---- asking ---------------------------------------------------------------------------- */

/* Why there was no answer, and what helps against it where that is known. */
static void fail_to_reach(struct server *s, const struct fetch_reply *reply)
{
    bool helps = reply->untrusted && s->ca_file == NULL;

    snprintf(s->why, sizeof s->why, "%.400s%s", reply->why,
             helps ? "; --ca-file FILE trusts one of your own making" : "");
}

static bool ask(struct server *s, struct fetch_request *request, json_t **out)
{
    struct fetch_reply reply;
    json_error_t error;
    bool good;

    request->url = &s->origin;
    request->agent = AGENT;
    request->stall_s = STALL_S;
    request->max_bytes = MAX_BODY;
    request->ca_file = s->ca_file;
    request->session = s->session;
    *out = NULL;
    s->why[0] = '\0';
    good = fetch(request, &reply) == FETCH_OK;
    s->status = reply.status;
    if (!good)
        fail_to_reach(s, &reply);
    else if (reply.cut)
        good = fail(s, "the response is too large");
    else if (reply.body.len > 0)
        *out = json_loadb(reply.body.data, reply.body.len, JSON_REJECT_DUPLICATES, &error);
    if (good && reply.body.len > 0 && *out == NULL) {
        snprintf(s->why, sizeof s->why, "unexpected response (%u): not from the API of sitemapd",
                 reply.status);
        good = false;
    }
    fetch_reply_done(&reply);
    return good;
}

/* What is sent out of memory. */
struct text {
    const char *at;
    size_t left;
};

static ssize_t give_text(void *context, char *bytes, size_t size)
{
    struct text *text = context;
    size_t n = text->left < size ? text->left : size;

    memcpy(bytes, text->at, n);
    text->at += n;
    text->left -= n;
    return (ssize_t)n;
}

static ssize_t give_file(void *context, char *bytes, size_t size)
{
    size_t n = fread(bytes, 1, size, context);

    return n == 0 && ferror((FILE *)context) ? -1 : (ssize_t)n;
}

static char *with_headers(const struct server *s, const char *more)
{
    struct str headers = STR_INIT;

    str_append_text(&headers, s->headers);
    str_append_text(&headers, more);
    if (!headers.failed)
        return headers.data;
    str_done(&headers);
    return NULL;
}

static bool ask_with(struct server *s, struct fetch_request *request, const char *more,
                     json_t **out)
{
    char *headers = with_headers(s, more);
    bool good;

    *out = NULL;
    if (headers == NULL)
        return fail(s, "out of memory");
    request->headers = headers;
    good = ask(s, request, out);
    explicit_bzero(headers, strlen(headers));
    free(headers);
    return good;
}

bool server_ask(struct server *s, const char *method, const char *target, const json_t *body,
                json_t **out)
{
    char *json = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    struct text text = {json, json != NULL ? strlen(json) : 0};
    struct fetch_request request = {
        .target = target,
        .method = method,
        .give = body != NULL ? give_text : NULL,
        .give_bytes = text.left,
        .context = &text,
    };
    bool good;

    *out = NULL;
    if (body != NULL && json == NULL)
        return fail(s, "out of memory");
    good = ask_with(s, &request, body != NULL ? "Content-Type: application/json\r\n" : "", out);
    free(json);
    return good;
}

bool server_get(struct server *s, struct str *target, json_t **out)
{
    bool good;

    *out = NULL;
    good =
        !target->failed && server_ask(s, "GET", str_text(target), NULL, out) && server_is_good(s);
    str_done(target);
    return good;
}

int server_report(const struct server *s, json_t *answer)
{
    const char *name = s->origin.text;

    if (s->status == 0 || answer == NULL)
        cli_fail(name, "%s", s->why[0] != '\0' ? s->why : "the server did not respond");
    else if (s->status == 404 && strcmp(member_text(answer, "code"), "not-found") == 0)
        cli_fail(name, "%s; the server may be of an earlier version",
                 member_text(answer, "detail"));
    else
        cli_fail(name, "%s (%s)", member_text(answer, "detail"), member_text(answer, "code"));
    json_decref(answer);
    return EXIT_COULD_NOT;
}

json_t *server_array(struct server *s, json_t **answer, const char *member)
{
    json_t *array = json_object_get(*answer, member);

    if (json_is_array(array))
        return array;
    fail(s, "unexpected response: not from the API of sitemapd");
    json_decref(*answer);
    *answer = NULL;
    return NULL;
}

/* Longer lists no catalogue has, and no page is empty before the last. */
#define LIST_PAGES_MAX 1000u

bool server_goes_on(struct server *s, size_t pages, size_t items, const char *before,
                    const char *next)
{
    if (items > 0 && pages < LIST_PAGES_MAX && strcmp(before, next) != 0)
        return true;
    return fail(
        s, "the server sent a malformed list: a page is empty or repeated, or there are too many");
}

json_t *server_get_all(struct server *s, const char *path, const char *member)
{
    json_t *all = json_array(), *some;
    struct str after = STR_INIT;
    size_t pages = 0;

    do {
        struct str target = STR_INIT;
        json_t *answer;

        str_append_text(&target, path);
        target_add(&target, "limit", PAGE_OF_LIST);
        target_add(&target, "after", after.len > 0 ? str_text(&after) : NULL);
        if (!server_get(s, &target, &answer) || (some = server_array(s, &answer, member)) == NULL) {
            server_report(s, answer);
            json_decref(all);
            all = NULL;
        } else {
            const char *next = member_text(answer, "next");
            bool good = *next == '\0' ||
                        server_goes_on(s, ++pages, json_array_size(some), str_text(&after), next);

            json_array_extend(all, some);
            str_clear(&after);
            str_append_text(&after, next);
            json_decref(answer);
            if (!good) {
                cli_fail(s->origin.text, "%s", s->why);
                json_decref(all);
                all = NULL;
            }
        }
    } while (all != NULL && after.len > 0);
    str_done(&after);
    return all;
}

bool server_send(struct server *s, const char *method, const char *target, const char *if_match,
                 FILE *body, json_t **out)
{
    struct str headers = STR_INIT;
    bool good;
    off_t bytes = fseeko(body, 0, SEEK_END) == 0 ? ftello(body) : -1;
    struct fetch_request request = {
        .target = target,
        .method = method,
        .give = give_file,
        .give_bytes = (uint64_t)bytes,
        .context = body,
    };

    *out = NULL;
    if (bytes < 0)
        return fail(s, "the list cannot be read back");
    rewind(body);
    str_append_text(&headers, "Content-Type: application/x-ndjson\r\n");
    if (if_match != NULL)
        str_append_format(&headers, "If-Match: %s\r\n", if_match);
    good =
        headers.failed ? fail(s, "out of memory") : ask_with(s, &request, str_text(&headers), out);
    str_done(&headers);
    return good;
}

bool server_stream(struct server *s, const char *target, const char *accept, fetch_take *take,
                   void *context, json_t **out)
{
    struct fetch_request request = {
        .target = target, .method = "GET", .take = take, .context = context};
    char more[96];

    snprintf(more, sizeof more, "Accept: %s\r\n", accept);
    return ask_with(s, &request, more, out);
}

/* No line of the API is so long. */
#define LINE_MAX_BYTES (32u << 20)

/* NDJSON as it comes, a piece of a line at a time. */
struct lines {
    struct str line;
    server_line *each;
    void *context;
    enum line_verdict last;
};

static bool take_lines(void *context, const struct fetch_reply *reply, const char *bytes,
                       size_t len)
{
    struct lines *l = context;

    (void)reply;
    while (len > 0) {
        const char *end = memchr(bytes, '\n', len);
        size_t part = end != NULL ? (size_t)(end - bytes) : len;
        json_t *line;

        str_append(&l->line, bytes, part);
        if (l->line.failed)
            return false;
        if (l->line.len > LINE_MAX_BYTES) {
            l->last = LINE_BROKEN;
            return false;
        }
        if (end == NULL)
            return true;
        line = json_loadb(str_text(&l->line), l->line.len, 0, NULL);
        l->last = line != NULL ? l->each(l->context, line) : LINE_BROKEN;
        json_decref(line);
        if (l->last != LINE_TAKEN)
            return false;
        str_clear(&l->line);
        bytes += part + 1;
        len -= part + 1;
    }
    return true;
}

bool server_lines(struct server *s, const char *target, server_line *each, void *context,
                  json_t **out)
{
    struct lines lines = {.line = STR_INIT, .each = each, .context = context};
    bool good = server_stream(s, target, "application/x-ndjson", take_lines, &lines, out) &&
                server_is_good(s);

    if (lines.last == LINE_BROKEN || (good && lines.line.len > 0))
        good = fail(s, "the server sent a malformed or truncated line");
    str_done(&lines.line);
    return good || lines.last == LINE_ENOUGH;
}

/* ---- members --------------------------------------------------------------------------- */

const char *member_text_or_null(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

const char *member_text(const json_t *object, const char *name)
{
    const char *text = member_text_or_null(object, name);

    return text != NULL ? text : "";
}

uint64_t member_number(const json_t *object, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(object, name));

    return value > 0 ? (uint64_t)value : 0;
}

int64_t member_time(const json_t *object, const char *name)
{
    const char *text = member_text(object, name);
    struct tm tm = {0};

    return strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm) != NULL ? (int64_t)timegm(&tm) : 0;
}

/* The fragment of what the API tells of a page URL: read as a line of its own export would be. */
static const char *read_extensions(const json_t *entry, struct shown_entry *kept)
{
    const struct reader_options options = {
        .pages = true, .lenient = true, .allow_export_fields = true, .now = INT64_MAX / 2};
    struct rejection rejection;
    char *text = NULL;

    if (json_object_get(entry, "images") != NULL || json_object_get(entry, "alternates") != NULL ||
        json_object_get(entry, "news") != NULL || json_object_get(entry, "videos") != NULL)
        text = json_dumps(entry, JSON_COMPACT);
    if (text != NULL)
        json_entry_parse(text, strlen(text), 0, &options, &kept->page, &rejection);
    free(text);
    return kept->page.entry.extensions;
}

void shown_entry_done(struct shown_entry *kept)
{
    json_entry_done(&kept->page);
}

bool member_entry(const json_t *entry, struct entry_shown *out, struct shown_entry *kept)
{
    const char *urlset = member_text(entry, "urlset");
    const char *index = *urlset != '\0' ? urlset : member_text(entry, "index");
    char *origin = kept->origin;
    struct url url = {0};

    kept->page = (struct json_entry){.storage = NULL};

    *out = (struct entry_shown){
        .id = member_text(entry, "id"),
        .loc = member_text(entry, "loc"),
        .lastmod = member_text_or_null(entry, "lastmod"),
        .digest = member_text_or_null(entry, "digest"),
        .source = member_text(entry, "source"),
        .page = (uint32_t)member_number(entry, "page"),
        .position = (uint32_t)member_number(entry, "position"),
        .registered_at = member_time(entry, "registered_at"),
        .changed_at = member_time(entry, "changed_at"),
        .is_page_url = *urlset != '\0',
    };
    if (out->is_page_url)
        out->extensions = read_extensions(entry, kept);
    if (url_split(index, strlen(index), &url)) {
        snprintf(origin, LOC_MAX_CHARS + 1, "%.*s", url.origin_len, url.text);
        out->origin = origin;
        out->path = index + url.origin_len;
    }
    return *out->loc != '\0';
}
