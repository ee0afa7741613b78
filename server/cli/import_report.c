#include "server/cli/import_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/cli/session.h"
#include "server/rules/url.h"

/* Told of each code, where there is too much to tell it all. */
#define EXAMPLES 5u

bool import_report_init(struct import_report *f, uint32_t max)
{
    memset(f, 0, sizeof *f);
    f->max = max;
    f->items = calloc((size_t)max + EXAMPLES * RULE_CODE_COUNT, sizeof *f->items);
    return f->items != NULL;
}

void import_report_done(struct import_report *f)
{
    for (uint32_t i = 0; i < f->kept; i++) {
        free(f->items[i].loc);
        free(f->items[i].detail);
    }
    free(f->items);
    loc_set_done(&f->locs);
    memset(f, 0, sizeof *f);
}

void import_report_refuse(struct import_report *f, const struct rejection *rejection)
{
    struct finding *item;

    f->refused++;
    if (++f->refused_by[rejection->code] > EXAMPLES && f->kept >= f->max)
        return;
    item = &f->items[f->kept++];
    item->line = rejection->line;
    item->code = rejection->code;
    /* Without memory the line is still told, with less said about it. */
    item->loc = rejection->loc != NULL ? strdup(rejection->loc) : NULL;
    item->detail = rejection->detail[0] != '\0' ? strdup(rejection->detail) : NULL;
}

void import_report_remark(struct import_report *f, enum rule_code code, uint64_t line)
{
    if (f->remarks[code]++ == 0)
        f->remark_lines[code] = line;
}

bool import_report_take(struct import_report *f, const struct entry *entry)
{
    if (loc_set_add(&f->locs, entry->loc)) {
        struct rejection repeated = {
            .line = entry->line,
            .loc = entry->loc,
            .code = RULE_DUPLICATE,
            .field = "loc",
        };

        import_report_refuse(f, &repeated);
        return false;
    }
    for (int code = RULE_OK + 1; entry->remarks >> code != 0; code++)
        if ((entry->remarks & RULE_BIT(code)) != 0)
            import_report_remark(f, (enum rule_code)code, entry->line);
    return true;
}

static int by_line(const void *a, const void *b)
{
    const struct finding *left = a, *right = b;

    return (left->line > right->line) - (left->line < right->line);
}

static void tell_one(const struct finding *item, const char *file)
{
    const char *detail = item->detail != NULL ? item->detail : rule_code_sentence(item->code);
    char what[4096];

    snprintf(what, sizeof what, "%s:%" PRIu64, file, item->line);
    if (item->loc != NULL)
        cli_fail(what, "%s: %s (%s)", item->loc, detail, rule_code_word(item->code));
    else
        cli_fail(what, "%s (%s)", detail, rule_code_word(item->code));
}

/* The first few of one code, from its first on, and how many more there are. */
static void tell_examples(const struct import_report *f, uint32_t first, const char *file)
{
    enum rule_code code = f->items[first].code;
    uint64_t told = 0;

    for (uint32_t i = first; i < f->kept && told < EXAMPLES; i++) {
        if (f->items[i].code == code) {
            tell_one(&f->items[i], file);
            told++;
        }
    }
    if (f->refused_by[code] > told)
        cli_fail(file, "and %" PRIu64 " more with %s", f->refused_by[code] - told,
                 rule_code_word(code));
}

static void tell_refused(const struct import_report *f, const char *file)
{
    bool told[RULE_CODE_COUNT] = {false};

    /* The reader's and the catalogue's come one after the other; people read by line. */
    qsort(f->items, f->kept, sizeof *f->items, by_line);
    for (uint32_t i = 0; i < f->kept; i++) {
        enum rule_code code = f->items[i].code;

        if (f->refused <= f->max)
            tell_one(&f->items[i], file);
        else if (!told[code])
            tell_examples(f, i, file);
        told[code] = true;
    }
}

/* Often a whole list is refused for one thing that lacks: how to make it, for the first. */
static void tell_remedy(const struct import_report *f, const char *file)
{
    for (uint32_t i = 0; i < f->kept; i++) {
        const struct finding *item = &f->items[i];
        struct url url;

        if (item->code == RULE_INDEX_NEEDED) {
            cli_note(file, "name the index with --index URL");
            return;
        }
        if (item->code == RULE_SITE_UNKNOWN && item->loc != NULL &&
            url_parse(item->loc, strlen(item->loc), &url, NULL) == RULE_OK) {
            cli_note(file, "line %" PRIu64 ": make its site with `sitemapd site add %.*s`",
                     item->line, (int)url.origin_len, url.text);
            return;
        }
    }
}

void import_report_tell(const struct import_report *f, const char *file)
{
    tell_refused(f, file);
    tell_remedy(f, file);
    for (int code = 0; code < RULE_CODE_COUNT; code++)
        if (f->remarks[code] > 0 && f->remark_lines[code] == 0) /* of a site, not of a line */
            cli_note(file, "warning: %s (%s)", rule_code_sentence((enum rule_code)code),
                     rule_code_word((enum rule_code)code));
        else if (f->remarks[code] > 0)
            cli_note(file, "warning: %s (%s): %" PRIu64 " in all, first in line %" PRIu64,
                     rule_code_sentence((enum rule_code)code), rule_code_word((enum rule_code)code),
                     f->remarks[code], f->remark_lines[code]);
}
