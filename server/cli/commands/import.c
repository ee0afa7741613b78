/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* `import`: reads a list into spools, one for each change (the whole list; with --replace one for
 * each index). If there are several changes or rejections, it first validates all changes. Then it
 * applies them one after the other, and reports the findings. One thread, except callbacks of the
 * writer while this waits for it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/base/map.h"
#include "server/base/str.h"
#include "server/base/text.h"
#include "server/cli/backend/reach.h"
#include "server/cli/backend/session.h"
#include "server/cli/commands/commands.h"
#include "server/cli/names.h"
#include "server/cli/output.h"
#include "server/input/entry_validate.h"
#include "server/input/reader.h"
#include "server/input/sitemap_file.h"
#include "server/rules/findings.h"
#include "server/rules/page/fragment.h"
#include "server/rules/scope.h"
#include "server/rules/url.h"

/* The extensions of page URLs, and each distinct reason why some were left out. */
#define LOSS_REASONS 32u
struct import_loss {
    uint64_t seen[EXTENSION_COUNT], lost[EXTENSION_COUNT];
    size_t reason_count;
    struct import_reason {
        struct fragment_reason what;
        uint64_t line; /* of the first */
    } reasons[LOSS_REASONS];
};

/* One change: the whole list, or with --replace the part of one index. */
struct import_group {
    char *index_url; /* owned; NULL: as --index says */
    int64_t index_id;
    struct spool *spool;
    uint64_t revision; /* that applying it made; 0: none */
};

/* Each distinct name of an element once. */
#define NAMES_MAX 12u
struct import_names {
    size_t count; /* at most NAMES_MAX */
    bool more;
    char names[NAMES_MAX][48];
};

struct import {
    struct cli *cli;
    const char *file;    /* as named in messages */
    const char *index;   /* --index or --urlset, or NULL */
    enum list_kind list; /* with --urlset page URLs are read, not sitemaps */
    const char *source;  /* --source: the owner of all new entries; NULL: as each line says */
    const char *owner;   /* the owner of entries whose line names none */
    struct str if_match; /* a field of If-Match; empty: without */
    bool anybodys;       /* --source '*': a replace acts on the entries of all owners */
    bool replace, skip, dry_run, drop_lastmod;
    bool drop_extensions; /* drop those that the urlset, created `with` others, does not have */
    unsigned with;
    struct import_names extra, ignored; /* ignored elements; those of them that contain a loc */
    char coding[32]; /* of Content-Encoding, which is not a coding; empty: none */
    struct import_loss loss;
    uint64_t stripped;         /* page URLs that lost extensions which the urlset does not have */
    uint64_t shown;            /* of a dry run: rows printed */
    int64_t max_removed;       /* in all groups together */
    struct registry *registry; /* replace without --index: finds the index that a loc belongs to */
    size_t group_count;
    struct import_group *groups;
    struct spool *rejected; /* replace with --skip-invalid: lines whose entries stay; NULL: none */
    struct findings findings;
    struct map locs; /* locs so far, see is_repeated */
    struct progress progress;
    /* Headers of a list that was fetched; otherwise NULL. */
    const char *content_encoding, *content_type;
    uint64_t bytes, hash; /* of the file as it was read, see import_hash */
    uint64_t applied;     /* entries of the groups before this one, for the bar */
    uint64_t created, updated, unchanged, removed, moved, spared, revision;
};

/* The number of entries that the reader accepted. */
static uint64_t import_count(const struct import *import)
{
    uint64_t count = 0;

    for (size_t i = 0; i < import->group_count; i++)
        count += spool_count(import->groups[i].spool) - spool_count(import->rejected);
    return count;
}

/* ---- what was found -------------------------------------------------------------------- */

/* FNV-1a; begin with IMPORT_HASH_BEGIN. */
#define IMPORT_HASH_BEGIN 0xcbf29ce484222325u
static uint64_t import_hash(uint64_t hash, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return hash;
}

#define ROWS_SHOWN 20        /* of a dry run */
#define LOCS_MAX   50000000u /* twice what max_bulk_entries may be */

/* Whether the loc occurred in the list before, by 63 bits of its hash. Each loc takes about 16
 * bytes; with a million locs the chance of a false match is one in 18 million. Beyond LOCS_MAX, or
 * out of memory, no more locs are recorded. */
static bool is_repeated(struct map *locs, const char *loc)
{
    uint64_t hash = import_hash(IMPORT_HASH_BEGIN, loc, strlen(loc));
    uint32_t number, high;

    hash = (hash ^ (hash >> 32)) * 0x9e3779b97f4a7c15ull; /* mixed: FNV's high bits know little */
    hash ^= hash >> 29;
    high = (uint32_t)(hash >> 33);
    for (struct map_probe p = map_probe(locs, (uint32_t)hash); map_next(&p, &number);)
        if (number == high)
            return true;
    if (locs->count < LOCS_MAX)
        map_add(locs, (uint32_t)hash, high);
    return false;
}

/* Whether the import uses this extension: with --drop-extensions, those that the urlset has. */
static bool is_used(const struct import *import, unsigned extension)
{
    return !import->drop_extensions || (extensions[extension].bit & import->with) != 0;
}

/* The first reason for which a part of a used extension is left out; NULL: none. */
static const struct fragment_reason *first_loss(const struct import *import,
                                                const struct fragment *fragment)
{
    for (unsigned i = 0; fragment != NULL && i < fragment->loss.reason_count; i++)
        if (is_used(import, fragment->loss.reasons[i].extension))
            return &fragment->loss.reasons[i];
    return NULL;
}

