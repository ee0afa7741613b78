#include "server/ingest/memory.h"

#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>

static _Thread_local bool failed;

static void *checked(void *memory)
{
    if (memory == NULL)
        failed = true;
    return memory;
}

static void *allocate(size_t size)
{
    return checked(malloc(size));
}

static void *resize(void *old, size_t size)
{
    return checked(realloc(old, size));
}

XML_Parser memory_new_parser(const char *encoding, char separator)
{
    static const XML_Memory_Handling_Suite suite = {allocate, resize, free};
    const char text[] = {separator, '\0'};
    return XML_ParserCreate_MM(encoding, &suite, text);
}

static void install(void)
{
    json_set_alloc_funcs(allocate, free);
}

void memory_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    failed = false;
}

bool memory_failed(void)
{
    return failed;
}
