/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The table of settings, which the parsers of the file, the environment and flags share. Internal
 * to config/ and its tests. */
#pragma once

#include "config/config.h"

enum setting_kind {
    SETTING_WORD,        /* visible ASCII without spaces */
    SETTING_PATH,        /* a file's path */
    SETTING_OFF_OR_PATH, /* "off", "-" or a path; "off" is NULL */
    SETTING_ADDRESS,     /* 127.0.0.1:8080, [::1]:8080 */
    SETTING_IP_RANGE,    /* an IP address, or a range of them: 10.0.0.0/8 */
    SETTING_ORIGIN,      /* https://host[:port] */
    SETTING_HOST,        /* host[:port] */
    SETTING_INDEX_PATH,  /* /sitemap_index.xml */
    SETTING_PATTERN,     /* {stem}-{n}{suffix} */
    SETTING_ALIAS,       /* /from -> /to (list only) */
    SETTING_WORDS,       /* words between blanks (list only) */
    SETTING_FOLDER_URL,  /* https://host/folder/ */
    SETTING_URL,         /* an http(s) URL; kept in its normal form */
    SETTING_INDEX_NAME,  /* an index's URL or path */
    SETTING_SECRET,      /* a token: visible ASCII, never shown */
    SETTING_POSTGRES,    /* postgresql://…; never shown: it may hold a password */
    SETTING_IDENTIFIER,  /* a schema of PostgreSQL: a-z 0-9 _ */
    SETTING_HEADER,      /* an HTTP field value: visible ASCII and spaces */
    SETTING_CHOICE,      /* one of `choices`, separated by spaces */
    SETTING_BOOL,
    SETTING_COUNT,
    SETTING_PERCENT,  /* 30 or 30% */
    SETTING_SIZE,     /* bytes: 64M */
    SETTING_DURATION, /* milliseconds: 30s */
};

struct setting {
    const char *section, *key;
    enum setting_kind kind;
    size_t offset, width;    /* of the field in struct config or in the struct of a section */
    size_t count_offset;     /* of the count of a list; 0: no list (no struct begins with one) */
    uint64_t min, max;       /* numbers only, in the field's unit */
    const char *fallback;    /* the default, as in a file; NULL: none */
    const char *environment; /* the variable; NULL: none, since the section may be repeated */
    const char *choices;
    const char *example; /* shown if there is no default */
    const char *of;  /* the only kind of source ("a directory", "an upstream") or the only engine
                        that has the setting; NULL: all */
    bool in_file;    /* false: environment or flag only */
    bool live;       /* a reload changes it in a running server (server/reload.c) */
    const char *doc; /* a noun phrase or an imperative, then the default if `fallback` is NULL */
};

/* Whether a change of the setting takes effect only at the next start. */
bool setting_needs_restart(const struct setting *s);
/* The purpose of a section, in a sentence or two. Static. */
const char *section_intro(const char *section);

/* Weak to strong. */
enum setting_level { LEVEL_DEFAULT, LEVEL_FILE, LEVEL_ENVIRONMENT, LEVEL_FLAG };

struct config_set_by {
    enum setting_level level;
    unsigned line; /* in the file; 0: not set by the file */
};

extern const struct setting config_settings[]; /* of struct config */
extern const size_t config_settings_count;

/* A section that may be repeated, each time with another name. */
struct section_table {
    const char *section;
    const char *example; /* a name to show */
    const struct setting *settings;
    size_t setting_count;
    size_t size; /* of the section's struct, which begins with struct config_named */
    size_t array_offset, count_offset; /* in struct config */
};

extern const struct section_table config_sections[]; /* site, source, token, crawler, engine */
extern const size_t config_sections_count;

/* NULL for an unknown section. */
const struct section_table *section_find(const char *section, size_t len);
/* NULL for an unknown key. */
const struct setting *section_setting(const struct section_table *t, const char *key);
size_t section_count(const struct config *c, const struct section_table *t);
struct config_named *section_at(const struct config *c, const struct section_table *t, size_t at);
/* Adds a section with its defaults; NULL when out of memory. Invalidates pointers to its array. */
struct config_named *section_new(struct config *c, const struct section_table *t, const char *name,
                                 unsigned line);
void sections_done(struct config *c, const struct section_table *t);

/* The place where a value is set, and the receiver of its mistakes. */
struct mistakes {
    const char *file; /* NULL: environment or flag */
    unsigned line;
    const char *name; /* of the environment variable or flag; NULL with a file */
    config_report *report;
    void *context;
    unsigned count; /* found so far */
};

void mistakes_add(struct mistakes *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* NULL for an unknown section or key. */
const struct setting *setting_find(const char *section, const char *key);
/* Parses `text` and stores the value in the field of `base` (a struct config or a section). A list
 * grows by one element, a list of words (SETTING_WORDS) by one for each word. After a mistake,
 * which is reported, the field keeps its value. */
void setting_assign(const struct setting *s, void *base, const char *text, struct mistakes *m);
/* Frees what the field holds and zeroes it. */
void setting_clear(const struct setting *s, void *base);

/* Stores the value of `text` (for a list: elements separated by blanks) in `c` unless a stronger
 * level has set the setting. */
void config_assign(struct config *c, const struct setting *s, enum setting_level level,
                   const char *text, struct mistakes *m);

/* ---- parsers that other modules use, too. False: `text` is malformed, and `*out` unchanged. Pure,
 * thread safe. */

/* yes, no, on, off, true, false, in any case. */
bool value_bool(const char *text, bool *out);
/* A decimal followed by ms, s, m, h or d, in milliseconds; 0 needs no unit. */
bool value_duration(const char *text, uint64_t *out);
