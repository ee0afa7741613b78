/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What is reported of sources that come and go, to a server that takes it or not. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/base/clock.h"
#include "server/log/log.h"
#include "server/notify/notify.h"

#define HANG_MS 60000

/* ---- who is notified ----------------------------------------------------------------------- */

static int listening;
static unsigned port;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned status = 200; /* lock, as what follows */
static const char *more_head = "";
static unsigned posts;
static char got[65536]; /* all bodies */

static void serve_one(int fd)
{
    static char asked[65536];
    size_t len = 0, want = 0;
    char *body = NULL, *length;
    char answer[128];

    while (body == NULL || (size_t)(asked + len - body) < want) {
        ssize_t n = read(fd, asked + len, sizeof asked - 1 - len);

        if (n <= 0)
            return;
        len += (size_t)n;
        asked[len] = '\0';
        body = strstr(asked, "\r\n\r\n");
        length = strstr(asked, "Content-Length: ");
        if (body != NULL)
            body += 4;
        if (length != NULL)
            want = strtoul(length + 16, NULL, 10);
    }
    pthread_mutex_lock(&lock);
    assert_non_null(strstr(asked, "POST /hook HTTP/1.1\r\n"));
    assert_non_null(strstr(asked, "Content-Type: application/x-ndjson\r\n"));
    posts++;
    if (status == 200)
        strncat(got, body, sizeof got - strlen(got) - 1);
    snprintf(answer, sizeof answer,
             "HTTP/1.1 %u Whatever\r\n%sContent-Length: 0\r\nConnection: close\r\n\r\n", status,
             more_head);
    pthread_mutex_unlock(&lock);
    (void)!write(fd, answer, strlen(answer));
}

static void *serve(void *context)
{
    int fd;

    (void)context;
    while ((fd = accept(listening, NULL, NULL)) >= 0) {
        serve_one(fd);
        close(fd);
    }
    return NULL;
}

/* ---- what is reported ---------------------------------------------------------------------- */

static struct notify_state states[200]; /* lock */
static size_t state_count;
static unsigned looks; /* lock */
static bool noisy;     /* lock: the first has more to report each time */

static void look(void *context, notify_each *each, void *each_context)
{
    (void)context;
    pthread_mutex_lock(&lock);
    looks++;
    if (noisy)
        states[0].bad++;
    for (size_t i = 0; i < state_count; i++)
        each(each_context, &states[i]);
    pthread_mutex_unlock(&lock);
}

static void answer_with_head(unsigned what, const char *head)
{
    pthread_mutex_lock(&lock);
    status = what;
    more_head = head;
    posts = 0;
    got[0] = '\0';
    pthread_mutex_unlock(&lock);
}

static void answer_with(unsigned what)
{
    answer_with_head(what, "");
}

static unsigned count_posts(void)
{
    unsigned count;

    pthread_mutex_lock(&lock);
    count = posts;
    pthread_mutex_unlock(&lock);
    return count;
}

static bool has_got(const char *text)
{
    bool has;

    pthread_mutex_lock(&lock);
    has = strstr(got, text) != NULL;
    pthread_mutex_unlock(&lock);
    return has;
}

static void await(const char *text)
{
    int64_t until = clock_now_ms() + HANG_MS;

    while (!has_got(text)) {
        if (clock_now_ms() > until)
            fail_msg("%s in %s", text, got);
        usleep(2000);
    }
}

static void set(const struct notify_state *state)
{
    pthread_mutex_lock(&lock);
    states[0] = *state;
    state_count = 1;
    pthread_mutex_unlock(&lock);
}

static struct notify *begin(uint32_t pace_ms)
{
    static const char *const loopback[] = {"127.0.0.1", NULL};
    char url[64];
    struct notify_options options = {
        .url = url,
        .agent = "test",
        .allow_addresses = loopback,
        .look_ms = 5,
        .pace_ms = pace_ms,
        .look = look,
    };
    struct notify *n;

    snprintf(url, sizeof url, "http://127.0.0.1:%u/hook", port);
    n = notify_start(&options);
    assert_non_null(n);
    return n;
}

