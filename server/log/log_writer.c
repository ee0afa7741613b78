#include "server/log/log_writer.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "server/log/log_file.h"
#include "server/log/ring.h"

#define LANES       8u
#define STAGE_BYTES (128u * 1024)
/* A lane that is so full is emptied at once. */
#define LANE_HIGH (RING_BYTES / 2)
/* Between two drains other calls are heard, however fast lines come in. */
#define DRAIN_STAGES 32u
/* How long until a file is tried again whose reader is slow, and one that failed. */
#define RETRY_MS        50u
#define RETRY_FAILED_MS 500u

enum state {
    STATE_IDLE,   /* waits for a line */
    STATE_LINGER, /* a line is there; waits for others */
    STATE_BUSY,   /* awake, or woken */
};

struct log_writer {
    struct log_file file;
    char *path; /* NULL: the descriptor is not ours */
    void (*told)(void *context, bool reopening, int error);
    void *context;

    pthread_t thread;
    sem_t wake;
    atomic_int state;   /* enum state */
    atomic_bool urgent; /* no lingering */
    atomic_bool reopen, stop;
    /* A flush raises `asked`; `done` follows when all that was put before is written. */
    atomic_uint_least64_t asked, done;

    /* The thread's own. */
    char *stage; /* lines on their way to the file */
    size_t staged, written;
    bool failing;

    struct ring lanes[LANES];
};

/* Threads take lanes in turn; more threads than lanes share, which a ring allows. */
static struct ring *own_lane(struct log_writer *w)
{
    static atomic_uint next;
    static _Thread_local unsigned own = LANES;

    if (own == LANES)
        own = atomic_fetch_add(&next, 1) % LANES;
    return &w->lanes[own];
}

/* ---- the thread ---- */

static void tell(struct log_writer *w, bool reopening, int error)
{
    if (w->told != NULL)
        w->told(w->context, reopening, error);
}

/* Writes what is staged; true where all of it is gone. What a full disk leaves is kept, and tried
 * again: a cut line gets its end. */
static bool write_staged(struct log_writer *w)
{
    size_t n = log_file_write(&w->file, w->stage + w->written, w->staged - w->written);
    int error = errno;

    w->written += n;
    if (w->written == w->staged) {
        w->written = w->staged = 0;
        if (w->failing)
            tell(w, false, 0);
        w->failing = false;
        return true;
    }
    if (error != EAGAIN && !w->failing) {
        w->failing = true;
        tell(w, false, error);
    }
    return false;
}

/* Fills the stage from the lanes; false where they have no more. */
static bool fill_stage(struct log_writer *w)
{
    for (unsigned i = 0; i < LANES; i++) {
        struct ring *lane = &w->lanes[i];
        w->staged += ring_take(lane, w->stage + w->staged, STAGE_BYTES - w->staged);
        if (STAGE_BYTES - w->staged < RING_MAX_LINE)
            return true;
    }
    return false;
}

/* True where the file takes no more for now. `*emptied`: it took all that was put before. */
static bool drain(struct log_writer *w, bool *emptied)
{
    bool more = true;

    *emptied = false;
    for (unsigned i = 0; i < DRAIN_STAGES && more; i++) {
        if (w->staged > 0 && !write_staged(w))
            return true;
        more = fill_stage(w);
    }
    if (w->staged > 0 && !write_staged(w))
        return true;
    *emptied = !more;
    return false;
}

static void reopen(struct log_writer *w)
{
    struct log_file fresh;

    if (w->path == NULL)
        return;
    if (!log_file_open(w->path, &fresh)) {
        tell(w, true, errno);
        return;
    }
    close(w->file.fd);
    w->file = fresh;
    tell(w, true, 0);
}

static void wait_ms(struct log_writer *w, unsigned ms)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    sem_clockwait(&w->wake, CLOCK_MONOTONIC, &until);
}

static bool has_lines(const struct log_writer *w)
{
    for (unsigned i = 0; i < LANES; i++)
        if (ring_used(&w->lanes[i]) > 0)
            return true;
    return w->staged > 0;
}

static bool is_called(struct log_writer *w)
{
    return atomic_load(&w->stop) || atomic_load(&w->reopen) ||
           atomic_load(&w->asked) != atomic_load(&w->done);
}

