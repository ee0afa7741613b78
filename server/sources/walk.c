#include "server/sources/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/rules/utf8.h"
#include "server/sources/beneath.h"
#include "server/sources/location.h"
#include "server/sources/sources.h"
#include "server/sources/walk_names.h"

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
    unsigned depth;
    struct level levels[SOURCE_MAX_DEPTH + 1]; /* the folders being listed, the top first */
    size_t path_len;
    char path[SOURCE_MAX_PATH_BYTES + 256 + 2]; /* and one name too many */
};

static enum walk_status list(struct walk *w, int fd);

/* A path for people: what is no text is shown as \xNN, what is too long is cut. */
static void show_path(const char *path, char out[SOURCE_MAX_PATH_BYTES + 1])
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

static enum walk_status told(bool go_on)
{
    return go_on ? WALK_DONE : WALK_STOPPED;
}

static enum walk_status problem(struct walk *w, const char *code, const char *detail, bool folder)
{
    char shown[SOURCE_MAX_PATH_BYTES + 1];
    if (!w->visit->problem)
        return WALK_DONE;
    bool as_is = w->path_len <= SOURCE_MAX_PATH_BYTES && location_is_clean(w->path, w->path_len);
    if (!as_is)
        show_path(w->path, shown);
    return told(
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
    if (!w->visit->file)
        return WALK_DONE;
    if (!location_is_clean(w->path, w->path_len))
        return problem(w, "bad-name", "its name is not UTF-8, or has a control character", false);
    if (w->path_len > SOURCE_MAX_PATH_BYTES)
        return problem(w, "path-too-long", "its path is too long", false);
    if (!S_ISREG(st->st_mode))
        return unreadable(w, ENXIO, false);
    return told(w->visit->file(w->visit->context, w->path, st));
}

/* A folder that holds itself, by way of a symlink (or of a mount). */
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
        return problem(w, "too-deep", "is below too many folders", true);
    if (w->path_len + 1 >= SOURCE_MAX_PATH_BYTES)
        return problem(w, "path-too-long", "its path is too long", true);
    if (link && ++w->linked_folders > WALK_MAX_LINKED_FOLDERS)
        return problem(w, "too-deep", "too many folders are reached through symlinks", true);
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(name, "/"), name);
    int fd =
        link ? beneath_open(w->top, w->path, O_RDONLY | O_DIRECTORY)
             : openat(parent, bare, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || (errno == ELOOP && !link)))
        return WALK_DONE; /* gone, or something else by now: its event brings the next scan */
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

/* What a symlink stands for is found out through the kernel, from the top. */
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
        return WALK_DONE; /* it dangles: there is no file */
    if (match_file(w->match, w->path) || beneath_is_shortage(error))
        return unreadable(w, error, false);
    if (match_folder(w->match, w->path) && w->result->outside++ == 0)
        snprintf(w->result->outside_path, sizeof w->result->outside_path, "%.60s", w->path);
    return WALK_DONE;
}

/* The folder at `parent` may have been moved away, and another put in its place: what the path
 * says counts. */
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
    if (!w->visit->file || !match_file(w->match, w->path) || !stat_file(w, parent, name->text, &st))
        return WALK_DONE;
    return visit_file(w, &st);
}

/* Whether the path still names the folder that was listed: 0, ENOENT, or EAGAIN: another one. */
static int check_place(struct walk *w, int fd)
{
    struct stat listed, named;
    if (w->path_len == 0)
        return 0; /* the caller looks after the top */
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
    int error = walk_names_read(fd, &names);
    if (error == 0) {
        error = check_place(w, fd);
        if (error != 0)
            walk_names_done(&names);
    }
    if (error == ENOENT)
        return WALK_DONE;
    if (error != 0) {
        w->result->error = error;
        return beneath_is_shortage(error) ? WALK_FAILED : WALK_UNREADABLE;
    }
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
        status = visit_name(w, fd, names.at[i]);
    }
    w->path[w->path_len = len] = '\0';
    walk_names_done(&names);
    return status;
}

static enum walk_status list(struct walk *w, int fd)
{
    if (!w->visit->folder(w->visit->context, fd, w->path))
        return WALK_STOPPED;
    enum walk_status status = list_once(w, fd);
    /* Another folder was put in its place by a rename: that one is what counts. */
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
