/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Lines of access logs: what is read has all that an import takes from it. */
#include "tests/fuzz/require.h"

#include "server/cli/commands/crawler_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct log_reader *reader = log_reader_new();
    struct log_fetch fetch;
    const char *why;
    char *line = copy_text(data, size);

    REQUIRE(reader != NULL);
    switch (log_reader_line(reader, line, size, &fetch, &why)) {
    case LOG_LINE_FETCH:
        REQUIRE(fetch.target != NULL && fetch.user_agent != NULL && fetch.status <= 999);
        break;
    case LOG_LINE_NOTHING:
        REQUIRE(why == NULL);
        break;
    case LOG_LINE_UNREADABLE:
        REQUIRE(why != NULL);
        break;
    }
    log_reader_free(reader);
    free(line);
    return 0;
}
