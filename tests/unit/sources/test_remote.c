/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Remote sources against an origin in this process: what becomes of a list and of its sitemaps. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/base/clock.h"
#include "server/rules/lastmod.h"
#include "server/sources/remote/remote.h"
#include "server/sources/sources.h"
#include "tests/unit/lib/catalogue_fixture.h"
#include "tests/unit/sources/folder.h"

#define PAGES    16
#define URLSET   "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">"
#define LIST     "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">"
#define HANG_MS  60000
#define LOOP_KEY "\r\nCDN-Loop: sitemapd-"

/* ---- the origin: an answer for each path, one request a connection ------------------------- */

struct page {
    const char *path;
    char answer[4096]; /* head and body; "": the connection is closed */
    bool etag;         /* If-None-Match "\"v\"" is answered 304 */
    unsigned asked, conditional;
};

static struct {
    int fd, port;
    pthread_t thread;
    pthread_mutex_t lock;
    struct page pages[PAGES];
    size_t count;
    char last[4096]; /* request */
} origin;

static struct page *page_of(const char *path)
{
    for (size_t i = 0; i < origin.count; i++)
        if (strcmp(origin.pages[i].path, path) == 0)
            return &origin.pages[i];
    return NULL;
}

static void answer(int fd, const char *request)
{
    static const char none[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    char path[256] = "", out[4096];
    sscanf(request, "GET %255s", path);
    pthread_mutex_lock(&origin.lock);
    struct page *page = page_of(path);
    snprintf(origin.last, sizeof origin.last, "%s", request);
    snprintf(out, sizeof out, "%s", page ? page->answer : none);
    if (page) {
        page->asked++;
        if (strstr(request, "If-None-Match: \"v\"")) {
            page->conditional++;
            if (page->etag)
                snprintf(out, sizeof out, "HTTP/1.1 304 Not Modified\r\nETag: \"v\"\r\n\r\n");
        }
    }
    pthread_mutex_unlock(&origin.lock);
    ssize_t sent = send(fd, out, strlen(out), MSG_NOSIGNAL);
    (void)sent;
}

static void *serve(void *unused)
{
    (void)unused;
    for (;;) {
        char request[4096];
        size_t len = 0;
        int fd = accept(origin.fd, NULL, NULL);
        if (fd < 0)
            return NULL;
        for (ssize_t got; len < sizeof request - 1 &&
                          (got = recv(fd, request + len, sizeof request - 1 - len, 0)) > 0;) {
            len += (size_t)got;
            request[len] = '\0';
            if (strstr(request, "\r\n\r\n")) {
                answer(fd, request);
                break;
            }
        }
        close(fd);
    }
}

static void set(const char *path, const char *head, const char *format, ...)
{
    char body[3500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(body, sizeof body, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&origin.lock);
    struct page *page = page_of(path);
    if (page == NULL)
        page = &origin.pages[origin.count++];
    page->path = path;
    snprintf(page->answer, sizeof page->answer,
             "HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s", head,
             strlen(body), body);
    pthread_mutex_unlock(&origin.lock);
}

static unsigned asked(const char *path, bool conditional)
{
    pthread_mutex_lock(&origin.lock);
    struct page *page = page_of(path);
    unsigned n = conditional ? page->conditional : page->asked;
    pthread_mutex_unlock(&origin.lock);
    return n;
}

/* ---- the world ------------------------------------------------------------------------------ */

static struct {
    struct temp_folder folder;
    char database[160], site[64], upstream[96], index[96];
    struct catalogue *c;
    struct remote *r;
    int64_t site_id;
    struct source_settings settings;
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool over;
    char failure[256];
    uint64_t created;
    enum check_state state;
    char problem[64];
    unsigned marks;
    unsigned gone, stale, dated; /* lock: how often it was reported */
    unsigned logged, seen; /* lock: events of the list, and those that the status showed already */
} world;

static void open_catalogue(void)
{
    struct catalogue_options options = fixture_options(world.database);
    world.c = fixture_catalogue(&options);
}

static void on_moved(void *context, const struct remote_moved *moved)
{
    bool is_stale = (moved->record->marks & CHECK_DATE_STALE) != 0;
    (void)context;
    assert_string_equal(moved->site, world.site);
    pthread_mutex_lock(&world.lock);
    world.gone += moved->record->state == CHECK_GONE && moved->before != CHECK_GONE;
    world.stale += is_stale && !moved->was_stale;
    world.dated += !is_stale && moved->was_stale;
    pthread_mutex_unlock(&world.lock);
}

static void on_event(void *context, int level, const char *event, const char *source,
                     const char *detail)
{
    struct remote_status status;
    (void)context, (void)level, (void)detail;
    bool failed = strcmp(event, "source-scan-failed") == 0;
    bool held = strcmp(event, "source-removals-held") == 0;
    if (!failed && !held && strcmp(event, "source-scan-works") != 0)
        return;
    bool found = remote_status(world.r, source, &status);
    pthread_mutex_lock(&world.lock);
    world.logged++;
    world.seen += found && status.failing == failed && (status.held > 0) == held;
    pthread_mutex_unlock(&world.lock);
}

static const char *const allowed[] = {"127.0.0.0/8", NULL};
static const struct remote_bounds usual_bounds = {.agent = "sitemapd/test",
                                                  .rate = 1000,
                                                  .per_host = 2,
                                                  .min_interval_s = 900,
                                                  .max_interval_s = 86400,
                                                  .allow_addresses = allowed};

static void start(void)
{
    char why[256];
    struct remote_options options = {.catalogue = world.c,
                                     .bounds = usual_bounds,
                                     .count = 1,
                                     .settings = &world.settings,
                                     .event = on_event,
                                     .moved = on_moved};
    if (!remote_start(&options, &world.r, why, sizeof why))
        fail_msg("%s", why);
}

/* The site, as a configuration has it. */
static void declare_site(bool check)
{
    struct change_result result;
    static const char *const none[] = {NULL}, *const index[] = {"/sitemap_index.xml", NULL};
    const struct site_declaration site = {.origin = world.site,
                                          .index_paths = index,
                                          .managed = true,
                                          .cross_hosts = none,
                                          .alias_hosts = none,
                                          .max_pages = 500,
                                          .check = check};
    struct change change = {.kind = CHANGE_CONFIGURE,
                            .configure = {.sites = &site, .site_count = 1}};
    assert_int_equal(catalogue_apply(world.c, &change, &result), CATALOGUE_OK);
    change_result_done(&result);
}

static void find_site(void)
{
    struct registry *registry;
    assert_int_equal(catalogue_registry(world.c, &registry), CATALOGUE_OK);
    world.site_id = registry_site_by_origin(registry, world.site)->id;
    registry_unref(registry);
}

static int setup(void **state)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof to;
    memset(&world, 0, sizeof world);
    memset(&origin, 0, sizeof origin);
    pthread_mutex_init(&world.lock, NULL);
    pthread_mutex_init(&origin.lock, NULL);
    pthread_cond_init(&world.done, NULL);
    origin.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(origin.fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(listen(origin.fd, 64), 0);
    assert_int_equal(getsockname(origin.fd, (struct sockaddr *)&to, &len), 0);
    origin.port = ntohs(to.sin_port);
    assert_int_equal(pthread_create(&origin.thread, NULL, serve, NULL), 0);
    folder_make(&world.folder);
    snprintf(world.database, sizeof world.database, "%s/c.db", world.folder.outside);
    snprintf(world.site, sizeof world.site, "http://127.0.0.1:%d", origin.port);
    snprintf(world.upstream, sizeof world.upstream, "%s/list.xml", world.site);
    snprintf(world.index, sizeof world.index, "%s/sitemap_index.xml", world.site);
    open_catalogue();
    declare_site(false);
    find_site();
    world.settings = (struct source_settings){.name = "shop",
                                              .upstream = world.upstream,
                                              .poll_ms = 900000,
                                              .check = true,
                                              .managed = true,
                                              .drop_after_ms = 259200000};
    return 0;
}

static int teardown(void **state)
{
    remote_stop(world.r);
    catalogue_close(world.c);
    shutdown(origin.fd, SHUT_RDWR);
    pthread_join(origin.thread, NULL);
    close(origin.fd);
    folder_remove(&world.folder);
    return 0;
}

static const char *loc(const char *path)
{
    static char text[128];
    snprintf(text, sizeof text, "%s%s", world.site, path);
    return text;
}

static void end(const char *failure)
{
    pthread_mutex_lock(&world.lock);
    world.over = true;
    snprintf(world.failure, sizeof world.failure, "%s", failure);
    pthread_cond_signal(&world.done);
    pthread_mutex_unlock(&world.lock);
}

static void on_scanned(void *context, const struct change_result *result, const char *failure)
{
    (void)context;
    world.created = result ? result->created : 0;
    end(failure);
}

static void on_polled(void *context, const struct check_record *record, const char *failure)
{
    (void)context;
    if (record) {
        world.state = record->state;
        world.marks = record->marks;
        snprintf(world.problem, sizeof world.problem, "%s", record->problem ? record->problem : "");
    }
    end(failure);
}

static void await(void)
{
    struct timespec until = clock_after_ms(HANG_MS);
    pthread_mutex_lock(&world.lock);
    while (!world.over)
        if (pthread_cond_clockwait(&world.done, &world.lock, CLOCK_MONOTONIC, &until) != 0)
            fail_msg("nothing comes");
    world.over = false;
    pthread_mutex_unlock(&world.lock);
}

static const char *scan_list(int64_t max_removed)
{
    remote_scan(world.r, "shop", max_removed, false, NULL, on_scanned, NULL);
    await();
    return world.failure;
}

static const char *scan_list_dry(void)
{
    remote_scan(world.r, "shop", MAX_REMOVED_GUARDED, true, NULL, on_scanned, NULL);
    await();
    return world.failure;
}

/* Polls one, once it is watched. */
static enum check_state poll_one(const char *path)
{
    for (int64_t until = clock_now_ms() + HANG_MS; clock_now_ms() < until;) {
        remote_poll(world.r, world.site_id, loc(path), NULL, on_polled, NULL);
        await();
        if (*world.failure == '\0')
            return world.state;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    fail_msg("%s: %s", path, world.failure);
    return CHECK_NEW;
}

/* "-": no entry; "none": no date. */
static const char *date_of(const char *path)
{
    static char date[64];
    struct catalogue_view *v;
    struct entry_record entry;
    assert_int_equal(catalogue_view_begin(world.c, &v), CATALOGUE_OK);
    enum catalogue_status status = catalogue_view_entry_by_loc(v, world.site_id, loc(path), &entry);
    if (status == CATALOGUE_OK) {
        snprintf(date, sizeof date, "%s", entry.lastmod ? entry.lastmod : "none");
        entry_record_done(&entry);
    } else {
        strcpy(date, "-");
    }
    catalogue_view_end(v);
    return date;
}

/* What days would bring: the row is as if it had been written so many seconds earlier. */
static void age(const char *path, int64_t seconds)
{
    struct catalogue_view *v;
    struct change_result result;
    struct check_write write = {.kind = CHECK_RESULT};
    assert_int_equal(catalogue_view_begin(world.c, &v), CATALOGUE_OK);
    assert_int_equal(catalogue_view_check_by_loc(v, world.site_id, loc(path), &write.record),
                     CATALOGUE_OK);
    write.full_from = write.record.full_at;
    write.record.since -= seconds;
    write.record.full_at -= seconds;
    write.record.checked_at -= seconds;
    struct change change = {.kind = CHANGE_CHECK, .check = {.writes = &write, .count = 1}};
    assert_int_equal(catalogue_apply(world.c, &change, &result), CATALOGUE_OK);
    catalogue_view_end(v);
}

#define MEMBER(path, date) "<sitemap><loc>%s" path "</loc>" date "</sitemap>"
#define DATED(date)        "<lastmod>" date "</lastmod>"
#define PAGE(name, date)   "<url><loc>%s/" name "</loc>" date "</url>"

static void set_list(const char *head)
{
    set("/list.xml", head,
        LIST MEMBER("/a.xml", DATED("2026-01-01")) MEMBER("/b.xml", "") MEMBER("/c.xml", "")
            MEMBER("/d.xml", "") "</sitemapindex>",
        world.site, world.site, world.site, world.site);
}

static void set_all_good(void)
{
    static const char *const paths[] = {"/a.xml", "/b.xml", "/c.xml", "/d.xml"};
    set_list("200 OK\r\nETag: \"v\"");
    for (size_t i = 0; i < 4; i++)
        set(paths[i], "200 OK\r\nETag: \"v\"",
            URLSET PAGE("1", DATED("2025-01-01")) PAGE("2", DATED("2025-06-01")) "</urlset>",
            world.site, world.site);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void a_list_is_mirrored_and_its_dates_are_true(void **state)
{
    set_all_good();
    start();
    assert_string_equal(scan_list(MAX_REMOVED_GUARDED), "");
    assert_string_equal(date_of("/a.xml"), "2026-01-01");
    pthread_mutex_lock(&origin.lock);
    assert_non_null(strstr(origin.last, "User-Agent: sitemapd/test\r\n"));
    assert_non_null(strstr(origin.last, LOOP_KEY));
    pthread_mutex_unlock(&origin.lock);
    /* The claim stands; what has none is dated by its pages. */
    assert_int_equal(poll_one("/a.xml"), CHECK_GOOD);
    assert_int_equal(poll_one("/b.xml"), CHECK_GOOD);
    assert_string_equal(date_of("/a.xml"), "2026-01-01");
    assert_string_equal(date_of("/b.xml"), "2025-06-01");
    /* Not modified, and then as good as not. */
    origin.pages[2].etag = true;
    unsigned before = asked("/b.xml", true);
    assert_int_equal(poll_one("/b.xml"), CHECK_GOOD);
    assert_int_equal(asked("/b.xml", true), before + 1);
    origin.pages[2].etag = false;
    set("/b.xml", "200 OK\r\nETag: \"w\"",
        URLSET PAGE("1", DATED("2025-01-01")) "<!-- made again -->" PAGE(
            "2", DATED("2025-06-01")) "</urlset>",
        world.site, world.site);
    assert_int_equal(poll_one("/b.xml"), CHECK_GOOD);
    assert_string_equal(date_of("/b.xml"), "2025-06-01");
    /* A page more, dated. */
    set("/b.xml", "200 OK",
        URLSET PAGE("1", DATED("2025-01-01")) PAGE("3", DATED("2025-07-07")) "</urlset>",
        world.site, world.site);
    assert_int_equal(poll_one("/b.xml"), CHECK_GOOD);
    assert_string_equal(date_of("/b.xml"), "2025-07-07");
    struct remote_status status;
    assert_true(remote_status(world.r, "shop", &status));
    assert_false(status.failing);
    assert_int_equal(status.members, 4);
    assert_false(remote_status(world.r, "other", &status));
}

static void each_answer_is_told_apart(void **state)
{
    static const struct {
        const char *head, *body;
        enum check_state state;
        const char *problem;
    } rows[] = {
        {"404 Not Found", "", CHECK_GONE, "gone"},
        {"410 Gone", "", CHECK_GONE, "gone"},
        {"200 OK", "<!doctype html><html><body>Soon</body></html>", CHECK_BROKEN, "not-a-sitemap"},
        {"200 OK", "error\n", CHECK_BROKEN, "not-a-sitemap"},
        {"200 OK", "<!doctype html><html><script id='anubis_challenge'>", CHECK_REFUSED,
         "bot-wall"},
        {"200 OK", "<!doctype html><title>Maintenance</title>", CHECK_REFUSED, "maintenance-page"},
        {"202 Accepted\r\nx-amzn-waf-action: challenge", "", CHECK_REFUSED, "bot-wall"},
        {"200 OK", "warning\n" URLSET "</urlset>", CHECK_BROKEN, "malformed-xml"},
        {"200 OK\r\nContent-Encoding: gzip", URLSET "</urlset>", CHECK_BROKEN, "encoding"},
        {"200 OK", LIST "</sitemapindex>", CHECK_NOT_A_SITEMAP, "nested-index"},
        {"200 OK", URLSET "</urlset>", CHECK_EMPTY, "empty"},
        {"200 OK", "", CHECK_BROKEN, "empty-file"},
        {"200 OK", URLSET "<url><loc>", CHECK_BROKEN, "truncated"},
        {"200 OK", "<!DOCTYPE urlset>" URLSET "</urlset>", CHECK_BROKEN, "doctype"},
        {"202 Accepted", "", CHECK_REFUSED, "bot-wall"},
        {"403 Forbidden", "", CHECK_REFUSED, "refused"},
        {"401 Unauthorized", "", CHECK_REFUSED, "refused"},
        {"403 Forbidden\r\ncf-mitigated: challenge", "", CHECK_REFUSED, "bot-wall"},
        {"500 Oops", "", CHECK_UNREACHABLE, "server-error"},
        {"508 Loop Detected", "", CHECK_UNREACHABLE, "server-error"},
        {"304 Not Modified", "", CHECK_UNREACHABLE, "unexpected-status"},
        {"200 OK\r\nTransfer-Encoding: chunked", URLSET "</urlset>", CHECK_UNREACHABLE,
         "broken-answer"},
        {"302 Found", "", CHECK_UNREACHABLE, "redirect"},
        {"302 Found\r\nLocation: http://127.0.0.3:1/x.xml", "", CHECK_UNREACHABLE, "redirect"},
        {"302 Found\r\nLocation: /c.xml", "", CHECK_UNREACHABLE, "redirect"},
    };
    set_all_good();
    start();
    assert_string_equal(scan_list(MAX_REMOVED_GUARDED), "");
    assert_int_equal(poll_one("/c.xml"), CHECK_GOOD);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set("/c.xml", rows[i].head, "%s", rows[i].body);
        enum check_state found = poll_one("/c.xml");
        if (found != rows[i].state || strcmp(world.problem, rows[i].problem) != 0)
            fail_msg("%s %s: %s, %s", rows[i].head, rows[i].body, check_state_word(found),
                     world.problem);
        assert_string_equal(date_of("/c.xml"), "2025-06-01"); /* it stays */
    }
    set("/c.xml", "302 Found\r\nLocation: /b.xml", "");
    assert_int_equal(poll_one("/c.xml"), CHECK_GOOD);
    assert_true(world.marks & CHECK_REDIRECTED);
    /* A rest that is asked for is kept. */
    set("/d.xml", "429 Slow down\r\nRetry-After: 120", "");
    assert_int_equal(poll_one("/d.xml"), CHECK_REFUSED);
    remote_poll(world.r, world.site_id, loc("/a.xml"), NULL, on_polled, NULL);
    await();
    assert_non_null(strstr(world.failure, "rest"));
}

static void a_bad_list_changes_nothing(void **state)
{
    static const struct {
        const char *head, *body, *code;
    } rows[] = {
        {"404 Not Found", "", "gone"},
        {"503 Later", "", "server-error"},
        {"508 Loop Detected", "", "upstream-is-this-server"},
        {"200 OK", URLSET "</urlset>", "urlset-not-index"},
        {"200 OK", "<!doctype html><html></html>", "html-not-index"},
        {"200 OK", "<!doctype html><title>Just a moment...</title>", "bot-wall"},
        {"200 OK", "<!doctype html><title>Site maintenance</title>", "maintenance-page"},
        {"200 OK", LIST "</sitemapindex>", "empty"},
        {"200 OK", LIST "<sitemap><loc>http://", "truncated"},
    };
    set_all_good();
    start();
    assert_string_equal(scan_list(MAX_REMOVED_GUARDED), "");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct remote_status status;
        set("/list.xml", rows[i].head, "%s", rows[i].body);
        assert_string_not_equal(scan_list(MAX_REMOVED_GUARDED), "");
        assert_true(remote_status(world.r, "shop", &status));
        assert_true(status.failing);
        if (strcmp(status.failure_code, rows[i].code) != 0)
            fail_msg("%s: %s", rows[i].body, status.failure_code);
        assert_string_equal(date_of("/a.xml"), "2026-01-01");
    }
    /* Half of it gone: held, until it is said to be meant. */
    set("/list.xml", "200 OK",
        LIST MEMBER("/a.xml", "") "<sitemap><loc>nonsense</loc></sitemap></sitemapindex>",
        world.site);
    assert_string_equal(scan_list(MAX_REMOVED_GUARDED), "");
    assert_string_not_equal(date_of("/c.xml"), "-");
    struct remote_status status;
    remote_status(world.r, "shop", &status);
    assert_int_equal(status.held, 3);
    /* The failures, the end of them, and what is held: each is shown before it is logged. */
    pthread_mutex_lock(&world.lock);
    assert_int_equal(world.logged, sizeof rows / sizeof *rows + 2);
    assert_int_equal(world.seen, world.logged);
    pthread_mutex_unlock(&world.lock);
    assert_string_equal(scan_list(3), "");
    assert_string_equal(date_of("/c.xml"), "-");
    assert_string_not_equal(date_of("/a.xml"), "-");
}

static void what_is_gone_for_days_leaves_and_comes_back(void **state)
{
    set_all_good();
    start();
    assert_string_equal(scan_list(MAX_REMOVED_GUARDED), "");
    assert_int_equal(poll_one("/d.xml"), CHECK_GOOD);
    set("/d.xml", "404 Not Found", "");
    assert_int_equal(poll_one("/d.xml"), CHECK_GONE);
    assert_int_equal(poll_one("/d.xml"), CHECK_GONE);
    age("/d.xml", 400000);
    assert_string_not_equal(date_of("/d.xml"), "-");
    assert_int_equal(poll_one("/d.xml"), CHECK_GONE);
    assert_true(world.marks & CHECK_DROPPED);
    assert_string_equal(scan_list(1), "");
    assert_string_equal(date_of("/d.xml"), "-");
    set("/d.xml", "200 OK", URLSET PAGE("9", "") "</urlset>", world.site);
    assert_int_equal(poll_one("/d.xml"), CHECK_GOOD);
    assert_string_equal(scan_list(MAX_REMOVED_GUARDED), "");
    assert_string_not_equal(date_of("/d.xml"), "-");
}

static void validators_that_lie_are_found(void **state)
{
    set_all_good();
    origin.pages[1].etag = true; /* /a.xml is "not modified", whatever it holds */
    start();
    assert_string_equal(scan_list(MAX_REMOVED_GUARDED), "");
    assert_int_equal(poll_one("/a.xml"), CHECK_GOOD);
    set("/a.xml", "200 OK\r\nETag: \"v\"", URLSET PAGE("9", DATED("2026-02-02")) "</urlset>",
        world.site);
    assert_int_equal(poll_one("/a.xml"), CHECK_GOOD);
    assert_string_equal(date_of("/a.xml"), "2026-01-01");
    age("/a.xml", 7 * 86400); /* once a week it is read all the same */
    assert_int_equal(poll_one("/a.xml"), CHECK_GOOD);
    assert_string_equal(date_of("/a.xml"), "2026-02-02");
    assert_true(world.marks & CHECK_VALIDATORS_LIE);
    unsigned before = asked("/a.xml", true);
    assert_int_equal(poll_one("/a.xml"), CHECK_GOOD);
    assert_int_equal(asked("/a.xml", true), before);
}

static void claims_of_now_are_not_taken(void **state)
{
    set_all_good();
    set("/a.xml", "403 Forbidden", "%s", world.site); /* its first poll dates nothing, */
    start();
    for (int64_t i = 0; i < 2; i++) {
        char now[21];
        lastmod_format_utc(clock_unix_ms() / 1000 - i * 20,
                           now); /* another, whatever the clock does */
        set("/list.xml", "200 OK",
            LIST "<sitemap><loc>%s/a.xml</loc><lastmod>%s</lastmod></sitemap></sitemapindex>",
            world.site, now);
        assert_string_equal(scan_list(MAX_REMOVED_GUARDED), "");
        assert_string_equal(date_of("/a.xml"), i == 0 ? now : "none");
        if (i == 0) /* and is over before the date is removed */
            assert_int_equal(poll_one("/a.xml"), CHECK_REFUSED);
    }
    set_all_good();
    assert_int_equal(poll_one("/a.xml"), CHECK_GOOD);
    assert_string_equal(date_of("/a.xml"), "2025-06-01");
    assert_true(world.marks & CHECK_CLAIMS_ARE_NOW);
}

static bool count_row(void *context, const struct check_named *row)
{
    (void)row;
    ++*(size_t *)context;
    return true;
}

/* Until so many rows are kept. */
static void await_rows(size_t wanted)
{
    size_t rows = wanted + 1;
    for (int64_t until = clock_now_ms() + HANG_MS; rows != wanted;) {
        struct catalogue_view *v;
        int64_t last;
        rows = 0;
        assert_int_equal(catalogue_view_begin(world.c, &v), CATALOGUE_OK);
        assert_int_equal(catalogue_view_checks_named(v, 0, 100, &last, count_row, &rows),
                         CATALOGUE_OK);
        catalogue_view_end(v);
        assert_true(clock_now_ms() < until);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

/* The API registers /b.xml on a site whose entries are checked, and it was read once. */
static void watch_registered(const struct change *put)
{
    struct change_result result;
    set_all_good();
    set("/list.xml", "200 OK", LIST MEMBER("/a.xml", "") "</sitemapindex>", world.site);
    declare_site(true);
    assert_int_equal(catalogue_apply(world.c, put, &result), CATALOGUE_OK);
    change_result_done(&result);
    start();
    remote_wake(world.r);
    assert_int_equal(poll_one("/b.xml"), CHECK_GOOD);
}

/* What the API registered is its own: a date moves with the content, and is reported where it moved
 * alone. */
static void a_checked_site_keeps_what_was_registered(void **state)
{
    struct change_result result;
    struct change put = {.kind = CHANGE_ENTRY_PUT,
                         .source = "api",
                         .entry = {.loc = loc("/b.xml"),
                                   .lastmod = "2026-01-05",
                                   .lastmod_state = FIELD_SET,
                                   .position = POSITION_NONE}};
    watch_registered(&put);
    assert_string_equal(date_of("/b.xml"), "2026-01-05");
    assert_false(world.marks & CHECK_LASTMOD_UNFOUNDED);
    put.entry.loc = loc("/b.xml");
    put.entry.lastmod = "2026-01-06";
    assert_int_equal(catalogue_apply(world.c, &put, &result), CATALOGUE_OK);
    change_result_done(&result);
    age("/b.xml", 600);
    assert_int_equal(poll_one("/b.xml"), CHECK_GOOD);
    assert_true(world.marks & CHECK_LASTMOD_UNFOUNDED);
    assert_string_equal(date_of("/b.xml"), "2026-01-06");
    set("/b.xml", "200 OK",
        URLSET PAGE("1", DATED("2025-01-01")) PAGE("3", DATED("2026-01-07")) "</urlset>",
        world.site, world.site);
    assert_int_equal(poll_one("/b.xml"), CHECK_GOOD);
    assert_false(world.marks & CHECK_LASTMOD_UNFOUNDED);
    assert_string_equal(date_of("/b.xml"), "2026-01-07");
    /* Gone it is reported, and stays. */
    set("/b.xml", "410 Gone", "");
    for (unsigned i = 0; i < 4; i++, age("/b.xml", 400000))
        assert_int_equal(poll_one("/b.xml"), CHECK_GONE);
    assert_string_not_equal(date_of("/b.xml"), "-");
    /* Neither the site nor the source wants anything any more: nothing is known of it. */
    char why[256];
    const struct remote_bounds bounds = {.agent = "x",
                                         .rate = 1000,
                                         .per_host = 2,
                                         .min_interval_s = 900,
                                         .max_interval_s = 86400,
                                         .allow_addresses = allowed};
    await_rows(3); /* both, and the list */
    world.settings.check = false;
    assert_true(remote_reconfigure(world.r, &bounds, 1, &world.settings, why, sizeof why));
    await_rows(2);
    declare_site(false);
    await_rows(1);
    assert_true(remote_reconfigure(world.r, &bounds, 0, NULL, why, sizeof why));
    await_rows(0);
}

/* A poll of changed content, then another of the same. */
static void poll_changed(const char *path, const char *body)
{
    set(path, "200 OK", body, world.site);
    age(path, -120); /* what was written was written before */
    assert_int_equal(poll_one(path), CHECK_GOOD);
    age(path, -120);
    assert_int_equal(poll_one(path), CHECK_GOOD);
}

static void a_date_that_a_digest_holds_is_reported(void **state)
{
    struct change_result result;
    struct change put = {.kind = CHANGE_ENTRY_PUT,
                         .source = "api",
                         .entry = {.loc = loc("/b.xml"),
                                   .lastmod = "2026-01-05",
                                   .lastmod_state = FIELD_SET,
                                   .digest = "one",
                                   .digest_state = FIELD_SET,
                                   .position = POSITION_NONE}};
    watch_registered(&put);
    assert_false(world.marks & CHECK_DATE_STALE);
    poll_changed("/b.xml", URLSET PAGE("7", DATED("2026-01-07")) "</urlset>");
    assert_true(world.marks & CHECK_DATE_STALE);
    assert_string_equal(date_of("/b.xml"), "2026-01-05");
    /* Who registered it says so. */
    put.entry.loc = loc("/b.xml");
    put.entry.lastmod = "2026-01-07";
    put.entry.digest = "two";
    assert_int_equal(catalogue_apply(world.c, &put, &result), CATALOGUE_OK);
    change_result_done(&result);
    age("/b.xml", 600);
    assert_int_equal(poll_one("/b.xml"), CHECK_GOOD);
    assert_false(world.marks & CHECK_DATE_STALE);
    /* It was registered since the last poll, and what is read is what that was about. */
    age("/b.xml", 600);
    set("/b.xml", "200 OK", URLSET PAGE("8", DATED("2026-01-08")) "</urlset>", world.site);
    assert_int_equal(poll_one("/b.xml"), CHECK_GOOD);
    assert_false(world.marks & CHECK_DATE_STALE);
    set("/b.xml", "404 Not Found", "");
    assert_int_equal(poll_one("/b.xml"), CHECK_GONE);
    assert_int_equal(poll_one("/b.xml"), CHECK_GONE);
    pthread_mutex_lock(&world.lock);
    assert_int_equal(world.stale, 1);
    assert_int_equal(world.dated, 1);
    assert_int_equal(world.gone, 1);
    pthread_mutex_unlock(&world.lock);
}

static void a_date_in_a_frozen_site_is_reported(void **state)
{
    struct change_result result;
    struct change freeze = {.kind = CHANGE_SITE_UPDATE,
                            .site_update = {.site_id = world.site_id,
                                            .fields = {.set = SITE_SET_FROZEN, .frozen = true}}};
    set_all_good();
    set("/list.xml", "200 OK", LIST MEMBER("/a.xml", "") "</sitemapindex>", world.site);
    start();
    remote_wake(world.r);
    assert_int_equal(poll_one("/a.xml"), CHECK_GOOD);
    assert_int_equal(catalogue_apply(world.c, &freeze, &result), CATALOGUE_OK);
    poll_changed("/a.xml", URLSET PAGE("7", DATED("2026-01-07")) "</urlset>");
    assert_true(world.marks & CHECK_DATE_STALE);
    freeze.site_update.fields.frozen = false;
    assert_int_equal(catalogue_apply(world.c, &freeze, &result), CATALOGUE_OK);
    assert_int_equal(poll_one("/a.xml"), CHECK_GOOD);
    assert_false(world.marks & CHECK_DATE_STALE);
    assert_string_equal(date_of("/a.xml"), "2026-01-07");
}

static void a_restart_polls_nothing_before_its_time(void **state)
{
    set_all_good();
    start();
    assert_string_equal(scan_list(MAX_REMOVED_GUARDED), "");
    assert_int_equal(poll_one("/a.xml"), CHECK_GOOD);
    assert_int_equal(poll_one("/b.xml"), CHECK_GOOD);
    assert_int_equal(poll_one("/c.xml"), CHECK_GOOD);
    assert_int_equal(poll_one("/d.xml"), CHECK_GOOD);
    int64_t begun = clock_now_ms();
    remote_stop(world.r);
    assert_true(clock_now_ms() - begun < HANG_MS);
    unsigned lists = asked("/list.xml", false), a = asked("/a.xml", false);
    start();
    assert_int_equal(poll_one("/b.xml"), CHECK_GOOD); /* it runs */
    assert_int_equal(asked("/list.xml", false), lists);
    assert_int_equal(asked("/a.xml", false), a);
}

static void a_list_is_scanned_once(void **state)
{
    struct scan_once scan = {.catalogue = world.c, .max_removed = MAX_REMOVED_GUARDED};
    const struct remote_bounds bounds = {
        .agent = "sitemapd/test", .rate = 1, .per_host = 1, .allow_addresses = allowed};
    set_all_good();
    for (int dry = 1; dry >= 0; dry--) {
        scan.dry_run = dry;
        assert_int_equal(remote_scan_once(&world.settings, &bounds, &scan), CATALOGUE_OK);
        assert_int_equal(scan.result.created, 4);
        assert_string_equal(date_of("/a.xml"), dry ? "-" : "2026-01-01");
        change_result_done(&scan.result);
    }
    set("/list.xml", "200 OK", URLSET "</urlset>");
    assert_int_equal(remote_scan_once(&world.settings, &bounds, &scan), CATALOGUE_REFUSED);
    assert_non_null(strstr(scan.why, "urlset-not-index: "));
}

static void a_dry_run_of_a_list_changes_nothing(void **state)
{
    struct remote_status status;
    set_all_good();
    start();
    assert_string_equal(scan_list(MAX_REMOVED_GUARDED), "");
    set("/list.xml", "200 OK", LIST MEMBER("/new.xml", "") "</sitemapindex>", world.site);
    assert_string_equal(scan_list_dry(), "");
    assert_int_equal(world.created, 1);
    assert_string_equal(date_of("/new.xml"), "-");
    assert_true(remote_status(world.r, "shop", &status));
    const struct remote_status before = status; /* of one poll, or of one that began unasked, too */
    set("/list.xml", "200 OK", URLSET "</urlset>");
    assert_non_null(strstr(scan_list_dry(), "urlset"));
    set("/list.xml", "503 No", "");
    assert_non_null(strstr(scan_list_dry(), "503"));
    assert_true(remote_status(world.r, "shop", &status));
    assert_false(status.failing);
    assert_int_equal(status.next_poll_at, before.next_poll_at);
    assert_int_equal(status.polls, before.polls);
}

static void an_address_that_is_not_allowed_is_not_asked(void **state)
{
    char why[256];
    struct remote_bounds closed = {
        .agent = "x", .rate = 1000, .per_host = 2, .min_interval_s = 900, .max_interval_s = 86400};
    set_all_good();
    start();
    assert_string_equal(scan_list(MAX_REMOVED_GUARDED), "");
    assert_int_equal(poll_one("/a.xml"), CHECK_GOOD);
    unsigned before = asked("/a.xml", false);
    assert_true(remote_reconfigure(world.r, &closed, 1, &world.settings, why, sizeof why));
    for (int64_t until = clock_now_ms() + HANG_MS; clock_now_ms() < until;)
        if (poll_one("/a.xml") == CHECK_UNREACHABLE)
            break;
    assert_string_equal(world.problem, "address-not-allowed");
    assert_in_range(asked("/a.xml", false), before, before + 1);
}

/* On the thread itself, in the middle of its turn. */
static void make_and_scan_another(void *context, const struct change_result *result,
                                  const char *failure)
{
    char why[256];
    struct source_settings another = world.settings;
    (void)context;
    (void)result;
    (void)failure;
    another.name = "another";
    assert_true(remote_reconfigure(world.r, &usual_bounds, 1, &another, why, sizeof why));
    remote_scan(world.r, "another", MAX_REMOVED_GUARDED, false, NULL, on_scanned, NULL);
}

static void what_was_made_before_is_scanned(void **state)
{
    set_all_good();
    start();
    remote_scan(world.r, "shop", MAX_REMOVED_GUARDED, false, NULL, make_and_scan_another, NULL);
    await();
    assert_string_equal(world.failure, "");
}

static bool is_wanted_elsewhere(struct catalogue *c, const char *source)
{
    (void)c;
    (void)source;
    return true;
}

/* As those of a site that was moved here: nothing that this thread wrote itself loads them. */
static void sitemaps_that_came_with_a_source_are_polled(void **state)
{
    char why[256];
    struct remote *first;
    struct remote_options options = {
        .catalogue = world.c, .bounds = usual_bounds, .wanted_elsewhere = is_wanted_elsewhere};
    struct catalogue_view *v;
    struct change_result result;
    struct check_write write = {.kind = CHECK_RESULT};
    set_all_good();
    assert_true(remote_start(&options, &first, why, sizeof why));
    remote_poll(first, world.site_id, loc("/a.xml"), NULL, on_polled, NULL);
    await(); /* it has loaded what there is: nothing */
    start();
    assert_string_equal(scan_list(MAX_REMOVED_GUARDED), "");
    assert_int_equal(poll_one("/a.xml"), CHECK_GOOD);
    remote_stop(world.r);
    assert_int_equal(catalogue_view_begin(world.c, &v), CATALOGUE_OK);
    assert_int_equal(catalogue_view_check_by_loc(v, world.site_id, loc("/a.xml"), &write.record),
                     CATALOGUE_OK);
    write.full_from = write.record.full_at;
    write.record.next_at = 1;
    struct change change = {.kind = CHANGE_CHECK, .check = {.writes = &write, .count = 1}};
    assert_int_equal(catalogue_apply(world.c, &change, &result), CATALOGUE_OK);
    catalogue_view_end(v);
    unsigned before = asked("/a.xml", false) + asked("/a.xml", true);
    world.r = first;
    assert_true(remote_reconfigure(first, &usual_bounds, 1, &world.settings, why, sizeof why));
    for (int64_t until = clock_now_ms() + HANG_MS;
         asked("/a.xml", false) + asked("/a.xml", true) == before;) {
        assert_true(clock_now_ms() < until);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_list_is_mirrored_and_its_dates_are_true),
        CASE(each_answer_is_told_apart),
        CASE(a_bad_list_changes_nothing),
        CASE(what_is_gone_for_days_leaves_and_comes_back),
        CASE(validators_that_lie_are_found),
        CASE(claims_of_now_are_not_taken),
        CASE(a_checked_site_keeps_what_was_registered),
        CASE(a_date_that_a_digest_holds_is_reported),
        CASE(a_date_in_a_frozen_site_is_reported),
        CASE(a_restart_polls_nothing_before_its_time),
        CASE(a_list_is_scanned_once),
        CASE(a_dry_run_of_a_list_changes_nothing),
        CASE(an_address_that_is_not_allowed_is_not_asked),
        CASE(what_was_made_before_is_scanned),
        CASE(sitemaps_that_came_with_a_source_are_polled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
