/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads the file, line by line: `[section]`, `[section "name"]`, `key = value`, and comments, which
 * begin with ; or # and have a line of their own. The parser never guesses, truncates or joins
 * lines: an ambiguous line is a mistake, and every mistake is reported with its line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/settings.h"
#include "config/suggest.h"
#include "server/base/file.h"

#define FILE_MAX_BYTES 1048576u /* a configuration, not /dev/zero */
#define LINE_MAX_BYTES 4096u
#define SECTION_MAX    49u /* between the brackets; lists have a column for names */
#define BLANKS         " \t\r"

enum section_kind {
    SECTION_NONE,    /* before the first header */
    SECTION_REFUSED, /* its header was a mistake: its keys are not checked */
    SECTION_PLAIN,
    SECTION_NAMED,
};

struct file_reader {
    struct config *config;
    struct mistakes mistakes;
    enum section_kind kind;
    char section[SECTION_MAX + 1];
    const struct section_table *table; /* SECTION_NAMED */
    size_t at;                         /* the section's place in its array */
};

/* ---- section headers ------------------------------------------------------------------- */

static void refuse_section(struct file_reader *r, const char *name)
{
    struct suggestion near = {0};
    char word[SECTION_MAX + 1]; /* without the name that follows it */

    snprintf(word, sizeof word, "%.*s", (int)strcspn(name, BLANKS "\""), name);
    for (size_t i = 0; i < config_settings_count; i++)
        suggest_consider(&near, word, config_settings[i].section);
    for (size_t i = 0; i < config_sections_count; i++)
        suggest_consider(&near, word, config_sections[i].section);
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

/* Opens `[site "name"]`: `name` is all that is between the brackets, `table` the table of "site".
 */
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
        mistakes_add(&r->mistakes, "a section [%s] needs a name: write [%s \"name\"]",
                     table->section, table->section);
        return;
    }
    memcpy(plain, quoted + 1, len - 2);
    plain[len - 2] = '\0';
    for (size_t i = 0; i < section_count(c, table); i++) {
        if (strcmp(section_at(c, table, i)->name, plain) == 0) {
            mistakes_add(&r->mistakes, "[%s \"%s\"] occurs twice; first in line %u", table->section,
                         plain, section_at(c, table, i)->line);
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

/* `line` begins with a bracket. */
static void open_section(struct file_reader *r, char *line)
{
    char *end = strchr(line, ']'), *name = line + 1;
    const struct section_table *table;

    r->kind = SECTION_REFUSED;
    if (end == NULL) {
        mistakes_add(&r->mistakes, "a section needs its closing ]");
        return;
    }
    if (end - name > (int)SECTION_MAX) {
        mistakes_add(&r->mistakes, "the section's name is longer than %u bytes", SECTION_MAX);
        return;
    }
    *end++ = '\0';
    end += strspn(end, BLANKS);
    if (*end != '\0' && *end != ';' && *end != '#') {
        mistakes_add(&r->mistakes, "a section header must be alone on its line");
        return;
    }
    for (size_t i = 0; i < config_settings_count; i++) {
        if (strcmp(config_settings[i].section, name) == 0) {
            strcpy(r->section, name);
            r->kind = SECTION_PLAIN;
            return;
        }
    }
    table = section_find(name, strcspn(name, BLANKS "\""));
    if (table != NULL)
        open_named(r, table, name);
    else
        refuse_section(r, name);
}

/* ---- keys ------------------------------------------------------------------------------ */

/* Whether `key` is the setting's key or the name in its environment variable or flag: admin_listen
 * is listen in [admin]. */
static bool may_mean(const struct setting *s, const char *key)
{
    static const char prefix[] = "SITEMAPD_";
    size_t len = strlen(prefix);

    return s->in_file && (strcmp(s->key, key) == 0 ||
                          (s->environment != NULL && strncmp(s->environment, prefix, len) == 0 &&
                           strcasecmp(s->environment + len, key) == 0));
}

static void refuse_key(struct file_reader *r, const char *key)
{
    bool named = r->kind == SECTION_NAMED;
    const struct setting *table = named ? r->table->settings : config_settings;
    size_t count = named ? r->table->setting_count : config_settings_count;
    const char *section = named ? r->table->section : r->section;
    const struct setting *elsewhere = NULL;
    struct suggestion near = {0};

    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].section, section) == 0 && table[i].in_file)
            suggest_consider(&near, key, table[i].key);
    for (size_t i = 0; i < config_settings_count; i++)
        if (elsewhere == NULL && may_mean(&config_settings[i], key))
            elsewhere = &config_settings[i];
    if (near.word != NULL)
        mistakes_add(&r->mistakes, "unknown setting \"%.60s\" in [%s]; did you mean \"%s\"?", key,
                     section, near.word);
    else if (elsewhere != NULL && strcmp(elsewhere->key, key) == 0)
        mistakes_add(&r->mistakes, "unknown setting \"%.60s\" in [%s]; it belongs in [%s]", key,
                     section, elsewhere->section);
    else if (elsewhere != NULL)
        mistakes_add(&r->mistakes,
                     "unknown setting \"%.60s\" in [%s]; write \"%s\" in section [%s]", key,
                     section, elsewhere->key, elsewhere->section);
    else
        mistakes_add(&r->mistakes, "unknown setting \"%.60s\" in [%s]", key, section);
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
        mistakes_add(&r->mistakes, "%s is set twice; first in line %u", key, *seen);
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
    else if (s->in_file)
        config_assign(r->config, s, LEVEL_FILE, value, &r->mistakes);
    else if (s->kind == SETTING_SECRET)
        mistakes_add(&r->mistakes, "%s: a secret does not belong in this file; set %s", key,
                     s->environment);
    else
        mistakes_add(&r->mistakes, "%s: write a section [%s \"name\"]", key, key);
}

