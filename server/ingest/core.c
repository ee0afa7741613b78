#include "server/ingest/core.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "server/rules/plural.h"

bool core_ok(const struct core *c)
{
    return c->error.status == READER_OK;
}

bool core_fail(struct core *c, enum reader_status status, const char *code, uint64_t line,
               uint64_t column, const char *format, ...)
{
    if (!core_ok(c))
        return false;
    c->error.status = status;
    c->error.code = code;
    c->error.line = line;
    c->error.column = column;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->error.detail, sizeof c->error.detail, format, arguments);
    va_end(arguments);
    return false;
}

bool core_no_memory(struct core *c)
{
    return core_fail(c, READER_NO_MEMORY, "no-memory", 0, 0, "out of memory");
}

static bool count_one(struct core *c, uint64_t line)
{
    if (!core_ok(c))
        return false;
    if (c->options.max_entries && c->count >= c->options.max_entries)
        return core_fail(c, READER_TOO_LARGE, "too-many-entries", line, 0,
                         "there are more than %" PRIu64 " %s", c->options.max_entries,
                         plural(c->options.max_entries, "entry", "entries"));
    c->count++;
    return true;
}

static bool stopped(struct core *c, uint64_t line)
{
    return core_fail(c, READER_STOPPED, "stopped", line, 0, "stopped by the receiver");
}

bool core_reject(struct core *c, const struct rejection *rejection)
{
    if (!count_one(c, rejection->line))
        return false;
    return c->sink.reject(c->sink.context, rejection) || stopped(c, rejection->line);
}

bool core_take(struct core *c, const struct raw_entry *raw)
{
    if (!core_ok(c))
        return false;
    struct rejection rejection;
    if (judge_entry(raw, &c->options, &c->judged, &rejection) != RULE_OK)
        return core_reject(c, &rejection);
    if (!count_one(c, raw->line))
        return false;
    return c->sink.entry(c->sink.context, &c->judged.entry) || stopped(c, raw->line);
}

void core_remark(struct core *c, enum rule_code code, uint64_t line)
{
    if (core_ok(c) && c->sink.remark)
        c->sink.remark(c->sink.context, code, line);
}
