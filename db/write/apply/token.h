/* Tokens in the writer's transaction. Internal to db/; the writer's thread. */
#ifndef SITEMAPD_DB_WRITE_APPLY_TOKEN_H
#define SITEMAPD_DB_WRITE_APPLY_TOKEN_H

#include <stdbool.h>

#include "db/catalogue.h"
#include "db/write/tx.h"

/* Whether the token that the change came with is still there and good; else `result` says so. */
enum catalogue_status token_judge(struct tx *tx, const struct change *change,
                                  struct change_result *result, bool *holds);

enum catalogue_status apply_token_add(struct tx *tx, const struct change *change,
                                      struct change_result *result);
enum catalogue_status apply_token_revoke(struct tx *tx, const struct change *change,
                                         struct change_result *result);
/* Notes the hour; the node's own, and no revision. */
enum catalogue_status apply_token_used(struct tx *tx, const struct change *change);

/* Drops what is noted of tokens that are gone. */
enum catalogue_status token_forget_uses(struct tx *tx);

/* For configure.c: whether a token is as declared; one of the configuration's that it has no more;
 * making it so. */
bool token_is_declared(const struct registry *r, const struct token_declaration *d);
bool token_is_let_go(const struct registry_token *token, const struct token_declaration *declared,
                     size_t count);
enum catalogue_status token_let_go(struct tx *tx, const struct change *change);
enum catalogue_status token_declare(struct tx *tx, const struct token_declaration *d,
                                    struct change_result *result);

#endif
