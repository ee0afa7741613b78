/* One call of a server's API, for the backend that is a server. Answers of a page are kept in
 * memory, up to a bound; streams go where the caller says. Internal to server/cli/. */
#ifndef SITEMAPD_CLI_BACKEND_SERVER_CALL_H
#define SITEMAPD_CLI_BACKEND_SERVER_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "server/base/str.h"
#include "server/client/client.h"
#include "server/input/reader.h"
#include "server/rules/entry.h"

struct server {
    struct url origin;
    char *headers;       /* owned: Authorization */
    const char *ca_file; /* as in struct fetch_request; borrowed */
    struct fetch_session *session;
    unsigned status; /* of the last answer; 0: there was none */
    char why[512];   /* what went wrong with the last call: a sentence */
};

/* Reads the origin and the token; `ca_file` as in struct fetch_request. False, and `why` says what
 * is wrong: server_done is due. */
bool server_init(struct server *s, const char *url, const char *token, const char *ca_file);
void server_done(struct server *s);

/* Appends `?name=value` or `&name=value`, percent-encoded; nothing where the value is NULL. */
void target_add(struct str *target, const char *name, const char *value);
/* The same of what stands in a path: "/{value}". */
void target_segment(struct str *target, const char *value);

/* Asks; `body` (NULL: none) is sent as JSON. The answer's JSON (NULL: it has none), which the
 * caller owns, and s->status; false where there was no answer: s->why says. */
bool server_ask(struct server *s, const char *method, const char *target, const json_t *body,
                json_t **out);
/* Whether the last answer was a 2xx. */
static inline bool server_is_good(const struct server *s)
{
    return s->status / 100 == 2;
}
/* GET; the target is done with. True where a 2xx came. */
bool server_get(struct server *s, struct str *target, json_t **out);
/* All pages of a list, joined into one array, the caller's. NULL, and told, where that fails. */
json_t *server_get_all(struct server *s, const char *path, const char *member);
/* Tells people why a read came to nothing; `answer` is dropped. EXIT_COULD_NOT. */
int server_tell(const struct server *s, json_t *answer);
/* The same with a body of NDJSON, all of the file, and with If-Match (NULL: without). */
bool server_send(struct server *s, const char *method, const char *target, const char *if_match,
                 FILE *body, json_t **out);
/* GET whose 2xx answer goes to `take`; what another status says is `*out`. */
bool server_stream(struct server *s, const char *target, const char *accept, fetch_take *take,
                   void *context, json_t **out);
/* GET whose 2xx answer is NDJSON: `each` is told the lines, NULL for what is no JSON; false ends
 * it, and so does this. */
typedef bool server_line(void *context, const json_t *line);
bool server_lines(struct server *s, const char *target, server_line *each, void *context,
                  json_t **out);

/* The text of a member, "" where it has none. Borrowed. */
const char *member_text(const json_t *object, const char *name);
/* NULL where the member is null or no text. Borrowed. */
const char *member_text_or_null(const json_t *object, const char *name);
/* The number of a member; 0 where it is none. */
uint64_t member_number(const json_t *object, const char *name);
/* The Unix time of an RFC 3339 member; 0 where it is none. */
int64_t member_time(const json_t *object, const char *name);
/* An entry or page URL as the API tells it, borrowed from `entry` and `kept`, whose end
 * (shown_entry_done) is due in any case. False: it is none. */
struct shown_entry {
    char origin[LOC_MAX_CHARS + 1];
    struct json_entry page; /* of a page URL, for its extensions */
};
bool member_entry(const json_t *entry, struct entry_shown *out, struct shown_entry *kept);
void shown_entry_done(struct shown_entry *kept);

#endif
