#include "server/ingest/reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/ingest/core.h"
#include "server/ingest/detect.h"
#include "server/ingest/gunzip.h"
#include "server/ingest/json_stream.h"
#include "server/ingest/list.h"
#include "server/ingest/ndjson.h"
#include "server/ingest/xml_index.h"

/* bytes -> (gunzip) -> head -> (object) -> format.
 * The head holds the first bytes until the format is known; `object` those of a body that begins
 * with `{` until it is known whether its first line holds a whole object. */
struct reader {
    struct core core;
    enum { STAGE_MAGIC, STAGE_PLAIN, STAGE_GZIP } stage;
    unsigned char magic; /* the first byte, while STAGE_MAGIC has it */
    bool magic_held;
    bool finished;
    enum reader_format format; /* READER_AUTO: not yet known */
    struct gunzip *gunzip;     /* of the four below one at most is not NULL */
    struct xml_index *xml;
    struct json_stream *json;
    struct ndjson *ndjson;
    struct list *list;
    struct place place; /* where the head begins */
    bool bom_done;
    size_t head_len;
    char head[DETECT_HEAD_BYTES];
    struct detect_object object;
    size_t object_len;
    char *object_data; /* READER_MAX_ITEM_BYTES, owned; not NULL: undecided */
};

struct reader *reader_new(const struct reader_options *options, const struct reader_sink *sink)
{
    struct reader *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->core.options = *options;
    r->core.sink = *sink;
    r->core.error.code = "ok";
    r->place = (struct place){1, 1};
    return r;
}

void reader_free(struct reader *r)
{
    if (!r)
        return;
    gunzip_free(r->gunzip);
    xml_index_free(r->xml);
    json_stream_free(r->json);
    ndjson_free(r->ndjson);
    list_free(r->list);
    free(r->object_data);
    free(r);
}

static bool format_feed(struct reader *r, const char *bytes, size_t len)
{
    switch (r->format) {
    case READER_XML:
        return xml_index_feed(r->xml, bytes, len);
    case READER_JSON:
        return json_stream_feed(r->json, bytes, len);
    case READER_NDJSON:
        return ndjson_feed(r->ndjson, bytes, len);
    default:
        return list_feed(r->list, bytes, len);
    }
}

static bool format_finish(struct reader *r)
{
    switch (r->format) {
    case READER_XML:
        return xml_index_finish(r->xml);
    case READER_JSON:
        return json_stream_finish(r->json);
    case READER_NDJSON:
        return ndjson_finish(r->ndjson);
    default:
        return list_finish(r->list);
    }
}

/* Makes the parser of `format` for a text that begins at `place`. */
static bool format_open(struct reader *r, enum reader_format format, struct place place)
{
    bool made;
    r->format = format;
    switch (format) {
    case READER_XML:
        made = (r->xml = xml_index_new(&r->core, place)) != NULL;
        break;
    case READER_JSON:
        made = (r->json = json_stream_new(&r->core, place)) != NULL;
        break;
    case READER_NDJSON:
        made = (r->ndjson = ndjson_new(&r->core, place.line)) != NULL;
        break;
    default:
        made = (r->list = list_new(&r->core, place.line)) != NULL;
        break;
    }
    return made || core_no_memory(&r->core);
}

/* The first line of the object is known: NDJSON, or one object over several lines. */
static bool object_decided(struct reader *r, enum reader_format format)
{
    char *data = r->object_data;
    r->object_data = NULL;
    bool going_on = format_open(r, format, r->place) && format_feed(r, data, r->object_len);
    free(data);
    return going_on;
}

static bool object_feed(struct reader *r, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        enum reader_format format;
        bool decided = detect_object_feed(&r->object, bytes[i], &format);
        if (!decided && r->object_len == READER_MAX_ITEM_BYTES) {
            format = detect_object_finish(&r->object);
            decided = true;
        }
        if (decided)
            return object_decided(r, format) && format_feed(r, bytes + i, len - i);
        r->object_data[r->object_len++] = bytes[i];
    }
    return true;
}

static bool begin_auto(struct reader *r, const char *text, size_t len)
{
    if (len > 0 && *text == '[')
        return format_open(r, READER_JSON, r->place) && format_feed(r, text, len);
    if (len > 0 && *text == '{') {
        r->object_data = malloc(READER_MAX_ITEM_BYTES);
        return r->object_data ? object_feed(r, text, len) : core_no_memory(&r->core);
    }
    return format_open(r, READER_LIST, r->place) && format_feed(r, text, len);
}

/* Looks at the head, which is full or all there is, and gives it to its format. */
static bool head_open(struct reader *r)
{
    enum reader_format wanted = r->core.options.format;
    size_t space = detect_space(r->head, r->head_len);
    const char *text = r->head + space;
    size_t len = r->head_len - space;
    bool xml = wanted == READER_XML || (wanted == READER_AUTO && detect_xml(text, len));
    if (xml && detect_html(text, len))
        return core_fail(&r->core, READER_WRONG_KIND, "html-not-index", r->place.line, 0,
                         "is an HTML page, not a sitemap index");
    bool list = wanted == READER_LIST || (wanted == READER_AUTO && !xml);
    if (list && list_is_binary(r->head, r->head_len))
        return core_fail(&r->core, READER_WRONG_KIND, "not-text", 0, 0, "is not text");
    /* White space before an XML declaration is an error of XML's, but what is meant is clear. */
    place_advance(&r->place, r->head, space);
    if (wanted == READER_AUTO && !xml)
        return begin_auto(r, text, len);
    return format_open(r, xml ? READER_XML : wanted, r->place) && format_feed(r, text, len);
}

