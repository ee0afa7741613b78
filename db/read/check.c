#include "db/check.h"

#include <string.h>

static const char *const words[CHECK_STATES] = {
    "new", "good", "empty", "gone", "not-a-sitemap", "broken", "refused", "unreachable"};

const char *check_state_word(enum check_state state)
{
    return words[state];
}

bool check_state_read(const char *word, enum check_state *out)
{
    for (unsigned i = 0; i < CHECK_STATES; i++)
        if (strcmp(words[i], word) == 0) {
            *out = (enum check_state)i;
            return true;
        }
    return false;
}
