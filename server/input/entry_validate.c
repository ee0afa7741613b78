/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Validates one entry: loc, lastmod, digest and extensions, in the order in which findings are
 * reported. */
#include "server/input/entry_validate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/str.h"
#include "server/rules/loc.h"

bool validated_entry_init(struct validated_entry *v, const struct reader_options *options)
{
    v->failed = false;
    v->fragment = options->pages ? calloc(1, sizeof *v->fragment) : NULL;
    return v->fragment != NULL || !options->pages;
}

void validated_entry_done(struct validated_entry *v)
{
    if (v->fragment != NULL)
        fragment_done(v->fragment);
    free(v->fragment);
}

void entry_validate_quote(char *out, size_t size, const char *text, size_t len)
{
    size_t room = size - 4; /* room for "..." and the NUL */
    size_t used = 0;
    for (size_t at = 0; at < len;) {
        size_t step = utf8_char_len(text + at, len - at);
        bool shown = step > 0 && !utf8_is_unprintable(text + at, step);
        size_t written = shown ? step : 1;
        if (used + written > room) {
            memcpy(out + used, "...", 4);
            return;
        }
        memcpy(out + used, shown ? text + at : "?", written);
        used += written;
        at += step > 0 ? step : 1;
    }
    out[used] = '\0';
}

/* Copies the loc as given, cut at LOC_MAX_CHARS, but never within a character. */
static const char *copy_given(struct validated_entry *out, const char *loc, size_t len)
{
    if (loc == NULL)
        return NULL;
    if (len > LOC_MAX_CHARS) {
        len = LOC_MAX_CHARS;
        for (int back = 0; back < 3 && ((unsigned char)loc[len] & 0xc0) == 0x80; back++)
            len--;
    }
    memcpy(out->given, loc, len);
    out->given[len] = '\0';
    return out->given;
}

enum rule_code entry_validate_reject(const struct raw_entry *raw, struct validated_entry *out,
                                     struct rejection *rejection, enum rule_code code,
                                     const char *field, const char *why)
{
    rejection->line = raw->line;
    rejection->loc = copy_given(out, raw->loc, raw->loc_len);
    rejection->code = code;
    rejection->field = field;
    if (why != NULL)
        snprintf(rejection->detail, sizeof rejection->detail, "%s", why);
    else
        snprintf(rejection->detail, sizeof rejection->detail, "%s%s%s", field != NULL ? field : "",
                 field != NULL ? " " : "", rule_code_sentence(code));
    return code;
}

static enum rule_code reject_loc(const struct raw_entry *raw, struct validated_entry *out,
                                 struct rejection *rejection, enum rule_code code)
{
    char why[256], hint[128];
    if (code == RULE_LOC_HOST_IDN && url_punycode_hint(raw->loc, raw->loc_len, hint, sizeof hint)) {
        snprintf(why, sizeof why, "loc has a non-ASCII host; use its punycode form: %s", hint);
        return entry_validate_reject(raw, out, rejection, code, "loc", why);
    }
    if (code == RULE_LOC_MISSING) /* its sentence already mentions the loc */
        return entry_validate_reject(raw, out, rejection, code, "loc", rule_code_sentence(code));
    snprintf(why, sizeof why, "loc %s", explain_loc(code, raw->loc, raw->loc_len));
    return entry_validate_reject(raw, out, rejection, code, "loc", why);
}

static enum rule_code check_loc(const struct raw_entry *raw, const struct reader_options *options,
                                struct validated_entry *out, struct rejection *rejection)
{
    if (raw->loc_fault != RULE_OK)
        return raw->loc_why != NULL
                   ? entry_validate_reject(raw, out, rejection, raw->loc_fault, "loc", raw->loc_why)
                   : reject_loc(raw, out, rejection, raw->loc_fault);
    if (raw->loc == NULL)
        return reject_loc(raw, out, rejection, RULE_LOC_MISSING);
    enum rule_code code = url_parse(raw->loc, raw->loc_len, &out->url, &out->entry.remarks);
    /* Percent-encoded, it would be an invisible part of the path. */
    if (code == RULE_OK && explain_blank_back(raw->loc, raw->loc_len) > 0)
        code = RULE_LOC_SPACE;
    if (code != RULE_OK)
        return reject_loc(raw, out, rejection, code);
    out->entry.loc = out->url.text;
    out->entry.remarks |= loc_lint(out->url.text, out->url.len, out->url.origin_len);
    if (options->pages)
        out->entry.remarks &= ~RULE_BIT(RULE_LOC_NO_SITEMAP);
    return RULE_OK;
}

static enum rule_code reject_lastmod(const struct raw_entry *raw, struct validated_entry *out,
                                     struct rejection *rejection, enum rule_code code)
{
    char shown[64], why[256];
    entry_validate_quote(shown, sizeof shown, raw->lastmod != NULL ? raw->lastmod : "",
                         raw->lastmod_len);
    snprintf(why, sizeof why, "lastmod \"%s\" %s", shown,
             raw->lastmod_why != NULL ? raw->lastmod_why : rule_code_sentence(code));
    return entry_validate_reject(raw, out, rejection, code, "lastmod", why);
}

