/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Keeps a bounded number of findings and counts the rest. */
#include "server/rules/findings.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/str.h"

static void finding_done(struct finding *item)
{
    free(item->loc);
    free(item->detail);
    free(item->field);
}

/* Keeps `item`, whose strings it takes over. */
static void store_finding(struct findings *f, struct finding *item)
{
    if (f->count == f->capacity) {
        uint32_t capacity = f->capacity == 0 ? 16 : f->capacity * 2;
        struct finding *items = reallocarray(f->items, capacity, sizeof *items);
        if (items == NULL) {
            f->failed = true;
            finding_done(item);
            return;
        }
        f->items = items;
        f->capacity = capacity;
    }
    f->kept[item->code == RULE_OK]++;
    f->items[f->count++] = *item;
}

static bool is_wanted(const struct findings *f, enum rule_code code)
{
    return f->kept[code == RULE_OK] < f->max ||
           (code != RULE_OK && f->refused_by[code] < f->examples);
}

void findings_refuse(struct findings *f, const struct rejection *rejection)
{
    if (is_wanted(f, rejection->code)) {
        struct finding item = {
            .line = rejection->line,
            .loc = text_copy(rejection->loc, &f->failed),
            .detail = text_copy(*rejection->detail ? rejection->detail : NULL, &f->failed),
            .field = text_copy(rejection->field, &f->failed),
            .code = rejection->code};
        store_finding(f, &item);
    }
    f->refused++;
    f->refused_by[rejection->code]++;
}

void findings_remark(struct findings *f, uint64_t line, const char *loc, rule_set remarks)
{
    if (remarks == 0)
        return;
    if (is_wanted(f, RULE_OK)) {
        struct finding item = {.line = line, .loc = text_copy(loc, &f->failed), .remarks = remarks};
        store_finding(f, &item);
    }
    f->remarked++;
    for (int code = RULE_OK + 1; code < RULE_CODE_COUNT && remarks >> code != 0; code++)
        if ((remarks & RULE_BIT(code)) != 0 && f->remarked_by[code]++ == 0)
            f->first_line[code] = line;
}

void findings_merge(struct findings *f, struct findings *from)
{
    uint64_t taken[RULE_CODE_COUNT];
    memcpy(taken, f->refused_by, sizeof taken);
    for (uint32_t i = 0; i < from->count; i++) {
        struct finding *item = &from->items[i];
        if (is_wanted(f, item->code))
            store_finding(f, item);
        else
            finding_done(item);
        f->refused_by[item->code] += item->code != RULE_OK;
    }
    for (int code = 0; code < RULE_CODE_COUNT; code++) {
        f->refused_by[code] = taken[code] + from->refused_by[code];
        if (f->remarked_by[code] == 0)
            f->first_line[code] = from->first_line[code];
        f->remarked_by[code] += from->remarked_by[code];
    }
    f->refused += from->refused;
    f->remarked += from->remarked;
    f->failed = f->failed || from->failed;
    from->count = 0;
    findings_done(from);
    *from = (struct findings){.max = from->max, .examples = from->examples};
}

static int by_line(const void *a, const void *b)
{
    const struct finding *left = a, *right = b;
    return (left->line > right->line) - (left->line < right->line);
}

void findings_sort(struct findings *f)
{
    if (f->count > 1)
        qsort(f->items, f->count, sizeof *f->items, by_line);
}

void findings_done(struct findings *f)
{
    for (uint32_t i = 0; i < f->count; i++)
        finding_done(&f->items[i]);
    free(f->items);
    f->items = NULL;
    f->count = f->capacity = 0;
}
