/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The table of db/status.h. */
#include "db/status.h"

#include <stddef.h>

static const struct catalogue_status_row rows[] = {
#define X(name, word_, http_, retry_s_, sentence_)                                                 \
    [name] = {.word = word_, .sentence = sentence_, .http = http_, .retry_s = retry_s_},
    CATALOGUE_STATUSES(X)
#undef X
};

const struct catalogue_status_row *catalogue_status_row(enum catalogue_status status)
{
    return &rows[(size_t)status < sizeof rows / sizeof *rows ? status : CATALOGUE_OK];
}

const char *catalogue_status_word(enum catalogue_status status)
{
    return catalogue_status_row(status)->word;
}
