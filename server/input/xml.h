/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Expat for both XML formats, a sitemap index and a urlset: places, bounds on what it holds whole,
 * what is not well-formed, names, and the text of an element. Internal to server/input/. */
#pragma once

#include <expat.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/input/frame.h"

struct xml;

/* What a format does. The handlers' user data is its `struct xml`, and each begins with xml_event
 * or xml_token. */
struct xml_hooks {
    XML_StartElementHandler start;
    XML_EndElementHandler end;
    XML_CharacterDataHandler text;
    XML_StartDoctypeDeclHandler doctype;
    XML_XmlDeclHandler declaration; /* may be NULL */
    /* Set the core's reason for ending; return false. */
    bool (*token_too_long)(struct xml *x);
    bool (*broken)(struct xml *x, enum XML_Error error, const char *code, const char *why);
};

/* First in a format's own struct. */
struct xml {
    const struct xml_hooks *hooks;
    struct reader_state *core;
    XML_Parser parser;
    struct place given, start; /* what to expat is at `given` is at `start` */
    uint64_t pending;          /* bytes given to expat since its last event */
};

/* Reads what begins at `start`; `encoding` NULL: as declared. False when out of memory. */
bool xml_init(struct xml *x, struct reader_state *core, struct place start, const char *encoding,
              const struct xml_hooks *hooks);
/* At most FRAME_BLOCK_BYTES. False: stop, the core knows why. */
bool xml_feed(struct xml *x, const char *bytes, size_t len);
/* Of a struct handler, whose `self` is on the heap and begins with a struct xml. */
bool xml_finish(void *self);
void xml_free(void *self);
/* The value of an attribute, "" where it is not there. */
const char *xml_attribute(const char **attributes, const char *name);
/* Where expat is: at an event its beginning, between two calls of xml_feed behind what it had. */
struct place xml_place(const struct xml *x);
/* Between two of them: what expat is given next is at `place`; what is in front of it was read
 * without expat. */
void xml_skip_to(struct xml *x, struct place place);
/* Every handler begins so. False: it is over; expat may still call a handler or two then. */
bool xml_event(struct xml *x);
/* The same for what expat holds whole, whose bound must not depend on how it arrived. */
bool xml_token(struct xml *x);
/* Ends it; the core gets the reason before or after. Returns false. */
bool xml_stop(struct xml *x);
/* What expat holds from where it is on, `*len` bytes; NULL where it holds nothing. */
const char *xml_rest(const struct xml *x, size_t *len);
/* Whether expat was given nothing behind the event. */
bool xml_is_last(const struct xml *x);

/* ---- names, as expat gives them: `URI LF name` ---- */

enum xml_space {
    XML_SPACE_SITEMAP, /* http://www.sitemaps.org/schemas/sitemap/0.9 */
    XML_SPACE_MEANT,   /* none, or a known misspelling or forerunner of it */
    XML_SPACE_OTHER,   /* an extension's */
};

/* The local name, borrowed from `name`. */
const char *xml_name_local(const char *name);
enum xml_space xml_name_space(const char *name);
/* Writes the name of the element that begins as the document has it, with its prefix, for people.
 */
void xml_name_shown(const struct xml *x, const char *name, char *out, size_t size);
/* Writes what is wrong with the namespace of a root, for people: which it is, and which it must be.
 */
#define XML_SPACE_WHY 192
void xml_space_explain(const char *name, char out[XML_SPACE_WHY]);
/* Of an extension (server/rules/page/extension.h) its EXTENSION_…, else 0. A known misspelling of
 * its namespace counts. */
unsigned xml_name_extension(const char *name);
/* Whether the namespace is the extension's own, and no misspelling of it. */
bool xml_name_is_exact(const char *name);

/* ---- the text of an element as its pieces arrive, without the white space around it ---- */

struct xml_text {
    char *data; /* the owner's */
    size_t size, len;
    bool padded;   /* white space was left out, in front or past `size` */
    bool overflow; /* there was more than `size` bytes of it */
};

void xml_text_init(struct xml_text *t, char *data, size_t size);
/* Takes a piece. Where it has more than fits, less than `len` is returned: the place in the piece
 * of the first byte that is too many. White space too many is not a fault while nothing follows it.
 */
size_t xml_text_append(struct xml_text *t, const char *bytes, size_t len);
/* The length without the white space behind. */
size_t xml_text_end(const struct xml_text *t);
