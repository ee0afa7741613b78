/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Checks of a token's scope. */
#include "server/rules/grant.h"

#include <stdio.h>
#include <string.h>

#include "server/base/str.h"
#include "server/rules/lastmod.h"
#include "server/rules/url.h"

bool grant_may(const struct grant *grant, enum grant_role needed)
{
    return grant->role == GRANT_ALL || grant->role >= needed;
}

bool grant_is_expired(const struct grant *grant, int64_t now)
{
    return grant->expires_at != 0 && now >= grant->expires_at;
}

bool grant_has_site(const struct grant *grant, int64_t site_id)
{
    return grant->site_id == 0 || grant->site_id == site_id;
}

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool grant_has_loc(const struct grant *grant, const char *loc)
{
    return grant->prefix == NULL || begins_with(loc, grant->prefix);
}

bool grant_has_source(const struct grant *grant, const char *source)
{
    return !grant->own ||
           (source != NULL && grant->name != NULL && strcmp(source, grant->name) == 0);
}

bool grant_has_whole(const struct grant *grant)
{
    return grant->prefix == NULL;
}

bool grant_narrow(const struct grant *grant, const char *asked, const char **out)
{
    *out = asked;
    if (grant->prefix == NULL || (asked != NULL && begins_with(asked, grant->prefix)))
        return true;
    *out = grant->prefix;
    return asked == NULL || begins_with(grant->prefix, asked);
}

bool grant_equal(const struct grant *a, const struct grant *b)
{
    return a->role == b->role && a->own == b->own && a->site_id == b->site_id &&
           a->expires_at == b->expires_at && text_equal(a->name, b->name) &&
           text_equal(a->prefix, b->prefix);
}

static const char *const role_words[] = {"all", "read", "write", "admin"};

const char *grant_role_word(enum grant_role role)
{
    return role_words[role <= GRANT_ADMIN ? role : GRANT_ALL];
}

bool grant_role_read(const char *word, enum grant_role *out)
{
    for (int role = GRANT_READ; role <= GRANT_ADMIN; role++) {
        if (strcmp(word, role_words[role]) != 0)
            continue;
        *out = (enum grant_role)role;
        return true;
    }
    return false;
}

const char *grant_read_prefix(const char *text, char out[GRANT_PREFIX_MAX_CHARS + 1])
{
    struct url url;
    enum rule_code code = url_parse(text, strlen(text), &url, NULL);

    if (code != RULE_OK)
        return rule_code_sentence(code);
    if (url.len > GRANT_PREFIX_MAX_CHARS)
        return "is longer than 500 characters";
    if (url.origin_len + url.path_len != url.len)
        return "has a query; a prefix is an origin and the beginning of a path";
    if (strchr("/-_.", url.text[url.len - 1]) == NULL)
        return "must end with a slash, or with - _ or .; otherwise /blog would include /blogger/, "
               "too";
    memcpy(out, url.text, (size_t)url.len + 1);
    return NULL;
}

static const struct {
    char unit;
    int64_t seconds;
} units[] = {{'w', 604800}, {'d', 86400}, {'h', 3600}, {'m', 60}};
#define UNITS (sizeof units / sizeof *units)

void grant_write_span(int64_t seconds, char out[24])
{
    size_t i = 0;

    while (i < UNITS - 1 && seconds % units[i].seconds != 0)
        i++;
    snprintf(out, 24, "%lld%c", (long long)((seconds + units[i].seconds - 1) / units[i].seconds),
             units[i].unit);
}

bool grant_read_span(const char *text, int64_t *out)
{
    int64_t count = 0;
    size_t len = strspn(text, "0123456789");

    for (size_t i = 0; i < len && i < 7; i++)
        count = count * 10 + (text[i] - '0');
    for (size_t i = 0; i < UNITS; i++) {
        if (len == 0 || len > 6 || text[len] != units[i].unit || text[len + 1] != '\0')
            continue;
        *out = count * units[i].seconds;
        return count > 0;
    }
    return false;
}

bool grant_read_expiry(const char *text, int64_t now, int64_t *out)
{
    struct lastmod date;
    int64_t span;

    if (grant_read_span(text, &span)) {
        *out = now + span;
        return true;
    }
    /* An expiry date, unlike a lastmod, may be in the future. */
    if (lastmod_parse(text, strlen(text), INT64_MAX / 2, &date, NULL) != RULE_OK || !date.renders ||
        date.unix_seconds <= now)
        return false;
    *out = date.unix_seconds;
    return true;
}

const char *grant_fault(const struct grant *grant)
{
    if (grant->prefix != NULL && grant->site_id == 0)
        return "a prefix needs a site";
    if (grant->role == GRANT_ADMIN && (grant->prefix != NULL || grant->own))
        return "role admin cannot be limited to a prefix or to own entries; use role write";
    if (grant->role == GRANT_READ && grant->own)
        return "own can only be used with role write; role read changes nothing";
    return NULL;
}

enum freeze freeze_of(const struct grant *grant)
{
    return grant->site_id == 0 ? FREEZE_ALL_SITES : FREEZE_SITE;
}

bool freeze_yields(enum freeze frozen, const struct grant *grant)
{
    return frozen <= freeze_of(grant) || grant->site_id == 0;
}

const char *freeze_word(enum freeze frozen)
{
    static const char *const words[] = {NULL, "site", "all-sites", "leaving", "arriving"};

    return words[frozen];
}

enum freeze freeze_read(int64_t number)
{
    return number <= 0                ? FREEZE_NONE
           : number > FREEZE_ARRIVING ? FREEZE_ALL_SITES
                                      : (enum freeze)number;
}
