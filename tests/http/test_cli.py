# SPDX-License-Identifier: LicenseRef-Undeclared
"""The command line: every command, its exit status, its words."""

import gzip
import json
import os
import re
import socket
import sqlite3
import stat
import subprocess

import pytest

from harness import (
    BIN, HOST, INDEX, ORIGIN, Server, environment, eventually, locs, render, render_export, seconds, sitemapd,
)
from postgres import free_port

XML = "/sitemap_index.xml"
COMMANDS = [
    "serve", "check-config", "site", "index", "add", "remove", "list", "import", "export", "render", "token",
    "healthcheck", "backup", "check", "completion", "doctor",
    "probe", "migrate", "restore",
]


@pytest.fixture
def database(tmp_path):
    """A catalogue with one site and its index."""
    path = str(tmp_path / "catalogue.db")
    done(sitemapd("site", "add", ORIGIN, database=path))
    listed = done(sitemapd("index", "list", database=path)).out
    if INDEX not in listed:
        done(sitemapd("index", "add", INDEX, database=path))
    return path


def done(command):
    assert command.code == 0, command
    return command


def rows(command):
    """The table of `list`, without its heading."""
    return done(command).out.splitlines()[1:]


def refused(command, code=1, words=""):
    """Exit 1 (could not) or 2 (wrong usage), reported in one line."""
    assert command.code == code, command
    assert re.fullmatch(r"sitemapd: [^\n]+\n", command.err), command
    assert words in command.err, command
    return command


# ---- usage --------------------------------------------------------------------------------------


