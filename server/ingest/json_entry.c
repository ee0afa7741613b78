#include "server/ingest/json_entry.h"

#include <stdlib.h>
#include <string.h>

#include "server/ingest/json_raw.h"

/* Copies `text` (which may be NULL) to `*at` and moves on. */
static const char *store(char **at, const char *text)
{
    if (!text)
        return NULL;
    size_t size = strlen(text) + 1;
    const char *kept = memcpy(*at, text, size);
    *at += size;
    return kept;
}

static size_t size_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static enum rule_code no_memory(struct rejection *rejection, uint64_t line)
{
    *rejection = (struct rejection){.line = line, .code = RULE_JSON};
    strcpy(rejection->detail, "out of memory");
    return RULE_JSON;
}

static bool keep_entry(const struct entry *entry, struct json_entry *out)
{
    size_t size = size_of(entry->loc) + size_of(entry->lastmod) + size_of(entry->digest) +
                  size_of(entry->index) + size_of(entry->source);
    char *at = malloc(size + 1); /* an entry may have no text at all */
    if (!at)
        return false;
    out->storage = at;
    out->entry = *entry;
    out->entry.loc = store(&at, entry->loc);
    out->entry.lastmod = store(&at, entry->lastmod);
    out->entry.digest = store(&at, entry->digest);
    out->entry.index = store(&at, entry->index);
    out->entry.source = store(&at, entry->source);
    return true;
}

static bool keep_rejected_loc(struct rejection *rejection, struct json_entry *out)
{
    if (!rejection->loc)
        return true;
    out->storage = strdup(rejection->loc);
    rejection->loc = out->storage;
    return out->storage != NULL;
}

enum rule_code json_entry_parse(const char *text, size_t len, uint64_t line,
                                const struct reader_options *options, struct json_entry *out,
                                struct rejection *rejection)
{
    *out = (struct json_entry){.storage = NULL};
    struct judged *judged = malloc(sizeof *judged); /* 9 kB: too much for a thread's stack */
    if (!judged)
        return no_memory(rejection, line);
    json_t *root;
    struct raw_entry raw;
    uint64_t at_line, at_column;
    enum json_raw_status status = json_raw_read(text, len, line, options, judged, &root, &raw,
                                                rejection, &at_line, &at_column);
    enum rule_code code = RULE_JSON;
    bool kept = false;
    if (status == JSON_RAW_OK) {
        code = judge_entry(&raw, options, judged, rejection);
        kept =
            code == RULE_OK ? keep_entry(&judged->entry, out) : keep_rejected_loc(rejection, out);
        json_decref(root);
    } else if (status != JSON_RAW_NO_MEMORY) {
        code = rejection->code;
        kept = keep_rejected_loc(rejection, out);
    }
    free(judged);
    return kept ? code : no_memory(rejection, line);
}

void json_entry_done(struct json_entry *e)
{
    if (!e)
        return;
    free(e->storage);
    e->storage = NULL;
}
