/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The documented default configuration: config/sitemapd.conf is its output (a test compares), and
 * `sitemapd check-config --defaults` prints it. Every setting is a comment with its default, or
 * with an example if it has none, so that the file changes nothing and an upgrade may change a
 * default. */
#include "config/settings.h"

#include <string.h>

#include "server/base/str.h"

#define LINE_MAX_CHARS 100

static const char head[] =
    "; sitemapd: every setting with its default or, after \"Example:\", an example.\n"
    "; Remove the semicolon to change a setting. `sitemapd check-config FILE` finds mistakes.\n"
    ";\n"
    "; One `key = value` on a line of at most 4,096 bytes. A comment is a line of its own that "
    "begins\n"
    "; with ; or #. Sizes are written 512K, 64M or 1G; durations 500ms, 30s, 5m, 1h or 1d.\n"
    ";\n"
    "; A command line option overrides the environment, and the environment overrides this file. "
    "The\n"
    "; environment variables are SITEMAPD_LISTEN, SITEMAPD_ADMIN_LISTEN, SITEMAPD_DATABASE,\n"
    "; SITEMAPD_SHARED and, for all other settings outside of named sections, "
    "SITEMAPD_<SECTION>_<KEY>\n"
    "; (SITEMAPD_LOG_LEVEL). SITEMAPD_TOKEN, SITEMAPD_SITE and SITEMAPD_SOURCE have no "
    "setting.\n"
    ";\n"
    "; A reload (SIGHUP, systemctl reload sitemapd) applies changes, except where it says that a\n"
    "; setting needs a restart.\n";

static const struct {
    const char *section, *text;
} intros[] = {
    {"server", "The listener for crawlers."},
    {"admin", "The listener for the API, metrics and health. Keep it private."},
    {"catalogue", "The file that holds the sitemaps, and how it is written."},
    {"shared", "Several machines with one catalogue (docs/several-machines.md)."},
    {"history", "The history of changes."},
    {"cache", "Rendered pages, in memory and on disk."},
    {"limits", "The largest requests that are accepted."},
    {"notify", "Notifications of problems with sources and sitemaps."},
    {"trace", "Traces (docs/monitoring.md)."},
    {"fetch", "How remote sitemaps are polled."},
    {"log", "The log and the access log."},
    {"site", "A site that is created at start and managed by this file: the API and the command "
             "line cannot change it. One section for each site."},
    {"source",
     "A folder of sitemap files, or a remote sitemap index, that the server reads. One "
     "section for each. Its entries belong to its name; to rename it, see docs/folder.md."},
    {"token", "An API token whose hash is in a file. One section for each. Entries registered with "
              "it belong to its name."},
    {"crawler", "A crawler that is not built in, or settings of a built-in one (googlebot, "
                "bingbot, ...; docs/monitoring.md). One section for each."},
    {"engine",
     "A search engine that is queried about the sitemaps: google or bing (docs/engines.md)."},
};

const char *section_intro(const char *section)
{
    for (size_t i = 0; i < sizeof intros / sizeof *intros; i++)
        if (strcmp(intros[i].section, section) == 0)
            return intros[i].text;
    return "";
}

bool setting_needs_restart(const struct setting *s)
{
    return s->environment != NULL && !s->live;
}

/* Appends words as comment lines of at most LINE_MAX_CHARS. `*column` is the length of the current
 * line, 0 at first. */
static void append_words(struct str *out, const char *text, size_t *column)
{
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        if (*column > 0 && *column + 1 + len > LINE_MAX_CHARS) {
            str_append_char(out, '\n');
            *column = 0;
        }
        str_append_text(out, *column == 0 ? "; " : " ");
        str_append(out, text, len);
        *column += len + (*column == 0 ? 2 : 1);
        text += len + strspn(text + len, " ");
    }
}

static void append_section(struct str *out, const char *section, const char *name)
{
    size_t column = 0;
    str_append_char(out, '\n');
    append_words(out, section_intro(section), &column);
    str_append_format(out, name == NULL ? "\n[%s]\n" : "\n;[%s \"%s\"]\n", section, name);
}

static void append_setting(struct str *out, const struct setting *s)
{
    size_t column = 0;
    const char *value = s->fallback != NULL ? s->fallback : s->example;
    append_words(out, s->doc, &column);
    if (setting_needs_restart(s))
        append_words(out, "Needs a restart.", &column);
    if (s->fallback == NULL && s->example != NULL)
        append_words(out, "Example:", &column);
    str_append_format(out, "\n;%s = %s\n", s->key, value != NULL ? value : "");
}

void config_document(struct str *out)
{
    const char *section = "";

    str_append_text(out, head);
    for (size_t i = 0; i < config_settings_count; i++) {
        const struct setting *s = &config_settings[i];
        if (!s->in_file)
            continue;
        if (strcmp(section, s->section) != 0)
            append_section(out, section = s->section, NULL);
        else
            str_append_char(out, '\n');
        append_setting(out, s);
    }
    for (size_t i = 0; i < config_sections_count; i++) {
        const struct section_table *t = &config_sections[i];
        append_section(out, t->section, t->example);
        for (size_t k = 0; k < t->setting_count; k++) {
            if (k > 0)
                str_append_char(out, '\n');
            append_setting(out, &t->settings[k]);
        }
    }
}
