/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* log_driver DATABASE EPOCH|- NODE|- SCHEMA|-: a node's log (db/shared/log.h) by hand. A line on
 * stdin is a call, a line of JSON on stdout its answer; the tests beside it (test_log.py) break
 * what is beneath. */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/shared/log.h"
#include "db/shared/pg/pg_log.h"
#include "server/base/clock.h"
#include "server/base/str.h"

static struct shared_log *node;
static const struct shared_log_calls *calls;
static struct shared_position at;
static struct shared_record record;
static struct str told; /* members of the answer */

static void on_interrupt(int number)
{
    (void)number;
    calls->interrupt(node);
}

static void report_chain(const char *name, const uint8_t *chain)
{
    str_append_format(&told, ",\"%s\":\"", name);
    for (int i = 0; i < SHARED_CHAIN_BYTES; i++)
        str_append_format(&told, "%02x", chain[i]);
    str_append_char(&told, '"');
}

static void report_number(const char *name, int64_t number)
{
    str_append_format(&told, ",\"%s\":%" PRId64, name, number);
}

/* --- records as applied: a hash of the body, and its beginning --- */

static struct taken {
    struct str start;
    uint64_t size, sum, stop_at;
    uint64_t count;
    int64_t nap_ms, nap_of_piece_ms;
    bool writes_wait;
} taken;

static bool take_begin(void *context, const struct shared_record *r)
{
    (void)context;
    str_clear(&taken.start);
    taken.size = 0;
    taken.sum = 14695981039346656037u;
    if (taken.nap_ms > 0)
        usleep((useconds_t)taken.nap_ms * 1000);
    return !taken.stop_at || r->position.seq != taken.stop_at;
}

static uint64_t sum_bytes(uint64_t sum, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
    return sum;
}

static bool take_bytes(void *context, const void *bytes, size_t size)
{
    (void)context;
    if (taken.start.len < 64)
        str_append(&taken.start, bytes, size < 64 - taken.start.len ? size : 64 - taken.start.len);
    taken.size += size;
    taken.sum = sum_bytes(taken.sum, bytes, size);
    if (taken.nap_of_piece_ms > 0)
        usleep((useconds_t)taken.nap_of_piece_ms * 1000);
    return true;
}

static bool writes_wait(void *context)
{
    (void)context;
    return taken.writes_wait;
}

static bool take_end(void *context, const struct shared_record *r)
{
    struct str *records = context;

    at = r->position;
    taken.count++;
    str_append_format(
        records,
        "%s{\"seq\":%" PRIu64 ",\"id\":\"%s\",\"node\":\"%s\",\"schema\":%d,\"size\":%" PRIu64
        ",\"sum\":%" PRIu64 ",\"start\":",
        records->len ? "," : "", r->position.seq, r->id, r->node, r->schema, taken.size, taken.sum);
    str_append_json_text(records, str_text(&taken.start));
    str_append_char(records, '}');
    return true;
}

static bool take_node(void *context, const struct shared_node *n)
{
    (void)context;
    str_append_format(&told,
                      ",\"%s\":{\"release\":\"%s\",\"schema\":%d,\"applied\":%" PRIu64
                      ",\"silent_ms\":%" PRId64 ",\"state\":",
                      n->name, n->release, n->schema, n->applied, n->silent_ms);
    str_append_json_text(&told, n->state);
    str_append_char(&told, '}');
    return true;
}

/* --- calls --- */

static const char *words[8]; /* the line's */

static int64_t number(int word)
{
    return words[word] ? strtoll(words[word], NULL, 10) : 0;
}

static int64_t deadline(int word)
{
    return clock_now_ms() + (words[word] ? number(word) : 30000);
}

enum locking { WITHOUT_LOCK, WITH_LOCK, AS_LIST };

static enum shared_outcome do_tail(enum locking with)
{
    struct str records = STR_INIT;
    struct shared_take take = {.begin = take_begin,
                               .bytes = take_bytes,
                               .end = take_end,
                               .writes_wait = writes_wait,
                               .context = &records};
    uint64_t head = 0;
    enum shared_outcome outcome;

