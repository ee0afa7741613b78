/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* "Did you mean": the known word that a mistyped one is closest to. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The edit distance of two words: letters added, left out, changed, or swapped with their
 * neighbour. SIZE_MAX for words longer than 63 bytes. Thread safe. */
size_t suggest_distance(const char *a, const char *b);

/* True if `a` may be a mistyped `b`: at most a third of its letters differ, and at most two. */
bool suggest_is_close(const char *a, const char *b);

struct suggestion {
    const char *word; /* the closest so far; NULL: none is close */
    size_t distance;
};

/* Takes `candidate` if it is closer to `typed` than the word so far. Start with {NULL, 0}. */
void suggest_consider(struct suggestion *s, const char *typed, const char *candidate);
