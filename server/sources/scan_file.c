#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "server/sources/honest.h"
#include "server/sources/read.h"
#include "server/sources/scan_pass.h"

#define CHANGING_ROUNDS   3
#define CHANGING_PAUSE_MS 100
#define AGAIN_LEAST_MS    500

/* What a file's content is refused for: as long as the file stays as it is, so does that. All
 * other problems may end without the file's being touched. */
static bool is_of_content(const char *problem)
{
    static const char *const words[] = {
        "malformed-xml", "truncated",        "doctype",       "too-many-urls", "file-too-large",
        "gzip-bomb",     "malformed-gzip",   "text-too-long", "not-utf8",      "empty-file",
        "not-a-sitemap", "nesting-too-deep", "nested-index",
    };
    for (size_t i = 0; problem && i < sizeof words / sizeof words[0]; i++)
        if (strcmp(problem, words[i]) == 0)
            return true;
    return false;
}

static bool is_unchanged(const struct record *kept, const struct stat *st)
{
    return kept->inode == st->st_ino && kept->size == (uint64_t)st->st_size &&
           kept->mtime_ns == read_mtime_ns(st);
}

static bool must_be_read(const struct record *kept, const struct stat *st)
{
    return !is_unchanged(kept, st) || (kept->state == SOURCE_FILE_QUARANTINED && !kept->refused &&
                                       !is_of_content(kept->problem));
}

/* It has, or had, content that was good. */
static bool was_sitemap(const struct record *kept)
{
    return kept && (kept->has_entry || kept->state == SOURCE_FILE_LISTED ||
                    (kept->state == SOURCE_FILE_QUARANTINED && (kept->hash[0] | kept->hash[1])));
}

/* What the file is told as; NULL where nobody needs to know. */
static const char *name_of(const struct record *kept, const struct record *now)
{
    bool was_bad = kept && kept->state == SOURCE_FILE_QUARANTINED;
    bool was_listed = kept && kept->has_entry;
    switch (now->state) {
    case SOURCE_FILE_QUARANTINED:
        return was_bad && strcmp(kept->problem ? kept->problem : "", now->problem) == 0 ? NULL
                                                                                        : "problem";
    case SOURCE_FILE_LISTED:
        return was_bad ? "recovered" : !was_listed ? "new" : now->moved ? "changed" : NULL;
    case SOURCE_FILE_EMPTY:
        return kept && kept->state == SOURCE_FILE_EMPTY ? NULL : "empty";
    case SOURCE_FILE_IGNORED:
        return was_bad ? "recovered" : NULL;
    case SOURCE_FILE_GONE:
        return "gone";
    }
    return NULL;
}

/* Takes what was found of a file, unless it is just what is kept. */
static bool take(struct scan_pass *pass, const struct record *kept, struct record *now)
{
    bool failed = false;
    bool missing = now->state == SOURCE_FILE_LISTED && kept && !kept->has_entry;
    if (kept && record_equal(kept, now) && !missing && !kept->moved && !pass->resubmit)
        return true;
    now->named = name_of(kept, now);
    struct record_list *list = &pass->found;
    now->path = record_keep(list, now->path, &failed);
    now->lastmod = record_keep(list, now->lastmod, &failed);
    now->newest_lastmod = record_keep(list, now->newest_lastmod, &failed);
    now->problem = record_keep(list, now->problem, &failed);
    now->detail = record_keep(list, now->detail, &failed);
    pass->out_of_memory = failed || record_add(list, now) == NULL;
    return !pass->out_of_memory;
}

static int64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void scan_again(struct scan_pass *pass, uint32_t ms)
{
    ms = ms < AGAIN_LEAST_MS ? AGAIN_LEAST_MS : ms;
    if (pass->out->again_ms == 0 || pass->out->again_ms > ms)
        pass->out->again_ms = ms;
}

/* Sets by what the file will be known again. Changed so shortly ago that its time might not show
 * the next change, it will not: as git does with its index. */
