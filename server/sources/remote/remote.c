#include "server/sources/remote/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/rules/url.h"

struct remote {
    struct remote_options options;
};

const char *remote_result_word(enum remote_result result)
{
    static const char *const words[REMOTE_RESULTS] = {"changed", "same",    "not_modified",
                                                      "bad",     "refused", "unreachable"};
    return words[result];
}

bool remote_settings_check(const struct remote_settings *settings, char *why, size_t why_size)
{
    struct url url;
    if (url_parse(settings->upstream, strlen(settings->upstream), &url, NULL) == RULE_OK)
        return true;
    snprintf(why, why_size, "upstream is no URL: %.200s", settings->upstream);
    return false;
}

bool remote_start(const struct remote_options *options, struct remote **out, char *why,
                  size_t why_size)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL) {
        snprintf(why, why_size, "out of memory");
        return false;
    }
    (*out)->options = *options;
    return true;
}

bool remote_reconfigure(struct remote *r, const struct remote_bounds *bounds, size_t count,
                        const struct remote_settings *settings, char *why, size_t why_size)
{
    (void)r, (void)bounds, (void)count, (void)settings, (void)why, (void)why_size;
    return true;
}

void remote_end(struct remote *r)
{
    (void)r;
}

void remote_stop(struct remote *r)
{
    free(r);
}

void remote_scan(struct remote *r, const char *name, int64_t max_removed, remote_scanned *done,
                 void *context)
{
    (void)r, (void)name, (void)max_removed;
    done(context, NULL, "there is no such source");
}

void remote_poll(struct remote *r, int64_t site_id, const char *loc, remote_polled *done,
                 void *context)
{
    (void)r, (void)site_id, (void)loc;
    done(context, NULL, "it is not watched");
}

void remote_look(struct remote *r)
{
    (void)r;
}

bool remote_status(struct remote *r, const char *name, struct remote_status *out)
{
    (void)r, (void)name, (void)out;
    return false;
}

void remote_counts_get(struct remote *r, struct remote_counts *out)
{
    (void)r;
    memset(out, 0, sizeof *out);
}
