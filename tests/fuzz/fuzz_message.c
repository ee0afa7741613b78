/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What the listener checks of a request: framing, Host, target, path. The input is the request as
 * it would stand on the wire, split here into what a parser hands over, so that a field or a target
 * may hold any byte but the line's end. */
#include "tests/fuzz/require.h"

#include "server/http/headers.h"

static const char *const listed[] = {"sitemaps.internal", "proxy.example:8443"};
static const char *const types[] = {"application/json", "application/x-ndjson", NULL};

static const struct route routes[] = {
    {.methods = HTTP_GET, .path = "/v1/sitemaps"},
    {.methods = HTTP_POST, .path = "/v1/sitemaps"},
    {.methods = HTTP_GET | HTTP_DELETE, .path = "/v1/sitemaps/{id}"},
    {.methods = HTTP_POST, .path = "/v1/sources/{name}/scan"},
};

static void try_host(const char *host)
{
    size_t len = strlen(host);
    bool sound = check_host(host);

    /* What is let onto the admin listener has no byte that a log or a reply would stumble over. */
    if (check_host_is_local(host))
        REQUIRE(sound);
    for (size_t i = 0; sound && i < len; i++)
        REQUIRE(host[i] > 0x20 && host[i] < 0x7f && strchr("/?#@\\\"<>", host[i]) == NULL);
    if (check_host_is_listed(host, listed, 2))
        REQUIRE(sound && (strncasecmp(host, listed[0], strlen(listed[0])) == 0 ||
                          strcasecmp(host, listed[1]) == 0));
}

/* Whatever a proxy sends, what goes into the log is an address as we write them ourselves. */
static void try_forwarded(const char *list)
{
    static struct address_range trusted;
    char client[INET6_ADDRSTRLEN], again[INET6_ADDRSTRLEN];

    if (trusted.bits == 0)
        REQUIRE(address_range_parse("10.0.0.0/8", &trusted));
    if (!forwarded_client(list, &trusted, 1, client))
        return;
    REQUIRE(strlen(client) < sizeof client);
    REQUIRE(forwarded_client(client, &trusted, 1, again) && strcmp(client, again) == 0);
}

static void try_segment(const char *text, size_t len)
{
    struct str out = STR_INIT;

    if (check_decode_segment(text, len, &out))
        REQUIRE(out.len <= len && strlen(str_text(&out)) == out.len);
    str_done(&out);
}

static void try_route(const char *path)
{
    for (unsigned method = HTTP_GET; method <= HTTP_DELETE; method <<= 1) {
        struct route_match m;
        route_match(routes, sizeof routes / sizeof routes[0], NULL, path, (enum http_method)method,
                    &m);
        REQUIRE(m.route == NULL || (m.allowed & m.route->methods) != 0);
        if (m.tail == NULL)
            continue;
        REQUIRE(m.tail_len > 0 && m.tail >= path && m.tail + m.tail_len <= path + strlen(path));
        REQUIRE(memchr(m.tail, '/', m.tail_len) == NULL);
        try_segment(m.tail, m.tail_len);
    }
}

static void try_target(const char *text, const char *host)
{
    char *target = strdup(text);
    const char *path, *query, *authority;

    REQUIRE(target != NULL);
    if (check_target(target, host, &path, &query, &authority) == TARGET_OK) {
        REQUIRE(path[0] == '/' && strchr(path, '?') == NULL);
        for (const char *p = path; *p != '\0'; p++)
            REQUIRE((unsigned char)*p > 0x20 && *p != 0x7f);
        REQUIRE(host == NULL || authority == NULL);
        REQUIRE(authority == NULL || (*authority != '\0' && strchr(authority, '/') == NULL));
        try_route(path);
    }
    free(target);
}

/* Adds "name: value" as the parser would hand it over; a NUL in the value ends only the string. */
static void add_line(struct header_scan *scan, char *line, size_t len)
{
    char *colon = memchr(line, ':', len);

    if (colon == NULL) {
        header_scan_add(scan, line, len, NULL, 0);
        return;
    }
    size_t name_len = (size_t)(colon - line);
    *colon++ = '\0';
    while (colon < line + len && *colon == ' ')
        colon++;
    header_scan_add(scan, line, name_len, colon, len - (size_t)(colon - line));
}

static void require_trusted(const struct header_scan *scan, const char *version)
{
    uint64_t length = 0;
    bool known = check_content_length(scan, &length);

    REQUIRE(!scan->malformed);
    REQUIRE(scan->lines[HEADER_HOST] <= 1 && scan->lines[HEADER_CONTENT_LENGTH] <= 1);
    REQUIRE(scan->lines[HEADER_TRANSFER_ENCODING] <= 1);
    REQUIRE(scan->lines[HEADER_CONTENT_LENGTH] == 0 ||
            (known && length <= INT64_MAX && scan->lines[HEADER_TRANSFER_ENCODING] == 0));
    REQUIRE(scan->lines[HEADER_TRANSFER_ENCODING] == 0 || strcmp(version, "HTTP/1.1") == 0);
    (void)check_expects_continue(scan, version);
    (void)check_content_type(scan->value[HEADER_CONTENT_TYPE], types);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size);
    char *end = text + size, *line = text, *target = NULL;
    const char *version = size > 0 && (text[0] & 1) != 0 ? "HTTP/1.0" : "HTTP/1.1";
    struct header_scan scan = {.malformed = false};

    while (line < end) {
        char *next = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((next != NULL ? next : end) - line);
        line[len] = '\0';
        if (target == NULL)
            target = line;
        else
            add_line(&scan, line, len);
        line += len + 1;
    }
    if (check_framing(&scan, version) == NULL)
        require_trusted(&scan, version);
    const char *host = scan.value[HEADER_HOST];
    if (host != NULL)
        try_host(host);
    const char *list = header_scan_value(&scan, HEADER_X_FORWARDED_FOR);
    if (list != NULL)
        try_forwarded(list);
    if (target != NULL) {
        try_target(target, host);
        try_target(target, NULL);
        try_host(target);
        try_segment(target, strlen(target));
    }
    header_scan_done(&scan);
    free(text);
    return 0;
}
