/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Connects to PostgreSQL and runs statements, each step by poll(2) with a deadline. */
#include "db/shared/pg/pg_session.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "db/shared.h"
#include "db/shared/pg/pg_lookup.h"
#include "server/base/clock.h"

/* Longest time for one of several hosts, which may drop packets. One that did not answer is not
 * asked for SILENT_MS whether it accepts writes, too. */
#define HOST_MS   2000
#define SILENT_MS 30000
/* Attempts to detect a pooler: one may fail while another client uses the pool. */
#define PROBES   3
#define PROBE_MS 2000

/* Older releases are not tested. */
#define LEAST_VERSION 150000

/* SQLSTATE for a statement that was prepared before a column's type was changed: needs a new
 * session. */
static const char changed_plan[] = "0A000";
static const char read_only[] = "25006"; /* a standby, or set so */
static const char missing_table[] = "42P01";
/* For messages of libpq, which have none: */
static const char no_password[] = "28PAS", no_tls[] = "08TLS";

static const char too_old[] =
    "this server is older than PostgreSQL 15, which a shared catalogue needs";
static const char is_pooled[] =
    "a connection pooler in transaction mode is in front of PostgreSQL, under which locks do not "
    "hold: connect to PostgreSQL directly, or use a pooler in session mode";

static const char *const statement_sql[] = {
#define X(name, sql) [PG_##name] = sql,
#include "db/shared/pg/pg_statements.def"
#undef X
};

static void say(struct pg_session *s, const char *text)
{
    size_t n = 0;

    while (*text == ' ')
        text++;
    while (text[n] && text[n] != '\n' &&
           n < sizeof s->why - 1) /* libpq's texts have several lines */
        n++;
    memcpy(s->why, text, n);
    s->why[n] = '\0';
}

const char *pg_session_gist(const struct pg_session *s)
{
    static const struct {
        const char *sqlstate, *gist; /* the beginning of one */
    } table[] = {
        {no_password, "authentication failed: no password: passfile has no line for its host, or "
                      "users other than its owner can read that file"},
        {no_tls, "TLS to it failed: check sslmode, sslrootcert and its certificate"},
        {"28", "authentication failed: it rejects this node; check password, role, certificates, "
               "pg_hba.conf"},
        {"42501", "permission denied: this node's role lacks permissions"},
        {"3D000", "its database does not exist"},
        {"42P01", "there is no shared catalogue in its database, or a table of it is missing"},
        {"3F000", "there is no shared catalogue in its database"},
        {PG_LOCKED, SHARED_IS_LOCKED},
        {"25006", "it accepts no writes: it is a standby, or read-only"},
        {"53100", "its disk is full"},
        {"53300", "too many connections: all that it allows are in use"},
        {"53", "PostgreSQL is out of memory or of another resource"},
        {"57P", "it is starting or stopping"},
        {"", "it rejected the request"},
    };
    size_t at = 0;

    if (s->unfit != NULL)
        return s->unfit;
    if (s->foreign != NULL)
        return s->foreign;
    if (s->sqlstate[0] == '\0')
        return "";
    while (strncmp(s->sqlstate, table[at].sqlstate, strlen(table[at].sqlstate)) != 0)
        at++;
    return table[at].gist;
}

/* --- values --- */

int64_t pg_get_integer(const PGresult *r, int row, int column)
{
    const unsigned char *at = (const unsigned char *)PQgetvalue(r, row, column);
    int size = PQgetlength(r, row, column);
    uint64_t value = size > 0 && at[0] & 0x80 && size > 1 ? UINT64_MAX : 0;

    for (int i = 0; i < size; i++)
        value = value << 8 | at[i];
    return (int64_t)value;
}

const void *pg_get_bytes(const PGresult *r, int row, int column, size_t *size)
{
    *size = (size_t)PQgetlength(r, row, column);
    return PQgetvalue(r, row, column);
}

void pg_get_text(const PGresult *r, int row, int column, char *out, size_t out_size)
{
    snprintf(out, out_size, "%s", PQgetvalue(r, row, column));
}

/* --- where to --- */

static const char *option_of(const struct pg_session *s, const char *keyword)
{
    for (const PQconninfoOption *o = s->options; o != NULL && o->keyword != NULL; o++)
        if (strcmp(o->keyword, keyword) == 0)
            return o->val != NULL && *o->val ? o->val : NULL;
    return NULL;
}

static size_t count_of(const char *list)
{
    size_t n = list != NULL ? 1 : 0;

    for (; list != NULL && *list; list++)
        n += *list == ',';
    return n;
}

