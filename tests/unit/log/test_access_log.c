/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The access log: its two formats to the letter, and that nothing from outside forges a line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/log/access_log.h"
#include "tests/unit/lib/scratch.h"

#define NASTY "a\nb\r\x1b[31m\"\\\x80\xc3\xa9"

static char path[64];

static void choose_path(void)
{
    int fd = scratch_file(path, "test_access_log");
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
}

static char *read_path(const char *from)
{
    char *text = calloc(1, 40000);
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, text, 39999) >= 0);
    close(fd);
    return text;
}

/* What one line comes to; to be freed. */
static char *written(enum access_format format, const struct access_line *line)
{
    struct access_log *log;
    choose_path();
    assert_true(access_log_open(path, format, &log));
    access_log_write(log, line);
    access_log_close(log);
    char *text = read_path(path);
    unlink(path);
    return text;
}

static const struct access_line plain = {
    .peer = "192.0.2.1",
    .host = "www.example.com",
    .method = "GET",
    .path = "/sitemap_index.xml",
    .query = "x=1",
    .version = "HTTP/1.1",
    .referer = "https://example.com/",
    .user_agent = "Mozilla/5.0 (compatible; Bot/2.1)",
    .request_id = "id-1",
    .listener = "public",
    .route = "page",
    .status = 200,
    .body_bytes = 18446744073709551615u,
    .micros = 42,
};

static void combined_is_the_format_of_that_name(void **state)
{
    char *text = written(ACCESS_COMBINED, &plain);
    char *end = strstr(text, " +0000] ");
    assert_non_null(end);
    assert_int_equal(end - text, strlen("192.0.2.1 - - [21/Nov/2026:22:52:20"));
    assert_memory_equal(text, "192.0.2.1 - - [", 15);
    assert_string_equal(end, " +0000] \"GET /sitemap_index.xml?x=1 HTTP/1.1\" 200 "
                             "18446744073709551615 \"https://example.com/\" "
                             "\"Mozilla/5.0 (compatible; Bot/2.1)\"\n");
    free(text);
}

static void json_has_every_field(void **state)
{
    char *text = written(ACCESS_JSON, &plain);
    char *behind = strstr(text, "Z\"");
    assert_non_null(behind);
    assert_int_equal(behind - text, strlen("{\"ts\":\"2026-11-21T22:52:20.123"));
    assert_string_equal(
        behind, "Z\",\"listener\":\"public\",\"remote\":\"192.0.2.1\",\"user\":null,"
                "\"host\":\"www.example.com\",\"method\":\"GET\","
                "\"target\":\"/sitemap_index.xml?x=1\",\"protocol\":\"HTTP/1.1\","
                "\"route\":\"page\",\"status\":200,\"bytes\":18446744073709551615,\"micros\":42,"
                "\"request_id\":\"id-1\",\"referer\":\"https://example.com/\","
                "\"user_agent\":\"Mozilla/5.0 (compatible; Bot/2.1)\"}\n");
    free(text);
}

static void a_line_cannot_be_forged(void **state)
{
    struct access_line line = {.peer = "192.0.2.1", .method = "GET", .path = "/" NASTY};
    line.user_agent = NASTY;
    char *text = written(ACCESS_COMBINED, &line);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    assert_non_null(strstr(text,
                           "\"GET /a\\x0Ab\\x0D\\x1B[31m\\x22\\x5C\\x80\\xC3\\xA9 -\" 0 0 \"-\" "
                           "\"a\\x0Ab\\x0D\\x1B[31m\\x22\\x5C\\x80\\xC3\\xA9\"\n"));
    free(text);
    text = written(ACCESS_JSON, &line);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    assert_non_null(strstr(
        text,
        "\"target\":\"/a\\u000ab\\u000d\\u001b[31m\\\"\\\\\\ufffd\xc3\xa9\",\"protocol\":null"));
    assert_non_null(
        strstr(text, "\"user_agent\":\"a\\u000ab\\u000d\\u001b[31m\\\"\\\\\\ufffd\xc3\xa9\"}\n"));
    free(text);
}

static void what_is_not_known_is_left_open(void **state)
{
    static const struct access_line nothing = {.status = 414};
    char *text = written(ACCESS_COMBINED, &nothing);
    assert_non_null(strstr(text, " +0000] \"- - -\" 414 0 \"-\" \"-\"\n"));
    free(text);
    text = written(ACCESS_JSON, &nothing);
    assert_non_null(strstr(text, "\",\"listener\":null,\"remote\":null,\"user\":null,\"host\":null,"
                                 "\"method\":null,\"target\":\"-\",\"protocol\":null,"));
    free(text);
}

/* No field pushes another out of the line, however long it is and whatever it takes to escape. */
static void long_fields_are_cut(void **state)
{
    static const char fills[] = {'x', '"', '\n'};
    struct access_line line = plain;
    char text[9000];
    for (size_t i = 0; i < sizeof fills; i++) {
        memset(text, fills[i], sizeof text - 1);
        text[sizeof text - 1] = '\0';
        line.host = line.method = line.path = line.query = line.version = text;
        line.referer = line.user_agent = line.token_name = line.request_id = text;
        char *combined = written(ACCESS_COMBINED, &line);
        assert_string_equal(combined + strlen(combined) - 2, "\"\n");
        assert_non_null(strstr(combined, "\" 200 18446744073709551615 \""));
        assert_int_equal(combined[strlen(combined) - 3], fills[i] == 'x'   ? 'x'
                                                         : fills[i] == '"' ? '2'
                                                                           : 'A');
        free(combined);
        char *json = written(ACCESS_JSON, &line);
        assert_string_equal(json + strlen(json) - 3, "\"}\n");
        assert_non_null(strstr(json, "\",\"status\":200,\"bytes\":18446744073709551615,"));
        assert_non_null(strstr(json, "\",\"user_agent\":\""));
        free(json);
    }
}

static void it_opens_what_it_can(void **state)
{
    struct access_log *log;
    struct stat about;
    assert_true(access_log_open(NULL, ACCESS_COMBINED, &log));
    assert_null(log);
    access_log_reopen(log);
    assert_int_equal(access_log_dropped(log), 0);
    access_log_close(log);
    assert_false(access_log_open("/not/there/access.log", ACCESS_COMBINED, &log));
    assert_int_equal(errno, ENOENT);
    assert_null(log);
    choose_path();
    mode_t mask = umask(077);
    assert_true(access_log_open(path, ACCESS_COMBINED, &log));
    umask(mask);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0640);
    access_log_close(log);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(combined_is_the_format_of_that_name),
        cmocka_unit_test(json_has_every_field),
        cmocka_unit_test(a_line_cannot_be_forged),
        cmocka_unit_test(what_is_not_known_is_left_open),
        cmocka_unit_test(long_fields_are_cut),
        cmocka_unit_test(it_opens_what_it_can),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
