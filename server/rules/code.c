#include "server/rules/code.h"

#include <stddef.h>

struct code_text {
    const char *word;
    const char *sentence;
};

static const struct code_text code_texts[RULE_CODE_COUNT] = {
#define X(enumerator, word, sentence) [enumerator] = {word, sentence},
    RULE_CODES(X)
#undef X
};

static const struct code_text *find_text(enum rule_code code)
{
    static const struct code_text unknown = {"unknown", "is refused for a reason without a name"};

    /* Through size_t: whether the enum's own type is signed is the compiler's choice. */
    return (size_t)code < RULE_CODE_COUNT ? &code_texts[code] : &unknown;
}

const char *rule_code_word(enum rule_code code)
{
    return find_text(code)->word;
}

const char *rule_code_sentence(enum rule_code code)
{
    return find_text(code)->sentence;
}