/* Counts an entry's remarks. False, and rejected: its loc occurred before. If the last one counted,
 * importing the same list again would change the entry back and forth. */
static bool add_remarks(struct import *import, const struct entry *entry)
{
    if (is_repeated(&import->locs, entry->loc)) {
        struct rejection repeated = {
            .line = entry->line,
            .loc = entry->loc,
            .code = RULE_DUPLICATE,
            .field = "loc",
        };

        findings_refuse(&import->findings, &repeated);
        return false;
    }
    rule_set remarks = entry->remarks;
    if (import->drop_extensions && first_loss(import, entry->fragment) == NULL)
        remarks &= ~RULE_BIT(RULE_EXTENSION_DROPPED);
    findings_remark(&import->findings, entry->line, NULL, remarks);
    return true;
}

static void report_one(const struct finding *item, const char *file)
{
    const char *detail = item->detail != NULL ? item->detail : rule_code_sentence(item->code);
    char what[4096];

    snprintf(what, sizeof what, "%s:%" PRIu64, file, item->line);
    if (item->loc != NULL)
        cli_fail(what, "%s: %s (%s)", item->loc, detail, rule_code_word(item->code));
    else
        cli_fail(what, "%s (%s)", detail, rule_code_word(item->code));
}

/* Reports the first few findings of a code, and how many more there are. */
static void report_examples(const struct findings *f, uint32_t first, const char *file)
{
    enum rule_code code = f->items[first].code;
    uint64_t printed = 0;

    for (uint32_t i = first; i < f->count && printed < FINDINGS_EXAMPLES; i++) {
        if (f->items[i].code == code) {
            report_one(&f->items[i], file);
            printed++;
        }
    }
    if (f->refused_by[code] > printed)
        cli_fail(file, "and %" PRIu64 " more with %s", f->refused_by[code] - printed,
                 rule_code_word(code));
}

static void report_refused(const struct findings *f, const char *file)
{
    bool printed[RULE_CODE_COUNT] = {[RULE_OK] = true};

    for (uint32_t i = 0; i < f->count; i++) {
        enum rule_code code = f->items[i].code;

        if (f->refused <= f->max && code != RULE_OK)
            report_one(&f->items[i], file);
        else if (!printed[code])
            report_examples(f, i, file);
        printed[code] = true;
    }
}

/* Often a single missing site or list causes all rejections: reports how to create it for the first
 * one. */
static void report_remedy(struct cli *cli, const struct findings *f, const char *file)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const struct finding *item = &f->items[i];
        struct url url;

        if (item->code == RULE_INDEX_NEEDED) {
            cli_warn(file, "name the index with --index URL");
            return;
        }
        if (item->code == RULE_OWNED_BY_ANOTHER) {
            cli_warn(file, "--source '*' replaces the entries of all sources");
            return;
        }
        if (item->code == RULE_EXTENSION_FOREIGN) {
            cli_warn(file,
                     "--drop-extensions drops the extensions that the urlset does not support; "
                     "`sitemapd urlset add --with` creates a urlset that supports them");
            return;
        }
        if (item->code == RULE_SITE_UNKNOWN && item->loc != NULL &&
            url_parse(item->loc, strlen(item->loc), &url, NULL) == RULE_OK) {
            if (!session_has_sites(cli))
                cli_warn(file, "line %" PRIu64 ": create the site with `sitemapd site add %.*s`",
                         item->line, (int)url.origin_len, url.text);
            else
                cli_warn(file,
                         "line %" PRIu64
                         ": `sitemapd site update ORIGIN --add-cross-host %.*s`, then "
                         "--index URL; create another site with `sitemapd site add %.*s`",
                         item->line, (int)url.host_len, url.text + url.host_at, (int)url.origin_len,
                         url.text);
            return;
        }
    }
}

static void append_names(const struct import_names *names, struct str *out)
{
    for (size_t i = 0; i < names->count; i++)
        str_append_format(out, "%s<%s>", i > 0 ? ", " : ": ", names->names[i]);
    if (names->more)
        str_append_text(out, " and others");
}

static void add_name(struct import_names *names, const char *element)
{
    char shown[sizeof names->names[0]];

    entry_validate_quote(shown, sizeof shown, element, strlen(element));
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->names[i], shown) == 0)
            return;
    names->more = names->more || names->count == NAMES_MAX;
    if (names->count < NAMES_MAX)
        memcpy(names->names[names->count++], shown, sizeof shown);
}

/* Appends the elements of a remark: `: <element>, <element>`. */
static void append_about(const struct import *import, int code, struct str *out)
{
    if (code == RULE_EXTRA_ELEMENT)
        append_names(&import->extra, out);
    if (code == RULE_LOC_IGNORED)
        append_names(&import->ignored, out);
    if (code == RULE_ENCODING_ODD)
        str_append_format(out, ": %s", import->coding);
}

static const char *noun_of(unsigned extension, uint64_t count)
{
    static const char *const nouns[EXTENSION_COUNT][2] = {
        {"news item", "news items"},
        {"image", "images"},
        {"video", "videos"},
        {"alternate", "alternates"}}; /* as extensions[] */

    return plural(count, nouns[extension][0], nouns[extension][1]);
}

