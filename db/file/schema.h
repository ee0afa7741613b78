/* The tables of a catalogue file and its forward-only migrations. Internal to db/. */
#pragma once

#include <stddef.h>

#include "db/catalogue.h"

#define SCHEMA_APPLICATION_ID 0x534d4150 /* "SMAP", PRAGMA application_id */
#ifdef SCHEMA_OF_NEXT                    /* tests: as if the next release had one more */
#define SCHEMA_VERSION 13
#else
#define SCHEMA_VERSION 12 /* PRAGMA user_version */
#endif

/* Added to the version of a shared catalogue's file: who does not know of sharing takes it for one
 * of a newer version, and leaves it alone. */
#define SCHEMA_SHARED 1000000

struct sqlite3;

/* Judges what the file is without writing: OK for a catalogue up to SCHEMA_VERSION and for an
 * empty file, NEWER, or UNAVAILABLE for what is not ours. `why` gets a sentence on failure, which
 * names the file as `path`. */
enum catalogue_status schema_identify(struct sqlite3 *db, const char *path, char *why,
                                      size_t why_size);

/* Brings the file to SCHEMA_VERSION in one transaction: makes the tables in an empty file,
 * migrates an older one, refuses a newer one (NEWER) and what is not ours (UNAVAILABLE), or is a
 * shared catalogue's. `why` gets a sentence on failure. */
enum catalogue_status schema_prepare(struct sqlite3 *db, const char *path, char *why,
                                     size_t why_size);
/* The same of a shared catalogue's file: an older one stays as it is, since a migration is a record
 * of its log; one that is not shared is refused. */
enum catalogue_status schema_prepare_shared(struct sqlite3 *db, const char *path, char *why,
                                            size_t why_size);
/* The file's version, without SCHEMA_SHARED; `*shared` whether it had that. False: the engine
 * failed. */
bool schema_version(struct sqlite3 *db, int *version, bool *shared);
/* Makes the tables of a version up to SCHEMA_VERSION in an empty database: the engine's status. */
int schema_make(struct sqlite3 *db, int version);
/* The statements that make the tables of version SCHEMA_WHOLE at once. */
#define SCHEMA_WHOLE 12
extern const char schema_whole[];
/* The statements that bring a file of this version to the next. */
const char *schema_step(int version);
