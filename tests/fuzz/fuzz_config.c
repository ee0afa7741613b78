/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The configuration's reader: whatever the file, mistakes are reported with lines that it has, and
 * what is left is a whole configuration. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/config.h"
#include "server/http/address.h"
#include "tests/fuzz/require.h"

struct told {
    unsigned count, lines;
};

static void take_mistake(void *context, const char *file, unsigned line, const char *message)
{
    struct told *told = context;

    told->count++;
    REQUIRE(file != NULL && *message != '\0');
    REQUIRE(line <= told->lines);
    REQUIRE(strchr(message, '\n') == NULL);
}

static void take_any(void *context, const char *file, unsigned line, const char *message)
{
    (void)file;
    (void)line;
    ++*(unsigned *)context;
    REQUIRE(*message != '\0');
}

/* What holds of every configuration that was read, with mistakes or without. */
static void check(const struct config *c)
{
    REQUIRE(c->listen != NULL && c->admin_listen != NULL && c->database != NULL);
    REQUIRE(c->cache_control != NULL && c->log_level != NULL && c->log_format != NULL);
    REQUIRE(c->max_connections >= 1 && c->compression_level >= 1 && c->compression_level <= 9);
    REQUIRE(c->token == NULL && c->origin_count == 0);
    for (size_t i = 0; i < c->site_count; i++) {
        const struct config_site *site = &c->sites[i];

        REQUIRE(site->named.name != NULL && site->max_indexes >= 1);
        for (size_t j = 0; j < site->index_count; j++)
            REQUIRE(site->indexes[j][0] == '/');
        for (size_t j = 0; j < site->alias_count; j++)
            REQUIRE(site->aliases[j].from[0] == '/' && site->aliases[j].to[0] == '/');
    }
}

/* What the configuration takes for a range is one to the listener too, and not wider than written.
 */
static void check_proxies(const struct config *c)
{
    for (size_t i = 0; i < c->trusted_proxy_count; i++) {
        struct address_range range;

        REQUIRE(address_range_parse(c->trusted_proxies[i], &range));
        for (unsigned bit = range.bits; bit < 128; bit++)
            REQUIRE((range.bytes[bit / 8] >> (7 - bit % 8) & 1) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char path[64];
    struct told told = {.lines = 1};
    unsigned wholes = 0;
    struct config *c = config_new();
    bool good;

    if (fd < 0) {
        fd = memfd_create("sitemapd.conf", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    REQUIRE(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    for (size_t i = 0; i < size; i++)
        told.lines += data[i] == '\n';
    REQUIRE(c != NULL);
    good = config_read_file(c, path, take_mistake, &told);
    REQUIRE(good == (told.count == 0));
    check(c);
    check_proxies(c);
    REQUIRE(config_validate(c, take_any, &wholes) == (wholes == 0));
    config_unref(c);
    return 0;
}