/* Reports each distinct reason for which images, videos, alternates and news items are left out,
 * once. */
static void report_loss(const struct import *import)
{
    const struct import_loss *loss = &import->loss;

    for (size_t i = 0; i < loss->reason_count; i++) {
        const struct import_reason *reason = &loss->reasons[i];
        const struct fragment_reason *what = &reason->what;

        cli_warn(import->file, "%" PRIu64 " %s %s: %s (%s); first in line %" PRIu64 ": %s",
                 what->count,
                 what->field_only ? plural(what->count, "field of a video", "fields of videos")
                                  : noun_of(what->extension, what->count),
                 import->skip ? "left out" : "invalid", what->sentence, rule_code_word(what->code),
                 reason->line, what->field);
    }
}

/* Reports on stderr what was rejected (each `sitemapd: FILE:LINE: LOC: why (code)`) and remarked.
 * If more than `max` was, the first few of each code, and how many more there are. */
static void report_findings(const struct import *import, struct findings *f, const char *file)
{
    findings_sort(f);
    report_refused(f, file);
    report_remedy(import->cli, f, file);
    for (int code = 0; code < RULE_CODE_COUNT; code++) {
        struct str about = STR_INIT;

        append_about(import, code, &about);
        if (f->remarked_by[code] > 0 && f->first_line[code] == 0) /* of a site, not of a line */
            cli_warn(file, "warning: %s (%s)", rule_code_remark((enum rule_code)code),
                     rule_code_word((enum rule_code)code));
        else if (f->remarked_by[code] > 0)
            cli_warn(file, "warning: %s (%s): %" PRIu64 " in all, first in line %" PRIu64 "%s",
                     rule_code_remark((enum rule_code)code), rule_code_word((enum rule_code)code),
                     f->remarked_by[code], f->first_line[code], str_text(&about));
        str_done(&about);
    }
}

/* ---- a list of our own ------------------------------------------------------------------ */

static bool is_same(const struct import *import, const json_t *list, const json_t *page)
{
    struct str text = STR_INIT;
    bool same = member_number(page, "entries") == import_count(import) &&
                entries_render(import->cli->backend, list, member_number(page, "number"), &text) ==
                    EXIT_DONE &&
                !text.failed && text.len == import->bytes &&
                import_hash(IMPORT_HASH_BEGIN, str_text(&text), text.len) == import->hash;

    str_done(&text);
    return same;
}

/* Warns if the file is, byte for byte, a page of this catalogue: after the switch, the public URL
 * of an index returns this server's own page. */
static void import_report_own(const struct import *import)
{
    for (int kind = LIST_INDEX; kind <= LIST_URLSET; kind++) {
        const json_t *lists = api_lists(import->cli->backend, (enum list_kind)kind), *list, *page;
        size_t i, n;

        json_array_foreach(lists, i, list)
            json_array_foreach(json_object_get(list, "pages"), n, page)
        {
            if (!is_same(import, list, page))
                continue;
            cli_warn(import->file,
                     "is what sitemapd itself serves at %s: importing it changes nothing; import "
                     "the list from its original source",
                     member_text(page, "url"));
            return;
        }
    }
}

/* ---- applying --------------------------------------------------------------------------- */

static void report_progress(void *context, uint64_t entries_done)
{
    struct import *import = context;

    progress_update(&import->progress, import->applied + entries_done);
}

/* What --max-removed leaves after the groups before. */
static int64_t removals_left(const struct import *import)
{
    int64_t done = (int64_t)(import->removed + import->moved);

    if (import->max_removed == MAX_REMOVED_GUARDED)
        return MAX_REMOVED_GUARDED;
    return import->max_removed > done ? import->max_removed - done : 0;
}

/* Applies a group. A change is rejected because of single entries, which are in the findings, or as
 * a whole (shrink guard, unknown index), which is reported here. */
static int apply_group(struct import *import, struct import_group *group, bool dry_run,
                       struct findings *findings)
{
    struct change change = {
        .kind = import->replace ? CHANGE_REPLACE : CHANGE_BULK,
        .list = import->list,
        .source = import->owner,
        .rows = group->spool,
        .skip = import->skip,
        .dry_run = dry_run,
        .wants_preview = dry_run && import->dry_run,
        .index_name = group->index_url != NULL ? group->index_url : import->index,
        .if_match = import->if_match.len > 0 ? str_text(&import->if_match) : NULL,
        .max_removed = removals_left(import),
        .max_findings = findings->max,
    };
    if (import->replace)
        change.replace = (struct change_replace){.source = import->anybodys ? NULL : import->owner};
    struct change_result result;
    const char *what = change.index_name != NULL ? change.index_name : import->file;
    enum catalogue_status status =
        api_apply(import->cli->backend, &change, report_progress, import, &result);
    bool refused = result.findings.refused > 0;

    group->spool = result.rows;
    result.rows = NULL;
    findings_merge(findings, &result.findings);
    if (status == CATALOGUE_OK) {
        import->created += result.created;
        import->updated += result.updated;
        import->unchanged += result.unchanged;
        import->removed += result.removed;
        import->moved += result.moved;
        import->spared += result.spared;
        findings_remark(findings, 0, NULL, result.remarks);
        if (result.revision > import->revision)
            import->revision = result.revision;
        if (result.changed && !dry_run)
            group->revision = result.revision;
        import->shown += output_print_rows(&result, ROWS_SHOWN - import->shown);
    }
    /* Lines that were rejected count as removed: correct them first. */
    if (result.code == RULE_SHRINK_GUARD)
        refused = import->findings.refused + findings->refused > 0;
    result.would_remove += import->removed + import->moved; /* as --max-removed counts */
    bool is_reported =
        status == CATALOGUE_OK || (status == CATALOGUE_REFUSED && !import->skip && refused);
    int exit = is_reported ? EXIT_DONE : session_report(import->cli, NULL, what, &result);
    change_result_done(&result);
    return exit;
}

