/* Reads the file through inih, with a reader of our own in front of it: inih cuts lines and
 * section names that are too long, takes an indented line for more of the key above, cuts a value
 * at ` ;`, ignores what stands behind `]`, and reports only the first bad line. All of these would
 * change a setting in silence, so the reader refuses such lines and hands inih an empty one. */
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_settings.h"
#include "config/suggest.h"

#define FILE_MAX_BYTES 1048576u /* a configuration, not /dev/zero */
#define SECTION_MAX    49u      /* inih's MAX_SECTION, without the NUL */
#define BLANKS         " \t\r"

enum section_kind {
    SECTION_NONE,    /* before the first header */
    SECTION_REFUSED, /* its header was a mistake: its keys are not judged */
    SECTION_PLAIN,
    SECTION_NAMED,
};

struct file_reader {
    FILE *stream;
    struct config *config;
    struct mistakes mistakes;
    size_t bytes;
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

static void open_section(struct file_reader *r, const char *name)
{
    r->kind = SECTION_REFUSED;
    for (size_t i = 0; i < config_settings_count; i++) {
        if (strcmp(config_settings[i].section, name) == 0) {
            strcpy(r->section, name);
            r->kind = SECTION_PLAIN;
            return;
        }
    }
    const struct section_table *table = section_find(name, strcspn(name, BLANKS "\""));
    if (table != NULL)
        open_named(r, table, name);
    else
        refuse_section(r, name);
}

/* ---- one line -------------------------------------------------------------------------- */

/* inih takes a `;` behind any white space for the start of a comment. */
static const char *find_comment(const char *line)
{
    for (const char *p = line; (p = strchr(p, ';')) != NULL; p++)
        if (p > line && strchr(" \t", p[-1]) != NULL)
            return p;
    return NULL;
}

/* True where inih may have the line. */
static bool judge_header(struct file_reader *r, const char *line)
{
    const char *end = strchr(line, ']'), *behind;
    char name[SECTION_MAX + 1];
    size_t len;

    r->kind = SECTION_REFUSED;
    if (end == NULL) {
        mistakes_add(&r->mistakes, "a section needs its closing ]");
        return false;
    }
    len = (size_t)(end - line) - 1;
    if (len > SECTION_MAX) {
        mistakes_add(&r->mistakes, "the section's name is longer than %u bytes; it would be cut",
                     SECTION_MAX);
        return false;
    }
    behind = end + 1 + strspn(end + 1, BLANKS);
    if (*behind != '\0' && *behind != ';' && *behind != '#') {
        mistakes_add(&r->mistakes, "a section's header stands alone on its line");
        return false;
    }
    memcpy(name, line + 1, len);
    name[len] = '\0';
    open_section(r, name);
    return r->kind != SECTION_REFUSED;
}

static bool judge_key(struct file_reader *r, const char *line)
{
    size_t key_len = strcspn(line, "=:");
    const char *value;
    size_t len;

    if (line[key_len] != '=' || key_len == 0) {
        mistakes_add(&r->mistakes, "is no setting; write key = value");
        return false;
    }
    if (find_comment(line) != NULL) {
        mistakes_add(&r->mistakes, "a \" ;\" would cut the line there; a comment stands on a line "
                                   "of its own");
        return false;
    }
    value = line + key_len + 1;
    value += strspn(value, BLANKS);
    len = strlen(value);
    if (len >= 2 && value[0] == '"' && value[len - 1] == '"') {
        mistakes_add(&r->mistakes, "write the value without quotes; they would be part of it");
        return false;
    }
    return true;
}

static bool judge_line(struct file_reader *r, const char *line)
{
    size_t blanks = strspn(line, BLANKS);

    if (line[blanks] == '\0' || line[blanks] == ';' || line[blanks] == '#')
        return true;
    for (const char *p = line; *p != '\0'; p++) {
        if (((unsigned char)*p < ' ' && *p != '\t') || *p == 0x7f) {
            mistakes_add(&r->mistakes, "has a control character");
            return false;
        }
    }
    if (blanks > 0) {
        mistakes_add(&r->mistakes,
                     "begins with a blank; it would be read as more of the key above");
        return false;
    }
    return line[0] == '[' ? judge_header(r, line) : judge_key(r, line);
}

/* ---- the reader ------------------------------------------------------------------------ */

struct raw_line {
    size_t len; /* bytes of it, also those that found no room */
    bool has_nul;
    bool end; /* nothing was left to read */
};

static struct raw_line read_line(struct file_reader *r, char *out, size_t size)
{
    struct raw_line line = {0};
    int c;

    while ((c = getc(r->stream)) != EOF && c != '\n') {
        if (line.len + 1 < size)
            out[line.len] = (char)c;
        line.has_nul = line.has_nul || c == '\0';
        line.len++;
        if (++r->bytes > FILE_MAX_BYTES)
            break;
    }
    line.end = c == EOF && line.len == 0;
    out[line.len < size ? line.len : size - 1] = '\0';
    return line;
}

/* inih's: fills `out` with the next line, or with nothing where it must not see it. */
static char *next_line(char *out, int num, void *context)
{
    static const char bom[] = "\xef\xbb\xbf";
    struct file_reader *r = context;
    size_t size = (size_t)num, len;
    struct raw_line line = read_line(r, out, size);
    bool good;

    if (line.end)
        return NULL;
    r->mistakes.line++;
    if (r->bytes > FILE_MAX_BYTES) {
        mistakes_add(&r->mistakes, "the file is larger than %u bytes", FILE_MAX_BYTES);
        return NULL;
    }
    if (r->mistakes.line == 1 && strncmp(out, bom, sizeof bom - 1) == 0)
        memmove(out, out + sizeof bom - 1, strlen(out) - (sizeof bom - 1) + 1);
    len = strlen(out);
    while (len > 0 && strchr(BLANKS, out[len - 1]) != NULL)
        out[--len] = '\0';
    if (out[strspn(out, BLANKS)] == ';' || out[strspn(out, BLANKS)] == '#') {
        good = false; /* a comment, however long */
    } else if (line.len + 1 >= size) {
        /* inih 59 takes a full buffer without a line's end for one that goes on, and skips more. */
        mistakes_add(&r->mistakes, "the line is longer than %zu bytes; it would be cut", size - 2);
        if (out[0] == '[')
            r->kind = SECTION_REFUSED;
        good = false;
    } else if (line.has_nul) {
        mistakes_add(&r->mistakes, "has a NUL byte");
        good = false;
    } else {
        good = judge_line(r, out);
    }
    if (!good)
        out[0] = '\0';
    return out;
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
    int line;

    r.mistakes = (struct mistakes){.file = file, .report = report, .context = context};
    free(c->file);
    c->file = strdup(file);
    r.stream = fopen(file, "re");
    if (r.stream == NULL || c->file == NULL) {
        mistakes_add(&r.mistakes, "cannot be read: %s", strerror(errno));
    } else {
        line = ini_parse_stream(next_line, &r, take_key, &r);
        if (ferror(r.stream))
            mistakes_add(&r.mistakes, "cannot be read: %s", strerror(errno));
        else if (line != 0 && r.mistakes.count == 0) { /* we know all it may say; be sure */
            r.mistakes.line = line > 0 ? (unsigned)line : 0;
            mistakes_add(&r.mistakes, "cannot be understood");
        }
    }
    if (r.stream != NULL)
        fclose(r.stream);
    return r.mistakes.count == 0;
}
