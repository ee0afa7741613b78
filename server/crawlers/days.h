/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sums of each day (UTC) for each crawler and site. Internal to server/crawlers/. */
#pragma once

#include "server/crawlers/crawlers.h"

struct days;
struct days *days_new(void); /* NULL when out of memory */
void days_free(struct days *d);

enum day_kind { DAY_OK, DAY_NOT_MODIFIED, DAY_OTHER, DAY_IMPOSTOR };
/* `lag_s` -1: none ended. False: no room. */
bool days_count(struct days *d, uint8_t crawler, int64_t site_id, enum day_kind kind,
                uint64_t bytes, int64_t lag_s, int64_t now);
/* Imports visits that a log reports. */
bool days_import(struct days *d, uint8_t crawler, const struct crawler_visits *visits,
                 int64_t lag_s, int64_t now);
/* As crawlers_collect_days and the like. */
size_t days_collect(struct days *d, size_t *at, struct crawler_day out[], size_t max);
void days_retry(struct days *d);
/* In the place of a sum that counts less. */
void days_restore(struct days *d, const struct crawler_day *day, int64_t now);
/* To it. False: no room. */
bool days_add(struct days *d, const struct crawler_day *day, int64_t now);
void days_clear(struct days *d);
void days_each(struct days *d, void (*each)(void *context, const struct crawler_day *day),
               void *context);
