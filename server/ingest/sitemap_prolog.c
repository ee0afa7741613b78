#include "server/ingest/sitemap_prolog.h"

#include <stdio.h>
#include <string.h>

#include "server/ingest/judge.h"
#include "server/rules/ascii.h"

/* UTF-8, by its name or as it is often misspelt, and what is a part of it. */
static bool is_utf8_name(const char *encoding)
{
    static const char *const names[] = {"utf-8", "utf8", "us-ascii", "ascii"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (ascii_equals(encoding, strlen(encoding), names[i]))
            return true;
    return false;
}

void sitemap_prolog_declare(struct sitemap_prolog *p, struct place at, const char *encoding)
{
    p->declared_at = at;
    if (!encoding)
        return;
    p->foreign = !is_utf8_name(encoding);
    judge_quote(p->encoding, sizeof p->encoding, encoding, strlen(encoding));
}

bool sitemap_prolog_is_declared(const struct sitemap_prolog *p)
{
    return p->start == START_DECLARED || p->start == START_LATE || p->declared_at.line > 0;
}

struct sitemap_prolog_fault sitemap_prolog_judge(const struct sitemap_prolog *p)
{
    struct sitemap_prolog_fault fault = {.code = NULL};
    const char *why = "";
    if (p->doctype) {
        fault.code = "doctype";
        fault.at = p->doctype_at;
        why = "has a DOCTYPE, which is not accepted";
    } else if (p->start == START_LATE) {
        fault.code = "malformed-xml";
        fault.at = p->start_at;
        why = "white space before the XML declaration";
    } else if (p->start == START_WIDE) {
        fault.code = "not-utf8";
        fault.at = p->start_at;
        why = "is UTF-16; a sitemap must be UTF-8";
    } else if (p->foreign) {
        fault.code = "not-utf8";
        fault.at = p->declared_at;
        snprintf(fault.why, sizeof fault.why, "is declared as %s; a sitemap must be UTF-8",
                 p->encoding);
        return fault;
    }
    snprintf(fault.why, sizeof fault.why, "%s", why);
    return fault;
}
