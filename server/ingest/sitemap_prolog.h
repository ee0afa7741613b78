/* What stands before the root of an XML file, and what it means for a urlset. Internal to ingest.
 */
#ifndef SITEMAPD_INGEST_SITEMAP_PROLOG_H
#define SITEMAPD_INGEST_SITEMAP_PROLOG_H

#include <stdbool.h>

#include "server/ingest/detect.h"

enum sitemap_start {
    START_PLAIN,    /* '<' of something */
    START_DECLARED, /* an XML declaration: meant as XML, whatever becomes of it */
    START_LATE,     /* the same, behind white space, where XML does not allow it */
    START_WIDE,     /* UTF-16 by its first bytes */
};

struct sitemap_prolog {
    enum sitemap_start start;
    struct place start_at;
    struct place declared_at; /* the XML declaration; line 0: none was read */
    bool foreign;             /* it names an encoding other than UTF-8 */
    char encoding[48];        /* that encoding, for people */
    bool doctype;
    struct place doctype_at;
};

struct sitemap_prolog_fault {
    const char *code; /* NULL: none */
    struct place at;
    char why[96];
};

/* Takes the XML declaration's encoding (NULL: it names none). */
void sitemap_prolog_declare(struct sitemap_prolog *p, struct place at, const char *encoding);
/* Meant as XML, even where it breaks before its root is known. */
bool sitemap_prolog_is_declared(const struct sitemap_prolog *p);
/* What a urlset behind this prolog is refused for. */
struct sitemap_prolog_fault sitemap_prolog_judge(const struct sitemap_prolog *p);

#endif
