/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The Prometheus text format 0.0.4, by hand
 * (https://prometheus.io/docs/instrumenting/exposition_formats/). A family is announced once, its
 * samples follow at once. Names of metrics are written out in the code, so that they can be
 * searched for. */
#pragma once

#include <stdint.h>

#include "server/base/histogram.h"
#include "server/base/str.h"

/* Names and values in turn, up to a NULL. Values are escaped when they are written. */
#define LABELS_MAX 3
struct labels {
    const char *pairs[2 * LABELS_MAX + 1];
};

#define LABELS(...) ((struct labels){{__VA_ARGS__}})
#define NO_LABELS   LABELS(NULL)

/* `type`: "counter", "gauge" or "histogram". */
void metric_family(struct str *out, const char *name, const char *type, const char *help);
void metric_sample(struct str *out, const char *name, struct labels labels, uint64_t value);
/* A value in thousandths, as seconds. */
void metric_sample_ms(struct str *out, const char *name, struct labels labels, uint64_t ms);
/* A family of one sample without labels. */
void metric_counter(struct str *out, const char *name, const char *help, uint64_t value);
void metric_gauge(struct str *out, const char *name, const char *help, uint64_t value);
/* The samples of a histogram: its buckets, sum and count. Times are nanoseconds, written as
 * seconds; all else as it is. */
void metric_histogram(struct str *out, const char *name, struct labels labels,
                      const struct histogram_bounds *bounds, const struct histogram_values *values);
