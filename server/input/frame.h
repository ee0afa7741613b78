/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What every input goes through, whatever its format: bytes -> (gunzip) -> (host map) -> block ->
 * handler. The frame removes the content codings of an HTTP answer (RFC 9110 8.4), then the file's
 * own gzip, strips a byte order mark and leading white space, bounds the decoded bytes and shows
 * the beginning to its owner, who opens the handler of the format; the handler decodes. The block
 * is full before it is handed on, so that a handler gets the same pieces, of FRAME_BLOCK_BYTES at
 * most, however the bytes arrive: what it says, and when, depends on nothing else then.
 *
 * Internal to server/input/, but for gunzip, which the doctor uses too. One thread at a time.
 *
 * Invariant: once error.status is not READER_OK nothing more goes to the sink. */
#pragma once

#include <expat.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/input/entry_validate.h"
#include "server/input/reader.h"

/* ---- what went wrong, and where entries go ---- */

struct reader_state {
    struct reader_options options;
    struct reader_sink sink;
    struct reader_error error;
    uint64_t count;        /* entries and rejections */
    char column_separator; /* of a plain list whose first line may name columns; '\0': none */
    uint64_t bytes;        /* decoded */
    /* Where entries are checked (9 kB), the owner's; NULL where only errors are kept. */
    struct validated_entry *validated;
};

