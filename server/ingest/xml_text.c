#include "server/ingest/xml_text.h"

#include "server/ingest/detect.h"

void xml_text_init(struct xml_text *t, char *data, size_t size)
{
    *t = (struct xml_text){.data = data, .size = size};
}

void xml_text_append(struct xml_text *t, const char *bytes, size_t len)
{
    if (t->len == 0) {
        size_t skip = detect_space(bytes, len);
        t->padded = t->padded || skip > 0;
        bytes += skip;
        len -= skip;
    }
    for (size_t i = 0; i < len; i++) {
        bool blank = detect_space(bytes + i, 1) == 1;
        if (t->len == t->size) {
            t->blank_lost = t->blank_lost || blank;
            t->overflow = t->overflow || !blank;
            continue;
        }
        t->data[t->len++] = bytes[i];
        if (!blank)
            t->end = t->len;
    }
}

size_t xml_text_end(const struct xml_text *t, bool *padded)
{
    *padded = t->padded || t->end < t->len || t->blank_lost;
    return t->end;
}
