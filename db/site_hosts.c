#include "db/site_hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/apply.h"

/* Of each list. Every host is in the registry that each write and each request looks at. */
#define SITE_HOSTS_MAX 1000u

static int compare_hosts(const void *a, const void *b)
{
    return strcmp(a, b);
}

enum catalogue_status site_hosts_read(const char *const *given, const char *field,
                                      struct site_hosts *out, struct change_result *result)
{
    size_t count = 0;
    while (given && given[count])
        count++;
    *out = (struct site_hosts){NULL, 0};
    if (count > SITE_HOSTS_MAX) {
        result_decline(result, CATALOGUE_FULL, "");
        snprintf(result->detail, sizeof result->detail, "a site can have at most %u such hosts",
                 SITE_HOSTS_MAX);
        result->field = field;
        return CATALOGUE_OK;
    }
    *out = (struct site_hosts){calloc(count + 1, SITE_HOST_SIZE), 0};
    if (!out->name)
        return CATALOGUE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        enum rule_code code = url_parse_host(given[i], strlen(given[i]), out->name[i]);
        if (code != RULE_OK) {
            result_refuse(result, code, field);
            return CATALOGUE_OK;
        }
    }
    qsort(out->name, count, SITE_HOST_SIZE, compare_hosts);
    for (size_t i = 0; i < count; i++) {
        if (out->count > 0 && strcmp(out->name[i], out->name[out->count - 1]) == 0)
            continue;
        memmove(out->name[out->count++], out->name[i], SITE_HOST_SIZE);
    }
    return CATALOGUE_OK;
}

bool site_hosts_equal(const struct site_hosts *a, const char *const *b, size_t b_count)
{
    if (a->count != b_count)
        return false;
    for (size_t i = 0; i < b_count; i++)
        if (strcmp(a->name[i], b[i]) != 0)
            return false;
    return true;
}

/* "host" takes every port of it, "host:8443" that one. */
static bool hosts_overlap(const char *a, const char *b)
{
    size_t a_len = strcspn(a, ":"), b_len = strcspn(b, ":");
    if (a_len != b_len || memcmp(a, b, a_len) != 0)
        return false;
    return a[a_len] == '\0' || b[b_len] == '\0' || strcmp(a + a_len, b + b_len) == 0;
}

static bool same_host(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static bool has_alias(const struct registry_site *site, const char *host,
                      bool (*equal)(const char *a, const char *b))
{
    for (size_t i = 0; site && i < site->alias_host_count; i++)
        if (equal(site->alias_hosts[i], host))
            return true;
    return false;
}

void site_hosts_check_free(const struct registry *r, const struct change *change,
                           const struct registry_site *site, const struct site_hosts *alias,
                           struct change_result *result)
{
    for (size_t i = 0; !change->override_managed && i < alias->count; i++) {
        const char *host = alias->name[i];
        if (has_alias(site, host, same_host))
            continue;
        for (size_t k = 0; k < r->site_count; k++) {
            if (&r->sites[k] == site || !has_alias(&r->sites[k], host, hosts_overlap))
                continue;
            result_decline(result, CATALOGUE_CONFLICT, "");
            snprintf(result->detail, sizeof result->detail, "%s is another site's host alias",
                     host);
            result->field = "alias_hosts";
            return;
        }
    }
}

enum catalogue_status site_hosts_write(struct tx *tx, int64_t site_id, const char *kind,
                                       const struct site_hosts *hosts)
{
    sqlite3_stmt *clear = tx_statement(tx, ST_HOSTS_CLEAR);
    if (!clear)
        return tx_failure(tx);
    sqlite3_bind_int64(clear, 1, site_id);
    statement_bind_text(clear, 2, kind);
    enum catalogue_status status = statement_run(clear);
    for (size_t i = 0; status == CATALOGUE_OK && i < hosts->count; i++) {
        sqlite3_stmt *add = tx_statement(tx, ST_HOST_ADD);
        if (!add)
            return tx_failure(tx);
        sqlite3_bind_int64(add, 1, site_id);
        statement_bind_text(add, 2, hosts->name[i]);
        statement_bind_text(add, 3, kind);
        status = statement_run(add);
    }
    return status;
}

void site_hosts_done(struct site_hosts *hosts)
{
    free(hosts->name);
}
