/* `import`: reads a list into spools, one for each change that applies it (all of the list; with
 * --replace one for each index), checks what several changes or a refusal make worth checking,
 * applies them one after the other, and tells what was found. One thread, but for what the writer
 * calls while it is waited for. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/base/map.h"
#include "server/base/str.h"
#include "server/base/text.h"
#include "server/cli/backend.h"
#include "server/cli/commands.h"
#include "server/cli/output.h"
#include "server/cli/session.h"
#include "server/input/reader.h"
#include "server/rules/entry.h"
#include "server/rules/scope.h"
#include "server/rules/url.h"

struct finding {
    uint64_t line;
    char *loc; /* owned; NULL: there was none */
    enum rule_code code;
    char *detail; /* owned */
};

/* What an import found on the way: refused entries, of which a bounded number is kept, remarks, and
 * locs that stand more than once. */
struct import_report {
    uint32_t max;
    uint64_t refused; /* all, also those not kept */
    uint64_t refused_by[RULE_CODE_COUNT];
    uint32_t kept;
    struct finding *items; /* owned: the first `max`, and of each code the first few */
    uint64_t remarks[RULE_CODE_COUNT];
    uint64_t remark_lines[RULE_CODE_COUNT]; /* where each stood first */
    struct map locs;                        /* what stood in the list so far, see is_repeated */
};

/* What one change applies: all of the list, or with --replace the part of one index. */
struct import_group {
    char *index_url; /* owned; NULL: as --index says */
    int64_t index_id;
    struct spool *spool;
};

struct import {
    struct cli *cli;
    const char *file;   /* as named in messages */
    const char *index;  /* --index or NULL */
    const char *source; /* --source: who owns all that is made; NULL: what a line says */
    bool anybodys;      /* --source '*': a replace acts on the entries of all owners */
    bool replace, skip, dry_run, drop_lastmod;
    int64_t max_removed;
    struct registry *registry; /* replace without --index: tells which index a loc belongs to */
    size_t group_count;
    struct import_group *groups;
    struct import_report findings;
    struct progress progress;
    uint64_t bytes, hash; /* of the file as it was read, see import_hash */
    uint64_t applied;     /* entries of the groups before this one, for the bar */
    uint64_t created, updated, unchanged, removed, moved, spared, revision;
};

/* The entries that were read and not refused by the reader. */
static uint64_t import_count(const struct import *import)
{
    uint64_t count = 0;

    for (size_t i = 0; i < import->group_count; i++)
        count += spool_count(import->groups[i].spool);
    return count;
}

/* ---- what was found -------------------------------------------------------------------- */

/* Told of each code, where there is too much to tell it all. */
#define EXAMPLES 5u

/* False when out of memory. */
static bool import_report_init(struct import_report *f, uint32_t max)
{
    memset(f, 0, sizeof *f);
    f->max = max;
    f->items = calloc((size_t)max + EXAMPLES * RULE_CODE_COUNT, sizeof *f->items);
    return f->items != NULL;
}

static void import_report_done(struct import_report *f)
{
    for (uint32_t i = 0; i < f->kept; i++) {
        free(f->items[i].loc);
        free(f->items[i].detail);
    }
    free(f->items);
    map_done(&f->locs);
    memset(f, 0, sizeof *f);
}

static void import_report_refuse(struct import_report *f, const struct rejection *rejection)
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

/* `line` 0: of the whole list. */
static void import_report_remarks(struct import_report *f, rule_set remarks, uint64_t line)
{
    for (int code = RULE_OK + 1; code < RULE_CODE_COUNT && remarks >> code != 0; code++)
        if ((remarks & RULE_BIT(code)) != 0 && f->remarks[code]++ == 0)
            f->remark_lines[code] = line;
}

/* FNV-1a, begun with IMPORT_HASH_BEGIN and carried on. */
#define IMPORT_HASH_BEGIN 0xcbf29ce484222325u
static uint64_t import_hash(uint64_t hash, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return hash;
}

/* Whether the loc stood in the list before, by 63 bits of its hash: at a million locs, 16 bytes or
 * so each, the chance that two share them is one in 18 million. Past LOCS_MAX, or out of memory, no
 * new ones are noted. */
#define LOCS_MAX 50000000u /* twice what max_bulk_entries may be */

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

/* Notes an entry's remarks. False, and refused, where its loc stood in the list before: were the
 * last to count, the same list imported again would change the entry there and back. */
