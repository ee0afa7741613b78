/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Detects the format of a list and passes its bytes to that format's handler. */
#include "server/input/reader.h"

#include <stdlib.h>
#include <string.h>

#include "server/input/content_coding.h"
#include "server/input/frame.h"
#include "server/input/html_page.h"
#include "server/rules/loc.h"

/* ---- a list: one URL a line ---- */

static bool parse_line(void *context, const struct line *line)
{
    struct reader_state *core = context;
    const char *text = line->text;
    size_t len = line->len;
    if (len > 0 && text[len - 1] == '\r') /* of CRLF, not padding */
        len--;
    size_t whole = len;
    size_t front = explain_blank_front(text, len);
    text += front;
    len -= front;
    len -= explain_blank_back(text, len);
    if (len == 0 ? !line->cut : *text == '#')
        return true;
    /* If a table were accepted, each row would be registered as a URL that does not exist. */
    bool table = core->count == 0 ? detect_table(text, len)
                                  : core->count == 1 && core->column_separator != '\0' &&
                                        memmem(text, len, "://", 3) != NULL &&
                                        memchr(text, core->column_separator, len) != NULL;
    if (core->count == 0)
        core->column_separator = detect_table_names(text, len);
    if (table)
        return reader_state_fail(core, READER_WRONG_KIND, "not-a-list", line->number, 0,
                                 "is a table, not a list of URLs: write the URL alone, or a line "
                                 "as {\"loc\": \"https://…\", \"lastmod\": \"2026-11-21\"}");
    struct raw_entry raw = {
        .loc = text,
        .loc_len = len,
        .loc_fault = line->cut ? RULE_LOC_TOO_LONG : RULE_OK,
        .position = POSITION_NONE,
        .line = line->number,
        .remarks = len < whole ? RULE_BIT(RULE_LOC_PADDED) : 0,
    };
    return reader_state_add(core, &raw);
}

static bool list_feed(void *self, const char *bytes, size_t len)
{
    struct lines *lines = self;
    const char *nul = memchr(bytes, '\0', len);
    if (!lines_feed(lines, bytes, nul != NULL ? (size_t)(nul - bytes) : len))
        return false;
    if (nul != NULL)
        return reader_state_fail(lines->context, READER_WRONG_KIND, "not-text", lines->number, 0,
                                 "has a NUL byte");
    return true;
}

static const struct handler list_handler = {list_feed, lines_finish, free};

/* ---- the reader ---- */

struct reader {
    struct reader_state core;
    struct validated_entry validated;
    struct frame frame;
};

/* A bot wall or maintenance page is temporary: the user need not correct the list. */
static bool refuse_page(struct reader *r, const char *head, size_t len)
{
    const struct reader_kind *kind = reader_kind_of(&r->core);
    struct html_page page;
    char what[HTML_PAGE_WHAT];
    html_page_check(head, len, &page);
    if (html_page_code(&page) == NULL)
        return reader_state_fail(&r->core, READER_WRONG_KIND, kind->html, r->frame.place.line, 0,
                                 "%s", kind->is_html);
    html_page_describe(&page, what);
    return reader_state_fail(&r->core, READER_WRONG_KIND, html_page_code(&page),
                             r->frame.place.line, 0, "is %s", what);
}

/* Detects the format, unless it was given, and opens its handler. */
static bool open_format(void *context, const char *head, size_t len)
{
    struct reader *r = context;
    struct frame *f = &r->frame;
    enum reader_format wanted = r->core.options.format;
    char first = len > 0 ? *head : '\0';
    bool xml = wanted == READER_XML ||
               (wanted == READER_AUTO && (first == '<' || detect_utf16(head, len)));
    size_t stray, root;
    if (detect_gzip(head, len))
        return reader_state_fail(&r->core, READER_WRONG_KIND, "packed-twice", 0, 0,
                                 "is compressed twice: crawlers unpack it once");
    if (wanted == READER_AUTO && detect_wide_text(head, len))
        return reader_state_fail(&r->core, READER_MALFORMED, "not-utf8", 0, 0,
                                 "is text in UTF-16; save it as UTF-8");
    if ((xml || wanted == READER_AUTO) && first != '{' && first != '[' &&
        (stray = detect_stray(head, len, &root)) != SIZE_MAX)
        return detect_refuse_stray(f, head, stray, root);
    if (xml && detect_html(head, len))
        return refuse_page(r, head, len);
    if (xml)
        return xml_list_open(f, detect_utf16(head, len));
    if (wanted == READER_JSON)
        return json_stream_open(f);
    if (wanted == READER_NDJSON)
        return ndjson_open(f);
    if (detect_binary(head, len))
        return reader_state_fail(&r->core, READER_WRONG_KIND, "not-text", 0, 0, "is not text");
    if (wanted == READER_AUTO && first == '[')
        return json_stream_open(f);
    if (wanted == READER_AUTO && first == '{')
        return json_either_open(f);
    return frame_use(f, &list_handler, lines_new(parse_line, &r->core, f->place.line));
}

struct reader *reader_new(const struct reader_options *options, const struct reader_sink *sink)
{
    struct reader *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->core.options = *options;
    r->core.sink = *sink;
    r->core.validated = &r->validated;
    r->core.error.code = "ok";
    if (!validated_entry_init(&r->validated, options)) {
        free(r);
        return NULL;
    }
    frame_init(&r->frame, &r->core, open_format, r);
    return r;
}

void reader_free(struct reader *r)
{
    if (r == NULL)
        return;
    frame_done(&r->frame);
    validated_entry_done(&r->validated);
    free(r);
}

void reader_content_encoding(struct reader *r, const char *value)
{
    struct content_coding coding;
    content_coding_read(value, &coding);
    frame_set_codings(&r->frame, coding.gzip);
    if (coding.unreadable)
        reader_state_fail(&r->core, READER_MALFORMED, "encoding", 0, 0,
                          "has Content-Encoding: %s, which was not requested", coding.word);
    else if (coding.odd)
        reader_state_remark(&r->core, RULE_ENCODING_ODD, 0, coding.word);
}

bool reader_is_gzip(const struct reader *r)
{
    return frame_is_gzip(&r->frame);
}

enum reader_status reader_feed(struct reader *r, const void *bytes, size_t len)
{
    frame_feed(&r->frame, bytes, len);
    return r->core.error.status;
}

enum reader_status reader_finish(struct reader *r)
{
    frame_finish(&r->frame);
    return r->core.error.status;
}

const struct reader_error *reader_error(const struct reader *r)
{
    return &r->core.error;
}

bool reader_single_object(const struct reader *r)
{
    return json_stream_single(&r->frame);
}
