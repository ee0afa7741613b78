/* How a browser shows an index page: a processing instruction behind the XML declaration with the
 * style sheet in its address (xml-stylesheet, W3C REC 2010; data: URLs, RFC 2397). Crawlers skip
 * it, and it is no element, so that the page stays valid under siteindex.xsd. In the page and not
 * in a file of its own: a file would need a path that every proxy in front lets through. */
#ifndef SITEMAPD_RULES_PAGE_PAGE_STYLE_H
#define SITEMAPD_RULES_PAGE_PAGE_STYLE_H

/* The instruction and a newline: render_head puts it behind the declaration. */
extern const char page_style[];

#endif
