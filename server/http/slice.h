/* How long the kernel's scheduler lets a thread run at a time. */
#ifndef SITEMAPD_HTTP_SLICE_H
#define SITEMAPD_HTTP_SLICE_H

#include <stdbool.h>

/* The calling thread, and those that it starts from now on, ask for short slices: woken, they run
 * before threads of this process or another that compute for long (a bulk's reading and inserting),
 * for as long as they keep to little work at a time. Their share of a busy processor stays what it
 * is. From Linux 6.12 on; before that, with a policy other than the usual one, or where it is
 * forbidden, nothing changes and false is returned. Each thread for itself. */
bool slice_shorten(void);
/* Takes it back for the calling thread and those that it starts from now on. */
void slice_restore(void);

#endif
