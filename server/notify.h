/* What a service manager is told (sd_notify(3)), and its watchdog. Without $NOTIFY_SOCKET nothing
 * is said. Not thread safe: the main thread's. */
#ifndef SITEMAPD_NOTIFY_H
#define SITEMAPD_NOTIFY_H

#include <stdint.h>

void notify_ready(const char *status);
/* A reload begins; notify_ready ends it. */
void notify_reloading(void);
void notify_stopping(const char *status);
void notify_alive(void);
/* How often the manager wants to hear notify_alive, milliseconds; 0: not at all. */
uint32_t notify_watchdog_ms(void);

#endif
