#include "server/sources/walk_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int compare(const void *a, const void *b)
{
    const struct walk_name *const *left = a, *const *right = b;
    return strcmp((*left)->text, (*right)->text);
}

void walk_names_done(struct walk_names *names)
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

/* False: it vanished. */
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
    case DT_UNKNOWN: /* some file systems do not tell */
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

int walk_names_read(int fd, struct walk_names *out)
{
    *out = (struct walk_names){0};
    /* A description of its own: the position in the listing is not the caller's. */
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
        if (!add(out, entry->d_name, type)) {
            error = ENOMEM;
            break;
        }
    }
    closedir(listing);
    if (out->count > 1)
        qsort(out->at, out->count, sizeof out->at[0], compare);
    if (error != 0)
        walk_names_done(out);
    return error;
}
