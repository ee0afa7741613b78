# SPDX-License-Identifier: LicenseRef-Undeclared
"""The rules' own test: a tree without fault passes, and each planted fault is found where it is."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
import include_rules  # noqa: E402

CLEAN = {
    "config/config.h": "#include <stdbool.h>\n",
    "config/levels.c": '#include "config/config.h"\n#include <stdio.h>\n#include <string.h>\n',
    "db/catalogue.h": '/* No transaction, no rowid, no SQL shows. */\n#include "server/rules/url.h"\nint entry_cursor;\n',
    "db/write/writer.h": "\n",
    "db/write/writer.c": '#include "db/catalogue.h"\n#include <sqlite3.h>\n#include <sys/stat.h>\n',
    "server/rules/url.h": "#include <stddef.h>\n",
    "server/rules/url.c": '#include "server/rules/url.h"\n#include <idn2.h>\n',
    "server/input/reader.h": "\n",
    "server/input/list_reader.c": '#include <expat.h>\n#include <jansson.h>\n#include <zlib.h>\n#include "server/rules/url.h"\n',
    "server/sources/sources.h": '#include "db/catalogue.h"\n',
    "server/sources/scan.c": '#include <fnmatch.h>\n#include <sys/inotify.h>\n#include "server/input/reader.h"\n#include "server/rules/url.h"\n',
    "server/pages/publisher.h": '#include "db/catalogue.h"\n',
    "server/pages/publish.c": '#include <xxhash.h>\n#include <zlib.h>\n',
    "server/http/listener.h": "\n",
    "server/http/listening.c": '#include <microhttpd.h>\n#include "server/pages/publisher.h"\n',
    "server/log/log.h": "\n",
    "server/crypto/token.h": "\n",
    "server/crypto/token.c": "#include <gnutls/crypto.h>\n",
    "server/api/pages.c": '#include "server/http/listener.h"\n#include "server/log/log.h"\n#include "server/crypto/token.h"\n',
    "server/cli/cli.h": "\n",
    "server/cli/render.c": '#include "server/pages/publisher.h"\n#include "config/config.h"\n',
    "server/serve.h": "\n",
    "server/serve.c": '#include "server/serve.h"\n#include "server/http/listener.h"\n#include "config/config.h"\n#include "db/catalogue.h"\n',
    "server/main.c": '#include "server/serve.h"\n#include "server/cli/cli.h"\nint main(void)\n{\n}\n',
    "tests/unit/db/write/writer_test.c": '#include <cmocka.h>\n#include <sqlite3.h>\n#include "db/catalogue.h"\n',
}


def plant(root, files):
    for path, text in files.items():
        os.makedirs(os.path.dirname(root / path), exist_ok=True)
        (root / path).write_text(text)


def test_a_clean_tree_passes(tmp_path):
    plant(tmp_path, CLEAN)
    assert include_rules.check(str(tmp_path)) == []


@pytest.mark.parametrize(
    "path, line, why",
    [
        ("config/levels.c", '#include "db/catalogue.h"', "may not include"),
        ("config/levels.c", '#include "server/log/log.h"', "may not include"),
        ("db/write/writer.c", '#include "server/input/reader.h"', "may not include"),
        ("db/write/writer.c", '#include "server/log/log.h"', "may not include"),
        ("db/write/writer.c", "#include <zlib.h>", "may not use zlib"),
        ("db/read/view.c", '#include "db/write/writer.h"', "db/write is a layer above"),
        ("db/file/open.h", '#include "db/write/writer.h"', "db/write is a layer above"),
        ("server/rules/url.c", '#include "server/input/reader.h"', "may not include"),
        ("server/rules/url.c", "#include <zlib.h>", "may not use zlib"),
        ("server/input/list_reader.c", '#include "db/catalogue.h"', "may not include"),
        ("server/input/list_reader.c", '#include "server/log/log.h"', "may not include"),
        ("server/sources/scan.c", '#include "server/log/log.h"', "may not include"),
        ("server/sources/scan.c", '#include "server/pages/publisher.h"', "may not include"),
        ("server/sources/scan.c", "#include <sqlite3.h>", "may not use sqlite3"),
        ("server/sources/scan.c", "#include <jansson.h>", "may not use jansson"),
        ("server/pages/publish.c", '#include "server/http/listener.h"', "may not include"),
        ("server/pages/publish.c", "#include <sqlite3.h>", "may not use sqlite3"),
        ("server/pages/publish.c", '#include "sqlite3.h"', "may not use sqlite3"),
        ("server/pages/publish.c", "  #  include <microhttpd.h>", "may not use microhttpd"),
        ("server/http/listening.c", '#include "server/api/pages.c"', "may not include"),
        ("server/http/listening.c", '#include "db/catalogue.h"', "may not include"),
        ("server/http/listening.c", '#include "server/crypto/token.h"', "may not include"),
        ("server/log/log.h", '#include "server/rules/url.h"', "may not include"),
        ("server/crypto/token.c", "#include <openssl/sha.h>", "not a known library"),
        ("server/api/pages.c", '#include "config/config.h"', "may not include"),
        ("server/api/pages.c", '#include "server/cli/cli.h"', "may not include"),
        ("server/api/pages.c", "#include <microhttpd.h>", "may not use microhttpd"),
        ("server/api/pages.c", "#include <gnutls/gnutls.h>", "may not use gnutls"),
        ("server/cli/render.c", "#include <curl/curl.h>", "may not use curl"),
        ("server/cli/render.c", '#include "server/http/listener.h"', "may not include"),
        ("server/cli/render.c", '#include "server/log/log.h"', "may not include"),
        ("server/cli/render.c", "#include <sqlite3.h>", "may not use sqlite3"),
        ("server/serve.c", "#include <sqlite3.h>", "may not use sqlite3"),
        ("server/serve.c", "#include <microhttpd.h>", "may not use microhttpd"),
        ("server/main.c", '#include "db/catalogue.h"', "may not include"),
        ("server/rules/url.c", '#include "url.h"', "not a path from the root"),
        ("server/rules/url.c", '#include "../rules/url.h"', "not a path from the root"),
        ("server/rules/url.c", '#include "./server/rules/url.h"', "not a path from the root"),
        ("server/rules/url.c", "#include URL_HEADER", "by a macro"),
        ("server/new/new.c", "#include <stdio.h>", "has no rule"),
        ("server/bootstrap.c", "#include <sqlite3.h>", "may not use sqlite3"),
        ("tests/unit/api/pages_test.c", "#include <sqlite3.h>", "may not use sqlite3"),
        ("db/catalogue.h", "int catalogue_begin_transaction(void);", "names the engine"),
        ("db/catalogue.h", "long row, catalogue_rowid;", "names the engine"),
        ("db/catalogue.h", "const char *catalogue_sql;", "names the engine"),
        ("db/catalogue.h", "struct sqlite3;", "names the engine"),
        ("server/serve.c", '#include "db/write/writer.h"', "internal to db/"),
        ("db/change.h", "void change_rollback(void);", "names the engine"),
        ("db/view.h", "long view_rowid;", "names the engine"),
    ],
)
def test_a_planted_fault_is_found(tmp_path, path, line, why):
    files = dict(CLEAN)
    before = files.get(path, "")
    files[path] = before + line + "\n"
    plant(tmp_path, files)
    problems = include_rules.check(str(tmp_path))
    assert len(problems) == 1, problems
    place = f"{path}:{before.count(chr(10)) + 1}:" if "no rule" not in why else f"{path}:1:"
    assert problems[0].startswith(place) and why in problems[0]


def test_what_stands_in_a_comment_is_no_include(tmp_path):
    files = dict(CLEAN)
    files["server/rules/url.c"] += "/*\n#include <sqlite3.h>\n*/\n// #include <zlib.h>\n"
    plant(tmp_path, files)
    assert include_rules.check(str(tmp_path)) == []



def test_a_circle_of_units_is_found_with_its_way(tmp_path):
    files = {
        "server/rules/a.h": "",
        "server/rules/a.c": '#include "server/rules/a.h"\n#include "server/rules/b.h"\n',
        "server/rules/b.h": '#include "server/rules/c.h"\n',
        "server/rules/c.h": '#include "server/rules/a.h"\n',
    }
    plant(tmp_path, files)
    assert include_rules.check(str(tmp_path)) == [
        "server/rules/a.c:1: includes itself in a circle: "
        "server/rules/a -> server/rules/b -> server/rules/c -> server/rules/a"
    ]
    (tmp_path / "server/rules/c.h").write_text('/* #include "server/rules/a.h" */\n')
    assert include_rules.check(str(tmp_path)) == []


def test_a_comment_that_names_no_file_of_the_tree_is_found(tmp_path):
    plant(tmp_path, {**CLEAN, "server/rules/url.c": "/* As in url.h, rules/url.h, writer.c and <zlib.h>. */\nint a = t.c;\nchar b[] = \"x.c\";\n"})
    assert include_rules.check(str(tmp_path)) == []
    plant(tmp_path, {"server/rules/url.h": "/* Not\n * urls.h, */\n// nor db/writer.c.\n"})
    assert include_rules.check(str(tmp_path)) == [
        "server/rules/url.h:2: a comment names urls.h, which does not exist",
        "server/rules/url.h:3: a comment names db/writer.c, which does not exist",
    ]


def test_a_long_main_is_found(tmp_path):
    plant(tmp_path, {**CLEAN, "server/main.c": CLEAN["server/main.c"] + "\n" * 95})
    problems = include_rules.check(str(tmp_path))
    assert len(problems) == 1 and "lines" in problems[0]


@pytest.mark.parametrize("path, line, why", [
    ("server/console/view_a.js", "  node.innerHTML = text;", "may not say innerHTML"),
    ("server/console/api.js", "eval(text);", "may not say eval"),
    ("server/console/console.css", "@import 'https://example.com/x.css';", "may not say https://"),
    ("server/console/view_a.js", "await fetch('/v1/token');", "only server/console/api.js asks"),
    ("server/console/main.js", "localStorage.setItem('a', 'b');", "only server/console/api.js asks"),
])
def test_the_console_is_held_to_its_own_rules(tmp_path, path, line, why):
    plant(tmp_path, {**CLEAN, "server/console/api.js": "await fetch('/v1/token');\n"})
    assert include_rules.check(str(tmp_path)) == []
    plant(tmp_path, {path: "/* */\n" + line + "\n"})
    assert [f"{path}:2: " in told and why in told for told in include_rules.check(str(tmp_path))] == [True]


@pytest.mark.parametrize("path, names", [("tests/http/test_a.py", "sitemapd_http_test(a 60)"), ("tests/unit/db/test_a.c", "sitemapd_unit_test(test_a db)")])
def test_a_test_that_nobody_runs_is_found(tmp_path, path, names):
    plant(tmp_path, {**CLEAN, path: ""})
    assert include_rules.check(str(tmp_path)) == [f"{path}:1: no CMakeLists.txt names it"]
    plant(tmp_path, {"tests/CMakeLists.txt": names + "\n"})
    assert include_rules.check(str(tmp_path)) == []
