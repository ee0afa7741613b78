/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Scans a folder: walks it, reads and validates changed files, and collects the differences. */
#include "server/sources/folder/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/rules/lastmod.h"
#include "server/sources/folder/beneath.h"
#include "server/sources/split.h"

/* The walk (walk.h) names the files; a file is read only if its stored record does not suffice.
 *
 * A file may be written to while it is read. It is then read again, up to CHANGING_ROUNDS times in
 * one scan. If it still changes, or is broken and was written a moment ago, it is left for the next
 * scan, which rejects it if nothing has improved. A file whose times are so recent that a further
 * change might not show is stored without its inode, so that the next scan reads it, as git does
 * with its index. The ctime shows changes that `cp -p` and `rsync -t` hide in the mtime; if nothing
 * else moved (chmod), the hash of the content keeps the date. */

#define CHANGING_ROUNDS   3
#define CHANGING_PAUSE_MS 100
#define READ_BYTES        (64u << 10)

/* File systems with coarse times (FAT, NFS): for this long after its mtime a file may change
 * without a new mtime. */
#define RACY_MS 2000
/* The same for the ctime, which the kernel sets, of a file system with fractions of seconds. */
#define TICK_MS 20

#define SPLIT_AGAIN_MS 5000 /* retry if another file is being split, or the urlset is frozen */

static int64_t nanoseconds(struct timespec time)
{
    return (int64_t)time.tv_sec * CLOCK_SECOND_NS + time.tv_nsec;
}

/* ---- reading a file that may change ------------------------------------------------------- */

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           nanoseconds(a->st_mtim) == nanoseconds(b->st_mtim) &&
           nanoseconds(a->st_ctim) == nanoseconds(b->st_ctim);
}

static enum read_status failure(void)
{
    return errno == ENOENT || errno == ENOTDIR ? READ_GONE
           : beneath_is_shortage(errno)        ? READ_SHORTAGE
                                               : READ_UNREADABLE;
}

static enum read_status feed(int fd, struct sitemap_verifier *v, const atomic_bool *stop)
{
    char bytes[READ_BYTES];
    for (;;) {
        if (stop != NULL && atomic_load_explicit(stop, memory_order_relaxed))
            return READ_STOPPED;
        ssize_t len = read(fd, bytes, sizeof bytes);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0)
            return READ_UNREADABLE;
        if (len == 0 || !sitemap_verifier_feed(v, bytes, (size_t)len))
            return READ_DONE;
    }
}

/* Checks that the path still names the file that was read, and that it has not changed. */
static enum read_status check(int top, const char *path, int fd, const struct stat *before,
                              struct stat *st)
{
    struct stat open_now, named_now;
    if (fstat(fd, &open_now) != 0)
        return READ_UNREADABLE;
    int named = beneath_open(top, path, O_PATH);
    if (named < 0)
        return failure();
    bool exists = fstat(named, &named_now) == 0;
    close(named);
    *st = exists ? named_now : open_now;
    return exists && same_file(before, &open_now) && same_file(before, &named_now) ? READ_DONE
                                                                                   : READ_CHANGING;
}

enum read_status folder_read_file(int top, const char *path, const struct sitemap_expect *expect,
                                  const atomic_bool *stop, struct stat *st,
                                  struct sitemap_file *out)
{
    struct stat before;
    int fd = beneath_open_file(top, path, &before);
    if (fd < 0)
        return failure();
    *st = before;
    struct sitemap_verifier *v = sitemap_verifier_new(expect);
    enum read_status status = v != NULL ? feed(fd, v, stop) : READ_SHORTAGE;
    if (status == READ_DONE && !sitemap_verifier_finish(v, out))
        status = READ_SHORTAGE;
    sitemap_verifier_free(v);
    if (status == READ_DONE)
        status = check(top, path, fd, &before, st);
    int kept = errno;
    close(fd);
    errno = kept;
    return status;
}

/* ---- comparison with the stored record ----------------------------------------------------- */

static bool is_unchanged(const struct record *kept, const struct stat *st)
{
    return kept->file.inode == st->st_ino && kept->file.size == (uint64_t)st->st_size &&
           kept->file.mtime_ns == nanoseconds(st->st_mtim) &&
           kept->file.ctime_ns == nanoseconds(st->st_ctim);
}

