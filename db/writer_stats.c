#include <stdio.h>
#include <string.h>

#include "db/writer.h"

const struct histogram_bounds catalogue_batches = {
    .count = 9,
    .upper = {1, 2, 5, 10, 20, 50, 100, 200, WRITER_BATCH_MAX},
};

static void read_space(const struct space *s, struct catalogue_stats *out)
{
    out->file_bytes = atomic_load(&s->file_bytes);
    out->wal_file_bytes = atomic_load(&s->wal_bytes);
    out->disk_bytes = atomic_load(&s->disk_bytes);
    out->disk_free_bytes = atomic_load(&s->free_bytes);
}

void writer_stats(struct writer *w, struct catalogue_stats *out)
{
    memset(out, 0, sizeof *out);
    out->commits = atomic_load(&w->commits);
    out->batched_changes = atomic_load(&w->batched);
    out->queue_depth = queue_depth(&w->queue);
    out->max_queued = w->queue.max;
    out->revision = atomic_load(&w->committed);
    out->held = atomic_load(&w->held);
    for (size_t i = 0; i < sizeof out->failed / sizeof out->failed[0]; i++)
        out->failed[i] = atomic_load(&w->failed[i]);
    histogram_collect(&w->write_ns, &out->write_ns);
    histogram_collect(&w->commit_ns, &out->commit_ns);
    histogram_collect(&w->batch, &out->batch);
    histogram_collect(&w->checkpoint.took_ns, &out->checkpoint_ns);
    read_space(&w->catalogue->space, out);
    out->wal_bytes = atomic_load(&w->checkpoint.wal_bytes);
    out->checkpoints = atomic_load(&w->checkpoint.count);
    pthread_mutex_lock(&w->trouble_lock);
    out->writable = w->writable;
    memcpy(out->trouble, w->trouble, sizeof out->trouble);
    pthread_mutex_unlock(&w->trouble_lock);
    if (out->writable && atomic_load(&w->catalogue->lost)) {
        out->writable = false;
        snprintf(out->trouble, sizeof out->trouble, "the catalogue file is gone or was replaced");
    }
}