static void test_each_kind(void **state)
{
    struct notify *n;

    answer_with(200);
    set(&(struct notify_state){.name = "shop", .site = "https://www.example.com"});
    n = begin(1);
    set(&(struct notify_state){.name = "shop",
                               .site = "https://www.example.com",
                               .failure = "it answers \"500\"",
                               .failed_at = 784111777});
    await("{\"event\":\"source-failing\",\"site\":\"https://www.example.com\",\"source\":\"shop\","
          "\"sentence\":\"it answers \\\"500\\\"\",\"since\":\"1994-11-06T08:49:37Z\"}\n");
    set(&(struct notify_state){.name = "shop", .held = 1, .bad = 2});
    await("{\"event\":\"source-well\",\"site\":null,\"source\":\"shop\",\"sentence\":\"the source "
          "can be read again\",\"since\":\"");
    await("{\"event\":\"removal-held\",\"site\":null,\"source\":\"shop\",\"sentence\":\"1 removal "
          "is held back by the shrink guard; a scan with max_removed allows it\",\"since\":\"");
    await("{\"event\":\"sitemaps-bad\",\"site\":null,\"source\":\"shop\",\"sentence\":\"2 sitemaps "
          "of the source have problems; GET /v1/checks lists them\",\"since\":\"");
    set(&(struct notify_state){.name = "shop"});
    await("\"event\":\"removal-settled\"");
    await("{\"event\":\"sitemaps-well\",\"site\":null,\"source\":\"shop\",\"sentence\":\"all "
          "sitemaps of the source are good again\",\"since\":\"");
    set(&(struct notify_state){.name = "", .bad = 1});
    await("{\"event\":\"sitemaps-bad\",\"site\":null,\"source\":null,\"sentence\":\"1 sitemap "
          "registered by API has a problem; GET /v1/checks lists them\",\"since\":\"");
    notify_stop(n);
}

static void await_looks(unsigned count)
{
    int64_t until = clock_now_ms() + HANG_MS;
    unsigned seen;

    pthread_mutex_lock(&lock);
    looks = 0;
    pthread_mutex_unlock(&lock);
    do {
        usleep(2000);
        pthread_mutex_lock(&lock);
        seen = looks;
        pthread_mutex_unlock(&lock);
        assert_true(clock_now_ms() < until);
    } while (seen < count);
}

/* Registered sitemaps are reported site by site: those of one neither hide nor end those of
 * another. */
static void test_registered_sitemaps_of_sites(void **state)
{
    static const char *const expected[] = {
        "\"sitemaps-bad\",\"site\":\"https://a.example\",\"source\":null,\"sentence\":\"5 "
        "sitemaps ",
        "\"sitemaps-bad\",\"site\":\"https://b.example\",\"source\":null,\"sentence\":\"1 sitemap ",
        "\"sitemaps-well\",\"site\":\"https://a.example\",\"source\":null,",
    };
    const struct notify_state shown[][2] = {
        {{.name = "", .site = "https://a.example", .bad = 5},
         {.name = "", .site = "https://b.example"}},
        {{.name = "", .site = "https://b.example", .bad = 1},
         {.name = "", .site = "https://a.example", .bad = 5}},
        {{.name = "", .site = "https://a.example"},
         {.name = "", .site = "https://b.example", .bad = 1}},
    };
    struct notify *n = NULL;

    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        answer_with(200);
        pthread_mutex_lock(&lock);
        memcpy(states, shown[i], sizeof shown[i]);
        state_count = 2;
        pthread_mutex_unlock(&lock);
        n = n != NULL ? n : begin(1);
        await(expected[i]);
        await_looks(3);
        assert_int_equal(count_posts(), 1);
    }
    notify_stop(n);
}

/* What is refused is sent again, whole and once; and a thousand events are one post and a count. */
static void test_again_and_together(void **state)
{
    static char names[200][16];
    struct notify *n;
    unsigned lines = 0;

    answer_with(503);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < 200; i++) {
        snprintf(names[i], sizeof names[i], "s%zu", i);
        states[i] = (struct notify_state){.name = names[i], .failure = "gone"};
    }
    state_count = 200;
    pthread_mutex_unlock(&lock);
    n = begin(150); /* the eighth refusal has it wait for an hour: so soon none comes */
    for (int64_t until = clock_now_ms() + HANG_MS; count_posts() < 3; usleep(2000))
        assert_true(clock_now_ms() < until);
    answer_with(200);
    await("{\"event\":\"source-failing\",\"more\":150}\n");
    for (const char *at = got; (at = strstr(at, "\"sentence\":\"gone\"")) != NULL; at++)
        lines++;
    assert_int_equal(lines, 50);
    assert_int_equal(count_posts(), 1);
    notify_stop(n);
}

