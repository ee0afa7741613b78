/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses a line of an access log: JSON with the fields of CDNs, or the combined format. */
#include "server/cli/commands/crawler_log.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

#include "server/base/text.h"
#include "server/rules/lastmod.h"

#define LINE_MAX_BYTES 65536u

struct log_reader {
    json_t *object; /* of the last line; owns the texts */
    char date[64];
};

struct log_reader *log_reader_new(void)
{
    return calloc(1, sizeof(struct log_reader));
}

void log_reader_free(struct log_reader *r)
{
    if (r == NULL)
        return;
    json_decref(r->object);
    free(r);
}

/* ---- values -------------------------------------------------------------------------------- */

/* At most nine digits. False if none exists, or more. */
static bool read_number(const char *text, uint64_t *out)
{
    size_t len = strspn(text, "0123456789");

    *out = 0;
    for (size_t i = 0; i < len && i < 19; i++)
        *out = *out * 10 + (uint64_t)(text[i] - '0');
    return len > 0 && len < 19 && text[len] == '\0';
}

/* Seconds, milliseconds, microseconds or nanoseconds since 1970, told apart by their size. */
static int64_t from_number(double number)
{
    while (number >= 1e11)
        number /= 1000;
    return (int64_t)number;
}

/* "2026-11-22T21:40:56Z", and variants of CDNs: a space for the T, an offset without a colon. */
static bool read_instant(const char *text, int64_t *out)
{
    char copy[LASTMOD_MAX_CHARS + 4];
    size_t len = strlen(text);
    struct lastmod date;

    if (len < 19 || len > sizeof copy - 3)
        return false;
    memcpy(copy, text, len + 1);
    copy[10] = 'T';
    if (len > 5 && (copy[len - 5] == '+' || copy[len - 5] == '-') && copy[len - 3] != ':') {
        memmove(copy + len - 1, copy + len - 2, 3);
        copy[len - 2] = ':';
        len++;
    } else if (strpbrk(copy + 19, "Z+-") == NULL) {
        strcpy(copy + len, "Z"); /* without a zone it is UTC */
        len++;
    }
    if (lastmod_parse(copy, len, INT64_MAX / 2, &date, NULL) != RULE_OK)
        return false;
    *out = date.unix_seconds;
    return true;
}

/* "21/Nov/2026:22:52:20 +0000" */
static bool read_bracketed(const char *text, int64_t *out)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int day, year, hour, minute, second, zone_hour, zone_minute;
    char month[4], sign;

    if (sscanf(text, "%2d/%3[A-Za-z]/%4d:%2d:%2d:%2d %c%2d%2d", &day, month, &year, &hour, &minute,
               &second, &sign, &zone_hour, &zone_minute) != 9 ||
        (sign != '+' && sign != '-'))
        return false;
    const char *found = strstr(months, month);
    if (strlen(month) != 3 || found == NULL || (found - months) % 3 != 0 || year < 1970)
        return false;
    struct tm tm = {.tm_mday = day,
                    .tm_mon = (int)(found - months) / 3,
                    .tm_year = year - 1900,
                    .tm_hour = hour,
                    .tm_min = minute,
                    .tm_sec = second};
    int64_t zone = zone_hour * 3600 + zone_minute * 60;
    *out = (int64_t)timegm(&tm) - (sign == '+' ? zone : -zone);
    return true;
}