static void parse_key(struct file_reader *r, char *line)
{
    size_t key_len = strcspn(line, "=:");
    char *value;
    size_t len;

    if (line[key_len] != '=' || key_len == 0) {
        mistakes_add(&r->mistakes, "is not a setting; write key = value");
        return;
    }
    for (const char *p = line; (p = strpbrk(p, ";#")) != NULL; p++)
        if (strchr(BLANKS, p[-1]) != NULL) {
            mistakes_add(&r->mistakes,
                         "a \" %c\" would be part of the value; a comment needs a line of its own",
                         *p);
            return;
        }
    value = line + key_len + 1;
    value += strspn(value, BLANKS);
    while (key_len > 0 && strchr(BLANKS, line[key_len - 1]) != NULL)
        key_len--;
    line[key_len] = '\0';
    len = strlen(value);
    if (len >= 2 && value[0] == '"' && value[len - 1] == '"') {
        mistakes_add(&r->mistakes, "write the value without quotes; they would be part of it");
        return;
    }
    switch (r->kind) {
    case SECTION_NONE:
        mistakes_add(&r->mistakes, "\"%.60s\" is before the first section", line);
        break;
    case SECTION_REFUSED:
        break;
    case SECTION_PLAIN:
        assign_key(r, line, value);
        break;
    case SECTION_NAMED:
        assign_named_key(r, line, value);
        break;
    }
}

/* ---- lines ----------------------------------------------------------------------------- */

static bool has_control(const char *line)
{
    for (const char *p = line; *p != '\0'; p++)
        if (((unsigned char)*p < ' ' && *p != '\t') || *p == 0x7f)
            return true;
    return false;
}

/* Parses a line of `len` bytes. */
static void parse_line(struct file_reader *r, char *line, size_t len)
{
    static const char bom[] = "\xef\xbb\xbf";

    if (r->mistakes.line == 1 && strncmp(line, bom, sizeof bom - 1) == 0)
        line += sizeof bom - 1, len -= sizeof bom - 1;
    while (len > 0 && len <= LINE_MAX_BYTES && line[len - 1] != '\0' &&
           strchr(BLANKS, line[len - 1]) != NULL)
        line[--len] = '\0';
    line[len < LINE_MAX_BYTES ? len : LINE_MAX_BYTES] = '\0';
    char *text = line + strspn(line, BLANKS);
    if (*text == ';' || *text == '#' || len == 0)
        return; /* a comment, however long */
    if (len > LINE_MAX_BYTES)
        mistakes_add(&r->mistakes, "the line is longer than %u bytes", LINE_MAX_BYTES);
    else if (strlen(line) < len)
        mistakes_add(&r->mistakes, "has a NUL byte");
    else if (has_control(text))
        mistakes_add(&r->mistakes, "has a control character");
    else if (*text != '[') {
        parse_key(r, text);
        return;
    } else {
        open_section(r, text);
        return;
    }
    if (*text == '[') /* the keys that follow belong to an unknown section */
        r->kind = SECTION_REFUSED;
}

/* Parses all lines. Of a file that is too large, the line that exceeds the limit is left out. */
static void read_lines(struct file_reader *r, char *text, size_t len)
{
    char *end = text + (len < FILE_MAX_BYTES ? len : FILE_MAX_BYTES);

    for (char *line = text, *next; line < end; line = next + 1) {
        next = memchr(line, '\n', (size_t)(end - line));
        if (next == NULL && len > FILE_MAX_BYTES)
            break;
        if (next == NULL)
            next = end;
        r->mistakes.line++;
        parse_line(r, line, (size_t)(next - line));
    }
    if (len > FILE_MAX_BYTES) {
        r->mistakes.line++;
        mistakes_add(&r->mistakes, "the file is larger than %u bytes", FILE_MAX_BYTES);
    }
}

/* A start may read the settings from a pipe. A reload may not: a pipe that was read is empty, and
 * the process would wait forever. Nor may check-config: the start would find the pipe empty. */
bool config_read_file(struct config *c, const char *file, config_report *report, void *context)
{
    struct file_reader r = {.config = c};
    size_t len = 0;
    char *text =
        file_read(file, c->no_pipe ? FILE_NO_PIPE : FILE_ANY, FILE_MAX_BYTES + 1, &len, NULL);

    r.mistakes = (struct mistakes){.file = file, .report = report, .context = context};
    if (text == NULL && errno == ESPIPE)
        mistakes_add(&r.mistakes,
                     "is a pipe; give a regular file, since it is read more than once");
    else if (text == NULL)
        mistakes_add(&r.mistakes, "cannot be read: %s", strerror(errno));
    else
        read_lines(&r, text, len);
    free(text);
    free(c->file);
    c->file = strdup(file);
    if (c->file == NULL)
        mistakes_add(&r.mistakes, "out of memory");
    return r.mistakes.count == 0;
}
