/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sets one setting from the file, the environment or a flag, and remembers the level that set it: a
 * stronger level wins, and two lines of one level are a mistake. */
#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/settings.h"
#include "config/suggest.h"

#define PREFIX        "SITEMAPD_"
#define DATABASE_NAME "catalogue.db"
#define SERVICE_STATE "/var/lib/sitemapd"

static const char *environment_value(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && *value != '\0' ? value : NULL;
}

/* True for root and for the service's user, whose home folder is not the state folder. */
static bool runs_as_service(void)
{
    struct stat folder;

    return geteuid() == 0 || (stat(SERVICE_STATE, &folder) == 0 && folder.st_uid == geteuid());
}

/* The state folder of this platform; see config_new. */
static char *default_database(void)
{
    const char *folder = environment_value("STATE_DIRECTORY"), *home;
    char *path = NULL;
    int len;

    if (folder != NULL) /* systemd separates several by colons; the first is the main one */
        len = asprintf(&path, "%.*s/" DATABASE_NAME, (int)strcspn(folder, ":"), folder);
    else if (runs_as_service())
        len = asprintf(&path, SERVICE_STATE "/" DATABASE_NAME);
    else if ((folder = environment_value("XDG_STATE_HOME")) != NULL)
        len = asprintf(&path, "%s/sitemapd/" DATABASE_NAME, folder);
    else if ((home = environment_value("HOME")) != NULL)
        len = asprintf(&path, "%s/.local/state/sitemapd/" DATABASE_NAME, home);
    else
        len = asprintf(&path, DATABASE_NAME);
    return len < 0 ? NULL : path;
}

struct config *config_new(void)
{
    struct config *c = calloc(1, sizeof *c);
    struct mistakes m = {0};

    if (c == NULL)
        return NULL;
    atomic_init(&c->references, 1);
    c->set_by = calloc(config_settings_count, sizeof *c->set_by);
    c->database = default_database();
    for (size_t i = 0; i < config_settings_count; i++)
        if (config_settings[i].fallback != NULL)
            setting_assign(&config_settings[i], c, config_settings[i].fallback, &m);
    /* Only memory can be missing: a test parses every fallback. */
    if (c->set_by != NULL && c->database != NULL && m.count == 0)
        return c;
    config_unref(c);
    return NULL;
}

struct config *config_ref(struct config *c)
{
    atomic_fetch_add(&c->references, 1);
    return c;
}

void config_unref(struct config *c)
{
    if (c == NULL || atomic_fetch_sub(&c->references, 1) > 1)
        return;
    for (size_t i = 0; i < config_settings_count; i++)
        setting_clear(&config_settings[i], c);
    for (size_t i = 0; i < config_sections_count; i++)
        sections_done(c, &config_sections[i]);
    free(c->set_by);
    free(c->file);
    free(c);
}

#define SHARED_WRITE_TIMEOUT_MS 30000u

uint32_t config_write_timeout_ms(const struct config *c)
{
    const struct setting *s = setting_find("catalogue", "write_timeout");
    bool set = c->set_by[s - config_settings].level != LEVEL_DEFAULT;

    return set || c->shared_database == NULL ? c->write_timeout_ms : SHARED_WRITE_TIMEOUT_MS;
}

void config_wipe_token(struct config *c)
{
    char *variable = getenv("SITEMAPD_TOKEN");

    if (c->token != NULL)
        explicit_bzero(c->token, strlen(c->token));
    if (variable != NULL)
        explicit_bzero(variable, strlen(variable));
}

static void assign_one(struct config *c, const struct setting *s, enum setting_level level,
                       const char *text, struct mistakes *m)
{
    struct config_set_by *by = &c->set_by[s - config_settings];

    if (by->level > level)
        return;
    if (by->level == LEVEL_FILE && level == LEVEL_FILE && s->count_offset == 0) {
        mistakes_add(m, "%s is set twice; first in line %u", s->key, by->line);
        return;
    }
    if (by->level < level && s->count_offset != 0)
        setting_clear(s, c);
    by->level = level;
    by->line = m->line;
    setting_assign(s, c, text, m);
}

void config_assign(struct config *c, const struct setting *s, enum setting_level level,
                   const char *text, struct mistakes *m)
{
    char *copy, *rest, *word;

    if (s->count_offset == 0) {
        assign_one(c, s, level, text, m);
        return;
    }
    copy = strdup(text);
    if (copy == NULL) {
        mistakes_add(m, "out of memory");
        return;
    }
    word = strtok_r(copy, " \t\r\n", &rest);
    if (word == NULL)
        assign_one(c, s, level, "", m); /* reports that the value is missing */
    for (; word != NULL; word = strtok_r(NULL, " \t\r\n", &rest))
        assign_one(c, s, level, word, m);
    free(copy);
}

/* False, with a report, for a variable that looks like a mistyped setting. Other unknown variables
 * are ignored: Kubernetes makes SITEMAPD_PORT and SITEMAPD_SERVICE_HOST for a service named
 * sitemapd. */
static bool known_or_far(const char *name, config_report *report, void *context)
{
    static const char *const commands_own[] = {"SITEMAPD_CONFIG", "SITEMAPD_SERVER",
                                               "SITEMAPD_CA_FILE"}; /* see cli/arguments.c */
    struct suggestion near = {0};
    const char *bare = NULL;
    struct mistakes m = {.name = name, .report = report, .context = context};

    for (size_t i = 0; i < sizeof commands_own / sizeof *commands_own; i++)
        if (strcmp(commands_own[i], name) == 0)
            return true;
    for (size_t i = 0; i < config_settings_count; i++) {
        if (strcmp(config_settings[i].environment, name) == 0)
            return true;
        suggest_consider(&near, name, config_settings[i].environment);
        if (strcasecmp(name + strlen(PREFIX), config_settings[i].key) == 0)
            bare = config_settings[i].environment; /* its section was left out */
    }
    if (bare != NULL)
        near.word = bare;
    if (near.word != NULL)
        mistakes_add(&m, "unknown setting; did you mean %s?", near.word);
    return m.count == 0;
}

bool config_read_environment(struct config *c, config_report *report, void *context)
{
    bool good = true;

    for (size_t i = 0; i < config_settings_count; i++) {
        const struct setting *s = &config_settings[i];
        const char *value = environment_value(s->environment);
        struct mistakes m = {.name = s->environment, .report = report, .context = context};

        if (value == NULL)
            continue;
        config_assign(c, s, LEVEL_ENVIRONMENT, value, &m);
        good = good && m.count == 0;
    }
    for (char **variable = environ; *variable != NULL; variable++) {
        char name[64];
        size_t len = strcspn(*variable, "=");

        if (strncmp(*variable, PREFIX, strlen(PREFIX)) != 0 || len >= sizeof name)
            continue;
        memcpy(name, *variable, len);
        name[len] = '\0';
        good = known_or_far(name, report, context) && good;
    }
    return good;
}

bool config_set(struct config *c, const char *name, const char *value, config_report *report,
                void *context)
{
    struct mistakes m = {.name = name, .report = report, .context = context};
    const char *dot = strchr(name, '.');
    const struct setting *s = NULL;
    char section[32];

    if (dot != NULL && (size_t)(dot - name) < sizeof section) {
        memcpy(section, name, (size_t)(dot - name));
        section[dot - name] = '\0';
        s = setting_find(section, dot + 1);
    }
    if (s == NULL) {
        mistakes_add(&m, "unknown setting");
        return false;
    }
    assign_one(c, s, LEVEL_FLAG, value, &m);
    return m.count == 0;
}
