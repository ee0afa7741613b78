#include "server/rules/page/page_style.h"

/* page_style.css without its blanks, percent-encoded (RFC 3986 2.1): a test compares the two. A row
 * that is not seen is not laid out (content-visibility): a page of 50,000 entries is there in a
 * fifth of the time that a browser's own tree of it takes. XML has no way to say how wide it is to
 * be laid out: a phone takes 980 px and shows these at two fifths, hence the large type there. */
const char page_style[] =
    "<?xml-stylesheet type=\"text/css\" href=\"data:text/css,"
    "sitemapindex{display:block;max-width:60rem;margin:2rem%20auto;padding:0%201rem;font:15px"
    "/1.5%20system-ui,sans-serif;color-scheme:light%20dark;color:CanvasText;background:Canvas"
    "}"
    "sitemapindex::before{content:%22A%20sitemap%20index%20for%20search%20engines:%20each%20l"
    "ine%20is%20one%20sitemap%20of%20this%20site%20and%20when%20it%20last%20changed.%22;displ"
    "ay:block;margin-bottom:1rem}"
    "sitemap{display:flex;flex-wrap:wrap;gap:0%201rem;justify-content:space-between;border-to"
    "p:1px%20solid%20%238886;padding:.3rem%200;content-visibility:auto;contain-intrinsic-size"
    ":auto%202.1rem}"
    "loc{overflow-wrap:anywhere}"
    "lastmod{font-variant-numeric:tabular-nums;opacity:.75}"
    "@media%20(max-device-width:40rem){sitemapindex{font-size:36px}}"
    "\"?>\n";
