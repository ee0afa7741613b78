/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The writer's thread and its ring: nothing is lost, nothing mixed, nobody waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/log/log_writer.h"
#include "tests/unit/lib/scratch.h"

#define THREADS 12u /* more than there are lanes */
#define LINES   3000u

#define READ_BYTES (4u * RING_BYTES)

static char folder[64], path[96], moved[96];

static int make_folder(void **state)
{
    scratch_make(folder, "test_log_writer");
    snprintf(path, sizeof path, "%s/log", folder);
    snprintf(moved, sizeof moved, "%s/log.1", folder);
    return 0;
}

static int drop_folder(void **state)
{
    unlink(path);
    unlink(moved);
    return rmdir(folder);
}

static char *read_file(const char *from, size_t *len)
{
    struct stat about;
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &about), 0);
    char *text = calloc(1, (size_t)about.st_size + 1);
    for (*len = 0; *len < (size_t)about.st_size;) {
        ssize_t n = read(fd, text + *len, (size_t)about.st_size - *len);
        assert_true(n > 0);
        *len += (size_t)n;
    }
    close(fd);
    return text;
}

struct talker {
    struct log_writer *writer;
    unsigned number, put, most;
    bool urgent;
};

static void *talk(void *context)
{
    struct talker *t = context;
    char line[200];
    for (unsigned i = 0; i < LINES; i++) {
        int len =
            snprintf(line, sizeof line, "%u %u %.*s\n", t->number, i, (int)(1 + i % 119),
                     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        while (!log_writer_add(t->writer, line, (size_t)len, t->urgent && i % 7 == 0))
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        t->put++;
    }
    return NULL;
}

/* Every line of every thread is there, once, whole, and in the thread's order. */
static void check_talk(const char *text)
{
    unsigned next[THREADS] = {0}, count = 0;
    for (; *text != '\0'; text = strchr(text, '\n') + 1, count++) {
        unsigned number, i;
        int len;
        assert_non_null(strchr(text, '\n'));
        assert_int_equal(sscanf(text, "%u %u %n", &number, &i, &len), 2);
        assert_true(number < THREADS);
        assert_int_equal(next[number]++, i);
        assert_int_equal(strspn(text + len, "x"), 1 + i % 119);
        assert_int_equal(text[(unsigned)len + 1 + i % 119], '\n');
    }
    assert_int_equal(count, THREADS * LINES);
}

static void many_threads_lose_nothing(void **state)
{
    struct talker talkers[THREADS];
    pthread_t threads[THREADS];
    struct log_writer_options options = {.path = path};
    struct log_writer *w = log_writer_new(&options);
    size_t len;
    assert_non_null(w);
    for (unsigned i = 0; i < THREADS; i++) {
        talkers[i] = (struct talker){.writer = w, .number = i, .urgent = i % 2 == 0};
        assert_int_equal(pthread_create(&threads[i], NULL, talk, &talkers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    log_writer_free(w);
    char *text = read_file(path, &len);
    assert_int_equal(strlen(text), len);
    check_talk(text);
    free(text);
}

static void a_line_alone_is_written_by_itself(void **state)
{
    struct log_writer_options options = {.path = path};
    struct log_writer *w = log_writer_new(&options);
    struct stat about = {.st_size = 0};
    assert_true(log_writer_add(w, "alone\n", 6, false));
    for (int i = 0; i < 20000 && about.st_size == 0; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        stat(path, &about);
    }
    assert_int_equal(about.st_size, 6);
    log_writer_free(w);
}

struct heard {
    unsigned reopened, failed, errors;
};

static void hear(void *context, bool reopening, int error)
{
    struct heard *heard = context;
    heard->errors += error != 0;
    heard->reopened += reopening && error == 0;
    heard->failed += reopening && error != 0;
}

static void a_moved_file_is_left_for_a_new_one(void **state)
{
    struct heard heard = {0, 0, 0};
    struct log_writer_options options = {.path = path, .on_state = hear, .context = &heard};
    struct log_writer *w = log_writer_new(&options);
    size_t len;
    log_writer_add(w, "before\n", 7, false);
    log_writer_flush(w);
    assert_int_equal(rename(path, moved), 0);
    log_writer_add(w, "between\n", 8, false);
    log_writer_flush(w);
    log_writer_reopen(w);
    log_writer_flush(w);
    log_writer_add(w, "behind\n", 7, false);
    log_writer_free(w);
    assert_int_equal(heard.reopened, 1);
    char *old = read_file(moved, &len), *fresh = read_file(path, &len);
    assert_string_equal(old, "before\nbetween\n");
    assert_string_equal(fresh, "behind\n");
    free(old);
    free(fresh);
}

static void what_cannot_be_reopened_is_kept(void **state)
{
    struct heard heard = {0, 0, 0};
    struct log_writer_options options = {.path = path, .on_state = hear, .context = &heard};
    struct log_writer *w = log_writer_new(&options);
    size_t len;
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    log_writer_reopen(w);
    log_writer_flush(w);
    log_writer_add(w, "kept\n", 5, false);
    log_writer_free(w);
    assert_int_equal(heard.failed, 1);
    assert_int_equal(rmdir(path), 0);
    char *text = read_file(moved, &len);
    assert_string_equal(text, "kept\n");
    free(text);
}

/* Fills a writer whose file takes nothing; the lines that it took. */
static unsigned fill(struct log_writer *w, const char line[128])
{
    unsigned put = 0, refused = 0;
    for (unsigned i = 0; i < 60000 && refused < 1000; i++) {
        bool taken = log_writer_add(w, line, 128, true);
        put += taken;
        refused += !taken;
    }
    assert_int_equal(refused, 1000);
    return put;
}

/* A reader that stands still costs lines, never time; when it goes on, what was taken comes, whole.
 */
static void a_slow_reader_is_not_waited_for(bool socket)
{
    int ends[2];
    char line[129], *got = malloc(READ_BYTES);
    size_t len = 0;
    memset(line, 'y', 127);
    line[127] = '\n';
    assert_int_equal(socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends), 0);
    struct log_writer_options options = {.fd = ends[socket ? 0 : 1]};
    struct log_writer *w = log_writer_new(&options);
    unsigned put = fill(w, line);
    while (len < (size_t)put * 128) {
        ssize_t n = read(ends[socket ? 1 : 0], got + len, READ_BYTES - len);
        assert_true(n > 0);
        len += (size_t)n;
    }
    for (unsigned i = 0; i < put; i++)
        assert_memory_equal(got + i * 128, line, 128);
    log_writer_free(w);
    close(ends[0]);
    close(ends[1]);
    free(got);
}

static void a_slow_pipe(void **state)
{
    a_slow_reader_is_not_waited_for(false);
}

static void a_slow_socket(void **state)
{
    a_slow_reader_is_not_waited_for(true);
}

/* A stop gives up on a reader that never comes back, and does not wait at all for one that is gone.
 */
static void a_stop_ends(void **state)
{
    int ends[2];
    char line[128];
    memset(line, 'y', sizeof line);
    line[127] = '\n';
    assert_int_equal(pipe(ends), 0);
    struct log_writer_options options = {.fd = ends[1]};
    struct log_writer *w = log_writer_new(&options);
    fill(w, line);
    log_writer_free(w);
    w = log_writer_new(&options);
    close(ends[0]);
    log_writer_add(w, line, sizeof line, true);
    log_writer_free(w);
    close(ends[1]);
}

/* A full disk: told once, and what was taken is written when there is room. */
static void a_full_disk_is_reported(void **state)
{
    struct heard heard = {0, 0, 0};
    struct log_writer_options options = {.path = "/dev/full", .on_state = hear, .context = &heard};
    struct log_writer *w = log_writer_new(&options);
    assert_non_null(w);
    for (int i = 0; i < 3; i++) {
        log_writer_add(w, "lost\n", 5, true);
        log_writer_flush(w);
    }
    log_writer_free(w);
    assert_int_equal(heard.errors, 1);
}

static void what_is_no_place_for_a_log(void **state)
{
    struct log_writer_options options = {.path = "/not/there/log"};
    assert_null(log_writer_new(&options));
    assert_int_equal(errno, ENOENT);
    options.path = folder;
    assert_null(log_writer_new(&options));
    assert_int_equal(errno, EISDIR);
    /* A pipe that nobody reads would hang an open that waits. */
    assert_int_equal(mkfifo(path, 0600), 0);
    options.path = path;
    assert_null(log_writer_new(&options));
    assert_int_equal(errno, ENXIO);
    log_writer_free(NULL);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, drop_folder)
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        IN_FOLDER(many_threads_lose_nothing),
        IN_FOLDER(a_line_alone_is_written_by_itself),
        IN_FOLDER(a_moved_file_is_left_for_a_new_one),
        IN_FOLDER(what_cannot_be_reopened_is_kept),
        cmocka_unit_test(a_slow_pipe),
        cmocka_unit_test(a_slow_socket),
        cmocka_unit_test(a_stop_ends),
        cmocka_unit_test(a_full_disk_is_reported),
        IN_FOLDER(what_is_no_place_for_a_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