    taken.stop_at = (uint64_t)number(3);
    taken.nap_ms = number(4);
    taken.nap_of_piece_ms = number(6);
    taken.writes_wait = number(7) != 0;
    outcome =
        with != WITHOUT_LOCK
            ? calls->begin(node, &at, (uint64_t)number(1),
                           with == AS_LIST ? (int)number(5) : NO_SITE_GROUP, &take, deadline(2))
            : calls->tail(node, &at, (uint64_t)number(1), &take, &head, deadline(2));
    str_append_format(&told, ",\"records\":[%s]", str_text(&records));
    if (with == WITHOUT_LOCK)
        report_number("head", (int64_t)head);
    str_done(&records);
    return outcome;
}

/* So many bytes that do not pack, each half its own, told by their sum. */
static enum shared_outcome do_fill(void)
{
    static uint8_t bytes[1 << 16];
    uint64_t sum = 14695981039346656037u, left = (uint64_t)number(1), state = 88172645463325252u;
    enum shared_outcome outcome = SHARED_YES;

    while (left > 0 && outcome == SHARED_YES) {
        size_t n = left < sizeof bytes ? (size_t)left : sizeof bytes;

        for (size_t i = 0; i < n; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes[i] = (uint8_t)(state >> 32);
        }
        sum = sum_bytes(sum, bytes, n);
        outcome = calls->add(node, bytes, n, deadline(2));
        left -= n;
    }
    str_append_format(&told, ",\"sum\":%" PRIu64, sum);
    return outcome;
}

static void fill_record(void)
{
    shared_make_id(record.id);
    snprintf(record.node, sizeof record.node, "%s", words[2] ? words[2] : "driver");
    record.schema = SHARED_FIRST_SCHEMA;
    record.at = clock_unix_ms();
}

static enum shared_outcome do_commit(void)
{
    fill_record();
    enum shared_outcome outcome = calls->commit(node, &record, deadline(1));

    if (outcome == SHARED_YES)
        at = record.position;
    str_append_format(&told, ",\"id\":\"%s\"", record.id);
    return outcome;
}

/* begin, add, commit: so many times, so many bytes each; the times of each in microseconds. */
static enum shared_outcome do_bench(void)
{
    int64_t count = number(1), size = number(2), began = clock_now_ms();
    struct str ignored = STR_INIT;
    struct shared_take take = {.begin = take_begin,
                               .bytes = take_bytes,
                               .end = take_end,
                               .writes_wait = writes_wait,
                               .context = &ignored};
    enum shared_outcome outcome = SHARED_YES;
    uint8_t *bytes = calloc(1, (size_t)size + 1);

    if (!bytes)
        return SHARED_NO_MEMORY;
    for (int64_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)("https://www.example.com/"[i % 24] + (i * i) % 7);
    taken.stop_at = 0;
    taken.nap_ms = taken.nap_of_piece_ms = 0;
    taken.writes_wait = false;
    taken.count = 0;
    str_append_text(&told, ",\"us\":[");
    for (int64_t i = 0; i < count && outcome == SHARED_YES; i++) {
        uint64_t from = clock_now_ns();

        str_clear(&ignored);
        words[1] = words[2] = NULL;
        outcome = calls->begin(node, &at, 1 << 20, NO_SITE_GROUP, &take, deadline(1));
        if (outcome == SHARED_BEHIND) {
            uint64_t head;

            outcome = calls->tail(node, &at, 1 << 20, &take, &head, deadline(1));
            i--;
            continue;
        }
        if (outcome == SHARED_YES)
            outcome = calls->add(node, bytes, (size_t)size, deadline(1));
        if (outcome == SHARED_YES) {
            fill_record();
            outcome = calls->commit(node, &record, deadline(1));
        }
        if (outcome == SHARED_YES)
            at = record.position;
        str_append_format(&told, "%s%" PRIu64, i ? "," : "", (clock_now_ns() - from) / 1000);
    }
    str_append_char(&told, ']');
    report_number("ms", clock_now_ms() - began);
    report_number("foreign", (int64_t)taken.count);
    str_done(&ignored);
    free(bytes);
    return outcome;
}

static enum shared_outcome do_put(void)
{
    int fd = open(words[1], O_RDONLY | O_CLOEXEC);
    struct shared_snapshot snapshot = {.position = at, .schema = SHARED_FIRST_SCHEMA};
    enum shared_outcome outcome = SHARED_STOPPED;

