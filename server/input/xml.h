/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Expat for both XML formats, a sitemap index and a urlset: places, limits on what expat holds,
 * errors of well-formedness, names, and the text of elements. Internal to server/input/. */
#pragma once

#include <expat.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/input/frame.h"

struct xml;

/* The handlers of a format. Their user data is its `struct xml`, and each begins with xml_event or
 * xml_token. */
struct xml_hooks {
    XML_StartElementHandler start;
    XML_EndElementHandler end;
    XML_CharacterDataHandler text;
    XML_StartDoctypeDeclHandler doctype;
    XML_XmlDeclHandler declaration; /* may be NULL */
    /* Set the reason for ending in the core; return false. */
    bool (*token_too_long)(struct xml *x);
    bool (*broken)(struct xml *x, enum XML_Error error, const char *code, const char *why);
};

/* The first member of a format's own struct. */
struct xml {
    const struct xml_hooks *hooks;
    struct reader_state *core;
    XML_Parser parser;
    struct place given, start; /* expat's place `given` is the place `start` of the document */
    uint64_t pending;          /* bytes given to expat since its last event */
};

/* Prepares to read from `start`; `encoding` NULL: as declared. False when out of memory. */
bool xml_init(struct xml *x, struct reader_state *core, struct place start, const char *encoding,
              const struct xml_hooks *hooks);
/* Feeds at most FRAME_BLOCK_BYTES. False: stop, the core has the reason. */
bool xml_feed(struct xml *x, const char *bytes, size_t len);
/* For a struct handler whose `self` is on the heap and begins with a struct xml. */
bool xml_finish(void *self);
void xml_free(void *self);
/* The value of an attribute; "": missing. */
const char *xml_attribute(const char **attributes, const char *name);
/* The current place: during an event its beginning, between two calls of xml_feed the end of the
 * bytes so far. */
struct place xml_place(const struct xml *x);
/* Between two calls of xml_feed: the next bytes are at `place`; the bytes before were read without
 * expat. */
void xml_skip_to(struct xml *x, struct place place);
/* Every handler begins with this. False: parsing has ended; expat may still call a handler or two.
 */
bool xml_event(struct xml *x);
/* The same for a token that expat holds, whose limit must not depend on how it arrived. */
bool xml_token(struct xml *x);
/* Ends parsing; the caller reports the reason to the core. Returns false. */
bool xml_stop(struct xml *x);
/* The bytes that expat holds from the current place on, `*len` of them; NULL: none. */
const char *xml_rest(const struct xml *x, size_t *len);
/* Whether expat has no bytes after the event. */
bool xml_is_last(const struct xml *x);

/* ---- names, as expat gives them: `URI LF name` ---- */

enum xml_space {
    XML_SPACE_SITEMAP, /* http://www.sitemaps.org/schemas/sitemap/0.9 */
    XML_SPACE_MEANT,   /* none, or a known misspelling or older version of it */
    XML_SPACE_OTHER,   /* of an extension */
};

/* The local name, borrowed from `name`. */
const char *xml_name_local(const char *name);
enum xml_space xml_name_space(const char *name);
/* Writes the name of the element that begins, with its prefix as in the document, for people. */
void xml_name_shown(const struct xml *x, const char *name, char *out, size_t size);
/* Writes the fault in the namespace of a root, for people: the actual and the expected namespace.
 */
#define XML_SPACE_WHY 192
void xml_space_explain(const char *name, char out[XML_SPACE_WHY]);
/* The EXTENSION_… of a name of an extension (server/rules/page/extension.h), else 0. A known
 * misspelling of its namespace counts. */
unsigned xml_name_extension(const char *name);
/* Whether the namespace is exactly that of the extension. */
bool xml_name_is_exact(const char *name);

/* ---- the text of an element as its pieces arrive, without the white space around it ---- */

struct xml_text {
    char *data; /* of the owner */
    size_t size, len;
    bool padded;   /* white space was dropped, at the beginning or beyond `size` */
    bool overflow; /* the text exceeds `size` bytes */
};

void xml_text_init(struct xml_text *t, char *data, size_t size);
/* Appends a piece. If it does not fit, returns the offset in the piece of the first byte too many,
 * which is less than `len`. White space at the end is not too many. */
size_t xml_text_append(struct xml_text *t, const char *bytes, size_t len);
/* The length without white space at the end. */
size_t xml_text_end(const struct xml_text *t);