/* Element `at` of a list, or its only one. Borrowed from `buffer`. */
static const char *item_of(const char *list, size_t at, char *buffer, size_t size)
{
    if (list == NULL)
        return NULL;
    if (count_of(list) == 1)
        at = 0;
    while (at > 0 && *list)
        at -= *list++ == ',';
    size_t n = strcspn(list, ",");

    if (n >= size)
        n = size - 1;
    memcpy(buffer, list, n);
    buffer[n] = '\0';
    return n > 0 ? buffer : NULL;
}

bool pg_session_init(struct pg_session *s, const struct shared_log_options *options)
{
    char *why = NULL;
    const char *node = options->node;

    *s = (struct pg_session){.interrupt_fd = -1};
    s->interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->epoch = options->epoch != NULL ? strdup(options->epoch) : NULL;
    s->schema = strdup(options->schema != NULL ? options->schema : SHARED_DEFAULT_SCHEMA);
    assert(s->schema == NULL || strpbrk(s->schema, "\"@ ") == NULL);
    if (s->schema == NULL ||
        asprintf(&s->application, node != NULL ? "%s %s" : "%s", s->schema, node) < 0)
        s->application = NULL;
    if (s->interrupt_fd < 0 || s->application == NULL ||
        (options->epoch != NULL && s->epoch == NULL)) {
        say(s, "out of memory, or too many open files");
        return false;
    }
    s->options = PQconninfoParse(options->database, &why);
    if (s->options == NULL) {
        say(s, why != NULL ? why : "out of memory");
        PQfreemem(why);
        return false;
    }
    size_t by_name = count_of(option_of(s, "host"));
    size_t by_address = count_of(option_of(s, "hostaddr"));

    s->hosts = by_name > by_address ? by_name : by_address;
    if (s->hosts == 0)
        s->hosts = 1;
    return true;
}

void pg_session_done(struct pg_session *s)
{
    pg_session_drop(s);
    pg_lookup_free(s->lookup);
    PQconninfoFree(s->options);
    free(s->epoch);
    free(s->schema);
    free(s->application);
    if (s->interrupt_fd >= 0)
        close(s->interrupt_fd);
}

void pg_session_interrupt(struct pg_session *s)
{
    uint64_t one = 1;

    if (write(s->interrupt_fd, &one, sizeof one) < 0)
        return; /* full: it is readable */
}

void pg_session_drop(struct pg_session *s)
{
    PQfinish(s->conn); /* says goodbye without waiting: the socket never blocks */
    s->conn = NULL;
    s->queued = 0;
    s->queue_failed = false;
    s->is_listening = false;
}

/* --- waiting --- */

/* Waits until the socket is ready for `events`: YES; AWAY after the deadline; STOPPED. */
static enum shared_outcome wait_socket(struct pg_session *s, short events, int64_t deadline_ms)
{
    struct pollfd fds[2] = {{.fd = PQsocket(s->conn), .events = events},
                            {.fd = s->interrupt_fd, .events = POLLIN}};

    for (;;) {
        int64_t left = deadline_ms - clock_now_ms();

        if (left < 0)
            left = 0;
        int n = poll(fds, 2, left > INT32_MAX ? INT32_MAX : (int)left);

        if (n < 0 && errno == EINTR)
            continue;
        if (n > 0 && fds[1].revents)
            return SHARED_STOPPED;
        if (n > 0)
            return SHARED_YES;
        if (n < 0 || clock_now_ms() >= deadline_ms)
            return SHARED_AWAY;
    }
}

/* Sends the queued bytes and reads until the next result is complete. */
static enum shared_outcome await_result(struct pg_session *s, int64_t deadline_ms)
{
    for (;;) {
        int unsent = PQflush(s->conn);

        if (!PQisBusy(s->conn))
            return SHARED_YES;
        if (unsent < 0) {
            say(s, PQerrorMessage(s->conn));
            return SHARED_AWAY;
        }
        enum shared_outcome ready = wait_socket(s, unsent ? POLLIN | POLLOUT : POLLIN, deadline_ms);

        if (ready == SHARED_AWAY)
            say(s, "timeout: PostgreSQL did not answer in time");
        if (ready != SHARED_YES)
            return ready;
        if (!PQconsumeInput(s->conn)) {
            say(s, PQerrorMessage(s->conn));
            return SHARED_AWAY;
        }
    }
}

static void take_notice(void *context, const PGresult *notice)
{
    struct pg_session *s = context;
    const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *text = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);

    if (severity != NULL && strcmp(severity, "WARNING") == 0) {
        s->warned = true;
        if (text != NULL)
            say(s, text);
    }
}