/* In a list, an invalid lastmod must not reject the loc; a date in the future is always dropped. */
static enum rule_code check_lastmod(const struct raw_entry *raw,
                                    const struct reader_options *options,
                                    struct validated_entry *out, struct rejection *rejection)
{
    struct entry *entry = &out->entry;
    if (options->drop_lastmod || raw->lastmod_state == FIELD_ABSENT)
        return RULE_OK;
    if (raw->lastmod_state == FIELD_NULL) {
        entry->lastmod_state = FIELD_NULL;
        return RULE_OK;
    }
    enum rule_code code = RULE_LASTMOD_INVALID;
    if (raw->lastmod_why == NULL)
        code = lastmod_parse(raw->lastmod, raw->lastmod_len, options->now, &out->lastmod,
                             &entry->remarks);
    if (code == RULE_OK && lastmod_is_too_old(out->lastmod.text))
        code = RULE_LASTMOD_OLD;
    if (code == RULE_OK) {
        entry->lastmod = out->lastmod.text;
        entry->lastmod_state = FIELD_SET;
        return RULE_OK;
    }
    if (code != RULE_LASTMOD_FUTURE && code != RULE_LASTMOD_OLD && !options->lenient)
        return reject_lastmod(raw, out, rejection, code);
    /* The lastmod is dropped, so its granularity is not worth a remark. */
    entry->remarks &= ~(RULE_BIT(RULE_LASTMOD_COARSE) | RULE_BIT(RULE_LASTMOD_DATE_ONLY));
    entry->remarks |= RULE_BIT(code);
    return RULE_OK;
}

static enum rule_code check_rest(const struct raw_entry *raw, struct validated_entry *out,
                                 struct rejection *rejection)
{
    struct entry *entry = &out->entry;
    entry->digest_state = raw->digest_state;
    if (raw->digest_state == FIELD_SET) {
        enum rule_code code = entry_check_digest(raw->digest, raw->digest_len);
        if (code == RULE_OK && raw->digest_len > DIGEST_MAX_BYTES)
            code = RULE_DIGEST;
        if (code != RULE_OK)
            return entry_validate_reject(raw, out, rejection, code, "digest", NULL);
        memcpy(out->digest, raw->digest, raw->digest_len);
        out->digest[raw->digest_len] = '\0';
        /* Stored without the date that was sent with it, it would keep out the corrected date. */
        bool undated = (entry->remarks & RULE_LASTMOD_DROPS) != 0;
        entry->digest = undated ? NULL : out->digest;
        entry->digest_state = undated ? FIELD_ABSENT : FIELD_SET;
    }
    if (raw->index != NULL) {
        /* No index has such a name; cut at the NUL, it might look like one. */
        if (raw->index_len > LOC_MAX_CHARS || memchr(raw->index, '\0', raw->index_len) != NULL)
            return entry_validate_reject(raw, out, rejection, RULE_INDEX_UNKNOWN, "index", NULL);
        memcpy(out->index, raw->index, raw->index_len);
        out->index[raw->index_len] = '\0';
        entry->index = out->index;
    }
    /* The entry of a urlset's page in an export becomes an ordinary entry if there is no such
     * urlset. */
    bool of_urlset = raw->source_len > strlen(URLSET_OWNER) &&
                     memcmp(raw->source, URLSET_OWNER, strlen(URLSET_OWNER)) == 0;
    if (raw->source_len > 0 && !of_urlset) {
        if (entry_check_name(raw->source, raw->source_len) != RULE_OK)
            return entry_validate_reject(raw, out, rejection, RULE_NAME, "source", NULL);
        memcpy(out->source, raw->source, raw->source_len);
        out->source[raw->source_len] = '\0';
        entry->source = out->source;
    }
    return RULE_OK;
}

static enum rule_code check_extensions(const struct raw_entry *raw, struct validated_entry *out,
                                       struct rejection *rejection)
{
    struct fragment *fragment = out->fragment;
    if (fragment == NULL || !raw->has_extensions)
        return RULE_OK;
    enum rule_code code = raw->extension_fault;
    if (code == RULE_OK)
        code = fragment_end(fragment);
    if (code != RULE_OK)
        return entry_validate_reject(raw, out, rejection, code, fragment->field, fragment->why);
    out->failed = fragment->text.failed;
    bool any = fragment->text.len > 0;
    out->entry.extensions = any ? str_text(&fragment->text) : NULL;
    out->entry.extensions_state = any ? FIELD_SET : FIELD_NULL;
    out->entry.remarks |= fragment->remarks;
    out->entry.fragment = fragment;
    return RULE_OK;
}

enum rule_code entry_validate(const struct raw_entry *raw, const struct reader_options *options,
                              struct validated_entry *out, struct rejection *rejection)
{
    out->entry = (struct entry){
        .position = raw->position,
        .line = raw->line,
        .remarks = raw->remarks,
    };
    enum rule_code code = check_loc(raw, options, out, rejection);
    if (code == RULE_OK)
        code = check_lastmod(raw, options, out, rejection);
    if (code == RULE_OK)
        code = check_rest(raw, out, rejection);
    if (code == RULE_OK)
        code = check_extensions(raw, out, rejection);
    return code;
}

bool reader_rejected_entry(const struct rejection *rejection, struct url *url, struct entry *out)
{
    const char *loc = rejection->loc;
    if (loc == NULL || url_parse(loc, strlen(loc), url, NULL) != RULE_OK)
        return false;
    *out = (struct entry){
        .loc = url->text, .position = POSITION_NONE, .line = rejection->line, .rejected = true};
    return true;
}