    if (fd < 0)
        return outcome;
    snapshot.bytes = (uint64_t)lseek(fd, 0, SEEK_END);
    outcome = calls->snapshot_put(node, &snapshot, words[2] && words[3] ? (int)number(3) : 2, fd,
                                  words[2] ? number(2) : 30000);
    close(fd);
    return outcome;
}

static enum shared_outcome do_get(void)
{
    int fd = open(words[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct shared_snapshot snapshot;
    enum shared_outcome outcome =
        calls->snapshot_get(node, fd, &snapshot, words[2] ? number(2) : 30000);

    if (outcome == SHARED_YES) {
        at = snapshot.position;
        report_number("bytes", (int64_t)snapshot.bytes);
        report_number("schema", snapshot.schema);
    }
    close(fd);
    return outcome;
}

static enum shared_outcome do_overview(void)
{
    struct shared_overview o;
    enum shared_outcome outcome = calls->overview(node, &o, deadline(1));

    if (outcome != SHARED_YES)
        return outcome;
    str_append_format(&told, ",\"epoch\":\"%s\",\"server\":\"%s\"", o.epoch, o.server);
    report_number("synchronous", o.synchronous);
    report_number("durable", o.durable);
    report_number("first", (int64_t)o.first_seq);
    report_number("head", (int64_t)o.head.seq);
    report_number("log_bytes", (int64_t)o.bytes);
    report_number("snapshot", o.has_snapshot ? (int64_t)o.snapshot.position.seq : -1);
    report_number("since", (int64_t)o.bytes_since_snapshot);
    return outcome;
}

static enum shared_outcome do_report(void)
{
    struct shared_node n = {.name = words[1],
                            .release = "0.1",
                            .schema = SHARED_FIRST_SCHEMA,
                            .applied = at.seq,
                            .state = words[2]};

    return calls->report(node, &n, deadline(3));
}

static enum shared_outcome do_at(void)
{
    at.seq = (uint64_t)number(1);
    for (int i = 0; words[2] && i < SHARED_CHAIN_BYTES; i++) {
        unsigned byte = 0;

        sscanf(words[2] + 2 * i, "%2x", &byte);
        at.chain[i] = (uint8_t)byte;
    }
    return SHARED_YES;
}

/* The server ends a session that says nothing, after two seconds in a transaction and after ten
 * with a place in the line. What a test does between two calls takes as long as it takes: its
 * sessions are let be, but for one that gets `hurry` before it connects. */
static bool hurries;

static void take_time(void)
{
    struct pg_log *l = pg_log_of(node);

    if (hurries || !l->session.conn)
        return;
    pg_send_text(&l->session, "SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN"
                              " ('idle_in_transaction_session_timeout', 'idle_session_timeout')");
    pg_log_run(l, NULL, clock_now_ms() + 60000);
}

/* After how many ms of silence the server ends this session; 0: never. */
static enum shared_outcome do_silence(void)
{
    struct pg_log *l = pg_log_of(node);
    struct pg_results r;
    char ms[16] = "";

    pg_send_text(&l->session,
                 "SELECT setting FROM pg_settings WHERE name = 'idle_session_timeout'");
    enum shared_outcome outcome = pg_log_run(l, &r, deadline(1));
    if (outcome == SHARED_YES)
        pg_get_text(r.at[0], 0, 0, ms, sizeof ms);
    pg_results_clear(&r);
    report_number("ms", atoll(ms));
    return outcome;
}

static enum shared_outcome call(const char *what)
{
    enum shared_outcome outcome = SHARED_YES;
    bool more = false;

    if (strcmp(what, "hurry") == 0)
        hurries = true;
    else if (strcmp(what, "at") == 0)
        outcome = do_at();
    else if (strcmp(what, "found") == 0)
        outcome = calls->found(node, words[1], words[2], &at, deadline(3));
    else if (strcmp(what, "begin") == 0)
        outcome = do_tail(WITH_LOCK);
    else if (strcmp(what, "tail") == 0)
        outcome = do_tail(WITHOUT_LOCK);
    else if (strcmp(what, "begin_list") == 0)
        outcome = do_tail(AS_LIST);
    else if (strcmp(what, "pass") == 0)
        report_number("awaited", calls->pass(node, number(1) != 0, deadline(2)));
    else if (strcmp(what, "awaited") == 0)
        report_number("ms", calls->awaited_ms(node));
    else if (strcmp(what, "add") == 0)
        outcome = calls->add(node, words[1], strlen(words[1]), deadline(2));
    else if (strcmp(what, "fill") == 0)
        outcome = do_fill();
    else if (strcmp(what, "keep") == 0)
        outcome = calls->keep(node, deadline(1));
    else if (strcmp(what, "commit") == 0)
        outcome = do_commit();
    else if (strcmp(what, "rollback") == 0)
        calls->rollback(node);
    else if (strcmp(what, "confirm") == 0)
        outcome = calls->confirm(node, deadline(1));
    else if (strcmp(what, "settle") == 0)
        outcome = calls->settle(node, words[1], deadline(2));
    else if (strcmp(what, "wait") == 0)
        outcome = calls->wait(node, deadline(1));
    else if (strcmp(what, "put") == 0)
        outcome = do_put();
    else if (strcmp(what, "get") == 0)
        outcome = do_get();
    else if (strcmp(what, "trim") == 0) {
        outcome = calls->trim(node, words[1] && words[2] ? (int)number(2) : 2, &more, deadline(1));
        report_number("more", more);
    } else if (strcmp(what, "hold") == 0)
        outcome = calls->hold(node, words[1], deadline(2));
    else if (strcmp(what, "held") == 0)
        report_number("held", calls->is_held(node, words[1]));
    else if (strcmp(what, "let_go") == 0)
        calls->let_go(node, words[1], deadline(2));
    else if (strcmp(what, "silence") == 0)
        outcome = do_silence();
    else if (strcmp(what, "lease") == 0)
        outcome = calls->lease(node, (int)number(1), deadline(2));
    else if (strcmp(what, "older") == 0)
        outcome = calls->older_are_gone(node, (int)number(1), deadline(2));
    else if (strcmp(what, "tell") == 0)
        outcome = do_report();
    else if (strcmp(what, "list") == 0)
        outcome = calls->list(node, take_node, NULL, deadline(1));
    else if (strcmp(what, "forget") == 0)
        outcome = calls->forget(node, words[1], deadline(2));
    else if (strcmp(what, "overview") == 0)
        outcome = do_overview();
    else if (strcmp(what, "bench") == 0)
        outcome = do_bench();
    else
        exit(2);
    return outcome;
}

static const char *or_null(const char *word)
{
    return word && strcmp(word, "-") != 0 ? word : NULL;
}

int main(int argc, char **argv)
{
    char why[512], *line = NULL;
    size_t size = 0;

    if (argc != 5)
        return 2;
    const struct shared_log_options options = {.database = argv[1],
                                               .epoch = or_null(argv[2]),
                                               .node = or_null(argv[3]),
                                               .schema = or_null(argv[4])};

    node = shared_log_open_postgresql(&options, why, sizeof why);
    if (!node) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    calls = node->calls;
    signal(SIGUSR1, on_interrupt);
    while (getline(&line, &size, stdin) > 0) {
        char *rest = line, *what = strsep(&rest, " \n");

        for (int i = 1; i < 8; i++) {
            char *word = rest ? strsep(&rest, " \n") : NULL;

            words[i] = word && *word ? or_null(word) : NULL;
        }
        str_clear(&told);
        int64_t began = clock_now_ms();
        enum shared_outcome outcome = call(what);

        report_number("seq", (int64_t)at.seq);
        report_chain("chain", at.chain);
        report_number("took_ms", clock_now_ms() - began);
        str_append_text(&told, ",\"why\":");
        str_append_json_text(&told, calls->why(node));
        str_append_text(&told, ",\"gist\":");
        str_append_json_text(&told, calls->gist(node));
        take_time();
        printf("{\"outcome\":\"%s\"%s}\n", shared_outcome_word(outcome), str_text(&told));
        fflush(stdout);
    }
    calls->free(node);
    str_done(&told);
    str_done(&taken.start);
    free(line);
    return 0;
}