/* --- a batch --- */

static void queue(struct pg_session *s, enum pg_statement statement, bool prepares, int sent)
{
    assert(s->queued < PG_BATCH_MAX);
    if (sent)
        s->queue[s->queued++] = (struct pg_queued){statement, prepares};
    else
        s->queue_failed = true;
}

void pg_append_sql(const struct pg_session *s, const char *sql, struct str *out)
{
    for (size_t n; (n = strcspn(sql, "@")), str_append(out, sql, n), sql[n]; sql += n + 1)
        str_append_format(out, "\"%s\"", s->schema);
}

static bool send_prepare(struct pg_session *s, const char *name, const char *sql)
{
    struct str text = STR_INIT;

    pg_append_sql(s, sql, &text);
    bool sent = !text.failed && PQsendPrepare(s->conn, name, text.data, 0, NULL);
    str_done(&text);
    return sent;
}

/* At most so many parameters has a statement. */
#define VALUES_MAX 16

/* A value in binary, as the protocol has it; numbers are written to `number`. */
static const char *binary_of(const struct sql_value *value, char number[8], int *size)
{
    const char *bytes = value->kind == SQL_NUMBER ? number : value->data;

    *size = value->kind == SQL_TEXT ? (int)strlen(bytes) : 8;
    if (value->kind == SQL_BYTES)
        *size = (int)value->number;
    for (int i = 0; value->kind == SQL_NUMBER && i < 8; i++)
        number[i] = (char)((uint64_t)value->number >> (56 - 8 * i));
    return *size > 0 ? bytes : "";
}

void pg_send_values(struct pg_session *s, enum pg_statement statement,
                    const struct sql_value *values)
{
    const char *bytes[VALUES_MAX];
    char numbers[VALUES_MAX][8], name[16];
    int sizes[VALUES_MAX], formats[VALUES_MAX], count = 0;
    bool prepares = !s->is_prepared[statement];

    if (s->conn == NULL || s->queue_failed)
        return;
    for (; values[count].kind != SQL_END; count++) {
        assert(count < VALUES_MAX);
        bytes[count] = binary_of(&values[count], numbers[count], &sizes[count]);
        formats[count] = 1;
    }
    snprintf(name, sizeof name, "s%d", statement);
    if (prepares && !send_prepare(s, name, statement_sql[statement])) {
        s->queue_failed = true;
        return;
    }
    s->is_prepared[statement] = true;
    queue(s, statement, prepares,
          PQsendQueryPrepared(s->conn, name, count, bytes, sizes, formats, 1));
}

void pg_send_text(struct pg_session *s, const char *sql)
{
    if (s->conn != NULL && !s->queue_failed)
        queue(s, PG_TEXT, false, PQsendQueryParams(s->conn, sql, 0, NULL, NULL, NULL, NULL, 1));
}

static void refuse(struct pg_session *s, const char *unfit)
{
    s->unfit = unfit;
    say(s, unfit);
}

static void record_error(struct pg_session *s, const PGresult *r)
{
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *severity = PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);

    if (severity != NULL && strcmp(severity, "ERROR") != 0)
        s->fatal = true;
    if (s->sqlstate[0])
        return;
    snprintf(s->sqlstate, sizeof s->sqlstate, "%s", state != NULL ? state : "");
    say(s, strcmp(s->sqlstate, PG_LOCKED) == 0 ? SHARED_IS_LOCKED
           : text != NULL                      ? text
                                               : PQerrorMessage(s->conn));
    /* A prepared statement of another session, or a missing one: a pooler that the probe did not
     * detect. */
    if (strcmp(s->sqlstate, "42P05") == 0 || strcmp(s->sqlstate, "26000") == 0)
        refuse(s, is_pooled);
}

/* The next result, which the caller frees; NULL: none came. */
static PGresult *next_result(struct pg_session *s, int64_t deadline_ms,
                             enum shared_outcome *outcome)
{
    for (int separators = 0; separators < 2; separators++) {
        *outcome = await_result(s, deadline_ms);
        if (*outcome != SHARED_YES)
            return NULL;
        PGresult *r = PQgetResult(s->conn);

        if (r != NULL && PQresultStatus(r) == PGRES_FATAL_ERROR)
            record_error(s, r);
        /* libpq returns results forever if a connection is lost within a pipeline. */
        if (r != NULL && PQstatus(s->conn) != CONNECTION_BAD)
            return r;
        PQclear(r);
        if (PQstatus(s->conn) == CONNECTION_BAD)
            break;
        /* libpq separates the results of two statements by NULL. */
    }
    if (!s->sqlstate[0])
        say(s, PQerrorMessage(s->conn));
    *outcome = SHARED_AWAY;
    return NULL;
}

