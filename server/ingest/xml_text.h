/* The text of one XML element as its pieces arrive, without the white space around it, bounded.
 * Internal to ingest. */
#ifndef SITEMAPD_INGEST_XML_TEXT_H
#define SITEMAPD_INGEST_XML_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct xml_text {
    char *data; /* the owner's */
    size_t size, len;
    size_t end;      /* behind the last byte that is no white space */
    bool padded;     /* white space was left out in front */
    bool overflow;   /* there was more than `size` bytes of it */
    bool blank_lost; /* white space past `size`: it counts only if text follows it */
};

void xml_text_init(struct xml_text *t, char *data, size_t size);
void xml_text_append(struct xml_text *t, const char *bytes, size_t len);
/* The length without the white space behind; `*padded` where there was any around. */
size_t xml_text_end(const struct xml_text *t, bool *padded);

#endif
