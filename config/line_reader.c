#include "config/line_reader.h"

#include <string.h>

#define FILE_MAX_BYTES 1048576u /* a configuration, not /dev/zero */

/* ---- one line -------------------------------------------------------------------------- */

/* inih takes a `;` behind any white space for the start of a comment. */
static const char *find_comment(const char *line)
{
    for (const char *p = line; (p = strchr(p, ';')) != NULL; p++)
        if (p > line && strchr(" \t", p[-1]) != NULL)
            return p;
    return NULL;
}

/* What follows belongs to no section that we know. */
static bool refuse_header(struct line_reader *r)
{
    r->section(r->context, NULL);
    return false;
}

/* True where inih may have the line. */
static bool judge_header(struct line_reader *r, const char *line)
{
    const char *end = strchr(line, ']'), *behind;
    char name[SECTION_MAX + 1];
    size_t len;

    if (end == NULL) {
        mistakes_add(r->mistakes, "a section needs its closing ]");
        return false;
    }
    len = (size_t)(end - line) - 1;
    if (len > SECTION_MAX) {
        mistakes_add(r->mistakes, "the section's name is longer than %u bytes; it would be cut",
                     SECTION_MAX);
        return false;
    }
    behind = end + 1 + strspn(end + 1, BLANKS);
    if (*behind != '\0' && *behind != ';' && *behind != '#') {
        mistakes_add(r->mistakes, "a section's header stands alone on its line");
        return false;
    }
    memcpy(name, line + 1, len);
    name[len] = '\0';
    return r->section(r->context, name);
}

static bool judge_key(struct line_reader *r, const char *line)
{
    size_t key_len = strcspn(line, "=:");
    const char *value;
    size_t len;

    if (line[key_len] != '=' || key_len == 0) {
        mistakes_add(r->mistakes, "is no setting; write key = value");
        return false;
    }
    if (find_comment(line) != NULL) {
        mistakes_add(r->mistakes, "a \" ;\" would cut the line there; a comment stands on a line "
                                  "of its own");
        return false;
    }
    value = line + key_len + 1;
    value += strspn(value, BLANKS);
    len = strlen(value);
    if (len >= 2 && value[0] == '"' && value[len - 1] == '"') {
        mistakes_add(r->mistakes, "write the value without quotes; they would be part of it");
        return false;
    }
    return true;
}

static bool judge_line(struct line_reader *r, const char *line)
{
    size_t blanks = strspn(line, BLANKS);

    if (line[blanks] == '\0' || line[blanks] == ';' || line[blanks] == '#')
        return true;
    for (const char *p = line; *p != '\0'; p++) {
        if (((unsigned char)*p < ' ' && *p != '\t') || *p == 0x7f) {
            mistakes_add(r->mistakes, "has a control character");
            return false;
        }
    }
    if (blanks > 0) {
        mistakes_add(r->mistakes, "begins with a blank; it would be read as more of the key above");
        return false;
    }
    if (line[0] != '[')
        return judge_key(r, line);
    return judge_header(r, line) || refuse_header(r);
}

/* ---- the reader ------------------------------------------------------------------------ */

struct raw_line {
    size_t len; /* bytes of it, also those that found no room */
    bool has_nul;
    bool end; /* nothing was left to read */
};

static struct raw_line read_line(struct line_reader *r, char *out, size_t size)
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

char *line_reader_next(char *out, int num, void *reader)
{
    static const char bom[] = "\xef\xbb\xbf";
    struct line_reader *r = reader;
    size_t size = (size_t)num, len;
    struct raw_line line = read_line(r, out, size);
    bool good;

    if (line.end)
        return NULL;
    r->mistakes->line++;
    if (r->bytes > FILE_MAX_BYTES) {
        mistakes_add(r->mistakes, "the file is larger than %u bytes", FILE_MAX_BYTES);
        return NULL;
    }
    if (r->mistakes->line == 1 && strncmp(out, bom, sizeof bom - 1) == 0)
        memmove(out, out + sizeof bom - 1, strlen(out) - (sizeof bom - 1) + 1);
    len = strlen(out);
    while (len > 0 && strchr(BLANKS, out[len - 1]) != NULL)
        out[--len] = '\0';
    if (out[strspn(out, BLANKS)] == ';' || out[strspn(out, BLANKS)] == '#') {
        good = false; /* a comment, however long */
    } else if (line.len + 1 >= size) {
        /* inih 59 takes a full buffer without a line's end for one that goes on, and skips more. */
        mistakes_add(r->mistakes, "the line is longer than %zu bytes; it would be cut", size - 2);
        if (out[0] == '[')
            refuse_header(r);
        good = false;
    } else if (line.has_nul) {
        mistakes_add(r->mistakes, "has a NUL byte");
        good = false;
    } else {
        good = judge_line(r, out);
    }
    if (!good)
        out[0] = '\0';
    return out;
}