static bool is_too_large(const char *problem)
{
    return problem != NULL &&
           (strcmp(problem, "too-many-urls") == 0 || strcmp(problem, "file-too-large") == 0);
}

/* Whether the result for the file depends on the hosts of its site. */
static bool depends_on_hosts(const struct source_file *file)
{
    return file->state == SOURCE_FILE_LISTED ||
           (file->problem != NULL && strcmp(file->problem, "outside-site") == 0);
}

/* Whether the file must be read, because its stored record may be outdated. A fault of the content
 * stays while the file is unchanged; other problems may end without a change of the file. Other
 * hosts of the site may change the remarks on its pages, and a file that was too large may be split
 * now. */
static bool must_read(const struct folder *f, const struct record *kept, const struct stat *st)
{
    return !is_unchanged(kept, st) || (f->pass->hosts_moved && depends_on_hosts(&kept->file)) ||
           (f->must_split_again && is_too_large(kept->file.problem)) ||
           (kept->file.state == SOURCE_FILE_QUARANTINED && !kept->file.refused &&
            !sitemap_file_has_code(kept->file.problem));
}

/* ---- validation ----------------------------------------------------------------------------- */

/* Whether the file has, or had, good content. */
static bool was_sitemap(const struct record *kept)
{
    return kept != NULL && (kept->file.has_entry || kept->file.state == SOURCE_FILE_LISTED ||
                            (kept->file.state == SOURCE_FILE_QUARANTINED &&
                             (kept->file.hash[0] | kept->file.hash[1])));
}

static void set_stat(struct source_file *file, const struct stat *st)
{
    file->device = st->st_dev;
    file->inode = st->st_ino;
    file->size = (uint64_t)st->st_size;
    file->mtime_ns = nanoseconds(st->st_mtim);
    file->ctime_ns = nanoseconds(st->st_ctim);
}

/* Whether another change after `read_at_ms` might have the same time. */
static bool is_racy(int64_t read_at_ms, struct timespec time, int64_t racy_ms)
{
    int64_t age_ms = read_at_ms - nanoseconds(time) / 1000000;
    return age_ms < racy_ms && age_ms > -racy_ms;
}

/* Stores the identity by which an unchanged file is recognised. If it changed so recently that its
 * times might not show another change, the inode is left out, and the next scan reads it. */
static void set_identity(struct folder *f, struct record *now, const struct stat *st,
                         int64_t read_at_ms)
{
    set_stat(&now->file, st);
    if (!is_racy(read_at_ms, st->st_mtim, RACY_MS) &&
        !is_racy(read_at_ms, st->st_ctim, st->st_ctim.tv_nsec == 0 ? RACY_MS : TICK_MS))
        return;
    now->file.inode = 0;
    scan_again(f->pass, RACY_MS + RACY_MS / 4);
}

/* Leaves a file that is being written for the next scan. False: it was left before, or there is no
 * next scan. */
static bool leave_file(struct folder *f, const char *path, uint32_t again_ms)
{
    bool failed = false;
    if (f->pass->options->alone || record_find(&f->unsettled, path) != NULL)
        return false;
    struct record left = {.file.path = record_keep(&f->leaving, path, &failed)};
    f->pass->out_of_memory = failed || record_add(&f->leaving, &left) == NULL;
    scan_again(f->pass, again_ms);
    return true;
}

static bool refuse(struct folder *f, const struct record *kept, struct record *now,
                   const struct sitemap_file *file, int64_t age_ms)
{
    uint32_t settle_ms = f->settings->settle_ms;
    bool known = kept != NULL && kept->file.state == SOURCE_FILE_QUARANTINED;
    /* It was written so recently that it may be incomplete. */
    if (!known && age_ms >= 0 && age_ms < settle_ms && leave_file(f, now->file.path, settle_ms))
        return !f->pass->out_of_memory;
    now->file.line = file->line;
    now->file.column = file->column;
    return scan_quarantine(f->pass, kept, now, file->code, file->detail);
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcasecmp(text + len - end_len, end) == 0;
}