/* Each state is told first and then the lines are looked at; who puts a line does it the other way
 * round. So one of the two sees the other, and no line lies there unseen. */
static void wait_for_lines(struct log_writer *w, bool stuck)
{
    atomic_store(&w->state, STATE_IDLE);
    if (!has_lines(w) && !is_called(w))
        sem_wait(&w->wake);
    atomic_store(&w->state, stuck ? STATE_BUSY : STATE_LINGER);
    if (stuck)
        wait_ms(w, w->failing ? RETRY_FAILED_MS : RETRY_MS);
    else if (!atomic_load(&w->urgent) && !is_called(w))
        wait_ms(w, LOG_WRITER_LINGER_MS);
    atomic_store(&w->state, STATE_BUSY);
}

static void *run(void *context)
{
    struct log_writer *w = context;
    unsigned patience_ms = LOG_WRITER_PATIENCE_MS;
    bool stop, emptied, stuck = false;

    for (;;) {
        wait_for_lines(w, stuck);
        stop = atomic_load(&w->stop);
        uint64_t asked = atomic_load(&w->asked);
        atomic_store(&w->urgent, false);
        stuck = drain(w, &emptied);
        /* Behind the lines: those of before belong to the file that was moved away. */
        if (atomic_exchange(&w->reopen, false))
            reopen(w);
        if (emptied || w->failing)
            atomic_store(&w->done, asked);
        if (stop && (emptied || w->failing || patience_ms <= RETRY_MS))
            return NULL;
        if (stop)
            patience_ms -= RETRY_MS;
    }
}

/* ---- the others ---- */

struct log_writer *log_writer_new(const struct log_writer_options *options)
{
    /* Pages that no line has come to cost nothing. */
    struct log_writer *w =
        mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (w == MAP_FAILED)
        return NULL;
    w->told = options->told;
    w->context = options->context;
    w->stage = malloc(STAGE_BYTES);
    w->path = options->path == NULL ? NULL : strdup(options->path);
    sem_init(&w->wake, 0, 0);
    w->file = log_file_of(options->fd);
    if (w->stage == NULL || (options->path != NULL && w->path == NULL)) {
        errno = ENOMEM;
        goto fail;
    }
    if (w->path != NULL && !log_file_open(w->path, &w->file))
        goto fail;
    errno = pthread_create(&w->thread, NULL, run, w);
    if (errno == 0)
        return w;
    if (w->path != NULL)
        close(w->file.fd);

fail:
    sem_destroy(&w->wake);
    free(w->path);
    free(w->stage);
    munmap(w, sizeof *w);
    return NULL;
}

bool log_writer_put(struct log_writer *w, const char *line, size_t len, bool urgent)
{
    struct ring *lane = own_lane(w);

    if (!ring_put(lane, line, len))
        return false;
    if (urgent)
        atomic_store(&w->urgent, true);
    int state = atomic_load(&w->state);
    bool wakes =
        state == STATE_IDLE || (state == STATE_LINGER && (urgent || ring_used(lane) > LANE_HIGH));
    if (wakes && atomic_compare_exchange_strong(&w->state, &state, STATE_BUSY))
        sem_post(&w->wake);
    return true;
}

void log_writer_reopen(struct log_writer *w)
{
    atomic_store(&w->reopen, true);
    sem_post(&w->wake);
}

void log_writer_flush(struct log_writer *w)
{
    struct timespec pause = {.tv_nsec = 1000000};
    uint64_t asked = atomic_fetch_add(&w->asked, 1) + 1;

    sem_post(&w->wake);
    for (unsigned ms = 0; ms < LOG_WRITER_PATIENCE_MS; ms++) {
        if (atomic_load(&w->done) >= asked)
            return;
        nanosleep(&pause, NULL);
    }
}

void log_writer_free(struct log_writer *w)
{
    if (w == NULL)
        return;
    atomic_store(&w->stop, true);
    sem_post(&w->wake);
    pthread_join(w->thread, NULL);
    sem_destroy(&w->wake);
    if (w->path != NULL)
        close(w->file.fd);
    free(w->path);
    free(w->stage);
    munmap(w, sizeof *w);
}
