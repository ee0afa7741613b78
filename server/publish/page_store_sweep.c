/* What a page store throws away. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/publish/page_store_state.h"

/* True where the name is of our pattern; `*index_id` is 0 where no page has it. */
static bool parse_name(const char *name, int64_t *index_id, uint32_t *number)
{
    char again[NAME_SIZE];
    size_t first = strspn(name, "0123456789");
    size_t second = name[first] == '-' ? strspn(name + first + 1, "0123456789") : 0;
    if (first == 0 || second == 0 || strcmp(name + first + 1 + second, ".page") != 0)
        return false;
    errno = 0;
    *index_id = strtoll(name, NULL, 10);
    unsigned long long value = strtoull(name + first + 1, NULL, 10);
    *number = value > UINT32_MAX ? 0 : (uint32_t)value;
    if (errno == 0 && *index_id > 0 && *number > 0)
        page_store_name(*index_id, *number, again);
    else
        again[0] = '\0';
    if (strcmp(again, name) != 0) /* too large, or written another way */
        *index_id = 0;
    return true;
}

static bool belongs(struct page_store *store, const char *name, const char *epoch)
{
    uint8_t bytes[PAGE_FILE_PEEK_BYTES];
    int fd = openat(store->folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, bytes, sizeof bytes);
    close(fd);
    return got == (ssize_t)sizeof bytes &&
           page_file_belongs(bytes, sizeof bytes, epoch, store->options.made_by);
}

void page_store_sweep(struct page_store *store, const char *epoch,
                      bool (*keep)(void *context, int64_t index_id, uint32_t number), void *context)
{
    uint64_t bytes = 0;
    int fd = openat(store->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (folder == NULL) {
        page_store_turn_off(store, strerror(errno));
        if (fd >= 0)
            close(fd);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        int64_t index_id;
        uint32_t number;
        if (strcmp(entry->d_name, TEMPORARY) == 0)
            unlinkat(store->folder_fd, TEMPORARY, 0);
        if (!parse_name(entry->d_name, &index_id, &number))
            continue;
        if (index_id != 0 && keep(context, index_id, number) &&
            belongs(store, entry->d_name, epoch))
            bytes += page_store_size_of(store, entry->d_name);
        else
            unlinkat(store->folder_fd, entry->d_name, 0);
    }
    closedir(folder);
    atomic_store(&store->bytes, bytes);
}
