/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Walks a folder depth first, and matches names against patterns. */
#include "server/sources/folder/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/str.h"
#include "server/base/text.h"
#include "server/sources/folder/beneath.h"
#include "server/sources/folder/glob.h"
#include "server/sources/sources.h"

/* The names in one folder. */

enum walk_type { WALK_FILE, WALK_FOLDER, WALK_LINK, WALK_SPECIAL };

struct walk_name {
    enum walk_type type;
    char text[]; /* that of a folder has a slash, so that names sort like the paths below them */
};

struct walk_names {
    struct walk_name **at;
    size_t count, capacity;
};

/* Compared without regard to case: sitemaps that come from Windows are often SITEMAP.XML. */
static const char *const usual_patterns[] = {"*.xml", "*.xml.gz", "*.txt", "*.txt.gz", NULL};

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* The slashes at the ends of a pattern only select what it is compared with. */
static bool matches(const struct glob_path *path, const char *pattern, unsigned flags)
{
    bool anchored = *pattern == '/';
    size_t len = strlen(pattern += anchored);
    if (len > 0 && pattern[len - 1] == '/')
        len--;
    if (!anchored && memchr(pattern, '/', len) == NULL)
        flags |= GLOB_NAME;
    return glob_match(path, pattern, len, flags);
}

static bool matches_any(const char *const *patterns, const char *path, unsigned flags)
{
    struct glob_path prepared;
    if (patterns == NULL || *patterns == NULL || !glob_init(&prepared, path, flags))
        return false;
    for (; *patterns != NULL; patterns++)
        if (matches(&prepared, *patterns, flags))
            return true;
    return false;
}

static bool is_listed(const char *folder)
{
    /* Every ext4 file system has lost+found at its top, which only root can read. */
    return *name_of(folder) != '.' && strcmp(folder, "lost+found") != 0;
}

bool match_file(const struct match *m, const char *path)
{
    bool wanted = m->patterns != NULL
                      ? matches_any(m->patterns, path, GLOB_DOTS)
                      : matches_any(usual_patterns, path, GLOB_DOTS | GLOB_ANY_CASE);
    return wanted && !matches_any(m->excludes, path, GLOB_ABOVE);
}

bool match_folder(const struct match *m, const char *path)
{
    return is_listed(path) && !matches_any(m->excludes, path, GLOB_ABOVE);
}

bool match_whole(const struct match *m, const char *path)
{
    char folder[SOURCE_MAX_PATH_BYTES + 1];
    int len = snprintf(folder, sizeof folder, "%s", path);
    if (len < 0 || (size_t)len >= sizeof folder)
        return false;
    unsigned depth = 0;
    for (char *slash = strchr(folder, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (++depth > SOURCE_MAX_DEPTH || !is_listed(folder))
            return false;
        *slash = '/';
    }
    return match_file(m, path); /* an exclude of a folder is one of the file */
}

bool location_init(struct location *l, const char *url, char *why, size_t why_size)
{
    /* A short origin alone is not a valid loc, but the files below it may be: check it with a file
     * name. */
    static const char file[] = "sitemap.xml";
    char text[LOC_MAX_CHARS + sizeof file];
    struct url parsed;
    size_t len = strlen(url);
    if (len == 0 || url[len - 1] != '/' || strpbrk(url, "?#") != NULL) {
        snprintf(why, why_size, "url must end in a slash, without query: %.200s", url);
        return false;
    }
    if (len > LOC_MAX_CHARS) {
        snprintf(why, why_size, "url is longer than %u characters", LOC_MAX_CHARS);
        return false;
    }
    snprintf(text, sizeof text, "%s%s", url, file);
    enum rule_code code = url_parse(text, strlen(text), &parsed, NULL);
    if (code != RULE_OK) {
        snprintf(why, why_size, "url %s: %.200s", rule_code_sentence(code), url);
        return false;
    }
    l->base_len = (size_t)parsed.len - (sizeof file - 1);
    l->origin_len = parsed.origin_len;
    memcpy(l->base, parsed.text, l->base_len);
    l->base[l->base_len] = '\0';
    return true;
}

/* Characters that need no encoding in a path (RFC 3986 3.3: pchar and the slash). */
static bool is_plain(char c)
{
    return ascii_is_alnum(c) || (c != '\0' && strchr("-._~!$&'()*+,;=:@/", c) != NULL);
}

enum rule_code location_loc(const struct location *l, const char *path, struct url *out)
{
    static const char hex[] = "0123456789ABCDEF";
    char text[LOC_MAX_CHARS + 4];
    size_t len = l->base_len;
    memcpy(text, l->base, len);
    for (; *path != '\0'; path++) {
        if (len > LOC_MAX_CHARS)
            return RULE_LOC_TOO_LONG;
        if (is_plain(*path)) {
            text[len++] = *path;
            continue;
        }
        text[len++] = '%';
        text[len++] = hex[(unsigned char)*path >> 4];
        text[len++] = hex[(unsigned char)*path & 15];
    }
    return url_parse(text, len, out, NULL);
}

/* A name or path that can be shown and registered: UTF-8 without control characters. */
static bool is_clean(const char *path, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t step = utf8_char_len(path + i, len - i);
        if (step == 0 || utf8_is_control(path + i, step))
            return false;
        i += step;
    }
    return true;
}

