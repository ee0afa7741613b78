/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Finds the known word with the smallest edit distance to a mistyped one. */
#include "config/suggest.h"

#include <stdint.h>
#include <string.h>

#define WORD_MAX  63
#define CLOSE_MAX 2

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment, three rows at a time. */
size_t suggest_distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *two_above = rows[0], *above = rows[1], *row = rows[2];
    size_t a_len = strlen(a), b_len = strlen(b);

    if (a_len > WORD_MAX || b_len > WORD_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_len; j++)
        above[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *spare = two_above;

        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);

            best = least(best, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = least(best, two_above[j - 2] + 1);
            row[j] = best;
        }
        two_above = above;
        above = row;
        row = spare;
    }
    return above[b_len];
}

/* Compares lengths first, at a hundredth of the cost: each line of a file full of mistakes is
 * compared with every setting. */
static bool is_near_in_length(const char *a, const char *b, size_t allowed)
{
    size_t a_len = strlen(a), b_len = strlen(b);

    return (a_len > b_len ? a_len - b_len : b_len - a_len) <= allowed;
}

bool suggest_is_close(const char *a, const char *b)
{
    size_t allowed = least(CLOSE_MAX, (strlen(b) + 2) / 3);

    return is_near_in_length(a, b, allowed) && suggest_distance(a, b) <= allowed;
}

void suggest_consider(struct suggestion *s, const char *typed, const char *candidate)
{
    if (!suggest_is_close(typed, candidate))
        return;
    size_t distance = suggest_distance(typed, candidate);
    if (s->word != NULL && s->distance <= distance)
        return;
    s->word = candidate;
    s->distance = distance;
}
