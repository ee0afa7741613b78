/* CHANGE_INDEXNOW, see db/indexnow.h. */
#include "db/write/apply/apply.h"

enum catalogue_status apply_indexnow(struct tx *tx, const struct change *change,
                                     struct change_result *result)
{
    const struct indexnow_write *w = &change->indexnow;
    enum catalogue_status status =
        tx_run(tx, ST_INDEXNOW_PUT, w->site_id, (int64_t)w->to.revision, (int64_t)w->to.parts,
               (int64_t)w->from.revision, (int64_t)w->from.parts);

    if (status == CATALOGUE_OK && sqlite3_changes64(tx->db) == 0)
        result_decline(result, CATALOGUE_CONFLICT, "another was told of the site since");
    return status;
}
