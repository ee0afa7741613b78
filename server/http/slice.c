#include "server/http/slice.h"

#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS 100000u /* the least that the kernel grants */

/* The kernel's struct sched_attr in its first version: not every C library has it. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

/* 0: as long as the kernel's own setting says. */
static bool set_slice(uint64_t ns)
{
    struct attributes own = {.size = sizeof own};

    if (syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) != 0 || own.policy != SCHED_OTHER)
        return false;
    own.runtime = ns;
    return syscall(SYS_sched_setattr, 0, &own, 0) == 0;
}

bool slice_shorten(void)
{
    return set_slice(SLICE_NS);
}

void slice_restore(void)
{
    set_slice(0);
}