static bool decode(const char *text, char *out)
{
    size_t len = 0;
    for (; *text != '\0'; text++) {
        if (len == SOURCE_MAX_PATH_BYTES)
            return false;
        char c = *text;
        if (c == '%') {
            int high = ascii_hex_value(text[1]);
            int low = high < 0 ? -1 : ascii_hex_value(text[2]);
            if (low < 0)
                return false;
            c = (char)(high << 4 | low);
            if (c == '/')
                return false;
            text += 2;
        }
        out[len++] = c;
    }
    out[len] = '\0';
    return is_clean(out, len); /* this also excludes NUL, which is a control */
}

/* No name is empty, "." or "..". */
static bool is_normal(const char *path)
{
    for (;;) {
        size_t len = strcspn(path, "/");
        if (len <= 2 && memcmp(path, "..", len) == 0)
            return false;
        if (path[len] == '\0')
            return true;
        path += len + 1;
    }
}

bool location_path(const struct location *l, const char *origin, const char *url_path, char *out)
{
    size_t folder_len = l->base_len - l->origin_len;
    struct url url;
    if (strlen(origin) != l->origin_len || memcmp(origin, l->base, l->origin_len) != 0 ||
        strncmp(url_path, l->base + l->origin_len, folder_len) != 0)
        return false;
    /* Each resource has one URL: only the registered form is served. */
    return decode(url_path + folder_len, out) && is_normal(out) &&
           location_loc(l, out, &url) == RULE_OK &&
           strcmp(url.text + url.origin_len, url_path) == 0;
}

static int compare(const void *a, const void *b)
{
    const struct walk_name *const *left = a, *const *right = b;
    return strcmp((*left)->text, (*right)->text);
}

static void walk_names_done(struct walk_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->at[i]);
    free(names->at);
    *names = (struct walk_names){0};
}

static enum walk_type type_of_mode(mode_t mode)
{
    return S_ISREG(mode)   ? WALK_FILE
           : S_ISDIR(mode) ? WALK_FOLDER
           : S_ISLNK(mode) ? WALK_LINK
                           : WALK_SPECIAL;
}

/* False: the file no longer exists. */
static bool type_of(int fd, const struct dirent *entry, enum walk_type *out)
{
    struct stat st;
    switch (entry->d_type) {
    case DT_REG:
        *out = WALK_FILE;
        return true;
    case DT_DIR:
        *out = WALK_FOLDER;
        return true;
    case DT_LNK:
        *out = WALK_LINK;
        return true;
    case DT_UNKNOWN: /* some file systems do not report the type */
        if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            return false;
        *out = type_of_mode(st.st_mode);
        return true;
    default:
        *out = WALK_SPECIAL;
        return true;
    }
}

