#include "server/rules/entry.h"

#include <string.h>

#include "server/base/str.h"
#include "server/base/text.h"
#include "server/rules/lastmod.h"
#include "server/rules/loc.h"

/* Where the authority of a normalised URL or origin lies. Both were parsed at the door, so that
 * nothing needs to be judged again here. */
struct authority {
    const char *text;
    size_t len;
    size_t scheme_len;
};

static struct authority find_authority(const char *url)
{
    struct authority a = {url, 0, strcspn(url, ":")};

    a.text += a.scheme_len;
    a.text += strspn(a.text, ":/");
    a.len = strcspn(a.text, "/?");
    return a;
}

rule_set entry_lint(const char *loc, const char *lastmod, const char *index_origin)
{
    struct authority own = find_authority(loc);
    struct authority index = find_authority(index_origin);
    rule_set remarks = loc_lint(loc, strlen(loc), (size_t)(own.text - loc) + own.len);

    /* Default ports are dropped, so that http://h and https://h are one host of two schemes. */
    if (own.len != index.len || memcmp(own.text, index.text, own.len) != 0)
        remarks |= RULE_BIT(RULE_CROSS_HOST);
    if (own.scheme_len != index.scheme_len)
        remarks |= RULE_BIT(RULE_SCHEME_DIFFERS);
    if (lastmod != NULL)
        remarks |= lastmod_remarks(lastmod);
    return remarks;
}

enum rule_code entry_check_digest(const char *digest, size_t len)
{
    if (len < 1 || len > DIGEST_MAX_BYTES)
        return RULE_DIGEST;
    for (size_t i = 0; i < len;) {
        size_t step = utf8_char_len(digest + i, len - i);

        if (step == 0 || utf8_is_control(digest + i, step))
            return RULE_DIGEST;
        i += step;
    }
    return RULE_OK;
}

enum rule_code entry_check_name(const char *name, size_t len)
{
    if (len < 1 || len > NAME_MAX_BYTES)
        return RULE_NAME;
    for (size_t i = 0; i < len; i++) {
        char c = name[i];

        if (!ascii_is_alnum(c) && c != '.' && c != '_' && c != '-')
            return RULE_NAME;
    }
    return RULE_OK;
}
