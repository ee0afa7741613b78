/* Reads the file: inih takes the lines apart that the line reader lets it have, and here is judged
 * which sections and keys there are. */
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_settings.h"
#include "config/line_reader.h"
#include "config/suggest.h"

enum section_kind {
    SECTION_NONE,    /* before the first header */
    SECTION_REFUSED, /* its header was a mistake: its keys are not judged */
    SECTION_PLAIN,
    SECTION_NAMED,
};

struct file_reader {
    struct config *config;
    struct mistakes mistakes;
    enum section_kind kind;
    char section[SECTION_MAX + 1];
    const struct section_table *table; /* SECTION_NAMED */
    size_t at;                         /* its place among those */
};

/* ---- section headers ------------------------------------------------------------------- */

static void refuse_section(struct file_reader *r, const char *name)
{
    struct suggestion near = {0};

    for (size_t i = 0; i < config_settings_count; i++)
        suggest_consider(&near, name, config_settings[i].section);
    for (size_t i = 0; i < config_sections_count; i++)
        suggest_consider(&near, name, config_sections[i].section);
    if (near.word != NULL)
        mistakes_add(&r->mistakes, "unknown section [%s]; did you mean [%s]?", name, near.word);
    else
        mistakes_add(&r->mistakes, "unknown section [%s]", name);
}

static bool is_section_name(const char *name, size_t len)
{
    if (len == 0)
        return false;
    for (size_t i = 0; i < len; i++)
        if (name[i] <= ' ' || name[i] > '~' || name[i] == '"')
            return false;
    return true;
}

/* `[site "name"]`, of which `name` is all between the brackets and `table` what its word means. */
static void open_named(struct file_reader *r, const struct section_table *table, const char *name)
{
    const char *quoted = name + strlen(table->section);
    struct config *c = r->config;
    char plain[SECTION_MAX + 1];
    size_t len;

    quoted += strspn(quoted, BLANKS);
    len = strlen(quoted);
    if (len < 2 || quoted[0] != '"' || quoted[len - 1] != '"' ||
        !is_section_name(quoted + 1, len - 2)) {
        mistakes_add(&r->mistakes, "this section is written [%s \"name\"]", table->section);
        return;
    }
    memcpy(plain, quoted + 1, len - 2);
    plain[len - 2] = '\0';
    for (size_t i = 0; i < section_count(c, table); i++) {
        if (strcmp(section_at(c, table, i)->name, plain) == 0) {
            mistakes_add(&r->mistakes, "[%s \"%s\"] stands twice; it began in line %u",
                         table->section, plain, section_at(c, table, i)->line);
            return;
        }
    }
    if (section_new(c, table, plain, r->mistakes.line) == NULL) {
        mistakes_add(&r->mistakes, "out of memory");
        return;
    }
    r->table = table;
    r->at = section_count(c, table) - 1;
    r->kind = SECTION_NAMED;
}

/* Of the line reader. */
static bool open_section(void *context, const char *name)
{
    struct file_reader *r = context;

    r->kind = SECTION_REFUSED;
    if (name == NULL)
        return false;
    for (size_t i = 0; i < config_settings_count; i++) {
        if (strcmp(config_settings[i].section, name) == 0) {
            strcpy(r->section, name);
            r->kind = SECTION_PLAIN;
            return true;
        }
    }
    const struct section_table *table = section_find(name, strcspn(name, BLANKS "\""));
    if (table != NULL)
        open_named(r, table, name);
    else
        refuse_section(r, name);
    return r->kind != SECTION_REFUSED;
}

/* ---- keys ------------------------------------------------------------------------------ */

