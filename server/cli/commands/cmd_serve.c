/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The commands serve, check-config and healthcheck. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "server/cli/backend/file_crawlers.h"
#include "server/cli/commands/commands.h"
#include "server/client/client.h"
#include "server/crypto/tls.h"

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

/* Prints a remark, which is not a mistake. */
static void print_remark(const char *file, const char *text)
{
    fprintf(stderr, "%s: warning: %s\n", file, text);
}

static void check_tls(const struct config *config, unsigned *count)
{
    struct tls_pair *pair;
    char why[512];

    if (config->tls_cert == NULL || config->tls_key == NULL)
        return;
    if (!tls_pair_load(config->tls_cert, config->tls_key, time(NULL), &pair, print_remark, why,
                       sizeof why))
        print_mistake(count, NULL, 0, why);
    tls_pair_free(pair);
}

/* Checks the lists of address ranges: a start with an invalid one fails. */
static void check_crawlers(const struct config *config, unsigned *count)
{
    struct crawlers *crawlers = file_crawlers_new(config, print_mistake, count);

    crawlers_free(crawlers);
}

static int print_defaults(struct cli *cli)
{
    struct str text = STR_INIT;

    if (cli->arguments.word_count > 0)
        return cli_misuse("check-config", "--defaults cannot be combined with a file");
    config_document(&text);
    bool done = !text.failed && fputs(str_text(&text), stdout) >= 0;
    str_done(&text);
    return done ? EXIT_DONE : EXIT_COULD_NOT;
}

int command_check_config(struct cli *cli)
{
    unsigned count = 0;
    int status = session_needs_machine(cli);

    if (status != EXIT_DONE)
        return status;
    if (arguments_has(&cli->arguments, "--defaults"))
        return print_defaults(cli);
    /* Accepts both `check-config FILE` and `check-config --config FILE`. */
    if (cli->arguments.word_count == 1) {
        if (arguments_has(&cli->arguments, "--config"))
            return cli_misuse("check-config",
                              "give the file once: as an argument or with --config");
        cli->arguments.given[cli->arguments.given_count++] =
            (struct given_option){.name = "--config", .value = cli->arguments.words[0]};
    }
    cli->no_pipe = true;
    status = session_read_config(cli, print_mistake, &count);
    if (cli->config == NULL)
        return status;
    config_validate(cli->config, print_mistake, &count);
    check_tls(cli->config, &count);
    check_crawlers(cli->config, &count);
    if (count > 0 || status != EXIT_DONE)
        return EXIT_COULD_NOT;
    if (cli->config->file != NULL)
        printf("%s: no mistakes\n", cli->config->file);
    else
        printf("no configuration file; no mistakes in the environment\n");
    return EXIT_DONE;
}

/* Requests /readyz of a running server, for containers and unit files: the image needs no curl. */

#define TIMEOUT_MS   5000
#define MAX_BODY     8192
#define DEFAULT_PATH "/readyz"

/* The host to connect to: loopback for a server that listens on all addresses. */
static const char *reachable_host(const char *text, size_t *used)
{
    static const char *const wildcards[][2] = {{"0.0.0.0:", "127.0.0.1"}, {"[::]:", "[::1]"}};

    for (size_t i = 0; i < sizeof wildcards / sizeof *wildcards; i++) {
        size_t len = strlen(wildcards[i][0]);

        if (strncmp(text, wildcards[i][0], len) == 0) {
            *used = len - 1;
            return wildcards[i][1];
        }
    }
    *used = 0;
    return "";
}

/* Reads `http://host[:port][/path]`, or the bare `host:port` of a listener. */
static int read_target(const char *text, struct url *out)
{
    bool https = strncasecmp(text, "https://", 8) == 0;
    const char *rest = strncasecmp(text, "http://", 7) == 0 ? text + 7 : https ? text + 8 : text;
    const char *path = rest + strcspn(rest, "/");
    size_t used;
    const char *host = reachable_host(rest, &used);
    struct str url = STR_INIT;
    enum rule_code code;

    str_append_format(&url, "http%s://%s%.*s%s", https ? "s" : "", host,
                      (int)(path - rest - (int)used), rest + used,
                      path[0] == '\0' || path[1] == '\0' ? DEFAULT_PATH : path);
    code = url.failed ? RULE_LOC_MALFORMED : url_parse(url.data, url.len, out, NULL);
    str_done(&url);
    if (code == RULE_LOC_PORT && strstr(rest, ":0") != NULL)
        return cli_misuse(text,
                          "port 0 is different at each start; give the URL of the running server");
    if (code != RULE_OK)
        return cli_misuse(text, "must be a URL, such as http://127.0.0.1:8081");
    return EXIT_DONE;
}

/* Prints the response with its body, which has the reasons, to stdout or stderr. */
static int check_answer(const char *origin, const char *path, const struct fetch_reply *reply)
{
    char line[MAX_BODY + 1];
    const char *body = str_text(&reply->body);

    snprintf(line, sizeof line, "%.*s", (int)strcspn(body, "\r\n"), body);
    if (reply->status != 200)
        return cli_fail(origin, "%s answers %u %s", path, reply->status, line);
    printf("%s: ", origin);
    cli_print_escaped(stdout, *line != '\0' ? line : "ok");
    putchar('\n');
    return EXIT_DONE;
}