static bool is_named_xml(const char *path)
{
    return ends_with(path, ".xml") || ends_with(path, ".xml.gz");
}

/* In a web root many files end in .xml or .txt, but only sitemaps have such a name. */
static bool is_named_sitemap(const char *path)
{
    const char *slash = strrchr(path, '/');
    return ends_with(path, ".xml.gz") ||
           strcasestr(slash != NULL ? slash + 1 : path, "sitemap") != NULL;
}

/* Whether a file that is not a good sitemap is reported. A feed or an old index beside the sitemaps
 * is not. A file that was a sitemap, is named like one, or is text with the name of an XML file is
 * reported: that is probably a mistake. */
static bool is_reported(const struct record *kept, const struct sitemap_file *file,
                        const char *path)
{
    if (was_sitemap(kept))
        return true;
    if (file->feed || file->kind == SITEMAP_FILE_INDEX)
        return false;
    return file->kind == SITEMAP_FILE_BROKEN || is_named_sitemap(path) ||
           (file->no_xml && is_named_xml(path));
}

static bool classify(struct folder *f, const struct record *kept, struct record *now,
                     const struct sitemap_file *file, int64_t age_ms)
{
    static const uint64_t none[2];
    struct lastmod_verdict verdict;
    char remarks[SITEMAP_REMARKS_TEXT];
    /* A feed that replaced a sitemap counts as a sitemap; any other feed is ignored. */
    enum sitemap_file_kind kind = file->kind;
    if (file->feed && !was_sitemap(kept))
        kind = SITEMAP_FILE_FEED;
    else if (kind == SITEMAP_FILE_FEED)
        kind = SITEMAP_FILE_URLSET;
    switch (kind) {
    case SITEMAP_FILE_BROKEN:
    case SITEMAP_FILE_INDEX:
    case SITEMAP_FILE_PAGE:
    case SITEMAP_FILE_WALL:
    case SITEMAP_FILE_OTHER:
    case SITEMAP_FILE_FEED:
        if (is_reported(kept, file, now->file.path))
            return refuse(f, kept, now, file, age_ms);
        break;
    case SITEMAP_FILE_EMPTY:
    case SITEMAP_FILE_URLSET:
    case SITEMAP_FILE_TEXT:
        lastmod_policy(kept != NULL ? kept->file.hash : none, file->hash,
                       kept != NULL ? kept->file.lastmod : NULL,
                       now->file.mtime_ns >= 0 ? now->file.mtime_ns / 1000000000 : 0,
                       clock_unix_ms() / 1000, &verdict);
        now->moved = verdict.moved;
        memcpy(now->file.hash, file->hash, sizeof now->file.hash);
        now->file.urls = file->urls;
        now->file.bytes = file->bytes;
        now->file.newest_lastmod = *file->newest_lastmod ? file->newest_lastmod : NULL;
        now->file.one_lastmod = file->stamp;
        now->file.future = verdict.future;
        now->file.state = SOURCE_FILE_EMPTY;
        if (file->kind != SITEMAP_FILE_EMPTY) {
            now->file.state = SOURCE_FILE_LISTED;
            now->file.lastmod = verdict.lastmod;
            sitemap_remarks_write(&file->remarks, remarks);
            now->file.remarks = remarks[0] != '\0' ? remarks : NULL;
        } /* else keep the date last served, so that a later date is not older */
        return scan_compare(f->pass, kept, now);
    }
    *now = (struct record){.file = {.path = now->file.path,
                                    .state = SOURCE_FILE_IGNORED,
                                    .device = now->file.device,
                                    .inode = now->file.inode,
                                    .size = now->file.size,
                                    .mtime_ns = now->file.mtime_ns,
                                    .ctime_ns = now->file.ctime_ns}};
    return scan_compare(f->pass, kept, now);
}

/* ---- splitting */

/* Whether to split the file: it is too large for a sitemap, or it was, and already has a urlset. */
static bool is_to_split(const struct folder *f, const struct sitemap_file *file,
                        const struct url *loc)
{
    bool good = file->kind == SITEMAP_FILE_URLSET || file->kind == SITEMAP_FILE_TEXT;
    bool large = file->kind == SITEMAP_FILE_BROKEN && is_too_large(file->code);
    return f->settings->splits && (large || (good && split_urlset(f->pass->registry, loc) != NULL));
}

