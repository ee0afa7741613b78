/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The table is of Unicode 15: what has the property White_Space or the category Cf (format), but
 * for ASCII. */
#include "server/rules/hidden.h"

#include "server/base/str.h"

#define HIDDEN(name)                                                                               \
    "has the character " name " in it, which is invisible; remove it, or percent-encode it"

static const struct hidden {
    uint32_t first, last;
    const char *sentence;
} hidden[] = {
    {0x0085, 0x0085, HIDDEN("U+0085 next line")},
    {0x00a0, 0x00a0, HIDDEN("U+00A0 no-break space")},
    {0x00ad, 0x00ad, HIDDEN("U+00AD soft hyphen")},
    {0x0600, 0x0605, HIDDEN("an Arabic or Syriac format character (U+0600 to U+0605)")},
    {0x061c, 0x061c, HIDDEN("an Arabic or Syriac format character (U+061C)")},
    {0x06dd, 0x06dd, HIDDEN("an Arabic or Syriac format character (U+06DD)")},
    {0x070f, 0x070f, HIDDEN("an Arabic or Syriac format character (U+070F)")},
    {0x0890, 0x0891, HIDDEN("an Arabic or Syriac format character (U+0890 to U+0891)")},
    {0x08e2, 0x08e2, HIDDEN("an Arabic or Syriac format character (U+08E2)")},
    {0x1680, 0x1680, HIDDEN("U+1680 ogham space mark")},
    {0x180e, 0x180e, HIDDEN("U+180E mongolian vowel separator")},
    {0x2000, 0x2000, HIDDEN("U+2000 en quad")},
    {0x2001, 0x2001, HIDDEN("U+2001 em quad")},
    {0x2002, 0x2002, HIDDEN("U+2002 en space")},
    {0x2003, 0x2003, HIDDEN("U+2003 em space")},
    {0x2004, 0x2004, HIDDEN("U+2004 three-per-em space")},
    {0x2005, 0x2005, HIDDEN("U+2005 four-per-em space")},
    {0x2006, 0x2006, HIDDEN("U+2006 six-per-em space")},
    {0x2007, 0x2007, HIDDEN("U+2007 figure space")},
    {0x2008, 0x2008, HIDDEN("U+2008 punctuation space")},
    {0x2009, 0x2009, HIDDEN("U+2009 thin space")},
    {0x200a, 0x200a, HIDDEN("U+200A hair space")},
    {0x200b, 0x200b, HIDDEN("U+200B zero width space")},
    {0x200c, 0x200c, HIDDEN("U+200C zero width non-joiner")},
    {0x200d, 0x200d, HIDDEN("U+200D zero width joiner")},
    {0x200e, 0x200e, HIDDEN("U+200E left-to-right mark")},
    {0x200f, 0x200f, HIDDEN("U+200F right-to-left mark")},
    {0x2028, 0x2028, HIDDEN("U+2028 line separator")},
    {0x2029, 0x2029, HIDDEN("U+2029 paragraph separator")},
    {0x202a, 0x202a, HIDDEN("U+202A left-to-right embedding")},
    {0x202b, 0x202b, HIDDEN("U+202B right-to-left embedding")},
    {0x202c, 0x202c, HIDDEN("U+202C pop directional formatting")},
    {0x202d, 0x202d, HIDDEN("U+202D left-to-right override")},
    {0x202e, 0x202e, HIDDEN("U+202E right-to-left override")},
    {0x202f, 0x202f, HIDDEN("U+202F narrow no-break space")},
    {0x205f, 0x205f, HIDDEN("U+205F medium mathematical space")},
    {0x2060, 0x2060, HIDDEN("U+2060 word joiner")},
    {0x2061, 0x2061, HIDDEN("U+2061 function application")},
    {0x2062, 0x2062, HIDDEN("U+2062 invisible times")},
    {0x2063, 0x2063, HIDDEN("U+2063 invisible separator")},
    {0x2064, 0x2064, HIDDEN("U+2064 invisible plus")},
    {0x2066, 0x2066, HIDDEN("U+2066 left-to-right isolate")},
    {0x2067, 0x2067, HIDDEN("U+2067 right-to-left isolate")},
    {0x2068, 0x2068, HIDDEN("U+2068 first strong isolate")},
    {0x2069, 0x2069, HIDDEN("U+2069 pop directional isolate")},
    {0x206a, 0x206a, HIDDEN("U+206A inhibit symmetric swapping")},
    {0x206b, 0x206b, HIDDEN("U+206B activate symmetric swapping")},
    {0x206c, 0x206c, HIDDEN("U+206C inhibit Arabic form shaping")},
    {0x206d, 0x206d, HIDDEN("U+206D activate Arabic form shaping")},
    {0x206e, 0x206e, HIDDEN("U+206E national digit shapes")},
    {0x206f, 0x206f, HIDDEN("U+206F nominal digit shapes")},
    {0x3000, 0x3000, HIDDEN("U+3000 ideographic space")},
    {0xfeff, 0xfeff, HIDDEN("U+FEFF zero width no-break space")},
    {0xfff9, 0xfffb, HIDDEN("an interlinear annotation character (U+FFF9 to U+FFFB)")},
    {0x110bd, 0x110bd, HIDDEN("a Kaithi number sign (U+110BD)")},
    {0x110cd, 0x110cd, HIDDEN("a Kaithi number sign (U+110CD)")},
    {0x13430, 0x1343f, HIDDEN("a hieroglyph format control (U+13430 to U+1343F)")},
    {0x1bca0, 0x1bca3, HIDDEN("a shorthand format control (U+1BCA0 to U+1BCA3)")},
    {0x1d173, 0x1d17a, HIDDEN("a musical format character (U+1D173 to U+1D17A)")},
    {0xe0001, 0xe0001, HIDDEN("a tag character (U+E0001)")},
    {0xe0020, 0xe007f, HIDDEN("a tag character (U+E0020 to U+E007F)")},
};
#define HIDDEN_COUNT (sizeof hidden / sizeof *hidden)

static uint32_t decode_utf8(const char *text, size_t len)
{
    static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = (unsigned char)text[0] & first_bits[len];

    for (size_t i = 1; i < len; i++)
        c = c << 6 | ((unsigned char)text[i] & 0x3f);
    return c;
}

const char *hidden_sentence(const char *text, size_t char_len)
{
    size_t low = 0, high = HIDDEN_COUNT;
    uint32_t c;

    if (char_len < 2 || char_len > 4)
        return NULL;
    c = decode_utf8(text, char_len);
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (c > hidden[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < HIDDEN_COUNT && c >= hidden[low].first ? hidden[low].sentence : NULL;
}

size_t hidden_front(const char *text, size_t len)
{
    size_t step = len > 0 ? utf8_char_len(text, len) : 0;

    return hidden_sentence(text, step) != NULL ? step : 0;
}

size_t hidden_back(const char *text, size_t len)
{
    size_t step = 1;

    while (step < 4 && step < len && ((unsigned char)text[len - step] & 0xc0) == 0x80)
        step++;
    return step <= len && utf8_char_len(text + len - step, step) == step
               ? (hidden_sentence(text + len - step, step) != NULL ? step : 0)
               : 0;
}