static void refuse_key(struct file_reader *r, const char *key)
{
    bool named = r->kind == SECTION_NAMED;
    const struct setting *table = named ? r->table->settings : config_settings;
    size_t count = named ? *r->table->setting_count : config_settings_count;
    const char *section = named ? r->table->section : r->section, *elsewhere = NULL;
    struct suggestion near = {0};

    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].section, section) == 0 && table[i].in_file)
            suggest_consider(&near, key, table[i].key);
    for (size_t i = 0; i < config_settings_count; i++)
        if (strcmp(config_settings[i].key, key) == 0 && config_settings[i].in_file)
            elsewhere = config_settings[i].section;
    if (near.word != NULL)
        mistakes_add(&r->mistakes, "unknown key \"%.60s\" in [%s]; did you mean \"%s\"?", key,
                     section, near.word);
    else if (elsewhere != NULL)
        mistakes_add(&r->mistakes, "unknown key \"%.60s\" in [%s]; it belongs in [%s]", key,
                     section, elsewhere);
    else
        mistakes_add(&r->mistakes, "unknown key \"%.60s\" in [%s]", key, section);
}

static void assign_named_key(struct file_reader *r, const char *key, const char *value)
{
    const struct setting *s = section_setting(r->table, key);
    struct config_named *section = section_at(r->config, r->table, r->at);
    unsigned *seen;

    if (s == NULL) {
        refuse_key(r, key);
        return;
    }
    seen = &section->seen[s - r->table->settings];
    if (*seen != 0 && s->count_offset == 0) {
        mistakes_add(&r->mistakes, "%s stands twice; it was set in line %u", key, *seen);
        return;
    }
    *seen = r->mistakes.line;
    setting_assign(s, section, value, &r->mistakes);
}

static void assign_key(struct file_reader *r, const char *key, const char *value)
{
    const struct setting *s = setting_find(r->section, key);

    if (s == NULL)
        refuse_key(r, key);
    else if (s->in_file && s->count_offset != 0)
        config_assign_words(r->config, s, LEVEL_FILE, value, &r->mistakes);
    else if (s->in_file)
        config_assign(r->config, s, LEVEL_FILE, value, &r->mistakes);
    else if (s->kind == SETTING_SECRET)
        mistakes_add(&r->mistakes, "%s: a secret does not belong in this file; set %s", key,
                     s->environment);
    else
        mistakes_add(&r->mistakes, "%s: write a section [%s \"name\"]", key, key);
}

/* inih's handler. Always content: mistakes are told by us, all of them. */
static int take_key(void *context, const char *section, const char *key, const char *value)
{
    struct file_reader *r = context;

    (void)section; /* the reader saw its header, also where two of one name follow each other */
    if (key == NULL || value == NULL)
        return 1; /* other builds of inih call for headers, and for keys without a value */
    switch (r->kind) {
    case SECTION_NONE:
        mistakes_add(&r->mistakes, "\"%.60s\" stands before the first section", key);
        break;
    case SECTION_REFUSED:
        break;
    case SECTION_PLAIN:
        assign_key(r, key, value);
        break;
    case SECTION_NAMED:
        assign_named_key(r, key, value);
        break;
    }
    return 1;
}

bool config_read_file(struct config *c, const char *file, config_report *report, void *context)
{
    struct file_reader r = {.config = c};
    struct line_reader lines = {.mistakes = &r.mistakes, .section = open_section, .context = &r};
    int line;

    r.mistakes = (struct mistakes){.file = file, .report = report, .context = context};
    free(c->file);
    c->file = strdup(file);
    lines.stream = fopen(file, "re");
    if (lines.stream == NULL || c->file == NULL) {
        mistakes_add(&r.mistakes, "cannot be read: %s", strerror(errno));
    } else {
        line = ini_parse_stream(line_reader_next, &lines, take_key, &r);
        if (ferror(lines.stream))
            mistakes_add(&r.mistakes, "cannot be read: %s", strerror(errno));
        else if (line != 0 && r.mistakes.count == 0) { /* we know all it may say; be sure */
            r.mistakes.line = line > 0 ? (unsigned)line : 0;
            mistakes_add(&r.mistakes, "cannot be understood");
        }
    }
    if (lines.stream != NULL)
        fclose(lines.stream);
    return r.mistakes.count == 0;
}