static bool import_report_take(struct import_report *f, const struct entry *entry)
{
    if (is_repeated(&f->locs, entry->loc)) {
        struct rejection repeated = {
            .line = entry->line,
            .loc = entry->loc,
            .code = RULE_DUPLICATE,
            .field = "loc",
        };

        import_report_refuse(f, &repeated);
        return false;
    }
    import_report_remarks(f, entry->remarks, entry->line);
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
static void tell_remedy(struct cli *cli, const struct import_report *f, const char *file)
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
            if (!session_has_sites(cli))
                cli_note(file, "line %" PRIu64 ": make the site with `sitemapd site add %.*s`",
                         item->line, (int)url.origin_len, url.text);
            else
                cli_note(file,
                         "line %" PRIu64
                         ": `sitemapd site update ORIGIN --add-cross-host %.*s`, then "
                         "--index URL; another site is made with `sitemapd site add %.*s`",
                         item->line, (int)url.host_len, url.text + url.host_at, (int)url.origin_len,
                         url.text);
            return;
        }
    }
}

/* Tells on stderr what was refused (each `sitemapd: FILE:LINE: LOC: why (code)`) and remarked.
 * Where more than `max` was, the first few of each code, and how many more there are. */
static void import_report_tell(struct cli *cli, const struct import_report *f, const char *file)
{
    tell_refused(f, file);
    tell_remedy(cli, f, file);
    for (int code = 0; code < RULE_CODE_COUNT; code++)
        if (f->remarks[code] > 0 && f->remark_lines[code] == 0) /* of a site, not of a line */
            cli_note(file, "warning: %s (%s)", rule_code_remark((enum rule_code)code),
                     rule_code_word((enum rule_code)code));
        else if (f->remarks[code] > 0)
            cli_note(file, "warning: %s (%s): %" PRIu64 " in all, first in line %" PRIu64,
                     rule_code_remark((enum rule_code)code), rule_code_word((enum rule_code)code),
                     f->remarks[code], f->remark_lines[code]);
}

/* ---- a list of our own ------------------------------------------------------------------ */

static bool is_same(const struct import *import, const struct registry_index *index,
                    uint32_t number)
{
    struct backend *backend = import->cli->backend;
    struct backend_page page;
    struct str text = STR_INIT;
    bool found = false;
    bool same = backend_page(backend, index, number, &page) == EXIT_DONE &&
                page.entries == import_count(import) &&
                backend_render(backend, index, number, &found, &text) == EXIT_DONE && found &&
                !text.failed && text.len == import->bytes &&
                import_hash(IMPORT_HASH_BEGIN, str_text(&text), text.len) == import->hash;

    str_done(&text);
    return same;
}

static void tell(const struct import *import, const struct registry_site *site,
                 const struct registry_index *index, uint32_t number)
{
    char path[PAGE_PATH_SIZE];

    scope_page_path(index->path, index->page_pattern, number, false, path);
    cli_note(import->file,
             "is what sitemapd itself serves at %s%s: importing that never changes anything; take "
             "the list from where it is made",
             site->origin, path);
}

/* Tells where the file is, byte for byte, a page of this catalogue's own: since crawlers' paths
 * lead to us, the public URL of an index gives what it has already. */
static void import_tell_own(const struct import *import)
{
    struct registry *registry = backend_registry(import->cli->backend, REGISTRY_HELD);
    bool found = false;

    if (registry == NULL)
        return;
    for (size_t s = 0; s < registry->site_count; s++)
        for (size_t i = 0; !found && i < registry->sites[s].index_count; i++) {
            const struct registry_index *index = &registry->sites[s].indexes[i];

            for (size_t n = 0; !found && n < index->page_count; n++) {
                found = is_same(import, index, index->pages[n]);
                if (found)
                    tell(import, &registry->sites[s], index, index->pages[n]);
            }
        }
    registry_unref(registry);
}

/* ---- applying --------------------------------------------------------------------------- */

/* Called on the writer's thread, while ours waits for it. */
static void refuse_applied(void *context, const struct rejection *rejection)
{
    struct import *import = context;

    import_report_refuse(&import->findings, rejection);
}

static void remark_applied(void *context, const struct entry *entry, rule_set remarks)
{
    struct import *import = context;

    import_report_remarks(&import->findings, remarks, entry->line);
}

static void take_progress(void *context, uint64_t entries_done)
{
    struct import *import = context;

    progress_update(&import->progress, import->applied + entries_done);
}

/* A change of many refuses as a whole because of single entries, which on_reject has told of, or
 * for a reason of its own (the guard, an unknown index), which is told here. */
