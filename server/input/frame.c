/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Removes content codings and gzip, splits lines, and limits how far input expands. */
#include "server/input/frame.h"

#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "server/base/text.h"
#include "server/input/host_rewriter.h"
#include "server/rules/lastmod.h"

/* ---- errors and entries ---- */

__attribute__((format(printf, 6, 0))) static bool
set_error(struct reader_error *error, enum reader_status status, const char *code, uint64_t line,
          uint64_t column, const char *format, va_list arguments)
{
    if (error->status != READER_OK)
        return false;
    error->status = status;
    error->code = code;
    error->line = line;
    error->column = column;
    vsnprintf(error->detail, sizeof error->detail, format, arguments);
    return false;
}

__attribute__((format(printf, 6, 7))) static bool
error_set(struct reader_error *error, enum reader_status status, const char *code, uint64_t line,
          uint64_t column, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_error(error, status, code, line, column, format, arguments);
    va_end(arguments);
    return false;
}

bool reader_state_ok(const struct reader_state *c)
{
    return c->error.status == READER_OK;
}

bool reader_state_fail(struct reader_state *c, enum reader_status status, const char *code,
                       uint64_t line, uint64_t column, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_error(&c->error, status, code, line, column, format, arguments);
    va_end(arguments);
    return false;
}

bool reader_state_no_memory(struct reader_state *c)
{
    return reader_state_fail(c, READER_NO_MEMORY, "no-memory", 0, 0, "out of memory");
}

static bool count_one(struct reader_state *c, uint64_t line)
{
    if (!reader_state_ok(c))
        return false;
    if (c->options.max_entries && c->count >= c->options.max_entries)
        return reader_state_fail(c, READER_TOO_LARGE, "too-many-entries", line, 0,
                                 "there are more than %" PRIu64 " %s", c->options.max_entries,
                                 plural(c->options.max_entries, "entry", "entries"));
    c->count++;
    return true;
}

static bool stopped(struct reader_state *c, uint64_t line)
{
    return reader_state_fail(c, READER_STOPPED, "stopped", line, 0,
                             "interrupted: the receiver of the entries stopped the reader");
}

bool reader_state_reject(struct reader_state *c, const struct rejection *rejection)
{
    if (!count_one(c, rejection->line))
        return false;
    return c->sink.reject(c->sink.context, rejection) || stopped(c, rejection->line);
}

bool reader_state_add(struct reader_state *c, const struct raw_entry *raw)
{
    if (!reader_state_ok(c))
        return false;
    struct rejection rejection;
    enum rule_code code = entry_validate(raw, &c->options, c->validated, &rejection);
    if (c->validated->failed)
        return reader_state_no_memory(c);
    if (code != RULE_OK)
        return reader_state_reject(c, &rejection);
    if (!count_one(c, raw->line))
        return false;
    return c->sink.entry(c->sink.context, &c->validated->entry) || stopped(c, raw->line);
}

void reader_state_remark(struct reader_state *c, enum rule_code code, uint64_t line,
                         const char *element)
{
    if (reader_state_ok(c) && c->sink.remark != NULL)
        c->sink.remark(c->sink.context, code, line, element);
}

const struct reader_kind *reader_kind_of(const struct reader_state *c)
{
    static const struct reader_kind sitemaps = {"urlset",
                                                "urlset-not-index",
                                                "is a sitemap (urlset), not a sitemap index",
                                                "html-not-index",
                                                "is an HTML page, not a sitemap index",
                                                "feed-not-index",
                                                "is a feed, not a sitemap index",
                                                "not-an-index",
                                                "is not a sitemap index; its root is "};
    static const struct reader_kind pages = {"sitemapindex",
                                             "index-not-urlset",
                                             "is a sitemap index, not a sitemap (urlset)",
                                             "html-not-urlset",
                                             "is an HTML page, not a sitemap (urlset)",
                                             "feed-not-urlset",
                                             "is a feed, not a sitemap (urlset)",
                                             "not-a-urlset",
                                             "is not a sitemap (urlset); its root is "};
    return c->options.pages ? &pages : &sitemaps;
}

/* ---- memory ---- */

static _Thread_local bool failed;

static void *checked(void *memory)
{
    if (memory == NULL)
        failed = true;
    return memory;
}

static void *allocate(size_t size)
{
    return checked(malloc(size));
}

