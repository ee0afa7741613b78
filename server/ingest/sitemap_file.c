#include "server/ingest/sitemap_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/ingest/detect.h"
#include "server/ingest/gunzip.h"
#include "server/ingest/sitemap_list.h"
#include "server/ingest/sitemap_urlset.h"

/* Markup repeats itself: a sitemap of forty languages is 100 times its gzip. deflate's utmost is
 * 1032, which only what repeats one byte comes near to. */
#define MAX_RATIO 500u

/* A head shorter than this is looked at only where nothing can follow. */
#define HEAD_MIN_BYTES 1024u
/* What is left of a broken gzip tells something from so many bytes on. */
#define REST_MIN_BYTES 16u

/* bytes -> (gunzip) -> block -> form.
 * The block is filled before it is handed on, so that expat gets the same pieces however the
 * bytes arrive: what it says, and when, depends on nothing else then. */
struct sitemap_verifier {
    struct sitemap_work work;
    struct core unpacking; /* gunzip's own faults; a verdict on what came before outranks them */
    enum { STAGE_MAGIC, STAGE_PLAIN, STAGE_GZIP } stage;
    unsigned char magic; /* the first byte, while STAGE_MAGIC has it */
    bool magic_held;
    bool finished;
    bool bom_done;
    struct gunzip *gunzip;
    struct sitemap_urlset *urlset; /* of these two one at most is not NULL; none: still the head */
    struct sitemap_list *list;
    struct place place; /* where the block begins, while it is the head */
    size_t block_len;
    char block[URLSET_FEED_BYTES];
};

struct sitemap_verifier *sitemap_verifier_new(int64_t now)
{
    struct sitemap_verifier *v = calloc(1, sizeof *v);
    if (!v)
        return NULL;
    v->work.hash = sitemap_hash_new();
    if (!v->work.hash) {
        free(v);
        return NULL;
    }
    v->work.pages.now = now;
    v->unpacking.options.max_ratio = MAX_RATIO;
    v->place = (struct place){1, 1};
    return v;
}

void sitemap_verifier_free(struct sitemap_verifier *v)
{
    if (!v)
        return;
    gunzip_free(v->gunzip);
    sitemap_urlset_free(v->urlset);
    sitemap_list_free(v->list);
    sitemap_hash_free(v->work.hash);
    free(v);
}

static bool form_feed(struct sitemap_verifier *v, const char *bytes, size_t len)
{
    return v->urlset ? sitemap_urlset_feed(v->urlset, bytes, len)
                     : sitemap_list_feed(v->list, bytes, len);
}

static bool form_finish(struct sitemap_verifier *v)
{
    return v->urlset ? sitemap_urlset_finish(v->urlset) : sitemap_list_finish(v->list);
}

static bool is_wide(const char *text, size_t len)
{
    return len >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0 ||
                        memcmp(text, "<\0", 2) == 0 || memcmp(text, "\0<", 2) == 0);
}

static bool is_declaration(const char *text, size_t len)
{
    return len > 5 && memcmp(text, "<?xml", 5) == 0 && detect_space(text + 5, 1) == 1;
}

/* Tells by the block, which is the head without what is blank in front, what the file is. */
static bool head_open(struct sitemap_verifier *v)
{
    const char *text = v->block;
    size_t len = v->block_len;
    enum sitemap_start start = START_PLAIN;
    if (is_wide(text, len)) {
        start = START_WIDE;
    } else if (sitemap_pages_is_url(text, len)) {
        v->list = sitemap_list_new(&v->work, v->place.line);
        return v->list || core_no_memory(&v->work.core);
    } else if (*text != '<' || detect_html(text, len)) {
        return sitemap_work_other(&v->work, SITEMAP_FILE_OTHER);
    } else if (is_declaration(text, len)) {
        bool first = v->place.line == 1 && v->place.column == 1;
        start = first ? START_DECLARED : START_LATE;
    }
    v->urlset = sitemap_urlset_new(&v->work, v->place, start);
    return v->urlset || core_no_memory(&v->work.core);
}

static void drop(struct sitemap_verifier *v, size_t len)
{
    memmove(v->block, v->block + len, v->block_len - len);
    v->block_len -= len;
}

/* The form, once there is enough to tell it by. False: it is not there (yet). */
static bool head_feed(struct sitemap_verifier *v, size_t enough)
{
    if (!v->bom_done)
        drop(v, detect_bom(v->block, v->block_len));
    v->bom_done = true;
    size_t space = detect_space(v->block, v->block_len);
    place_advance(&v->place, v->block, space);
    drop(v, space);
    return v->block_len >= enough && head_open(v);
}