static int apply_group(struct import *import, struct import_group *group, bool dry_run)
{
    const char *own = import->source != NULL ? import->source : COMMAND_SOURCE;
    struct change change = {
        .kind = import->replace ? CHANGE_REPLACE : CHANGE_BULK,
        .source = own,
        .replace_source = import->replace && !import->anybodys ? own : NULL,
        .rows = group->spool,
        .skip = import->skip,
        .dry_run = dry_run,
        .index_name = group->index_url != NULL ? group->index_url : import->index,
        .max_removed = import->max_removed,
        .on_reject = refuse_applied,
        .on_remark = remark_applied,
        .on_progress = take_progress,
        .context = import,
    };
    uint64_t refused_before = import->findings.refused;
    struct change_result result;
    const char *what = change.index_name != NULL ? change.index_name : import->file;
    enum catalogue_status status = backend_apply(import->cli->backend, &change, &result);

    group->spool = result.rows;
    result.rows = NULL;
    if (status == CATALOGUE_OK) {
        import->created += result.created;
        import->updated += result.updated;
        import->unchanged += result.unchanged;
        import->removed += result.removed;
        import->moved += result.moved;
        import->spared += result.spared;
        import_report_remarks(&import->findings, result.remarks, 0);
        if (result.revision > import->revision)
            import->revision = result.revision;
        return EXIT_DONE;
    }
    if (status == CATALOGUE_REFUSED && !import->skip && result.code != RULE_SHRINK_GUARD &&
        import->findings.refused > refused_before)
        return EXIT_DONE;
    return session_tell(import->cli, &change, what, &result);
}

/* Applies the groups one after the other, or checks them only. What single entries are refused for
 * is in the findings. Returns EXIT_DONE, or has told what refuses a group as a whole. */
static int import_apply(struct import *import, bool dry_run)
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
        status = apply_group(import, &import->groups[i], dry_run);
        import->applied += spool_count(import->groups[i].spool);
        done += status == EXIT_DONE;
    }
    progress_end(&import->progress);
    if (status != EXIT_DONE && !dry_run && done > 0)
        cli_fail(import->file, "%zu of %zu indexes %s replaced before that", done,
                 import->group_count, plural(done, "was", "were"));
    return status;
}

#define CHUNK_BYTES 65536

struct reading {
    struct import *import;
    enum spool_status spooled;
    bool no_memory;
};

/* ---- groups ---------------------------------------------------------------------------- */

static struct import_group *add_group(struct import *import, char *index_url, int64_t index_id)
{
    struct import_group *grown =
        reallocarray(import->groups, import->group_count + 1, sizeof *grown);
    struct spool *spool = backend_spool(import->cli->backend, import->cli->config->max_bulk_bytes);

    if (grown != NULL)
        import->groups = grown;
    if (grown == NULL || spool == NULL) {
        spool_free(spool);
        free(index_url);
        return NULL;
    }
    grown[import->group_count] = (struct import_group){index_url, index_id, spool};
    return &grown[import->group_count++];
}

/* The index that a replace without --index puts `entry` into; NULL and told in the findings where
 * there is none. */
static const struct registry_index *find_index(struct import *import, const struct entry *entry,
                                               const struct registry_site **site)
{
    struct rejection rejection = {.line = entry->line, .loc = entry->loc};
    struct placement placement = {0};
    struct url loc;

    rejection.code = url_parse(entry->loc, strlen(entry->loc), &loc, NULL);
    if (rejection.code == RULE_OK)
        rejection.code = registry_place(import->registry, &loc, entry->index, &placement);
    if (rejection.code == RULE_OK && placement.index != NULL) {
        *site = placement.site;
        return placement.index;
    }
    rejection.field = "loc";
    if (rejection.code == RULE_OK)
        rejection.code = RULE_INDEX_NEEDED;
    snprintf(rejection.detail, sizeof rejection.detail, "%s",
             registry_place_why(import->registry, rejection.code, &loc, placement.site));
    import_report_refuse(&import->findings, &rejection);
    return NULL;
}

/* The group for `entry`; NULL where it was refused, or (then r->no_memory) memory lacks. */
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
    index = find_index(import, entry, &site);
    if (index == NULL)
        return NULL;
    /* Lists come in runs of one index, so the last group is looked at first. */
    for (size_t i = import->group_count; i > 0; i--)
        if (import->groups[i - 1].index_id == index->id)
            return &import->groups[i - 1];
    text_append_index_url(&url, site, index);
    group = url.failed ? NULL : add_group(import, url.data, index->id);
    r->no_memory = group == NULL;
    return group;
}

/* ---- the reader's sink ----------------------------------------------------------------- */

static bool take_entry(void *context, const struct entry *entry)
{
    struct reading *r = context;
    struct import_group *group;
    struct entry kept;

    if (!import_report_take(&r->import->findings, entry))
        return true;
    group = find_group(r, entry);
    if (group == NULL)
        return !r->no_memory;
    kept = *entry;
    if (r->import->source != NULL)
        kept.source = NULL;
    r->spooled = spool_add(group->spool, &kept);
    return r->spooled == SPOOL_OK;
}

