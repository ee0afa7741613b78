/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The findings of `migrate` about a site (cmd_migrate.c), the plan of the new site
 * (migrate_plan.c), and the output: a configuration or commands (migrate_print.c), and the rules of
 * a web server (migrate_rules.c). Internal to server/cli/. */
#pragma once

#include "server/base/str.h"
#include "server/cli/backend/reach.h"
#include "server/rules/scope.h"

#define MIGRATE_INDEXES 50u
#define MIGRATE_HOSTS   20u

/* A list at an address of the site, named by robots.txt or found in an index. */
struct old_index {
    struct url url;
    size_t under;      /* number of the index that lists it; its own number: none */
    bool guessed;      /* found at a usual address */
    bool index;        /* it can be taken over */
    bool urlset;       /* it is a sitemap of pages, */
    bool upstream;     /* in XML, which can be an upstream itself */
    bool bad_members;  /* some of its members are invalid */
    bool drop_dates;   /* its dates are meaningless */
    uint64_t shared;   /* of its members, those that an earlier index lists, too */
    bool http_members; /* some are http, which a map makes the https of their site */
    struct str notes;  /* lines without comment signs */
    /* Of an index that no other lists, filled by migrate_plan. */
    char path[INDEX_PATH_MAX_CHARS + 1]; /* of the new index */
    bool kept;                           /* the new index has the old address */
};

struct member {
    char *loc;   /* owned */
    size_t from; /* the index that lists it */
};

struct old_site {
    const struct reach *reach;
    bool commands;
    bool serves;                    /* also serve the sitemaps here */
    char address[INET6_ADDRSTRLEN]; /* where the site is now */
    struct url robots;              /* the URL of its robots.txt */
    uint64_t rules;                 /* lines other than Sitemap lines */
    const char *robots_fault;       /* why it cannot be served unchanged; NULL: it can be */
    char robots_unread[64];         /* "answers 503": it may have rules; "": read, or none exists */
    struct str notes;               /* on the site */
    size_t index_count;
    struct old_index indexes[MIGRATE_INDEXES];
    size_t host_count;
    char hosts[MIGRATE_HOSTS][HOST_MAX_CHARS + 7]; /* other hosts with sitemaps */
    size_t member_count, member_room;
    struct member *members;
    /* Filled by migrate_plan. */
    char home[INDEX_PATH_MAX_CHARS + 1]; /* an index for urlsets that no other can list; "": none */
    const char *pattern;                 /* of page names; NULL: the default */
};

/* True if the host with its port is the site's own. */
bool migrate_is_own(const struct old_site *s, const struct url *url);
/* Gives an http URL of the site's host the site's own origin, which is https. */
void migrate_https(const struct old_site *s, struct url *url);
/* Chooses the path of each index so that the output is valid: every sitemap is within the directory
 * of its index, and no page of an index has the address of a sitemap. */
void migrate_plan(struct old_site *s);
/* The index that no other lists and that leads to index `number`; whether that is `number`. */
size_t migrate_root_of(const struct old_site *s, size_t number);
bool migrate_is_root(const struct old_site *s, size_t number);
/* The addresses that the old server answers: those of sitemaps, and those in robots.txt. `room` is
 * filled; NULL if address `i` is on another host. */
size_t migrate_address_count(const struct old_site *s);
const char *migrate_address_at(const struct old_site *s, size_t i, struct url *room);
/* The number of the new indexes, and the path of one; NULL if index `i` is not kept as one. */
size_t migrate_path_count(const struct old_site *s);
const char *migrate_path_at(const struct old_site *s, size_t i);
/* The path of the new index that may list the urlset; NULL: none. */
const char *migrate_index_of(const struct old_site *s, const struct url *urlset);
/* Whether the old address needs an alias. */
bool migrate_is_aliased(const struct old_site *s, const struct old_index *old);
/* True if the old server has different sitemaps at the path for different queries, or a web server
 * that decodes paths would not recognise it. */
bool migrate_needs_query(const struct old_site *s, const char *path);
/* The name of the site's section: the whole host, so that no two sites have one name. A longer name
 * would not fit between the brackets. */
#define MIGRATE_NAME_SIZE 40u
void migrate_name(const struct old_site *s, char out[MIGRATE_NAME_SIZE]);
/* Appends the rules of this web server; `proxy` NULL: of all. */
void migrate_append_rules(const struct old_site *s, const char *proxy, struct str *out);
/* Prints the site as sections of a configuration, or as commands, with its web server's rules as
 * comments. False when out of memory. */
bool migrate_print(const struct old_site *s);
/* Whether the rules of a web server of this name can be printed. */
bool migrate_knows_proxy(const char *name);
/* Prints the rules of one web server alone. False when out of memory. */
bool migrate_print_proxy(const struct old_site *s, const char *proxy);