/* Applies or only checks the groups, one after the other. Refusals of single entries are in the
 * findings. Returns EXIT_DONE, or has reported why a group was rejected as a whole. */
static int import_apply(struct import *import, bool dry_run, struct findings *findings)
{
    int status = EXIT_DONE;
    size_t done = 0;

    import->created = import->updated = import->unchanged = import->removed = 0;
    import->moved = 0;
    import->spared = 0;
    import->applied = 0;
    progress_start(&import->progress, dry_run ? "checking" : "applying", "entries",
                   import_count(import));
    for (size_t i = 0; status == EXIT_DONE && i < import->group_count; i++) {
        status = apply_group(import, &import->groups[i], dry_run, findings);
        import->applied += spool_count(import->groups[i].spool);
        done += status == EXIT_DONE;
    }
    progress_end(&import->progress);
    if (status != EXIT_DONE && !dry_run && done > 0)
        cli_fail(import->file, "%zu of %zu indexes %s replaced before the failure", done,
                 import->group_count, plural(done, "was", "were"));
    return status;
}

#define CHUNK_BYTES 65536

struct reading {
    struct import *import;
    enum spool_status spooled;
    bool no_memory;
};

static bool has_failed(const struct reading *r)
{
    return r->no_memory || r->spooled != SPOOL_OK;
}

/* Adds a rejected line to the findings. In a replace with --skip-invalid its entry stays. */
static void refuse_line(struct reading *r, const struct rejection *rejection)
{
    struct import *import = r->import;
    struct entry entry;
    struct url url;

    findings_refuse(&import->findings, rejection);
    if (!import->skip || !import->replace || !reader_rejected_entry(rejection, &url, &entry))
        return;
    if (import->rejected == NULL)
        import->rejected = api_spool(import->cli->backend, import->cli->config->max_bulk_bytes);
    r->no_memory = import->rejected == NULL;
    if (!r->no_memory)
        r->spooled = spool_add(import->rejected, &entry);
}

/* ---- groups ---------------------------------------------------------------------------- */

static struct import_group *add_group(struct import *import, char *index_url, int64_t index_id)
{
    struct import_group *grown =
        reallocarray(import->groups, import->group_count + 1, sizeof *grown);
    struct spool *spool = api_spool(import->cli->backend, import->cli->config->max_bulk_bytes);

    if (grown != NULL)
        import->groups = grown;
    if (grown == NULL || spool == NULL) {
        spool_free(spool);
        free(index_url);
        return NULL;
    }
    grown[import->group_count] = (struct import_group){index_url, index_id, spool, 0};
    return &grown[import->group_count++];
}

/* The index that a replace without --index puts `entry` into; NULL, and an error in the findings,
 * if none exists. A urlset's page, which exports contain, belongs to one, too: the writer keeps it.
 */
static const struct registry_index *find_index(struct reading *r, const struct entry *entry,
                                               const struct registry_site **site)
{
    const struct registry *registry = r->import->registry;
    struct rejection rejection = {.line = entry->line, .loc = entry->loc};
    struct placement placement = {0};
    struct url loc;

    rejection.code = url_parse(entry->loc, strlen(entry->loc), &loc, NULL);
    if (rejection.code == RULE_OK)
        rejection.code = registry_place(registry, &loc, entry->index, &placement);
    if ((rejection.code == RULE_OK || rejection.code == RULE_OF_URLSET) &&
        placement.index != NULL) {
        *site = placement.site;
        return placement.index;
    }
    rejection.field = "loc";
    if (rejection.code == RULE_OK)
        rejection.code = RULE_INDEX_NEEDED;
    snprintf(rejection.detail, sizeof rejection.detail, "%s",
             registry_place_why(registry, rejection.code, &loc, placement.site));
    refuse_line(r, &rejection);
    return NULL;
}

/* The group for `entry`; NULL: it was refused, or the import fails (see has_failed). */
static struct import_group *find_group(struct reading *r, const struct entry *entry)
{
    struct import *import = r->import;
    const struct registry_index *index;
    const struct registry_site *site;
    struct import_group *group;
    struct str url = STR_INIT;

    if (!import->replace || import->index != NULL) {
        group = import->group_count > 0 ? import->groups : add_group(import, NULL, 0);
        r->no_memory = group == NULL;
        return group;
    }
    index = find_index(r, entry, &site);
    if (index == NULL)
        return NULL;
    /* Lists have runs of one index, so search from the last group. */
    for (size_t i = import->group_count; i > 0; i--)
        if (import->groups[i - 1].index_id == index->id)
            return &import->groups[i - 1];
    str_append_format(&url, "%s%s", site->origin, index->path);
    group = url.failed ? NULL : add_group(import, url.data, index->id);
    r->no_memory = group == NULL;
    return group;
}

/* ---- the reader's sink ----------------------------------------------------------------- */