static bool add(struct walk_names *names, const char *text, enum walk_type type)
{
    if (names->count == names->capacity) {
        size_t capacity = names->capacity ? names->capacity * 2 : 64;
        struct walk_name **at = realloc(names->at, capacity * sizeof at[0]);
        if (at == NULL)
            return false;
        names->at = at;
        names->capacity = capacity;
    }
    size_t len = strlen(text);
    struct walk_name *name = malloc(sizeof *name + len + 2);
    if (name == NULL)
        return false;
    name->type = type;
    memcpy(name->text, text, len + 1);
    if (type == WALK_FOLDER)
        memcpy(name->text + len, "/", 2);
    names->at[names->count++] = name;
    return true;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool goes_on(const struct walk_visit *visit, size_t names)
{
    return names % WALK_LOOK_NAMES != 0 || visit->go_on == NULL || visit->go_on(visit->context);
}

/* Reads all names except "." and "..", sorted. Does not close `fd`. Returns 0 or an errno (ENOMEM;
 * ECANCELED: it was stopped; E2BIG: too many, with the `held` ones). */
static int walk_names_read(int fd, const struct walk_visit *visit, size_t held,
                           struct walk_names *out)
{
    *out = (struct walk_names){0};
    /* A new open file description, so that the caller's position in the listing does not change. */
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = own < 0 ? NULL : fdopendir(own);
    if (listing == NULL) {
        int error = errno;
        if (own >= 0)
            close(own);
        return error;
    }
    int error = 0;
    for (;;) {
        enum walk_type type;
        errno = 0;
        struct dirent *entry = readdir(listing);
        if (entry == NULL) {
            error = errno;
            break;
        }
        if (is_dots(entry->d_name) || !type_of(fd, entry, &type))
            continue;
        if (!goes_on(visit, out->count)) {
            error = ECANCELED;
            break;
        }
        if (visit->max_names != 0 && held + out->count >= visit->max_names) {
            error = E2BIG;
            break;
        }
        if (!add(out, entry->d_name, type)) {
            error = ENOMEM;
            break;
        }
    }
    closedir(listing);
    if (error == 0 && out->count > 1)
        qsort(out->at, out->count, sizeof out->at[0], compare);
    if (error != 0)
        walk_names_done(out);
    return error;
}

#define MAX_LISTINGS 3

struct level {
    dev_t device;
    ino_t inode;
};

struct walk {
    int top;
    const struct match *match;
    const struct walk_visit *visit;
    struct walk_result *result;
    uint64_t linked_folders;
    size_t names; /* in memory */
    unsigned depth;
    struct level levels[SOURCE_MAX_DEPTH + 1]; /* the folders being listed, the top first */
    size_t path_len;
    char path[SOURCE_MAX_PATH_BYTES + 256 + 2]; /* with room for one name too many */
};

static enum walk_status list(struct walk *w, int fd);

/* A path for people: bytes that are not text become \xNN, and a long path is cut. */
static void format_path(const char *path, char out[SOURCE_MAX_PATH_BYTES + 1])
{
    size_t len = 0, left = strlen(path);
    while (left > 0 && len + 8 < SOURCE_MAX_PATH_BYTES) {
        size_t step = utf8_char_len(path, left);
        if (step == 0 || utf8_is_control(path, step)) {
            step = 1;
            len += (size_t)snprintf(out + len, 5, "\\x%02X", (unsigned char)*path);
        } else {
            memcpy(out + len, path, step);
            len += step;
        }
        path += step;
        left -= step;
    }
    snprintf(out + len, 4, "%s", left > 0 ? "..." : "");
}

static enum walk_status is_reported(bool go_on)
{
    return go_on ? WALK_DONE : WALK_STOPPED;
}

static enum walk_status problem(struct walk *w, const char *code, const char *detail, bool folder)
{
    char shown[SOURCE_MAX_PATH_BYTES + 1];
    if (w->visit->problem == NULL)
        return WALK_DONE;
    bool as_is = w->path_len <= SOURCE_MAX_PATH_BYTES && is_clean(w->path, w->path_len);
    if (!as_is)
        format_path(w->path, shown);
    return is_reported(
        w->visit->problem(w->visit->context, as_is ? w->path : shown, code, detail, folder));
}

static enum walk_status unreadable(struct walk *w, int error, bool folder)
{
    char text[128];
    if (beneath_is_shortage(error)) {
        w->result->error = error;
        return WALK_FAILED;
    }
    const char *detail = error == EXDEV   ? "is a symlink that leads out of the folder"
                         : error == ELOOP ? "is a symlink that cannot be followed"
                         : error == ENXIO ? "is not a regular file"
                                          : strerror_r(error, text, sizeof text);
    return problem(w, "unreadable", detail, folder);
}

static enum walk_status visit_file(struct walk *w, const struct stat *st)
{
    if (w->visit->file == NULL)
        return WALK_DONE;
    if (!is_clean(w->path, w->path_len))
        return problem(w, "bad-name", "its name is not UTF-8, or has a control character", false);
    if (w->path_len > SOURCE_MAX_PATH_BYTES)
        return problem(w, "path-too-long", "its path is too long", false);
    if (!S_ISREG(st->st_mode))
        return unreadable(w, ENXIO, false);
    return is_reported(w->visit->file(w->visit->context, w->path, st));
}

/* Whether the folder contains itself through a symlink or a mount. */
static bool is_open_above(const struct walk *w, const struct stat *st)
{
    for (unsigned i = 0; i < w->depth; i++)
        if (w->levels[i].device == st->st_dev && w->levels[i].inode == st->st_ino)
            return true;
    return false;
}

static enum walk_status enter(struct walk *w, int parent, const char *name, bool link)
{
    char bare[NAME_MAX + 1];
    struct stat st;
    if (!match_folder(w->match, w->path))
        return WALK_DONE;
    if (w->depth > SOURCE_MAX_DEPTH)
        return problem(w, "too-deep", "is nested in too many folders", true);
    if (w->path_len + 1 >= SOURCE_MAX_PATH_BYTES)
        return problem(w, "path-too-long", "its path is too long", true);
    if (link && ++w->linked_folders > WALK_MAX_LINKED_FOLDERS)
        return problem(w, "too-deep", "too many folders are reached through symlinks", true);
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(name, "/"), name);
    int fd =
        link ? beneath_open(w->top, w->path, O_RDONLY | O_DIRECTORY)
             : openat(parent, bare, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || (errno == ELOOP && !link)))
        return WALK_DONE; /* gone or replaced: an event will cause another scan */
    if (fd < 0 || fstat(fd, &st) != 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return unreadable(w, error, true);
    }
    enum walk_status status = WALK_DONE;
    if (!is_open_above(w, &st)) {
        w->result->links += link;
        w->levels[w->depth++] = (struct level){st.st_dev, st.st_ino};
        status = list(w, fd);
        w->depth--;
        if (status == WALK_UNREADABLE)
            status = unreadable(w, w->result->error, true);
    }
    close(fd);
    return status;
}

