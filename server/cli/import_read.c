#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/cli/entry_text.h"
#include "server/cli/import.h"
#include "server/rules/str.h"

#define CHUNK_BYTES 65536

struct reading {
    struct import *import;
    enum spool_status spooled;
    bool no_memory;
};

uint64_t import_count(const struct import *import)
{
    uint64_t count = 0;

    for (size_t i = 0; i < import->group_count; i++)
        count += spool_count(import->groups[i].spool);
    return count;
}

/* ---- groups ---------------------------------------------------------------------------- */

static struct import_group *add_group(struct import *import, char *index_url, int64_t index_id)
{
    struct import_group *grown =
        reallocarray(import->groups, import->group_count + 1, sizeof *grown);
    struct spool *spool = spool_new(import->folder, import->cli->config.max_bulk_bytes);

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

    import_report_remark(&r->import->findings, code, line);
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
        return cli_fail(file, "no space left in %s", r->import->folder);
    case SPOOL_NO_MEMORY:
        return cli_fail(file, "out of memory");
    default:
        return cli_fail(file, "cannot be kept in %s", r->import->folder);
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
        progress_update(&import->progress, fed);
    }
    reader_finish(reader);
    return EXIT_DONE;
}

int import_read(struct import *import, int fd)
{
    const struct config *config = &import->cli->config;
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
