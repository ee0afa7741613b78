/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* How a browser shows a page: a processing instruction with the style sheet in its address
 * (xml-stylesheet, W3C REC 2010; data: URLs, RFC 2397). Crawlers skip it, and it is not an element,
 * so that the page stays valid under its schema. In the page and not in a file of its own: a file
 * would need a path that every proxy in front lets through. */
#include "server/rules/page/extension.h"
#include "server/rules/page/render.h"

/* page_style.css and urlset_style.css without its blanks, percent-encoded (RFC 3986 2.1): a test
 * compares them. A row that is not seen is not laid out (content-visibility): a page of 50,000
 * entries is there in a fifth of the time that a browser's own tree of it takes. XML has no way to
 * say how wide it is to be laid out: a phone takes 980 px and shows these at two fifths, hence the
 * large type there. */
#define STYLE(root, sentence, row, more)                                                           \
    "<?xml-stylesheet type=\"text/css\" href=\"data:text/css," root                                \
    "{display:block;max-width:60rem;margin:2rem%20auto;padding:0%201rem;font:15px"                 \
    "/1.5%20system-ui,sans-serif;color-scheme:light%20dark;color:CanvasText;background:Canvas"     \
    "}" root "::before{content:%22" sentence "%22;display:block;margin-bottom:1rem}" row           \
    "{display:flex;flex-wrap:wrap;gap:0%201rem;justify-content:space-between;border-to"            \
    "p:1px%20solid%20%238886;padding:.3rem%200;content-visibility:auto;contain-intrinsic-size"     \
    ":auto%202.1rem}"                                                                              \
    "loc{overflow-wrap:anywhere}"                                                                  \
    "lastmod{font-variant-numeric:tabular-nums;opacity:.75}" more                                  \
    "@media%20(max-device-width:40rem){" root "{font-size:36px}}"                                  \
    "\"?>\n"

const char page_style[] =
    STYLE("sitemapindex",
          "A%20sitemap%20index%20for%20search%20engines:%20each%20line%20is%20one%20sitemap%20of"
          "%20this%20site%20and%20when%20it%20last%20changed.",
          "sitemap", "");

/* An image's URL and the title of news stand on lines of their own. xhtml:link is HTML's, which
 * browsers do not show. */
#define URLSET_STYLE(more)                                                                         \
    STYLE("urlset",                                                                                \
          "A%20sitemap%20for%20search%20engines:%20each%20line%20is%20one%20page%20of%20this%20"   \
          "site%20and%20when%20it%20last%20changed.",                                              \
          "url",                                                                                   \
          "image,news{flex-basis:100%25;opacity:.75}publication,publication_date{display:"         \
          "none}" more)

static const char urlset_style[] = URLSET_STYLE("");

/* Of a video its title. */
static const char videos_style[] = URLSET_STYLE(
    "video{flex-basis:100%25;opacity:.75}video%20*{display:none}video%20title{display:block}");

const char *urlset_style_of(unsigned with)
{
    return (with & EXTENSION_VIDEOS) != 0 ? videos_style : urlset_style;
}