static void *resize_buffer(void *old, size_t size)
{
    return checked(realloc(old, size));
}

XML_Parser memory_new_parser(const char *encoding, char separator)
{
    static const XML_Memory_Handling_Suite suite = {allocate, resize_buffer, free};
    const char text[] = {separator, '\0'};
    return XML_ParserCreate_MM(encoding, &suite, text);
}

static void install_expat_limits(void)
{
    json_set_alloc_funcs(allocate, free);
}

void memory_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install_expat_limits);
    failed = false;
}

bool memory_failed(void)
{
    return failed;
}

/* ---- gunzip ---- */

#define OUT_BYTES        65536u
#define RATIO_FREE_BYTES 1048576u /* no limit on the ratio below this size */
/* How much longer a stream may be than its decoded bytes, for padding and a member for each line. A
 * longer one consists of empty members or an endless header, and need not be read to its end. */
#define WASTE_FREE_BYTES 1048576u
#define WASTE_RATIO      4u
#define GZIP_WINDOW_BITS (15 + 16)

enum gunzip_state {
    BETWEEN, /* before a member */
    MEMBER,
    PADDING, /* zeros after the last member, as in tape archives (gzip(1) skips them) */
};

struct gunzip {
    struct reader_error *error;
    uint32_t max_ratio;
    gunzip_take *take;
    void *context;
    z_stream z;
    enum gunzip_state state;
    bool any; /* a member has ended */
    uint64_t in, out;
    unsigned char buffer[OUT_BYTES];
};

struct gunzip *gunzip_new(struct reader_error *error, uint32_t max_ratio, gunzip_take *take,
                          void *context)
{
    struct gunzip *g = calloc(1, sizeof *g);
    if (g == NULL)
        return NULL;
    if (inflateInit2(&g->z, GZIP_WINDOW_BITS) != Z_OK) {
        free(g);
        return NULL;
    }
    g->error = error;
    g->max_ratio = max_ratio;
    g->take = take;
    g->context = context;
    return g;
}

static bool fail_gzip(struct gunzip *g, const char *why)
{
    return error_set(g->error, READER_MALFORMED, "malformed-gzip", 0, 0,
                     "the gzip data is corrupt after %llu decoded %s: %s",
                     (unsigned long long)g->out, plural(g->out, "byte", "bytes"), why);
}

static bool check_ratio(struct gunzip *g)
{
    if (!g->max_ratio || g->out <= RATIO_FREE_BYTES || g->out / g->max_ratio <= g->in)
        return true;
    return error_set(g->error, READER_TOO_LARGE, "gzip-bomb", 0, 0,
                     "%llu bytes of gzip expand to more than %lu times as many",
                     (unsigned long long)g->in, (unsigned long)g->max_ratio);
}

/* One call of inflate. Its output ends at the next multiple of OUT_BYTES of the decoded stream at
 * the latest. Only there, after all bytes before it were passed on, the ratio is checked, so that
 * the verdict does not depend on how the input was cut. */
static bool inflate_some(struct gunzip *g, bool *idle)
{
    size_t room = OUT_BYTES - (size_t)(g->out % OUT_BYTES);
    uInt before = g->z.avail_in;
    g->z.next_out = g->buffer;
    g->z.avail_out = (uInt)room;
    int result = inflate(&g->z, Z_NO_FLUSH);
    size_t produced = room - g->z.avail_out;
    g->in += before - g->z.avail_in;
    g->out += produced;
    *idle = produced == 0 && before == g->z.avail_in && result != Z_STREAM_END;
    if (produced > 0 && !g->take(g->context, (const char *)g->buffer, produced))
        return false;
    if (produced > 0 && g->out % OUT_BYTES == 0 && !check_ratio(g))
        return false;
    switch (result) {
    case Z_OK:
    case Z_BUF_ERROR: /* no progress without more input */
        return true;
    case Z_STREAM_END:
        g->state = BETWEEN;
        g->any = true;
        return inflateReset(&g->z) == Z_OK || fail_gzip(g, "cannot reset");
    case Z_MEM_ERROR:
        return error_set(g->error, READER_NO_MEMORY, "no-memory", 0, 0, "out of memory");
    case Z_NEED_DICT:
        return fail_gzip(g, "needs a dictionary");
    default:
        return fail_gzip(g, g->z.msg != NULL ? g->z.msg : "data error");
    }
}