static bool block_feed(struct sitemap_verifier *v, size_t enough)
{
    if (!v->urlset && !v->list && !head_feed(v, enough))
        return core_ok(&v->work.core);
    size_t len = v->block_len;
    v->block_len = 0;
    return len == 0 || form_feed(v, v->block, len);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Decoded bytes, whether they were gzip or not. */
static bool take_decoded(void *context, const char *bytes, size_t len)
{
    struct sitemap_verifier *v = context;
    struct core *core = &v->work.core;
    while (len > 0) {
        size_t room = least(sizeof v->block - v->block_len, SITEMAP_FILE_MAX_BYTES - core->bytes);
        size_t part = least(len, room);
        if (core->bytes == SITEMAP_FILE_MAX_BYTES)
            return core_fail(core, READER_TOO_LARGE, "file-too-large", 0, 0,
                             "is larger than %u bytes", SITEMAP_FILE_MAX_BYTES);
        core->bytes += part;
        if (part == sizeof v->block && (v->urlset || v->list)) {
            if (!form_feed(v, bytes, part)) /* no copy */
                return false;
        } else {
            memcpy(v->block + v->block_len, bytes, part);
            v->block_len += part;
            if (v->block_len == sizeof v->block && !block_feed(v, HEAD_MIN_BYTES))
                return false;
        }
        bytes += part;
        len -= part;
    }
    return true;
}

/* gunzip has failed. What it had decoded may still show that the file is none of ours. */
static bool unpacking_failed(struct sitemap_verifier *v)
{
    const struct reader_error *error = &v->unpacking.error;
    if (!core_ok(&v->work.core) || core_ok(&v->unpacking))
        return false;
    if (error->status == READER_NO_MEMORY)
        return core_no_memory(&v->work.core);
    if (block_feed(v, REST_MIN_BYTES))
        core_fail(&v->work.core, error->status, error->code, 0, 0, "%s", error->detail);
    return false;
}

/* RFC 1952 2.3.1: no text begins with 1f 8b. */
static bool magic_decide(struct sitemap_verifier *v, unsigned char second)
{
    unsigned char bytes[2] = {v->magic, second};
    v->magic_held = false;
    v->stage = STAGE_PLAIN;
    if (bytes[0] != 0x1f || bytes[1] != 0x8b)
        return take_decoded(v, (const char *)bytes, sizeof bytes);
    v->stage = STAGE_GZIP;
    v->gunzip = gunzip_new(&v->unpacking, take_decoded, v);
    if (!v->gunzip)
        return core_no_memory(&v->work.core);
    return gunzip_feed(v->gunzip, bytes, sizeof bytes) || unpacking_failed(v);
}

bool sitemap_verifier_feed(struct sitemap_verifier *v, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    if (!core_ok(&v->work.core) || len == 0)
        return core_ok(&v->work.core);
    if (v->stage == STAGE_MAGIC && !v->magic_held) {
        v->magic = *at++;
        v->magic_held = true;
        len--;
    }
    if (v->stage == STAGE_MAGIC && len > 0) {
        if (!magic_decide(v, *at++))
            return false;
        len--;
    }
    if (len == 0)
        return true;
    if (v->stage == STAGE_GZIP)
        return gunzip_feed(v->gunzip, at, len) || unpacking_failed(v);
    return take_decoded(v, (const char *)at, len);
}

static bool end(struct sitemap_verifier *v)
{
    if (v->magic_held && !take_decoded(v, (const char *)&v->magic, 1))
        return false;
    if (v->stage == STAGE_GZIP && !gunzip_finish(v->gunzip))
        return unpacking_failed(v);
    if (v->work.core.bytes == 0)
        return core_fail(&v->work.core, READER_MALFORMED, "empty-file", 0, 0,
                         "is empty: its writer has not come to write it");
    if (!block_feed(v, 1))
        return false;
    return (!v->urlset && !v->list) || form_finish(v); /* neither: all of it was blank */
}

static void tell_content(struct sitemap_verifier *v, struct sitemap_file *out)
{
    const struct sitemap_pages *pages = &v->work.pages;
    out->kind = pages->urls == 0 ? SITEMAP_FILE_EMPTY
                : v->urlset      ? SITEMAP_FILE_URLSET
                                 : SITEMAP_FILE_TEXT;
    out->urls = pages->urls;
    out->bad_urls = pages->bad_urls;
    out->one_lastmod = sitemap_pages_one_lastmod(pages);
    memcpy(out->newest_lastmod, pages->newest.text, sizeof out->newest_lastmod);
    sitemap_hash_get(v->work.hash, out->hash);
}

static void tell_fault(const struct reader_error *error, struct sitemap_file *out)
{
    out->kind = SITEMAP_FILE_BROKEN;
    out->code = error->code;
    out->line = error->line;
    out->column = error->column;
    snprintf(out->detail, sizeof out->detail, "%.*s", (int)sizeof out->detail - 1, error->detail);
}

bool sitemap_verifier_finish(struct sitemap_verifier *v, struct sitemap_file *out)
{
    const struct reader_error *error = &v->work.core.error;
    if (core_ok(&v->work.core) && !v->finished)
        end(v);
    v->finished = true;
    if (error->status == READER_NO_MEMORY)
        return false;
    *out = (struct sitemap_file){
        .gzip = v->stage == STAGE_GZIP, .bytes = v->work.core.bytes, .code = ""};
    if (error->status == READER_OK)
        tell_content(v, out);
    else if (error->status == READER_WRONG_KIND)
        out->kind = v->work.kind;
    else
        tell_fault(error, out);
    return true;
}
