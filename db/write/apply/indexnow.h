/* CHANGE_INDEXNOW, see db/indexnow.h. Internal to db/. */
#ifndef SITEMAPD_DB_WRITE_APPLY_INDEXNOW_H
#define SITEMAPD_DB_WRITE_APPLY_INDEXNOW_H

#include "db/write/apply/apply.h"

enum catalogue_status apply_indexnow(struct tx *tx, const struct change *change,
                                     struct change_result *result);

#endif