/* Skips zeros after a member. False: other bytes follow. */
static bool skip_padding(struct gunzip *g)
{
    while (g->z.avail_in > 0 && *g->z.next_in == 0) {
        g->z.next_in++;
        g->z.avail_in--;
        g->in++;
        g->state = PADDING;
    }
    return g->z.avail_in == 0 || g->state != PADDING || fail_gzip(g, "trailing bytes are not gzip");
}

static bool feed_part(struct gunzip *g, const unsigned char *bytes, uInt len)
{
    g->z.next_in = (z_const Bytef *)bytes;
    g->z.avail_in = len;
    /* Even when all input is consumed, zlib may hold output that had no room. */
    for (bool idle = false; !idle;) {
        if (g->state != MEMBER) {
            if (g->any && !skip_padding(g))
                return false;
            if (g->z.avail_in == 0)
                return true;
            g->state = MEMBER;
        }
        if (!inflate_some(g, &idle))
            return false;
    }
    return true;
}

static bool check_waste(struct gunzip *g)
{
    return g->in <= WASTE_FREE_BYTES || (g->in - WASTE_FREE_BYTES) / WASTE_RATIO <= g->out ||
           fail_gzip(g, "most of its bytes decode to nothing (zeros or empty members)");
}

/* Waste is checked at multiples of OUT_BYTES of the input, when all before is decoded, so that this
 * verdict does not depend on how the input was cut either. */
bool gunzip_feed(struct gunzip *g, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    while (len > 0) {
        uInt room = (uInt)(OUT_BYTES - g->in % OUT_BYTES);
        uInt part = len > room ? room : (uInt)len;
        if (!feed_part(g, at, part))
            return false;
        if (g->in % OUT_BYTES == 0 && !check_waste(g))
            return false;
        at += part;
        len -= part;
    }
    return true;
}

bool gunzip_finish(struct gunzip *g)
{
    if (g->state != MEMBER && g->any)
        return true;
    return error_set(g->error, READER_MALFORMED, "truncated", 0, 0,
                     "the gzip data is truncated: it ends after %llu decoded %s",
                     (unsigned long long)g->out, plural(g->out, "byte", "bytes"));
}

void gunzip_free(struct gunzip *g)
{
    if (g == NULL)
        return;
    inflateEnd(&g->z);
    free(g);
}

/* ---- the beginning of a text ---- */

size_t detect_space(const char *head, size_t len)
{
    size_t at = 0;
    while (at < len &&
           (head[at] == ' ' || head[at] == '\t' || head[at] == '\r' || head[at] == '\n'))
        at++;
    return at;
}

size_t detect_space_behind(const char *text, size_t len)
{
    size_t end = len;
    while (end > 0 && detect_space(text + end - 1, 1) == 1)
        end--;
    return len - end;
}

/* The separator after the first column of a row; NULL: none exists. */
static const char *first_column(const char *line, size_t len)
{
    const char *end = line + len, *at = line;
    if (len > 0 && *line == '"') {
        at = memchr(line + 1, '"', len - 1);
        return at != NULL && at + 1 < end && memchr(",;\t", at[1], 3) != NULL ? at + 1 : NULL;
    }
    while (at < end && memchr(",;\t", *at, 3) == NULL)
        at++;
    return at < end ? at : NULL;
}

bool detect_table(const char *line, size_t len)
{
    const char *separator = first_column(line, len);
    size_t first = separator != NULL ? (size_t)(separator - line) : 0;
    size_t rest = separator != NULL ? len - first - 1 : 0, column = 0;
    struct lastmod date;
    if (separator == NULL)
        return false;
    if (*line == '"' || *separator == '\t' ||
        (first == 3 && (ascii_equals(line, 3, "loc") || ascii_equals(line, 3, "url"))))
        return true;
    while (column < rest && separator[1 + column] != *separator)
        column++;
    size_t digits = 0;
    while (digits < column && ascii_is_digit(separator[1 + digits]))
        digits++;
    if (*separator == ';' && column > 0 && digits == column)
        return true; /* a number, such as a status or size */
    return column >= sizeof "2026-11-21" - 1 &&
           lastmod_parse(separator + 1, column, INT64_MAX / 2, &date, NULL) == RULE_OK;
}