/* At most one post of a kind in its time; and nobody waits for that at the stop. */
static void test_pace(void **state)
{
    struct notify *n;

    answer_with(200);
    set(&(struct notify_state){.name = "shop", .failure = "one"});
    n = begin(HANG_MS * 10);
    await("\"sentence\":\"one\"");
    set(&(struct notify_state){.name = "shop"});
    await("\"event\":\"source-well\"");
    set(&(struct notify_state){.name = "shop", .failure = "two", .held = 1});
    await("\"event\":\"removal-held\"");
    assert_false(has_got("two"));
    assert_int_equal(count_posts(), 3);
    notify_stop(n);
}

/* One that is worse at each look takes no place of what is said of others. */
static void test_one_does_not_hide_another(void **state)
{
    struct notify *n;

    answer_with(503);
    set(&(struct notify_state){.name = "noise", .bad = 1});
    pthread_mutex_lock(&lock);
    noisy = true;
    pthread_mutex_unlock(&lock);
    n = begin(300);
    await_looks(80);
    pthread_mutex_lock(&lock);
    states[1] = (struct notify_state){.name = "quiet", .bad = 7};
    state_count = 2;
    pthread_mutex_unlock(&lock);
    await_looks(3);
    pthread_mutex_lock(&lock);
    noisy = false;
    pthread_mutex_unlock(&lock);
    answer_with(200);
    await("\"source\":\"quiet\",\"sentence\":\"7 sitemaps");
    notify_stop(n);
}

/* Nor does a site that adds and removes failing sources, under other names each time. */
static void test_one_site_leaves_room_for_others(void **state)
{
    static char names[60][16];
    struct notify *n;
    unsigned lines = 0;

    answer_with(503);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < 60; i++) {
        snprintf(names[i], sizeof names[i], "s%zu", i);
        states[i] = (struct notify_state){
            .name = names[i], .site = "https://noise.example", .failure = "noise"};
    }
    state_count = 60;
    pthread_mutex_unlock(&lock);
    n = begin(300);
    await_looks(3);
    set(&(struct notify_state){
        .name = "quiet", .site = "https://quiet.example", .failure = "it answers 500"});
    await_looks(3);
    answer_with(200);
    await("\"sentence\":\"it answers 500\"");
    await("{\"event\":\"source-failing\",\"more\":35}\n");
    for (const char *at = got; (at = strstr(at, "\"sentence\":\"noise\"")) != NULL; at++)
        lines++;
    assert_int_equal(lines, 25);
    notify_stop(n);
}

static void await_post(void)
{
    for (int64_t until = clock_now_ms() + HANG_MS; count_posts() < 1; usleep(2000))
        assert_true(clock_now_ms() < until);
}

/* Nobody is asked again before they said: what waits goes on waiting, whatever else they take. */
static void test_who_says_when(void **state)
{
    struct notify *n;

    answer_with_head(503, "Retry-After: 3600\r\n");
    set(&(struct notify_state){.name = "shop", .failure = "gone"});
    n = begin(1);
    await_post();
    answer_with(200);
    pthread_mutex_lock(&lock);
    noisy = true;
    pthread_mutex_unlock(&lock);
    for (int64_t until = clock_now_ms() + HANG_MS; count_posts() < 30; usleep(2000))
        assert_true(clock_now_ms() < until);
    assert_true(has_got("sitemaps-bad"));
    assert_false(has_got("source-failing"));
    pthread_mutex_lock(&lock);
    noisy = false;
    pthread_mutex_unlock(&lock);
    notify_stop(n);
}

static void report_of(struct notify *n, enum notify_word word, const char *source, const char *site,
                      const char *loc)
{
    notify_sitemap(n,
                   &(struct notify_sitemap){
                       .word = word, .source = source, .site = site, .loc = loc, .at = 784111777});
}

