/* What the table of commands is put together of: the options and the examples of each command.
 * Internal to server/cli/. */
#ifndef SITEMAPD_CLI_TABLE_PARTS_H
#define SITEMAPD_CLI_TABLE_PARTS_H

#include "server/cli/arguments.h"

extern const struct cli_option table_serve_options[];
extern const struct cli_option table_site_add_options[];
extern const struct cli_option table_site_update_options[];
extern const struct cli_option table_json_options[];
extern const struct cli_option table_remove_set_options[];
extern const struct cli_option table_index_add_options[];
extern const struct cli_option table_add_options[];
extern const struct cli_option table_list_options[];
extern const struct cli_option table_import_options[];
extern const struct cli_option table_scan_options[];
extern const struct cli_option table_export_options[];
extern const struct cli_option table_token_add_options[];
extern const struct cli_option table_doctor_options[];
extern const struct cli_option table_restore_options[];

extern const struct cli_example table_serve_examples[];
extern const struct cli_example table_check_config_examples[];
extern const struct cli_example table_site_add_examples[];
extern const struct cli_example table_site_update_examples[];
extern const struct cli_example table_site_list_examples[];
extern const struct cli_example table_site_remove_examples[];
extern const struct cli_example table_index_add_examples[];
extern const struct cli_example table_index_list_examples[];
extern const struct cli_example table_index_remove_examples[];
extern const struct cli_example table_add_examples[];
extern const struct cli_example table_remove_examples[];
extern const struct cli_example table_list_examples[];
extern const struct cli_example table_import_examples[];
extern const struct cli_example table_export_examples[];
extern const struct cli_example table_scan_examples[];
extern const struct cli_example table_render_examples[];
extern const struct cli_example table_token_add_examples[];
extern const struct cli_example table_token_list_examples[];
extern const struct cli_example table_token_revoke_examples[];
extern const struct cli_example table_healthcheck_examples[];
extern const struct cli_example table_doctor_examples[];
extern const struct cli_example table_backup_examples[];
extern const struct cli_example table_restore_examples[];
extern const struct cli_example table_check_examples[];
extern const struct cli_example table_completion_examples[];

#endif
