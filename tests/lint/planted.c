/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Not part of any program: each tool must find its defect here, or tests/lint/run trusts neither.
 */
#include <stdlib.h>
#include <string.h>

/* clang-tidy: a dead store, and a null pointer that is followed. cppcheck: the latter. */
char planted_null(size_t len);
char planted_null(size_t len)
{
    char *text = NULL;
    int unread = 1;

    unread = 2;
    if (len > 0)
        text = NULL;
    return text[len];
}

/* cppcheck: memory that is lost. */
size_t planted_leak(const char *from);
size_t planted_leak(const char *from)
{
    char *copy = malloc(strlen(from) + 1);

    if (copy == NULL)
        return 0;
    strcpy(copy, from);
    return strlen(from);
}

/* clang-query: a pointer that is not compared with NULL. */
size_t planted_pointer(const char *text);
size_t planted_pointer(const char *text)
{
    return text ? strlen(text) : 0;
}