/* Reads the answer to a statement, after the answer to its preparation. */
static enum shared_outcome take_answer(struct pg_session *s, const struct pg_queued *queued,
                                       PGresult **out, int64_t deadline_ms)
{
    enum shared_outcome outcome = SHARED_YES;

    if (queued->prepares) {
        PGresult *r = next_result(s, deadline_ms, &outcome);

        s->is_prepared[queued->statement] = r != NULL && PQresultStatus(r) == PGRES_COMMAND_OK;
        PQclear(r);
    }
    if (outcome == SHARED_YES)
        *out = next_result(s, deadline_ms, &outcome);
    return outcome;
}

enum shared_outcome pg_session_run(struct pg_session *s, struct pg_results *out,
                                   int64_t deadline_ms)
{
    enum shared_outcome outcome = SHARED_AWAY;
    struct pg_results results = {{NULL}};

    s->warned = s->fatal = false;
    s->unfit = NULL;
    s->sqlstate[0] = '\0';
    if (s->conn == NULL)
        goto end;
    say(s, "");
    if (s->queue_failed || !PQpipelineSync(s->conn)) {
        say(s, PQerrorMessage(s->conn));
        pg_session_drop(s);
        goto end;
    }
    for (size_t i = 0; i < s->queued; i++) {
        outcome = take_answer(s, &s->queue[i], &results.at[i], deadline_ms);
        if (outcome != SHARED_YES)
            break;
    }
    if (outcome == SHARED_YES || s->queued == 0) {
        PGresult *sync = next_result(s, deadline_ms, &outcome);

        if (outcome == SHARED_YES && PQresultStatus(sync) != PGRES_PIPELINE_SYNC)
            outcome = SHARED_AWAY; /* the implicit commit of the batch failed */
        PQclear(sync);
    }
    if (outcome != SHARED_YES)
        pg_session_drop(s);
    else if (strcmp(s->sqlstate, changed_plan) == 0) {
        pg_session_drop(s);
        outcome = SHARED_AWAY;
    } else if (s->sqlstate[0])
        outcome = SHARED_NO;
    s->queued = 0;
end:
    if (out != NULL)
        *out = results;
    else
        pg_results_clear(&results);
    return outcome;
}

void pg_results_clear(struct pg_results *results)
{
    for (size_t i = 0; i < PG_BATCH_MAX; i++)
        PQclear(results->at[i]);
    *results = (struct pg_results){{NULL}};
}

enum shared_outcome pg_session_wait(struct pg_session *s, const struct pg_heard *heard,
                                    int64_t deadline_ms)
{
    for (;;) {
        bool noted = false;

        for (PGnotify *n; (n = PQnotifies(s->conn)) != NULL; PQfreemem(n))
            noted |= heard->note(heard->context, n->extra);
        if (noted)
            return SHARED_YES;
        enum shared_outcome ready = wait_socket(s, POLLIN, deadline_ms);

        if (ready == SHARED_AWAY)
            return SHARED_YES; /* the deadline */
        if (ready != SHARED_YES)
            return ready;
        if (!PQconsumeInput(s->conn)) {
            say(s, PQerrorMessage(s->conn));
            pg_session_drop(s);
            return SHARED_AWAY;
        }
    }
}

/* --- connecting --- */

/* One host of the options in libpq's form: a name with its addresses. */
struct one_host {
    const char *name, *address, *port; /* or NULL */
    char names[PG_LOOKUP_MOST * PG_NAME_SIZE], addresses[PG_LOOKUP_MOST * 64], port_text[16];
};

static enum shared_outcome find_host(struct pg_session *s, size_t host, struct one_host *out,
                                     int64_t deadline_ms)
{
    out->name = item_of(option_of(s, "host"), host, out->names, PG_NAME_SIZE);
    out->address = item_of(option_of(s, "hostaddr"), host, out->addresses, sizeof out->addresses);
    out->port = item_of(option_of(s, "port"), host, out->port_text, sizeof out->port_text);
    if (out->address != NULL || out->name == NULL || !pg_lookup_is_needed(out->name))
        return SHARED_YES;
    char name[PG_NAME_SIZE];

    memcpy(name, out->names, sizeof name);
    const char *trouble =
        pg_lookup(&s->lookup, name, deadline_ms, s->interrupt_fd, out->addresses, out->names);

    if (trouble != NULL)
        snprintf(s->why, sizeof s->why, "%s: %s", name, trouble);
    out->address = out->addresses;
    return trouble != NULL ? SHARED_AWAY : SHARED_YES;
}

