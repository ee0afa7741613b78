#include "server/http/request_id.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static atomic_uint_least64_t next;

/* Where this process's ids start: anywhere. */
static void choose_start(void)
{
    uint64_t start;

    if (getrandom(&start, sizeof start, GRND_NONBLOCK) != (ssize_t)sizeof start)
        start = (uint64_t)time(NULL) << 32 ^ (uint64_t)getpid();
    atomic_store(&next, start);
}

bool request_id_check(const char *text)
{
    static const char others[] = "._~:+/=@-";
    size_t len = 0;

    for (; text[len] != '\0'; len++) {
        char c = text[len];
        bool alphanumeric =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (len == REQUEST_ID_MAX || (!alphanumeric && strchr(others, c) == NULL))
            return false;
    }
    return len > 0;
}

/* A permutation of all numbers (splitmix64), so that neighbours look different and stay so. */
static uint64_t mix(uint64_t n)
{
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9u;
    n = (n ^ n >> 27) * 0x94d049bb133111ebu;
    return n ^ n >> 31;
}

const char *request_id_make(char out[REQUEST_ID_SIZE])
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, choose_start);
    uint64_t id = mix(atomic_fetch_add_explicit(&next, 1, memory_order_relaxed));
    for (int i = REQUEST_ID_SIZE - 2; i >= 0; i--, id >>= 4)
        out[i] = "0123456789abcdef"[id & 15];
    out[REQUEST_ID_SIZE - 1] = '\0';
    return out;
}