char detect_table_names(const char *line, size_t len)
{
    const char *separator = first_column(line, len);
    return separator != NULL && memmem(line, len, "://", 3) == NULL ? *separator : '\0';
}

bool detect_utf16(const char *head, size_t len)
{
    return len >= 2 && (memcmp(head, "\xff\xfe", 2) == 0 || memcmp(head, "\xfe\xff", 2) == 0);
}

bool detect_binary(const char *head, size_t len)
{
    size_t controls = 0;
    len = len < FRAME_HEAD_BYTES ? len : FRAME_HEAD_BYTES;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)head[i];
        if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f') || c == 0x7f)
            controls++;
    }
    return controls * 10 > len;
}

/* Returns the offset after `end`, or `len` if none exists. */
static size_t skip_past(const char *head, size_t len, const char *end)
{
    const char *found = memmem(head, len, end, strlen(end));
    return found != NULL ? (size_t)(found - head) + strlen(end) : len;
}

static bool begins_with(const char *head, size_t len, const char *word)
{
    size_t size = strlen(word);
    return len >= size && ascii_equals(head, size, word) &&
           (len == size || (!ascii_is_alnum(head[size]) && head[size] != '-'));
}

/* The length of the white space, comments and processing instructions at the beginning of `head`.
 */
static size_t skip_misc(const char *head, size_t len)
{
    size_t at = 0;
    for (;;) {
        size_t left = len - at;
        size_t skip = detect_space(head + at, left);
        if (skip == 0 && left >= 4 && memcmp(head + at, "<!--", 4) == 0)
            skip = skip_past(head + at, left, "-->");
        else if (skip == 0 && left >= 2 && memcmp(head + at, "<?", 2) == 0)
            skip = skip_past(head + at, left, "?>");
        if (skip == 0)
            return at;
        at += skip;
    }
}

bool detect_urlset(const char *head, size_t len)
{
    size_t at = skip_misc(head, len);
    if (at == len || head[at] != '<')
        return false;
    size_t name = ++at;
    while (at < len && (ascii_is_alnum(head[at]) || strchr("-._", head[at]) != NULL))
        at++;
    if (at < len && head[at] == ':') /* that was a prefix */
        name = at + 1;
    return begins_with(head + name, len - name, "urlset");
}

