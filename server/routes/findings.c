#include "server/routes/findings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/routes/entry_json.h"

void findings_init(struct findings *f, uint32_t max)
{
    *f = (struct findings){.max = max};
}

/* Takes `json` over. */
static void keep(struct findings *f, uint64_t line, struct str *json)
{
    if (f->count == f->capacity) {
        uint32_t capacity = f->capacity == 0 ? 16 : f->capacity * 2;
        struct finding *items = reallocarray(f->items, capacity, sizeof *items);

        if (items == NULL) {
            f->failed = true;
            str_done(json);
            return;
        }
        f->items = items;
        f->capacity = capacity;
    }
    if (json->failed) {
        f->failed = true;
        str_done(json);
        return;
    }
    f->items[f->count++] = (struct finding){.line = line, .json = json->data};
}

static void begin(struct str *json, uint64_t line, const char *loc)
{
    str_append_format(json, "{\"line\":%" PRIu64 ",\"loc\":", line);
    entry_json_append_text(json, loc);
}

void findings_add_rejection(struct findings *f, const struct rejection *rejection)
{
    struct str json = STR_INIT;
    const char *detail = rejection->detail;

    f->total++;
    if (f->count >= f->max)
        return;
    begin(&json, rejection->line, rejection->loc);
    str_append_text(&json, ",\"code\":");
    entry_json_append_text(&json, rule_code_word(rejection->code));
    if (rejection->field != NULL) {
        str_append_text(&json, ",\"field\":");
        entry_json_append_text(&json, rejection->field);
    }
    str_append_text(&json, ",\"detail\":");
    entry_json_append_text(&json, *detail != '\0' ? detail : rule_code_sentence(rejection->code));
    str_append_char(&json, '}');
    keep(f, rejection->line, &json);
}

void findings_add_remarks(struct findings *f, const struct entry *entry, rule_set remarks)
{
    struct str json = STR_INIT;

    f->total++;
    if (f->count >= f->max)
        return;
    begin(&json, entry->line, entry->loc);
    str_append_text(&json, ",\"codes\":");
    entry_json_append_codes(&json, remarks);
    str_append_char(&json, '}');
    keep(f, entry->line, &json);
}

static int compare_lines(const void *a, const void *b)
{
    uint64_t x = ((const struct finding *)a)->line, y = ((const struct finding *)b)->line;

    return (x > y) - (x < y);
}

void findings_append(struct findings *f, struct str *out)
{
    /* Those of the reader came first, those of the catalogue after them. */
    if (f->count > 1)
        qsort(f->items, f->count, sizeof *f->items, compare_lines);
    str_append_char(out, '[');
    for (uint32_t i = 0; i < f->count; i++) {
        if (i > 0)
            str_append_char(out, ',');
        str_append_text(out, f->items[i].json);
    }
    str_append_char(out, ']');
    if (f->failed)
        out->failed = true;
}

void findings_done(struct findings *f)
{
    for (uint32_t i = 0; i < f->count; i++)
        free(f->items[i].json);
    free(f->items);
    *f = (struct findings){.max = 0};
}
