#include "server/rules/utf8.h"

#include "server/rules/ascii.h"

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* The table of RFC 3629 4: beside the first byte, only the second has bounds of its own. */
static bool second_is_valid(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xE0: /* below A0: overlong */
        return second >= 0xA0 && second <= 0xBF;
    case 0xED: /* above 9F: a surrogate */
        return second >= 0x80 && second <= 0x9F;
    case 0xF0: /* below 90: overlong */
        return second >= 0x90 && second <= 0xBF;
    case 0xF4: /* above 8F: past U+10FFFF */
        return second >= 0x80 && second <= 0x8F;
    default:
        return second >= 0x80 && second <= 0xBF;
    }
}

size_t utf8_char_len(const char *text, size_t len)
{
    unsigned char first = (unsigned char)text[0];
    size_t want;

    if (first < 0x80)
        return 1;
    if (first < 0xC2 || first > 0xF4)
        return 0;
    want = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (len < want || !second_is_valid(first, (unsigned char)text[1]))
        return 0;
    for (size_t i = 2; i < want; i++) {
        if (!is_continuation(text[i]))
            return 0;
    }
    return want;
}

bool utf8_is_valid(const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t step = utf8_char_len(text + i, len - i);

        if (step == 0)
            return false;
        i += step;
    }
    return true;
}

bool utf8_is_control(const char *text, size_t char_len)
{
    unsigned char first = (unsigned char)text[0];

    if (char_len == 1)
        return first < 0x20 || first == 0x7F;
    return char_len == 2 && first == 0xC2 && (unsigned char)text[1] < 0xA0;
}
