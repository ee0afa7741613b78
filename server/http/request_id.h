/* Ids of requests: what a client, a reply and the logs have in common. Pure but for where ids
 * start; thread safe. */
#ifndef SITEMAPD_HTTP_REQUEST_ID_H
#define SITEMAPD_HTTP_REQUEST_ID_H

#include <stdbool.h>

#define REQUEST_ID_MAX  128 /* bytes of one that a client brings */
#define REQUEST_ID_SIZE 17  /* of one of ours, its NUL included */

/* True for 1 to REQUEST_ID_MAX letters, digits and . _ ~ : + / = @ -, which holds for UUIDs, ULIDs
 * and trace ids. Others could not be searched for, or would need escapes. */
bool request_id_check(const char *text);
/* Makes one: 16 hexadecimal digits, no other of this process's; likely no other of any. They are no
 * secrets. Returns `out`. */
const char *request_id_make(char out[REQUEST_ID_SIZE]);

#endif
