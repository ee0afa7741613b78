/* The log's lines: one event is one line, whatever stands in it; nothing from outside forges one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/log/access_log.h"
#include "server/log/log.h"

#define NASTY "a\nb\r\x1b[31m\"\\\x80\xc3\xa9"

static char path[] = "/tmp/test_log.XXXXXX";
static int saved;

/* Sends stderr into a file. */
static void divert(void)
{
    strcpy(path, "/tmp/test_log.XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    saved = dup(STDERR_FILENO);
    dup2(fd, STDERR_FILENO);
    close(fd);
}

/* Gives stderr back; what was written, to be freed. */
static char *undo(void)
{
    dup2(saved, STDERR_FILENO);
    close(saved);
    char *text = calloc(1, 20000);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, text, 19999) >= 0);
    close(fd);
    unlink(path);
    return text;
}

static size_t lines(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += *text == '\n';
    return count;
}

static void a_text_line_cannot_be_forged(void **state)
{
    (void)state;
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    divert();
    log_event(LOG_LEVEL_WARNING, "event", "%s", NASTY);
    log_event(LOG_LEVEL_DEBUG, "quiet", "not at this level");
    log_failure("what", "%s", NASTY);
    char *text = undo();
    assert_int_equal(lines(text), 2);
    assert_non_null(strstr(text, " warning event: a\\x0ab\\x0d\\x1b[31m\"\\\\\\x80\xc3\xa9\n"));
    assert_non_null(strstr(text, "\nsitemapd: what: a\\x0ab"));
    free(text);
}

static void a_json_line_is_one_object(void **state)
{
    (void)state;
    log_setup(LOG_LEVEL_DEBUG, LOG_FORMAT_JSON);
    divert();
    log_event(LOG_LEVEL_DEBUG, "event", "%s", NASTY);
    char *text = undo();
    assert_int_equal(lines(text), 1);
    assert_memory_equal(text, "{\"time\":\"20", 11);
    assert_non_null(strstr(text, "\"level\":\"debug\",\"event\":\"event\",\"message\":"
                                 "\"a\\u000ab\\u000d\\u001b[31m\\\"\\\\\\ufffd\xc3\xa9\"}\n"));
    free(text);
}

static void a_long_line_is_cut_and_ends(void **state)
{
    char *message = malloc(10001);
    (void)state;
    memset(message, '\n', 10000);
    message[10000] = '\0';
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    divert();
    log_event(LOG_LEVEL_INFO, "event", "%s", message);
    char *text = undo();
    assert_int_equal(lines(text), 1);
    assert_string_equal(text + strlen(text) - 3, "\"}\n");
    free(text);
    free(message);
}

static void levels_have_names(void **state)
{
    enum log_level level = LOG_LEVEL_ERROR;
    (void)state;
    assert_true(log_level_parse("debug", &level));
    assert_int_equal(level, LOG_LEVEL_DEBUG);
    assert_false(log_level_parse("Debug", &level));
    assert_false(log_level_parse("", &level));
}

static void an_access_line_cannot_be_forged(void **state)
{
    struct access_log *log;
    struct access_line line = {
        .peer = "127.0.0.1",
        .method = "GET",
        .path = "/" NASTY,
        .query = "x=1",
        .user_agent = NASTY,
        .status = 200,
        .body_bytes = 7,
        .micros = 42,
    };
    (void)state;
    divert();
    assert_true(access_log_open("-", &log));
    access_log_write(log, &line);
    access_log_close(log);
    char *text = undo();
    assert_int_equal(lines(text), 1);
    assert_memory_equal(text, "127.0.0.1 - - [", 15);
    assert_non_null(strstr(text, "\"GET /a\\x0Ab\\x0D\\x1B[31m\\x22\\x5C"));
    assert_non_null(strstr(text, "?x=1\" 200 7 \"-\" \"a\\x0Ab"));
    free(text);
    assert_true(access_log_open(NULL, &log));
    assert_null(log);
    access_log_write(log, &line);
    access_log_close(log);
    assert_false(access_log_open("/not/there/access.log", &log));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_line_cannot_be_forged),
        cmocka_unit_test(a_json_line_is_one_object),
        cmocka_unit_test(a_long_line_is_cut_and_ends),
        cmocka_unit_test(levels_have_names),
        cmocka_unit_test(an_access_line_cannot_be_forged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
