#include "server/ingest/xml_names.h"

#include <stddef.h>
#include <string.h>

static const char protocol[] = "http://www.sitemaps.org/schemas/sitemap/0.9";

/* Seen in the wild: https for http, no www, 0.84 of Google's time, a slash behind. */
static const char *const meant[] = {
    "https://www.sitemaps.org/schemas/sitemap/", "http://www.sitemaps.org/schemas/sitemap/",
    "https://sitemaps.org/schemas/sitemap/",     "http://sitemaps.org/schemas/sitemap/",
    "https://www.google.com/schemas/sitemap/",   "http://www.google.com/schemas/sitemap/",
};

const char *xml_name_local(const char *name)
{
    const char *separator = strrchr(name, XML_NAME_SEPARATOR);
    return separator ? separator + 1 : name;
}

/* "0.9", "0.84", "0.9/": digits and a dot. Google's extensions live beside them
 * ("sitemap-news/0.9"), and "sitemap/0.9x" is nobody's. */
static bool is_version(const char *text, size_t len)
{
    if (len > 0 && text[len - 1] == '/')
        len--;
    return len >= 3 && strspn(text, "0123456789.") == len;
}

enum xml_space xml_name_space(const char *name)
{
    size_t len = (size_t)(xml_name_local(name) - name);
    if (len == 0)
        return XML_SPACE_MEANT;
    len--; /* the separator */
    if (len == sizeof protocol - 1 && memcmp(name, protocol, len) == 0)
        return XML_SPACE_SITEMAP;
    for (size_t i = 0; i < sizeof meant / sizeof meant[0]; i++) {
        size_t size = strlen(meant[i]);
        if (len > size && memcmp(name, meant[i], size) == 0 && is_version(name + size, len - size))
            return XML_SPACE_MEANT;
    }
    return XML_SPACE_OTHER;
}