/* Starts to connect to one host, with the options and defaults for missing ones. */
static PGconn *start(struct pg_session *s, const struct one_host *host)
{
    static const struct {
        const char *keyword, *value;
    } unless_said[] = {
        {"keepalives_idle", "5"},      {"keepalives_interval", "2"}, {"keepalives_count", "3"},
        {"tcp_user_timeout", "10000"}, {"gssencmode", "disable"},
    };
    const char *keywords[64], *values[64];
    size_t n = 0;

    for (const PQconninfoOption *o = s->options; o->keyword != NULL && n < 48; o++) {
        const char *value = strcmp(o->keyword, "host") == 0       ? host->name
                            : strcmp(o->keyword, "hostaddr") == 0 ? host->address
                            : strcmp(o->keyword, "port") == 0     ? host->port
                                                                  : o->val;

        if (value != NULL && *value) {
            keywords[n] = o->keyword;
            values[n++] = value;
        }
    }
    for (size_t i = 0; i < sizeof unless_said / sizeof unless_said[0]; i++) {
        if (option_of(s, unless_said[i].keyword) == NULL) {
            keywords[n] = unless_said[i].keyword;
            values[n++] = unless_said[i].value;
        }
    }
    keywords[n] = "target_session_attrs"; /* the last one counts */
    values[n++] = "read-write";
    keywords[n] = "client_encoding";
    values[n++] = "UTF8";
    keywords[n] = "fallback_application_name";
    values[n++] = s->application;
    keywords[n] = NULL;
    values[n] = NULL;
    return PQconnectStartParams(keywords, values, 0);
}

/* Reads the SQLSTATE of a rejected connection, which libpq shows only in a verbose message: "FATAL:
 * 28P01: password …". Messages of libpq itself have none. */
static void record_refusal(struct pg_session *s)
{
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const struct {
        const char *text, *sqlstate;
    } own[] = {
        {"session is read-only", read_only},
        {"no password supplied", no_password},
        {"certificate", no_tls},
        {"SSL error", no_tls},
        {"does not support SSL", no_tls},
    };
    const char *at = s->why;

    while ((at = strstr(at, ":  ")) != NULL) {
        at += 3;
        if (strspn(at, letters) == 5 && at[5] == ':') {
            snprintf(s->sqlstate, sizeof s->sqlstate, "%.5s", at);
            return;
        }
    }
    for (size_t i = 0; i < sizeof own / sizeof own[0] && s->sqlstate[0] == '\0'; i++)
        if (strstr(s->why, own[i].text) != NULL)
            snprintf(s->sqlstate, sizeof s->sqlstate, "%s", own[i].sqlstate);
}

/* Connects to one host, until it accepts, rejects, or the deadline. */
static enum shared_outcome try_host(struct pg_session *s, size_t host, int64_t deadline_ms)
{
    PostgresPollingStatusType step = PGRES_POLLING_WRITING;
    struct one_host found;
    enum shared_outcome outcome = find_host(s, host, &found, deadline_ms);

    if (outcome != SHARED_YES)
        return outcome;
    s->conn = start(s, &found);
    if (s->conn == NULL)
        return SHARED_NO_MEMORY;
    PQsetErrorVerbosity(s->conn, PQERRORS_VERBOSE);
    while (PQstatus(s->conn) != CONNECTION_BAD && step != PGRES_POLLING_FAILED) {
        if (step == PGRES_POLLING_OK && PQsetnonblocking(s->conn, 1) == 0 &&
            PQenterPipelineMode(s->conn)) {
            PQsetNoticeReceiver(s->conn, take_notice, s);
            return SHARED_YES;
        }
        outcome = wait_socket(s, step == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline_ms);
        if (outcome != SHARED_YES)
            break;
        step = PQconnectPoll(s->conn);
    }
    say(s, outcome == SHARED_AWAY && PQstatus(s->conn) != CONNECTION_BAD
               ? "timeout: PostgreSQL did not accept the connection in time"
               : PQerrorMessage(s->conn));
    record_refusal(s);
    pg_session_drop(s);
    return outcome == SHARED_STOPPED ? outcome : SHARED_AWAY;
}

/* The process that serves this session, or 0. `begins`: in a transaction that is left open. */
static int64_t ask_process(struct pg_session *s, bool begins, int64_t deadline_ms,
                           enum shared_outcome *outcome)
{
    struct pg_results r;

