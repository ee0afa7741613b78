/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The table of codes: word and sentence of each. */
#include "server/rules/code.h"

#include <stddef.h>

#include "server/base/str.h"

struct code_text {
    const char *word;
    const char *sentence;
};

static const struct code_text code_texts[RULE_CODE_COUNT] = {
#define X(enumerator, word, sentence) [enumerator] = {word, sentence},
    RULE_CODES(X)
#undef X
};

static const struct code_text *find_text(enum rule_code code)
{
    static const struct code_text unknown = {"unknown", "is rejected for an unknown reason"};

    /* Cast to size_t: the compiler decides whether the type of the enum is signed. */
    return (size_t)code < RULE_CODE_COUNT ? &code_texts[code] : &unknown;
}

const char *rule_code_word(enum rule_code code)
{
    return find_text(code)->word;
}

const char *rule_code_sentence(enum rule_code code)
{
    return find_text(code)->sentence;
}

const char *rule_code_remark(enum rule_code code)
{
    switch (code) {
    case RULE_LASTMOD_INVALID:
        return "the lastmod was dropped: it is not a W3C Datetime such as 2026-11-21 or "
               "2026-11-21T08:30:00Z";
    case RULE_LASTMOD_NO_ZONE:
        return "the lastmod was dropped: it has a time without a time zone, as in "
               "2026-11-21T08:30:00Z or 2026-11-21T08:30:00+01:00";
    case RULE_LASTMOD_FUTURE:
        return "the lastmod was dropped: it is more than a day in the future";
    case RULE_LASTMOD_OLD:
        return "the lastmod was dropped: it is 1970-01-01 or earlier, the date of an unset clock";
    case RULE_LASTMOD_COARSE:
        return "the lastmod has no day; it is stored but not served; write a full date such as "
               "2026-11-21";
    case RULE_LASTMOD_DATE_ONLY:
        return "the lastmod has no time; Bing wants a time with an offset, as in "
               "2026-11-21T08:30:00Z";
    default:
        return rule_code_sentence(code);
    }
}

void rule_set_append_json(struct str *out, rule_set codes)
{
    const char *separator = "";

    str_append_char(out, '[');
    for (unsigned code = RULE_OK + 1; code < RULE_CODE_COUNT; code++) {
        if ((codes & RULE_BIT(code)) == 0)
            continue;
        str_append_text(out, separator);
        str_append_json_text(out, rule_code_word((enum rule_code)code));
        separator = ",";
    }
    str_append_char(out, ']');
}