/* Whether the file may be incomplete. */
static bool is_unsettled(const struct folder *f, const struct record *kept, int64_t read_at_ms,
                         const struct stat *st)
{
    bool known = kept != NULL && kept->file.state == SOURCE_FILE_QUARANTINED;
    int64_t age_ms = read_at_ms - nanoseconds(st->st_mtim) / 1000000;
    return !f->pass->options->alone && !known && age_ms >= 0 && age_ms < f->settings->settle_ms;
}

static bool postpone_split(struct folder *f, const char *path)
{
    struct record *kept = record_find(&f->pass->kept, path);
    if (kept != NULL)
        kept->seen = true;
    f->split_waits = true;
    scan_again(f->pass, SPLIT_AGAIN_MS);
    return true;
}

static void record_split(struct split_sums *sums, const struct split_result *split)
{
    sums->files += split->created + split->updated + split->removed > 0;
    sums->created += split->created;
    sums->updated += split->updated;
    sums->removed += split->removed;
}

static bool split(struct folder *f, struct record *kept, struct record *now, const struct url *loc)
{
    const struct scan_options *options = f->pass->options;
    char did[SPLIT_TEXT], left_out[SPLIT_TEXT], sentence[SPLIT_TEXT * 2 + 2];
    struct stat st;
    struct split_result out;
    struct split_file file = {.catalogue = options->catalogue,
                              .fd = beneath_open(f->top, now->file.path, O_RDONLY),
                              .url = loc,
                              .source = f->settings->name,
                              .index = f->settings->index,
                              .site_id = options->site_id,
                              .now = f->pass->now,
                              .max_removed = options->max_removed,
                              .dry_run = options->dry_run,
                              .max_disk = f->settings->split_bytes,
                              .stop = options->stop};
    if (file.fd < 0 || fstat(file.fd, &st) != 0) {
        if (file.fd >= 0)
            close(file.fd);
        return postpone_split(f, now->file.path); /* it is gone, or the next scan reports it */
    }
    int64_t read_at_ms = clock_unix_ms();
    enum split_status status = split_run(&file, &out);
    close(file.fd);
    set_identity(f, now, &st, read_at_ms);
    switch (status) {
    case SPLIT_STOPPED:
        return false;
    case SPLIT_NO_MEMORY:
        f->pass->out_of_memory = true;
        return false;
    case SPLIT_CHANGING:
    case SPLIT_BUSY:
        return postpone_split(f, now->file.path);
    case SPLIT_REFUSED:
        now->file.line = out.line;
        now->file.column = out.column;
        return scan_quarantine(f->pass, kept, now, out.code, out.detail);
    case SPLIT_DONE:
        break;
    }
    now->file.state = SOURCE_FILE_IGNORED;
    now->file.lastmod = now->file.newest_lastmod = NULL;
    split_report_dropped(&out, left_out, sizeof left_out);
    split_report_done(&out, did, sizeof did);
    snprintf(sentence, sizeof sentence, "%s%s%s", did, *left_out != '\0' ? "; " : "", left_out);
    now->file.detail = sentence;
    record_split(&f->pass->splits, &out);
    now->file.urls = out.urls - out.repeated;
    now->file.bytes = out.bytes;
    memcpy(now->file.hash, out.hash, sizeof now->file.hash);
    return scan_compare(f->pass, kept, now);
}