/* Removes extensions that the urlset does not have; the others go to `rest`. */
static void strip(struct import *import, struct entry *entry, struct str *rest)
{
    bool foreign = false;

    for (unsigned i = 0; entry->fragment != NULL && i < EXTENSION_COUNT; i++)
        foreign = foreign || (entry->fragment->seen[i] > 0 && !is_used(import, i));
    import->stripped += foreign;
    if (!foreign || entry->extensions_state != FIELD_SET)
        return;
    fragment_append_part(rest, entry->extensions, import->with);
    entry->extensions_state = rest->len > 0 ? FIELD_SET : FIELD_NULL;
    entry->extensions = rest->len > 0 ? str_text(rest) : NULL;
}

static void add_reason(struct import_loss *loss, const struct fragment_reason *what,
                       const struct entry *entry)
{
    for (size_t i = 0; i < loss->reason_count; i++) {
        struct import_reason *known = &loss->reasons[i];
        if (known->what.extension == what->extension &&
            strcmp(known->what.sentence, what->sentence) == 0) {
            known->what.count += what->count;
            return;
        }
    }
    if (loss->reason_count == LOSS_REASONS)
        return;
    struct import_reason *added = &loss->reasons[loss->reason_count++];
    added->what = *what;
    added->line = entry->line;
}

/* Counts the extensions of a page URL. False, and rejected: one is invalid; only --skip-invalid
 * accepts the page URL without it. */
static bool add_fragment(struct import *import, const struct entry *entry)
{
    const struct fragment *fragment = entry->fragment;
    const struct fragment_reason *first = first_loss(import, fragment);

    if (fragment == NULL)
        return true;
    for (unsigned i = 0; i < EXTENSION_COUNT; i++) {
        if (!is_used(import, i))
            continue;
        import->loss.seen[i] += fragment->seen[i];
        import->loss.lost[i] += fragment->loss.lost[i];
    }
    for (unsigned i = 0; i < fragment->loss.reason_count; i++)
        if (is_used(import, fragment->loss.reasons[i].extension))
            add_reason(&import->loss, &fragment->loss.reasons[i], entry);
    if (first == NULL || import->skip)
        return true;
    struct rejection rejection = {
        .line = entry->line,
        .loc = entry->loc,
        .code = first->code,
        .field = first->field,
    };
    snprintf(rejection.detail, sizeof rejection.detail, "%s %s", first->field, first->sentence);
    findings_refuse(&import->findings, &rejection);
    return false;
}

static bool add_entry(void *context, const struct entry *entry)
{
    struct reading *r = context;
    struct import_group *group;
    struct str rest = STR_INIT;
    struct entry kept;

    if (!add_fragment(r->import, entry) || !add_remarks(r->import, entry))
        return true;
    group = find_group(r, entry);
    if (group == NULL)
        return !has_failed(r);
    kept = *entry;
    if (r->import->source != NULL)
        kept.source = NULL;
    strip(r->import, &kept, &rest);
    r->no_memory = rest.failed;
    if (!rest.failed)
        r->spooled = spool_add(group->spool, &kept);
    str_done(&rest);
    return !has_failed(r);
}

static bool add_rejection(void *context, const struct rejection *rejection)
{
    struct reading *r = context;

    refuse_line(r, rejection);
    return !has_failed(r);
}

/* Adds the rejected lines to each group, since any of them may have their entries. */
static void add_rejected(struct reading *r)
{
    const struct import *import = r->import;
    struct entry entry;

    for (size_t i = 0; i < import->group_count; i++) {
        spool_rewind(import->rejected);
        while (r->spooled == SPOOL_OK && spool_next(import->rejected, &entry) == 1)
            r->spooled = spool_add(import->groups[i].spool, &entry);
    }
}

static void add_remark(void *context, enum rule_code code, uint64_t line, const char *element)
{
    struct reading *r = context;

    if (element != NULL && code == RULE_EXTRA_ELEMENT)
        add_name(&r->import->extra, element);
    if (element != NULL && code == RULE_LOC_IGNORED)
        add_name(&r->import->ignored, element);
    if (element != NULL && code == RULE_ENCODING_ODD)
        snprintf(r->import->coding, sizeof r->import->coding, "%s", element);
    findings_remark(&r->import->findings, line, NULL, RULE_BIT(code));
}

/* ---- reading --------------------------------------------------------------------------- */

static int report_stopped(const struct reading *r)
{
    const char *file = r->import->file;

    if (r->no_memory)
        return cli_fail(file, "out of memory");
    switch (r->spooled) {
    case SPOOL_FULL:
    case SPOOL_CROWDED:
        return cli_fail(file, "is larger than max_bulk allows");
    case SPOOL_NO_SPACE:
        return cli_fail(file, "no space left on the disk of %s", r->import->cli->config->database);
    case SPOOL_NO_MEMORY:
        return cli_fail(file, "out of memory");
    default:
        return cli_fail(file, "cannot be stored beside %s", r->import->cli->config->database);
    }
}

/* The reader's message without the place, which is printed before it. */
static const char *without_place(const struct reader_error *error)
{
    char place[80];

    snprintf(place, sizeof place, "line %" PRIu64 ", column %" PRIu64 ": ", error->line,
             error->column);
    if (strncmp(error->detail, place, strlen(place)) == 0)
        return error->detail + strlen(place);
    snprintf(place, sizeof place, "line %" PRIu64 ": ", error->line);
    return strncmp(error->detail, place, strlen(place)) == 0 ? error->detail + strlen(place)
                                                             : error->detail;
}

