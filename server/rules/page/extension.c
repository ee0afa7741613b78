/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The table of extensions: names and namespaces. */
#include "server/rules/page/extension.h"

#include <stdio.h>
#include <string.h>

#include "server/rules/limits.h"

const struct extension extensions[EXTENSION_COUNT] = {
    {EXTENSION_NEWS, "news", "news", "http://www.google.com/schemas/sitemap-news/0.9"},
    {EXTENSION_IMAGES, "images", "image", "http://www.google.com/schemas/sitemap-image/1.1"},
    {EXTENSION_VIDEOS, "videos", "video", "http://www.google.com/schemas/sitemap-video/1.1"},
    {EXTENSION_ALTERNATES, "alternates", "xhtml", "http://www.w3.org/1999/xhtml"},
};

unsigned extension_named(const char *word)
{
    for (size_t i = 0; i < EXTENSION_COUNT; i++)
        if (strcmp(extensions[i].word, word) == 0)
            return extensions[i].bit;
    return 0;
}

unsigned extensions_of(const char *fragment)
{
    unsigned found = 0;

    /* Canonical: a '<' begins an element, and nothing else. */
    for (const char *at = fragment; (at = strchr(at, '<')) != NULL; at++)
        for (size_t i = 0; i < EXTENSION_COUNT; i++) {
            size_t len = strlen(extensions[i].prefix);
            if (strncmp(at + 1, extensions[i].prefix, len) == 0 && at[1 + len] == ':')
                found |= extensions[i].bit;
        }
    return found;
}

void extension_words(unsigned set, char out[EXTENSION_WORDS_SIZE])
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < EXTENSION_COUNT; i++)
        if ((set & extensions[i].bit) != 0)
            len += (size_t)snprintf(out + len, EXTENSION_WORDS_SIZE - len, "%s%s",
                                    len > 0 ? "," : "", extensions[i].word);
}

uint32_t page_limit_urls(uint32_t asked, unsigned with)
{
    uint32_t most = with & EXTENSION_NEWS ? LIMIT_NEWS_ROWS : LIMIT_PAGE_ENTRIES;
    return asked == 0 || asked > most ? most : asked;
}

uint32_t page_limit_bytes(uint32_t asked)
{
    return asked == 0 || asked > LIMIT_PAGE_BYTES ? LIMIT_PAGE_BYTES : asked;
}
