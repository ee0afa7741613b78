/* Names of statuses and methods (RFC 9110 15 and 9). Pure, thread safe. */
#ifndef SITEMAPD_HTTP_STATUS_H
#define SITEMAPD_HTTP_STATUS_H

#include "server/http/request.h"

/* "Not Found"; "Unknown" for what no part of this program answers. Static. */
const char *status_reason(unsigned status);
/* Reads a method, case-sensitive (RFC 9110 9.1); HTTP_OTHER where it is none of ours. */
enum http_method method_parse(const char *text);
/* "GET"; "-" for HTTP_OTHER. Static. */
const char *method_name(enum http_method method);
/* The value of Allow for a set of methods: HEAD goes with GET, OPTIONS is always there. */
#define METHOD_ALLOW_SIZE 64
void method_allow(unsigned set, char out[METHOD_ALLOW_SIZE]);

#endif
