/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reading a whole file, for the bench programs. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

/* The bytes of a file that is not empty, from malloc; NULL where it cannot be read. */
static inline unsigned char *read_whole(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    unsigned char *bytes = NULL;

    if (file == NULL)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && ftell(file) > 0) {
        *len = (size_t)ftell(file);
        rewind(file);
        bytes = malloc(*len);
        if (bytes != NULL && fread(bytes, 1, *len, file) != *len) {
            free(bytes);
            bytes = NULL;
        }
    }
    fclose(file);
    return bytes;
}
