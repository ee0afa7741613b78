/* The API tells changes and rows by the page: they are asked for until the caller has enough. What
 * stands in the query is the catalogue's own ids, so that it needs no spelling. */
#include "server/cli/backend/server_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/rules/lastmod.h"

#define PAGE 1000u /* what the API gives at once */

static void add_number(struct str *target, const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, value);
    target_add(target, name, value != 0 ? text : NULL);
}

static void add_time(struct str *target, const char *name, int64_t time)
{
    char text[21];

    if (time != 0)
        lastmod_format_utc(time, text);
    target_add(target, name, time != 0 ? text : NULL);
}

/* ---- changes --------------------------------------------------------------------------- */

static struct history_change read_change(const json_t *change)
{
    return (struct history_change){
        .revision = member_number(change, "revision"),
        .at = member_time(change, "at"),
        .by = member_text(change, "by"),
        .kind = member_text(change, "kind"),
        .via = member_text(change, "via"),
        .request_id = member_text_or_null(change, "request_id"),
        .note = member_text_or_null(change, "note"),
        .undoes = member_number(change, "undoes"),
        .restores = member_number(change, "restores"),
        .undone_by = member_number(change, "undone_by"),
        .site = member_text_or_null(change, "site"),
        .loc = member_text_or_null(change, "loc"),
        .created = member_number(change, "created"),
        .updated = member_number(change, "updated"),
        .removed = member_number(change, "removed"),
        .unchanged = member_number(change, "unchanged"),
        .whole = json_is_integer(json_object_get(change, "unchanged")),
    };
}

static void query_target(struct str *target, const struct history_query *query, uint64_t limit)
{
    str_append_text(target, "/v1/history");
    add_number(target, "limit", limit < PAGE ? limit : PAGE);
    add_number(target, "after", query->after);
    add_number(target, "site", query->index_id == 0 ? (uint64_t)query->site_id : 0);
    add_number(target, "index", (uint64_t)query->index_id);
    target_add(target, "by", query->by);
    target_add(target, "kind", query->kind);
    target_add(target, "loc", query->loc);
    add_time(target, "since", query->since);
    add_time(target, "until", query->until);
}

bool server_history(struct server *s, const struct history_query *query, backend_change *each,
                    void *context, struct backend_reach *reach, json_t **answer)
{
    struct history_query next = *query;
    char before[24] = "";
    uint64_t told = 0;
    size_t pages = 0;

    do {
        struct str target = STR_INIT;
        json_t *change, *changes;
        size_t i;
        bool good;

        query_target(&target, &next, query->limit - told);
        if (!server_get(s, &target, answer) ||
            (changes = server_array(s, answer, "changes")) == NULL)
            return false;
        json_array_foreach(changes, i, change)
        {
            const struct history_change read = read_change(change);

            each(context, &read);
            told++;
        }
        reach->from = member_number(*answer, "from_revision");
        next.after = strtoull(member_text(*answer, "next"), NULL, 10);
        good = next.after == 0 || server_goes_on(s, ++pages, json_array_size(changes), before,
                                                 member_text(*answer, "next"));
        snprintf(before, sizeof before, "%" PRIu64, next.after);
        json_decref(*answer);
        *answer = NULL;
        if (!good) {
            s->status = 0; /* server_report: no answer to speak of */
            return false;
        }
    } while (next.after != 0 && told < query->limit);
    reach->more = next.after != 0;
    return true;
}

/* ---- rows ------------------------------------------------------------------------------ */

/* One that is neither of an entry before nor of one after is malformed. */
static enum line_verdict report_row(const json_t *row, backend_row *each, void *context)
{
    static const char *const members[] = {"before", "after"};
    struct shown_entry kept[2];
    struct entry_shown shown[2];
    enum line_verdict verdict = LINE_BROKEN;
    bool has[2];

    for (size_t i = 0; i < 2; i++)
        has[i] = member_entry(json_object_get(row, members[i]), &shown[i], &kept[i]);
    if (has[0] || has[1])
        verdict = each(context, has[0] ? &shown[0] : NULL, has[1] ? &shown[1] : NULL) ? LINE_TAKEN
                                                                                      : LINE_ENOUGH;
    shown_entry_done(&kept[0]);
    shown_entry_done(&kept[1]);
    return verdict;
}

struct retelling {
    backend_row *each;
    void *context;
    size_t known; /* so many of the first rows were told before */
};

static enum line_verdict report_line(void *context, const json_t *line)
{
    struct retelling *t = context;

    if (t->known == 0)
        return report_row(line, t->each, t->context);
    t->known--;
    return LINE_TAKEN;
}

/* The first page has the change, too, and mostly all its rows; else they come in one stream, in the
 * same order. */
bool server_change(struct server *s, uint64_t revision, backend_change *each, backend_row *each_row,
                   void *context, json_t **answer)
{
    struct retelling t = {.each = each_row, .context = context};
    struct str target = STR_INIT;
    struct history_change change;
    enum line_verdict last = LINE_TAKEN;
    json_t *rows;
    bool more;

    str_append_format(&target, "/v1/history/%" PRIu64, revision);
    if (target.failed || !server_ask(s, "GET", str_text(&target), NULL, answer) ||
        !server_is_good(s)) {
        str_done(&target);
        return false;
    }
    rows = server_array(s, answer, "rows");
    if (rows == NULL) {
        str_done(&target);
        return false;
    }
    change = read_change(*answer);
    each(context, &change);
    t.known = json_array_size(rows);
    for (size_t i = 0; i < t.known && last == LINE_TAKEN; i++)
        last = report_row(json_array_get(rows, i), each_row, context);
    more = member_text_or_null(*answer, "next") != NULL;
    json_decref(*answer);
    *answer = NULL;
    if (last == LINE_BROKEN)
        snprintf(s->why, sizeof s->why, "the server sent a malformed row");
    else if (last == LINE_TAKEN && more &&
             !server_lines(s, str_text(&target), report_line, &t, answer))
        last = LINE_BROKEN;
    str_done(&target);
    return last != LINE_BROKEN;
}

bool server_diff(struct server *s, const struct backend_diff *wanted, backend_row *each,
                 void *context, json_t **answer)
{
    struct retelling t = {.each = each, .context = context};
    struct str target = STR_INIT;
    bool good;

    str_append_format(&target, "/v1/diff?from=%" PRIu64 "&index=%" PRId64, wanted->from,
                      wanted->index->id);
    add_number(&target, "to", wanted->to);
    good = !target.failed && server_lines(s, str_text(&target), report_line, &t, answer);
    str_done(&target);
    return good;
}
