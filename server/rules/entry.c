/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Normalises the fields of an entry, and formats it as JSON. */
#include "server/rules/entry.h"

#include <inttypes.h>
#include <string.h>

#include "server/base/str.h"
#include "server/base/text.h"
#include "server/rules/lastmod.h"
#include "server/rules/loc.h"
#include "server/rules/page/fragment.h"

/* The authority of a normalised URL or origin, which needs no further validation. */
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

    /* Default ports are dropped, so http://h and https://h are the same host with two schemes. */
    if (own.len != index.len || memcmp(own.text, index.text, own.len) != 0)
        remarks |= RULE_BIT(RULE_CROSS_HOST);
    if (own.scheme_len != index.scheme_len)
        remarks |= RULE_BIT(RULE_SCHEME_DIFFERS);
    if (lastmod != NULL)
        remarks |= lastmod_remarks(lastmod);
    return remarks;
}

rule_set entry_lint_page_url(const char *loc, const char *lastmod, const char *index_origin)
{
    return entry_lint(loc, lastmod, index_origin) & ~RULE_BIT(RULE_LOC_NO_SITEMAP);
}

bool entry_filter_holds(const struct entry_filter *filter, const char *loc, const char *lastmod,
                        const char *index_origin)
{
    return (filter->contains == NULL || strstr(loc, filter->contains) != NULL) &&
           (!filter->warned || (filter->page_urls ? entry_lint_page_url
                                                  : entry_lint)(loc, lastmod, index_origin) != 0);
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

/* ---- as it is shown -------------------------------------------------------------------- */

static rule_set all_remarks(const struct entry_shown *entry)
{
    if (entry->origin == NULL)
        return entry->remarks;
    return entry->remarks |
           (entry->is_page_url ? entry_lint_page_url(entry->loc, entry->lastmod, entry->origin)
                               : entry_lint(entry->loc, entry->lastmod, entry->origin));
}

static void append_time(struct str *out, const char *name, int64_t unix_seconds)
{
    char text[21];

    lastmod_format_utc(unix_seconds, text);
    str_append_json_member(out, name, text);
}

/* Appends origin and path as one JSON text, without a copy. */
static void append_index(struct str *out, const struct entry_shown *entry)
{
    size_t end;

    const char *list = entry->is_page_url ? "urlset" : "index";

    if (entry->origin == NULL || entry->path == NULL) {
        str_append_json_member(out, list, NULL);
        return;
    }
    str_append_json_member(out, list, entry->origin);
    end = out->len;
    str_append_json_text(out, entry->path);
    if (out->failed)
        return;
    memmove(out->data + end - 1, out->data + end + 1, out->len - end); /* the quotes between them */
    out->len -= 2;
}

/* Appends the members up to the index. */
static void append_what(struct str *out, const struct entry_shown *entry)
{
    str_append_json_text(out, entry->loc);
    str_append_json_member(out, "lastmod", entry->lastmod);
    str_append_json_member(out, "digest", entry->digest);
    str_append_json_member(out, "source", entry->source);
    append_index(out, entry);
    fragment_append_json(out, entry->extensions);
}

void entry_append_json(struct str *out, const struct entry_shown *entry)
{
    str_append_text(out, "{\"id\":");
    str_append_json_text(out, entry->id);
    str_append_text(out, ",\"loc\":");
    append_what(out, entry);
    str_append_format(out, ",\"page\":%" PRIu32, entry->page);
    append_time(out, "registered_at", entry->registered_at);
    append_time(out, "changed_at", entry->changed_at);
    str_append_text(out, ",\"warnings\":");
    rule_set_append_json(out, all_remarks(entry));
    str_append_char(out, '}');
}

void entry_append_json_placed(struct str *out, const struct entry_shown *entry)
{
    entry_append_json(out, entry);
    if (out->failed)
        return;
    out->len--; /* the closing brace */
    str_append_format(out, ",\"position\":%" PRIu32 "}", entry->position);
}

void entry_append_export(struct str *out, const struct entry_shown *entry)
{
    str_append_text(out, "{\"loc\":");
    append_what(out, entry);
    str_append_format(out, ",\"position\":%" PRIu32 "}", entry->position);
}
