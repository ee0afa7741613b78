/* Asks a running server's /readyz, for containers and unit files: the image needs no curl. */
#include <string.h>
#include <strings.h>

#include "server/cli/commands.h"
#include "server/fetch/fetch.h"

#define TIMEOUT_MS   5000
#define MAX_BODY     8192
#define DEFAULT_PATH "/readyz"

/* A server that listens everywhere is asked on this machine. */
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
        return cli_misuse(text, "port 0 is another at each start; give the URL that is served");
    if (code != RULE_OK)
        return cli_misuse(text, "must be a URL, as http://127.0.0.1:8081");
    return EXIT_DONE;
}

/* Says on stdout or stderr what was answered, body included: it has the reasons. */
static int judge_answer(const char *origin, const char *path, const struct fetch_reply *reply)
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

static int ask(const struct url *url)
{
    const struct fetch_request request = {
        .url = url,
        .method = "GET",
        .agent = "sitemapd-healthcheck/" SITEMAPD_VERSION,
        .headers = "Accept: application/json\r\n",
        .timeout_ms = TIMEOUT_MS,
        .max_bytes = MAX_BODY,
    };
    char origin[LOC_MAX_CHARS + 1];
    struct fetch_reply reply;
    int status;

    snprintf(origin, sizeof origin, "%.*s", url->origin_len, url->text);
    if (fetch(&request, &reply) == FETCH_OK)
        status = judge_answer(origin, url->text + url->origin_len, &reply);
    else
        status = cli_fail(origin, "%s", reply.why);
    fetch_reply_done(&reply);
    return status;
}

int command_healthcheck(struct cli *cli)
{
    const struct arguments *a = &cli->arguments;
    struct url url = {0};
    int status = EXIT_DONE;

    if (a->word_count == 0)
        status = session_read_config(cli, NULL, NULL);
    if (status == EXIT_DONE)
        status = read_target(a->word_count > 0 ? a->words[0] : cli->config.admin_listen, &url);
    return status == EXIT_DONE ? ask(&url) : status;
}
