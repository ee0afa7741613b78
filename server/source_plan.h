/* The sources of this run: those of the configuration and those of `--source`, in the form that
 * server/sources takes. */
#ifndef SITEMAPD_SOURCE_PLAN_H
#define SITEMAPD_SOURCE_PLAN_H

#include <stddef.h>

#include "config/config.h"
#include "db/catalogue.h"
#include "server/sources/sources.h"

struct source_plan;

/* NULL: a folder cannot be given a URL, or no memory; told as a failed start. `config` must outlive
 * it. The catalogue tells which site is the only one. */
struct source_plan *source_plan_new(const struct config *config, struct catalogue *c);
size_t source_plan_count(const struct source_plan *p);
const struct source_settings *source_plan_settings(const struct source_plan *p);
/* Takes NULL. */
void source_plan_free(struct source_plan *p);

#endif