static int query_health(const struct cli *cli, const struct url *url, bool own)
{
    const struct fetch_request request = {
        .url = url,
        .method = "GET",
        .agent = "sitemapd-healthcheck/" SITEMAPD_VERSION,
        .headers = "Accept: application/json\r\n",
        .timeout_ms = TIMEOUT_MS,
        .any_certificate = own,
        .ca_file = session_ca_file(cli),
        .max_bytes = MAX_BODY,
    };
    char origin[LOC_MAX_CHARS + 1];
    struct fetch_reply reply;
    int status;

    snprintf(origin, sizeof origin, "%.*s", url->origin_len, url->text);
    if (fetch(&request, &reply) == FETCH_OK)
        status = check_answer(origin, url->text + url->origin_len, &reply);
    else
        status = cli_fail(origin, "%s", reply.why);
    fetch_reply_done(&reply);
    return status;
}

int command_healthcheck(struct cli *cli)
{
    const struct arguments *a = &cli->arguments;
    const char *named = a->word_count > 0 ? a->words[0] : arguments_value(a, "--server");
    bool own = named == NULL;
    char target[300];
    struct url url = {0};
    int status = EXIT_DONE;
    if (!own)
        return (status = read_target(named, &url)) == EXIT_DONE ? query_health(cli, &url, false)
                                                                : status;
    status = session_read_config(cli, NULL, NULL);
    if (status != EXIT_DONE)
        return status;
    snprintf(target, sizeof target, "%s%s", cli->config->admin_tls_cert != NULL ? "https://" : "",
             cli->config->admin_listen);
    status = read_target(target, &url);
    return status == EXIT_DONE ? query_health(cli, &url, true) : status;
}

/* Reports a mistake that only the whole configuration shows. */
static void report_mistake(void *context, const char *file, unsigned line, const char *message)
{
    char what[512];

    (void)context;
    if (file != NULL && line > 0)
        snprintf(what, sizeof what, "%s:%u", file, line);
    else
        snprintf(what, sizeof what, "%s", file != NULL ? file : "serve");
    cli_fail(what, "%s", message);
}

/* The message has the name of the setting; the user wrote the flag. */
static void report_flag(void *context, const char *file, unsigned line, const char *message)
{
    const char *flag = context, *behind = strstr(message, ": ");

    (void)file;
    (void)line;
    cli_misuse(flag, "%s", behind != NULL ? behind + 2 : message);
}

/* Sets the setting for a flag. */
static int apply_flag(struct cli *cli, const char *flag, const char *setting)
{
    const char **values = arguments_values(&cli->arguments, flag);
    bool good = true;

    if (values == NULL)
        return cli_fail("serve", "out of memory");
    for (size_t i = 0; good && values[i] != NULL; i++)
        good = config_set(cli->config, setting, values[i], report_flag, (void *)flag);
    free(values);
    return good ? EXIT_DONE : EXIT_USAGE;
}

static int apply_flags(struct cli *cli)
{
    static const struct {
        const char *flag, *setting;
    } flags[] = {
        {"--listen", "server.listen"}, {"--admin-listen", "admin.listen"},
        {"--site", "server.site"},     {"--source", "server.source"},
        {"--user", "server.user"},     {"--follow", "shared.follow"},
    };
    int status = EXIT_DONE;

    for (size_t i = 0; status == EXIT_DONE && i < sizeof flags / sizeof flags[0]; i++)
        status = apply_flag(cli, flags[i].flag, flags[i].setting);
    return status;
}

/* For a reload: applies the flags of the start, which are valid. */
static struct config *read_again(void *context, config_report *report, void *report_context)
{
    const struct cli *cli = context;
    struct cli fresh = {.arguments = cli->arguments, .no_pipe = true};
    bool good = session_read_config(&fresh, report, report_context) == EXIT_DONE;

    if (fresh.config == NULL)
        return NULL;
    good = apply_flags(&fresh) == EXIT_DONE &&
           config_validate(fresh.config, report, report_context) && good;
    if (good)
        return fresh.config;
    config_unref(fresh.config);
    return NULL;
}

/* A folder of `--source` must exist; that of a [source] section may be mounted later. */
static bool has_folders(const struct config *config)
{
    for (size_t i = 0; i < config->source_folder_count; i++) {
        const char *text = config->source_folders[i], *url = strstr(text, "=http");
        char *folder = url != NULL ? strndup(text, (size_t)(url - text)) : strdup(text);
        struct stat st;
        bool good = folder != NULL && stat(folder, &st) == 0 && S_ISDIR(st.st_mode);

        if (!good)
            cli_fail(folder != NULL ? folder : text, "%s; --source names a folder of sitemap files",
                     folder != NULL && stat(folder, &st) == 0 ? "is not a folder"
                                                              : strerror(errno));
        free(folder);
        if (!good)
            return false;
    }
    return true;
}

int command_serve(struct cli *cli)
{
    struct config_reader again = {read_again, cli};
    int status = session_needs_machine(cli);

    if (status != EXIT_DONE)
        return status;
    status = session_read_config(cli, NULL, NULL);
    if (status == EXIT_DONE)
        status = apply_flags(cli);
    else if (cli->config != NULL) /* report all mistakes at once */
        config_validate(cli->config, report_mistake, NULL);
    if (status != EXIT_DONE)
        return status;
    if (!config_validate(cli->config, report_mistake, NULL) || !has_folders(cli->config))
        return EXIT_COULD_NOT;
    return cli->serve(cli->config, &again);
}
