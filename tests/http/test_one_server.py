# SPDX-License-Identifier: LicenseRef-Undeclared
"""A catalogue has one server: a second is refused, whatever path leads it there and however the first one ended."""

import os
import re
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import BIN, FREE, ORIGIN, environment, eventually, locs, problem, seconds, sitemapd


def refused(database, words, *before, args=()):
    done = subprocess.run([*before, BIN, "serve", "--database", str(database), *FREE, *args], capture_output=True, text=True, env=environment(), timeout=seconds(60))
    result = [line for line in done.stderr.splitlines() if "runs-as-root" not in line]
    assert done.returncode == 1 and done.stdout == "" and len(result) == 1, done
    assert re.match(rf"sitemapd: {re.escape(str(database))}(\.lock)?: ", result[0]) and words in result[0], result


def test_a_second_server_is_refused_and_changes_nothing(start, tmp_path):
    server = start(config=f'[site "a"]\norigin = {ORIGIN}\nindex = /sitemap_index.xml\n', sites=())
    assert server.register(ORIGIN + "/a.xml").status == 201
    before = server.api("GET", "/v1/sites").json()
    assert before["sites"][0]["managed"]
    (tmp_path / "deep").mkdir()
    os.symlink(server.database, tmp_path / "link.db")
    os.symlink("../link.db", tmp_path / "deep" / "link.db")
    for path in (server.database, tmp_path / "deep" / ".." / "catalogue.db", tmp_path / "link.db", tmp_path / "deep" / "link.db"):
        refused(path, f"process {server.process.pid} ", args=("--site", "https://other.example"))
    assert server.api("GET", "/v1/sites").json() == before
    assert server.register(ORIGIN + "/b.xml").status == 201


def test_half_made_copies_go_at_the_start(start, tmp_path):
    """What a kill -9 left of /v1/backup goes; what only looks like it is somebody's own."""
    server = start()
    left = ["catalogue.db.sitemapd-copy-a1B2c3", "catalogue.db.sitemapd-copy-a1B2c3.Zz09xY"]
    own = ["catalogue.db.copy-monday", "catalogue.db.copy-a1B2c3", "catalogue.db.sitemapd-copy-monday1", "catalogue.db.sitemapd-copy-a1B2c3.db",
           "catalogue.db.sitemapd-copy-a1B2c3.Zz09xY.gz", "catalogue.db.sitemapd-copy-", "catalogue.db.sitemapd-copy-a1B2-3", "other.db.sitemapd-copy-a1B2c3"]
    for name in left + own:
        (tmp_path / name).write_text("a copy")
    (tmp_path / "catalogue.db.sitemapd-copy-folder").mkdir()
    os.symlink(own[0], tmp_path / "catalogue.db.sitemapd-copy-linked")
    refused(server.database, f"process {server.process.pid} ")
    assert all((tmp_path / name).exists() for name in left), "they may be the running server's"
    server.kill()
    server.start()
    assert [name for name in left if (tmp_path / name).exists()] == []
    assert [name for name in [*own, "catalogue.db.sitemapd-copy-folder", "catalogue.db.sitemapd-copy-linked"] if not (tmp_path / name).exists()] == []


def test_commands_work_beside_the_server(server, tmp_path):
    """They take no lock, and leave the server's as it is."""
    copy = tmp_path / "copy.db"
    for args in (("add", ORIGIN + "/a.xml"), ("list",), ("check",), ("token", "add", "x"), ("backup", copy), ("export",)):
        assert server.cli(*args).code == 0
    refused(server.database, f"process {server.process.pid} ")


def test_the_lock_goes_with_the_process(start, tmp_path):
    server = start()
    server.kill()
    assert os.path.exists(server.database + ".lock")
    server.start()
    refused(server.database, f"process {server.process.pid} ")
    server.stop()
    server.start()


def test_a_backup_renamed_in_leaves_the_lock(server, tmp_path):
    assert server.register(ORIGIN + "/a.xml").status == 201
    assert server.cli("backup", tmp_path / "copy.db").code == 0
    os.rename(tmp_path / "copy.db", server.database)
    refused(server.database, f"process {server.process.pid} ")
    eventually(lambda: server.register(ORIGIN + "/b.xml").status in (200, 201), "the new file is written")
    refused(server.database, f"process {server.process.pid} ")