/* Reports why the whole list is unusable, and a remedy. */
static int report_unusable(const struct import *import, const struct reader_error *error)
{
    char where[4096];
    const char *hint = "";

    if (error->line == 0)
        snprintf(where, sizeof where, "%s", import->file);
    else if (error->column == 0)
        snprintf(where, sizeof where, "%s:%" PRIu64, import->file, error->line);
    else
        snprintf(where, sizeof where, "%s:%" PRIu64 ":%" PRIu64, import->file, error->line,
                 error->column);
    if (strcmp(error->code, "urlset-not-index") == 0)
        hint = "; register the file itself with `sitemapd add URL`, or import its page URLs with "
               "--urlset URL";
    else if (strcmp(error->code, "too-many-entries") == 0)
        hint = "; max_bulk_entries in [limits] allows more";
    else if (strcmp(error->code, "body-too-large") == 0)
        hint = "; max_bulk in [limits] allows more";
    return cli_fail(where, "%s (%s)%s; nothing was applied", without_place(error), error->code,
                    hint);
}

static int feed_all(struct import *import, int fd, struct reader *reader)
{
    static char chunk[CHUNK_BYTES];
    uint64_t fed = 0;

    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return cli_fail(import->file, "cannot be read: %s", strerror(errno));
        if (n == 0)
            break;
        if (reader_feed(reader, chunk, (size_t)n) != READER_OK)
            return EXIT_DONE; /* the caller asks the reader */
        fed += (uint64_t)n;
        import->bytes = fed;
        import->hash = import_hash(import->hash, chunk, (size_t)n);
        progress_update(&import->progress, fed);
    }
    reader_finish(reader);
    return EXIT_DONE;
}

/* Warns if crawlers could not unpack the file, which is read anyway. */
static void report_packing(const struct import *import, const struct reader *reader)
{
    const char *name = import->file;
    size_t len = strcspn(name, "?#");
    bool xml = len > 4 && strncasecmp(name + len - 4, ".xml", 4) == 0;
    enum sitemap_packing packing = sitemap_packing_reported(
        sitemap_packing_of(name, len), import->content_encoding, import->content_type);

    if (packing == SITEMAP_PACKING_GZIP && !reader_is_gzip(reader))
        cli_warn(
            name,
            "warning: is named .gz, but is not gzip: crawlers cannot decompress it (not-gzip)");
    else if (packing == SITEMAP_PACKING_PLAIN && xml && reader_is_gzip(reader))
        cli_warn(name, "warning: %s (%s)", rule_code_sentence(RULE_GZIP_UNMARKED),
                 rule_code_word(RULE_GZIP_UNMARKED));
}

/* Reads all of `fd` into groups. Returns EXIT_DONE, or has reported why the list is unusable. */
static int import_read(struct import *import, int fd)
{
    const struct config *config = import->cli->config;
    struct reading r = {.import = import, .spooled = SPOOL_OK};
    struct reader_options options = {
        .format = READER_AUTO,
        .pages = import->list == LIST_URLSET,
        .lenient = true,
        .allow_gzip = true,
        .drop_lastmod = import->drop_lastmod,
        .allow_export_fields = true,
        .max_bytes = config->max_bulk_bytes,
        .max_entries = config->max_bulk_entries,
        .now = (int64_t)time(NULL),
    };
    struct reader_sink sink = {&r, add_entry, add_rejection, add_remark};
    struct reader *reader = reader_new(&options, &sink);
    const struct reader_error *error;
    struct stat found;
    uint64_t total = 0;
    int status;

    if (reader == NULL)
        return cli_fail(import->file, "out of memory");
    /* An empty list empties the named index, if the shrink guard allows it; without --index it
     * changes nothing. */
    if (import->replace && import->index != NULL && add_group(import, NULL, 0) == NULL) {
        reader_free(reader);
        return cli_fail(import->file, "out of memory");
    }
    if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode))
        total = (uint64_t)found.st_size;
    progress_start(&import->progress, "reading", "bytes", total);
    reader_content_encoding(reader, import->content_encoding);
    status = feed_all(import, fd, reader);
    progress_end(&import->progress);
    error = reader_error(reader);
    if (status == EXIT_DONE && error->status == READER_OK) {
        report_packing(import, reader);
        add_rejected(&r);
    }
    if (status == EXIT_DONE && (error->status == READER_STOPPED || has_failed(&r)))
        status = report_stopped(&r);
    else if (status == EXIT_DONE && error->status != READER_OK)
        status = report_unusable(import, error);
    reader_free(reader);
    return status;
}

/* ---- the command ------------------------------------------------------------------------ */

#define STATE_CHARS "-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Reads --if-match as a tag. It needs exactly one index. */
static int read_if_match(struct cli *cli, struct import *import)
{
    const char *state = arguments_value(&cli->arguments, "--if-match");

    if (state == NULL)
        return EXIT_DONE;
    if (import->index == NULL)
        return cli_misuse("--if-match", "can only be used with --index or --urlset");
    if (*state == '\0' || strspn(state, STATE_CHARS) != strlen(state))
        return cli_misuse("--if-match",
                          "\"%s\" is not a valid state; `sitemapd index list --json` shows it",
                          state);
    str_append_format(&import->if_match, "\"%s\"", state);
    return import->if_match.failed ? cli_fail("--if-match", "out of memory") : EXIT_DONE;
}