def test_help_and_version():
    whole = done(sitemapd("--help"))
    for name in COMMANDS:
        assert re.search(rf"^\s+(sitemapd )?{name}\b", whole.out, re.M), name
        one = done(sitemapd(name, "--help"))
        assert name in one.out and one.err == ""
    assert whole.err == ""
    said = re.fullmatch(r"sitemapd \d+\.\d+\.\d+(?: \(commit ([0-9a-f]{12})\))?\n", done(sitemapd("--version")).out)
    git = lambda *command: subprocess.run(["git", "-C", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."), *command], capture_output=True, text=True)
    assert said
    if git("rev-parse", "HEAD").returncode == 0:  # not in the source of a release, which has the commit in a file
        assert git("merge-base", "--is-ancestor", said[1], "HEAD").returncode == 0, "the commit that it was built of"
        assert git("rev-parse", "HEAD").stdout in git("archive", "HEAD", "deploy/release/commit").stdout, "git archive writes it"


@pytest.mark.parametrize(
    "args",
    [
        [], ["nonsense"], ["--nonsense"], ["add"], ["add", "a", "b"], ["remove"], ["site"], ["site", "paint"], ["site", "add"],
        ["index"], ["index", "add"], ["token"], ["token", "add"], ["token", "revoke"], ["render"], ["import"], ["backup"],
        ["list", "--nonsense"], ["list", "extra"], ["add", ORIGIN + "/a.xml", "--lastmod"], ["serve", "extra"],
        ["import", "--replace=maybe", "x"], ["token", "add", "bad name"], ["check", "extra"],
    ],
    ids=lambda a: " ".join(a) or "nothing",
)
def test_wrong_usage(args, tmp_path):
    command = sitemapd(*args, env={"SITEMAPD_DATABASE": str(tmp_path / "c.db")})
    assert command.code == 2, command
    assert command.err.startswith("sitemapd: ") and command.out == "", command
    assert not (tmp_path / "c.db").exists()


@pytest.mark.parametrize(
    "args, meant",
    [
        (["site", "remove", "https://ww.example.com"], ORIGIN),
        (["site", "remove", "www.example.com"], ORIGIN),
        (["index", "remove", ORIGIN + "/sitemap_idnex.xml"], INDEX),
        (["list", "--index", "/sitemap_inde.xml"], XML),
        (["render", "/sitemap_index.xm"], XML),
        (["render", "https://www.exmple.com/sitemap_index.xml"], ORIGIN),
        (["token", "revoke", "deplyo"], "deploy"),
    ],
    ids=lambda a: " ".join(a) if isinstance(a, list) else "",
)
def test_suggestions_for_a_mistyped_word(database, args, meant):
    done(sitemapd("token", "add", "deploy", database=database))
    refused(sitemapd(*args, database=database), 1, f"did you mean {meant}?")


def test_meant_words_of_usage(database, tmp_path):
    refused(sitemapd("lsit"), 2, "did you mean list?")
    refused(sitemapd("list", "--jsno"), 2, "did you mean --json?")
    refused(sitemapd("completion", "bsah"), 2, "did you mean bash?")
    for other in ("tcsh", "powershell"):  # near to one or to none: all are named
        refused(sitemapd("completion", other), 2, "bash, zsh and fish")
    config = tmp_path / "c.conf"
    config.write_text(f'[source "products"]\ndirectory = {tmp_path}\nurl = {ORIGIN}/\n')
    refused(sitemapd("scan", "prodcuts", "--config", config, database=database), 2, "did you mean products?")


def test_lists_with_nothing_say_so(tmp_path):
    path = tmp_path / "c.db"
    done(sitemapd("token", "add", "only", database=path))
    done(sitemapd("token", "revoke", "only", database=path))
    for what in ("site list", "index list", "token list", "list"):
        command = done(sitemapd(*what.split(), database=path))
        assert command.out == "" and command.err.startswith(f"sitemapd: {what}: no "), command
        command = done(sitemapd(*what.split(), "--json", database=path))
        assert command.out == command.err == "", command


# ---- entries ------------------------------------------------------------------------------------


def test_add_list_remove(database):
    done(sitemapd("add", ORIGIN + "/a.xml", "--lastmod", "2026-01-31T10:20Z", database=database))
    done(sitemapd("add", ORIGIN + "/b.xml", "--index", INDEX, database=database))
    plain = rows(sitemapd("list", database=database))
    assert len(plain) == 2 and "/a.xml" in plain[0] and "/b.xml" in plain[1]
    lines = done(sitemapd("list", "--json", database=database)).lines()
    assert [l["loc"] for l in lines] == [ORIGIN + "/a.xml", ORIGIN + "/b.xml"]
    assert lines[0]["lastmod"] == "2026-01-31T10:20:00Z" and lines[0]["index"] == INDEX
    assert rows(sitemapd("list", "--index", INDEX, database=database)) == plain
    done(sitemapd("add", ORIGIN + "/a.xml", "--lastmod", "2026-02-01T00:00:00Z", database=database))
    assert done(sitemapd("list", "--json", database=database)).lines()[0]["lastmod"] == "2026-02-01T00:00:00Z"
    locs = lambda *what: [l["loc"] for l in done(sitemapd("list", "--json", *what, database=database)).lines()]
    done(sitemapd("add", ORIGIN + "/folder/", "--lastmod", "2026-02-01", database=database))
    assert locs("--contains", "/b.x") == [ORIGIN + "/b.xml"] and locs("--contains", ".XML") == []
    assert locs("--warned") == [ORIGIN + "/folder/"] and locs("--warned", "--contains", ".xml") == []
    head, row = done(sitemapd("list", "--warned", database=database)).out.splitlines()
    assert head.endswith("  LOC (WARNINGS)") and row.endswith(f"  {ORIGIN}/folder/  (lastmod-date-only, loc-no-sitemap)")
    assert done(sitemapd("list", "--contains", "none", database=database)).err == "sitemapd: list: no matching entries\n"
    done(sitemapd("add", f"{ORIGIN}/job.xml", "--source", "job", database=database))
    assert locs("--source", "job") == [f"{ORIGIN}/job.xml"] and f"{ORIGIN}/job.xml" not in locs("--source", "cli")
    assert done(sitemapd("list", "--source", "none", database=database)).err == "sitemapd: list: no matching entries\n"
    done(sitemapd("remove", f"{ORIGIN}/job.xml", database=database))
    done(sitemapd("remove", ORIGIN + "/folder/", database=database))
    for text in ("ab", "a" * 201):
        refused(sitemapd("list", "--contains", text, database=database), 2, "--contains: must be 3 to 200 bytes long")
    done(sitemapd("remove", ORIGIN + "/a.xml", database=database))
    refused(sitemapd("remove", ORIGIN + "/a.xml", database=database))
    assert len(rows(sitemapd("list", database=database))) == 1


@pytest.mark.parametrize(
    "args, words",
    [
        (["add", "abc"], "absolute"),
        (["add", "www.example.com/a.xml"], "did you mean https://www.example.com/a.xml?"),
        (["add", "products.xml"], "must be an absolute URL (https://host/path) (loc-relative)\n"),
        (["add", "./sitemaps/products.xml.gz"], "must be an absolute URL (https://host/path) (loc-relative)\n"),
        (["token", "add", "ci", "--role", "superuser"], '--role: "superuser" must be read, write or admin'),
        (["add", "https://cdn.example.net/a.xml"], "sitemapd site add https://cdn.example.net"),
        (["add", "https://other.example/a.xml"], "other.example"),
        (["add", ORIGIN + "/a.xml", "--lastmod", "yesterday"], "lastmod"),
        (["add", ORIGIN + "/a.xml", "--index", ORIGIN + "/none.xml"], "index"),
        (["add", INDEX], "index"),
        (["index", "add", ORIGIN + "/x.html"], ".xml"),
        (["index", "add", "https://other.example/x.xml"], ""),
        (["index", "remove", ORIGIN + "/none.xml"], ""),
        (["site", "add", "www.example.com"], "did you mean https://www.example.com?"),
        (["site", "add", ORIGIN], ""),
        (["site", "remove", "https://other.example"], ""),
        (["render", ORIGIN + "/none.xml"], ""),
        (["render", INDEX], ""),
        (["token", "revoke", "none"], "none"),
        (["import", "/proc/nowhere/file"], "/proc/nowhere/file"),
        (["export", "--index", ORIGIN + "/none.xml"], ""),
    ],
    ids=lambda a: " ".join(a) if isinstance(a, list) else "",
)
def test_failures_exit_1(database, args, words):
    refused(sitemapd(*args, database=database), 1, words)


def test_a_message_shows_no_control_characters(database):
    command = sitemapd("add", "https://www.example.com/\x1b[31m\nforged: line", database=database)
    assert command.code == 1 and "\x1b" not in command.err and command.err.count("\n") == 1


def test_sites_and_indexes(database):
    done(sitemapd("site", "add", "https://Shop.Example.org", "--cross-host", "cdn.example.net", "--cross-host", "cdn2.example.net", database=database))
    listed = done(sitemapd("site", "list", database=database)).out
    assert ORIGIN in listed and "https://shop.example.org" in listed
    done(sitemapd("index", "add", "https://shop.example.org/deep/index.xml", database=database))
    assert "https://shop.example.org/deep/index.xml" in done(sitemapd("index", "list", database=database)).out
    done(sitemapd("add", "https://cdn.example.net/a.xml", "--index", "https://shop.example.org/deep/index.xml", database=database))
    refused(sitemapd("index", "remove", "https://shop.example.org/deep/index.xml", database=database))
    done(sitemapd("remove", "https://cdn.example.net/a.xml", database=database))
    done(sitemapd("index", "remove", "https://shop.example.org/deep/index.xml", database=database))
    done(sitemapd("site", "remove", "https://shop.example.org", database=database))
    assert "shop.example.org" not in sitemapd("site", "list", database=database).out


# ---- import and export --------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["xml", "xml.gz", "ndjson", "ndjson.gz", "list", "stdin"])
def test_import_detects_formats_by_content(database, tmp_path, form):
    entries = [(f"{ORIGIN}/{i}.xml?a=1&b={i}", None) for i in range(1100)]
    data = {
        "xml": render(entries),
        "ndjson": "".join(json.dumps({"loc": l}) + "\n" for l, _ in entries).encode(),
        "list": ("# a list\n\n" + "".join(l + "\r\n" for l, _ in entries)).encode(),
        "stdin": render(entries),
    }[form.split(".")[0]]
    path = tmp_path / "input"
    path.write_bytes(gzip.compress(data) if form.endswith(".gz") else data)
    if form == "stdin":
        command = sitemapd("import", "--index", INDEX, "-", database=database, input=data)
    else:
        command = sitemapd("import", "--index", INDEX, path, database=database)
    done(command)
    assert "1100" in (command.out + command.err).replace(",", "")
    assert done(sitemapd("render", INDEX, database=database)).raw_out == render(entries)
    before = sitemapd("export", database=database).out
    again = done(sitemapd("import", "--index", INDEX, path, database=database)) if form != "stdin" else None
    assert sitemapd("export", database=database).out == before, again


def test_import_is_all_or_nothing(database, tmp_path):
    path = tmp_path / "list"
    path.write_text(f"{ORIGIN}/a.xml\nnonsense\n{ORIGIN}/b.xml\nhttps://other.example/c.xml\n")
    command = sitemapd("import", "--index", INDEX, path, database=database)
    assert command.code == 1 and command.err.rstrip("\n").split("\n")[-1].startswith("sitemapd: "), command
    result = command.out + command.err
    assert re.search(r"\b2\b.*loc-relative", result) and re.search(r"\b4\b.*outside-site", result), command
    assert sitemapd("list", database=database).out == ""
    dry = sitemapd("import", "--index", INDEX, "--skip-invalid", "--dry-run", path, database=database)
    assert dry.code == 0 and sitemapd("list", database=database).out == "", dry
    skip = done(sitemapd("import", "--index", INDEX, "--skip-invalid", path, database=database))
    assert "loc-relative" in skip.out + skip.err and "outside-site" in skip.out + skip.err
    assert len(rows(sitemapd("list", database=database))) == 2


def test_import_remarks(database, tmp_path):
    path = tmp_path / "list"
    row = lambda loc, date=None: json.dumps({"loc": ORIGIN + loc, **({"lastmod": date} if date else {})}) + "\n"
    path.write_text(row("/a.xml", "2026-06-30T00:00:00Z") + row("/b.xml"))
    done(sitemapd("import", "--index", INDEX, path, database=database))
    path.write_text(row("/b.xml") + row("/a.xml", "2016-06-30T00:00:00Z") + row("/robots.txt") + row("/x/") + row("/s.xml?a=1&amp;b=2"))
    command = sitemapd("import", "--index", INDEX, path, database=database)
    assert command.code == 0 and "3 created, 1 updated" in command.out, command
    for result in ("(lastmod-set-back): 1 in all, first in line 2", "(loc-no-sitemap): 2 in all, first in line 3",
                 "(loc-amp-escaped): 1 in all, first in line 5"):
        assert result in command.err, command
    for words, result in ((("/page.html",), "loc-no-sitemap"), (("/b.xml", "--lastmod", "2026-01-01T00:00:00Z"), None),
                        (("/b.xml", "--lastmod", "2006-01-01T00:00:00Z"), "lastmod-set-back")):
        command = sitemapd("add", ORIGIN + words[0], *words[1:], database=database)
        assert command.code == 0 and (result in command.err if result else "warning" not in command.err), command


def test_import_replace_and_its_guard(database, tmp_path):
    path = tmp_path / "list"
    path.write_text("".join(f"{ORIGIN}/{i}.xml\n" for i in range(100)))
    done(sitemapd("import", "--index", INDEX, path, database=database))
    path.write_text("".join(f"{ORIGIN}/{i}.xml\n" for i in range(10, 110)))
    done(sitemapd("import", "--index", INDEX, "--replace", path, database=database))
    names = [l["loc"] for l in sitemapd("export", database=database).lines()]
    assert sorted(names) == sorted(f"{ORIGIN}/{i}.xml" for i in range(10, 110))
    path.write_text(f"{ORIGIN}/50.xml\n")
    held = sitemapd("import", "--index", INDEX, "--replace", path, database=database)
    assert held.code == 1 and "99" in held.err, held
    assert len(sitemapd("export", database=database).lines()) == 100
    done(sitemapd("import", "--index", INDEX, "--replace", "--max-removed", "99", path, database=database))
    assert len(sitemapd("export", database=database).lines()) == 1


def test_import_replace_spares_what_others_registered(server, tmp_path):
    """The rule of the API's PUT: it removes what its own source made, by default the command line's."""
    path = tmp_path / "list"
    path.write_text(f"{ORIGIN}/a.xml\n{ORIGIN}/b.xml\n")
    done(server.cli("import", path))
    done(server.cli("add", f"{ORIGIN}/c.xml", "--source", "build"))
    assert server.register(f"{ORIGIN}/api.xml").status == 201
    assert server.register(f"{ORIGIN}/listed.xml", lastmod="2026-01-31").status == 201
    path.write_text(f"{ORIGIN}/a.xml\n{ORIGIN}/d.xml\n{ORIGIN}/listed.xml\n")
    of = lambda: {l["loc"].rsplit("/", 1)[1]: l["source"] for l in server.cli("export").lines()}
    before = of()
    replace = ("import", "--index", INDEX, "--replace")
    for dry in (("--dry-run",), ()):
        result = done(server.cli(*replace, *dry, path))
        assert "1 created, 0 updated, 2 unchanged, 1 removed" in result.out, result
        assert "3 entries of other sources were left as they are; `--source '*'` replaces them too" in result.err
        assert not dry or of() == before
    assert of() == {"a.xml": "cli", "d.xml": "cli", "c.xml": "build", "api.xml": before["api.xml"], "listed.xml": before["api.xml"]}
    # Another source's list is that source's: what the command line made stays.
    path.write_text(f"{ORIGIN}/e.xml\n")
    done(server.cli(*replace, "--source", "build", path))
    assert set(of()) == {"a.xml", "d.xml", "e.xml", "api.xml", "listed.xml"}
    # Anybody's, when it is said, and with the shrink guard's consent.
    result = refused(server.cli(*replace, "--source", "*", path))
    assert "would remove 4 entries and leave 1" in result.err and "--max-removed 4 allows it" in result.err
    result = done(server.cli(*replace, "--source", "*", "--max-removed", "4", path))
    assert "1 unchanged, 4 removed" in result.out and result.err == "" and of() == {"e.xml": "build"}
    refused(server.cli("import", "--source", "*", path), 2, "'*' can only be used with --replace")


def test_import_drop_lastmod(database, tmp_path):
    path = tmp_path / "x.xml"
    path.write_bytes(render([(ORIGIN + "/a.xml", "2026-01-31T00:00:00Z")]))
    done(sitemapd("import", "--index", INDEX, "--drop-lastmod", path, database=database))
    assert sitemapd("export", database=database).lines()[0]["lastmod"] is None


def test_export_and_import_make_the_same_bytes(database, tmp_path, start):
    """Positions and their gaps included."""
    entries = [{"loc": f"{ORIGIN}/{i}.xml", "lastmod": "2026-01-31T00:00:00Z", "digest": f"d{i}"} for i in range(1300)]
    text = "".join(json.dumps(e) + "\n" for e in entries)
    done(sitemapd("import", "--index", INDEX, "-", database=database, input=text))
    for i in (0, 1, 499, 500, 777, 1299):
        done(sitemapd("remove", f"{ORIGIN}/{i}.xml", database=database))
    exported = done(sitemapd("export", database=database))
    assert [l["position"] for l in exported.lines()] == [i for i in range(1300) if i not in (0, 1, 499, 500, 777, 1299)]
    copy = str(tmp_path / "copy.db")
    done(sitemapd("site", "add", ORIGIN, database=copy))
    if INDEX not in sitemapd("index", "list", database=copy).out:
        done(sitemapd("index", "add", INDEX, database=copy))
    done(sitemapd("import", "--index", INDEX, "--replace", "-", database=copy, input=exported.out))
    keep = lambda lines: [(l["position"], l["loc"], l["lastmod"], l.get("digest")) for l in lines]
    assert keep(sitemapd("export", database=copy).lines()) == keep(exported.lines())
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    one = start(database=database, folder=tmp_path / "one")
    two = start(database=copy, folder=tmp_path / "two")
    for headers in ({}, {"Accept-Encoding": "gzip"}):
        a, b = one.get(XML, headers), two.get(XML, headers)
        assert a.body == b.body and a["ETag"] == b["ETag"]
    assert one.get(XML + ".gz").body == two.get(XML + ".gz").body


def test_render_is_what_is_served(server):
    assert server.bulk([{"loc": f"{ORIGIN}/{i}.xml?x&y", "lastmod": "2026-01-31"} for i in range(1234)]).status == 200
    rendered = done(server.cli("render", INDEX))
    assert rendered.raw_out == server.get(XML).body
    assert rendered.raw_out == render_export(server.cli("export").lines())
    refused(server.cli("render", ORIGIN + "/sitemap_index-2.xml"))


# ---- site update ----------------------------------------------------------------------------------


def site_of(database):
    return sitemapd("site", "list", "--json", database=database).lines()[0]


def test_site_update_adds_takes_away_and_shows_what_was(database):
    update = lambda *args: sitemapd("site", "update", ORIGIN, *args, database=database)
    result = done(update("--add-host-alias", "Example.com", "--add-host-alias", "b.example"))
    assert result.out == f"{ORIGIN}: updated\n  host aliases: b.example, example.com (before: none)\n"
    result = done(update("--add-host-alias", "c.example", "--remove-host-alias", "EXAMPLE.com", "--add-cross-host", "cdn.example.net"))
    assert "  host aliases: b.example, c.example (before: b.example, example.com)\n" in result.out
    assert "  cross hosts: cdn.example.net (before: none)\n" in result.out
    assert site_of(database)["host_aliases"] == ["b.example", "c.example"]
    assert done(update("--add-host-alias", "c.example")).out.startswith(f"{ORIGIN}: unchanged\n")
    # The whole list is still said as before, and what is lost by that shows.
    result = done(update("--host-alias", "d.example", "--max-indexes", "400"))
    assert "  host aliases: d.example (before: b.example, c.example)\n" in result.out
    assert "  limit of index files: 400 (before: 500)\n" in result.out and "cross" not in result.out
    refused(update("--remove-cross-host", "other.example.net"), words="the site has no cross host other.example.net")
    refused(update("--remove-host-alias", "a b"), words="host-malformed")
    for option in ("--host-alias", "--add-host-alias", "--cross-host", "--add-cross-host"):
        refused(update(option, "good.example", option, "https://b.example"), words="https://b.example: must be host[:port] (host-malformed)")
    assert site_of(database)["cross_hosts"] == ["cdn.example.net"], "nothing half-applied"
    refused(update("--add-host-alias", "x.example", "--remove-host-alias", "y.example"), words="no host alias y.example")
    assert site_of(database)["host_aliases"] == ["d.example"]
    for args in (("--add-host-alias", "e.example", "--host-alias", "f.example"), ("--remove-cross-host", "x", "--no-cross-hosts")):
        refused(update(*args), 2, "which replaces the whole list")
    done(update("--remove-cross-host", "cdn.example.net"))
    assert site_of(database)["cross_hosts"] == []


# ---- tokens -------------------------------------------------------------------------------------


def test_token_life_while_serving(server):
    made = done(server.cli("token", "add", "pipeline"))
    assert re.fullmatch(r"smd_[A-Za-z0-9_-]{43}\n", made.out), "alone on stdout"
    token = made.out.strip()
    refused(server.cli("token", "add", "pipeline"))
    assert "pipeline" in done(server.cli("token", "list")).out
    for path in [server.database, server.database + "-wal"]:
        with open(path, "rb") as file:
            assert token.encode() not in file.read(), "only its hash is kept"
    assert token not in server.cli("token", "list").out
    eventually(lambda: server.api("GET", "/v1/sitemaps", token=token).status == 200, "the new token is known")
    assert server.api("POST", "/v1/sitemaps", {"loc": ORIGIN + "/a.xml"}, token=token).json()["sitemap"]["source"] == "pipeline"
    done(server.cli("token", "revoke", "pipeline"))
    eventually(lambda: server.api("GET", "/v1/sitemaps", token=token).status == 401, "the revoked token is refused")
    assert "pipeline" not in server.cli("token", "list").out


# ---- the configuration --------------------------------------------------------------------------


def test_check_config(tmp_path):
    path = tmp_path / "sitemapd.conf"
    path.write_text("[server]\nlisten = 127.0.0.1:8080\n\n[site \"main\"]\norigin = https://www.example.com\n")
    assert done(sitemapd("check-config", "--config", path)).err == ""
    path.write_text(
        "[server]\nlisten = nonsense\nlissten = 127.0.0.1:1\n\n[nonsense]\nx = 1\n\n"
        '[site "main"]\norigin = www.example.com\ncache_control = x\n[log]\nlevel = loud\n'
    )
    command = sitemapd("check-config", "--config", path)
    assert command.code == 1
    result = re.findall(rf"^{re.escape(str(path))}:(\d+): .+$", command.out + command.err, re.M)
    assert {"2", "3", "9", "10", "12"} <= set(result) and {"5", "6"} & set(result), command
    none = tmp_path / "none.conf"
    command = sitemapd("check-config", "--config", none)
    assert command.code == 1 and command.err.startswith(f"{none}: ") and command.err.count("\n") == 1
    for name in ("serve", "list"):
        command = sitemapd(name, "--config", none, database=tmp_path / "c.db")
        assert command.code == 1 and str(none) in command.err, command
    command = sitemapd("serve", "--config", path, database=tmp_path / "c.db")
    assert command.code == 1 and f"{path}:2:" in command.err, "serve refuses the same"


@pytest.mark.parametrize(
    "text, line, message",
    [
        ("[server]\nuser = no-such-user\n", 2, "user no-such-user: user not found"),
        ("[log]\naccess_log = /no/such/access.log\n", 2, "access_log /no/such/access.log: folder /no/such: No such file or directory"),
        ("[log]\naccess_log = /etc/passwd/access.log\n", 2, "access_log /etc/passwd/access.log: /etc/passwd is not a folder"),
        ('[site "a"]\norigin = https://a.example\nindex = /s.xml\nindex = /s-2.xml\n', 1, "the page names of index /s-2.xml would conflict with those of index /s.xml"),
    ],
)
def test_check_config_finds_what_the_start_would_refuse(tmp_path, text, line, message):
    path = tmp_path / "sitemapd.conf"
    path.write_text(text)
    for command in (("check-config", path), ("serve", "--config", path)):
        result = sitemapd(*command, database=tmp_path / "c.db")
        assert result.code == 1 and f"{path}:{line}: " in result.err and message in result.err, result
    assert not (tmp_path / "c.db").exists()


def test_the_documented_default_is_valid():
    path = os.path.join(os.path.dirname(__file__), "../../config/sitemapd.conf")
    done(sitemapd("check-config", "--config", path))
    assert done(sitemapd("check-config", "--defaults")).out == open(path, encoding="utf-8").read()
    assert sitemapd("check-config", "--defaults", path).code == 2


def test_flag_over_environment_over_file(tmp_path):
    names = ("flag", "environment", "file")
    config = tmp_path / "sitemapd.conf"
    config.write_text(f"[catalogue]\ndatabase = {tmp_path}/file.db\n")
    exists = lambda: [n for n in names if (tmp_path / f"{n}.db").exists()]
    done(sitemapd("site", "add", ORIGIN, "--config", config))
    assert exists() == ["file"]
    env = {"SITEMAPD_DATABASE": f"{tmp_path}/environment.db"}
    done(sitemapd("site", "add", ORIGIN, "--config", config, env=env))
    assert exists() == ["environment", "file"]
    done(sitemapd("site", "add", ORIGIN, "--config", config, database=f"{tmp_path}/flag.db", env=env))
    assert exists() == ["flag", "environment", "file"]


# ---- serve --------------------------------------------------------------------------------------


def test_the_users_of_the_service_have_one_catalogue():
    """Root, and who owns /var/lib/sitemapd, wherever their home folder is; nobody else."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("mounts need root")
    script = (f"mount -t tmpfs tmpfs /var/lib; mkdir /var/lib/sitemapd /var/lib/home; chown 65531 /var/lib/sitemapd /var/lib/home; export HOME=/var/lib/home; cp {BIN} /var/lib/program; cd /var/lib\n"
              "for user in 65531 65532; do setpriv --reuid $user --regid $user --clear-groups /var/lib/program site list 2>&1 | cut -d: -f2; done; /var/lib/program site add https://www.example.com >&2; stat -c '%n %u' /var/lib/sitemapd/catalogue.db\n"
              "setpriv --reuid 65531 --regid 65531 --clear-groups /var/lib/program site list | head -1 | cut -d' ' -f1")
    done = subprocess.run(["unshare", "-m", "sh", "-euc", script], env=environment(), capture_output=True, text=True, timeout=seconds(60))
    assert done.stdout.split() == ["/var/lib/sitemapd/catalogue.db", "/var/lib/home/.local/state/sitemapd/catalogue.db", "/var/lib/sitemapd/catalogue.db", "65531", "https://www.example.com"], done


def test_serve_needs_no_file(tmp_path):
    """Defaults alone: the catalogue goes to the state directory, made private."""
    state = tmp_path / "state"
    server = Server(tmp_path, env={"STATE_DIRECTORY": str(state)}, token=None)
    args, env = ["serve"] + server.args, {"STATE_DIRECTORY": str(state), "HOME": str(tmp_path)}
    process = subprocess.Popen([BIN] + args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(env))
    try:
        assert process.stdout.readline().startswith(b"sitemapd: ready public=http://127.0.0.1:")
        assert (state / "catalogue.db").exists() and (state / "catalogue.db.token").exists()
        assert stat.S_IMODE(os.stat(state).st_mode) == 0o700
        process.terminate()
        out, err = process.communicate(timeout=seconds(60))
        assert process.returncode == 0 and out == b"", err
    finally:
        process.kill()
        process.wait()


def test_a_date_that_is_dropped(database):
    """The stored date stays; what is lacking in it is not said of the one that was given."""
    for date, words in (("2026-01-31", "lastmod-date-only"), ("2999-01-01", "lastmod-in-future")):
        result = sitemapd("add", ORIGIN + "/a.xml", "--lastmod", date, database=database)
        assert result.code == 0 and result.err.count("warning") == 1 and f"({words})" in result.err, result


def test_an_import_of_which_everything_is_refused(database, tmp_path):
    (tmp_path / "bad").write_text("/a.xml\nrelative\n")
    (tmp_path / "some").write_text(f"/a.xml\n{ORIGIN}/b.xml\n")
    (tmp_path / "none").write_text("")
    for name, code in (("bad", 1), ("some", 0), ("none", 0)):
        result = sitemapd("import", "--skip-invalid", tmp_path / name, database=database)
        assert result.code == code and ("every entry was rejected; nothing was applied" in result.err) == (code == 1), result


def test_an_empty_lastmod_is_reported(database, tmp_path):
    (tmp_path / "index.xml").write_text('<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
                                        f"<sitemap><loc>{ORIGIN}/a.xml</loc><lastmod/></sitemap></sitemapindex>")
    result = sitemapd("import", tmp_path / "index.xml", database=database)
    assert result.code == 0 and "(lastmod-invalid): 1 in all, first in line 1" in result.err, result


def test_pages_of_an_index_are_an_array(database):
    """As the API has them, but for what only a server has."""
    done(sitemapd("add", ORIGIN + "/a.xml", database=database))
    result = json.loads(sitemapd("index", "list", "--json", database=database).out)
    page = result["pages"][0]
    assert len(result["pages"]) == 1 and (page["number"], page["url"], page["entries"]) == (1, INDEX, 1), result
    assert (page["bytes"], page["changed_at"]) == (result["bytes"], result["changed_at"]), result


@pytest.mark.parametrize("token", ["x", "smd_" + "e" * 27])
def test_a_token_that_can_be_guessed(tmp_path, token):
    """It would administer all sites."""
    for command in ("serve", "check-config"):
        result = sitemapd(command, database=str(tmp_path / "c.db") if command == "serve" else None, env={"SITEMAPD_TOKEN": token})
        assert result.code == 1 and "SITEMAPD_TOKEN: must have at least 32 characters" in result.err and token not in result.err.replace("SITEMAPD_TOKEN: must have at least 32 characters; `openssl rand -hex 32` creates one", ""), result
    assert not (tmp_path / "c.db").exists()


def test_serve_by_environment(tmp_path):
    env = {
        "SITEMAPD_LISTEN": "127.0.0.1:0", "SITEMAPD_ADMIN_LISTEN": "127.0.0.1:0", "SITEMAPD_SITE": ORIGIN,
        "SITEMAPD_DATABASE": str(tmp_path / "c.db"), "SITEMAPD_TOKEN": "smd_" + "e" * 43,
    }
    server = Server(tmp_path, env=env, sites=(), token=None, database=tmp_path / "c.db")
    server.args = []
    server.token = env["SITEMAPD_TOKEN"]
    try:
        server.start()
        assert not os.path.exists(server.database + ".token"), "a token is there already"
        assert server.register(ORIGIN + "/a.xml").status == 201
        server.stop()
    finally:
        server.kill()


def test_ready_line(server):
    assert re.fullmatch(
        r"sitemapd: ready public=http://127\.0\.0\.1:[1-9]\d* admin=http://127\.0\.0\.1:[1-9]\d*\n", server.ready_line
    )


def test_healthcheck(start):
    server = start("--admin-listen", f"127.0.0.1:{free_port()}")
    done(sitemapd("healthcheck", f"http://{server.admin}/readyz"))
    done(sitemapd("healthcheck", f"http://{server.admin}"))
    done(sitemapd("healthcheck", env={"SITEMAPD_ADMIN_LISTEN": server.admin}))
    with socket.socket() as nobody:  # has the port, and does not listen
        nobody.bind(("127.0.0.1", 0))
        refused(sitemapd("healthcheck", f"http://127.0.0.1:{nobody.getsockname()[1]}/readyz"))
    refused(sitemapd("healthcheck", f"http://{server.admin}/none"))
    port = server.admin.rsplit(":", 1)[1]
    for everywhere in (f"0.0.0.0:{port}", f"http://0.0.0.0:{port}/"):
        assert done(sitemapd("healthcheck", everywhere)).out.startswith(f"http://127.0.0.1:{port}: ")
    for wrong in ("x y", "127.0.0.1:99999", "http://127.0.0.1:0"):
        refused(sitemapd("healthcheck", wrong), 2)
    refused(sitemapd("healthcheck", f"https://{server.admin}"), 1, "TLS")
    server.stop()
    refused(sitemapd("healthcheck", f"http://{server.admin}/readyz"))


def test_a_second_process_writes_while_serving(server):
    assert server.register(ORIGIN + "/a.xml").status == 201
    assert len(locs(server.get(XML).body)) == 1
    done(server.cli("add", ORIGIN + "/b.xml"))
    eventually(lambda: locs(server.get(XML).body) == [ORIGIN + "/a.xml", ORIGIN + "/b.xml"], "the other's write shows")
    done(server.cli("remove", ORIGIN + "/a.xml"))
    eventually(lambda: locs(server.get(XML).body) == [ORIGIN + "/b.xml"], "the other's removal shows")
    done(server.cli("site", "add", "https://second.example"))
    eventually(lambda: server.get("/robots.txt", host="third.example").status == 421, "the other's site shows")
    text = "".join(f"{ORIGIN}/i/{i}.xml\n" for i in range(3000))
    done(server.cli("import", "--index", INDEX, "-", input=text))
    eventually(lambda: len(locs(server.get(XML).body)) == 3001, "the other's import shows")


def test_backup_and_check(server, tmp_path):
    assert server.bulk([f"{ORIGIN}/{i}.xml" for i in range(2000)]).status == 200
    copy = str(tmp_path / "copy.db")
    done(server.cli("backup", copy))
    assert stat.S_IMODE(os.stat(copy).st_mode) & 0o077 == 0
    done(sitemapd("check", database=copy))
    done(server.cli("check"))
    assert sitemapd("render", INDEX, database=copy).raw_out == server.get(XML).body
    refused(server.cli("backup", copy))  # never over another file
    refused(server.cli("backup", str(tmp_path / "none" / "copy.db")))
    with sqlite3.connect(copy) as db:
        db.execute("UPDATE page SET entries = entries + 1")
    damaged = sitemapd("check", database=copy)
    assert damaged.code == 1 and f"page 1 of {INDEX}: counts 2001 entries, but has 2000" in damaged.err + damaged.out, damaged


def test_progress_only_on_a_terminal(database, tmp_path):
    path = tmp_path / "list"
    path.write_text("".join(f"{ORIGIN}/{i}.xml\n" for i in range(20000)))
    command = done(sitemapd("import", "--index", INDEX, path, database=database))
    assert "\r" not in command.out + command.err and "\x1b" not in command.out + command.err


@pytest.mark.parametrize("words, code, result", [
    (("add", f"{ORIGIN}/a.xml", "--digest", ""), 1, "digest"),
    (("add", f"{ORIGIN}/a.xml", "--digest", "x" * 5000), 1, "digest"),
    (("add", f"{ORIGIN}/a.xml", "--source", "no name"), 2, "--source"),
    (("add", "https://bücher.example/a.xml"), 1, "xn--bcher-kva.example"),
    (("site", "add", "https://b.example", "--max-indexes", "0"), 2, "must be a number from 1 to 85899"),
    (("site", "add", "https://b.example", "--max-indexes", "85900"), 2, "must be a number from 1 to 85899"),
    (("site", "update", ORIGIN), 2, "nothing to change"),
    (("site", "add", "b.example"), 1, "b.example"),
    (("site", "remove", ORIGIN, "--max-removed", "many"), 2, "must be a number"),
    (("site", "remove", "https://nobody.example"), 1, "nobody.example"),
    (("token", "revoke", "nobody"), 1, "token not found in this catalogue"),
    (("import", "/"), 1, "cannot be read"),
])
def test_what_is_refused_says_why(database, words, code, result):
    refused = sitemapd(*words, database=database)
    assert refused.code == code and result in refused.err, refused
    assert sitemapd("list", database=database).out == ""


def test_a_list_that_is_cut_off_is_not_taken_for_one_that_shrinks(database):
    lines = [f'{{"loc": "{ORIGIN}/{i}.xml"}}\n' for i in range(10)]
    done(sitemapd("import", "-", database=database, input="".join(lines)))
    cut = sitemapd("import", "--replace", "--index", INDEX, "-", database=database, input="".join(lines[:4]) + '{"loc": "https://www.exam')
    assert cut.code == 1 and "standard input:5: " in cut.err and "max-removed" not in cut.err, cut
    assert cut.err.endswith("1 of 5 entries rejected, nothing was applied; --skip-invalid applies the good ones\n"), cut
    skip = sitemapd("import", "--replace", "--skip-invalid", "--index", INDEX, "-", database=database, input="".join(lines[:4]) + '{"loc": "https://www.exam')
    assert skip.code == 1 and "--max-removed 6 allows it" in skip.err, skip


def test_an_import_says_what_would_help(database, tmp_path):
    other = "https://other.example"
    command = sitemapd("import", "-", database=database, input=f"{ORIGIN}/a.xml\n{other}/b.xml\n")
    assert command.code == 1, command
    assert "line 2: `sitemapd site update ORIGIN --add-cross-host other.example`, then --index URL; " in command.err, command
    assert "create another site with `sitemapd site add https://other.example`" in command.err, command
    assert command.err.endswith("1 of 2 entries rejected, nothing was applied; --skip-invalid applies the good ones\n")
    command = sitemapd("import", "-", database=database, input=f"{other}/b.xml\n")
    assert command.err.endswith("1 of 1 entry rejected, nothing was applied\n"), command  # there is no valid one
    done(sitemapd("site", "update", ORIGIN, "--cross-host", "other.example", database=database))
    command = sitemapd("import", "-", database=database, input=f"{other}/b.xml\n")
    assert command.code == 1 and "name the index with --index URL" in command.err, command
    # The place stands once, before the message.
    command = sitemapd("import", "-", database=database, input='<sitemapindex xmlns="http://www.sitemaps.org/sc')
    assert command.code == 1 and re.match(r"sitemapd: standard input:1:\d+: the XML is truncated", command.err), command


def test_an_import_of_much_that_is_wrong_is_summed_up(database):
    """Each kind with a few examples, the last one too, and what would help against it."""
    wrong = [f"{ORIGIN}/a {n}.xml" for n in range(70)] + [f"https://other.example/{n}.xml" for n in range(31)]
    result = sitemapd("import", "-", database=database, input="\n".join(wrong + [f"{ORIGIN}/good.xml"])).err.splitlines()
    place = "sitemapd: standard input:"
    assert [line.split(": ")[1] for line in result[:5]] == [f"standard input:{n}" for n in range(1, 6)]
    assert all(line.endswith("(loc-space)") for line in result[:5]) and result[5] == f"{place} and 65 more with loc-space", result
    assert [line.split(": ")[1] for line in result[6:11]] == [f"standard input:{n}" for n in range(71, 76)]
    assert all(line.endswith("(site-unknown)") for line in result[6:11]) and result[11] == f"{place} and 26 more with site-unknown", result
    assert "sitemapd site add https://other.example" in result[12], result
    assert result[13:] == [f"{place} 101 of 102 entries rejected, nothing was applied; --skip-invalid applies the good ones"], result
    # As many as are listed are listed, each with what to repair.
    result = sitemapd("import", "-", database=database, input="\n".join(wrong[:100])).err
    assert all(f"standard input:{n}: " in result for n in range(1, 101)) and "more with" not in result, result


def test_a_scan_names_the_folder_once(database):
    command = sitemapd("scan", "/proc/nowhere", "--url", ORIGIN + "/", database=database)
    assert command.code == 1 and command.err == "sitemapd: /proc/nowhere: No such file or directory\n", command


def test_serve_reports_every_mistake(database, tmp_path):
    config = tmp_path / "c.conf"
    config.write_text('[log]\nlevel = loud\n[site "a"]\nindex = /a.xml\n[source "s"]\ndirectory = /srv\nurl = https://a/x\n')
    checked = sitemapd("check-config", config)
    served = sitemapd("serve", "--config", config, database=database)
    # A url that is bad does not lack as well.
    assert checked.code == served.code == 1 and len(checked.err.splitlines()) == 3, checked
    assert served.err == "".join(f"sitemapd: {line}\n" for line in checked.err.splitlines()), served


def test_limits_of_an_import_name_the_setting(database, tmp_path):
    lines = "".join(f"{ORIGIN}/{n}.xml\n" for n in range(60))
    for setting, value, result in (("MAX_BULK_ENTRIES", "20", "max_bulk_entries"), ("MAX_BULK", "1K", "larger than max_bulk")):
        refused = sitemapd("import", "-", database=database, input=lines, env={f"SITEMAPD_LIMITS_{setting}": value})
        assert refused.code == 1 and result in refused.err, refused
    assert sitemapd("list", database=database).out == ""


def test_lists_for_programs(database):
    done(sitemapd("site", "update", ORIGIN, "--cross-host", "a.example", "--cross-host", "b.example",
                  "--host-alias", "c.example", database=database))
    done(sitemapd("site", "add", "https://d.example", "--no-index", database=database))
    sites = {s["origin"]: s for s in sitemapd("site", "list", "--json", database=database).lines()}
    assert sites[ORIGIN]["cross_hosts"] == ["a.example", "b.example"] and sites[ORIGIN]["host_aliases"] == ["c.example"]
    assert sites["https://d.example"]["indexes"] == 0
    assert "host alias  c.example" in sitemapd("site", "list", database=database).out
    done(sitemapd("token", "add", "robot", "--site", ORIGIN, database=database))
    (token,) = sitemapd("token", "list", "--json", database=database).lines()
    assert token["name"] == "robot" and token["site"] == ORIGIN
    done(sitemapd("add", f"{ORIGIN}/a.xml", "--digest", "abc", "--source", "nightly", database=database))
    (entry,) = sitemapd("list", "--json", database=database).lines()
    assert entry["digest"] == "abc" and entry["source"] == "nightly"


def test_check_config_is_of_a_file(tmp_path):
    """What is read to be checked would be gone for the start, and nobody may ever write it."""
    pipe = tmp_path / "pipe.conf"
    os.mkfifo(pipe)
    command = sitemapd("check-config", pipe)
    assert command.code == 1 and command.err.startswith(f"{pipe}: is a pipe; give a regular file"), command


def test_import_waits_for_who_writes_into_a_pipe(database, tmp_path):
    pipe = tmp_path / "list.txt"
    os.mkfifo(pipe)
    command = [BIN, "import", str(pipe), "--database", str(database)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            assert process.stderr.readline() == f"sitemapd: {pipe}: is a pipe with no data yet; waiting for it\n"
            pipe.write_text(f"{ORIGIN}/piped.xml\n")
            out, err = process.communicate(timeout=seconds(60))
        finally:
            process.kill()
    assert process.returncode == 0 and "piped.xml" in sitemapd("list", database=database).out, (out, err)


def test_what_is_empty_is_reported_as_empty(database):
    refused(sitemapd("token", "revoke", "", database=database), words='sitemapd: "": token not found in this catalogue')
    refused(sitemapd("site", "update", ORIGIN, "--remove-host-alias", "", database=database), words='"": must be host[:port] (host-malformed)')


def test_an_alias_that_says_nothing_is_remarked(database):
    result = done(sitemapd("site", "update", ORIGIN, "--add-host-alias", HOST, database=database))
    assert result.err == f"sitemapd: {HOST}: is the site's own host; as an alias it has no effect\n"
