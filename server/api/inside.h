/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The API on a catalogue's file, in this process: the table of calls and the handlers of the
 * server, without sockets. The command line uses it if --server is absent. Requests are those of
 * the operator: for all sites, with role admin. One thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "server/base/str.h"

struct crawlers;
struct inside;
struct source_settings;

struct inside_options {
    struct catalogue *catalogue; /* borrowed; need not be opened as a server's */
    const char *database;        /* its file; borrowed */
    const char *user;            /* the caller in the history; borrowed */
    bool page_style;
    unsigned engines; /* a bit for each place (engine_place) that is configured */
    /* The sources that the configuration names; borrowed. None of them is started. */
    const struct source_settings *sources;
    size_t source_count;
    /* Called once, before the first request about crawlers: returns the ledger, which is taken
     * over; NULL: it cannot be made, and these requests fail. May be NULL: there is no ledger. */
    struct crawlers *(*ledger)(void *context);
    void *context;
};

/* Nothing is started before the first request. NULL when out of memory. */
struct inside *inside_new(const struct inside_options *options);
/* Accepts NULL. Before the catalogue is closed. */
void inside_free(struct inside *inside);

struct inside_call {
    const char *method, *target; /* "GET", "/v1/sites?limit=10" */
    const char *accept;          /* NULL: none */
    const char *body;            /* JSON; NULL: none */
    /* Takes the body of a 2xx answer, piece by piece; NULL: it is kept. False: no more. */
    bool (*take)(void *context, const char *bytes, size_t len);
    void *context;
};

/* Makes a request and waits for the answer. Returns its status, and its body (without what `take`
 * got), which is the caller's. 0 when out of memory, or if the catalogue cannot be read. */
unsigned inside_request(struct inside *inside, const struct inside_call *question,
                        struct str *body);
