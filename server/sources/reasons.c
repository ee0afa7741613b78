/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sentences of /readyz and status about sources. */
#include "server/sources/reasons.h"

#include <inttypes.h>
#include <stddef.h>

#include "server/base/str.h"
#include "server/base/text.h"

static void append_name(struct str *out, const struct source_standing *s)
{
    str_append_text(out, s->name != NULL ? s->name : "registered sitemaps");
    str_append_text(out, ": ");
}

static bool add_text(struct str *detail, const char *code, reasons_add *add, void *context)
{
    bool whole = !detail->failed;

    if (whole)
        add(context, code, str_text(detail));
    str_done(detail);
    return whole;
}

static bool add_number(const struct source_standing *s, const char *code, uint64_t number,
                       const char *one, const char *many, reasons_add *add, void *context)
{
    struct str detail = STR_INIT;

    append_name(&detail, s);
    str_append_format(&detail, "%" PRIu64 " %s", number, plural(number, one, many));
    return add_text(&detail, code, add, context);
}

/* Crawlers get the same response as the polls. */
static bool add_checks(const struct source_standing *s, reasons_add *add, void *context)
{
    struct str detail = STR_INIT;
    uint64_t bad = check_count_bad(s->states);
    const char *comma = "", *first = NULL;
    unsigned listed = 0;

    append_name(&detail, s);
    str_append_format(&detail, "%" PRIu64 " %s:", bad,
                      plural(bad, "sitemap has a problem", "sitemaps have problems"));
    for (enum check_state i = 0; i < CHECK_STATES; i++) {
        if (!check_is_bad(i) || s->states[i] == 0)
            continue;
        str_append_format(&detail, "%s %" PRIu64 " %s", comma, s->states[i], check_state_word(i));
        first = first != NULL ? first : check_state_word(i);
        comma = ",";
        listed++;
    }
    str_append_format(&detail, "; GET /v1/checks?source=%s&state=%s%s shows which and why",
                      s->name != NULL ? s->name : "", first,
                      listed > 1 ? ", and the same for each other state," : "");
    return add_text(&detail, s->name != NULL ? "source-checks" : "registered-checks", add, context);
}

bool reasons_of(const struct source_standing *s, reasons_add *add, void *context)
{
    bool whole = true;

    if (s->failure != NULL) {
        struct str detail = STR_INIT;

        append_name(&detail, s);
        str_append_text(&detail, s->failure);
        whole = add_text(&detail, "source-failing", add, context);
    }
    if (s->held > 0)
        whole &=
            s->serve
                ? add_number(s, "source-held", s->held,
                             "removal is held back by the shrink guard; if its file is gone, "
                             "crawlers get the last version in memory, else 503, and 404 if its "
                             "URL is not below the source's url",
                             "removals are held back by the shrink guard; of a file that is gone, "
                             "crawlers get the last version in memory, else 503, and 404 if its "
                             "URL is not below the source's url",
                             add, context)
                : add_number(s, "source-held", s->held, "removal is held back by the shrink guard",
                             "removals are held back by the shrink guard", add, context);
    if (s->refused > 0)
        whole &= s->states == NULL
                     ? add_number(s, "source-problems", s->refused,
                                  "file is rejected; GET /v1/sources shows which and why",
                                  "files are rejected; GET /v1/sources shows which and why", add,
                                  context)
                     : add_number(s, "source-problems", s->refused,
                                  "sitemap of the upstream's index is rejected; GET /v1/sources "
                                  "shows which and why",
                                  "sitemaps of the upstream's index are rejected; GET /v1/sources "
                                  "shows which and why",
                                  add, context);
    if (s->states != NULL && check_count_bad(s->states) > 0)
        whole &= add_checks(s, add, context);
    return whole;
}