static bool take_rejection(void *context, const struct rejection *rejection)
{
    struct reading *r = context;

    import_report_refuse(&r->import->findings, rejection);
    return true;
}

static void take_remark(void *context, enum rule_code code, uint64_t line)
{
    struct reading *r = context;

    import_report_remarks(&r->import->findings, RULE_BIT(code), line);
}

/* ---- reading --------------------------------------------------------------------------- */

static int tell_stopped(const struct reading *r)
{
    const char *file = r->import->file;

    if (r->no_memory)
        return cli_fail(file, "out of memory");
    switch (r->spooled) {
    case SPOOL_FULL:
    case SPOOL_CROWDED:
        return cli_fail(file, "is larger than max_bulk allows");
    case SPOOL_NO_SPACE:
        return cli_fail(file, "no space left beside %s", r->import->cli->config->database);
    case SPOOL_NO_MEMORY:
        return cli_fail(file, "out of memory");
    default:
        return cli_fail(file, "cannot be kept beside %s", r->import->cli->config->database);
    }
}

/* What a reader says of an error, without the place that stands before it already. */
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

/* Tells what is wrong with the list as a whole, and what to do instead. */
static int tell_unusable(const struct import *import, const struct reader_error *error)
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
        hint = "; register the file itself with `sitemapd add URL`";
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

/* Reads all of `fd` into groups. Returns EXIT_DONE, or has told why the list is of no use. */
static int import_read(struct import *import, int fd)
{
    const struct config *config = import->cli->config;
    struct reading r = {.import = import, .spooled = SPOOL_OK};
    struct reader_options options = {
        .format = READER_AUTO,
        .lenient = true,
        .allow_gzip = true,
        .drop_lastmod = import->drop_lastmod,
        .allow_export_fields = true,
        .max_bytes = config->max_bulk_bytes,
        .max_entries = config->max_bulk_entries,
        .now = (int64_t)time(NULL),
    };
    struct reader_sink sink = {&r, take_entry, take_rejection, take_remark};
    struct reader *reader = reader_new(&options, &sink);
    const struct reader_error *error;
    struct stat found;
    uint64_t total = 0;
    int status;

    if (reader == NULL)
        return cli_fail(import->file, "out of memory");
    /* An empty list makes the index empty, if the guard is told so; others it leaves alone. */
    if (import->replace && import->index != NULL && add_group(import, NULL, 0) == NULL) {
        reader_free(reader);
        return cli_fail(import->file, "out of memory");
    }
    if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode))
        total = (uint64_t)found.st_size;
    progress_start(&import->progress, "reading", "bytes", total);
    status = feed_all(import, fd, reader);
    progress_end(&import->progress);
    error = reader_error(reader);
    if (status == EXIT_DONE && error->status == READER_STOPPED)
        status = tell_stopped(&r);
    else if (status == EXIT_DONE && error->status != READER_OK)
        status = tell_unusable(import, error);
    reader_free(reader);
    return status;
}

/* ---- the command ------------------------------------------------------------------------ */

static int read_options(struct cli *cli, struct import *import)
{
    const struct arguments *a = &cli->arguments;

    import->file = strcmp(a->words[0], "-") == 0 ? "standard input" : a->words[0];
    import->index = arguments_value(a, "--index");
    import->source = arguments_value(a, "--source");
    import->replace = arguments_has(a, "--replace");
    import->skip = arguments_has(a, "--skip-invalid");
    import->dry_run = arguments_has(a, "--dry-run");
    import->drop_lastmod = arguments_has(a, "--drop-lastmod");
    if (import->source != NULL && strcmp(import->source, "*") == 0) {
        if (!import->replace)
            return cli_misuse("--source", "'*' says whose entries --replace acts on; without it, "
                                          "name who owns what is made");
        import->anybodys = true;
        import->source = NULL;
    }
    if (import->source != NULL &&
        entry_check_name(import->source, strlen(import->source)) != RULE_OK)
        return cli_misuse("--source", "%s", rule_code_sentence(RULE_NAME));
    return session_max_removed(cli, &import->max_removed);
}

/* What reading needs: where findings go, the indexes there are. */
static int prepare(struct cli *cli, struct import *import)
{
    const struct registry_index *named;

    if (!import_report_init(&import->findings, cli->config->max_rejections))
        return cli_fail("import", "out of memory");
    import->registry = backend_registry(cli->backend, 0);
    return import->registry == NULL ? EXIT_COULD_NOT
                                    : names_index_option(cli, import->registry, &named);
}

