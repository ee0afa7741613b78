#include "server/http/header_read.h"

#include <string.h>

/* Older ones have the faults below; this and later ones refuse all of it themselves. */
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

/* Whether nothing but up to `most` line ends lies between two texts: they are NULs by now, two for
 * one that had its CR. What a NUL hides of a value lies there too (RFC 9110 5.5). */
static bool only_line_ends(const char *from, uintptr_t to, unsigned most)
{
    uintptr_t len = to - (uintptr_t)from;

    if (PARSER_IS_STRICT)
        return true;
    for (uintptr_t i = 0; i < len && len <= 2 * most; i++)
        if (from[i] != '\0')
            return false;
    return len <= 2 * most;
}

static enum MHD_Result add_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                  size_t name_len, const char *value, size_t value_len)
{
    struct reading *reading = cls;

    (void)kind;
    reading->scan->malformed |=
        is_folded(name, name_len, value) || !only_line_ends(reading->end, (uintptr_t)name, 1);
    header_scan_add(reading->scan, name, name_len, value, value_len);
    if (value != NULL)
        reading->end = value + value_len;
    return MHD_YES;
}

/* A field with an empty name ends the header, and the fields behind it begin the next request; so
 * does a line that begins with NUL. Not seen is one that ends in LF alone and has nothing else: it
 * looks as an empty line does. */
static bool ends_early(struct MHD_Connection *mhd, const char *method, const char *end)
{
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    return size != NULL && !only_line_ends(end, (uintptr_t)method + size->header_size, 2);
}

void header_read(struct MHD_Connection *mhd, const char *method, const char *version,
                 struct header_scan *scan)
{
    struct reading reading = {scan, version + strlen(version)};

    MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, add_header, &reading);
    scan->malformed |= ends_early(mhd, method, reading.end);
}