bool detect_html(const char *head, size_t len)
{
    static const char *const words[] = {"<html", "<head", "<body", "<title", "<meta"};
    size_t skip = skip_misc(head, len);
    head += skip;
    len -= skip;
    if (begins_with(head, len, "<!doctype")) {
        size_t at = strlen("<!doctype");
        at += detect_space(head + at, len - at);
        return begins_with(head + at, len - at, "html");
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (begins_with(head, len, words[i]))
            return true;
    return false;
}

/* ---- the frame ---- */

/* From so many decoded bytes on, the rest of a broken gzip file shows what it is. */
#define REST_MIN_BYTES 16u

void place_advance(struct place *place, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        place_step(place, bytes[i]);
}

void frame_init(struct frame *f, struct reader_state *core, frame_open *open, void *context)
{
    f->core = core;
    f->open = open;
    f->context = context;
    f->too_large = "body-too-large";
    f->place = (struct place){1, 1};
    for (size_t i = 0; i < FRAME_MAX_CODINGS + 1; i++)
        f->layers[i].frame = f;
}

void frame_done(struct frame *f)
{
    for (size_t i = 0; i < FRAME_MAX_CODINGS + 1; i++)
        gunzip_free(f->layers[i].gunzip);
    host_rewriter_free(f->rewriter);
    if (f->handler != NULL)
        f->handler->free(f->self);
}

bool frame_use(struct frame *f, const struct handler *handler, void *self)
{
    f->handler = self != NULL ? handler : NULL;
    f->self = self;
    return self != NULL || reader_state_no_memory(f->core);
}

static void drop_bytes(struct frame *f, size_t len)
{
    memmove(f->block, f->block + len, f->block_len - len);
    f->block_len -= len;
}

/* Passes the block to the handler; first opens the handler if the block has `enough` bytes. */
static bool hand_on(struct frame *f, size_t enough)
{
    if (f->handler == NULL) {
        if (!f->bom_done && f->block_len >= 3 && memcmp(f->block, "\xef\xbb\xbf", 3) == 0)
            drop_bytes(f, 3);
        f->bom_done = true;
        size_t space = detect_space(f->block, f->block_len);
        place_advance(&f->place, f->block, space);
        drop_bytes(f, space);
        if (f->block_len < enough)
            return true;
        if (!f->open(f->context, f->block, f->block_len))
            return false;
    }
    size_t len = f->block_len;
    f->block_len = 0;
    return len == 0 || f->handler->feed(f->self, f->block, len);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Takes decoded bytes. */
static bool on_decoded(void *context, const char *bytes, size_t len)
{
    struct frame *f = context;
    struct reader_state *core = f->core;
    uint64_t max_bytes = core->options.max_bytes ? core->options.max_bytes : UINT64_MAX;
    while (len > 0) {
        if (core->bytes == max_bytes)
            return hand_on(f, FRAME_HEAD_BYTES) &&
                   reader_state_fail(core, READER_TOO_LARGE, f->too_large, 0, 0,
                                     "is larger than %" PRIu64 " bytes", max_bytes);
        size_t part = least(len, sizeof f->block - f->block_len);
        if (part > max_bytes - core->bytes)
            part = (size_t)(max_bytes - core->bytes);
        core->bytes += part;
        if (part == sizeof f->block && f->handler != NULL) {
            if (!f->handler->feed(f->self, bytes, part)) /* no copy */
                return false;
        } else {
            memcpy(f->block + f->block_len, bytes, part);
            f->block_len += part;
            if (f->block_len == sizeof f->block && !hand_on(f, FRAME_HEAD_BYTES))
                return false;
        }
        bytes += part;
        len -= part;
    }
    return true;
}

void frame_set_codings(struct frame *f, unsigned codings)
{
    f->codings = codings;
}

bool frame_is_gzip(const struct frame *f)
{
    return f->layers[f->codings].stage == STAGE_GZIP;
}

/* The same for bytes that the host map has rewritten. */
static bool on_rewritten(void *context, const char *bytes, size_t len)
{
    struct frame *f = context;
    if (f->copy != NULL)
        f->copy(f->copy_context, bytes, len);
    return on_decoded(f, bytes, len);
}

static bool parse_text(struct frame *f, const char *bytes, size_t len)
{
    const struct host_map *map = f->core->options.map;
    if (map == NULL)
        return on_decoded(f, bytes, len);
    if (f->rewriter == NULL)
        f->rewriter = host_rewriter_new(map, on_rewritten, f);
    if (f->rewriter == NULL)
        return reader_state_no_memory(f->core);
    return host_rewriter_feed(f->rewriter, bytes, len);
}

static bool feed_layer(struct frame_layer *l, const char *bytes, size_t len);

/* Takes the content of a layer: the next layer, or the text. */
static bool on_inner(void *context, const char *bytes, size_t len)
{
    struct frame_layer *l = context;
    struct frame *f = l->frame;
    return l == &f->layers[f->codings] ? parse_text(f, bytes, len) : feed_layer(l + 1, bytes, len);
}

/* gunzip has failed. The bytes decoded before may still show that the input is not a sitemap or
 * list. */
static bool unpacking_failed(struct frame_layer *l)
{
    struct frame *f = l->frame;
    const struct reader_error *error = &l->unpacking;
    if (!reader_state_ok(f->core) || error->status == READER_OK)
        return false;
    if (error->status == READER_NO_MEMORY)
        return reader_state_no_memory(f->core);
    return hand_on(f, REST_MIN_BYTES) &&
           reader_state_fail(f->core, error->status, error->code, 0, 0, "%s", error->detail);
}

static bool is_coding(const struct frame_layer *l)
{
    return l < &l->frame->layers[l->frame->codings];
}

static bool refuse_coding(struct frame *f)
{
    return reader_state_fail(f->core, READER_MALFORMED, "encoding", 0, 0,
                             "has Content-Encoding: gzip, and the body is not gzip");
}

/* RFC 1952 2.3.1: no text begins with 1f 8b. */
static bool decide_magic(struct frame_layer *l, unsigned char second)
{
    struct frame *f = l->frame;
    const struct reader_options *options = &f->core->options;
    const char bytes[2] = {(char)l->magic, (char)second};
    l->magic_held = false;
    l->stage = STAGE_PLAIN;
    if (l->magic != 0x1f || second != 0x8b)
        return is_coding(l) ? refuse_coding(f) : on_inner(l, bytes, sizeof bytes);
    if (!options->allow_gzip)
        return reader_state_fail(f->core, READER_FORBIDDEN, "gzip-not-allowed", 0, 0,
                                 "is gzip, which is not accepted here");
    l->stage = STAGE_GZIP;
    l->gunzip = gunzip_new(&l->unpacking, options->max_ratio, on_inner, l);
    if (l->gunzip == NULL)
        return reader_state_no_memory(f->core);
    return gunzip_feed(l->gunzip, bytes, sizeof bytes) || unpacking_failed(l);
}

static bool feed_layer(struct frame_layer *l, const char *bytes, size_t len)
{
    struct frame *f = l->frame;
    if (f->copy != NULL && f->core->options.map == NULL && !is_coding(l))
        f->copy(f->copy_context, bytes, len);
    if (l->stage == STAGE_MAGIC && !l->magic_held && len > 0) {
        l->magic = (unsigned char)*bytes++;
        l->magic_held = true;
        len--;
    }
    if (l->stage == STAGE_MAGIC && len > 0) {
        if (!decide_magic(l, (unsigned char)*bytes++))
            return false;
        len--;
    }
    if (len == 0)
        return true;
    if (l->stage == STAGE_GZIP)
        return gunzip_feed(l->gunzip, bytes, len) || unpacking_failed(l);
    return on_inner(l, bytes, len);
}

bool frame_feed(struct frame *f, const void *bytes, size_t len)
{
    return reader_state_ok(f->core) && feed_layer(&f->layers[0], bytes, len);
}

static bool finish_layer(struct frame_layer *l)
{
    const char held = (char)l->magic;
    if (l->magic_held && is_coding(l))
        return refuse_coding(l->frame);
    if (l->magic_held && !on_inner(l, &held, 1))
        return false;
    return l->stage != STAGE_GZIP || gunzip_finish(l->gunzip) || unpacking_failed(l);
}

bool frame_finish(struct frame *f)
{
    if (!reader_state_ok(f->core) || f->finished)
        return reader_state_ok(f->core);
    f->finished = true;
    for (unsigned i = 0; i <= f->codings; i++)
        if (!finish_layer(&f->layers[i]))
            return false;
    if (f->rewriter != NULL && !host_rewriter_finish(f->rewriter))
        return false;
    return hand_on(f, 0) && (f->handler == NULL || f->handler->finish(f->self));
}

/* ---- lines ---- */

static void begin_line(struct lines *l, uint64_t number)
{
    l->number = number;
    l->len = 0;
    l->pending = false;
    l->cut = false;
}

struct lines *lines_new(lines_take *take, void *context, uint64_t number)
{
    struct lines *l = malloc(sizeof *l);
    if (l == NULL)
        return NULL;
    l->take = take;
    l->context = context;
    begin_line(l, number);
    return l;
}

static void keep_line_part(struct lines *l, const char *bytes, size_t len)
{
    size_t part = least(len, sizeof l->buffer - l->len);
    l->cut = l->cut || part < len;
    memcpy(l->buffer + l->len, bytes, part);
    l->len += part;
    l->pending = true;
}

static bool end_line(struct lines *l)
{
    struct line line = {l->buffer, l->len, l->number, l->cut};
    begin_line(l, l->number + 1);
    return l->take(l->context, &line);
}

bool lines_feed(void *self, const char *bytes, size_t len)
{
    struct lines *l = self;
    while (len > 0) {
        const char *newline = memchr(bytes, '\n', len);
        size_t part = newline != NULL ? (size_t)(newline - bytes) : len;
        if (newline == NULL) {
            keep_line_part(l, bytes, part);
            return true;
        }
        if (!l->pending && part <= sizeof l->buffer) {
            /* The line is completely in this piece: no copy. */
            struct line line = {bytes, part, l->number, false};
            l->number++;
            if (!l->take(l->context, &line))
                return false;
        } else {
            keep_line_part(l, bytes, part);
            if (!end_line(l))
                return false;
        }
        bytes += part + 1;
        len -= part + 1;
    }
    return true;
}

bool lines_finish(void *self)
{
    struct lines *l = self;
    return l->pending ? end_line(l) : true;
}