/* Opens a symlink's target from the top, so that the kernel keeps it beneath. */
static enum walk_status follow(struct walk *w, int parent, const char *name)
{
    struct stat st;
    int fd = beneath_open(w->top, w->path, O_PATH);
    bool opened = fd >= 0 && fstat(fd, &st) == 0;
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (opened && S_ISDIR(st.st_mode))
        return enter(w, parent, name, true);
    if (opened) {
        if (!match_file(w->match, w->path))
            return WALK_DONE;
        w->result->links++;
        return visit_file(w, &st);
    }
    if (error == ENOENT || error == ENOTDIR)
        return WALK_DONE; /* a dangling symlink */
    if (match_file(w->match, w->path) || beneath_is_shortage(error))
        return unreadable(w, error, false);
    if (match_folder(w->match, w->path) && w->result->outside++ == 0)
        snprintf(w->result->outside_path, sizeof w->result->outside_path, "%.60s", w->path);
    return WALK_DONE;
}

/* The folder at `parent` may have been replaced meanwhile: only the path counts. */
static bool stat_file(struct walk *w, int parent, const char *name, struct stat *st)
{
    if (fstatat(parent, name, st, AT_SYMLINK_NOFOLLOW) == 0)
        return !S_ISLNK(st->st_mode) && !S_ISDIR(st->st_mode);
    int fd = beneath_open(w->top, w->path, O_PATH);
    bool found = fd >= 0 && fstat(fd, st) == 0 && !S_ISDIR(st->st_mode);
    if (fd >= 0)
        close(fd);
    return found;
}

static enum walk_status visit_name(struct walk *w, int parent, const struct walk_name *name)
{
    struct stat st;
    switch (name->type) {
    case WALK_FOLDER:
        return enter(w, parent, name->text, false);
    case WALK_LINK:
        return follow(w, parent, name->text);
    case WALK_SPECIAL:
    case WALK_FILE:
        break;
    }
    if (w->visit->file == NULL || !match_file(w->match, w->path) ||
        !stat_file(w, parent, name->text, &st))
        return WALK_DONE;
    return visit_file(w, &st);
}

