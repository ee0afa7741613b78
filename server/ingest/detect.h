/* Tells a format by how the body begins. Pure. Internal to ingest. */
#ifndef SITEMAPD_INGEST_DETECT_H
#define SITEMAPD_INGEST_DETECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/ingest/reader.h"

#define DETECT_HEAD_BYTES 1024u /* what is looked at, unless it is all white space */

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

/* The bytes of a UTF-8 byte order mark that `head` begins with: 0 or 3. */
size_t detect_bom(const char *head, size_t len);
/* The white space (XML's and JSON's: space, tab, CR, LF) that `head` begins with. */
size_t detect_space(const char *head, size_t len);
/* True where `head`, without white space before it, is XML by its '<' or a UTF-16 mark. */
bool detect_xml(const char *head, size_t len);
/* True where `head`, without white space before it, is HTML, well-formed as XML or not: behind
 * comments and processing instructions, its doctype or one of its first elements. */
bool detect_html(const char *head, size_t len);

/* Tells NDJSON from one object over several lines. */
struct detect_object {
    unsigned depth;
    bool string, escape, whole;
};
/* Looks at one more byte. True once it is decided: `*format` is READER_NDJSON where the first
 * line holds a whole object, else READER_JSON. */
bool detect_object_feed(struct detect_object *d, char c, enum reader_format *format);
/* The same where nothing follows. */
enum reader_format detect_object_finish(const struct detect_object *d);

#endif
