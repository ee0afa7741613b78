/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The command line: where memory runs out a command ends with a sentence and status 1 or 2, never
 * by a crash, and the catalogue is whole: the same command does its work the next time. */
#include "tests/unit/alloc/alloc.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "server/cli/cli.h"
#include "tests/unit/lib/scratch.h"

#define ORIGIN    "https://www.example.com"
#define INDEX     ORIGIN "/sitemap_index.xml"
#define MAX_WORDS 12
#define OFTEN     5 /* the first ones of the table: what is different */

/* FILE names beginning with "@" are of the test's folder. */
struct sequence {
    const char *what;
    const char *command[MAX_WORDS];
    const char *undo[MAX_WORDS]; /* what was done, so that it can be done again; may fail */
};

static char folder[SCRATCH_MAX_BYTES];
static char database[96], heard[96], copied[96];

/* Runs one command with what it writes going elsewhere; `*reported`: whether stderr got a sentence.
 */
static int run_command(const char *const *words, bool *reported)
{
    char paths[MAX_WORDS][128];
    char *argv[MAX_WORDS + 4] = {(char *)"sitemapd"};
    int argc = 1;
    for (; words[argc - 1] != NULL; argc++) {
        const char *word = words[argc - 1];
        snprintf(paths[argc - 1], sizeof paths[0], "%s/%s", folder, word + (word[0] == '@'));
        argv[argc] = word[0] == '@' ? paths[argc - 1] : (char *)word;
    }
    argv[argc++] = (char *)"--database";
    argv[argc++] = database;
    fflush(stdout);
    int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int sentences = open(heard, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    dup2(nothing, STDOUT_FILENO);
    dup2(sentences, STDERR_FILENO);
    int status = cli_main(argc, argv, NULL);
    struct stat said;
    *reported = fstat(sentences, &said) == 0 && said.st_size > 0;
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(out);
    close(err);
    close(nothing);
    close(sentences);
    return status;
}

static bool run_sequence(void *context)
{
    const struct sequence *s = context;
    bool reported, ignored;
    int status = run_command(s->command, &reported);
    alloc_disarm();
    if (status != EXIT_DONE && status != EXIT_COULD_NOT && status != EXIT_USAGE)
        fail_msg("%s: exit status %d", s->what, status);
    if (status != EXIT_DONE && !reported)
        fail_msg("%s: failed without a word", s->what);
    if (s->undo[0] != NULL)
        run_command(s->undo, &ignored);
    unlink(copied);
    return status == EXIT_DONE;
}

static const struct sequence sequences[] = {
    {"help", {"help", "import"}, {0}},
    {"completion", {"completion", "bash"}, {0}},
    {"check-config", {"check-config", "@good.conf"}, {0}},
    {"import --replace", {"import", "@list.ndjson", "--replace", "--index", INDEX}, {0}},
    {"scan", {"scan", "@files", "--url", ORIGIN "/files/"}, {0}},
    {"site add",
     {"site", "add", "https://b.example", "--cross-host", "cdn.example", "--host-alias",
      "b2.example"},
     {"site", "remove", "https://b.example", "--max-removed", "9"}},
    {"site update", {"site", "update", ORIGIN, "--cross-host", "cdn.example.com"}, {0}},
    {"site list", {"site", "list", "--json"}, {0}},
    {"index add",
     {"index", "add", ORIGIN "/shop/sitemap_index.xml"},
     {"index", "remove", ORIGIN "/shop/sitemap_index.xml", "--max-removed", "9"}},
    {"index list", {"index", "list", "--json"}, {0}},
    {"add", {"add", ORIGIN "/new.xml", "--lastmod", "2026-11-01"}, {"remove", ORIGIN "/new.xml"}},
    {"remove", {"remove", ORIGIN "/a.xml"}, {"add", ORIGIN "/a.xml"}},
    {"list", {"list"}, {0}},
    {"export", {"export"}, {0}},
    {"import XML", {"import", "@index.xml"}, {0}},
    {"render", {"render", INDEX}, {0}},
    {"token add", {"token", "add", "robot"}, {"token", "revoke", "robot"}},
    {"token list", {"token", "list"}, {0}},
    {"backup", {"backup", "@copy.db"}, {0}},
    {"check", {"check"}, {0}},
};

static void test_commands(void **state)
{
    static const char *const made[][MAX_WORDS] = {{"site", "add", ORIGIN},
                                                  {"import", "@list.ndjson"}};
    bool reported;
    alloc_write_file(folder, "good.conf",
                     "[site \"b\"]\norigin = https://b.example\nindex = /a.xml\n");
    alloc_write_file(folder, "list.ndjson",
                     "{\"loc\":\"" ORIGIN "/a.xml\"}\n{\"loc\":\"" ORIGIN "/b.xml\"}\n");
    alloc_write_file(folder, "index.xml",
                     "<?xml version=\"1.0\"?><sitemapindex "
                     "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">"
                     "<sitemap><loc>" ORIGIN "/a.xml</loc></sitemap>"
                     "<sitemap><loc>" ORIGIN "/b.xml</loc></sitemap></sitemapindex>");
    char files[80];
    snprintf(files, sizeof files, "%s/files", folder);
    assert_int_equal(mkdir(files, 0700), 0);
    alloc_write_file(folder, "files/list.txt", ORIGIN "/files/1\n" ORIGIN "/files/2\n");
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        assert_int_equal(run_command(made[i], &reported), EXIT_DONE);
    bool all = getenv("ALLOC_COMMANDS") != NULL;
    for (size_t i = 0; i < sizeof sequences / sizeof sequences[0]; i++)
        if (all || i < OFTEN)
            alloc_sweep(sequences[i].what, run_sequence, (void *)&sequences[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_commands)};
    scratch_make(folder, "sitemapd-alloc-cli");
    snprintf(database, sizeof database, "%s/catalogue.db", folder);
    snprintf(heard, sizeof heard, "%s/stderr", folder);
    snprintf(copied, sizeof copied, "%s/copy.db", folder);
    unsetenv("SITEMAPD_CONFIG");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_remove(folder);
    return failed;
}