#define TELL_WAIT_MS 1000

/* A pipe may bring the list, and who writes it may take its time: that is told. */
static void await_writer(const char *name, int fd)
{
    struct pollfd pipe = {.fd = fd, .events = POLLIN};
    struct stat found;

    if (fstat(fd, &found) == 0 && S_ISFIFO(found.st_mode)) {
        if (poll(&pipe, 1, TELL_WAIT_MS) == 0)
            cli_note(name, "is a pipe into which nobody has written yet; waiting for it");
        while (poll(&pipe, 1, -1) < 0 && errno == EINTR)
            ;
    }
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

static int read_list(const struct cli *cli, struct import *import)
{
    const char *name = cli->arguments.words[0];
    bool is_stdin = strcmp(name, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int status;

    if (fd < 0 && strstr(name, "://") != NULL)
        return cli_fail(name, "is a URL, and a file is read: curl -sf %s | sitemapd import -",
                        name);
    if (fd < 0)
        return cli_fail(name, "cannot be read: %s", strerror(errno));
    if (!is_stdin)
        await_writer(name, fd);
    status = import_read(import, fd);
    if (!is_stdin)
        close(fd);
    return status;
}

/* All or nothing. Several indexes are several changes, so all are checked before the first is
 * applied; and where something is refused already, the rest is checked to tell all of it at
 * once. */
static int check_first(struct import *import, bool *good)
{
    int status = EXIT_DONE;

    if (import->group_count > 1 || (import->findings.refused > 0 && !import->skip)) {
        struct import_report *f = &import->findings;
        uint64_t refused = f->refused;
        uint32_t kept = f->kept;
        uint64_t remarks[RULE_CODE_COUNT];

        memcpy(remarks, f->remarks, sizeof remarks);
        status = import_apply(import, true);
        *good = f->refused == 0 || import->skip;
        if (*good && status == EXIT_DONE) { /* the second pass tells them again */
            while (f->kept > kept) {
                f->kept--;
                free(f->items[f->kept].loc);
                free(f->items[f->kept].detail);
            }
            f->refused = refused;
            memcpy(f->remarks, remarks, sizeof remarks);
        }
    }
    return status;
}

static void print_summary(const struct import *import, uint64_t read)
{
    printf("%s: read %" PRIu64 ": %s%" PRIu64 " created, %" PRIu64 " updated, %" PRIu64
           " unchanged, %" PRIu64 " removed, ",
           import->file, read, import->dry_run ? "a dry run, nothing applied: " : "",
           import->created, import->updated, import->unchanged, import->removed);
    if (import->moved > 0)
        printf("%" PRIu64 " moved from another index, ", import->moved);
    printf("%" PRIu64 " refused", import->findings.refused);
    if (!import->dry_run && import->revision > 0)
        printf(" (revision %" PRIu64 ")", import->revision);
    putchar('\n');
    if (import->spared > 0)
        cli_note(import->file,
                 "%" PRIu64 " %s of other sources %s left as %s; `--source '*'` replaces %s too",
                 import->spared, plural(import->spared, "entry", "entries"),
                 plural(import->spared, "was", "were"), plural(import->spared, "it is", "they are"),
                 plural(import->spared, "it", "them"));
}

static int apply_list(struct import *import)
{
    uint64_t read_refused = import->findings.refused, read = import_count(import) + read_refused;
    bool good = true;
    int status = check_first(import, &good);

    if (status == EXIT_DONE && good)
        status = import_apply(import, import->dry_run);
    import_report_tell(import->cli, &import->findings, import->file);
    if (status != EXIT_DONE)
        return status;
    if (import->findings.refused > 0 && !import->skip)
        return cli_fail(
            import->file, "%" PRIu64 " of %" PRIu64 " %s refused, nothing was applied%s",
            import->findings.refused, read, plural(read, "entry", "entries"),
            import->findings.refused < read ? "; --skip-invalid applies the good ones" : "");
    print_summary(import, read);
    if (import->unchanged == read && import->removed == 0 && read > 0)
        import_tell_own(import);
    return EXIT_DONE;
}

static void import_done(struct import *import)
{
    for (size_t i = 0; i < import->group_count; i++) {
        spool_free(import->groups[i].spool);
        free(import->groups[i].index_url);
    }
    free(import->groups);
    registry_unref(import->registry);
    if (import->findings.items != NULL)
        import_report_done(&import->findings);
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
    else if (import.findings.items != NULL)
        import_report_tell(cli, &import.findings, import.file);
    import_done(&import);
    return status;
}
