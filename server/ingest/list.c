#include "server/ingest/list.h"

#include <stdlib.h>
#include <string.h>

#include "server/ingest/lines.h"

struct list {
    struct core *core;
    struct lines lines;
};

struct list *list_new(struct core *core, uint64_t line)
{
    struct list *l = malloc(sizeof *l);
    if (!l)
        return NULL;
    l->core = core;
    lines_init(&l->lines, line);
    return l;
}

static bool is_padding(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool take_line(void *context, const struct line *line)
{
    struct list *l = context;
    const char *text = line->text;
    size_t len = line->len;
    if (len > 0 && text[len - 1] == '\r') /* of CRLF, which is no padding */
        len--;
    size_t whole = len;
    while (len > 0 && is_padding(*text)) {
        text++;
        len--;
    }
    while (len > 0 && is_padding(text[len - 1]))
        len--;
    if (len == 0 ? !line->cut : *text == '#')
        return true;
    struct raw_entry raw = {
        .loc = text,
        .loc_len = len,
        .loc_fault = line->cut ? RULE_LOC_TOO_LONG : RULE_OK,
        .position = POSITION_NONE,
        .line = line->number,
        .remarks = len < whole ? RULE_BIT(RULE_LOC_PADDED) : 0,
    };
    return core_take(l->core, &raw);
}

bool list_feed(struct list *l, const char *bytes, size_t len)
{
    const char *nul = memchr(bytes, '\0', len);
    if (!lines_feed(&l->lines, bytes, nul ? (size_t)(nul - bytes) : len, take_line, l))
        return false;
    if (nul)
        return core_fail(l->core, READER_WRONG_KIND, "not-text", l->lines.number, 0,
                         "has a NUL byte, which no text has");
    return true;
}

bool list_finish(struct list *l)
{
    return lines_finish(&l->lines, take_line, l);
}

void list_free(struct list *l)
{
    free(l);
}

bool list_is_binary(const char *head, size_t len)
{
    size_t controls = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)head[i];
        if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f') || c == 0x7f)
            controls++;
    }
    return controls * 10 > len;
}