def test_a_write_whose_file_is_replaced_is_not_acknowledged(server, tmp_path):
    """It waits to be visible, since the file cannot be read. Then a backup without it takes the place of the file."""
    assert server.register(ORIGIN + "/a.xml").status == 201
    assert server.cli("backup", tmp_path / "copy.db").code == 0
    server.restart()
    assert server.register(ORIGIN + "/b.xml").status == 201
    size = os.path.getsize(server.database)
    with open(server.database, "r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    with ThreadPoolExecutor() as pool:
        waits = pool.submit(server.register, ORIGIN + "/c.xml")
        eventually(lambda: "catalogue-unreadable" in server.log(), "it cannot be read")
        os.rename(tmp_path / "copy.db", server.database)
        reply = waits.result()
    assert problem(reply, reply.status)["code"] in ("outcome-unknown", "corrupt", "unavailable")  # whether the writer still knew the pages that it needed
    # 200: registered by an attempt that met the change of files, whose outcome was unknown.
    eventually(lambda: server.register(ORIGIN + "/d.xml").status in (200, 201), "the backup is served")
    assert locs(server.get("/sitemap_index.xml").xml()) == [ORIGIN + "/a.xml", ORIGIN + "/d.xml"]


def test_the_lock_follows_a_changed_link(start, tmp_path):
    """The lock is on the file that the link leads to: what it leaves is free, what it comes to is taken."""
    sitemapd("site", "add", ORIGIN, database=tmp_path / "one.db")
    shutil.copy(tmp_path / "one.db", tmp_path / "two.db")
    os.symlink("one.db", tmp_path / "link.db")
    server = start(database=tmp_path / "link.db")
    assert server.register(ORIGIN + "/a.xml").status == 201
    os.symlink("two.db", tmp_path / "link.new")
    os.rename(tmp_path / "link.new", tmp_path / "link.db")
    eventually(lambda: server.register(ORIGIN + "/b.xml").status in (200, 201) and "b.xml" in sitemapd("list", database=tmp_path / "two.db").out, "the other file is written")
    refused(tmp_path / "two.db", f"process {server.process.pid} ")
    start(database=tmp_path / "one.db", folder=tmp_path)


def test_a_lock_file_that_was_deleted_is_made_again(server):
    os.unlink(server.database + ".lock")
    there = lambda: os.path.exists(server.database + ".lock") and os.path.getsize(server.database + ".lock") > 0
    eventually(there, "it is there again, and held")
    refused(server.database, f"process {server.process.pid} ")


def test_a_server_in_another_container_has_no_number(server):
    """In a pid namespace of its own a process does not know the other's pid, and the lock holds all the same."""
    if subprocess.run(["unshare", "--user", "--map-root-user", "--pid", "--fork", "true"], capture_output=True).returncode != 0:
        pytest.skip("namespaces are not allowed here")
    refused(server.database, "in another container", "unshare", "--user", "--map-root-user", "--pid", "--fork")


def test_a_lock_that_cannot_be_made_is_reported(tmp_path):
    database = tmp_path / "c.db"
    assert sitemapd("site", "add", ORIGIN, database=database).code == 0
    os.mkdir(str(database) + ".lock")
    refused(database, ".lock: cannot be opened: Is a directory")
    os.rmdir(str(database) + ".lock")
    os.symlink("/dev/null", str(database) + ".lock")
    refused(database, ".lock: cannot be opened: ")


def test_an_idle_server_leaves_the_lock_file_alone(server):
    """It looks around after each commit; what it has to say it has said."""
    assert server.register(ORIGIN + "/a.xml").status == 201
    lock = server.database + ".lock"
    before = os.stat(lock).st_mtime_ns
    revision = open(lock).read()
    time.sleep(3)
    assert os.stat(lock).st_mtime_ns == before
    assert server.cli("add", ORIGIN + "/b.xml").code == 0
    eventually(lambda: open(lock).read() != revision, "what a command did is noted")
    os.unlink(lock)
    eventually(lambda: os.path.exists(lock) and open(lock).read() != "", "the file is made again, and says it all")
