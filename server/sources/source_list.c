#include "server/sources/source_list.h"

#include <stdlib.h>

struct source_list *source_list_new(size_t capacity)
{
    struct source_list *list = calloc(1, sizeof *list + capacity * sizeof(struct source *));
    if (list != NULL)
        atomic_init(&list->references, 1);
    return list;
}

void source_list_add(struct source_list *list, struct source *source)
{
    source_ref(source);
    list->at[list->count++] = source;
}

void source_list_ref(struct source_list *list)
{
    atomic_fetch_add_explicit(&list->references, 1, memory_order_relaxed);
}

void source_list_unref(struct source_list *list)
{
    if (list == NULL || atomic_fetch_sub_explicit(&list->references, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < list->count; i++)
        source_unref(list->at[i]);
    free(list);
}

struct source *source_list_find(const struct source_list *list, size_t number)
{
    size_t i = 0;
    while (i < list->count && list->at[i]->number != number)
        i++;
    return i == list->count ? NULL : list->at[i];
}
