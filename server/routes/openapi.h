/* The OpenAPI document of the admin listener, as bytes. Generated from openapi.json at build time.
 * Internal to server/routes/. */
#ifndef SITEMAPD_ROUTES_OPENAPI_H
#define SITEMAPD_ROUTES_OPENAPI_H

#include <stddef.h>

extern const unsigned char openapi_document[];
extern const size_t openapi_document_len;

#endif