/* `last`: the last try in this scan. */
static bool read_and_check(struct folder *f, struct record *kept, const char *path,
                           const struct stat *listed, bool last)
{
    struct sitemap_file file;
    struct stat st = *listed;
    char text[128];
    bool failed = false;
    struct url loc;
    location_loc(&f->location, path, &loc); /* cannot fail: check_folder_file has checked it */
    struct sitemap_expect expect = scan_expect(f->pass, path, &loc);
    int64_t read_at_ms = clock_unix_ms();
    struct record now = scan_from_kept(kept, path);
    enum read_status status =
        folder_read_file(f->top, path, &expect, f->pass->options->stop, &st, &file);
    if (status != READ_DONE && status != READ_CHANGING)
        file = (struct sitemap_file){.kind = SITEMAP_FILE_OTHER};
    f->pass->out->counts.read++;
    switch (status) {
    case READ_STOPPED:
        return false;
    case READ_SHORTAGE:
        f->pass->out_of_memory = true;
        return false;
    case READ_GONE:
        if (kept != NULL)
            kept->seen = false;
        return true;
    case READ_UNREADABLE:
        set_stat(&now.file, &st);
        return scan_quarantine(f->pass, kept, &now, "unreadable",
                               errno == ENXIO ? "is not a regular file"
                                              : strerror_r(errno, text, sizeof text));
    case READ_CHANGING:
        if (!last) {
            struct record again = {.file.path = record_keep(&f->changing, path, &failed)};
            f->pass->out_of_memory = failed || record_add(&f->changing, &again) == NULL;
            return !f->pass->out_of_memory;
        }
        if (leave_file(f, path, f->settings->settle_ms))
            return !f->pass->out_of_memory;
        return scan_quarantine(f->pass, kept, &now, "changing", "is being written continuously");
    case READ_DONE:
        break;
    }
    if (is_to_split(f, &file, &loc) &&
        (file.kind != SITEMAP_FILE_BROKEN || !is_unsettled(f, kept, read_at_ms, &st)))
        return split(f, kept, &now, &loc);
    set_identity(f, &now, &st, read_at_ms);
    return classify(f, kept, &now, &file, read_at_ms - now.file.mtime_ns / 1000000);
}

/* Handles one existing file. False: the scan ends. */
static bool check_folder_file(struct folder *f, const char *path, const struct stat *st)
{
    struct record *kept = scan_meet(f->pass, path);
    struct url loc;
    enum rule_code code = location_loc(&f->location, path, &loc);
    if (code != RULE_OK)
        return scan_problem(f->pass, path, rule_code_word(code), rule_code_sentence(code), false);
    if (kept == NULL || must_read(f, kept, st))
        return read_and_check(f, kept, path, st, false);
    /* The stored record, with the current device: network file systems get new numbers after each
     * reboot. */
    struct record now = *kept;
    now.file.device = st->st_dev;
    now.file.path = path;
    if (kept->file.refused) { /* the index refused it, which may accept it now: submit it again */
        now = scan_from_kept(kept, path);
        now.file.remarks = kept->file.remarks;
        now.file.state = SOURCE_FILE_LISTED;
        now.file.device = st->st_dev;
    }
    return scan_compare(f->pass, kept, &now);
}

/* Reads the files again that were changing. False: the scan ends. */
static bool read_changing(struct folder *f)
{
    for (int round = 1; round <= CHANGING_ROUNDS && f->changing.count > 0; round++) {
        struct record_list changing = f->changing;
        struct timespec pause = {0, CHANGING_PAUSE_MS * 1000000L};
        bool go_on = true;
        f->changing = (struct record_list){0};
        nanosleep(&pause, NULL);
        for (size_t i = 0; i < changing.count && go_on; i++) {
            const char *path = changing.at[i].file.path;
            struct stat st = {0};
            go_on = read_and_check(f, record_find(&f->pass->kept, path), path, &st,
                                   round == CHANGING_ROUNDS);
        }
        record_list_done(&changing);
        if (!go_on)
            return false;
    }
    return true;
}

/* ---- the walk ----------------------------------------------------------------------------- */

static bool visit_folder(void *context, int fd, const char *path)
{
    struct folder *f = context;
    if (f->watch != NULL && !tree_watch_folder(f->watch, fd, path))
        f->pass->out->watch_limit = true; /* the other folders stay watched */
    return !scan_is_stopped(f->pass);
}

/* Counts a file or problem, each of which takes memory. */
static bool has_room(struct folder *f)
{
    char why[128];
    uint64_t most = f->pass->options->max_files;
    if (most == 0 || ++f->files <= most)
        return true;
    snprintf(why, sizeof why,
             "more than %" PRIu64 " files match: use patterns, or a source of the configuration",
             most);
    return scan_fail(f->pass, CATALOGUE_FULL, f->settings->directory, why);
}

