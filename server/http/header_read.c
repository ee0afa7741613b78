#include "server/http/header_read.h"

#include <string.h>

/* Older ones have the two faults below; this and later ones refuse both themselves. */
#define PARSER_IS_STRICT (MHD_VERSION >= 0x00097701)

struct reading {
    struct header_scan *scan;
    const char *end; /* of the last text that came: of a value, or of the request line */
};

/* A folded line (RFC 9112 5.2) is put behind the name of the field before, which is moved for that,
 * away from its value or over it. What came in one piece behind such a request may then be answered
 * for a target that nobody asked for. */
static bool is_folded(const char *name, size_t name_len, const char *value)
{
    return !PARSER_IS_STRICT && value != NULL && (uintptr_t)value <= (uintptr_t)name + name_len;
}

static enum MHD_Result add_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                  size_t name_len, const char *value, size_t value_len)
{
    struct reading *reading = cls;

    (void)kind;
    reading->scan->malformed |= is_folded(name, name_len, value);
    header_scan_add(reading->scan, name, name_len, value, value_len);
    if (value != NULL)
        reading->end = value + value_len;
    return MHD_YES;
}

/* A field with an empty name ends the header, and the fields behind it begin the next request. Line
 * ends are NULs by now: two ends, the empty line's being the second, are all that may follow. Not
 * seen is a lone colon that ends in LF alone: it looks as an empty line does. */
static bool ends_early(struct MHD_Connection *mhd, const char *method, const char *end)
{
    static const char two_line_ends[4];
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    if (PARSER_IS_STRICT || size == NULL)
        return false;
    uintptr_t left = (uintptr_t)method + size->header_size - (uintptr_t)end;
    return left > sizeof two_line_ends || memcmp(end, two_line_ends, left) != 0;
}

void header_read(struct MHD_Connection *mhd, const char *method, const char *version,
                 struct header_scan *scan)
{
    struct reading reading = {scan, version + strlen(version)};

    MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, add_header, &reading);
    scan->malformed |= ends_early(mhd, method, reading.end);
}