    if (begins)
        pg_send_text(s, "BEGIN");
    pg_send_text(s, "SELECT pg_catalog.pg_backend_pid()");
    *outcome = pg_session_run(s, &r, deadline_ms);
    int64_t process = *outcome == SHARED_YES ? pg_get_integer(r.at[begins], 0, 0) : 0;
    pg_results_clear(&r);
    return process;
}

/* Detects a pooler that chooses a server process for each transaction. A second session opens a
 * transaction: either it gets the process of the first, idle session, or the first one then gets
 * another process. With a pooler that keeps a process for each session neither happens. */
static bool is_shared_process(struct pg_session *s, size_t host, int64_t process,
                              int64_t deadline_ms)
{
    enum shared_outcome outcome, again = SHARED_YES;
    PGconn *own = s->conn;
    int64_t limit = clock_now_ms() + PROBE_MS;
    bool shared = false;

    s->conn = NULL;
    if (limit > deadline_ms)
        limit = deadline_ms;
    if (try_host(s, host, limit) == SHARED_YES) {
        int64_t other = ask_process(s, true, limit, &outcome);
        /* Rejected, perhaps together with the connection: the pooler works by statement. */
        shared = outcome == SHARED_NO || strcmp(s->sqlstate, "08P01") == 0 || other == process;
    }
    PGconn *second = s->conn;
    s->conn = own;
    if (!shared && second != NULL)
        shared = ask_process(s, false, deadline_ms, &again) != process && again == SHARED_YES;
    PQfinish(second);
    return shared;
}

/* One probe at a time in this process. */
static pthread_mutex_t probing = PTHREAD_MUTEX_INITIALIZER;