/* Takes off the byte order mark; true where anything but white space is left. */
static bool head_has_text(struct reader *r)
{
    if (!r->bom_done) {
        size_t bom = detect_bom(r->head, r->head_len);
        memmove(r->head, r->head + bom, r->head_len - bom);
        r->head_len -= bom;
        r->bom_done = true;
    }
    return detect_space(r->head, r->head_len) < r->head_len;
}

static bool head_feed(struct reader *r, const char *bytes, size_t len)
{
    while (len > 0) {
        size_t part = sizeof r->head - r->head_len;
        if (part > len)
            part = len;
        memcpy(r->head + r->head_len, bytes, part);
        r->head_len += part;
        bytes += part;
        len -= part;
        if (r->head_len < sizeof r->head)
            return true;
        if (head_has_text(r)) {
            if (!head_open(r))
                return false;
            break;
        }
        place_advance(&r->place, r->head, r->head_len);
        r->head_len = 0;
    }
    if (len == 0)
        return true;
    return r->object_data ? object_feed(r, bytes, len) : format_feed(r, bytes, len);
}

/* Decoded bytes, whether they were gzipped or not. */
static bool take_decoded(void *context, const char *bytes, size_t len)
{
    struct reader *r = context;
    uint64_t limit = r->core.options.max_bytes;
    size_t part = len;
    if (limit && len > limit - r->core.bytes)
        part = (size_t)(limit - r->core.bytes);
    r->core.bytes += part;
    bool going_on = r->format != READER_AUTO ? format_feed(r, bytes, part)
                    : r->object_data         ? object_feed(r, bytes, part)
                                             : head_feed(r, bytes, part);
    if (!going_on)
        return false;
    if (part == len)
        return true;
    return core_fail(&r->core, READER_TOO_LARGE, "body-too-large", 0, 0,
                     "is larger than %" PRIu64 " bytes", limit);
}

/* RFC 1952 2.3.1: no text begins with 1f 8b. */
static bool magic_decide(struct reader *r, unsigned char second)
{
    unsigned char bytes[2] = {r->magic, second};
    r->magic_held = false;
    r->stage = STAGE_PLAIN;
    if (bytes[0] != 0x1f || bytes[1] != 0x8b)
        return take_decoded(r, (const char *)bytes, sizeof bytes);
    if (!r->core.options.allow_gzip)
        return core_fail(&r->core, READER_FORBIDDEN, "gzip-not-allowed", 0, 0,
                         "is gzip, which is not accepted here");
    r->stage = STAGE_GZIP;
    r->gunzip = gunzip_new(&r->core, take_decoded, r);
    return r->gunzip ? gunzip_feed(r->gunzip, bytes, sizeof bytes) : core_no_memory(&r->core);
}

enum reader_status reader_feed(struct reader *r, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    if (!core_ok(&r->core) || len == 0)
        return r->core.error.status;
    if (r->stage == STAGE_MAGIC && !r->magic_held) {
        r->magic = *at++;
        r->magic_held = true;
        len--;
    }
    if (r->stage == STAGE_MAGIC && len > 0) {
        if (!magic_decide(r, *at++))
            return r->core.error.status;
        len--;
    }
    if (len > 0) {
        if (r->stage == STAGE_GZIP)
            gunzip_feed(r->gunzip, at, len);
        else
            take_decoded(r, (const char *)at, len);
    }
    return r->core.error.status;
}

static bool finish(struct reader *r)
{
    if (r->magic_held && !take_decoded(r, (const char *)&r->magic, 1))
        return false;
    if (r->stage == STAGE_GZIP && !gunzip_finish(r->gunzip))
        return false;
    if (r->format == READER_AUTO && !r->object_data) {
        head_has_text(r);
        if (!head_open(r))
            return false;
    }
    if (r->object_data && !object_decided(r, detect_object_finish(&r->object)))
        return false;
    return format_finish(r);
}

enum reader_status reader_finish(struct reader *r)
{
    if (core_ok(&r->core) && !r->finished) {
        r->finished = true;
        finish(r);
    }
    return r->core.error.status;
}

const struct reader_error *reader_error(const struct reader *r)
{
    return &r->core.error;
}

enum reader_format reader_format_found(const struct reader *r)
{
    return r->format;
}

bool reader_single_object(const struct reader *r)
{
    return r->json && json_stream_single(r->json);
}

uint64_t reader_count(const struct reader *r)
{
    return r->core.count;
}

uint64_t reader_bytes(const struct reader *r)
{
    return r->core.bytes;
}
