/* Idempotency-Key: a write that may be sent twice, because its answer was lost, is applied once
 * (draft-ietf-httpapi-idempotency-key-header). The same key with the same method, target and body
 * is answered within a day what the first one was; with others it is 422.
 *
 * The answer is made while the change is applied, in its transaction, and kept with it: no crash
 * can part the two. So `answer` of a call with a key runs on the writer's thread, where the request
 * is nobody else's; it tells of sites and indexes by call_registry alone. Internal to server/api/.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call;
struct registry;
struct token_digest;

/* What a call keeps of it; all zero where it has no key. */
struct repeat {
    const char *key;                 /* borrowed from the request */
    struct token_digest *digest;     /* owned: of method, target and body so far */
    uint8_t sha256[32];              /* of them all */
    const struct registry *registry; /* as the change under way sees it; NULL: none is */
    bool brief;         /* `answer` is to leave lists and texts away: there is no room for them */
    bool answered;      /* the reply is made, and stands once the change is durable */
    const char *action; /* call_audit's, for then */
    char *subject;      /* owned */
};

/* For call_begin: reads the key of a write. False, with the reply filled, if it is invalid. */
bool repeat_begin(struct call *call);
/* A piece of a body that is not collected, in order. */
void repeat_body(struct call *call, const void *bytes, size_t len);
/* For calls that keep no answer. False, with the reply filled, where one has a key: it would be
 * ignored. */
bool repeat_refuse(struct call *call);
/* For call_write: asks the catalogue for it. */
void repeat_submit(struct call *call);
/* On the listener's thread, once the result is known: true where that is the whole answer. */
bool repeat_answer(struct call *call);
/* For call_audit: true while the answer is being made to be kept; the line is written later. */
bool repeat_notes_audit(struct call *call, const char *action, const char *subject);
void repeat_done(struct call *call);