/* CloudFront writes a User-Agent with its blanks percent-encoded. */
static void decode_agent(char *text)
{
    char *to = text;

    if (strchr(text, ' ') != NULL || strchr(text, '%') == NULL)
        return;
    for (const char *at = text; *at != '\0'; at++) {
        unsigned value;
        if (at[0] == '%' && ascii_is_alnum(at[1]) && ascii_is_alnum(at[2]) &&
            sscanf(at + 1, "%2x", &value) == 1 && value >= 0x20) {
            *to++ = (char)value;
            at += 2;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
}

/* ---- the combined format ------------------------------------------------------------------- */

/* The field up to `end`; moves `*at` past it. NULL: there is no such end. A backslash escapes a
 * quote. */
static char *next_field(char **at, char end)
{
    char *start = *at, *p = start;

    while (*p != '\0' && *p != end)
        p += *p == '\\' && end == '"' && p[1] != '\0' ? 2 : 1;
    if (*p != end)
        return NULL;
    *p = '\0';
    *at = p + 1;
    return start;
}

static bool skip(char **at, char wanted)
{
    if (**at != wanted)
        return false;
    (*at)++;
    return true;
}

/* Apache escapes quotes with a backslash, nginx writes \xHH. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *at = text; *at != '\0'; at++) {
        unsigned value;
        if (at[0] == '\\' && at[1] == 'x' && at[2] != '\0' && sscanf(at + 2, "%2x", &value) == 1 &&
            at[3] != '\0' && value != 0) {
            *to++ = (char)value;
            at += 3;
        } else if (at[0] == '\\' && at[1] != '\0') {
            *to++ = *++at;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
}

/* ADDRESS - USER [TIME] "METHOD TARGET VERSION" STATUS BYTES "REFERER" "AGENT" and what follows. */
static const char *read_combined(char *line, struct log_fetch *out)
{
    char *at = line, *request, *number;
    uint64_t status;

    out->address = next_field(&at, ' ');
    char *bracket = strchr(at, '[');
    if (out->address == NULL || bracket == NULL)
        return "is neither JSON nor the combined format";
    at = bracket + 1;
    const char *when = next_field(&at, ']');
    if (when == NULL || !read_bracketed(when, &out->at))
        return "has no time";
    if (!skip(&at, ' ') || !skip(&at, '"') || (request = next_field(&at, '"')) == NULL ||
        !skip(&at, ' ') || (number = next_field(&at, ' ')) == NULL ||
        !read_number(number, &status) || status > 999)
        return "has no request and status";
    out->status = (unsigned)status;
    number = strpbrk(at, " ") != NULL ? next_field(&at, ' ') : at;
    if (!read_number(number, &out->bytes))
        out->bytes = 0;
    char *referer = skip(&at, '"') ? next_field(&at, '"') : NULL;
    char *agent = referer != NULL && skip(&at, ' ') && skip(&at, '"') ? next_field(&at, '"') : NULL;
    if (agent == NULL)
        return "has no User-Agent: it is the common format, not the combined one";
    unescape(agent);
    out->user_agent = agent;
    unescape(request);
    char *target = request;
    out->method = next_field(&target, ' ');
    if (out->method == NULL)
        return "has no request line";
    out->target = target;
    target[strcspn(target, " ")] = '\0';
    return NULL;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

/* The names of a field at CDNs and proxies; the first present one counts, ignoring case. */
#define NAMES 14u
static const char *const time_names[NAMES] = {
    "timestamp", "time",         "@timestamp",       "EdgeStartTimestamp", "EdgeEndTimestamp",
    "ts",        "time_iso8601", "request_time_iso", "start_time",         "time_local"};
static const char *const status_names[NAMES] = {
    "status", "EdgeResponseStatus", "sc-status", "response_status", "statusCode", "resp_status"};
static const char *const bytes_names[NAMES] = {"bytes",
                                               "body_bytes_sent",
                                               "EdgeResponseBytes",
                                               "sc-bytes",
                                               "response_body_size",
                                               "resp_body_size",
                                               "bytes_sent",
                                               "size"};
static const char *const method_names[NAMES] = {"method", "ClientRequestMethod", "cs-method",
                                                "request_method"};
static const char *const host_names[NAMES] = {"host",     "ClientRequestHost", "x-host-header",
                                              "cs(Host)", "request_host",      "http_host"};
static const char *const target_names[NAMES] = {
    "ClientRequestURI", "cs-uri-stem", "request_uri", "url", "uri", "path", "ClientRequestPath"};
static const char *const agent_names[NAMES] = {
    "user_agent",         "ClientRequestUserAgent", "cs(User-Agent)", "cs-user-agent",
    "request_user_agent", "http_user_agent",        "userAgent"};
static const char *const address_names[NAMES] = {"client_ip", "ClientIP", "c-ip",    "remote_addr",
                                                 "peer",      "clientip", "clientIp"};

static const json_t *member(const json_t *object, const char *const names[NAMES])
{
    for (size_t i = 0; i < NAMES && names[i] != NULL; i++) {
        const json_t *exact = json_object_get(object, names[i]);
        if (exact != NULL)
            return exact;
    }
    return NULL;
}

static const char *text_of(const json_t *object, const char *const names[NAMES])
{
    return json_string_value(member(object, names));
}

static bool number_of(const json_t *object, const char *const names[NAMES], uint64_t *out)
{
    const json_t *value = member(object, names);

    if (json_is_integer(value) && json_integer_value(value) >= 0) {
        *out = (uint64_t)json_integer_value(value);
        return true;
    }
    return json_is_string(value) && read_number(json_string_value(value), out);
}

static bool time_of(struct log_reader *r, struct log_fetch *out)
{
    const json_t *value = member(r->object, time_names);
    const char *text = json_string_value(value);
    const char *date = json_string_value(json_object_get(r->object, "date"));
    uint64_t number;

    if (json_is_number(value)) {
        out->at = from_number(json_number_value(value));
        return out->at > 0;
    }
    if (text == NULL)
        return false;
    /* CloudFront has separate fields for day and time. */
    if (date != NULL && strlen(date) == 10 && strlen(text) < 20) {
        snprintf(r->date, sizeof r->date, "%sT%s", date, text);
        text = r->date;
    }
    if (read_number(text, &number)) {
        out->at = from_number((double)number);
        return out->at > 0;
    }
    return read_instant(text, &out->at) || read_bracketed(text, &out->at);
}

static const char *read_json(struct log_reader *r, const char *line, size_t len,
                             struct log_fetch *out)
{
    uint64_t status = 0;

    json_decref(r->object);
    r->object = json_loadb(line, len, 0, NULL);
    if (!json_is_object(r->object))
        return "is not a JSON object";
    out->target = text_of(r->object, target_names);
    out->method = text_of(r->object, method_names);
    out->host = text_of(r->object, host_names);
    out->address = text_of(r->object, address_names);
    out->user_agent = text_of(r->object, agent_names);
    if (out->user_agent != NULL)
        decode_agent((char *)(uintptr_t)out->user_agent); /* in place: the result is shorter */
    if (out->user_agent == NULL)
        out->user_agent = "";
    number_of(r->object, bytes_names, &out->bytes);
    if (!time_of(r, out))
        return "has no time";
    if (!number_of(r->object, status_names, &status) || status > 999)
        return "has no status";
    if (out->target == NULL)
        return "has no path";
    out->status = (unsigned)status;
    return NULL;
}

enum log_line log_reader_line(struct log_reader *r, char *line, size_t len, struct log_fetch *out,
                              const char **why)
{
    size_t blank = strspn(line, " \t\r");

    *out = (struct log_fetch){0};
    *why = NULL;
    if (strlen(line) != len)
        *why = "has a NUL byte";
    else if (line[blank] == '\0' || line[blank] == '#')
        return LOG_LINE_NOTHING;
    else if (line[blank] == '{')
        *why = read_json(r, line, len, out);
    else
        *why = read_combined(line, out);
    return *why == NULL ? LOG_LINE_FETCH : LOG_LINE_UNREADABLE;
}

/* ---- files --------------------------------------------------------------------------------- */

struct log_file {
    gzFile gz; /* also reads files that are not gzip */
    XXH3_state_t *hash;
    uint64_t bytes;
    size_t start, end; /* of the part of `data` that was not returned */
    bool ended, skipping;
    char data[LINE_MAX_BYTES + 1];
};

struct log_file *log_file_open(const char *path)
{
    struct log_file *f = calloc(1, sizeof *f);
    int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);

    if (f != NULL && fd >= 0 && (f->hash = XXH3_createState()) != NULL) {
        XXH3_128bits_reset(f->hash);
        f->gz = gzdopen(fd, "rb");
        if (f->gz != NULL)
            return f;
        errno = ENOMEM;
    }
    int error = errno;
    if (fd >= 0)
        close(fd);
    log_file_close(f);
    errno = error;
    return NULL;
}

void log_file_close(struct log_file *f)
{
    if (f == NULL)
        return;
    if (f->gz != NULL)
        gzclose(f->gz);
    XXH3_freeState(f->hash);
    free(f);
}

/* Moves the rest to the front, and reads more. False: the file cannot be read. */
static bool fill(struct log_file *f)
{
    memmove(f->data, f->data + f->start, f->end - f->start);
    f->end -= f->start;
    f->start = 0;
    int got = gzread(f->gz, f->data + f->end, (unsigned)(LINE_MAX_BYTES - f->end));
    int error = Z_OK;
    if (got <= 0)
        gzerror(f->gz, &error);
    f->ended = got == 0;
    f->end += got > 0 ? (size_t)got : 0;
    /* gzread reports a truncated stream as its end. */
    return got >= 0 && (error == Z_OK || error == Z_STREAM_END);
}

static void consume(struct log_file *f, size_t len)
{
    XXH3_128bits_update(f->hash, f->data + f->start, len);
    f->bytes += len;
    f->start += len;
}

enum log_next log_file_next(struct log_file *f, char **line, size_t *len, bool *rest)
{
    *rest = false;
    for (;;) {
        char *start = f->data + f->start;
        char *end = memchr(start, '\n', f->end - f->start);

        if (end != NULL) {
            *line = start;
            *len = (size_t)(end - start);
            consume(f, *len + 1);
            *end = '\0';
            if (!f->skipping)
                return LOG_NEXT_LINE;
            f->skipping = false;
            return LOG_NEXT_TOO_LONG;
        }
        if (f->end - f->start == LINE_MAX_BYTES) {
            f->skipping = true;
            consume(f, LINE_MAX_BYTES);
        }
        if (f->ended) {
            *rest = f->end > f->start || f->skipping;
            return LOG_NEXT_END;
        }
        if (!fill(f))
            return LOG_NEXT_DAMAGED;
    }
}

uint64_t log_file_bytes(const struct log_file *f)
{
    return f->bytes;
}

void log_file_hash(const struct log_file *f, uint8_t out[CRAWLER_LOG_HASH])
{
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(f->hash));
    memcpy(out, canonical.digest, CRAWLER_LOG_HASH);
}
