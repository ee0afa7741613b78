/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* CHANGE_SITE_DAYS: how large sites were on a day. */
#include "db/write/apply/apply.h"

static enum catalogue_status put_row(struct tx *tx, const struct site_day *row)
{
    bool gone = row->day < 0;
    enum catalogue_status status =
        tx_run(tx, ST_SITE_DAYS_TIDY, row->site_id, gone ? INT32_MAX : row->day - DAYS_KEPT);
    return status == CATALOGUE_OK && !gone ? tx_run(tx, ST_SITE_DAY_PUT, row->site_id, row->day,
                                                    (int64_t)row->entries, (int64_t)row->urls)
                                           : status;
}

enum catalogue_status apply_site_days(struct tx *tx, const struct change_site_days *w)
{
    enum catalogue_status status = CATALOGUE_OK;
    for (size_t i = 0; i < w->count && status == CATALOGUE_OK; i++)
        status = put_row(tx, &w->rows[i]);
    return status;
}