static void set_identity(struct scan_pass *pass, struct record *now, const struct stat *st,
                         int64_t read_at_ms)
{
    int64_t age_ms = read_at_ms - read_mtime_ns(st) / 1000000;
    bool racy = age_ms < SCAN_RACY_MS && age_ms > -SCAN_RACY_MS;
    now->device = st->st_dev;
    now->inode = racy ? 0 : st->st_ino;
    now->size = (uint64_t)st->st_size;
    now->mtime_ns = read_mtime_ns(st);
    if (racy)
        scan_again(pass, SCAN_RACY_MS + SCAN_RACY_MS / 4);
}

/* The last good content, where there is any, is what a refused file is still known by. */
static struct record from_kept(const struct record *kept, const char *path)
{
    struct record now = kept ? *kept : (struct record){0};
    now.path = path;
    now.problem = now.detail = NULL;
    now.line = now.column = 0;
    now.moved = now.nowhere = false;
    return now;
}

static bool quarantine(struct scan_pass *pass, const struct record *kept, struct record *now,
                       const char *code, const char *detail)
{
    now->state = SOURCE_FILE_QUARANTINED;
    now->problem = code;
    now->detail = detail;
    return take(pass, kept, now);
}

bool scan_problem(struct scan_pass *pass, const char *path, const char *code, const char *detail,
                  bool folder)
{
    struct record *kept = record_find(&pass->kept, path);
    if (kept)
        kept->seen = true;
    struct record now = from_kept(kept, path);
    now.nowhere = folder || strcmp(code, "unreadable") != 0;
    return quarantine(pass, kept, &now, code, detail);
}

/* Leaves a file that is being written for the next scan. False: it was left before, or nobody
 * comes back. */
static bool leave(struct scan_pass *pass, const char *path, uint32_t again_ms)
{
    const struct scan_memory *memory = pass->options->memory;
    bool failed = false;
    if (memory == NULL || record_find(&memory->unsettled, path))
        return false;
    struct record left = {.path = record_keep(&pass->unsettled, path, &failed)};
    pass->out_of_memory = failed || record_add(&pass->unsettled, &left) == NULL;
    scan_again(pass, again_ms);
    return true;
}

static bool refuse(struct scan_pass *pass, const struct record *kept, struct record *now,
                   const struct sitemap_file *file, int64_t age_ms)
{
    uint32_t settle_ms = pass->options->settings->settle_ms;
    bool known = kept && kept->state == SOURCE_FILE_QUARANTINED;
    /* Written to so lately, it may be half of what it will be. */
    if (!known && age_ms >= 0 && age_ms < settle_ms && leave(pass, now->path, settle_ms))
        return !pass->out_of_memory;
    now->line = file->line;
    now->column = file->column;
    return quarantine(pass, kept, now, file->code, file->detail);
}

static bool judge(struct scan_pass *pass, const struct record *kept, struct record *now,
                  const struct sitemap_file *file, int64_t age_ms)
{
    static const uint64_t none[2];
    struct honest honest;
    switch (file->kind) {
    case SITEMAP_FILE_BROKEN:
        return refuse(pass, kept, now, file, age_ms);
    case SITEMAP_FILE_INDEX:
        if (was_sitemap(kept))
            return quarantine(
                pass, kept, now, "nested-index",
                "was a sitemap and is a sitemap index now; an index may not list one");
        break;
    case SITEMAP_FILE_OTHER:
        /* An error page that a download left in its place must not cost the entry. */
        if (was_sitemap(kept))
            return quarantine(pass, kept, now, "not-a-sitemap", "was a sitemap and is none now");
        break;
    case SITEMAP_FILE_EMPTY:
    case SITEMAP_FILE_URLSET:
    case SITEMAP_FILE_TEXT:
        honest_lastmod(kept ? kept->hash : none, file->hash, kept ? kept->lastmod : NULL,
                       now->mtime_ns >= 0 ? now->mtime_ns / 1000000000 : 0, clock_ms() / 1000,
                       &honest);
        now->moved = honest.moved;
        memcpy(now->hash, file->hash, sizeof now->hash);
        now->urls = file->urls;
        now->bytes = file->bytes;
        now->newest_lastmod = *file->newest_lastmod ? file->newest_lastmod : NULL;
        now->one_lastmod = file->one_lastmod;
        now->future = honest.future;
        now->state = SOURCE_FILE_EMPTY;
        if (file->kind != SITEMAP_FILE_EMPTY) {
            now->state = SOURCE_FILE_LISTED;
            now->lastmod = honest.lastmod;
        } /* else the date last served is kept: it is not to run backwards later either */
        return take(pass, kept, now);
    }
    *now = (struct record){.path = now->path,
                           .state = SOURCE_FILE_IGNORED,
                           .device = now->device,
                           .inode = now->inode,
                           .size = now->size,
                           .mtime_ns = now->mtime_ns};
    return take(pass, kept, now);
}

