/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The tables of a catalogue file and its forward-only migrations. Internal to db/. */
#pragma once

#include <stddef.h>

#include "db/catalogue.h"

#define SCHEMA_APPLICATION_ID 0x534d5044 /* "SMPD", PRAGMA application_id */
#define SCHEMA_DEVELOPMENT_ID 0x534d4150 /* of builds before the first release; rejected */
#ifdef SCHEMA_OF_NEXT                    /* tests: as if the next release had one more step */
#define SCHEMA_VERSION 2
#else
#define SCHEMA_VERSION 1 /* PRAGMA user_version */
#endif

/* Added to the version of a shared catalogue's file, so that a program that cannot share rejects it
 * as newer. */
#define SCHEMA_SHARED 1000000

struct sqlite3;

/* Identifies the file without writing: OK for a catalogue up to SCHEMA_VERSION and for an empty
 * file, NEWER, or UNAVAILABLE for the file of another program or of a development build. On failure
 * `why` gets a sentence that names the file as `path`. */
enum catalogue_status schema_identify(struct sqlite3 *db, const char *path, char *why,
                                      size_t why_size);

/* Brings the file to SCHEMA_VERSION in one transaction: creates the tables in an empty file,
 * migrates an older one. Rejects what schema_identify rejects, and the file of a shared catalogue.
 * On failure `why` gets a sentence. */
enum catalogue_status schema_prepare(struct sqlite3 *db, const char *path, char *why,
                                     size_t why_size);
/* The same for the file of a shared catalogue. An older file stays as it is, since a migration is a
 * record of the log; a file that is not shared is rejected. */
enum catalogue_status schema_prepare_shared(struct sqlite3 *db, const char *path, char *why,
                                            size_t why_size);
/* The file's version, without SCHEMA_SHARED; `*shared`: whether it has SCHEMA_SHARED. False: the
 * engine failed. */
bool schema_version(struct sqlite3 *db, int *version, bool *shared);
/* Creates the tables of a version from 1 to SCHEMA_VERSION in an empty database. Returns the
 * engine's result code. */
int schema_make(struct sqlite3 *db, int version);
/* Compares the objects of an open file (tables, indexes, views, triggers) with those that this
 * program makes for a file of that version, and calls `differs` for each difference, foreign ones
 * first. `how` is a static phrase. `foreign`: the object could run SQL of its own or hide another
 * one (any difference but a table or index that is missing or has another text). Runs no code of
 * the file. Returns SQLite's result code. */
typedef void schema_differs(void *context, const char *type, const char *name, const char *how,
                            bool foreign);
int schema_compare(struct sqlite3 *db, schema_differs *differs, void *context);
/* The statements that bring a file of this version, from 1 to SCHEMA_VERSION - 1, to the next. */
const char *schema_step(int version);
/* The statements that make version 1: schema.sql without its comments. */
extern const char schema_sql[];
