/* The names in one folder, of a walk. */
#ifndef SITEMAPD_SOURCES_WALK_NAMES_H
#define SITEMAPD_SOURCES_WALK_NAMES_H

#include <stddef.h>

enum walk_type { WALK_FILE, WALK_FOLDER, WALK_LINK, WALK_SPECIAL };

struct walk_name {
    enum walk_type type;
    char text[]; /* a folder's has its slash: names sort as the paths below them do */
};

struct walk_names {
    struct walk_name **at;
    size_t count, capacity;
};

/* All names but "." and "..", sorted. Closes nothing. 0, or an errno (ENOMEM). */
int walk_names_read(int fd, struct walk_names *out);
void walk_names_done(struct walk_names *names);

#endif
