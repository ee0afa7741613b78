/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Writes metric families in the text format of Prometheus. */
#include "server/api/exposition.h"

#include <inttypes.h>
#include <stdio.h>

static void append_value(struct str *out, const char *value)
{
    for (; *value != '\0'; value++) {
        if (*value == '\n') {
            str_append_text(out, "\\n");
            continue;
        }
        if (*value == '"' || *value == '\\')
            str_append_char(out, '\\');
        str_append_char(out, *value);
    }
}

static void append_label(struct str *out, const char *name, const char *value, char *before)
{
    str_append_char(out, *before);
    *before = ',';
    str_append_text(out, name);
    str_append_text(out, "=\"");
    append_value(out, value);
    str_append_char(out, '"');
}

/* Everything before the value; `le` is NULL but for a bucket. */
static void append_name(struct str *out, const char *name, const char *suffix,
                        const struct labels *labels, const char *le)
{
    char before = '{';

    str_append_text(out, name);
    str_append_text(out, suffix);
    for (const char *const *pair = labels->pairs; pair[0] != NULL; pair += 2)
        append_label(out, pair[0], pair[1], &before);
    if (le != NULL)
        append_label(out, "le", le, &before);
    str_append_text(out, before == '{' ? " " : "} ");
}

/* A number of billionths without trailing zeros: 2500000 is 0.0025. */
static void seconds_text(uint64_t ns, char out[40])
{
    int len = snprintf(out, 40, "%" PRIu64 ".%09" PRIu64, ns / 1000000000u, ns % 1000000000u);

    while (out[len - 1] == '0')
        out[--len] = '\0';
    if (out[len - 1] == '.')
        out[--len] = '\0';
}

void metric_family(struct str *out, const char *name, const char *type, const char *help)
{
    str_append_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metric_sample(struct str *out, const char *name, struct labels labels, uint64_t value)
{
    append_name(out, name, "", &labels, NULL);
    str_append_u64(out, value);
    str_append_char(out, '\n');
}

void metric_sample_ms(struct str *out, const char *name, struct labels labels, uint64_t ms)
{
    append_name(out, name, "", &labels, NULL);
    str_append_format(out, "%" PRIu64 ".%03" PRIu64 "\n", ms / 1000, ms % 1000);
}

void metric_counter(struct str *out, const char *name, const char *help, uint64_t value)
{
    metric_family(out, name, "counter", help);
    metric_sample(out, name, NO_LABELS, value);
}

void metric_gauge(struct str *out, const char *name, const char *help, uint64_t value)
{
    metric_family(out, name, "gauge", help);
    metric_sample(out, name, NO_LABELS, value);
}

static void number_text(const struct histogram_bounds *bounds, uint64_t value, char out[40])
{
    if (bounds == &histogram_times)
        seconds_text(value, out);
    else
        snprintf(out, 40, "%" PRIu64, value);
}

void metric_histogram(struct str *out, const char *name, struct labels labels,
                      const struct histogram_bounds *bounds, const struct histogram_values *values)
{
    uint64_t count = 0;
    char text[40];

    for (size_t i = 0; i <= bounds->count; i++) {
        count += values->cells[i];
        if (i < bounds->count)
            number_text(bounds, bounds->upper[i], text);
        append_name(out, name, "_bucket", &labels, i < bounds->count ? text : "+Inf");
        str_append_u64(out, count);
        str_append_char(out, '\n');
    }
    number_text(bounds, values->sum, text);
    append_name(out, name, "_sum", &labels, NULL);
    str_append_text(out, text);
    str_append_char(out, '\n');
    append_name(out, name, "_count", &labels, NULL);
    str_append_u64(out, count);
    str_append_char(out, '\n');
}