/* Each happening of one sitemap; several of a source are one line, and so are those of a site. */
static void test_single_sitemaps(void **state)
{
    static const char site[] = "https://www.example.com", other[] = "https://other.example";
    struct notify *n;

    answer_with(200);
    set(&(struct notify_state){.name = "shop"});
    n = begin(200);
    report_of(n, NOTIFY_GONE, "shop", site, "https://www.example.com/a.xml");
    await("{\"event\":\"sitemap-gone\",\"site\":\"https://www.example.com\",\"source\":\"shop\","
          "\"url\":\"https://www.example.com/a.xml\","
          "\"sentence\":\"https://www.example.com/a.xml is gone\","
          "\"since\":\"1994-11-06T08:49:37Z\"}\n");
    answer_with(503);
    report_of(n, NOTIFY_GONE, "shop", site, "https://www.example.com/b.xml");
    await_post(); /* it is a line, and refused: what comes waits for it */
    report_of(n, NOTIFY_GONE, "shop", site, "https://www.example.com/c.xml");
    report_of(n, NOTIFY_GONE, "shop", site, "https://www.example.com/c.xml"); /* counts once */
    for (unsigned i = 0; i < 999; i++) {
        char loc[48];
        snprintf(loc, sizeof loc, "https://www.example.com/c%u.xml", i);
        report_of(n, NOTIFY_GONE, "shop", site, loc);
    }
    report_of(n, NOTIFY_GONE, "", site, "https://www.example.com/d.xml");
    report_of(n, NOTIFY_GONE, "", other, "https://other.example/e.xml");
    answer_with(200);
    await("\"sentence\":\"https://www.example.com/b.xml is gone\"");
    await("\"sentence\":\"https://www.example.com/c.xml and 999 more are gone\"");
    await("\"source\":null,\"url\":\"https://www.example.com/d.xml\"");
    await("{\"event\":\"sitemap-gone\",\"site\":\"https://other.example\",\"source\":null,"
          "\"url\":\"https://other.example/e.xml\"");
    report_of(n, NOTIFY_BACK, "shop", site, "https://www.example.com/a.xml");
    report_of(n, NOTIFY_STALE, "shop", site, "https://www.example.com/a.xml");
    report_of(n, NOTIFY_DATED, "shop", site, "https://www.example.com/a.xml");
    await("{\"event\":\"sitemap-back\",");
    await("a.xml is available again\"");
    await("{\"event\":\"date-stale\",");
    await("a.xml changed, but its date in the index could not be changed\"");
    await("{\"event\":\"date-well\",");
    await("a.xml has a new date\"");
    report_of(n, NOTIFY_GONE, "left", site, "https://www.example.com/f.xml");
    notify_stop(n);
}

/* Of more sources than there are lines, or than one site may have, the rest is counted. */
static void test_many_sources(void **state)
{
    struct notify *n;
    char source[16], site[32];

    answer_with(200);
    set(&(struct notify_state){.name = "shop"});
    n = begin(200);
    answer_with(503);
    report_of(n, NOTIFY_STALE, "first", "https://www.example.com", "https://www.example.com/a.xml");
    await_post();
    for (unsigned i = 0; i < 72; i++) { /* twelve of each site */
        snprintf(source, sizeof source, "s%u", i);
        snprintf(site, sizeof site, "https://%u.example", i / 12);
        report_of(n, NOTIFY_STALE, source, site, "https://www.example.com/a.xml");
    }
    answer_with(200);
    await("{\"event\":\"date-stale\",\"more\":22}\n");
    assert_true(has_got("\"source\":\"s9\"") && has_got("\"source\":\"s57\""));
    assert_false(has_got("\"source\":\"s10\"") || has_got("\"source\":\"s60\""));
    notify_stop(n);
}

int main(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    pthread_t thread;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_kind),
        cmocka_unit_test(test_registered_sitemaps_of_sites),
        cmocka_unit_test(test_again_and_together),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_one_does_not_hide_another),
        cmocka_unit_test(test_one_site_leaves_room_for_others),
        cmocka_unit_test(test_who_says_when),
        cmocka_unit_test(test_single_sitemaps),
        cmocka_unit_test(test_many_sources),
    };
    int failed;

    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
    listening = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&at, sizeof at) != 0 || listen(listening, 16) != 0 ||
        getsockname(listening, (struct sockaddr *)&at, &size) != 0)
        return 1;
    port = ntohs(at.sin_port);
    if (pthread_create(&thread, NULL, serve, NULL) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    shutdown(listening, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(listening);
    return failed;
}
