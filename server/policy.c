#include "server/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/log/log.h"

struct policy {
    size_t count;
    struct publish_site *sites;
    struct publish_alias *aliases; /* of all sites, one behind the other */
    char **robots;                 /* of each site; owned */
};

/* NULL with errno. Whatever took a file's place since the configuration was judged: a pipe is not
 * waited for. */
static FILE *open_file(const char *path)
{
    struct stat found;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return NULL;
    bool plain = fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
    FILE *file = plain ? fdopen(fd, "r") : NULL;
    if (file == NULL) {
        close(fd);
        errno = plain ? ENOMEM : EINVAL; /* fdopen fails for nothing else here */
    }
    return file;
}

static char *read_robots(const char *path)
{
    char *text = NULL;
    FILE *file = open_file(path);
    if (file != NULL)
        text = malloc(POLICY_MAX_ROBOTS_BYTES + 2);
    size_t len =
        file == NULL || text == NULL ? 0 : fread(text, 1, POLICY_MAX_ROBOTS_BYTES + 1, file);
    const char *why = NULL;
    if (file == NULL || text == NULL || ferror(file))
        why = strerror(errno);
    else if (len > POLICY_MAX_ROBOTS_BYTES)
        why = "is longer than 500 KiB";
    else if (memchr(text, '\0', len) != NULL)
        why = "is not a text file";
    if (file != NULL)
        fclose(file);
    if (why != NULL || text == NULL) {
        log_failure(path, "robots_file: %s", why);
        free(text);
        return NULL;
    }
    text[len] = '\0';
    return text;
}

struct policy *policy_new(const struct config *config)
{
    size_t alias_count = 0;
    for (size_t i = 0; i < config->site_count; i++)
        alias_count += config->sites[i].alias_count;
    struct policy *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->sites = calloc(config->site_count + 1, sizeof *p->sites);
    p->robots = calloc(config->site_count + 1, sizeof *p->robots);
    p->aliases = calloc(alias_count + 1, sizeof *p->aliases);
    if (p->sites == NULL || p->robots == NULL || p->aliases == NULL)
        goto failed;

    struct publish_alias *alias = p->aliases;
    for (; p->count < config->site_count; p->count++) {
        const struct config_site *from = &config->sites[p->count];
        struct publish_site *to = &p->sites[p->count];
        to->origin = from->origin;
        to->robots_off = !from->robots;
        to->alias_count = from->alias_count;
        to->aliases = alias;
        for (size_t i = 0; i < from->alias_count; i++)
            *alias++ = (struct publish_alias){from->aliases[i].from, from->aliases[i].to};
        if (from->robots_file == NULL)
            continue;
        p->robots[p->count] = read_robots(from->robots_file);
        if (p->robots[p->count] == NULL)
            goto failed;
        to->robots_prefix = p->robots[p->count];
    }
    return p;

failed:
    policy_free(p);
    return NULL;
}

size_t policy_count(const struct policy *p)
{
    return p->count;
}

const struct publish_site *policy_sites(const struct policy *p)
{
    return p->sites;
}

void policy_free(struct policy *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; p->robots != NULL && i < p->count; i++)
        free(p->robots[i]);
    free(p->robots);
    free(p->aliases);
    free(p->sites);
    free(p);
}
