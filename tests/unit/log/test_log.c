/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The log's lines: one event is one line, whatever is in it; nothing from outside forges one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/log/log.h"
#include "tests/unit/lib/scratch.h"

#define NASTY "a\nb\r\x1b[31m\"\\\x80\xc3\xa9"

static char path[SCRATCH_MAX_BYTES];
static int saved;

/* Sends stderr into a file. */
static void divert(void)
{
    int fd = scratch_file(path, "test_log");
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
    assert_true(log_level_parse("debug", &level));
    assert_int_equal(level, LOG_LEVEL_DEBUG);
    assert_false(log_level_parse("Debug", &level));
    assert_false(log_level_parse("", &level));
}

/* `JOURNAL_STREAM` as systemd sets it for the stderr that is open now; or with another inode. */
static void name_journal(unsigned more)
{
    struct stat about;
    char text[64];
    assert_int_equal(fstat(STDERR_FILENO, &about), 0);
    snprintf(text, sizeof text, "%ju:%ju", (uintmax_t)about.st_dev, (uintmax_t)about.st_ino + more);
    setenv("JOURNAL_STREAM", text, 1);
}

static void the_journal_gets_priorities(void **state)
{
    divert();
    name_journal(0);
    log_setup(LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
    log_event(LOG_LEVEL_ERROR, "event", "one");
    log_event(LOG_LEVEL_WARNING, "event", "two");
    log_event(LOG_LEVEL_INFO, "event", "three");
    log_event(LOG_LEVEL_DEBUG, "event", "four");
    log_failure("what", "why");
    log_setup(LOG_LEVEL_DEBUG, LOG_FORMAT_JSON);
    log_event(LOG_LEVEL_INFO, "event", "five");
    name_journal(1);
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    log_event(LOG_LEVEL_INFO, "event", "six");
    char *text = undo();
    unsetenv("JOURNAL_STREAM");
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    static const char expected[] = "<3>error event: one\n"
                                   "<4>warning event: two\n"
                                   "<6>info event: three\n"
                                   "<7>debug event: four\n"
                                   "<3>sitemapd: what: why\n"
                                   "<6>{\"time\":\"20";
    assert_memory_equal(text, expected, sizeof expected - 1);
    assert_non_null(strstr(text, "five\"}\n20"));
    assert_non_null(strstr(text, "Z info event: six\n"));
    free(text);
}

static void a_line_names_its_request(void **state)
{
    divert();
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    const struct log_ids named = {"abc-1", NULL}, none = {NULL, NULL},
                         traced = {"abc-2", "4bf92f3577b34da6a3ce929d0e0e4736-and more"};
    log_request(LOG_LEVEL_INFO, "event", &named, "done");
    log_request(LOG_LEVEL_INFO, "event", &none, "done");
    log_request(LOG_LEVEL_INFO, "event", &traced, "done");
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    log_request(LOG_LEVEL_INFO, "event", &named, "done");
    log_request(LOG_LEVEL_INFO, "event", &traced, "done");
    char *text = undo();
    assert_non_null(strstr(text, " info event: done (request abc-1)\n"));
    assert_non_null(strstr(text, " info event: done\n"));
    assert_non_null(
        strstr(text, "\"event\":\"event\",\"request_id\":\"abc-1\",\"message\":\"done\"}\n"));
    assert_non_null(
        strstr(text, " done (request abc-2) (trace 4bf92f3577b34da6a3ce929d0e0e4736)\n"));
    assert_non_null(strstr(text, "\"request_id\":\"abc-2\",\"trace_id\":"
                                 "\"4bf92f3577b34da6a3ce929d0e0e4736\",\"message\":\"done\"}\n"));
    free(text);
}

/* Between start and stop a thread writes: in order, and all of it. */
static void the_thread_loses_nothing(void **state)
{
    divert();
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    log_start();
    for (int i = 0; i < 200; i++)
        log_event(LOG_LEVEL_INFO, "event", "number %d.", i);
    log_flush();
    char *early = calloc(1, 20000);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, early, 19999) > 0);
    close(fd);
    assert_non_null(strstr(early, "number 199."));
    log_failure("what", "why");
    log_stop();
    log_event(LOG_LEVEL_INFO, "event", "directly");
    char *text = undo();
    assert_int_equal(lines(text), 202);
    for (int i = 0; i < 200; i++) {
        char word[32];
        snprintf(word, sizeof word, "number %d.", i);
        assert_non_null(strstr(text, word));
        if (i > 0)
            assert_true(strstr(text, word) > strstr(text, "number 0."));
    }
    assert_true(strstr(text, "why") > strstr(text, "number 199."));
    assert_true(strstr(text, "directly") > strstr(text, "why"));
    assert_int_equal(log_dropped(), 0);
    free(early);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_line_cannot_be_forged), cmocka_unit_test(a_json_line_is_one_object),
        cmocka_unit_test(a_long_line_is_cut_and_ends),  cmocka_unit_test(levels_have_names),
        cmocka_unit_test(the_journal_gets_priorities),  cmocka_unit_test(a_line_names_its_request),
        cmocka_unit_test(the_thread_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