static bool visit_file(void *context, const char *path, const struct stat *st)
{
    struct folder *f = context;
    return !scan_is_stopped(f->pass) && has_room(f) && check_folder_file(f, path, st);
}

static bool visit_problem(void *context, const char *path, const char *code, const char *detail,
                          bool folder)
{
    struct folder *f = context;
    if (folder)
        record_see_below(&f->pass->kept, path);
    return has_room(f) && scan_problem(f->pass, path, code, detail, folder);
}

static bool go_on(void *context)
{
    const struct folder *f = context;
    return f->stop == NULL || !atomic_load_explicit(f->stop, memory_order_relaxed);
}

/* Whether a mounted folder seems to have been unmounted, which leaves an empty one. Its entries are
 * kept unless the caller confirms the removal; the shrink guard, which would hold them, may be off.
 */
static bool is_unmounted(const struct folder *f, const struct stat *top)
{
    if (f->pass->out->counts.files > 0 || f->pass->options->max_removed != MAX_REMOVED_GUARDED)
        return false;
    bool any = false;
    for (size_t i = 0; i < f->pass->kept.count; i++) {
        const struct record *kept = &f->pass->kept.at[i];
        any |= kept->file.has_entry;
        if (kept->file.device == top->st_dev)
            return false;
    }
    return any;
}

static bool check_top(struct folder *f)
{
    const char *directory = f->settings->directory;
    struct stat opened, named;
    if (stat(directory, &named) != 0)
        return scan_fail(f->pass, CATALOGUE_UNAVAILABLE, directory, strerrordesc_np(errno));
    if (fstat(f->top, &opened) != 0 || opened.st_ino != named.st_ino ||
        opened.st_dev != named.st_dev)
        return scan_fail(f->pass, CATALOGUE_UNAVAILABLE, directory,
                         "was replaced while it was read");
    if (is_unmounted(f, &opened))
        return scan_fail(f->pass, CATALOGUE_UNAVAILABLE, directory,
                         "is empty and on a different file system than before: is it mounted?");
    return true;
}

static bool walk(struct folder *f)
{
    struct walk_result result;
    struct scan_outcome *out = f->pass->out;
    struct walk_visit visit = {visit_folder, visit_file, visit_problem,
                               go_on,        f,          f->pass->options->max_names};
    if (f->watch != NULL)
        tree_watch_walk_begins(f->watch);
    enum walk_status status = walk_folder(f->top, "", &f->match, &visit, &result);
    out->links = result.links > 0;
    out->outside = result.outside;
    snprintf(out->outside_path, sizeof out->outside_path, "%s", result.outside_path);
    if (status == WALK_FAILED && result.error == E2BIG)
        return scan_fail(f->pass, CATALOGUE_FULL, f->settings->directory,
                         "a folder has too many names: use smaller folders, or a source of the "
                         "configuration");
    if (status == WALK_UNREADABLE || status == WALK_FAILED)
        return scan_fail(f->pass, CATALOGUE_UNAVAILABLE, f->settings->directory,
                         strerrordesc_np(result.error));
    if (status != WALK_DONE)
        return false;
    if (f->watch != NULL)
        tree_watch_walk_ends(f->watch);
    return true;
}

/* ---- the kind ----------------------------------------------------------------------------- */

int folder_open_top(const struct source_settings *settings)
{
    const char *directory = settings->directory, *root = settings->root;
    if (settings->closed) {
        errno = EACCES;
        return -1;
    }
    if (root == NULL)
        return beneath_open_top(directory);
    int top = beneath_open_top(root);
    size_t len = strlen(root);
    while (len > 0 && root[len - 1] == '/')
        len--;
    const char *below = directory + len;
    below += strspn(below, "/");
    if (top < 0 || *below == '\0')
        return top;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", below); /* the API accepts at most 1,000 bytes */
    len = strlen(path);
    if (path[len - 1] == '/')
        path[len - 1] = '\0';
    int fd = beneath_open_by_steps(top, path, O_RDONLY | O_DIRECTORY);
    int error = errno;
    close(top);
    errno = error == ELOOP ? EXDEV : error;
    return fd;
}

