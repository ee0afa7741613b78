/* The parts of the backend that is a server (backend_server.c): one call of its API
 * (server_call.c), and by such calls changes, registry and history. Internal to server/cli/. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "server/cli/backend/backend.h"
#include "server/client/client.h"
#include "server/input/reader.h"

/* ---- one call -------------------------------------------------------------------------- */

/* Answers of a page are kept in memory, up to a bound; streams go where the caller says. */
struct server {
    struct url origin;
    char *headers;       /* owned: Authorization */
    const char *ca_file; /* as in struct fetch_request; borrowed */
    struct fetch_session *session;
    unsigned status; /* of the last answer; 0: there was none */
    char why[512];   /* what went wrong with the last call: a sentence */
};

#define SERVER_TOKEN_SIZE 512
/* The token for the server at `url`: the first line of the file, or SITEMAPD_TOKEN (`file` NULL).
 * Returns EXIT_DONE, or tells why not. */
int server_read_token(const char *file, const char *url, char out[SERVER_TOKEN_SIZE]);

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
/* The array that the answer has. NULL where it has none, and s->why: the answer is dropped. */
json_t *server_array(struct server *s, json_t **answer, const char *member);
/* GET; the target is done with. True where a 2xx came. */
bool server_get(struct server *s, struct str *target, json_t **out);
/* All pages of a list, joined into one array, the caller's. NULL, and told, where that fails. */
json_t *server_get_all(struct server *s, const char *path, const char *member);
/* Whether the page behind `pages` pages may be asked for: the last one had `items`, was asked for
 * with the cursor `before` and names the cursor `next`. False, and s->why, where the server would
 * have the caller page for ever. */
bool server_goes_on(struct server *s, size_t pages, size_t items, const char *before,
                    const char *next);
/* Tells people why a read came to nothing; `answer` is dropped. EXIT_COULD_NOT. */
int server_report(const struct server *s, json_t *answer);
/* The same with a body of NDJSON, all of the file, and with If-Match (NULL: without). */
bool server_send(struct server *s, const char *method, const char *target, const char *if_match,
                 FILE *body, json_t **out);
/* GET whose 2xx answer goes to `take`; what another status says is `*out`. */
bool server_stream(struct server *s, const char *target, const char *accept, fetch_take *take,
                   void *context, json_t **out);
/* GET whose 2xx answer is NDJSON: `each` gets the lines; true where it wants no more or all
 * were given. False where another status came, or a line is not JSON or rejected by `each`: s->why.
 */
enum line_verdict { LINE_TAKEN, LINE_ENOUGH, LINE_BROKEN };
typedef enum line_verdict server_line(void *context, const json_t *line);
bool server_lines(struct server *s, const char *target, server_line *each, void *context,
                  json_t **out);

/* The text of a member, "" where it has none. Borrowed. */
const char *member_text(const json_t *object, const char *name);
/* NULL where the member is null or no text. Borrowed. */
const char *member_text_or_null(const json_t *object, const char *name);
/* The number of a member; 0 if it is invalid. */
uint64_t member_number(const json_t *object, const char *name);
/* The Unix time of an RFC 3339 member; 0 if it is invalid. */
int64_t member_time(const json_t *object, const char *name);
/* An entry or page URL as the API tells it, borrowed from `entry` and `kept`, whose end
 * (shown_entry_done) is due in any case. False: it is not one. */
struct shown_entry {
    char origin[LOC_MAX_CHARS + 1];
    struct json_entry page; /* of a page URL, for its extensions */
};
bool member_entry(const json_t *entry, struct entry_shown *out, struct shown_entry *kept);
void shown_entry_done(struct shown_entry *kept);

/* ---- changes, registry, history -------------------------------------------------------- */

/* Applies a change, as the function of server/cli/backend/backend.h; `*index_url` becomes the URL
 * of the index that an entry was put into. */
enum catalogue_status server_apply(struct server *s, const struct change *change,
                                   struct str *index_url, struct change_result *result);
/* What an answer counts, and its revision. */
void server_counts(const json_t *answer, struct change_result *result);

/* The sites with their lists; NULL, and told, where they cannot be read. `*indexes` has indexes and
 * urlsets as they were told, which says of pages what no registry does; the caller's, may be NULL.
 */
struct registry *server_registry(struct server *s, bool with_robots, json_t **indexes);

/* As the functions of server/cli/backend/backend.h that are called so. False: the last answer is
 * `*answer`, the caller's, as server_ask has it. */
bool server_history(struct server *s, const struct history_query *query, backend_change *each,
                    void *context, struct backend_reach *reach, json_t **answer);
bool server_change(struct server *s, uint64_t revision, backend_change *each, backend_row *each_row,
                   void *context, json_t **answer);
bool server_diff(struct server *s, const struct backend_diff *wanted, backend_row *each,
                 void *context, json_t **answer);
