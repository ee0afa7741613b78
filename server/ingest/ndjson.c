#include "server/ingest/ndjson.h"

#include <stdlib.h>
#include <string.h>

#include "server/ingest/detect.h"
#include "server/ingest/json_raw.h"
#include "server/ingest/lines.h"

struct ndjson {
    struct core *core;
    struct lines lines;
};

struct ndjson *ndjson_new(struct core *core, uint64_t line)
{
    struct ndjson *n = malloc(sizeof *n);
    if (!n)
        return NULL;
    n->core = core;
    lines_init(&n->lines, line);
    return n;
}

static bool take_line(void *context, const struct line *line)
{
    struct core *core = ((struct ndjson *)context)->core;
    struct rejection rejection;
    if (line->cut) {
        struct raw_entry nothing = {.line = line->number};
        judge_reject(&nothing, &core->judged, &rejection, RULE_JSON, NULL,
                     "is longer than 65536 bytes");
        return core_reject(core, &rejection);
    }
    if (detect_space(line->text, line->len) == line->len)
        return true;
    json_t *root;
    struct raw_entry raw;
    uint64_t at_line, at_column;
    switch (json_raw_read(line->text, line->len, line->number, &core->options, &core->judged, &root,
                          &raw, &rejection, &at_line, &at_column)) {
    case JSON_RAW_OK: {
        bool go_on = core_take(core, &raw);
        json_decref(root);
        return go_on;
    }
    case JSON_RAW_REJECTED:
    case JSON_RAW_SYNTAX:
        return core_reject(core, &rejection);
    case JSON_RAW_NO_MEMORY:
        break;
    }
    return core_no_memory(core);
}

bool ndjson_feed(struct ndjson *n, const char *bytes, size_t len)
{
    return lines_feed(&n->lines, bytes, len, take_line, n);
}

bool ndjson_finish(struct ndjson *n)
{
    return lines_finish(&n->lines, take_line, n);
}

void ndjson_free(struct ndjson *n)
{
    free(n);
}