/* `last`: no other try comes in this scan. */
static bool read_and_judge(struct scan_pass *pass, struct record *kept, const char *path,
                           const struct stat *listed, bool last)
{
    struct sitemap_file file;
    struct stat st = *listed;
    char text[128];
    bool failed = false;
    int64_t read_at_ms = clock_ms();
    struct record now = from_kept(kept, path);
    enum read_status status =
        read_file(pass->top, path, pass->now, pass->options->stop, &st, &file);
    if (status != READ_DONE && status != READ_CHANGING)
        file = (struct sitemap_file){.kind = SITEMAP_FILE_OTHER};
    pass->out->counts.read++;
    switch (status) {
    case READ_STOPPED:
        return false;
    case READ_SHORTAGE:
        pass->out_of_memory = true;
        return false;
    case READ_GONE:
        if (kept)
            kept->seen = false;
        return true;
    case READ_UNREADABLE:
        now.device = st.st_dev;
        now.inode = st.st_ino;
        now.size = (uint64_t)st.st_size;
        now.mtime_ns = read_mtime_ns(&st);
        return quarantine(pass, kept, &now, "unreadable",
                          errno == ENXIO ? "is not a regular file"
                                         : strerror_r(errno, text, sizeof text));
    case READ_CHANGING:
        if (!last) {
            struct record again = {.path = record_keep(&pass->changing, path, &failed)};
            pass->out_of_memory = failed || record_add(&pass->changing, &again) == NULL;
            return !pass->out_of_memory;
        }
        if (leave(pass, path, pass->options->settings->settle_ms))
            return !pass->out_of_memory;
        return quarantine(pass, kept, &now, "changing", "is written to without a pause");
    case READ_DONE:
        break;
    }
    set_identity(pass, &now, &st, read_at_ms);
    return judge(pass, kept, &now, &file, read_at_ms - now.mtime_ns / 1000000);
}

bool scan_file(struct scan_pass *pass, const char *path, const struct stat *st)
{
    struct record *kept = record_find(&pass->kept, path);
    struct url loc;
    const struct scan_progress *progress = pass->options->progress;
    if (kept)
        kept->seen = true;
    pass->out->counts.files++;
    if (progress && progress->progress)
        progress->progress(progress->context, pass->out->counts.files, pass->out->counts.read);
    enum rule_code code = location_loc(pass->options->location, path, &loc);
    if (code != RULE_OK)
        return scan_problem(pass, path, rule_code_word(code), rule_code_sentence(code), false);
    if (kept == NULL || must_be_read(kept, st))
        return read_and_judge(pass, kept, path, st, false);
    /* As it is kept, but for the device: those of network file systems have other numbers after
     * each start. */
    struct record now = *kept;
    now.device = st->st_dev;
    now.path = path;
    if (kept->refused) { /* for its place, which may be another by now: judged again */
        now = from_kept(kept, path);
        now.state = SOURCE_FILE_LISTED;
        now.device = st->st_dev;
    }
    return take(pass, kept, &now);
}

bool scan_changing(struct scan_pass *pass)
{
    for (int round = 1; round <= CHANGING_ROUNDS && pass->changing.count > 0; round++) {
        struct record_list changing = pass->changing;
        struct timespec pause = {0, CHANGING_PAUSE_MS * 1000000L};
        bool go_on = true;
        pass->changing = (struct record_list){0};
        nanosleep(&pause, NULL);
        for (size_t i = 0; i < changing.count && go_on; i++) {
            const char *path = changing.at[i].path;
            struct stat st = {0};
            go_on = read_and_judge(pass, record_find(&pass->kept, path), path, &st,
                                   round == CHANGING_ROUNDS);
        }
        record_list_done(&changing);
        if (!go_on)
            return false;
    }
    return true;
}
