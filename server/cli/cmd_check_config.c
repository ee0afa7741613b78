#include <stdlib.h>
#include <time.h>

#include "server/cli/commands.h"
#include "server/tls/tls.h"

/* `file:line: message` and nothing before it, so that editors can jump there. */
static void print_mistake(void *context, const char *file, unsigned line, const char *message)
{
    unsigned *count = context;

    ++*count;
    if (file != NULL && line > 0)
        fprintf(stderr, "%s:%u: ", file, line);
    else if (file != NULL)
        fprintf(stderr, "%s: ", file);
    else
        fputs("sitemapd: ", stderr);
    cli_print_escaped(stderr, message);
    putc('\n', stderr);
}

/* What is odd and no mistake. */
static void print_remark(void *context, const char *file, const char *text)
{
    (void)context;
    fprintf(stderr, "%s: warning: %s\n", file, text);
}

static void check_tls(const struct config *config, unsigned *count)
{
    struct tls_pair *pair;
    char why[512];

    if (config->tls_cert == NULL || config->tls_key == NULL)
        return;
    if (!tls_pair_load(config->tls_cert, config->tls_key, time(NULL), &pair, print_remark, NULL,
                       why, sizeof why))
        print_mistake(count, NULL, 0, why);
    tls_pair_free(pair);
}

int command_check_config(struct cli *cli)
{
    unsigned count = 0;
    int status;

    /* Both `check-config FILE` and `check-config --config FILE` are what people write. */
    if (cli->arguments.word_count == 1) {
        if (arguments_has(&cli->arguments, "--config"))
            return cli_misuse("check-config", "name the file once, with --config or without");
        cli->arguments.given[cli->arguments.given_count++] =
            (struct given_option){"--config", cli->arguments.words[0]};
    }
    status = session_read_config(cli, print_mistake, &count);
    if (cli->config.database != NULL)
        config_validate(&cli->config, print_mistake, &count);
    check_tls(&cli->config, &count);
    if (count > 0 || status != EXIT_DONE)
        return EXIT_COULD_NOT;
    if (cli->config.file != NULL)
        printf("%s: no mistakes\n", cli->config.file);
    else
        printf("no configuration file; defaults and environment are good\n");
    return EXIT_DONE;
}
