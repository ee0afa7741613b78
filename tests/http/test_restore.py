# SPDX-License-Identifier: LicenseRef-Undeclared
"""Backup and restore, and the upgrade of a catalogue to a later schema: that of the program as the next release
would be (SITEMAPD_NEXT_BIN)."""

import bz2
import contextlib
import email.utils
import glob
import gzip
import hashlib
import lzma
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import threading
import time

import pytest

from harness import BIN, INDEX, ORIGIN, ask, eventually, locs, problem, sitemapd
from postgres import free_port
import saved

XML = "/sitemap_index.xml"
NEXT = os.environ.get("SITEMAPD_NEXT_BIN", "")
VERSION, NEXT_VERSION = 1, 2


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """A backup of this version, and the facts of what was served of it (saved.py)."""
    return saved.make(tmp_path_factory.mktemp("saved"))


@pytest.fixture
def copy(earlier, tmp_path):
    """Copies the backup to a name in the test's folder."""
    return lambda name: shutil.copyfile(earlier[0], tmp_path / name)


def done(command):
    assert command.code == 0 and command.err == "", command
    return command


def refused(command, words):
    assert command.code == 1 and command.out == "", command
    assert re.fullmatch(r"sitemapd: [^\n]+\n", command.err) and words in command.err, command
    return command