static int read_options(struct cli *cli, struct import *import)
{
    const struct arguments *a = &cli->arguments;
    int status;

    import->file = strcmp(a->words[0], "-") == 0 ? "standard input" : a->words[0];
    import->index = arguments_value(a, "--urlset");
    import->list = import->index != NULL ? LIST_URLSET : LIST_INDEX;
    if (import->list == LIST_URLSET && arguments_has(a, "--index"))
        return cli_misuse("--urlset", "cannot be combined with --index");
    if (import->list == LIST_INDEX)
        import->index = arguments_value(a, "--index");
    import->source = arguments_value(a, "--source");
    import->replace = arguments_has(a, "--replace");
    import->skip = arguments_has(a, "--skip-invalid");
    import->dry_run = arguments_has(a, "--dry-run");
    import->drop_lastmod = arguments_has(a, "--drop-lastmod");
    import->drop_extensions = arguments_has(a, "--drop-extensions");
    if (import->drop_extensions && import->list != LIST_URLSET)
        return cli_misuse("--drop-extensions", "can only be used with --urlset");
    if (import->source != NULL && strcmp(import->source, "*") == 0) {
        if (!import->replace)
            return cli_misuse("--source", "'*' can only be used with --replace; otherwise give the "
                                          "name of the new entries' owner");
        import->anybodys = true;
        import->source = NULL;
    }
    if (import->source != NULL &&
        entry_check_name(import->source, strlen(import->source)) != RULE_OK)
        return cli_misuse("--source", "%s", rule_code_sentence(RULE_NAME));
    status = read_if_match(cli, import);
    return status == EXIT_DONE ? session_max_removed(cli, &import->max_removed) : status;
}

/* Finds the named list, or all lists. */
static int prepare(struct cli *cli, struct import *import)
{
    const json_t *named, *word;
    size_t i;
    int status;

    import->findings.max = cli->config->max_rejections;
    import->findings.examples = FINDINGS_EXAMPLES;
    import->owner = import->source != NULL ? import->source : api_owner(cli->backend);
    if (import->owner == NULL)
        return EXIT_COULD_NOT;
    status = names_list_option(cli, &named);
    json_array_foreach(json_object_get(named, "with"), i, word) import->with |=
        extension_named(json_string_value(word));
    if (status == EXIT_DONE && import->replace && import->index == NULL) {
        import->registry = api_registry(cli->backend);
        status = import->registry != NULL ? EXIT_DONE : EXIT_COULD_NOT;
    }
    return status;
}

#define PROGRESS_AFTER_MS 1000