/* True while nothing has gone wrong. */
bool reader_state_ok(const struct reader_state *c);
/* Records the first failure; later ones change nothing. Returns false, for tail calls. */
bool reader_state_fail(struct reader_state *c, enum reader_status status, const char *code,
                       uint64_t line, uint64_t column, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
bool reader_state_no_memory(struct reader_state *c);
/* Checks and hands on. False: stop, the reason is recorded. */
bool reader_state_add(struct reader_state *c, const struct raw_entry *raw);
/* The same for what the format itself refuses. */
bool reader_state_reject(struct reader_state *c, const struct rejection *rejection);
/* `element`: its local name; NULL where it is about none. */
void reader_state_remark(struct reader_state *c, enum rule_code code, uint64_t line,
                         const char *element);

/* What a document of another kind than the wanted one is called: its code, its sentence. */
struct reader_kind {
    const char *other_root, *other, *is_other; /* the other kind of list */
    const char *html, *is_html;
    const char *feed, *is_feed;
    const char *none, *is_none; /* the name of the root follows */
};
const struct reader_kind *reader_kind_of(const struct reader_state *c);

/* A place in a text, 1-based. */
struct place {
    uint64_t line, column;
};

/* Moves `place` over one byte: columns count characters. */
static inline void place_step(struct place *place, char c)
{
    if (c == '\n') {
        place->line++;
        place->column = 1;
    } else if (((unsigned char)c & 0xc0) != 0x80) {
        place->column++;
    }
}
/* The same over `len` bytes. */
void place_advance(struct place *place, const char *bytes, size_t len);

/* ---- what a text begins with; pure ---- */

/* The white space (XML's and JSON's: space, tab, CR, LF) that `head` begins with. */
size_t detect_space(const char *head, size_t len);
/* The same behind. */
size_t detect_space_behind(const char *text, size_t len);
/* True where a line is a row of a table (CSV, TSV): a URL with a date in the column behind it, or
 * with a tab; the names of such columns; or quoted ones. No URL that is intended ends like that. */
bool detect_table(const char *line, size_t len);
/* The separator of a line that may be a table's first, with the names of its columns; '\0': it is
 * none. */
char detect_table_names(const char *line, size_t len);
/* True where `head`, without white space before it, is UTF-16 by its mark. */
bool detect_utf16(const char *head, size_t len);
/* True where what `head` begins with is not text: more than a tenth of control characters. (A NUL,
 * which no text has, is found by the reader of lines wherever it stands.) */
bool detect_binary(const char *head, size_t len);
/* True where the first element that begins in `head` is a urlset, with a prefix or without; its tag
 * need not be closed. */
bool detect_urlset(const char *head, size_t len);
/* True where `head`, without white space before it, is HTML, well-formed as XML or not: behind
 * comments and processing instructions, its doctype or one of its first elements. */
bool detect_html(const char *head, size_t len);

/* Where something begins that makes no XML of a sitemap or a sitemap index: a chunk's size, a
 * warning of PHP, an element before the root. `*root` gets where the tag of the root is. SIZE_MAX
 * where there is nothing before the root, or `head` has no such tag. */
size_t detect_stray(const char *head, size_t len, size_t *root);
/* Fails the core with "malformed-xml" for what begins at `stray` of `head`, and ends at `root`.
 * Returns false, for tail calls. */
struct frame;
bool detect_refuse_stray(struct frame *f, const char *head, size_t stray, size_t root);
/* True where `head`, which does not begin as a URL, is a list of URLs all the same: at least two of
 * its lines are URLs, in quotes or not, and so are half of all. `*line` and `*line_len` get the
 * first line that is not. */
bool detect_list(const char *head, size_t len, const char **line, size_t *line_len);
/* "an xz archive", "a PDF document": what the first bytes say; NULL where they say nothing. Static.
 */
const char *detect_format(const char *head, size_t len);
/* True where `head` is gzip by its first two bytes. */
bool detect_gzip(const char *head, size_t len);
/* True where `head`, without a mark, is ASCII text in UTF-16. */
bool detect_wide_text(const char *head, size_t len);

/* ---- memory ---- */

/* Whether memory has run out within expat or jansson. Neither reports it reliably: expat 2.5 takes
 * a prefix that it found no room for as unbound, jansson 2.14 a string as a syntax error, or takes
 * it with a character missing; and what is the machine's fault must not be reported as the
 * document's. Thread safe. */

/* XML_ParserCreateNS; the caller frees it with XML_ParserFree. NULL when out of memory. */
XML_Parser memory_new_parser(const char *encoding, char separator);

/* Begins to watch what this thread allocates in the two. */
void memory_watch(void);
/* Whether any of it failed since then. */
bool memory_failed(void);

/* ---- gunzip: concatenated members (RFC 1952 2.2), a bound on how far a little may grow ---- */

struct gunzip;

/* Takes decoded bytes. False stops, for a reason that the taker knows. */
typedef bool gunzip_take(void *context, const char *bytes, size_t len);

/* `error` gets gzip's own faults: READER_MALFORMED, READER_TOO_LARGE past `max_ratio` (0: none),
 * READER_NO_MEMORY. NULL when out of memory. */
struct gunzip *gunzip_new(struct reader_error *error, uint32_t max_ratio, gunzip_take *take,
                          void *context);
bool gunzip_feed(struct gunzip *g, const void *bytes, size_t len);
/* False where the stream is incomplete. */
bool gunzip_finish(struct gunzip *g);
void gunzip_free(struct gunzip *g);

/* ---- the frame ---- */

#define FRAME_BLOCK_BYTES 16384u
#define FRAME_MAX_CODINGS 2u    /* content codings that are removed; more are refused */
#define FRAME_HEAD_BYTES  1024u /* what a format is recognised by, unless all there is is less */

/* A format. `self` is the handler's own; false: stop, the core knows why. */
struct handler {
    bool (*feed)(void *self, const char *bytes, size_t len);
    bool (*finish)(void *self);
    void (*free)(void *self);
};

/* Is given a file's bytes, content codings removed, as they come; where there is a host map the
 * decoded and rewritten ones. */
typedef void frame_copy(void *context, const char *bytes, size_t len);

/* Opens the handler (frame_use) of what begins with `head`: FRAME_HEAD_BYTES or more, or all there
 * is, 0 where that is nothing but white space; then it may open none. */
typedef bool frame_open(void *context, const char *head, size_t len);

/* One layer of gzip: a content coding, which must be there, or the file's own, which is recognised
 * by its first two bytes. */
struct frame_layer {
    struct frame *frame;
    enum { STAGE_MAGIC, STAGE_PLAIN, STAGE_GZIP } stage;
    unsigned char magic; /* the first byte, while STAGE_MAGIC has it */
    bool magic_held;
    struct gunzip *gunzip;
    struct reader_error unpacking; /* gunzip's; a verdict on what came before outranks it */
};

struct frame {
    struct reader_state *core; /* its options bound the frame */
    frame_open *open;
    void *context;
    const char *too_large;                            /* the code for more than max_bytes */
    struct frame_layer layers[FRAME_MAX_CODINGS + 1]; /* outermost first; the last: the file's */
    unsigned codings;                                 /* how many of them are content codings */
    struct host_rewriter *rewriter;                   /* NULL until there is a map and a byte */
    frame_copy *copy;                                 /* NULL: nobody */
    void *copy_context;
    bool bom_done, finished;
    const struct handler *handler; /* NULL: the block is still the head */
    void *self;
    struct place place; /* where the head begins */
    size_t block_len;
    char block[FRAME_BLOCK_BYTES];
};

/* Of zeroed memory. `core` is borrowed. */
void frame_init(struct frame *f, struct reader_state *core, frame_open *open, void *context);
void frame_done(struct frame *f);
/* Takes over `self`, in place of the handler before, which its owner frees then.
 * False, with the core's word for it, where `self` is NULL: out of memory. */
bool frame_use(struct frame *f, const struct handler *handler, void *self);
/* Before the first byte: how many times gzip is to be removed as a content coding, at most
 * FRAME_MAX_CODINGS. */
void frame_set_codings(struct frame *f, unsigned codings);
/* Whether the file itself, its content codings removed, is gzip. */
bool frame_is_gzip(const struct frame *f);
/* False: stop, the core knows why. */
bool frame_feed(struct frame *f, const void *bytes, size_t len);
/* The input is over. Once; later calls do nothing. */
bool frame_finish(struct frame *f);

/* ---- lines, a handler for others to build on ---- */

struct line {
    const char *text; /* without the newline; borrowed for the call */
    size_t len;
    uint64_t number; /* 1-based */
    bool cut;        /* longer than READER_MAX_ITEM_BYTES: this is its beginning */
};

/* False stops the splitting. */
typedef bool lines_take(void *context, const struct line *line);

struct lines {
    lines_take *take;
    void *context;
    uint64_t number; /* of the line being read */
    size_t len;
    bool pending; /* the line being read has bytes */
    bool cut;
    char buffer[READER_MAX_ITEM_BYTES];
};

/* `number` is that of the first line. NULL when out of memory; freed with free(). */
struct lines *lines_new(lines_take *take, void *context, uint64_t number);
/* Of a struct handler, whose `self` is the struct lines. The last line needs no newline. */
bool lines_feed(void *self, const char *bytes, size_t len);
bool lines_finish(void *self);

/* ---- the formats of lists (reader.h) ---- */

/* Each opens its handler, for a text that begins at f->place. */
bool json_stream_open(struct frame *f); /* one object, or one array of them */
bool ndjson_open(struct frame *f);      /* a line that is not JSON costs only itself */
bool json_either_open(struct frame *f); /* `{`: NDJSON where its first line is a whole object */
bool xml_list_open(struct frame *f, bool wide);
/* Whether the body turned out to be a single object of JSON. */
bool json_stream_single(const struct frame *f);

/* The common form of an entry's JSON, read without a tree. Fills `raw`, whose strings then borrow
 * from `text`, where `text` is one object of "loc" and at most one each of "lastmod", "digest" and
 * "index" (of page URLs "urlset"), all of them strings of printable ASCII without a backslash.
 * False for all else, well formed or not, with `raw` as it was: the general reader checks that, and
 * would read what this accepts in the same way. */
bool json_flat_read(const char *text, size_t len, const struct reader_options *options,
                    struct raw_entry *raw);