def facts_of(path):
    """What a file says of itself, read by another program."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    version = database.execute("PRAGMA user_version").fetchone()[0]
    row = database.execute("SELECT epoch, revision, serial FROM catalogue").fetchone()
    database.close()
    return version, *row


def left_over(folder):
    return sorted(name for name in os.listdir(folder) if "restore" in name)


# ---- earlier versions ---------------------------------------------------------------------------


def serves_everything(server, facts):
    """The running server serves, knows and lets in what the saving one did."""
    for url, page in facts["pages"].items():
        host, path = url[8:].split("/", 1)
        reply = server.get(f"/{path}", {"Accept-Encoding": "identity"}, host=host)
        assert hashlib.sha256(reply.body).hexdigest() == page["sha256"], url
        assert reply["ETag"] == page["etag"], url  # a crawler that has the page keeps it
        again = server.get(f"/{path}", {"Accept-Encoding": "identity", "If-None-Match": reply["ETag"]}, host=host)
        assert again.status == 304
    for token, status in ((facts["tokens"]["first"], 200), (facts["tokens"]["saved"], 200), ("smd_" + "x" * 43, 401)):
        assert server.api("GET", f"/v1/sitemaps?limit=1&index={INDEX}", token=token).status == status
    assert server.cli("export").out == facts["export"]
    assert server.get("/robots.txt", host="shop.example.org").body.decode() == facts["robots"]
    token = facts["tokens"]["first"]
    assert server.api("GET", f"/v1/sitemaps/{facts['entry']}", token=token).json()["loc"].startswith(ORIGIN)


def holds_everything(server, facts):
    serves_everything(server, facts)
    done(server.cli("check"))


def test_an_earlier_catalogue_is_served(start, tmp_path, earlier, copy):
    facts = earlier[1]
    path = copy("catalogue.db")
    assert facts_of(path)[0] == VERSION
    server = start(database=path, sites=(), token=None, binary=NEXT)
    holds_everything(server, facts)
    assert facts_of(path)[0] == NEXT_VERSION
    assert server.wait_for_log(" catalogue-upgraded: ")[0].endswith(
        "the catalogue was upgraded from schema 1 to schema 2; earlier releases that know only schema 1 reject it")
    server.restart()
    assert server.log().count("catalogue-upgraded") == 1
    token = facts["tokens"]["first"]
    assert server.api("GET", f"/v1/changes?since={facts['since']}", token=token).status == 200
    # It is written to as well: the lowest free position is taken, and sources have their tables.
    assert server.api("POST", "/v1/sitemaps", {"loc": ORIGIN + "/sitemaps/new.xml"}, token=token).status == 201
    assert locs(server.get(XML, {"Accept-Encoding": "identity"}, host="www.example.com").body)[0] == ORIGIN + "/sitemaps/new.xml"
    folder = tmp_path / "maps"
    folder.mkdir()
    (folder / "m.txt").write_text("https://shop.example.org/m\n")
    done(server.cli("scan", folder, "--url", "https://shop.example.org/more/"))
    done(server.cli("check"))


def test_an_upgrade_beside_readers_and_under_requests(start, tmp_path, earlier, copy):
    """Programs of the earlier version that read keep their state, and read on after it; a request for pages from before
    the start on gets none but what the earlier version served, by tags that hold."""
    facts = earlier[1]
    path = copy("catalogue.db")
    # What a removed index still keeps is released once nobody can bring it back: a day after the file was saved.
    rows = (
        "SELECT address, loc, lastmod FROM sitemap"
        " WHERE address >> 32 NOT IN (SELECT id FROM sitemap_index WHERE removed) ORDER BY address"
    )
    pages = "SELECT i.path, i.frozen, p.number, p.entries FROM sitemap_index AS i JOIN page AS p ON p.index_id = i.id"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as held:
        held.execute("PRAGMA journal_mode = WAL")  # as while it was served; a backup is not
        held.execute("BEGIN")
        before = held.execute(rows).fetchall(), held.execute(pages).fetchall()
        port = free_port()
        answers, ended = [], threading.Event()

        def asks():
            known = set()
            while not ended.is_set():
                for url, page in facts["pages"].items():
                    host, name = url[8:].split("/", 1)
                    headers = {"Accept-Encoding": "identity"}
                    if url in known:
                        headers["If-None-Match"] = page["etag"]
                    try:
                        reply = ask(f"127.0.0.1:{port}", "GET", "/" + name, headers, host=host)
                    except ConnectionError:
                        continue
                    answers.append((url, reply.status, reply["ETag"], hashlib.sha256(reply.body).hexdigest()))
                    known.add(url)

        clients = [threading.Thread(target=asks) for _ in range(3)]
        for client in clients:
            client.start()
        try:
            start("--listen", f"127.0.0.1:{port}", database=path, sites=(), token=None, binary=NEXT)
            assert facts_of(path)[0] == NEXT_VERSION  # while the reader holds what was before
            assert (held.execute(rows).fetchall(), held.execute(pages).fetchall()) == before
            held.execute("COMMIT")
            assert (held.execute(rows).fetchall(), held.execute(pages).fetchall()) == before
            some = len(answers)
            eventually(lambda: len(answers) > some + 30, "answers after the upgrade")
        finally:
            ended.set()
            for client in clients:
                client.join()
    wanted = {url: (page["etag"], page["sha256"]) for url, page in facts["pages"].items()}
    nothing = hashlib.sha256(b"").hexdigest()
    assert {status for _, status, _, _ in answers} == {200, 304}
    for url, status, tag, digest in answers:
        assert (tag, digest) == (wanted[url][0], wanted[url][1] if status == 200 else nothing), url


def test_a_command_that_upgrades_the_catalogue_says_so(copy):
    path = copy("catalogue.db")
    assert sitemapd("list", binary=NEXT, database=path).err == f"sitemapd: {path}: was upgraded from schema 1 to schema 2; releases that know only schema 1 reject it now\n"
    assert sitemapd("list", binary=NEXT, database=path).err == ""


@pytest.mark.parametrize("binary", ["same", "next"])
def test_an_earlier_backup_is_restored(start, tmp_path, earlier, copy, binary):
    facts, binary = earlier[1], BIN if binary == "same" else NEXT
    backup = copy("backup.db")
    before = open(backup, "rb").read()
    done(sitemapd("restore", backup, binary=binary, database=tmp_path / "deep" / "er" / "catalogue.db"))
    assert open(backup, "rb").read() == before and left_over(tmp_path / "deep" / "er") == []
    server = start(database=tmp_path / "deep" / "er" / "catalogue.db", sites=(), token=None, binary=binary)
    holds_everything(server, facts)
    token = facts["tokens"]["first"]
    problem(server.api("GET", f"/v1/changes?since={facts['since']}", token=token), 410, "revision-unknown")


def test_a_later_version_is_refused(tmp_path, copy):
    path = copy("c.db")
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version=99")
    database.close()
    for command in (sitemapd("list", database=path), sitemapd("restore", path, database=tmp_path / "d.db")):
        refused(command, "newer version of sitemapd (schema 99")
    assert not (tmp_path / "d.db").exists() and left_over(tmp_path) == []


def test_a_development_build_s_file_is_refused(tmp_path, copy):
    """Nothing was released with it, so there is no migration; the sentence says how to keep what it has."""
    path = copy("c.db")
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA application_id={0x534D4150}")
    database.execute("PRAGMA user_version=12")
    database.close()
    before = open(path, "rb").read()
    for command in (sitemapd("list", database=path), sitemapd("restore", path, database=tmp_path / "d.db")):
        refused(command, "was made by a development build of sitemapd (schema 12)")
        assert "sitemapd export" in command.err and "sitemapd import" in command.err
    assert open(path, "rb").read() == before and not (tmp_path / "d.db").exists() and left_over(tmp_path) == []


# ---- restore ------------------------------------------------------------------------------------


@pytest.mark.parametrize("blank", ["empty", "without a table"])
def test_a_file_in_which_nothing_was_written_need_not_be_replaced(start, tmp_path, blank):
    """A start on a full disk leaves such a file."""
    server = start()
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    backup, database = str(tmp_path / "backup.db"), tmp_path / "blank.db"
    done(server.cli("backup", backup))
    database.touch()
    if blank != "empty":
        with contextlib.closing(sqlite3.connect(database)) as made:
            made.execute("PRAGMA journal_mode=WAL")
        assert database.stat().st_size == 4096
    done(sitemapd("restore", backup, database=database))
    assert f"{ORIGIN}/a.xml" in sitemapd("list", database=database).out


def test_back_to_an_earlier_state(start, tmp_path):
    server = start()
    for name in "ab":
        assert server.register(f"{ORIGIN}/{name}.xml").status == 201
    backup = str(tmp_path / "backup.db")
    done(server.cli("backup", backup))
    early = server.api("GET", "/v1/changes?since=0").json()["next"]
    later = server.register(f"{ORIGIN}/c.xml").json()["sitemap"]
    dated = server.get(XML)["Last-Modified"]
    late = server.api("GET", "/v1/changes?since=0").json()["next"]
    _, epoch, revision, serial = facts_of(server.database)
    old_site = server.api("GET", "/v1/sites").json()["sites"][0]["id"]
    refused(server.cli("restore", backup, "--replace"), f"process {server.process.pid} is using it")
    refused(server.cli("restore", backup), "--replace replaces it by the backup")
    assert facts_of(server.database)[1:3] == (epoch, revision)
    server.stop()

    refused(server.cli("restore", backup), "--replace replaces it by the backup")
    done(server.cli("restore", backup, "--replace"))
    assert left_over(tmp_path) == [] and stat.S_IMODE(os.stat(server.database).st_mode) == 0o600
    assert not os.path.exists(server.database + "-wal")
    _, new_epoch, new_revision, new_serial = facts_of(server.database)
    assert new_epoch != epoch and new_revision > revision and new_serial >= serial
    done(server.cli("check"))

    server.start()
    reply = server.get(XML, {"Accept-Encoding": "identity"})
    assert locs(reply.body) == [ORIGIN + "/a.xml", ORIGIN + "/b.xml"]
    # A crawler that saw the later page must not get the answer that nothing has changed.
    assert server.get(XML, {"If-Modified-Since": dated}).status == 200
    # Cursors of both the lost time and the time before it are of another life.
    for since in (early, late):
        problem(server.api("GET", f"/v1/changes?since={since}"), 410, "revision-unknown")
    assert len(server.api("GET", "/v1/changes?since=0").json()["pages"]) >= 1
    # The lost entry's id means nothing, also once its place is taken again.
    problem(server.api("GET", f"/v1/sitemaps/{later['id']}"), 404)
    fresh = server.register(f"{ORIGIN}/d.xml").json()["sitemap"]
    assert fresh["id"] != later["id"]
    problem(server.api("GET", f"/v1/sitemaps/{later['id']}"), 404)
    assert server.api("GET", "/v1/sites").json()["sites"][0]["id"] == old_site


def test_dates_of_a_backup_that_was_renamed_in(start, tmp_path):
    """A copy of between two changes of one second: its page bears the date of what it is not."""
    server = start()
    backup = str(tmp_path / "backup.db")
    for attempt in range(10):
        time.sleep(1.05 - time.time() % 1)
        assert server.register(f"{ORIGIN}/a{attempt}.xml").status == 201
        done(server.cli("backup", backup))
        assert glob.glob(backup + "?*") == []
        assert server.register(f"{ORIGIN}/b{attempt}.xml").status == 201
        with contextlib.closing(sqlite3.connect(backup)) as copy:  # else its log stays beside it
            moment = int(copy.execute("SELECT max(changed_at) FROM page").fetchone()[0])
        dated = server.get(XML)["Last-Modified"]
        if email.utils.parsedate_to_datetime(dated).timestamp() == moment:
            break
        os.unlink(backup)
    else:
        pytest.skip("too slow a machine for a backup and two changes in a second")
    early = str(tmp_path / "early.db")
    shutil.copy(backup, early)
    time.sleep(1.1)
    later = server.get(XML)
    os.rename(backup, server.database)  # beneath the server
    eventually(lambda: server.get(XML)["ETag"] not in (None, later["ETag"]), "the backup is served")
    assert server.get(XML, {"If-Modified-Since": dated}).status == 200
    server.stop()  # and while it is down
    os.replace(early, server.database)
    server.start()
    assert server.get(XML, {"If-Modified-Since": dated}).status == 200
    assert server.get(XML, {"If-None-Match": server.get(XML)["ETag"]}).status == 304
    time.sleep(1.1)
    assert server.register(f"{ORIGIN}/c.xml").status == 201
    dated = server.get(XML)["Last-Modified"]
    time.sleep(1.1)
    assert server.get(XML, {"If-Modified-Since": dated}).status == 304


def test_a_catalogue_that_was_killed(start, tmp_path):
    """What its log holds must not be replayed into the restored file."""
    server = start()
    server.register(ORIGIN + "/a.xml")
    backup = str(tmp_path / "backup.db")
    done(server.cli("backup", backup))
    server.bulk([f"{ORIGIN}/b{i}.xml" for i in range(3000)])
    server.kill()
    assert os.path.getsize(server.database + "-wal") > 0
    done(server.cli("restore", backup, "--replace"))
    done(server.cli("check"))
    server.start()
    assert locs(server.get(XML, {"Accept-Encoding": "identity"}).body) == [ORIGIN + "/a.xml"]


def test_the_old_file_is_ruined(start, tmp_path):
    server = start()
    server.register(ORIGIN + "/a.xml")
    backup = str(tmp_path / "backup.db")
    done(server.cli("backup", backup))
    lost = server.register(ORIGIN + "/b.xml").json()["sitemap"]["id"]
    server.stop()
    with open(server.database, "r+b") as file:
        file.write(os.urandom(8192))
    done(server.cli("restore", backup, "--replace"))
    server.start()
    assert server.register(ORIGIN + "/c.xml").json()["sitemap"]["id"] != lost


def test_a_bad_backup_changes_nothing(start, tmp_path, copy):
    server = start()
    server.register(ORIGIN + "/a.xml")
    server.stop()
    before = open(server.database, "rb").read()
    good = copy("good.db")
    data = open(good, "rb").read()
    bad = {
        "cut.db": (data[: len(data) // 2], ""),
        "empty.db": (b"", "is empty"),
        "text.db": (b"no database at all\n" * 500, ""),
        "zeros.db": (data[:40960] + bytes(len(data) - 40960), ""),
    }
    for name, (content, words) in bad.items():
        path = tmp_path / name
        path.write_bytes(content)
        command = server.cli("restore", path, "--replace")
        assert command.code == 1 and command.out == "" and words in command.err, (name, command)
        assert all(line.startswith(f"sitemapd: {path}: ") for line in command.err.splitlines()), command
        assert open(server.database, "rb").read() == before and left_over(tmp_path) == [], name
    database = sqlite3.connect(good)
    database.execute("UPDATE page SET entries = entries + 1")
    database.commit()
    database.close()
    command = server.cli("restore", good, "--replace")
    assert command.code == 1 and "corrupt; nothing was restored" in command.err, command
    refused(server.cli("restore", tmp_path / "none.db", "--replace"), "No such file")
    refused(server.cli("restore", tmp_path, "--replace"), "")
    assert open(server.database, "rb").read() == before and left_over(tmp_path) == []


def trigger_named(name):
    """A trigger with a name that SQLite gives its own tables alone."""
    return f"""PRAGMA writable_schema = 1; INSERT INTO sqlite_schema VALUES('trigger', '{name}', 'token', 0,
        'CREATE TRIGGER {name} BEFORE DELETE ON token BEGIN SELECT RAISE(IGNORE); END')"""


FOREIGN = {
    "trigger": "CREATE TRIGGER back AFTER DELETE ON token BEGIN INSERT INTO token SELECT OLD.*; END",
    "endless": "CREATE TRIGGER on_page AFTER UPDATE ON page BEGIN SELECT count(*) FROM"
    " (WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i FROM n) SELECT i FROM n); END",
    "table": "CREATE TABLE mine(x)",
    "view": "DROP VIEW source_file; CREATE VIEW source_file AS SELECT * FROM source_file_row",
    "named as a table of ANALYZE": trigger_named("sqlite_stat1"),
    "named as a table of the engine": trigger_named("sqlite_sequence"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_objects_of_others_are_refused(start, tmp_path, kind):
    """A trigger in a file would be run by every write of the server that opens it."""
    server = start()
    server.register(ORIGIN + "/a.xml")
    backup = tmp_path / "backup.db"
    done(server.cli("backup", backup))
    server.stop()
    before = open(server.database, "rb").read()
    for path in (backup, server.database):
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.executescript(FOREIGN[kind])
    command = server.cli("restore", backup, "--replace")
    assert command.code == 1 and command.out == "" and left_over(tmp_path) == [], command
    assert "the schema: " in command.err and "that sitemapd did not create; nothing was restored" in command.err, command
    for words in (["check"], ["site", "list"]):
        refused(server.cli(*words), "another program changed this file")
    command = server.cli("serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
    assert command.code == 1 and "another program changed this file" in command.err, command
    with open(server.database, "wb") as database:
        database.write(before)
    done(server.cli("check"))


def test_a_catalogue_that_was_truncated(start, tmp_path):
    """An empty file is not a new catalogue where one was served: neither beneath the server nor at its start."""
    server = start()
    server.register(ORIGIN + "/a.xml")
    backup = tmp_path / "backup.db"
    done(server.cli("backup", backup))
    os.truncate(server.database, 0)
    problem(server.register(ORIGIN + "/b.xml"), 503, "unavailable")
    eventually(lambda: "catalogue-unreadable" in ask(server.admin, "GET", "/readyz", host=server.admin).body.decode(), "/readyz says so")
    server.stop()
    for name in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(server.database + name)
    os.truncate(server.database, 0)
    for words in (["serve"], ["site", "list"], ["check"]):
        command = server.cli(*words)
        assert command.code == 1 and "is empty, but a catalogue at revision" in command.err, command
        assert os.stat(server.database).st_size == 0
    empty = tmp_path / "empty.db"  # as a backup that found no room: nothing was served from it
    empty.touch()
    for words in (["check"], ["site", "list"], ["backup", tmp_path / "copy.db"]):
        command = sitemapd(*words, database=empty)
        assert command.code == 1 and "is empty, not a catalogue" in command.err and empty.stat().st_size == 0, command
    done(server.cli("restore", backup, "--replace"))
    server.start()
    assert locs(server.get(XML, {"Accept-Encoding": "identity"}).body) == [ORIGIN + "/a.xml"]


READ_ONLY = """
mount -t tmpfs none "$1" && cp "$2" "$1/c.db" && mount -o remount,ro "$1" || exit 77
for words in "site list" check export; do "$3" $words --database "$1/c.db"; done
"""


def test_a_disk_that_is_mounted_read_only_is_named(start, tmp_path):
    server = start()
    server.stop()
    there = tmp_path / "disk"
    there.mkdir()
    command = ["unshare", "-r", "-m", "sh", "-c", READ_ONLY, "sh", there, server.database, BIN]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode == 77 or "unshare" in result.stderr:
        pytest.skip("nothing can be mounted here")
    lines = result.stderr.splitlines()
    assert len(lines) == 3 and all("is mounted read-only" in line and "No such file" not in line for line in lines), result


def test_a_catalogue_in_use_is_not_accepted_as_a_backup(start, tmp_path):
    server = start()
    server.register(ORIGIN + "/a.xml")
    refused(sitemapd("restore", server.database, database=tmp_path / "other.db"), "sitemapd backup")
    assert not (tmp_path / "other.db").exists()


def test_through_a_link(start, tmp_path):
    server = start()
    server.register(ORIGIN + "/a.xml")
    backup = str(tmp_path / "backup.db")
    done(server.cli("backup", backup))
    server.stop()
    link = tmp_path / "link.db"
    link.symlink_to(server.database)
    done(sitemapd("restore", backup, "--replace", database=link))
    assert link.is_symlink() and not os.path.islink(server.database)
    done(sitemapd("check", database=server.database))


def test_only_regular_files_are_replaced(tmp_path, copy):
    pipe, backup = tmp_path / "pipe", str(copy("backup.db"))
    os.mkfifo(pipe)
    for place in (pipe, tmp_path):
        for option in ([], ["--replace"]):
            refused(sitemapd("restore", backup, *option, database=place), f"{place}: is not a regular file; name another path")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_restores_for_the_owner(start, tmp_path, copy):
    folder = tmp_path / "state"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    backup = copy("backup.db")
    database = folder / "catalogue.db"
    done(sitemapd("site", "add", ORIGIN, database=database))
    assert os.stat(database).st_uid == 65534
    done(sitemapd("restore", backup, "--replace", database=database))
    assert os.stat(database).st_uid == 65534


def test_a_compressed_backup_is_named_as_such(tmp_path):
    """What docs/operations.md has one make by `backup - | gzip` is not a database, and which command unpacks it is said."""
    for name, packed, command in (("gz", gzip.compress(b"SQLite format 3"), "gunzip"), ("xz", lzma.compress(b"SQLite format 3"), "unxz"), ("bz2", bz2.compress(b"SQLite format 3"), "bunzip2")):
        backup = tmp_path / f"catalogue.db.{name}"
        backup.write_bytes(packed)
        for run in (sitemapd("restore", str(backup), database=tmp_path / "new.db"), sitemapd("status", database=backup)):
            assert (run.code, run.err) == (1, f"sitemapd: {backup}: is compressed; unpack it first, with `{command}`\n"), run
        assert not (tmp_path / "new.db").exists()
