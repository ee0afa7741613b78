#include "server/ingest/sitemap_hash.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define STAGE_BYTES  4096u
#define HEADER_BYTES 5u /* the tag and the length */

/* Fields are short (a tag's name, a date); gathering them saves a call into the library each. */
struct sitemap_hash {
    XXH3_state_t *state;
    size_t staged;
    unsigned char stage[STAGE_BYTES];
};

struct sitemap_hash *sitemap_hash_new(void)
{
    struct sitemap_hash *h = malloc(sizeof *h);
    if (!h)
        return NULL;
    h->staged = 0;
    h->state = XXH3_createState();
    if (!h->state) {
        free(h);
        return NULL;
    }
    XXH3_128bits_reset(h->state);
    return h;
}

static void flush(struct sitemap_hash *h)
{
    XXH3_128bits_update(h->state, h->stage, h->staged);
    h->staged = 0;
}

void sitemap_hash_field(struct sitemap_hash *h, enum sitemap_hash_tag tag, const char *bytes,
                        size_t len)
{
    if (h->staged + HEADER_BYTES + len > STAGE_BYTES)
        flush(h);
    unsigned char *at = h->stage + h->staged;
    at[0] = (unsigned char)tag;
    for (unsigned i = 0; i < 4; i++) /* no field is 4 GiB long; the order of bytes is fixed */
        at[1 + i] = (unsigned char)(len >> (8 * i));
    h->staged += HEADER_BYTES;
    if (len > STAGE_BYTES - HEADER_BYTES) {
        flush(h);
        XXH3_128bits_update(h->state, bytes, len);
    } else if (len > 0) {
        memcpy(at + HEADER_BYTES, bytes, len);
        h->staged += len;
    }
}

struct attribute {
    const char *name, *value;
};

static int compare_attributes(const void *a, const void *b)
{
    const struct attribute *x = a, *y = b;
    return strcmp(x->name, y->name);
}

void sitemap_hash_attributes(struct sitemap_hash *h, const char **list)
{
    struct attribute *attributes = (struct attribute *)(void *)list;
    size_t count = 0;
    bool sorted = true;
    for (; attributes[count].name; count++)
        sorted = sorted &&
                 (count == 0 || compare_attributes(&attributes[count - 1], &attributes[count]) < 0);
    if (!sorted)
        qsort(attributes, count, sizeof *attributes, compare_attributes);
    for (size_t i = 0; i < count; i++) {
        const struct attribute *a = &attributes[i];
        sitemap_hash_field(h, HASH_ATTRIBUTE, a->name, strlen(a->name));
        sitemap_hash_field(h, HASH_VALUE, a->value, strlen(a->value));
    }
}

void sitemap_hash_get(struct sitemap_hash *h, uint64_t out[2])
{
    flush(h);
    XXH128_hash_t hash = XXH3_128bits_digest(h->state);
    out[0] = hash.high64;
    out[1] = hash.low64;
}

void sitemap_hash_free(struct sitemap_hash *h)
{
    if (!h)
        return;
    XXH3_freeState(h->state);
    free(h);
}