static bool is_behind_pooler(struct pg_session *s, size_t host, int64_t deadline_ms)
{
    enum shared_outcome outcome = SHARED_YES;
    bool shared = false;

    /* Not pthread_mutex_clocklock: GCC 12's ThreadSanitizer does not know it. */
    while (pthread_mutex_trylock(&probing) != 0) {
        if (clock_now_ms() >= deadline_ms)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    for (int i = 0; i < PROBES && !shared && outcome == SHARED_YES; i++) {
        int64_t process = ask_process(s, false, deadline_ms, &outcome);
        shared = outcome == SHARED_YES && is_shared_process(s, host, process, deadline_ms);
    }
    pthread_mutex_unlock(&probing);
    return shared;
}

/* A pooler invents the process number that it sends, so a number that differs from the backend's is
 * a reason to probe. */
static enum shared_outcome check_server(struct pg_session *s, size_t host, int64_t deadline_ms)
{
    enum shared_outcome outcome;

    if (PQserverVersion(s->conn) < LEAST_VERSION) {
        refuse(s, too_old);
        return SHARED_AWAY;
    }
    int64_t process = ask_process(s, false, deadline_ms, &outcome);
    if (outcome == SHARED_NO)
        return SHARED_AWAY;
    if (outcome == SHARED_YES && process != PQbackendPID(s->conn) &&
        is_behind_pooler(s, host, deadline_ms)) {
        refuse(s, is_pooled);
        return SHARED_AWAY;
    }
    return s->conn != NULL ? outcome : SHARED_AWAY;
}

static const char no_cluster[] = "table cluster of its shared catalogue is missing, but its other "
                                 "tables exist: restore it from a "
                                 "backup; do not run `sitemapd share init`";

/* After an error: why the table cluster cannot be found. */
static void explain_missing(struct pg_session *s, int64_t deadline_ms)
{
    struct str sql = STR_INIT;
    struct pg_results r = {{NULL}};

    pg_append_sql(s,
                  "SELECT coalesce(to_regclass('@.log'), to_regclass('@.part'),"
                  " to_regclass('@.node'), to_regclass('@.snapshot'),"
                  " to_regclass('@.snapshot_part')) IS NOT NULL",
                  &sql);
    if (!sql.failed)
        pg_send_text(s, sql.data);
    bool others = !sql.failed && pg_session_run(s, &r, deadline_ms) == SHARED_YES &&
                  pg_get_integer(r.at[0], 0, 0) != 0;
    if (others) {
        s->foreign = no_cluster;
        snprintf(s->why, sizeof s->why,
                 "table %s.cluster of the shared catalogue is missing in this database, but its "
                 "other tables exist: restore it from a backup; do not run `sitemapd share init`",
                 s->schema);
    } else {
        snprintf(s->sqlstate, sizeof s->sqlstate, "%s", missing_table);
        snprintf(s->why, sizeof s->why,
                 "there is no shared catalogue in schema %s of this database: `sitemapd share "
                 "init` creates one",
                 s->schema);
    }
    pg_results_clear(&r);
    str_done(&sql);
}

/* Applies the session's settings and checks the log. */
static enum shared_outcome enter(struct pg_session *s, int64_t deadline_ms)
{
    struct pg_results r;
    char timeout[24];
    int64_t left = (deadline_ms - clock_now_ms()) * 3 / 4;

    memset(s->is_prepared, 0, sizeof s->is_prepared);
    s->number++;
    snprintf(timeout, sizeof timeout, "%lld",
             (long long)(left > PG_TABLE_MS ? PG_TABLE_MS
                         : left > 0         ? left
                                            : 1));
    pg_send(s, PG_SETTINGS, timeout);
    if (!s->is_founding)
        pg_send(s, PG_CLUSTER);
    enum shared_outcome outcome = pg_session_run(s, &r, deadline_ms);

    if (outcome == SHARED_NO) {
        bool is_missing =
            strcmp(s->sqlstate, missing_table) == 0 || strcmp(s->sqlstate, "3F000") == 0;
        bool is_denied = strcmp(s->sqlstate, "42501") == 0;

        if (is_missing)
            explain_missing(s, deadline_ms);
        if (is_denied)
            say(s, "permission denied: this role may not use the shared catalogue's tables; run "
                   "`sitemapd share init --if-absent --grant-to ROLE` as the role that owns them");
        outcome = is_missing || is_denied ? SHARED_FOREIGN : SHARED_AWAY;
    } else if (outcome == SHARED_YES && !s->is_founding) {
        char epoch[SHARED_EPOCH_SIZE] = "";
        size_t salt_size = 0;
        const void *salt = NULL;

        if (PQntuples(r.at[1]) == 1) {
            pg_get_text(r.at[1], 0, 1, epoch, sizeof epoch);
            salt = pg_get_bytes(r.at[1], 0, 2, &salt_size);
        }
        if (PQntuples(r.at[1]) == 0) {
            s->foreign =
                "table cluster of the shared catalogue is empty: restore its row from a backup";
            say(s, s->foreign);
        } else if (!epoch[0] || salt_size != sizeof s->salt ||
                   pg_get_integer(r.at[1], 0, 0) != PG_LAYOUT) {
            say(s, "the shared catalogue in this database was made by another release");
            s->foreign = "the shared catalogue in its database was made by another release";
        } else if (s->epoch != NULL && strcmp(s->epoch, epoch) != 0) {
            s->foreign =
                "the shared catalogue in its database is not this node's: correct "
                "`database` or `schema`; or, to join it, stop this node and delete its file";
            say(s, s->foreign);
        }
        if (s->foreign != NULL)
            outcome = SHARED_FOREIGN;
        else
            memcpy(s->salt, salt, sizeof s->salt);
    }
    pg_results_clear(&r);
    return outcome;
}

/* Whether the session is still open, as far as the kernel knows. Reads received data:
 * notifications, or an error and the end. */
static bool is_alive(struct pg_session *s)
{
    struct pollfd fd = {.events = POLLIN};

    if (s->conn == NULL || PQstatus(s->conn) != CONNECTION_OK)
        return false;
    fd.fd = PQsocket(s->conn);
    while (poll(&fd, 1, 0) > 0)
        if (!PQconsumeInput(s->conn))
            return false;
    return true;
}

/* Why hosts cannot be used: the text of each, and the SQLSTATE of the most informative one. */
struct refusals {
    char why[PG_WHY_SIZE], sqlstate[6];
};

/* If the primary rejects this node, its reason counts, not that of a standby beside it. */
static void add_refusal(struct refusals *r, const struct pg_session *s)
{
    size_t n = strlen(r->why);

    snprintf(r->why + n, sizeof r->why - n, "%s%s", n > 0 ? "; " : "", s->why);
    if (r->sqlstate[0] == '\0' || strcmp(r->sqlstate, read_only) == 0)
        if (s->sqlstate[0] != '\0')
            memcpy(r->sqlstate, s->sqlstate, sizeof r->sqlstate);
}

static const char two_primaries[] =
    "conflict: two of its hosts accept writes: stop the one that must not, and make it a standby";

/* Identifies a server, however many addresses it has: the catalogue's epoch and the time when the
 * server started. False: no answer, or no catalogue. */
static bool ask_identity(struct pg_session *s, char *out, size_t size, int64_t deadline_ms)
{
    struct str sql = STR_INIT;
    struct pg_results r = {{NULL}};

    pg_append_sql(s,
                  "SELECT epoch || extract(epoch FROM pg_catalog.pg_postmaster_start_time())::text"
                  " FROM @.cluster",
                  &sql);
    if (!sql.failed)
        pg_send_text(s, sql.data);
    bool asked =
        !sql.failed && pg_session_run(s, &r, deadline_ms) == SHARED_YES && PQntuples(r.at[0]) == 1;
    if (asked)
        pg_get_text(r.at[0], 0, 0, out, size);
    pg_results_clear(&r);
    str_done(&sql);
    return asked;
}

static bool is_silent(const struct pg_session *s, size_t host)
{
    return host < 64 && clock_now_ms() < s->silent_until_ms && (s->silent >> host & 1);
}

/* As try_host, one of several hosts. */
static enum shared_outcome try_one(struct pg_session *s, size_t host, int64_t most_ms,
                                   int64_t deadline_ms)
{
    int64_t limit = clock_now_ms() + most_ms;
    enum shared_outcome outcome = try_host(s, host, limit < deadline_ms ? limit : deadline_ms);

    if (outcome == SHARED_AWAY && host < 64 && clock_now_ms() >= limit) {
        if (clock_now_ms() >= s->silent_until_ms)
            s->silent = 0;
        s->silent |= (uint64_t)1 << host;
        s->silent_until_ms = clock_now_ms() + SILENT_MS;
    }
    return outcome;
}

static enum shared_outcome find_rival(struct pg_session *s, int64_t deadline_ms)
{
    char own[128], other[128], names[PG_WHY_SIZE] = "";
    PGconn *conn = s->conn;

    if (!ask_identity(s, own, sizeof own, deadline_ms))
        return SHARED_AWAY;
    for (size_t host = 0; host < s->hosts && names[0] == '\0'; host++) {
        int64_t limit = clock_now_ms() + HOST_MS;

        if (host == s->host || is_silent(s, host))
            continue;
        s->conn = NULL;
        if (try_one(s, host, HOST_MS, deadline_ms) == SHARED_YES &&
            ask_identity(s, other, sizeof other, limit) && strcmp(own, other) != 0 &&
            strncmp(own, other, SHARED_EPOCH_SIZE - 1) == 0)
            snprintf(names, sizeof names, "%.99s:%.9s and %.99s:%.9s both accept writes",
                     PQhost(conn), PQport(conn), PQhost(s->conn), PQport(s->conn));
        pg_session_drop(s);
        s->conn = conn;
    }
    s->sqlstate[0] = '\0';
    if (names[0] == '\0')
        return SHARED_YES;
    pg_session_drop(s);
    refuse(s, two_primaries);
    snprintf(s->why, sizeof s->why, "%s: stop the one that must not, and make it a standby", names);
    return SHARED_AWAY;
}

enum shared_outcome pg_session_find_rival(struct pg_session *s, int64_t deadline_ms)
{
    return s->hosts > 1 && s->conn != NULL ? find_rival(s, deadline_ms) : SHARED_YES;
}

enum shared_outcome pg_session_connect(struct pg_session *s, int64_t deadline_ms)
{
    enum shared_outcome outcome = SHARED_AWAY;
    struct refusals refusals = {"", ""};

    if (is_alive(s))
        return SHARED_YES;
    pg_session_drop(s);
    s->foreign = s->unfit = NULL;
    for (size_t tried = 0; tried < s->hosts && outcome == SHARED_AWAY; tried++) {
        size_t host = (s->host + tried) % s->hosts;

        s->sqlstate[0] = '\0';
        outcome =
            s->hosts > 1 ? try_one(s, host, HOST_MS, deadline_ms) : try_host(s, host, deadline_ms);
        if (outcome == SHARED_YES) {
            s->host = host;
            outcome = check_server(s, host, deadline_ms);
            if (outcome == SHARED_YES)
                outcome = enter(s, deadline_ms);
            if (outcome == SHARED_YES && s->hosts > 1 && !s->is_founding)
                outcome = find_rival(s, deadline_ms);
            if (outcome != SHARED_YES)
                pg_session_drop(s);
            if (s->unfit == two_primaries)
                return outcome;
        }
        if (outcome == SHARED_AWAY)
            add_refusal(&refusals, s);
    }
    if (outcome == SHARED_AWAY) {
        memcpy(s->why, refusals.why, sizeof s->why);
        memcpy(s->sqlstate, refusals.sqlstate, sizeof s->sqlstate);
    }
    return outcome;
}