/* Whether the path still names the folder that was listed: 0, ENOENT, or EAGAIN: another one. */
static int check_place(struct walk *w, int fd)
{
    struct stat listed, named;
    if (w->path_len == 0)
        return 0; /* the caller checks the top */
    int now = beneath_open(w->top, w->path, O_PATH | O_DIRECTORY);
    if (now < 0)
        return beneath_is_shortage(errno)            ? errno
               : errno == ENOENT || errno == ENOTDIR ? ENOENT
                                                     : EAGAIN;
    bool same = fstat(now, &named) == 0 && fstat(fd, &listed) == 0 &&
                named.st_ino == listed.st_ino && named.st_dev == listed.st_dev;
    close(now);
    return same ? 0 : EAGAIN;
}

static enum walk_status list_once(struct walk *w, int fd)
{
    struct walk_names names;
    int error = walk_names_read(fd, w->visit, w->names, &names);
    if (error == 0) {
        error = check_place(w, fd);
        if (error != 0)
            walk_names_done(&names);
    }
    if (error == ENOENT)
        return WALK_DONE;
    if (error == ECANCELED)
        return WALK_STOPPED;
    if (error != 0) {
        w->result->error = error;
        return beneath_is_shortage(error) || error == E2BIG ? WALK_FAILED : WALK_UNREADABLE;
    }
    w->names += names.count;
    size_t len = w->path_len;
    enum walk_status status = WALK_DONE;
    for (size_t i = 0; i < names.count && status == WALK_DONE; i++) {
        const char *text = names.at[i]->text;
        size_t name_len = strcspn(text, "/");
        size_t at = len;
        if (at > 0)
            w->path[at++] = '/';
        memcpy(w->path + at, text, name_len);
        w->path[at + name_len] = '\0';
        w->path_len = at + name_len;
        status = goes_on(w->visit, i) ? visit_name(w, fd, names.at[i]) : WALK_STOPPED;
    }
    w->path[w->path_len = len] = '\0';
    w->names -= names.count;
    walk_names_done(&names);
    return status;
}

static enum walk_status list(struct walk *w, int fd)
{
    if (!w->visit->folder(w->visit->context, fd, w->path))
        return WALK_STOPPED;
    enum walk_status status = list_once(w, fd);
    /* If a rename replaced the folder, list the new one. */
    for (int i = 1; i < MAX_LISTINGS && status == WALK_UNREADABLE && w->result->error == EAGAIN;
         i++) {
        int other = beneath_open(w->top, w->path, O_RDONLY | O_DIRECTORY);
        if (other < 0)
            break;
        status = w->visit->folder(w->visit->context, other, w->path) ? list_once(w, other)
                                                                     : WALK_STOPPED;
        close(other);
    }
    return status;
}

enum walk_status walk_folder(int top, const char *start, const struct match *match,
                             const struct walk_visit *visit, struct walk_result *result)
{
    struct walk w = {.top = top, .match = match, .visit = visit, .result = result};
    struct stat st;
    *result = (struct walk_result){0};
    w.path_len = strlen(start);
    if (w.path_len > SOURCE_MAX_PATH_BYTES) {
        result->error = ENAMETOOLONG;
        return WALK_UNREADABLE;
    }
    memcpy(w.path, start, w.path_len + 1);
    for (const char *c = start; *c != '\0'; c++) /* the levels above `start` are not known: 0, 0 */
        w.depth += c == start || *c == '/';
    if (w.depth > SOURCE_MAX_DEPTH) {
        result->error = ENAMETOOLONG;
        return WALK_UNREADABLE;
    }
    int fd = *start == '\0' ? dup(top) : beneath_open(top, start, O_RDONLY | O_DIRECTORY);
    if (fd < 0 || fstat(fd, &st) != 0) {
        result->error = errno;
        if (fd >= 0)
            close(fd);
        return WALK_UNREADABLE;
    }
    w.levels[w.depth++] = (struct level){st.st_dev, st.st_ino};
    enum walk_status status = list(&w, fd);
    close(fd);
    return status;
}
