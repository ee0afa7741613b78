"""The rules' own test: a tree without fault passes, and each planted fault is found where it is."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
import include_rules  # noqa: E402

CLEAN = {
    "config/config.h": "#include <stdbool.h>\n",
    "config/config.c": '#include "config/config.h"\n#include <ini.h>\n#include <string.h>\n',
    "db/catalogue.h": '/* No transaction, no rowid, no SQL shows. */\n#include "server/rules/url.h"\nint entry_cursor;\n',
    "db/writer.h": "\n",
    "db/writer.c": '#include "db/catalogue.h"\n#include <sqlite3.h>\n#include <sys/stat.h>\n',
    "server/rules/url.h": "#include <stddef.h>\n",
    "server/rules/url.c": '#include "server/rules/url.h"\n#include <idn2.h>\n',
    "server/ingest/reader.h": "\n",
    "server/ingest/reader.c": '#include <expat.h>\n#include <jansson.h>\n#include <zlib.h>\n#include "server/rules/url.h"\n',
    "server/sources/sources.h": '#include "db/catalogue.h"\n',
    "server/sources/scan.c": '#include <fnmatch.h>\n#include <sys/inotify.h>\n#include "server/ingest/reader.h"\n#include "server/rules/url.h"\n',
    "server/publish/publisher.h": '#include "db/catalogue.h"\n',
    "server/publish/publisher.c": '#include <xxhash.h>\n#include <zlib.h>\n',
    "server/http/listener.h": "\n",
    "server/http/listener.c": '#include <microhttpd.h>\n#include "server/publish/publisher.h"\n',
    "server/log/log.h": "\n",
    "server/token/token.h": "\n",
    "server/token/token.c": "#include <gnutls/crypto.h>\n",
    "server/routes/pages.c": '#include "server/http/listener.h"\n#include "server/log/log.h"\n#include "server/token/token.h"\n',
    "server/cli/cli.h": "\n",
    "server/cli/render.c": '#include "server/publish/publisher.h"\n#include "config/config.h"\n#include "server/log/log.h"\n',
    "server/app.h": "\n",
    "server/app.c": '#include "server/app.h"\n#include "server/http/listener.h"\n#include "config/config.h"\n#include "db/catalogue.h"\n',
    "server/main.c": '#include "server/app.h"\n#include "server/cli/cli.h"\nint main(void)\n{\n}\n',
    "tests/unit/db/writer_test.c": '#include <cmocka.h>\n#include <sqlite3.h>\n#include "db/catalogue.h"\n',
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
        ("config/config.c", '#include "db/catalogue.h"', "may not include"),
        ("config/config.c", '#include "server/rules/url.h"', "may not include"),
        ("db/writer.c", '#include "server/ingest/reader.h"', "may not include"),
        ("db/writer.c", '#include "server/log/log.h"', "may not include"),
        ("db/writer.c", "#include <zlib.h>", "may not use zlib"),
        ("server/rules/url.c", '#include "db/catalogue.h"', "may not include"),
        ("server/rules/url.c", "#include <zlib.h>", "may not use zlib"),
        ("server/ingest/reader.c", '#include "db/catalogue.h"', "may not include"),
        ("server/ingest/reader.c", '#include "server/log/log.h"', "may not include"),
        ("server/sources/scan.c", '#include "server/log/log.h"', "may not include"),
        ("server/sources/scan.c", '#include "server/publish/publisher.h"', "may not include"),
        ("server/sources/scan.c", "#include <sqlite3.h>", "may not use sqlite3"),
        ("server/sources/scan.c", "#include <zlib.h>", "may not use zlib"),
        ("server/publish/publisher.c", '#include "server/http/listener.h"', "may not include"),
        ("server/publish/publisher.c", "#include <sqlite3.h>", "may not use sqlite3"),
        ("server/publish/publisher.c", '#include "sqlite3.h"', "may not use sqlite3"),
        ("server/publish/publisher.c", "  #  include <microhttpd.h>", "may not use microhttpd"),
        ("server/http/listener.c", '#include "server/routes/pages.c"', "may not include"),
        ("server/http/listener.c", '#include "db/catalogue.h"', "may not include"),
        ("server/http/listener.c", '#include "server/token/token.h"', "may not include"),
        ("server/log/log.h", '#include "server/rules/url.h"', "may not include"),
        ("server/token/token.c", "#include <openssl/sha.h>", "no known library"),
        ("server/routes/pages.c", '#include "config/config.h"', "may not include"),
        ("server/routes/pages.c", '#include "server/cli/cli.h"', "may not include"),
        ("server/routes/pages.c", "#include <microhttpd.h>", "may not use microhttpd"),
        ("server/routes/pages.c", "#include <gnutls/gnutls.h>", "may not use gnutls"),
        ("server/cli/render.c", '#include "server/http/listener.h"', "may not include"),
        ("server/cli/render.c", "#include <sqlite3.h>", "may not use sqlite3"),
        ("server/app.c", "#include <sqlite3.h>", "may not use sqlite3"),
        ("server/app.c", "#include <microhttpd.h>", "may not use microhttpd"),
        ("server/main.c", '#include "db/catalogue.h"', "may not include"),
        ("server/rules/url.c", '#include "url.h"', "not a path from the root"),
        ("server/rules/url.c", '#include "../rules/url.h"', "not a path from the root"),
        ("server/rules/url.c", '#include "./server/rules/url.h"', "not a path from the root"),
        ("server/rules/url.c", "#include URL_HEADER", "by a macro"),
        ("server/new/new.c", "#include <stdio.h>", "has no rule"),
        ("server/bootstrap.c", "#include <sqlite3.h>", "may not use sqlite3"),
        ("tests/unit/routes/pages_test.c", "#include <sqlite3.h>", "may not use sqlite3"),
        ("db/catalogue.h", "int catalogue_begin_transaction(void);", "names the engine"),
        ("db/catalogue.h", "long row, catalogue_rowid;", "names the engine"),
        ("db/catalogue.h", "const char *catalogue_sql;", "names the engine"),
        ("db/catalogue.h", "struct sqlite3;", "names the engine"),
        ("server/app.c", '#include "db/writer.h"', "internal to db/"),
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


@pytest.mark.parametrize("path", ["server/rules/url.c", "tests/unit/rules/test_url.c"])
def test_a_long_file_is_found(tmp_path, path):
    lines = "\n" * 350
    plant(tmp_path, {**CLEAN, path: lines})
    assert include_rules.check(str(tmp_path)) == []
    plant(tmp_path, {**CLEAN, path: lines + "\n"})
    problems = include_rules.check(str(tmp_path))
    assert len(problems) == 1 and problems[0].startswith(f"{path}:351:") and "351 lines" in problems[0]


def test_a_long_main_is_found(tmp_path):
    plant(tmp_path, {**CLEAN, "server/main.c": CLEAN["server/main.c"] + "\n" * 95})
    problems = include_rules.check(str(tmp_path))
    assert len(problems) == 1 and "lines" in problems[0]