/* Prints that the command waits, if the list comes by a pipe whose writer is slow. */
static void await_writer(const char *name, int fd)
{
    struct pollfd pipe = {.fd = fd, .events = POLLIN};
    struct stat found;

    if (fstat(fd, &found) == 0 && S_ISFIFO(found.st_mode)) {
        if (poll(&pipe, 1, PROGRESS_AFTER_MS) == 0)
            cli_warn(name, "is a pipe with no data yet; waiting for it");
        while (poll(&pipe, 1, -1) < 0 && errno == EINTR)
            ;
    }
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

static int read_answer(struct import *import, const struct fetch_reply *reply, int fd)
{
    char codings[CODINGS_TEXT];
    int status;

    import->content_encoding =
        fetch_header_joined(reply, "Content-Encoding", codings, sizeof codings);
    import->content_type = fetch_header(reply, "Content-Type");
    status = import_read(import, fd);
    import->content_encoding = import->content_type = NULL;
    return status;
}

/* Fetches a list completely before it is read. Requests it without compression, so that a page of
 * this catalogue is recognised. */
static int read_url(struct cli *cli, struct import *import)
{
    struct reach reach;
    struct reach_answer answer;
    int status = reach_init(cli, cli->arguments.words[0], false, &reach), fd = -1;

    if (status == EXIT_DONE) {
        reach_fetch(&reach, NULL, "Accept-Encoding: identity\r\n", NULL, &answer);
        if (answer.status != FETCH_OK)
            status = cli_fail(import->file, "cannot be fetched: %s", answer.reply.why);
        else if (answer.way.verdict != HOP_END)
            status =
                cli_fail(import->file, "cannot be fetched: %s", hop_sentence(answer.way.verdict));
        else if (answer.reply.status != 200)
            status = cli_fail(import->file, "cannot be fetched: it returned status %u",
                              answer.reply.status);
        else if (answer.reply.cut)
            status = cli_fail(import->file, "is larger than 50 MiB");
        else if ((fd = memfd_create("list", MFD_CLOEXEC)) < 0 ||
                 !file_write(fd, str_text(&answer.reply.body), answer.reply.body.len) ||
                 lseek(fd, 0, SEEK_SET) != 0)
            status = cli_fail(import->file, "cannot be stored: %s", strerror(errno));
        else
            status = read_answer(import, &answer.reply, fd);
        reach_answer_done(&answer);
    }
    if (fd >= 0)
        close(fd);
    reach_done(&reach);
    return status;
}

static int read_list(struct cli *cli, struct import *import)
{
    const char *name = cli->arguments.words[0];
    bool is_stdin = strcmp(name, "-") == 0;
    int fd, status;

    if (strncmp(name, "https://", 8) == 0 || strncmp(name, "http://", 7) == 0)
        return read_url(cli, import);
    fd = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return cli_fail(name, "cannot be read: %s", strerror(errno));
    if (!is_stdin)
        await_writer(name, fd);
    status = import_read(import, fd);
    if (!is_stdin)
        close(fd);
    return status;
}

/* Checks all changes before the first is applied, so that an import of several indexes is all or
 * nothing. If an entry was rejected already, checks the rest to report everything at once. */
static int check_first(struct import *import, bool *good)
{
    struct findings *f = &import->findings, found = {.max = f->max, .examples = f->examples};
    int status;

    if (import->group_count <= 1 && (f->refused == 0 || import->skip))
        return EXIT_DONE;
    status = import_apply(import, true, &found);
    *good = f->refused + found.refused == 0 || import->skip;
    if (!*good || status != EXIT_DONE) /* otherwise the second pass reports them */
        findings_merge(f, &found);
    findings_done(&found);
    return status;
}

/* Prints the revisions that this import made, such as "(revisions 7, 8)", or the current one. */
static void print_revisions(const struct import *import)
{
    size_t made = 0, printed = 0;

    for (size_t i = 0; i < import->group_count; i++)
        made += import->groups[i].revision > 0;
    printf(" (%s ", plural(made > 1 ? made : 1, "revision", "revisions"));
    for (size_t i = 0; i < import->group_count; i++)
        if (import->groups[i].revision > 0)
            printf("%s%" PRIu64, printed++ > 0 ? ", " : "", import->groups[i].revision);
    if (made == 0)
        printf("%" PRIu64, import->revision);
    putchar(')');
}

static void print_summary(const struct import *import, uint64_t read)
{
    output_print_more(import->created + import->updated + import->removed, import->shown);
    printf("%s: read %" PRIu64 ": %s%" PRIu64 " created, %" PRIu64 " updated, %" PRIu64
           " unchanged, %" PRIu64 " removed, ",
           import->file, read, import->dry_run ? "a dry run, nothing applied: " : "",
           import->created, import->updated, import->unchanged, import->removed);
    if (import->moved > 0)
        printf("%" PRIu64 " moved from another index, ", import->moved);
    printf("%" PRIu64 " rejected", import->findings.refused);
    for (unsigned i = 0; i < EXTENSION_COUNT; i++)
        if (import->loss.seen[i] > 0)
            printf(", %" PRIu64 " of %" PRIu64 " %s left out", import->loss.lost[i],
                   import->loss.seen[i], noun_of(i, import->loss.seen[i]));
    if (!import->dry_run && import->revision > 0)
        print_revisions(import);
    putchar('\n');
    if (import->spared > 0)
        cli_warn(import->file,
                 "%" PRIu64 " %s of other sources %s left as %s; `--source '*'` replaces %s too",
                 import->spared, plural(import->spared, "entry", "entries"),
                 plural(import->spared, "was", "were"), plural(import->spared, "it is", "they are"),
                 plural(import->spared, "it", "them"));
}

static int apply_list(struct import *import)
{
    uint64_t read_refused = import->findings.refused, read = import_count(import) + read_refused;
    bool good = true;
    int status;

    if (import->replace && import->group_count == 0 && read == 0)
        return cli_fail(import->file, "is empty, and names no index whose entries it replaces; "
                                      "to empty one, name it with --index and allow it with "
                                      "--max-removed");
    status = check_first(import, &good);

    if (status == EXIT_DONE && good)
        status = import_apply(import, import->dry_run, &import->findings);
    report_findings(import, &import->findings, import->file);
    report_loss(import);
    if (import->stripped > 0)
        cli_warn(import->file,
                 "%" PRIu64 " %s extensions that the urlset does not support; they were dropped",
                 import->stripped, plural(import->stripped, "page URL has", "page URLs have"));
    if (status != EXIT_DONE)
        return status;
    if (import->findings.refused > 0 && !import->skip)
        return cli_fail(
            import->file, "%" PRIu64 " of %" PRIu64 " %s rejected, nothing was applied%s",
            import->findings.refused, read, plural(read, "entry", "entries"),
            import->loss.reason_count > 0
                ? "; --skip-invalid applies the good ones, without the extensions that are invalid"
            : import->findings.refused < read ? "; --skip-invalid applies the good ones"
                                              : "");
    print_summary(import, read);
    if (read > 0 && import->findings.refused == read)
        return cli_fail(import->file, "every entry was rejected; nothing was applied");
    if (import->unchanged == read && import->removed == 0 && read > 0)
        import_report_own(import);
    return EXIT_DONE;
}

static void import_done(struct import *import)
{
    for (size_t i = 0; i < import->group_count; i++) {
        spool_free(import->groups[i].spool);
        free(import->groups[i].index_url);
    }
    free(import->groups);
    spool_free(import->rejected);
    registry_unref(import->registry);
    findings_done(&import->findings);
    map_done(&import->locs);
    str_done(&import->if_match);
}

int command_import(struct cli *cli)
{
    struct import import = {.cli = cli, .hash = IMPORT_HASH_BEGIN};
    int status = read_options(cli, &import);

    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status == EXIT_DONE)
        status = prepare(cli, &import);
    if (status == EXIT_DONE)
        status = read_list(cli, &import);
    if (status == EXIT_DONE)
        status = apply_list(&import);
    else
        report_findings(&import, &import.findings, import.file);
    import_done(&import);
    return status;
}
