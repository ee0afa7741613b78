#include "server/http/forwarded.h"

#include <arpa/inet.h>
#include <string.h>

#include "server/rules/scan.h"

/* The host of "host" or "host:port", brackets taken off; false where it does not fit an address. */
static bool cut_port(const struct scan *element, char host[INET6_ADDRSTRLEN])
{
    const char *start = element->at, *end = element->end;
    const char *colon = memchr(start, ':', (size_t)(end - start));

    if (start < end && *start == '[') {
        end = memchr(start, ']', (size_t)(end - start));
        if (end == NULL || (end + 1 != element->end && end[1] != ':'))
            return false;
        start++;
    } else if (colon != NULL && memchr(colon + 1, ':', (size_t)(end - colon - 1)) == NULL) {
        end = colon;
    }
    if (end - start >= INET6_ADDRSTRLEN)
        return false;
    memcpy(host, start, (size_t)(end - start));
    host[end - start] = '\0';
    return true;
}

/* As the addresses of peers are written (address_peer). */
static bool read_address(const struct scan *element, char out[INET6_ADDRSTRLEN])
{
    char host[INET6_ADDRSTRLEN];
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

    if (!cut_port(element, host))
        return false;
    if (inet_pton(AF_INET, host, &in.sin_addr) == 1)
        address_peer((const struct sockaddr *)&in, out);
    else if (inet_pton(AF_INET6, host, &in6.sin6_addr) == 1)
        address_peer((const struct sockaddr *)&in6, out);
    else
        return false;
    return true;
}

/* Takes the last element off the list, blanks around it cut. */
static struct scan take_last(struct scan *list)
{
    struct scan element = *list;

    while (element.at < element.end && element.end[-1] != ',')
        element.end--;
    struct scan last = {.at = element.end, .end = list->end};
    list->end = element.end > list->at ? element.end - 1 : list->at;
    scan_skip_blanks(&last);
    while (last.end > last.at && (last.end[-1] == ' ' || last.end[-1] == '\t'))
        last.end--;
    return last;
}

bool forwarded_client(const char *list, const struct address_range *trusted, size_t count,
                      char out[INET6_ADDRSTRLEN])
{
    struct scan left = {.at = list, .end = list + strlen(list)};
    char address[INET6_ADDRSTRLEN];
    bool found = false;

    while (left.at < left.end) {
        struct scan element = take_last(&left);
        if (element.at == element.end)
            continue; /* empty elements count for nothing (RFC 9110 5.6.1.2) */
        if (!read_address(&element, address))
            break;
        strcpy(out, address);
        found = true;
        if (!address_ranges_hold(trusted, count, address))
            break;
    }
    return found;
}
