/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The path of every input: bytes -> (gunzip) -> (host map) -> block -> handler. The frame removes
 * the content codings of an HTTP response (RFC 9110 8.4), then the file's own gzip; strips a byte
 * order mark and leading white space; limits the decoded bytes; and passes the beginning to its
 * owner, which opens the handler for the format. Only full blocks are passed on, so that a handler
 * gets the same pieces of at most FRAME_BLOCK_BYTES, and gives the same result, however the bytes
 * arrive.
 *
 * Internal to server/input/, except gunzip, which the doctor uses too. One thread at a time.
 *
 * Invariant: once error.status is not READER_OK, nothing more goes to the sink. */
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
    char column_separator; /* of a plain list whose first line may be column names; '\0': none */
    uint64_t bytes;        /* decoded */
    /* For validating entries (9 kB), the owner's; NULL if only errors are needed. */
    struct validated_entry *validated;
};

/* True while nothing has gone wrong. */
bool reader_state_ok(const struct reader_state *c);
/* Records the first failure; later ones change nothing. Returns false, for tail calls. */
bool reader_state_fail(struct reader_state *c, enum reader_status status, const char *code,
                       uint64_t line, uint64_t column, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
bool reader_state_no_memory(struct reader_state *c);
/* Validates an entry and passes it on. False: stop, the reason is recorded. */
bool reader_state_add(struct reader_state *c, const struct raw_entry *raw);
/* The same for an entry that the format itself rejects. */
bool reader_state_reject(struct reader_state *c, const struct rejection *rejection);
/* `element`: its local name; NULL if it is not about an element. */
void reader_state_remark(struct reader_state *c, enum rule_code code, uint64_t line,
                         const char *element);

/* Codes and sentences for documents of another kind than the wanted one. */
struct reader_kind {
    const char *other_root, *other, *is_other; /* the other kind of list */
    const char *html, *is_html;
    const char *feed, *is_feed;
    const char *none, *is_none; /* the name of the root element follows */
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

/* ---- the beginning of a text; pure ---- */

/* The length of the white space (XML's and JSON's: space, tab, CR, LF) at the beginning of `head`.
 */
size_t detect_space(const char *head, size_t len);
/* The same at the end. */
size_t detect_space_behind(const char *text, size_t len);
/* True if a line is a row of a table (CSV, TSV): a URL followed by a column with a date, or by a
 * tab; the names of such columns; or quoted columns. No intended URL looks like that. */
bool detect_table(const char *line, size_t len);
/* The separator of a line that may be the column names of a table; '\0': it is not. */
char detect_table_names(const char *line, size_t len);
/* True if `head`, after white space, has the byte order mark of UTF-16. */
bool detect_utf16(const char *head, size_t len);
/* True if `head` is not text: more than a tenth of it are control characters. (The reader of lines
 * finds NULs, which no text has, at any place.) */
bool detect_binary(const char *head, size_t len);
/* True if the first element in `head` is a urlset, with or without a prefix; its tag need not be
 * complete. */
bool detect_urlset(const char *head, size_t len);
/* True if `head`, after white space, comments and processing instructions, begins with the doctype
 * or one of the first elements of HTML, well-formed as XML or not. */
bool detect_html(const char *head, size_t len);

/* The offset of something before the root that breaks the XML of a sitemap or sitemap index: the
 * size of a chunk, a PHP warning, another element. `*root` gets the offset of the root's tag.
 * SIZE_MAX: there is nothing before the root, or no root in `head`. */
size_t detect_stray(const char *head, size_t len, size_t *root);
/* Fails the core with "malformed-xml" for the bytes of `head` from `stray` to `root`. Returns
 * false, for tail calls. */
struct frame;
bool detect_refuse_stray(struct frame *f, const char *head, size_t stray, size_t root);
/* True if `head` is a list of URLs although it does not begin with one: at least two of its lines,
 * and at least half of them, are URLs, in quotes or not. `*line` and `*line_len` get the first line
 * that is not a URL. */
bool detect_list(const char *head, size_t len, const char **line, size_t *line_len);
/* The format by the first bytes, such as "an xz archive" or "a PDF document"; NULL: unknown.
 * Static. */
const char *detect_format(const char *head, size_t len);
/* True if `head` begins with the two magic bytes of gzip. */
bool detect_gzip(const char *head, size_t len);
/* True if `head` is ASCII text in UTF-16, with a byte order mark or without, and not XML. */
bool detect_wide_text(const char *head, size_t len);

/* ---- memory ---- */

/* Detects that memory has run out within expat or jansson, which do not report it reliably: expat
 * 2.5 may report an unbound prefix, jansson 2.14 a syntax error, or it drops a character of a
 * string. A fault of the machine must not be reported as a fault of the document. Thread safe. */

/* XML_ParserCreateNS; the caller frees it with XML_ParserFree. NULL when out of memory. */
XML_Parser memory_new_parser(const char *encoding, char separator);

/* Begins to watch the allocations of both on this thread. */
void memory_watch(void);
/* Whether any of them has failed since then. */
bool memory_failed(void);

/* ---- gunzip: concatenated members (RFC 1952 2.2), a limit on the expansion ---- */

struct gunzip;

/* Takes decoded bytes. False: stop, the callee knows the reason. */
typedef bool gunzip_take(void *context, const char *bytes, size_t len);

/* `error` gets faults of gzip: READER_MALFORMED, READER_TOO_LARGE beyond `max_ratio` (0: no limit),
 * READER_NO_MEMORY. NULL when out of memory. */
struct gunzip *gunzip_new(struct reader_error *error, uint32_t max_ratio, gunzip_take *take,
                          void *context);
bool gunzip_feed(struct gunzip *g, const void *bytes, size_t len);
/* False: the stream is incomplete. */
bool gunzip_finish(struct gunzip *g);
void gunzip_free(struct gunzip *g);

/* ---- the frame ---- */

#define FRAME_BLOCK_BYTES 16384u
#define FRAME_MAX_CODINGS 2u /* content codings that are removed; more are refused */
/* bytes by which a format is recognised; a shorter input is complete */
#define FRAME_HEAD_BYTES 1024u

/* The handler of a format. `self` is its own object; false: stop, the core has the reason. */
struct handler {
    bool (*feed)(void *self, const char *bytes, size_t len);
    bool (*finish)(void *self);
    void (*free)(void *self);
};

/* Receives the file's bytes without content codings as they arrive; with a host map, the decoded
 * and rewritten bytes. */
typedef void frame_copy(void *context, const char *bytes, size_t len);

/* Opens the handler (frame_use) for input that begins with `head`: at least FRAME_HEAD_BYTES, or
 * the whole input. `len` 0: the input is only white space, and no handler is needed. */
typedef bool frame_open(void *context, const char *head, size_t len);

/* One layer of gzip: a content coding, which must be gzip, or the file's own, which is recognised
 * by its first two bytes. */
struct frame_layer {
    struct frame *frame;
    enum { STAGE_MAGIC, STAGE_PLAIN, STAGE_GZIP } stage;
    unsigned char magic; /* the first byte, while STAGE_MAGIC has it */
    bool magic_held;
    struct gunzip *gunzip;
    struct reader_error unpacking; /* of gunzip; a verdict on the bytes before it outranks it */
};

struct frame {
    struct reader_state *core; /* its options have the limits */
    frame_open *open;
    void *context;
    const char *too_large; /* the code for more than max_bytes */
    /* outermost first; the last one is the file's own */
    struct frame_layer layers[FRAME_MAX_CODINGS + 1];
    unsigned codings;               /* how many of them are content codings */
    struct host_rewriter *rewriter; /* NULL: no map, or no byte yet */
    frame_copy *copy;               /* may be NULL */
    void *copy_context;
    bool bom_done, finished;
    const struct handler *handler; /* NULL: the block is still the head */
    void *self;
    struct place place; /* of the beginning of the head */
    size_t block_len;
    char block[FRAME_BLOCK_BYTES];
};

/* Initialises zeroed memory. `core` is borrowed. */
void frame_init(struct frame *f, struct reader_state *core, frame_open *open, void *context);
void frame_done(struct frame *f);
/* Sets the handler and takes over `self`; the caller frees the former handler, if any. False,
 * reported to the core: `self` is NULL (out of memory). */
bool frame_use(struct frame *f, const struct handler *handler, void *self);
/* Sets how many times gzip is removed as a content coding, at most FRAME_MAX_CODINGS. Call it
 * before the first byte. */
void frame_set_codings(struct frame *f, unsigned codings);
/* Whether the file itself, without content codings, is gzip. */
bool frame_is_gzip(const struct frame *f);
/* False: stop, the core has the reason. */
bool frame_feed(struct frame *f, const void *bytes, size_t len);
/* The input is complete. Later calls do nothing. */
bool frame_finish(struct frame *f);

/* ---- lines, a base for other handlers ---- */

struct line {
    const char *text; /* without the newline; borrowed for the call */
    size_t len;
    uint64_t number; /* 1-based */
    bool cut;        /* it exceeds READER_MAX_ITEM_BYTES: this is its beginning */
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
/* For a struct handler whose `self` is the struct lines. The last line needs no newline. */
bool lines_feed(void *self, const char *bytes, size_t len);
bool lines_finish(void *self);

/* ---- the formats of lists (reader.h) ---- */

/* Each opens the handler for a text that begins at f->place. */
bool json_stream_open(struct frame *f); /* one object, or one array of them */
bool ndjson_open(struct frame *f);      /* a line that is not JSON is rejected alone */
bool json_either_open(struct frame *f); /* `{`: NDJSON if its first line is a complete object */
bool xml_list_open(struct frame *f, bool wide);
/* Whether the body was a single JSON object. */
bool json_stream_single(const struct frame *f);

/* Reads the common form of an entry's JSON without building a tree: one object with "loc" and at
 * most one each of "lastmod", "digest" and "index" (for page URLs "urlset"), all of them strings of
 * printable ASCII without a backslash. Fills `raw`, whose strings borrow from `text`. False, with
 * `raw` unchanged, for anything else: use the general reader, which would give the same result for
 * the common form. */
bool json_flat_read(const char *text, size_t len, const struct reader_options *options,
                    struct raw_entry *raw);