static bool begin(void *place, struct scan_pass *pass)
{
    struct folder *f = place;
    f->pass = pass;
    f->stop = pass->options->stop;
    f->files = 0;
    if (f->settings->closed)
        return scan_fail(pass, CATALOGUE_UNAVAILABLE, f->settings->directory,
                         "permission denied: it is not below a source_root of this site");
    if (f->location.base_len == 0) {
        struct location again;
        char why[256];
        location_init(&again, f->settings->url, why, sizeof why);
        return scan_fail(pass, CATALOGUE_REFUSED, f->settings->directory, why);
    }
    f->top = folder_open_top(f->settings);
    return f->top >= 0 ||
           scan_fail(pass, CATALOGUE_UNAVAILABLE, f->settings->directory,
                     errno == EXDEV ? "a symlink leads to it: name the folder below source_root "
                                      "without symlinks"
                                    : strerrordesc_np(errno));
}

static bool find(void *place, struct scan_pass *pass)
{
    struct folder *f = place;
    f->split_waits = false;
    if (!walk(f) || !read_changing(f) || !check_top(f))
        return false;
    if (!pass->options->dry_run)
        f->must_split_again &= f->split_waits;
    if (!pass->options->alone) {
        struct record_list old = f->unsettled;
        record_sort(&f->leaving);
        f->unsettled = f->leaving;
        f->leaving = old;
    }
    return true;
}

static void end(void *place)
{
    struct folder *f = place;
    close(f->top);
    record_list_done(&f->changing);
    record_list_done(&f->leaving);
    f->pass = NULL;
}

static enum rule_code loc_of(const void *place, const char *path, struct url *out)
{
    const struct folder *f = place;
    return location_loc(&f->location, path, out);
}

const struct source_kind folder_kind = {begin, find, end, loc_of, "sitemap.xml"};

bool folder_init(struct folder *f, const struct source_settings *settings, char *why,
                 size_t why_size)
{
    f->settings = settings;
    f->match = (struct match){settings->patterns, settings->excludes};
    f->must_split_again = settings->splits;
    f->location.base_len = 0;
    return location_init(&f->location, settings->url, why, why_size);
}

void folder_done(struct folder *f)
{
    tree_watch_free(f->watch);
    f->watch = NULL;
    record_list_done(&f->unsettled);
}

/* ---- watching ----------------------------------------------------------------------------- */

static bool watch_one(void *context, int fd, const char *path)
{
    struct folder *f = context;
    return go_on(f) && tree_watch_folder(f->watch, fd, path);
}

/* A new folder is watched at once, with all its subfolders, so that the source does not count as
 * settled while files are put there. If the limit of watches is reached, the next scan reports
 * that. */
static void appeared(void *context, const char *path)
{
    struct folder *f = context;
    struct walk_visit visit = {.folder = watch_one, .go_on = go_on, .context = f};
    struct walk_result result;
    int top = folder_open_top(f->settings);
    if (top < 0)
        return;
    walk_folder(top, path, &f->match, &visit, &result);
    close(top);
}

static void not_yet(void *context, const char *path)
{
    (void)context;
    (void)path;
}

bool folder_watch(struct folder *f)
{
    bool limit = false;
    struct stat st;
    struct tree_watch_news news;
    if (f->settings->watch && f->watch == NULL) {
        f->watch = tree_watch_new(f->settings->directory, f->settings->site_id);
        limit = f->watch == NULL && errno != ENOMEM;
    }
    bool found = stat(f->settings->directory, &st) == 0;
    f->top_device = found ? st.st_dev : 0;
    f->top_inode = found ? st.st_ino : 0;
    if (f->watch != NULL)
        tree_watch_read(f->watch, &f->match, not_yet, f, &news);
    return limit;
}

int folder_fd(const struct folder *f)
{
    return f->watch != NULL ? tree_watch_fd(f->watch) : -1;
}

void folder_read_news(struct folder *f, struct tree_watch_news *out)
{
    tree_watch_read(f->watch, f->links ? NULL : &f->match, appeared, f, out);
}

bool folder_is_replaced(const struct folder *f)
{
    struct stat st;
    return stat(f->settings->directory, &st) != 0 || st.st_dev != f->top_device ||
           st.st_ino != f->top_inode;
}
